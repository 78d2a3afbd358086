"""Densities and distribution functions with the names and arguments of `scipy.stats`, one file a distribution."""
