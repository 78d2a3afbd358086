"""What recorded code calls in the place of functions of Numba, NumPy and Python."""
