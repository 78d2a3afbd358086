"""A user's statement as one row."""
