"""How the package compiles: Numba with its settings, in few passes, and a notice when it takes long."""
