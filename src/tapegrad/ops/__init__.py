"""The operations on tensors, each with its derivative."""
