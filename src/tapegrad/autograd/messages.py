"""Messages for passes that cannot run."""

from __future__ import annotations

from tapegrad.autograd.decoded_rows import Record, name_of, object_at, opcode_of, record_of, words_at
from tapegrad.engine import layout as at
from tapegrad.errors import OverwrittenError
from tapegrad.frames import is_inside_driver
from tapegrad.tape.tape import TAPE, owner_of

__all__ = ["explain", "saved_record_of", "saved_words_of"]

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
    "you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
)


def explain(status: int, slot: int) -> RuntimeError:
    """The error for a row that the plan stopped at."""
    if status == at.FREED_ROW:
        return RuntimeError(f"{FREED} [{name_of(slot)}]")
    hint = (
        "write into a copy, as y = np.exp(x).copy() for y = np.exp(x), or before the value is used"
        if is_inside_driver()
        else "write to a clone(), or do the in-place operation before the value is used"
    )
    return OverwrittenError(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: {_describe(slot)} "
        f"instead (needed by {name_of(slot)}). Hint: {hint}."
    )


def _describe(slot: int) -> str:
    """Which saved value of a row is stale, and its versions."""
    if opcode_of(slot)[1]:
        record = record_of(slot)
        serial = int(TAPE.columns["side"][int(TAPE.columns["first"][slot]) + at.SERIAL])
        saved = [(a.slot, object_at(a.saved)) for a in record.arguments if a.kind == at.ARRAY]
        if record.result:
            saved.append((slot, object_at(record.result)))
        for source, array in saved:
            counter = TAPE.versions.get(owner_of(array))
            if counter is not None and counter.before(serial) != counter.count:
                return _value(source, array.dtype.name, array.shape, counter.count, counter.before(serial))
        return _value(-1, record.dtype.name, record.shape, 1, 0)
    return _value(slot, "float64", (), 1, 0)


def _value(source: int, dtype: str, shape: tuple[int, ...], now: int, expected: int) -> str:
    made = ""
    if source >= 0 and opcode_of(source)[0] != at.LEAF:
        made = f", which is output 0 of {name_of(source)},"
    return f"[{dtype} {list(shape)}]{made} is at version {now}; expected version {expected}"


def saved_record_of(slot: int) -> Record:
    """The record of a row that is about to run.

    Raises
    ------
    RuntimeError
        If another pass has freed the row meanwhile.
    """
    record = record_of(slot)
    _check_present(slot)
    return record


def saved_words_of(slot: int) -> list[int]:
    """The same as words, which take a third of the time.

    Raises
    ------
    RuntimeError
        If another pass has freed the row meanwhile.
    """
    words = words_at(slot)
    _check_present(slot)
    return words


def _check_present(slot: int) -> None:
    # Looked at after reading: what a claimed tape frees from now on stays alive.
    if TAPE.columns["flags"].item(slot) & at.FREED:
        raise explain(at.FREED_ROW, slot)
