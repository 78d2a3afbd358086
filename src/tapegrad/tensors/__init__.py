"""Tensors by themselves: the class, what makes them, the modes of threads, and what is kept beside a tensor."""
