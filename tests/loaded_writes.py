"""What compiled writes need, loaded: the first write of a kind is the Python form's."""

import tapegrad as tg

__all__ = ["warm"]


def warm() -> None:
    """Let everything be loaded that compiled writes need."""
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(2):
        y = x.clone()
        y.zero_()
        y[0] = x[1]
        y[:1] *= 2.0
        number = y.sum()
        number.mul_(2.0)
        number.backward()
