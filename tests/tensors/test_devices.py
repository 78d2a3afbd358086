"""The one device there is: as an object, as an attribute, and as an argument."""

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import leaf
from many_cases import each

import tapegrad as tg

CPU = tg.device("cpu")


def test_every_tensor_is_on_the_cpu() -> None:
    x = leaf([1.0, 2.0])
    assert [t.device for t in (x, x.sum(), x[0], tg.tensor(1), tg.nn.Parameter(tg.ones(2)))] == [CPU] * 5
    assert x.is_cpu and not x.is_cuda and x.get_device() == -1


def test_device_prints_as_in_pytorch() -> None:
    assert (repr(CPU), str(CPU), CPU.type, CPU.index) == ("device(type='cpu')", "cpu", "cpu", None)
    numbered = tg.device("cpu", 1)
    assert (repr(numbered), str(numbered), numbered.index) == ("device(type='cpu', index=1)", "cpu:1", 1)


def test_devices_are_equal_by_type_and_number() -> None:
    assert CPU == tg.device(type="cpu") == tg.device(CPU)
    assert hash(CPU) == hash(tg.device("cpu"))
    assert tg.device("cpu:0") == tg.device("cpu", 0) != CPU
    assert CPU != "cpu"


def test_device_is_copied_and_pickled_and_not_written() -> None:
    assert pickle.loads(pickle.dumps(CPU)) == copy.deepcopy(CPU) == CPU
    with pytest.raises(AttributeError, match="not writable"):
        CPU.type = "cuda"  # type: ignore[misc]


@each(
    ("arguments", "error", "message"),
    [
        (("cuda",), RuntimeError, "CPU only, so there is no device 'cuda'"),
        (("cuda:0",), RuntimeError, "CPU only"),
        (("meta",), RuntimeError, "CPU only"),
        (("cpu:x",), RuntimeError, "Invalid device string: 'cpu:x'"),
        (("cpu:-1",), RuntimeError, "Invalid device string"),
        (("cpu:0", 0), RuntimeError, "must not include an index"),
        (("cpu", -1), RuntimeError, "Device index must not be negative"),
        ((0,), TypeError, "must be str, not int"),
        ((None,), TypeError, "must be str, not NoneType"),
        (("cpu", "1"), TypeError, "must be int, not str"),
        ((CPU, 1), TypeError, "takes no index"),
    ],
)
def test_other_devices_are_refused(arguments: tuple[object, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tg.device(*arguments)  # type: ignore[arg-type]


T = tg.tensor([1.0, 2.0])
TAKE: dict[str, Callable[[object], tg.Tensor]] = {
    "tensor": lambda d: tg.tensor([1.0], device=d),
    "as_tensor": lambda d: tg.as_tensor(np.ones(1), device=d),
    "zeros": lambda d: tg.zeros(1, device=d),
    "ones": lambda d: tg.ones(1, device=d),
    "empty": lambda d: tg.empty(1, device=d),
    "full": lambda d: tg.full((1,), 1.0, device=d),
    "zeros_like": lambda d: tg.zeros_like(T, device=d),
    "ones_like": lambda d: tg.ones_like(T, device=d),
    "empty_like": lambda d: tg.empty_like(T, device=d),
    "full_like": lambda d: tg.full_like(T, 1.0, device=d),
    "new_zeros": lambda d: T.new_zeros(1, device=d),
    "new_full": lambda d: T.new_full((1,), 1.0, device=d),
    "eye": lambda d: tg.eye(1, device=d),
    "arange": lambda d: tg.arange(1, device=d),
    "linspace": lambda d: tg.linspace(0, 1, 2, device=d),
    "tril_indices": lambda d: tg.tril_indices(1, 1, device=d),
    "triu_indices": lambda d: tg.triu_indices(1, 1, device=d),
    "rand": lambda d: tg.rand(1, device=d),
    "randn": lambda d: tg.randn(1, device=d),
    "rand_like": lambda d: tg.rand_like(T, device=d),
    "randn_like": lambda d: tg.randn_like(T, device=d),
    "randint": lambda d: tg.randint(2, (1,), device=d),
    "randint_like": lambda d: tg.randint_like(T, 2, device=d),
    "randperm": lambda d: tg.randperm(1, device=d),
    "normal": lambda d: tg.normal(0.0, 1.0, (1,), device=d),
    "to": lambda d: T.to(device=d),
    "Module.to": lambda d: tg.nn.Linear(1, 1).to(device=d).weight,
}


@each("device", ["cpu", CPU, "cpu:0", None], ids=str)
@each("name", TAKE)
def test_what_makes_tensors_takes_the_device(name: str, device: object) -> None:
    assert TAKE[name](device).device == CPU


@each("name", TAKE)
def test_what_makes_tensors_refuses_another_device(name: str) -> None:
    with pytest.raises(RuntimeError, match="CPU only, so there is no device 'cuda'"):
        TAKE[name]("cuda")


def test_refused_device_uses_up_no_random_numbers() -> None:
    tg.manual_seed(0)
    expected = tg.rand(3)
    tg.manual_seed(0)
    with pytest.raises(RuntimeError, match="CPU only"):
        tg.rand(3, device="cuda")
    assert tg.rand(3).tolist() == expected.tolist()


def test_going_to_the_cpu_gives_the_object() -> None:
    x = leaf([1.0, 2.0])
    assert x.cpu() is x.to("cpu") is x.to(CPU) is x.to(device="cpu", non_blocking=True) is x
    assert x.to("cpu", tg.float32).dtype == x.to(CPU, dtype=tg.float32).dtype == tg.float32
    layer = tg.nn.Linear(1, 1)
    assert layer.cpu() is layer.to("cpu") is layer.to(CPU) is layer


def test_tensors_cannot_go_elsewhere() -> None:
    with pytest.raises(RuntimeError, match="CPU only, so there is no device 'cuda'"):
        T.to("cuda")
    with pytest.raises(RuntimeError, match="CPU only"):
        tg.nn.Linear(1, 1).to("cuda")


def test_address_of_the_first_element() -> None:
    x = tg.arange(6.0).reshape(3, 2)
    assert x.data_ptr() == x.numpy().ctypes.data == x[0].data_ptr() == x.detach().data_ptr()
    assert x[1].data_ptr() - x.data_ptr() == 2 * x.itemsize
    assert x.clone().data_ptr() != x.data_ptr()
    assert tg.empty(0).data_ptr() == 0


def test_address_of_a_number_stays() -> None:
    s = leaf(2.0) * 3.0
    place = s.data_ptr()
    assert place == s.detach().data_ptr() == s.data_ptr() != 0
    with tg.no_grad():
        s.add_(1.0)
    assert s.data_ptr() == place
