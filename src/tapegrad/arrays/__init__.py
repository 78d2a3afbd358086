"""What is asked of NumPy's arrays before there are tensors: element types, shapes, memory, and NumPy's own compiled functions."""
