"""Programs: what one call of a function recorded, run again at other inputs without the function."""
