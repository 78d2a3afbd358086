"""The recording twin of a compiled function: what it was made from, whether that is still so, and keeping it on disk."""
