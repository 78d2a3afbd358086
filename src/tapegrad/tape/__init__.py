"""The tape as Python knows it: columns and handles, objects of rows, and the locks around them."""

from tapegrad.tape.tape import default_tape

__all__ = ["default_tape"]
