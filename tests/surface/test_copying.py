"""Copies and pickles of tensors, parameters and modules."""

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, numbers

import tapegrad as tg
from tapegrad import nn
from tapegrad.surface import copying

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


class Named(tg.Tensor):
    """A tensor with attributes of its own."""

    def __init__(self, values: Any) -> None:
        super().__init__(values)
        self.about = ["first"]


class Slotted(tg.Tensor):
    __slots__ = ("about",)

    def __init__(self, values: Any) -> None:
        super().__init__(values)
        self.about = ["first"]


def pickled(value: Any, protocol: int = pickle.DEFAULT_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


def with_gradient(t: tg.Tensor) -> tg.Tensor:
    (t * t).sum().backward()
    return t


SAMPLES = {
    "float64": lambda: leaf([1.0, -0.0, float("nan")]),
    "float32": lambda: leaf([1.5, 2.5], dtype=tg.float32),
    "bool": lambda: tg.tensor([True, False]),
    "integers": lambda: tg.tensor([[2**62, -1]]),
    "scalar": lambda: leaf(2.5),
    "float32 scalar": lambda: tg.tensor(2.5, dtype=tg.float32),
    "empty": lambda: tg.zeros(2, 0),
    "transposed": lambda: tg.arange(6.0).view(2, 3).t(),
    "strided view": lambda: tg.arange(6.0)[::2],
    "expanded": lambda: tg.ones(1).expand(3),
    "read-only": lambda: tg.from_numpy(np.broadcast_to(np.arange(2.0), (2, 2))),
    "parameter": lambda: nn.Parameter(tg.ones(2)),
}
samples = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


def assert_same(got: tg.Tensor, expected: tg.Tensor) -> None:
    assert (type(got), got.dtype, got.requires_grad, got.is_leaf) == (type(expected), expected.dtype, expected.requires_grad, True)
    np.testing.assert_array_equal(numbers(got), numbers(expected))


@samples
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pickle_keeps_values_dtype_flag_and_class(sample, protocol):
    assert_same(pickled(sample(), protocol), sample())


@samples
@pytest.mark.parametrize("copied_by", [copy.copy, copy.deepcopy])
def test_copy_keeps_values_dtype_flag_and_class(sample, copied_by):
    assert_same(copied_by(sample()), sample())


@pytest.mark.parametrize("copied_by", [copy.copy, copy.deepcopy, pickled])
def test_copied_leaf_takes_part_in_graphs_of_its_own(copied_by):
    x = leaf([2.0])
    y = copied_by(x)
    (y * y).backward()
    assert_values(y.grad, [4.0])
    assert x.grad is None


# Pickle


def test_pickled_view_does_not_carry_its_base():
    assert len(pickle.dumps(tg.zeros(100_000)[5:7])) < 1000


def test_pickled_result_is_a_tracked_leaf():
    got = pickled(leaf([1.0]) * 2.0)
    assert (got.tolist(), got.requires_grad, got.is_leaf) == ([2.0], True, True)


def test_pickle_keeps_no_gradient():
    assert pickled(with_gradient(leaf([1.0]))).grad is None


def test_pickled_read_only_memory_can_be_written_when_loaded():
    assert pickled(tg.from_numpy(np.broadcast_to(1.0, (2,)))).add_(1.0).tolist() == [2.0, 2.0]


def test_one_tensor_pickled_twice_is_one_tensor():
    x = leaf([1.0])
    first, second = pickled([x, x])
    assert first is second


def test_parameter_and_its_state_share_memory_when_pickled_together():
    parameter = nn.Parameter(tg.ones(2))
    got, state = pickled((parameter, parameter.detach()))
    state.zero_()
    assert got.tolist() == [0.0, 0.0]


def test_memory_can_travel_out_of_band():
    x = tg.zeros(1000)
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(x, 5, buffer_callback=buffers.append)
    got = pickle.loads(stream, buffers=buffers)
    got[0] = 5.0
    assert (len(stream) < 500, x[0].item()) == (True, 5.0)


def test_out_of_band_memory_may_begin_anywhere():
    memory = bytearray(17)
    np.frombuffer(memory, np.uint8)[1:] = np.arange(2.0).view(np.uint8)
    stream = pickle.dumps(tg.zeros(2), 5, buffer_callback=lambda buffer: None)
    assert (pickle.loads(stream, buffers=[memoryview(memory)[1:]]) * 2.0).tolist() == [0.0, 2.0]


PERMITTED = {
    ("tapegrad.surface.copying", "rebuild"),
    ("tapegrad.tensors.tensor", "Tensor"),
    ("tapegrad.nn.parameter", "Parameter"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.numeric", "_frombuffer"),
}
OF_PROTOCOL_2 = {("_codecs", "encode"), ("__builtin__", "bytes")}  # it has no bytes: Python writes them as text
SETS = {("builtins", "set"), ("__builtin__", "set")}  # modules have one, which protocols 2 and 3 write by name
LAYERS = {("tapegrad.nn.container", "Sequential"), ("tapegrad.nn.linear", "Linear"), ("tapegrad.nn.activation", "Tanh")}


class Restricted(pickle.Unpickler):
    """Imports what is permitted and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in PERMITTED | LAYERS | SETS | OF_PROTOCOL_2:
            raise pickle.UnpicklingError(f"{module}.{name} is not permitted")
        self.imported = getattr(self, "imported", set()) | {(module, name)}
        return super().find_class(module, name)


def restricted(value: Any, protocol: int) -> tuple[Any, set[tuple[str, str]]]:
    unpickler = Restricted(io.BytesIO(pickle.dumps(value, protocol)))
    return unpickler.load(), unpickler.imported


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_unpickling_tensors_imports_only_what_is_permitted(protocol):
    _, imported = restricted([sample() for sample in SAMPLES.values()], protocol)
    assert imported <= (PERMITTED | OF_PROTOCOL_2 if protocol == 2 else PERMITTED)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_unpickling_a_module_imports_its_layers_beside(protocol):
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    got, imported = restricted(net, protocol)
    assert imported >= LAYERS
    np.testing.assert_array_equal(numbers(got[0].weight), numbers(net[0].weight))


class Forged:
    """Pickles as a call of `tapegrad.surface.copying.rebuild` with arguments of choice, and a state to set."""

    def __init__(self, *parts: Any, state: Any = None) -> None:
        self.parts, self.state = parts, state

    def __reduce__(self) -> Any:
        return copying.rebuild, self.parts, self.state


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        (Forged(dict, 1.0, False), "must be of a class of tensors"),
        (Forged(tg.Tensor, "text", False), "must be an array, but got str"),
        (Forged(tg.Tensor, np.array([None]), False), "can't convert np.ndarray of type numpy.object_"),
        (Forged(tg.Tensor, 1.0, False, state=({}, {"_row": 7})), "must not set '_row'"),
        (Forged(tg.Tensor, 1.0, False, state=({"_data": "text"}, {})), "must not set '_data'"),
    ],
)
def test_forged_pickle_does_not_reach_the_tape(forged, message):
    with pytest.raises(TypeError, match=message):
        pickled(forged)


def test_forged_pickle_cannot_track_integers():
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require gradients"):
        pickled(Forged(tg.Tensor, np.array([1]), True))


# Subclasses


@pytest.mark.parametrize("kind", [Named, Slotted])
@pytest.mark.parametrize("copied_by", [copy.copy, copy.deepcopy, pickled])
def test_copy_of_a_subclass_keeps_class_and_attributes(kind, copied_by):
    got = copied_by(kind([1.0, 2.0]))
    assert (type(got), got.tolist(), got.about) == (kind, [1.0, 2.0], ["first"])


@pytest.mark.parametrize("kind", [Named, Slotted])
def test_deep_copy_of_a_subclass_copies_its_attributes(kind):
    t = kind([1.0])
    copy.deepcopy(t).about.append("second")
    assert t.about == ["first"]


def test_deep_copy_of_a_tensor_that_knows_itself():
    t = Named([1.0])
    t.about = t
    got = copy.deepcopy(t)
    assert got.about is got


# Shallow copies


@pytest.mark.parametrize("value", [2.0, [2.0, 3.0]])
def test_shallow_copy_shares_memory(value):
    x = tg.tensor(value)
    copy.copy(x).zero_()
    assert not x.any()


def test_write_through_a_shallow_copy_spoils_saved_values():
    x = leaf([2.0])
    y = x * x
    with tg.no_grad():
        copy.copy(x).zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_shallow_copy_has_no_gradient():
    assert copy.copy(with_gradient(leaf([1.0]))).grad is None


def test_shallow_copy_of_a_result_is_a_leaf():
    assert copy.copy(leaf([1.0]) * 2.0).is_leaf


# Deep copies


def test_deep_copy_has_its_own_gradient():
    x = with_gradient(leaf([3.0]))
    got = copy.deepcopy(x)
    x.grad.zero_()
    assert_values(got.grad, [6.0])


@pytest.mark.filterwarnings("ignore:Using backward")
def test_deep_copy_with_a_recorded_gradient_raises():
    x = leaf([3.0])
    (x * x * x).backward(create_graph=True)
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x)
    x.grad = None


def test_deep_copy_keeps_a_tensor_and_its_gradient_one():
    x = with_gradient(leaf([3.0]))
    got = copy.deepcopy({"x": x, "again": x, "gradient": x.grad})
    assert got["x"] is got["again"]
    assert got["x"].grad is got["gradient"]


def test_deep_copy_keeps_memory_shared():
    base = tg.zeros(2, 3)
    whole, row, column = copy.deepcopy([base, base[1], base.t()[2]])
    row += 1.0
    column += 1.0
    assert whole.tolist() == [[0.0, 0.0, 1.0], [1.0, 1.0, 2.0]]


def test_deep_copy_keeps_strides():
    assert copy.deepcopy(tg.zeros(2, 3).t()).stride() == (1, 3)


def test_deep_copy_of_views_has_memory_of_its_own():
    base = tg.zeros(3)
    copy.deepcopy([base, base[1:]])[1].fill_(1.0)
    assert base.tolist() == [0.0, 0.0, 0.0]


def test_deep_copy_of_a_strided_array():
    assert copy.deepcopy(tg.from_numpy(np.arange(4.0)[::2])).tolist() == [0.0, 2.0]


# Modules


def test_deep_copy_of_a_parameter_has_no_gradient():
    assert copy.deepcopy(with_gradient(nn.Parameter(tg.ones(1)))).grad is None


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = nn.Linear(2, 2)
        self.second.weight = self.first.weight

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.second(self.first(x))


@pytest.mark.parametrize("copied_by", [copy.deepcopy, pickled])
def test_copy_of_a_module_computes_the_same(copied_by):
    net = Tied()
    np.testing.assert_array_equal(numbers(copied_by(net)(tg.ones(2))), numbers(net(tg.ones(2))))


@pytest.mark.parametrize("copied_by", [copy.deepcopy, pickled])
def test_copy_of_a_module_keeps_its_parameters_tied(copied_by):
    net = copied_by(Tied())
    assert net.first.weight is net.second.weight


@pytest.mark.parametrize("copied_by", [copy.copy, copy.deepcopy, pickled])
def test_copy_of_a_module_keeps_its_mode(copied_by):
    assert [module.training for module in copied_by(Tied().eval()).modules()] == [False] * 3


@pytest.mark.parametrize("copied_by", [copy.deepcopy, pickled])
def test_copy_of_a_module_learns_apart(copied_by):
    net = Tied()
    before = numbers(net.first.weight)
    with tg.no_grad():
        copied_by(net).first.weight.zero_()
    np.testing.assert_array_equal(numbers(net.first.weight), before)


@pytest.mark.parametrize("copied_by", [copy.deepcopy, pickled])
def test_copied_state_loads(copied_by):
    net, other = Tied(), Tied()
    other.load_state_dict(copied_by(net.state_dict()))
    assert other.second.weight.tolist() == net.first.weight.tolist()
