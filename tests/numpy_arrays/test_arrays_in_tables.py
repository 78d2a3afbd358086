"""Functions of the package give for arrays what they give for tensors, to the bit: none of them relies on methods that differ."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
from many_cases import each
from operation_case import Case, as_tuple

import tapegrad as tg
from tapegrad.numpy_arrays.array import Array

# Cases of methods that mean something else on arrays, or that arrays have with other arguments.
METHODS = ["repeat", "searchsorted", "sort-descending", "view"]
CASES: list[Case] = [
    case
    for path in sorted(Path(__file__).parents[1].glob("cases_*.py"))
    for case in importlib.import_module(path.stem).CASES
    if str(case) not in METHODS
]


def evaluated(case: Case, kind: type) -> list[np.ndarray]:
    """Results, gradients and, of one sum of these, gradients of second order at leaves of a class."""
    leaves = [tg.tensor(a, requires_grad=a.dtype.kind == "f" and case.order > 0) for a in case.arrays]
    for leaf in leaves:
        leaf.__class__ = kind  # as drivers make them
    tg.manual_seed(0)
    results = [t for t in as_tuple(case.call(*leaves)) if isinstance(t, tg.Tensor)]
    tracked = [t for t in results if t.requires_grad]
    weights = [tg.tensor(np.cos(np.arange(np.size(t.detach().numpy()))).reshape(tuple(t.shape))) for t in tracked]
    found = []
    if tracked:
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        weights = [w.to(t.dtype) for w, t in zip(weights, tracked, strict=True)]
        again = case.order > 1
        first = tg.autograd.grad(tracked, wanted, weights, create_graph=again, allow_unused=True)
        found += [g for g in first if g is not None]
        smooth = [(g * g).sum() for g in found if g.requires_grad]
        if smooth:
            found += [g for g in tg.autograd.grad(sum(smooth), wanted, allow_unused=True) if g is not None]
    return [t.detach().numpy() for t in [*results, *found]]


@each("case", CASES, ids=str)
def test_functions_give_the_same_for_arrays(case: Case) -> None:
    expected: Any = evaluated(case, tg.Tensor)
    found = evaluated(case, Array)
    assert len(found) == len(expected)
    # Third powers of arrays have NumPy's last digit, those of tensors are products.
    digits = 1e-13 if str(case).startswith("lp_pool") else 0.0
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=digits, atol=digits)
