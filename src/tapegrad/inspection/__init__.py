"""What was recorded, looked at: pictures, where time and memory go, the first nan."""
