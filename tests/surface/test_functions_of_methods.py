"""Functions that are methods, or functions of layers, under the package's own name."""

import pytest

import tapegrad as tg
from tapegrad.surface.public_names import FUNCTIONS_OF_LAYERS
from tapegrad.surface.tensor_methods import METHODS


@pytest.mark.parametrize("name", sorted(METHODS))
def test_function_hands_on_to_the_method(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, t = getattr(tg, name), tg.tensor([1.0])
    assert function.__doc__ == getattr(tg.Tensor, name).__doc__
    monkeypatch.setattr(tg.Tensor, name, lambda *given, **named: (given, named))
    assert function(t, 2, a=3) == ((t, 2), {"a": 3})


@pytest.mark.parametrize("name", FUNCTIONS_OF_LAYERS.split())
def test_function_of_layers_is_the_same_at_the_top(name: str) -> None:
    assert getattr(tg, name) is getattr(tg.nn.functional, name)


def test_function_in_place_writes_and_returns_its_argument() -> None:
    t = tg.tensor([-1.0, 2.0])
    assert tg.relu_(t) is t
    assert t.tolist() == [0.0, 2.0]


def test_function_in_place_wants_a_tensor() -> None:
    with pytest.raises(TypeError, match="zero_.*must be Tensor, not list"):
        tg.zero_([1.0])


@pytest.mark.parametrize(("value", "dtype", "found"), [(0.0, tg.float32, (True, True, False)), (3, tg.uint8, (False, False, True))])
def test_questions_about_a_tensor(value: float, dtype: object, found: tuple[bool, ...]) -> None:
    t = tg.tensor([value], dtype=dtype)
    assert (tg.is_floating_point(t), t.is_signed(), tg.is_nonzero(t)) == found


def test_is_tensor_and_is_same_size() -> None:
    assert tg.is_tensor(tg.ones(2))
    assert not tg.is_tensor([1.0])
    assert tg.is_same_size(tg.ones(2), tg.zeros(2))
    assert not tg.ones(2).is_same_size(tg.ones(2, 1))


def test_type_as_and_element_size() -> None:
    t = tg.tensor([1.0]).type_as(tg.tensor([1.0], dtype=tg.float32))
    assert (t.dtype, t.element_size()) == (tg.float32, 4)


@pytest.mark.parametrize("name", ["is_floating_point", "is_signed", "is_same_size", "is_nonzero", "type_as"])
def test_questions_about_what_is_no_tensor_are_refused(name: str) -> None:
    arguments = (tg.ones(1), 2.0) if name in ("is_same_size", "type_as") else (2.0,)
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        getattr(tg.Tensor if name == "type_as" else tg, name)(*arguments)
