"""The compiler pass that makes a recording out of a user's function."""
