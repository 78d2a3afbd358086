"""Patterns of derivatives: of first ones from index sets of a linear tape's places, of second ones from its curved entries.

A pattern is what it is whatever the partials are at this point, but for what was chosen by values (branches, indices, largest
elements). All of that stands in a tape's `fingerprint`: two tapes of one fingerprint have one pattern.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.deferred import look_up
from tapegrad.engine import linear_layout as lin
from tapegrad.kernels.library import blake2
from tapegrad.linear.linear_entries import entry_of
from tapegrad.linear.linear_tape import LinearTape
from tapegrad.sparse.index_sets import IndexSets

if TYPE_CHECKING:
    from tapegrad.linear.hosted_rows import HostedRow
    from tapegrad.nopython.derivatives import Recording  # which imports Numba, where functions are compiled

    Structured = LinearTape | Recording

__all__ = ["MOST_ENTRIES", "Structure", "fingerprint", "first_pattern", "hosts_of", "second_pattern", "sets_of"]

Vector = np.ndarray[Any, Any]
Locate = Callable[[], str]
LARGE_BLOCK = 1024  # entries of a dense block from which on it is worth a warning
MOST_ENTRIES = 1 << 29  # of a Hessian before entries that come again are joined: beyond, it is refused
MANY = 2048  # rows and inputs from which on a dense derivative is worth a warning
SHORT = 1 << 15  # bytes that are compared as they are: loading what hashes them takes longer
NO_PARTIAL = np.float64(-0.0).view(np.int64)  # the bits of a second partial that no rule has


class _Host:
    """What is known of a hosted row: found once for the fingerprint and the pattern."""

    def __init__(self, row: HostedRow) -> None:
        from tapegrad.sparse.hosted_structure import edges_of

        self.row = row
        self.edges, self.dense = edges_of(row, first_pattern)

    def words(self) -> Iterable[bytes]:
        """What the structure depends on."""
        row = self.row
        yield repr((row.op.name, row.place, row.size, row.inputs, row.sizes, row.context.shapes, self.dense)).encode()
        for k, sources, targets in self.edges:
            yield repr(k).encode() + np.ascontiguousarray(sources).tobytes() + np.ascontiguousarray(targets).tobytes()


def hosts_of(tape: LinearTape) -> dict[int, _Host]:
    """What is known of the structure of hosted rows, by the numbers of their entries."""
    found: dict[int, _Host] | None = tape.known.get("hosts")
    if found is None:
        found = tape.known["hosts"] = {number: _Host(row) for number, row in tape.hosts.items()}
    return found


def fingerprint(tape: Structured) -> bytes:
    """All that the patterns of a tape depend on; a hash of it where that is long."""
    if isinstance(tape, LinearTape):
        if tape.fingerprint is None:
            tape.fingerprint = _hashed(tape)
        return tape.fingerprint
    digest = blake2()(digest_size=16)
    for column in (tape.references, tape.triplets, tape.outs):
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.digest() + repr((tape.inputs, tape.results)).encode()


class Structure:
    """The words of a linear tape that its fingerprint is made of, to know the next tape by that is made alike.

    That is asked of each point of an optimisation, where hashing takes longer than a sweep.

    Parameters
    ----------
    tape : LinearTape
        That has a fingerprint, and is no longer than `LONGEST`.
    """

    LONGEST = 1 << 14  # entries: what is kept of one is small beside what else is known of its structure

    def __init__(self, tape: LinearTape) -> None:
        self.fingerprint = tape.fingerprint
        self._is_second, self._outputs, self._inputs = tape.second, tape.outputs, tape.inputs
        self._words = tape.entries, tape.programs  # which nothing writes into any more

    def is_of(self, tape: LinearTape) -> bool:
        """Whether a tape has this structure; False where its words alone do not tell."""
        if self._is_second != tape.second or self._inputs != tape.inputs or self._outputs != tape.outputs or tape.hosts:
            return False
        entries, programs = self._words
        same = entry_of("has_structure")
        known = address_of(entries), len(entries), address_of(programs), len(programs)
        return bool(same(tape.address, *known, address_of(tape.entries)))


def _hashed(tape: LinearTape) -> bytes:
    entries, programs = tape.entries, tape.programs
    heads = entries[:, :2].copy()
    kinds = heads[:, 0] & 0xFFFFFFFF
    heads[kinds == lin.HOSTED, 1] = 0  # where the row stood
    parts = [heads.tobytes()]
    maps = heads[(kinds == lin.MAP) | (kinds == lin.CURVED_MAP), 1]
    words = programs.copy()
    for word in (lin.MAP_KIND, lin.MAP_FACTOR):  # numbers, and where they stand
        words[maps + word] = 0
    parts += [words.tobytes(), repr((len(heads), tape.inputs, tape.outputs)).encode()]
    if tape.second:
        parts.append((tape.curves[kinds == lin.CURVED_PLAIN].view(np.int64) == NO_PARTIAL).tobytes())
    for host in hosts_of(tape).values():
        parts.extend(host.words())
    if sum(map(len, parts)) <= SHORT:
        return b"".join(parts)
    digest = blake2()(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.digest()


def sets_of(tape: Structured, warn: bool = False) -> IndexSets:
    """The sets of all places."""
    if not isinstance(tape, LinearTape):
        sets = IndexSets(tape.inputs, tape.rows + 2, 1)
        references, last = tape.references, np.array([tape.inputs], np.int64)
        addresses = sets.address, references.ctypes.data
        sets.run(entry_of("spread_pairs"), *addresses, after=(len(references), last.ctypes.data))
        return sets
    sets = IndexSets(tape.inputs, tape.places)
    start, spread_sets = 0, entry_of("spread_sets")
    while (number := sets.run(spread_sets, tape.address, sets.address, start=start)) != lin.FINISHED:
        host = hosts_of(tape)[number]
        block = host.row.size * sum(host.row.sizes[k] for k in host.dense)
        if look_up("sparse.hosted_structure:spread")(host.row, sets, host.edges, host.dense) and warn and block >= LARGE_BLOCK:
            _warn(host)
        start = number + 1
    if tape.spare[0]:  # the pattern of second derivatives will be asked for, too
        tape.known["sets"] = sets
    return sets


def _warn(host: _Host) -> None:
    row = host.row
    shapes = ", ".join(str(tuple(row.context.shapes[k])) for k in host.dense)
    warnings.warn(
        f"tapegrad.sparse: nothing is known of the structure of {row.op.name} (result {tuple(row.shape)}, of {shapes}), "
        "so every element of its result counts as depending on every element of these. Give pattern= if that is not so.",
        RuntimeWarning,
        stacklevel=2,
    )


def _not_dense(sets: IndexSets, numbers: Vector, derivative: str, warn: bool, locate: Locate | None) -> None:
    """Say so if sets that are rows of a pattern are long, before they are collected."""
    entries = sets.estimated(numbers)
    rows = len(numbers)
    if entries > MOST_ENTRIES:
        raise MemoryError(
            f"the {derivative} is dense: about {entries:.1g} entries, {entries // rows} of {sets.inputs} inputs in each of {rows} "
            f"rows{_because(locate)}. Take products (tg.jvp, tg.vjp, tg.hvp) instead, or make what gathers all inputs a variable "
            "of its own."
        )
    if warn and 2 * entries > rows * sets.inputs and min(rows, sets.inputs) >= MANY:
        warnings.warn(
            f"tapegrad.sparse: the {derivative} is dense: about {entries // rows} of {sets.inputs} inputs in each of {rows} rows"
            f"{_because(locate)}.",
            RuntimeWarning,
            stacklevel=2,
        )


def _because(locate: Locate | None) -> str:
    row = locate() if locate is not None else ""
    return f", because of {row}" if row else ""


def first_pattern(
    tape: Structured, warn: bool = False, locate: Locate | None = None, derivative: str = "Jacobian"
) -> tuple[Vector, Vector]:
    """Where the rows of a Jacobian's pattern end, with a zero in front, and the columns of its entries (in no order).

    Parameters
    ----------
    tape : LinearTape or Recording
    warn : bool
        Whether to warn of what is dense.
    locate : callable, optional
        Tells the row that made it dense, in words.
    derivative : str
        Of what it is the pattern, for messages.

    Raises
    ------
    MemoryError
        If there are too many entries.
    """
    sets = sets_of(tape, warn)
    if not isinstance(tape, LinearTape):
        outs = np.where((tape.outs > 0) & (tape.outs <= tape.rows), tape.outs, 0)
        rows = sets.places[outs]
    else:
        numbers = [sets.places[place : place + size] if place >= 0 else np.zeros(size, np.int32) for place, size in tape.outputs]
        rows = np.concatenate(numbers) if numbers else np.empty(0, np.int32)
    _not_dense(sets, rows, derivative, warn, locate)
    return sets.collected(rows)


def second_pattern(tape: Structured, warn: bool = False, locate: Locate | None = None) -> tuple[Vector, Vector]:
    """Rows and columns of the lower triangle of a Hessian's pattern; entries may come more than once.

    Parameters
    ----------
    tape, warn, locate
        As for `first_pattern`.

    Raises
    ------
    MemoryError
        If there are too many of them: a function of that many numbers whose Hessian is dense.
    """
    known = tape.known.pop("sets", None) if isinstance(tape, LinearTape) else None
    sets = sets_of(tape, warn) if known is None else known
    if not isinstance(tape, LinearTape):
        triplets = tape.triplets
        pairs = sets.places[triplets[:, 1:]]
    else:
        pairs = sets.pairs(entry_of("find_pairs"), tape.address)
        hosted = [p for host in hosts_of(tape).values() for p in _pairs_of(host, sets)]
        pairs = np.concatenate([pairs, *hosted]) if hosted else pairs
    one, other = pairs[:, 0], pairs[:, 1]
    high, low = np.maximum(one, other), np.minimum(one, other)  # a reduction of pairs takes twenty times as long
    keys = np.sort((high.astype(np.int64) << 32 | low)[low > 0])
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
    crossing = np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1)
    is_used = np.zeros(sets.count, bool)
    is_used[crossing.reshape(-1)] = True
    numbers = np.flatnonzero(is_used)
    _not_dense(sets, numbers, "Hessian", False, locate)
    ends, elements = sets.collected(numbers)
    number_of = np.empty(sets.count, np.int32)
    number_of[numbers] = np.arange(len(numbers))
    crossing = number_of[crossing]
    lengths = np.diff(ends)[crossing]
    most = int((lengths[:, 0] * lengths[:, 1]).sum()) if len(crossing) else 0
    longest = int(lengths.max(initial=0))
    if most > MOST_ENTRIES:
        raise MemoryError(
            f"the Hessian's pattern has {most:.2g} entries, for some row has a second derivative by {longest} inputs at once"
            f"{_because(locate) or ' (as the square of a sum of all has)'}. Take products (tg.hvp) instead, or make the sum a "
            "variable of its own."
        )
    if warn and longest >= MANY and most > tape.inputs**2 // 4:
        warnings.warn(
            f"tapegrad.sparse: the Hessian is dense, for some row has a second derivative by {longest} of {tape.inputs} inputs at "
            f"once{_because(locate)}.",
            RuntimeWarning,
            stacklevel=2,
        )
    rows, columns = np.empty(most, np.int32), np.empty(most, np.int32)
    cross = entry_of("cross_sets")
    crossed = (np.ascontiguousarray(crossing, np.int32), len(crossing), ends, elements, rows, columns)
    count = cross(*(a if isinstance(a, int) else a.ctypes.data for a in crossed))
    return rows[:count], columns[:count]


def _pairs_of(host: _Host, sets: IndexSets) -> Iterable[Vector]:
    """Pairs of sets that meet in a hosted row that is linear in each of two inputs."""
    from tapegrad.sparse.hosted_structure import factor_lines, multiplies

    row = host.row
    if row.is_flat:
        return
    if multiplies(row):
        one, two = np.broadcast_arrays(*factor_lines(row))
        a, b = sets.places[row.inputs[0] + one.reshape(-1)], sets.places[row.inputs[1] + two.reshape(-1)]
        keys = np.unique(a.astype(np.int64) << 32 | b)
        yield np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1).astype(np.int32)
        return
    hubs = sets.scratch(2)
    for k in (0, 1):
        sources = row.inputs[k] + np.arange(row.sizes[k])
        sets.add_edges(sources, np.full(len(sources), hubs[k]))
    yield sets.places[hubs][None, :]
