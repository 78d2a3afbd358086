"""What users see of tensors and functions: names, attributes, conversions, copies and text."""
