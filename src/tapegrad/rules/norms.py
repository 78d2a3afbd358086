"""How the norm of a vector depends on an element, as text like that of the table.

``x`` is the element, ``y`` the order, and ``z`` the norm, which is neither zero nor of order zero or infinity. A norm is a
homogeneous function of its elements, so its second derivatives are those of the text by ``x``, with the norm held, and ``BEND``
times the product of two slopes.
"""

from __future__ import annotations

__all__ = ["BEND", "LENGTH", "SLOPE", "SLOPE_OF_ANY"]

LENGTH = "x / z"  # of order two
SLOPE = "mul0(sign(x), pow(abs(x) / z, y - 1.0))"
SLOPE_OF_ANY = f"where(y == 2.0, {LENGTH}, {SLOPE})"
BEND = "(1.0 - y) / z"
