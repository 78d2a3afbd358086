"""The one loop over a dimension that NumPy cannot do: a linear recurrence."""

from tapegrad.jit import entry

__all__ = ["solve_recurrence"]


@entry("void(float64[:, :, ::1], float64[:, :, ::1], float64[:, :, ::1], boolean)")
def solve_recurrence(a, b, r, backwards):
    """Shapes (outer, n, inner): ``r[:, i] = b[:, i] + a[:, i] * r[:, i-1]``, or with ``i+1`` for `backwards`."""
    outer, n, inner = b.shape
    step = -1 if backwards else 1
    for o in range(outer):
        i = n - 1 if backwards else 0
        for j in range(inner):
            r[o, i, j] = b[o, i, j]
        for _ in range(n - 1):
            before = i
            i += step
            for j in range(inner):
                # absolute-zero product: a zero factor hides an infinite other one
                p = a[o, i, j]
                q = r[o, before, j]
                r[o, i, j] = b[o, i, j] if p == 0.0 or q == 0.0 else b[o, i, j] + p * q
