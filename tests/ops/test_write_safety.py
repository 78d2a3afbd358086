"""For every structural operation: an operand or result written afterwards makes backward raise or does no harm."""

from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import leaf, numbers
from many_cases import each

import tapegrad as tg

Pair = Callable[[tg.Tensor, tg.Tensor], tg.Tensor]
OPERATIONS: dict[str, Pair] = {
    "matmul": lambda a, b: a @ b,
    "mm": lambda a, b: a.mm(b),
    "mv": lambda a, b: a.mv(b[0]),
    "dot": lambda a, b: a[0].dot(b[1]),
    "outer": lambda a, b: tg.outer(a[0], b[0]),
    "bmm": lambda a, b: tg.bmm(a[None], b[None]),
    "batched matmul": lambda a, b: tg.stack([a, b]) @ b,
    "sum": lambda a, b: (a + b).sum(),
    "sum over an axis": lambda a, b: a.sum(0) + b.sum(1),
    "mean": lambda a, b: a.mean() + b.mean(1),
    "prod": lambda a, b: a.prod() * b.prod(1),
    "max": lambda a, b: a.max() + b.max(1)[0],
    "min": lambda a, b: a.min() + b.min(1)[0],
    "amax": lambda a, b: a.amax(1) + b.amin(0),
    "var": lambda a, b: a.var() + b.var(1),
    "std": lambda a, b: a.std() + b.std(1),
    "norm": lambda a, b: a.norm() + b.norm(dim=1),
    "logsumexp": lambda a, b: a.logsumexp(1) + b.logsumexp(0),
    "softmax": lambda a, b: a.softmax(1) + b.softmax(0),
    "log_softmax": lambda a, b: a.log_softmax(1) + b.log_softmax(0),
    "cumsum": lambda a, b: a.cumsum(1) + b.cumsum(0),
    "cumprod": lambda a, b: a.cumprod(1) + b.cumprod(0),
    "cat": lambda a, b: tg.cat([a, b, a]),
    "stack": lambda a, b: tg.stack([a, b], 1),
    "where": lambda a, b: tg.where(a > b, a, b),
    "reshaped copy": lambda a, b: a.t().reshape(4) + b.reshape(4),
    "expand": lambda a, b: a[None].expand(3, 2, 2) + b,
    "clone": lambda a, b: a.clone() + b,
    "integer index": lambda a, b: a[tg.tensor([1, 1, 0])] + b[tg.tensor([0, 1, 1])],
    "mask": lambda a, b: a[tg.tensor([[True, False], [True, True]])],
    "contiguous": lambda a, b: a.t().contiguous() + b,
    "float32": lambda a, b: a.float() * b.float(),
    "clamp": lambda a, b: a.clamp(0.6, 1.6) + b.clamp(min=tg.ones(2)),
    "lerp": lambda a, b: tg.lerp(a, b, 0.3),
    "squares of a view": lambda a, b: a.t()[0] ** 2 * b[1],
    "sum of products": lambda a, b: (a * b).sum(0) * (a / b).mean(),
}
VICTIMS = {"first operand": 0, "second operand": 1, "result": 2}


def without_recording(t: tg.Tensor) -> None:
    with tg.no_grad():
        t.zero_()


WRITES: dict[str, Callable[[tg.Tensor], object]] = {
    "whole": lambda t: t.mul_(1.5),
    "element": lambda t: t.view(-1)[0].fill_(7.0),
    "detached": lambda t: t.detach().add_(1.0),
    "without recording": without_recording,
}


@pytest.mark.point(44)
@each("write", WRITES)
@each("victim", VICTIMS)
@each("name", OPERATIONS)
def test_write_raises_at_backward_or_does_no_harm(name: str, victim: str, write: str) -> None:
    leaves = [leaf([[0.5, 1.25], [2.0, 0.75]]), leaf([[1.5, 0.25], [1.0, 3.0]])]
    inner = [x * 1.0 for x in leaves]
    y = OPERATIONS[name](*inner)
    total = y.sum()
    arguments = {"allow_unused": True, "materialize_grads": True}
    expected = [numbers(g) for g in tg.autograd.grad(total, leaves, retain_graph=True, **arguments)]
    target = [*inner, y][VICTIMS[victim]]
    WRITES[write](target if target.is_contiguous() else target.t())
    refused = False
    try:
        got = [numbers(g) for g in tg.autograd.grad(total, leaves, **arguments)]
    except RuntimeError as error:
        refused = "modified by an inplace operation" in str(error)
        got = []
    assert refused or all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True))
