"""How operations come to the tape: by compiled operators, or, while somebody must see each of them, by Python forms only.

Those who must are hooks that pack saved values, threads in inference mode or whose operations are followed, anomaly detection,
and observers of rows. While there is none, nothing looks for them: the entries of the tape are the compiled ones, and compiled
operators take tensors. Else compiled operators find that nothing is a tensor and leave all to the Python forms, and the entries
may have something around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tapegrad.engine import layout as at
from tapegrad.tape.locks import choosing
from tapegrad.tape.locks import routes as _lock
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor

__all__ = ["RECORDING", "choosing", "count", "operand_type", "surround", "usual_entry"]

# Entries that write the row of an operation.
RECORDING = ("scalar_row", "array1", "array2", "array3", "view_row", "map_row", "reduce_row", "join_row", "host_row")
Layer = Callable[[Any], Any]
Layers = Mapping[str, Layer]

_compiled: dict[str, Any] = {}
_usual: dict[str, Any] = {}
_layers: dict[str, Layers] = {}


class _Nothing:
    """A class that no operand has."""


def operand_type(inferring: int) -> int:
    """Address of the class that compiled operators take for tensors, if so many threads are in inference mode."""
    return id(_Nothing if inferring or TAPE.packers or TAPE.anomalies or TAPE.observers or TAPE.tracers else Tensor)


def usual_entry(name: str) -> Any:
    """An entry that records, whoever packs."""
    return _usual[name] if TAPE.packers or TAPE.tracers else getattr(TAPE, name)


def surround(who: str, layers: Layers | None) -> None:
    """Put layers around entries of the tape, or take them away.

    Parameters
    ----------
    who : {"anomalies", "profiles", "observers", "packers", "tracers"}
        For whom. All but profiles are counted by an attribute of the tape, which the caller sets. The later of these have the
        outer layer.
    layers : mapping of str to callable, or None
        By the names of the entries what makes the function in an entry's place from the entry.
    """
    with _lock:
        if not _compiled:
            _compiled.update({name: TAPE.compiled(name) for name in RECORDING})
        if layers is None:
            _layers.pop(who, None)
        else:
            _layers[who] = layers
        chosen = dict(_compiled)
        for one in ("anomalies", "profiles", "observers", "packers", "tracers"):
            if one == "packers":
                _usual.update(chosen)
            chosen.update({name: made(chosen[name]) for name, made in _layers.get(one, {}).items()})
        for name, entry in chosen.items():
            setattr(TAPE, name, entry)


def count(who: str, more: int) -> int:
    """Count somebody who must see each operation; how many there are now."""
    with choosing:
        now: int = getattr(TAPE, who) + more
        setattr(TAPE, who, now)
        TAPE.header[at.TENSOR_TYPE] = operand_type(TAPE.inferring)
    return now
