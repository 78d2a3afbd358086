"""The one loop over a dimension that NumPy cannot do: a linear recurrence."""

from tapegrad.compilation.jit import entry
from tapegrad.engine.memory import f64


@entry("int64(int64,int64,int64,int64,int64,int64,int64)")
def solve_recurrence(a_at, b_at, r_at, outer, n, inner, backwards):
    """Arrays of shape (outer, n, inner): ``r[:, i] = b[:, i] + a[:, i] * r[:, i-1]``, or with ``i+1`` for `backwards`."""
    size = outer * n * inner
    a, b, r = f64(a_at, size), f64(b_at, size), f64(r_at, size)
    step = -inner if backwards != 0 else inner
    for o in range(outer):
        row = o * n * inner + ((n - 1) * inner if backwards != 0 else 0)
        for j in range(inner):
            r[row + j] = b[row + j]
        for _ in range(n - 1):
            before = row
            row += step
            for j in range(inner):
                # absolute-zero product: a zero factor hides an infinite other one
                p, q = a[row + j], r[before + j]
                r[row + j] = b[row + j] if p == 0.0 or q == 0.0 else b[row + j] + p * q
    return 0
