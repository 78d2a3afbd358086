"""The handle that registering a hook returns, under PyTorch's name."""

from tapegrad.tensors.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
