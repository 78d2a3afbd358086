"""Objects known by rows: they follow compaction, and what is not needed any more goes."""

import gc
from collections.abc import Callable
from typing import Any

import pytest
from engine_fixtures import leaf

import tapegrad as tg
from tapegrad.tape.row_objects import RowObjects

TAPE = tg.tape.default_tape()


def slot_of(t: tg.Tensor) -> int:
    return TAPE.slot(t._row)


FLAG = 128  # of rows; nobody else uses it


@pytest.fixture
def objects() -> RowObjects[str]:
    return RowObjects(FLAG)


def test_object_follows_its_row(objects: RowObjects[str]) -> None:
    w = leaf(1.0)
    before = [w * float(k) for k in range(10)]
    y = w * 2.0
    objects.set(slot_of(y), "y")
    old = slot_of(y)
    del before
    TAPE.collect()
    assert slot_of(y) < old
    assert objects.get(slot_of(y)) == "y"


def test_slot_left_by_a_row_has_no_object(objects: RowObjects[str]) -> None:
    w = leaf(1.0)
    before = [w * float(k) for k in range(10)]
    y = w * 2.0
    objects.set(slot_of(y), "y")
    old = slot_of(y)
    del before
    TAPE.collect()
    assert objects.get(old) is None


def test_object_of_a_dead_row_is_at_no_slot(objects: RowObjects[str]) -> None:
    w = leaf(1.0)
    y, last = w * 2.0, w * 3.0
    objects.set(slot_of(y), "y")
    del y
    gc.collect()
    TAPE.collect()
    assert [slot for slot, _ in objects.items() if slot >= 0] == []
    assert last.requires_grad


def test_newest_object_of_a_row_counts(objects: RowObjects[str]) -> None:
    y = leaf(1.0) * 2.0
    objects.set(slot_of(y), "old")
    objects.set(slot_of(y), "new")
    TAPE.collect()
    assert [obj for _, obj in objects.items()] == ["new"]


def test_other_objects_are_not_discarded(objects: RowObjects[str]) -> None:
    y = leaf(1.0) * 2.0
    objects.set(slot_of(y), "y")
    objects.discard(slot_of(y), "z")
    assert objects.get(slot_of(y)) == "y"


def test_popped_object_is_gone(objects: RowObjects[str]) -> None:
    y = leaf(1.0) * 2.0
    objects.set(slot_of(y), "y")
    assert (objects.pop(slot_of(y)), objects.get(slot_of(y))) == ("y", None)


def disturb(monkeypatch: pytest.MonkeyPatch, at_call: int, what: Callable[[], Any]) -> None:
    """Do something, as another thread or a destructor may, right after entries were listed."""
    located, calls = RowObjects._located, [0]

    def listed(self: Any) -> Any:
        found = located(self)
        calls[0] += 1
        if calls[0] == at_call:
            what()
        return found

    monkeypatch.setattr(RowObjects, "_located", listed)


def moved_pair(objects: RowObjects[Any], monkeypatch: pytest.MonkeyPatch) -> tuple[tg.Tensor, tg.Tensor]:
    """Two results just after they moved, so that the index must be made anew; the first has an object."""
    w = leaf(1.0)
    gone, y, z = w * 1.0, w * 2.0, w * 3.0
    objects.set(slot_of(y), "y")
    del gone
    with monkeypatch.context() as before_the_index:
        before_the_index.setattr(RowObjects, "forget_gone", lambda self: None)
        TAPE.collect()
    return y, z


def test_object_set_while_the_index_is_made_is_found(objects: RowObjects[str], monkeypatch: pytest.MonkeyPatch) -> None:
    y, z = moved_pair(objects, monkeypatch)
    disturb(monkeypatch, 1, lambda: objects.set(slot_of(z), "z"))
    assert (objects.get(slot_of(y)), objects.get(slot_of(z))) == ("y", "z")


def test_object_replaced_while_the_index_is_made_is_found(objects: RowObjects[str], monkeypatch: pytest.MonkeyPatch) -> None:
    y, _ = moved_pair(objects, monkeypatch)
    disturb(monkeypatch, 1, lambda: objects.set(slot_of(y), "new"))
    assert objects.get(slot_of(y)) == "new"


def test_object_set_while_useless_ones_are_looked_for_stays(objects: RowObjects[str], monkeypatch: pytest.MonkeyPatch) -> None:
    w = leaf(1.0)
    y, z = w * 2.0, w * 3.0
    flag = type(TAPE).flag

    def flag_late(self: Any, slot: int, flags: int = 0, clear: int = 0) -> None:
        monkeypatch.setattr(type(TAPE), "flag", flag)
        objects._most = -1  # the next one looks for useless entries
        objects.set(slot_of(z), "z")
        flag(self, slot, flags, clear)

    monkeypatch.setattr(type(TAPE), "flag", flag_late)
    objects.set(slot_of(y), "y")
    assert (objects.get(slot_of(y)), objects.get(slot_of(z))) == ("y", "z")


def test_row_in_the_place_of_one_that_is_gone_has_no_object(objects: RowObjects[str]) -> None:
    w = leaf(1.0)
    y = w * 2.0
    objects.set(slot_of(y), "y")
    slot = slot_of(y)
    del y
    z = w * 3.0
    assert (slot_of(z), objects.get(slot)) == (slot, None)


def test_object_of_a_row_in_the_place_of_one_that_is_gone(objects: RowObjects[str]) -> None:
    w = leaf(1.0)
    y = w * 2.0
    objects.set(slot_of(y), "y")
    del y
    z, last = w * 3.0, w * 4.0
    objects.set(slot_of(z), "z")
    TAPE.collect()
    assert objects.get(slot_of(z)) == "z"
    assert last.requires_grad


def test_objects_of_dead_rows_are_forgotten(objects: RowObjects[str]) -> None:
    w = leaf(1.0)
    for _ in range(200):
        y, last = w * 2.0, w * 3.0
        objects.set(slot_of(y), "y")
        del y
        TAPE.collect()
        assert last.requires_grad
    assert len(objects.items()) < 20


def test_anchors_are_given_back(objects: RowObjects[str]) -> None:
    y = leaf(1.0) * 2.0
    for _ in range(3):
        objects.set(slot_of(y), "y")
    before = len(TAPE.columns["anchor"])
    for _ in range(10_000):
        objects.set(slot_of(y), "y")
    assert len(TAPE.columns["anchor"]) == before


def test_many_objects(objects: RowObjects[str]) -> None:
    w = leaf(1.0)
    rows = [w * float(k) for k in range(1000)]
    for k, y in enumerate(rows):
        objects.set(slot_of(y), str(k))
    del rows[::2], y
    TAPE.collect()
    assert [objects.get(slot_of(y)) for y in rows] == [str(k) for k in range(1, 1000, 2)]


def test_destructors_may_set_objects_while_dead_ones_are_looked_for() -> None:
    """The collector may run while entries are listed."""
    objects: RowObjects[Any] = RowObjects(FLAG)
    w = leaf(1.0)
    late = w * 3.0

    class Dying:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            objects.set(slot_of(late), "late")

    rows = [w * float(k) for k in range(5000)]  # more pairs than Python keeps in reserve
    for k, row in enumerate(rows):
        objects.set(slot_of(row), k)
    before = gc.get_threshold()
    gc.set_threshold(50)
    try:
        for _ in range(20):
            Dying()
            assert len(objects.items()) >= 5000
    finally:
        gc.set_threshold(*before)
    assert [objects.get(slot_of(row)) for row in (*rows[:3], late)] == [0, 1, 2, "late"]
