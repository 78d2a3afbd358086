"""A program that goes through every kind of row, and the bits of all that it gives."""

import hashlib
from collections.abc import Callable

import numpy as np

import tapegrad as tg

LARGE = 20_000  # elements, beyond the size from which results take memory that was used before


def undisturbed() -> None:
    """Do nothing."""


def bits(between: Callable[[], None] = undisturbed) -> bytes:
    """The bits of values and gradients; `between` is called between the steps."""
    found: list[bytes] = []

    def note(*tensors: tg.Tensor | None) -> None:
        found.extend(np.asarray(t.detach().numpy()).tobytes() for t in tensors if t is not None)
        between()

    rng = np.random.default_rng(7)
    s, t = (tg.tensor(v, requires_grad=True) for v in rng.normal(size=2).tolist())
    y = s
    for k in range(40):
        y = tg.sin(y * t) + y / (1.5 + k) + tg.tanh(s)
        if k % 10 == 0:
            between()
    y.backward()
    note(y, s.grad, t.grad)

    x = tg.tensor(rng.normal(size=LARGE), requires_grad=True)
    w = tg.tensor(rng.normal(size=LARGE), requires_grad=True)
    z = tg.exp(-x * x) * w + tg.sigmoid(w) / (1.0 + x * x)
    between()
    u = z.cumsum(0).softmax(0) * w + z.logsumexp(0)
    note(z, u)
    (u.sum() + z.var() + z[::3].prod() + (z.reshape(100, -1).amax(1) ** 2).sum()).backward()
    note(x.grad, w.grad)

    m = tg.tensor(rng.normal(size=(30, 7)), requires_grad=True)
    base = m * 1.0
    base[::2, 1] = m[1::2, 2] * 3.0
    base.T[3].mul_(2.0)
    between()
    rows = tg.tensor(rng.integers(0, 30, size=200))
    picked = tg.cat([base[rows], base.t().contiguous().reshape(30, 7)]).mean(0)
    (g,) = tg.autograd.grad((picked**3).sum(), m, create_graph=True)
    note(picked, g)
    (h,) = tg.autograd.grad((g * g).sum(), m)
    note(h)

    f = tg.tensor(rng.normal(size=(50, 9)).astype(np.float32), requires_grad=True)
    (f.log_softmax(1) * f.sigmoid()).sum().backward()
    note(f.grad)
    return b"".join(found)


if __name__ == "__main__":
    print(hashlib.sha256(bits()).hexdigest())
