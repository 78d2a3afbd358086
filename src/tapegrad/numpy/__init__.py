"""NumPy's namespace for functions that are differentiated: ``import tapegrad.numpy as np``.

Everything is NumPy's, under NumPy's names. Inside of a function that a driver differentiates, what NumPy offers no hook for works
as well: arrays that are made there (`zeros`, `empty`, `arange`, ...) can hold tracked values, lists of tracked numbers become
arrays
(``np.array([x[0], 2 * x[1]])``, ``np.sum([x[0], x[1]])``), and so do the parts of ``np.r_`` and ``np.c_``. Outside, all results
are NumPy's own.

Examples
--------
>>> import tapegrad.numpy as tnp
>>> def f(x):
...     r = tnp.zeros(3)
...     for k in range(3):
...         r[k] = x[k] ** 2
...     return tnp.sum([r[0], 3 * r[2]]) + tnp.r_[0.0, x].sum()
>>> f(np.array([1.0, 2.0, 3.0]))
np.float64(34.0)
>>> tg.grad(f)(np.array([1.0, 2.0, 3.0]))
array([ 3.,  1., 19.])
"""

from __future__ import annotations

from typing import Any

from tapegrad.deferred import look_up
from tapegrad.numpy.namespaces import Namespace
from tapegrad.numpy.namespaces import namespace as _namespace

_numpy: Namespace = _namespace("numpy")


def __getattr__(name: str) -> Any:
    if name == "special":  # which SciPy asks for, and NumPy has not
        return look_up("numpy.special")
    try:
        found = getattr(_numpy, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name) from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_numpy)})
