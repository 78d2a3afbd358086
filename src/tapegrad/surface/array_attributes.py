"""Attributes of NumPy's arrays, and of PyTorch's tensors, that tensors do not have: asking for one tells what to write instead."""

from __future__ import annotations

from typing import Any

from tapegrad.absent_names import advice

__all__ = ["ABSENT"]


class Absent:
    """An attribute that is not there, neither on the class nor on its objects, with advice in its error.

    Unlike ``__getattr__`` it costs nothing where other attributes are missed, and what asks by `hasattr` is told the truth.
    """

    def __init__(self, name: str, instead: str) -> None:
        self.name, self.instead = name, instead

    def __get__(self, t: Any, owner: type) -> Any:
        who = f"type object '{owner.__name__}'" if t is None else f"'{owner.__name__}' object"
        raise AttributeError(f"{who} has no attribute '{self.name}'; {self.instead}", name=self.name, obj=owner if t is None else t)


_VALUES = "of an untracked tensor, write x.numpy()."
ABSENT: dict[str, Absent] = {
    name: Absent(name, instead)
    for name, instead in {
        "argpartition": "write np.argpartition(x, k), which also takes arrays",
        "astype": "write x.to(dtype)",
        "choose": "write np.select([x == 0, x == 1], choices), which also takes arrays",
        "compress": "write np.compress(condition, x), which also takes arrays",
        "conjugate": "write x.conj(), which arrays have too",
        "copy": "write x.clone(), or np.copy(x), which also takes arrays",
        "fill": "write x.fill_(value)",
        "flags": "write x.is_contiguous()",
        "flat": "write x.reshape(-1), or np.ravel(x); both also take arrays",
        "itemset": "write x[place] = value",
        "partition": "write np.sort(x), which also takes arrays",
        "ptp": "write np.ptp(x), which also takes arrays",
        "searchsorted": "write np.searchsorted(x, v), which also takes arrays",
        "strides": "write x.stride(), which counts elements and not bytes",
        "tobytes": f"{_VALUES}tobytes()",
        "tofile": f"{_VALUES}tofile(file)",
    }.items()
} | {name: Absent(name, instead) for name, instead in advice("Tensor").items()}
