"""Operations give for arrays that lie backwards in memory what they give for others."""

from __future__ import annotations

from typing import Any

import numpy as np
from many_cases import each
from operation_case import Case, as_tuple
from test_arrays_in_tables import CASES

import tapegrad as tg
from tapegrad.numpy_arrays.array import Array


def evaluated(case: Case, backwards: bool) -> list[np.ndarray]:
    """Results, and gradients at arrays that are views of leaves, backwards along every dimension or not."""
    leaves, operands = [], []
    for a in case.arrays:
        key = (slice(None, None, -1 if backwards else 1),) * a.ndim
        leaf = tg.tensor(np.ascontiguousarray(a[key]), requires_grad=a.dtype.kind == "f" and case.order > 0)
        leaf.__class__ = Array
        leaves.append(leaf)
        operands.append(leaf[key])
    tg.manual_seed(0)
    results = [t for t in as_tuple(case.call(*operands)) if isinstance(t, tg.Tensor)]
    tracked = [t for t in results if t.requires_grad]
    weights = [tg.tensor(np.cos(np.arange(np.size(t.detach().numpy()))).reshape(tuple(t.shape))).to(t.dtype) for t in tracked]
    found = [t.detach().numpy() for t in results]
    if tracked:
        wanted = [t for t in operands if t.requires_grad]
        found += [g.detach().numpy() for g in tg.autograd.grad(tracked, wanted, weights, allow_unused=True) if g is not None]
    return found


def case_of_values(case: Case) -> bool:
    return all(a.ndim for a in case.arrays)


@each("case", [case for case in CASES if case_of_values(case)], ids=str)
def test_operations_do_not_depend_on_the_direction_of_memory(case: Case) -> None:
    expected: Any = evaluated(case, False)
    found = evaluated(case, True)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            a, b, rtol=1e-5 if a.dtype == np.float32 else 1e-12, atol=1e-6 if a.dtype == np.float32 else 1e-13
        )
