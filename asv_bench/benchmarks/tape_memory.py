"""Bytes that a recorded scalar operation takes in the tape's columns."""

from .workloads import chain, load

OPERATIONS = 100_000


def bytes_a_row() -> float:
    """Bytes in use in all columns over rows in use, for a chain of scalar operations."""
    tapegrad = load("tapegrad")
    from tapegrad.tape.tape import default_tape

    before = default_tape().memory()
    x = tapegrad.tensor(0.3, requires_grad=True)
    y = chain(x, OPERATIONS, tapegrad.sin)
    after = default_tape().memory()
    assert y.requires_grad
    return (after["used_bytes"] - before["used_bytes"]) / (after["rows"] - before["rows"])


def track_bytes_a_scalar_row() -> float:
    """W10."""
    return bytes_a_row()


track_bytes_a_scalar_row.unit = "bytes"  # type: ignore[attr-defined]
