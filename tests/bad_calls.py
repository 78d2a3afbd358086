"""Calls that must be refused: what is called, the exception class, and PyTorch's key words as a pattern."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from engine_fixtures import leaf

import tapegrad as tg


class Operands(NamedTuple):
    """What a bad call may use: tracked leaves and a tracked result."""

    x: tg.Tensor  # shape (3,)
    m: tg.Tensor  # shape (2, 3)
    s: tg.Tensor  # a scalar
    y: tg.Tensor  # a result of shape (3,)
    freed: tg.Tensor  # a scalar whose graph was released
    others: list[tg.Tensor]  # results of the other leaves, so that every leaf stands on the tape already


def operands() -> Operands:
    x, m, s = leaf([1.0, 2.0, 3.0]), leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), leaf(2.0)
    freed = (x * x).sum()
    freed.backward()
    x.grad = None
    return Operands(x, m, s, x * 2.0, freed, [m * 2.0, s * 2.0])


def assign(target: Any, key: Any, value: Any) -> None:
    target[key] = value


Bad = tuple[Callable[[Operands], Any], type[Exception] | tuple[type[Exception], ...], str]
SHAPES: dict[str, Bad] = {
    "sum of unequal sizes": (
        lambda o: o.x + tg.ones(2),
        RuntimeError,
        r"size of tensor a \(3\) must match the size of tensor b \(2\) at non-singleton dimension 0",
    ),
    "product of unequal sizes": (
        lambda o: o.m * tg.ones(2),
        RuntimeError,
        r"size of tensor a \(3\) must match the size of tensor b \(2\) at non-singleton dimension 1",
    ),
    "function of unequal sizes": (
        lambda o: tg.atan2(o.x, tg.ones(2)),
        RuntimeError,
        r"size of tensor a \(3\) must match the size of tensor b \(2\)",
    ),
    "where of unequal sizes": (
        lambda o: tg.where(tg.tensor([True, False]), o.x, o.x),
        RuntimeError,
        "size of tensor a .* must match the size of tensor b",
    ),
    "in place with unequal sizes": (
        lambda o: o.y.add_(tg.ones(2)),
        RuntimeError,
        r"size of tensor a \(3\) must match the size of tensor b \(2\)",
    ),
    "in place with a larger operand": (
        lambda o: o.y.add_(tg.ones(2, 3)),
        RuntimeError,
        "output with shape .*3.* doesn't match the broadcast shape .*2, 3",
    ),
    "copy of another size": (lambda o: o.y.copy_(tg.ones(2)), RuntimeError, "must match"),
    "matrix product": (
        lambda o: o.m @ o.m,
        RuntimeError,
        r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)",
    ),
    "mm of a vector": (lambda o: o.m.mm(o.x), RuntimeError, "must be a matrix|expected a matrix|2D tensors expected"),
    "matrix times vector": (lambda o: o.m @ tg.ones(2), RuntimeError, "size mismatch"),
    "dot of unequal sizes": (lambda o: o.x.dot(tg.ones(2)), RuntimeError, "inconsistent tensor size"),
    "dot of matrices": (lambda o: o.m.dot(o.m), RuntimeError, "1D tensors expected"),
    "bmm of matrices": (lambda o: tg.bmm(o.m, o.m), RuntimeError, "must be a 3D tensor"),
    "matrix product with a scalar": (
        lambda o: o.m @ o.s,
        RuntimeError,
        "both arguments to (linalg_)?matmul need to be at least 1D",
    ),
    "reshape": (lambda o: o.m.reshape(4), RuntimeError, r"shape '\[4\]' is invalid for input of size 6"),
    "view": (lambda o: o.m.view(4), RuntimeError, r"shape '\[4\]' is invalid for input of size 6"),
    "view with two free sizes": (lambda o: o.m.view(-1, -1), RuntimeError, "only one dimension can be inferred"),
    "view of strided memory": (
        lambda o: o.m.t().view(6),
        RuntimeError,
        r"view size is not compatible with input tensor's size and stride.*reshape",
    ),
    "cat": (
        lambda o: tg.cat([o.m, tg.ones(2, 2)]),
        RuntimeError,
        "sizes of tensors must match except in dimension 0",
    ),
    "cat of different ranks": (
        lambda o: tg.cat([o.m, o.x]),
        RuntimeError,
        "tensors must have same number of dimensions",
    ),
    "cat of scalars": (lambda o: tg.cat([o.s, o.s]), RuntimeError, "zero-dimensional tensor.*cannot be concatenated"),
    "stack": (lambda o: tg.stack([o.x, tg.ones(2)]), RuntimeError, "stack expects each tensor to be equal size"),
    "expand": (
        lambda o: o.x.expand(4),
        RuntimeError,
        r"the expanded size of the tensor \(4\) must match the existing size \(3\)",
    ),
    "linear layer": (
        lambda o: tg.nn.Linear(2, 3)(o.m),
        RuntimeError,
        r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)",
    ),
    "ragged list": (lambda o: tg.tensor([[1.0], [1.0, 2.0]]), ValueError, "expected sequence of length 1"),
    "negative size": (lambda o: tg.zeros(-1), (RuntimeError, ValueError), "negative"),
    "split into wrong sizes": (
        lambda o: o.x.split([1, 1]),
        RuntimeError,
        "split_with_sizes expects split_sizes to sum exactly to 3",
    ),
    "chunk into none": (lambda o: o.x.chunk(0), RuntimeError, "chunk expects `?chunks`? to be greater than 0, got: 0"),
    "maximum of nothing": (lambda o: tg.zeros(0).max(), RuntimeError, r"numel\(\) == 0"),
}
AXES: dict[str, Bad] = {
    f"{name} over a missing axis": (
        function,
        IndexError,
        r"dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)",
    )
    for name, function in {
        "sum": lambda o: o.m.sum(2),
        "mean": lambda o: o.m.mean(2),
        "prod": lambda o: o.m.prod(2),
        "max": lambda o: o.m.max(2),
        "amax": lambda o: o.m.amax(2),
        "var": lambda o: o.m.var(2),
        "softmax": lambda o: o.m.softmax(2),
        "log_softmax": lambda o: o.m.log_softmax(2),
        "logsumexp": lambda o: o.m.logsumexp(2),
        "cumsum": lambda o: o.m.cumsum(2),
        "cumprod": lambda o: o.m.cumprod(2),
        "transpose": lambda o: o.m.transpose(0, 2),
        "permute": lambda o: o.m.permute(0, 2),
        "squeeze": lambda o: o.m.squeeze(2),
        "cat": lambda o: tg.cat([o.m, o.m], 2),
        "split": lambda o: o.m.split(1, 2),
        "unbind": lambda o: o.m.unbind(2),
        "flatten": lambda o: o.m.flatten(0, 2),
    }.items()
}
AXES |= {
    "unsqueeze at a missing axis": (
        lambda o: o.m.unsqueeze(3),
        IndexError,
        r"dimension out of range \(expected to be in range of \[-3, 2\], but got 3\)",
    ),
    "stack at a missing axis": (
        lambda o: tg.stack([o.x, o.x], 2),
        IndexError,
        r"dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)",
    ),
    "axis given twice": (lambda o: o.m.sum((0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    "permutation of the wrong length": (lambda o: o.m.permute(0), RuntimeError, "number of dimensions"),
    "permutation with a repeated axis": (lambda o: o.m.permute(0, 0), RuntimeError, "(duplicate|repeated) dim"),
    "axis that is a string": (lambda o: o.m.sum("rows"), (TypeError, RuntimeError), "."),
}
INDICES: dict[str, Bad] = {
    "too large": (lambda o: o.x[5], IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    "too small": (lambda o: o.x[-4], IndexError, "index -4 is out of bounds for dimension 0 with size 3"),
    "too large in the second axis": (
        lambda o: o.m[0, 3],
        IndexError,
        "index 3 is out of bounds for dimension 1 with size 3",
    ),
    "too many": (lambda o: o.x[0, 0], IndexError, "too many indices for tensor of dimension 1"),
    "of a scalar": (lambda o: o.s[0], IndexError, "0-dim tensor"),
    "in an array, too large": (
        lambda o: o.x[tg.tensor([0, 7])],
        IndexError,
        "index 7 is out of bounds for dimension 0 with size 3",
    ),
    "mask of another shape": (
        lambda o: o.x[tg.tensor([True, False])],
        IndexError,
        r"the shape of the mask \[2\] at index 0 does not match",
    ),
    "array of floats": (
        lambda o: o.x[tg.tensor([0.0])],
        IndexError,
        "tensors used as indices must be long, int, byte or bool tensors",
    ),
    "arrays that do not broadcast": (
        lambda o: o.m[tg.tensor([0, 1]), tg.tensor([0, 1, 2])],
        IndexError,
        "shape mismatch: indexing tensors could not be broadcast",
    ),
    "negative step": (lambda o: o.x[::-1], ValueError, "step must be greater than zero"),
    "string": (lambda o: o.x["a"], (IndexError, TypeError), "."),
    "float": (lambda o: o.x[1.0], (IndexError, TypeError), "."),
    "assignment too large": (
        lambda o: assign(o.y, 5, 1.0),
        IndexError,
        "index 5 is out of bounds for dimension 0 with size 3",
    ),
    "assignment of another size": (lambda o: assign(o.y, slice(0, 2), tg.ones(3)), RuntimeError, "match|shape"),
    "assignment of a string": (lambda o: assign(o.y, 0, "a"), TypeError, "."),
}
TYPES: dict[str, Bad] = {
    "x + string": (lambda o: o.x + "a", TypeError, "str"),
    "string - x": (lambda o: "a" - o.x, TypeError, "str"),
    "x * list": (lambda o: o.x * [1.0, 2.0, 3.0], TypeError, "list"),
    "x / None": (lambda o: o.x / None, TypeError, "NoneType"),
    "x ** dict": (lambda o: o.x ** {}, TypeError, "dict"),
    "x @ number": (lambda o: o.m @ 2.0, TypeError, "float"),
    "s + string": (lambda o: o.s + "a", TypeError, "str"),
    "s * list": (lambda o: o.s * [1.0], TypeError, "list"),
    "x += string": (lambda o: operator.iadd(o.y, "a"), TypeError, "str"),
    "function of a string": (lambda o: tg.exp("a"), TypeError, "str"),
    "function of a list": (lambda o: tg.exp([1.0]), TypeError, "list"),
    "function without operand": (lambda o: tg.exp(), TypeError, "."),
    "function with one operand too many": (lambda o: tg.exp(o.x, o.x, o.x), TypeError, "."),
    "cat of nothing": (lambda o: tg.cat([]), ValueError, "expected a non-empty list of Tensors"),
    "stack of nothing": (lambda o: tg.stack([]), (ValueError, RuntimeError), "non-empty"),
    "cat of numbers": (lambda o: tg.cat([1.0, 2.0]), TypeError, "float"),
    "tensor of a string": (lambda o: tg.tensor("abc"), TypeError, "str"),
    "tensor of a list with a string": (lambda o: tg.tensor([1.0, "a"]), (TypeError, ValueError), "str"),
    "tensor of None": (lambda o: tg.tensor(None), (TypeError, RuntimeError), "NoneType"),
    "tensor of a complex number": (lambda o: tg.tensor(1j, dtype=tg.float64), (TypeError, RuntimeError), "complex"),
    "array of a list": (lambda o: tg.from_numpy([1.0]), TypeError, r"expected np.ndarray \(got list\)"),
    "array of objects": (lambda o: tg.from_numpy(np.array([None])), TypeError, "object"),
    "array of strings": (lambda o: tg.from_numpy(np.array(["a"])), TypeError, "str|U1"),
    "array of foreign byte order": (
        lambda o: tg.from_numpy(np.ones(2, np.dtype(np.float64).newbyteorder())),
        ValueError,
        "byte order",
    ),
    "tracked integers": (
        lambda o: tg.ones(2, dtype=tg.int64, requires_grad=True),
        RuntimeError,
        "floating point.* can require gradients",
    ),
    "matrix product of unequal dtypes": (
        lambda o: o.m @ tg.ones(3, 2, dtype=tg.float32),
        RuntimeError,
        "expected m1 and m2 to have the same dtype",
    ),
    "mean of integers": (lambda o: tg.tensor([1, 2]).mean(), RuntimeError, "could not infer output dtype"),
    "integers in place plus a fraction": (
        lambda o: tg.tensor([1, 2]).add_(0.5),
        RuntimeError,
        "result type .* can't be cast to the desired output type",
    ),
    "clamp without bounds": (lambda o: o.x.clamp(), (RuntimeError, ValueError), "at least one of '?min'? or '?max'?"),
    "default dtype that is no float": (lambda o: tg.set_default_dtype(tg.int64), TypeError, "floating.point"),
    "range against its step": (
        lambda o: tg.arange(3, 0),
        (RuntimeError, ValueError),
        "upper bound and (lower|larger) bound inconsistent with step sign",
    ),
    "range without step": (lambda o: tg.arange(0, 3, 0), (RuntimeError, ValueError), "step must be nonzero"),
    "linspace with a negative number of steps": (
        lambda o: tg.linspace(0, 1, -1),
        (RuntimeError, ValueError),
        "number of steps must be",
    ),
    "unknown keyword": (lambda o: o.x.sum(axis_name=0), TypeError, "."),
}
SEEDS: dict[str, Bad] = {
    "none for several elements": (
        lambda o: o.y.backward(),
        RuntimeError,
        "grad can be implicitly created only for scalar outputs",
    ),
    "of another shape": (
        lambda o: o.y.backward(tg.ones(2)),
        RuntimeError,
        r"mismatch in shape: grad_output\[0\] has a shape of .*2.* and output\[0\] has a shape of .*3",
    ),
    "that is a number": (
        lambda o: tg.autograd.backward([o.y], [1.0]),
        TypeError,
        "gradients can be either Tensors or None, but got.*float",
    ),
    "that is a string": (
        lambda o: tg.autograd.backward([o.y], ["a"]),
        TypeError,
        "gradients can be either Tensors or None, but got.*str",
    ),
    "fewer than roots": (
        lambda o: tg.autograd.backward([o.y, o.y], [tg.ones(3)]),
        RuntimeError,
        "got 2 tensors and 1 gradients",
    ),
    "for an untracked root": (
        lambda o: tg.ones(3).backward(tg.ones(3)),
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    "for a freed graph": (
        lambda o: o.freed.backward(),
        RuntimeError,
        r"trying to backward through the graph a second time.*retain_graph=True",
    ),
    "with no inputs": (lambda o: o.s.backward(inputs=[]), RuntimeError, "cannot be empty"),
    "with an unused input": (
        lambda o: tg.autograd.grad(o.y.sum(), [o.s]),
        RuntimeError,
        "differentiated Tensor at index 0 appears to not have been used in the graph.*allow_unused=True",
    ),
    "with an untracked input": (
        lambda o: tg.autograd.grad(o.y.sum(), tg.ones(3)),
        RuntimeError,
        "one of the differentiated Tensors does not require grad",
    ),
    "with an input that is no tensor": (
        lambda o: tg.autograd.grad(o.y.sum(), ["x"]),
        (RuntimeError, TypeError),
        "all inputs have to be Tensors or GradientEdges, but got.*str",
    ),
}
FLAGS: dict[str, Bad] = {
    "leaf written in place": (
        lambda o: o.x.add_(1.0),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation",
    ),
    "view of a leaf written in place": (
        lambda o: assign(o.x, 0, 1.0),
        RuntimeError,
        "a view of a leaf Variable that requires grad is being used in an in-place operation",
    ),
    "result switched off": (
        lambda o: setattr(o.y, "requires_grad", False),
        RuntimeError,
        "you can only change requires_grad flags of leaf variables",
    ),
    "numpy of a tracked tensor": (
        lambda o: o.y.numpy(),
        RuntimeError,
        r"can't call numpy\(\) on Tensor that requires grad",
    ),
    "gradient of another shape": (
        lambda o: setattr(o.x, "grad", tg.ones(2)),
        RuntimeError,
        "attempting to assign a gradient of size",
    ),
    "several elements as a number": (
        lambda o: o.x.item(),
        RuntimeError,
        "a Tensor with 3 elements cannot be converted to Scalar",
    ),
    "several elements as a condition": (
        lambda o: bool(o.x > 0.0),
        RuntimeError,
        "boolean value of Tensor with more than one value is ambiguous",
    ),
}
BAD: dict[str, Bad] = {
    f"{title}: {name}": case
    for title, table in {
        "shape": SHAPES,
        "axis": AXES,
        "index": INDICES,
        "type": TYPES,
        "seed": SEEDS,
        "flag": FLAGS,
    }.items()
    for name, case in table.items()
}
