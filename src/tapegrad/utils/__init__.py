"""PyTorch's place for some public names."""

from tapegrad.utils import hooks

__all__ = ["hooks"]
