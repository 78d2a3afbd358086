"""What drivers hand to functions that are written for NumPy: tensors whose methods, attributes and indices mean what NumPy's do."""
