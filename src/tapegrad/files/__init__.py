"""Files of state."""
