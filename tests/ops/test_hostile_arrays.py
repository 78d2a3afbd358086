"""Arrays that come in from outside, of every layout and subclass: what a plain copy of them gives, or a clear refusal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf, numbers
from many_cases import each

import tapegrad as tg

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")


class Jealous(np.ndarray):
    """A subclass that leaves operations with others to them, and whose own must never run in ours."""

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError


def clean(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    values = np.random.default_rng(0).uniform(0.5, 2.0, shape).astype(dtype)
    values.flat[0] = -0.0
    return values


def stepped(a: np.ndarray) -> np.ndarray:
    room = np.zeros([2 * n + 1 for n in a.shape], a.dtype)
    room[tuple(slice(1, None, 2) for _ in a.shape)] = a
    return room[tuple(slice(1, None, 2) for _ in a.shape)]


def misaligned(a: np.ndarray) -> np.ndarray:
    memory = np.zeros(a.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(a.tobytes(), np.uint8)
    return memory.view(a.dtype).reshape(a.shape)


def field(a: np.ndarray) -> np.ndarray:
    records = np.zeros(a.shape, [("tag", "i1"), ("value", a.dtype)])
    records["value"] = a
    return records["value"]


def read_only(a: np.ndarray) -> np.ndarray:
    copied = a.copy()
    copied.flags.writeable = False
    return copied


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fortran": np.asfortranarray,
    "negative strides": lambda a: np.flip(np.flip(a).copy()),
    "steps": stepped,
    "misaligned": misaligned,
    "field of a structured array": field,
    "field of a recarray": lambda a: field(a).view(np.recarray),
    "read-only": read_only,
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "dtype with metadata": lambda a: a.view(np.dtype(a.dtype, metadata={"unit": "m"})),
    "own subclass": lambda a: a.copy().view(Jealous),
    "masked array without a mask": lambda a: np.ma.masked_array(a.copy()),
    "matrix": lambda a: np.matrix(a) if a.ndim == 2 else a,
}
every_layout = each("layout", LAYOUTS)

ROWS: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "elementwise": lambda t: tg.sin(t) * t + 2.0 / (t + 1.0),
    "scalar of an element": lambda t: t[(1,) * t.ndim] ** 3,
    "strided map": lambda t: t[1:].mT * 3.0,
    "step": lambda t: t[::2] * t[::2],
    "reshape": lambda t: t.reshape(-1) ** 2,
    "expand": lambda t: t.expand(2, *t.shape) ** 2,
    "sum": lambda t: (t * t).sum(0),
    "mean": lambda t: t.mean() ** 2,
    "prod": lambda t: (t[:2, :2] + 1.0).prod(),
    "amax": lambda t: t.amax(-1) ** 2,
    "cat": lambda t: tg.cat([t, t * t]),
    "stack": lambda t: tg.stack([t, t * t], -1),
    "matmul": lambda t: t[:2] @ t[:2].mT,
    "softmax": lambda t: t.softmax(0),
    "cumsum": lambda t: t.cumsum(0) ** 2,
    "gather": lambda t: t[[0, 1, 1]] ** 2,
    "mask": lambda t: t[t > 1.0] ** 2,
    "where": lambda t: tg.where(t > 1.0, t * t, t),
    "in place": lambda t: (t * 1.0).mul_(t),
}
ENTRIES = {"tensor": tg.tensor, "as_tensor": tg.as_tensor, "from_numpy": tg.from_numpy}


def value_and_gradients(f: Callable[[tg.Tensor], tg.Tensor], x: tg.Tensor) -> list[np.ndarray]:
    """The value, the gradient by the sweep and by the recorded pass, and the gradient of that one's square."""
    y = f(x.requires_grad_())
    seed = tg.ones_like(y.detach())
    (swept,) = tg.autograd.grad(y, x, seed, retain_graph=True)
    (recorded,) = tg.autograd.grad(y, x, seed, create_graph=True)
    results = [y, swept, recorded]
    if recorded.requires_grad:
        results += tg.autograd.grad((recorded * recorded).sum(), x, materialize_grads=True)
    return [numbers(result) for result in results]


@each("dtype", [np.float64, np.float32])
@each("entry", ENTRIES)
@every_layout
def test_a_leaf_of_any_layout_acts_as_a_plain_copy(layout: str, entry: str, dtype: Any) -> None:
    if (layout, entry) == ("byte-swapped", "from_numpy"):
        with pytest.raises(ValueError, match="byte order"):
            tg.from_numpy(LAYOUTS[layout](clean((2, 3), dtype)))
        return
    plain = clean((4, 3), dtype)
    for name, f in ROWS.items():
        got = value_and_gradients(f, ENTRIES[entry](LAYOUTS[layout](plain)))
        expected = value_and_gradients(f, tg.tensor(plain.copy()))
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13 if dtype is np.float64 else 1e-6, err_msg=name)
            assert one.dtype == other.dtype


@every_layout
def test_a_large_leaf_of_any_layout_has_the_gradient_of_its_closed_form(layout: str) -> None:
    plain = clean((60, 50), np.float64)
    x = tg.as_tensor(LAYOUTS[layout](plain)).requires_grad_()
    (x.mT * x.mT * x.mT).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3.0 * plain * plain, rtol=1e-13)


OPERATIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[..., np.ndarray]]] = {
    "x * a": (lambda x, a: x * a, lambda a, x: a),
    "a * x": (lambda x, a: a * x, lambda a, x: a),
    "a - x": (lambda x, a: a - x, lambda a, x: -np.ones_like(a)),
    "a / x": (lambda x, a: a / x, lambda a, x: -a / x**2),
    "atan2(a, x)": (lambda x, a: tg.atan2(a, x), lambda a, x: -a / (a * a + x * x)),
    "where(m, x, a)": (lambda x, a: tg.where(x > 1.0, x, a), lambda a, x: (x > 1.0).astype(float)),
    "x.mul_(a)": (lambda x, a: (x * 1.0).mul_(a), lambda a, x: a),
    "x @ a.T": (lambda x, a: x @ a.T, lambda a, x: np.ones((len(a), len(a))) @ a),
}


@each("operation", OPERATIONS)
@every_layout
def test_an_operand_of_any_layout_acts_as_a_plain_copy(layout: str, operation: str) -> None:
    plain, point = clean((2, 3), np.float64), np.linspace(0.7, 1.7, 6).reshape(2, 3)
    f, gradient = OPERATIONS[operation]
    x = leaf(point)
    f(x, LAYOUTS[layout](plain)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), gradient(plain, point), rtol=1e-13)


@each("operation", ["x * a", "a / x", "atan2(a, x)", "where(m, x, a)", "x.mul_(a)", "x @ a.T"])
def test_writing_into_an_array_operand_afterwards_leaves_the_gradient_alone(operation: str) -> None:
    plain, point = clean((2, 3), np.float64), np.linspace(0.7, 1.7, 6).reshape(2, 3)
    f, gradient = OPERATIONS[operation]
    x, a = leaf(point), plain.copy()
    y = f(x, a).sum()
    a[:] = np.nan
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), gradient(plain, point), rtol=1e-13)


def test_writing_into_a_condition_afterwards_leaves_the_gradient_alone() -> None:
    x, condition = leaf([1.0, 2.0]), np.array([True, False])
    y = tg.where(condition, x, 0.0).sum()
    condition[:] = False
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 0.0])


KEYS = {"index": np.array([[2, 0], [1, 2]]), "mask": np.array([[True, False], [False, True], [True, True]])}


@each("name", KEYS)
@every_layout
def test_a_key_of_any_layout_acts_as_a_plain_copy(layout: str, name: str) -> None:
    key = KEYS[name]
    point = np.arange(6.0).reshape(3, 2)
    x = leaf(point)
    y = x[LAYOUTS[layout](key)]
    y.sum().backward()
    np.testing.assert_array_equal(numbers(y), point[key])
    counts = np.zeros((3, 2))
    np.add.at(counts, key, 1.0)
    np.testing.assert_array_equal(x.grad.numpy(), counts)


WRITES: dict[str, tuple[Callable[[tg.Tensor, Any], Any], Any]] = {
    "copy_": (lambda t, a: t.copy_(a), slice(None)),
    "slice": (lambda t, a: t.__setitem__(slice(None), a), slice(None)),
    "index array": (lambda t, a: t.__setitem__([1, 0], a), [1, 0]),
    "mask": (lambda t, a: t.__setitem__(tg.tensor([True, True]), a), slice(None)),
}


@each("name", WRITES)
@every_layout
def test_assigning_an_array_of_any_layout_acts_as_a_plain_copy(layout: str, name: str) -> None:
    write, places = WRITES[name]
    plain = clean((2, 2), np.float64)
    x = leaf(np.ones((2, 2)))
    y = x * 1.0
    write(y, LAYOUTS[layout](plain))
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros((2, 2)))
    np.testing.assert_array_equal(numbers(y)[places], plain)


@every_layout
def test_seeds_gradients_data_and_parameters_of_any_layout(layout: str) -> None:
    plain = clean((2, 3), np.float64)
    given = tg.as_tensor(LAYOUTS[layout](plain))
    x = leaf(np.full((2, 3), 2.0))
    (x * x).backward(given)
    np.testing.assert_array_equal(x.grad.numpy(), 4.0 * plain)
    x = leaf(np.full((2, 3), 2.0))
    x.grad = tg.tensor(LAYOUTS[layout](plain))
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), plain + 4.0)
    x = leaf(np.ones((2, 3)))
    x.data = given
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2.0 * plain)
    parameter = tg.nn.Parameter(given)
    (parameter * parameter).sum().backward()
    np.testing.assert_array_equal(parameter.grad.numpy(), 2.0 * plain)


@each(
    ("memory", "words"),
    [
        (read_only(np.ones((3, 2))), "read-only"),
        (np.lib.stride_tricks.sliding_window_view(np.ones(4), 2, writeable=True), "more than one element"),
    ],
    ids=["read-only", "overlapping"],
)
def test_a_gradient_in_memory_that_cannot_be_added_to_is_refused(memory: np.ndarray, words: str) -> None:
    x = leaf(np.ones((3, 2)))
    x.grad = tg.as_tensor(memory)
    with pytest.raises(RuntimeError, match=words):
        (x * x).sum().backward()
    np.testing.assert_array_equal(memory, np.ones((3, 2)))


def test_a_memmap_is_read_and_written(tmp_path: Path) -> None:
    array = np.memmap(tmp_path / "numbers", np.float64, "w+", shape=(3,))
    array[:] = [1.0, 2.0, 3.0]
    t = tg.from_numpy(array)
    x = t.clone().requires_grad_()
    (x * t).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 2.0, 3.0])
    t.add_(1.0)
    np.testing.assert_array_equal(np.asarray(array), [2.0, 3.0, 4.0])


@each(
    "write",
    [
        lambda t: t.add_(2.0),
        lambda t: t.mul_(t),
        lambda t: t.copy_(np.zeros(2)),
        lambda t: t.zero_(),
        lambda t: t.fill_(2.0),
        lambda t: t.__setitem__(0, 2.0),
        lambda t: t.__setitem__([0], 2.0),
    ],
)
def test_writing_into_read_only_memory_is_refused(write: Callable[[tg.Tensor], Any]) -> None:
    array = read_only(np.ones(2))
    with pytest.raises(RuntimeError, match="read-only"):
        write(tg.as_tensor(array))
    np.testing.assert_array_equal(array, [1.0, 1.0])


MASKED = np.ma.masked_array([1.0, 2.0], [False, True])


@each(
    "use",
    [
        tg.tensor,
        tg.as_tensor,
        tg.from_numpy,
        tg.sin,
        lambda a: tg.tensor([a[1]]),
        lambda a: leaf([1.0, 2.0]) * a,
        lambda a: a * leaf([1.0, 2.0]),
        lambda a: tg.where(leaf([1.0, 2.0]) > 1.0, a, 0.0),
        lambda a: tg.zeros(2).copy_(a),
    ],
)
def test_what_lies_under_a_mask_is_no_value(use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="masked array with 1 masked element"):
        use(MASKED)


def test_what_lies_under_a_mask_is_no_index() -> None:
    with pytest.raises(IndexError, match="masked"):
        leaf([1.0, 2.0])[np.ma.masked_array([0, 1], [False, True])]


EMPTY: dict[str, tuple[Callable[[tg.Tensor], tg.Tensor], Any]] = {
    "sum": (lambda t: t.sum(), 0.0),
    "sum over the empty dimension": (lambda t: t.sum(0), np.zeros(3)),
    "sum over the other": (lambda t: t.sum(1), np.zeros(0)),
    "prod": (lambda t: t.prod(), 1.0),
    "mean": (lambda t: t.mean(), np.nan),
    "elementwise": (lambda t: tg.sin(t) * t, np.zeros((0, 3))),
    "matmul": (lambda t: t.mT @ t, np.zeros((3, 3))),
    "cat": (lambda t: tg.cat([t, t]), np.zeros((0, 3))),
    "stack": (lambda t: tg.stack([t, t]), np.zeros((2, 0, 3))),
    "softmax": (lambda t: t.softmax(0), np.zeros((0, 3))),
    "cumsum": (lambda t: t.cumsum(0), np.zeros((0, 3))),
    "cumprod": (lambda t: t.cumprod(1), np.zeros((0, 3))),
    "gather": (lambda t: t[[]], np.zeros((0, 3))),
    "mask": (lambda t: t[t > 0], np.zeros(0)),
    "expand": (lambda t: t.expand(2, 0, 3), np.zeros((2, 0, 3))),
    "reshape": (lambda t: t.reshape(3, 0, 5), np.zeros((3, 0, 5))),
    "norm": (lambda t: t.norm(), 0.0),
}


@each("create_graph", [False, True])
@each("name", EMPTY)
def test_an_empty_array_has_values_and_an_empty_gradient(name: str, create_graph: bool) -> None:
    f, expected = EMPTY[name]
    x = leaf(np.zeros((0, 3)))
    y = f(x)
    np.testing.assert_array_equal(numbers(y), expected)
    (g,) = tg.autograd.grad(y, x, tg.ones_like(y.detach()), create_graph=create_graph)
    assert g.shape == (0, 3) and g.dtype == tg.float64
