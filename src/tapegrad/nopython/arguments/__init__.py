"""What happens to arguments before a recorded call, and to results after it."""
