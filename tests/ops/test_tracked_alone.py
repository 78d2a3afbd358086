"""An operand that is tracked alone has the gradient that it has beside tracked others.

What a row saves depends on which operands are tracked, so each combination is another way to forget something.
"""

import importlib
from pathlib import Path

import numpy as np
from many_cases import each
from operation_case import Case, as_tuple

import tapegrad as tg

CASES: list[Case] = [
    case for path in sorted(Path(__file__).parents[1].glob("cases_*.py")) for case in importlib.import_module(path.stem).CASES
]
SEVERAL = [case for case in CASES if case.order and sum(array.dtype.kind == "f" for array in case.arrays) > 1]


def gradients(case: Case, tracked: set[int]) -> dict[int, np.ndarray]:
    leaves = [tg.tensor(array, requires_grad=k in tracked) for k, array in enumerate(case.arrays)]
    results = [result for result in as_tuple(case.call(*leaves)) if result.requires_grad]
    if not results:  # no derivative with respect to these operands
        return {k: np.zeros(case.arrays[k].shape) for k in tracked}
    total = sum((result * result).sum() for result in results)
    found = tg.autograd.grad(total, [leaves[k] for k in sorted(tracked)], allow_unused=True, materialize_grads=True)
    return {k: gradient.numpy() for k, gradient in zip(sorted(tracked), found, strict=True)}


@each("case", SEVERAL, ids=str)
def test_an_operand_tracked_alone_has_the_gradient_that_it_has_beside_others(case: Case) -> None:
    floating = {k for k, array in enumerate(case.arrays) if array.dtype.kind == "f"}
    together = gradients(case, floating)
    for k in floating:
        np.testing.assert_allclose(gradients(case, {k})[k], together[k], rtol=1e-12, atol=1e-12)
