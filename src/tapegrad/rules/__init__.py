"""The rule table: values and derivatives of elementwise operations, as text, and the functions that it is written with."""
