"""Where Numba's compiler is met: linking, failures to compile, its reports, optional arguments."""
