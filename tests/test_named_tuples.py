"""Light named tuples are what named tuples of Python's are."""

import copy
import pickle
from typing import Any

import pytest

from tapegrad.named_tuples import Named


class Point(Named):
    """Two numbers and a name."""

    __slots__ = ()

    x: float
    y: float
    name: str


def test_items_have_their_names() -> None:
    point = Point(1.0, 2.0, "a")
    assert (point.x, point.y, point.name) == (1.0, 2.0, "a")


def test_it_is_a_tuple() -> None:
    x, y, name = point = Point(1.0, 2.0, "a")
    assert point == (x, y, name)
    assert hash(point) == hash((x, y, name))
    assert point[1:] == (2.0, "a")


def test_names_in_their_order() -> None:
    assert Point._fields == ("x", "y", "name")


def test_items_by_their_names() -> None:
    assert Point(1.0, 2.0, "a")._asdict() == {"x": 1.0, "y": 2.0, "name": "a"}


def test_another_one_with_items_replaced() -> None:
    point = Point(1.0, 2.0, "a")
    made = point._replace(y=3.0)
    assert type(made) is Point
    assert made == (1.0, 3.0, "a")
    assert point.y == 2.0


def test_its_text() -> None:
    assert repr(Point(1.0, 2.0, "a")) == "Point(x=1.0, y=2.0, name='a')"


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))], ids=["copy", "deep", "pickle"])
def test_copies_are_equal(way: Any) -> None:
    point = Point(1.0, 2.0, "a")
    made = way(point)
    assert type(made) is Point
    assert made == point


@pytest.mark.parametrize("items", [(), (1.0, 2.0), (1.0, 2.0, "a", 3.0)])
def test_another_number_of_items_is_refused(items: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=f"Point has 3 items, not {len(items)}: x, y, name"):
        Point(*items)


def test_a_name_that_it_has_not_is_not_replaced() -> None:
    with pytest.raises(TypeError, match="Point has 3 items, not 4"):
        Point(1.0, 2.0, "a")._replace(z=3.0)


def test_items_cannot_be_assigned() -> None:
    point: Any = Point(1.0, 2.0, "a")
    with pytest.raises(AttributeError):
        point.x = 3.0


def test_nothing_else_can_be_assigned() -> None:
    point: Any = Point(1.0, 2.0, "a")
    with pytest.raises(AttributeError):
        point.z = 3.0


def test_patterns_match_items_in_their_order() -> None:
    match Point(1.0, 2.0, "a"):
        case Point(x, y, name):
            assert (x, y, name) == (1.0, 2.0, "a")
        case _:
            pytest.fail("no match")
