"""What is a view of what: a write into a result, or into what it was made of, is seen where PyTorch sees it."""

from __future__ import annotations

from typing import Any

import pytest
from many_cases import each

import tapegrad as tg

torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed; make oracle installs it")

pytestmark = pytest.mark.oracle

# What is made of a matrix x by the functions of T.
TEXTS = """
x[0] | x[0, 0] | x[...] | x[None] | x[::2] | x[:, 0] | x[[0]] | x[x > -99] | x[T.tensor([0])] | x[True] | x[..., None] | x.t() | x.T | x.mT | x.H
x.ravel() | x.t().ravel() | x[::2].ravel() | x[:, 0].ravel() | x[:, 0].flatten() | x[:, 0].reshape(-1) | x[:, 0].contiguous() | x.flatten()
x.t().flatten() | x.reshape(-1) | x.t().reshape(-1) | x.view(-1) | x.view_as(x) | x.reshape_as(x) | x.squeeze() | x.unsqueeze(0) | x.expand(2, 2, 2)
x.expand_as(x) | x.broadcast_to((2, 2)) | x.permute(1, 0) | x.transpose(0, 1) | x.swapaxes(0, 1) | x.movedim(0, 1) | x.narrow(0, 0, 1) | x.select(0, 0)
x.split(1)[0] | x.chunk(2)[0] | x.unbind(0)[0] | x.tensor_split(2)[0] | x.hsplit(2)[0] | x.vsplit(2)[0] | x.diagonal() | x.diag() | x.unfold(0, 1, 1)
x.as_strided((2,), (1,)) | x.contiguous() | x.t().contiguous() | x.clone() | x.detach() | x.data | x.to(T.float64) | x.double() | x.float().double()
T.positive(x) | +x | T.atleast_1d(x) | T.atleast_3d(x) | T.broadcast_tensors(x, x)[0] | T.meshgrid(x[0], x[1], indexing="ij")[0] | x.unflatten(0, (1, -1))
x.tril() | x.flip(0) | x.rot90() | x.roll(0) | x.repeat(1, 1) | x.tile(1) | x.repeat_interleave(1) | x.take(T.tensor([0])) | T.cat([x]) | T.hstack([x])
x.sum(()) | x[:1].sum(0) | x.clamp(-9, 9) | T.nn.functional.dropout(x, 0.0) | T.nn.functional.dropout(x, 0.5, False) | T.nn.functional.pad(x, (0, 0))
T.nn.functional.pad(x, (0, -1)) | T.einsum("ij->ji", x) | T.einsum("ii->i", x) | T.einsum("ij->i", x) | T.nn.Identity()(x) | T.nn.Flatten(0)(x)
T.nan_to_num(x) | x * 1 | T.where(T.tensor(True), x, x) | x.movedim(0, 0) | T.swapdims(x, 0, 1) | x.adjoint() | T.column_stack([x]) | T.diff(x, n=0)
T.select_scatter(x, x[0], 0, 0) | T.masked_fill(x, x > 99, 0.0) | x[:1].squeeze(0) | x.reshape(4, 1)[:, 0] | x.contiguous().view(-1) | x.fill_diagonal_(1.0)
"""  # noqa: E501
CASES = [text.strip() for text in TEXTS.strip().replace("\n", " | ").split(" | ")]


def seen(of: Any, text: str, into_the_result: bool, tracked: bool) -> Any:
    """Sums after a write, and the gradient; what refuses is an error's class."""
    leaf = of.tensor([[1.5, -2.0], [0.5, 3.0]], dtype=of.float64)
    leaf.requires_grad_(tracked)
    x = leaf * 2.0
    try:
        made = eval(text, {"x": x, "T": of})
        (made if into_the_result else x).mul_(3.0)
        found = [float(x.detach().sum()), float(made.detach().sum())]
        if tracked:
            (x.pow(2).sum() + 10.0 * made.pow(2).sum()).backward()
            found += leaf.grad.reshape(-1).tolist()
    except RuntimeError:
        return RuntimeError
    return found


@each("text", CASES)
@each("tracked", [False, True])
@each("into_the_result", [False, True])
def test_a_write_is_seen_where_pytorch_sees_it(into_the_result: bool, tracked: bool, text: str) -> None:
    expected = seen(torch, text, into_the_result, tracked)
    found = seen(tg, text, into_the_result, tracked)
    if expected is not RuntimeError:  # else what PyTorch saved was written, of which less is saved here
        assert found == pytest.approx(expected)
