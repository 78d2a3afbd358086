"""Types of compiled code while it records: variables, arrays of them, tapes."""
