"""Files of state: NumPy's ``.npz`` without pickle, so that reading a file runs no code from it.

The archive holds one array for each piece of memory (``0.npy``, ``1.npy``, ...) and ``structure.npy``, the bytes of a JSON text
that says how the state is made of them; `state_format` describes it. Entries are stored uncompressed, so no file can claim to
be larger than it is, and their checksums are compared before anything is interpreted.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import reprlib
import stat
import struct
import tokenize
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from tapegrad.files.state_format import DTYPE_KINDS, decode, encode
from tapegrad.interrupts import whole_file

__all__ = ["load", "save"]

FORMAT, VERSION = "tapegrad state", 1
STRUCTURE = "structure.npy"
CHUNK = 1 << 20  # bytes read at a time
HEADER = 1 << 14  # bytes that the header of an entry may take
File = str | os.PathLike[str] | IO[bytes]

# What the readers of zip, npy and JSON raise when bytes are not what they should be; warnings where those are errors.
DAMAGE = (
    ValueError, TypeError, LookupError, OverflowError, RuntimeError, EOFError, SyntaxError, struct.error, tokenize.TokenError,
    zipfile.BadZipFile, Warning,
)  # fmt: skip


def save(state: Any, file: File) -> None:
    """Write a state to a file, from which `load` reads it without running code.

    A file given by its name is replaced at once when all is written: whatever interrupts or fails, it is the old or the new one.

    Parameters
    ----------
    state : dict, list, tuple, Tensor, ndarray, number, str, bool or None
        Nested, as ``state_dict()`` of modules and optimisers are. Dicts may have any keys that are made of the same things. What
        occurs twice is one thing again after loading, and tensors on the same memory share it again. Tensors keep dtype,
        ``requires_grad`` and being a `tapegrad.nn.Parameter`; gradients are not saved. The result of a recorded operation is
        saved as its value, without its graph, and is untracked after loading.
    file : str, path, or binary file object
        A file object is written at its position, and may be left half written if that fails.

    Raises
    ------
    TypeError
        If there is anything else in the state; the message names the place. Nothing is written then.
    ValueError
        If a container contains itself, or hundreds of them are nested in one another.
    OSError
        If the file cannot be written.

    See Also
    --------
    load : Reads the state back.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> net = tg.nn.Linear(2, 1)
    >>> tg.save({"net": net.state_dict(), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> loaded = tg.load(file)
    >>> loaded["epoch"]
    3
    >>> net.load_state_dict(loaded["net"])
    <All keys matched successfully>
    """
    _check_file(file, "write")
    description, arrays = encode(state)
    text = json.dumps({"format": FORMAT, "version": VERSION, **description}, ensure_ascii=False, allow_nan=False)
    # Text may contain surrogates, as names of files do.
    entries = {STRUCTURE: np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)}
    entries |= {f"{number}.npy": array for number, array in enumerate(arrays)}
    if not isinstance(file, (str, os.PathLike)):
        _write(file, entries)
        return
    with _replacing(os.path.realpath(file)) as target:
        _write(target, entries)


def _check_file(file: Any, method: str) -> None:
    if not isinstance(file, (str, os.PathLike)) and not hasattr(file, method):
        raise TypeError(f"expected a path or a binary file object, but got {type(file).__name__}")


def _write(target: IO[bytes], entries: dict[str, np.ndarray]) -> None:
    # Entries have a fixed date: the same state makes the same bytes.
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, array in entries.items():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
                npy.write_array(entry, array, version=(1, 0), allow_pickle=False)


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """A file that takes the place of another when all is written to it."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = 0
    if mode and not stat.S_ISREG(mode):  # a device or pipe must not be replaced
        with open(path, "wb") as target:
            yield target
        return
    with whole_file(path, stat.S_IMODE(mode), lasting=True) as target:
        yield target


def load(file: File) -> Any:
    """Read a state that `save` wrote.

    Reading runs no code from the file, and takes no more memory than the file is long, whoever wrote it.

    Parameters
    ----------
    file : str, path, or binary file object
        A file object is read from its position to its end, and must be seekable.

    Returns
    -------
    dict, list, tuple, Tensor, ndarray, number, str, bool or None
        The state, on memory of its own.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, incomplete, or of another kind or version.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> tg.save([tg.ones(2, requires_grad=True), 0.5], file)
    >>> _ = file.seek(0)
    >>> tg.load(file)
    [tensor([1., 1.], requires_grad=True), 0.5]
    """
    _check_file(file, "read")
    if not isinstance(file, (str, os.PathLike)):
        return _load(file, repr(file.name) if hasattr(file, "name") else "the file object")
    with open(file, "rb") as source:
        return _load(source, repr(os.fspath(file)))


def _load(source: IO[bytes], name: str) -> Any:
    start = source.tell()
    length = source.seek(0, os.SEEK_END) - start
    with _noting_damage(name):
        entries = _read(source, start, length)
        description = json.loads(entries.pop(STRUCTURE).tobytes().decode("utf-8", "surrogatepass"))
        if type(description) is not dict or description.get("format") != FORMAT:
            raise ValueError("its structure is not that of a state")
    version = description.get("version")
    if type(version) is not int or version != VERSION:
        raise ValueError(
            f"cannot load {name}: it is of version {reprlib.repr(version)} of the format, and this tapegrad reads version "
            f"{VERSION}; load it with the one that wrote it"
        )
    with _noting_damage(name):
        if description["arrays"] != len(entries):
            raise ValueError(f"it should hold {reprlib.repr(description['arrays'])} arrays, but holds {len(entries)}")
        return decode(description, [entries[f"{number}.npy"] for number in range(len(entries))])


@contextlib.contextmanager
def _noting_damage(name: str) -> Iterator[None]:
    try:
        yield
    except (*DAMAGE, OSError) as reason:
        # Reading at offsets before the beginning is refused by the system as EINVAL; other errors of the system are no damage.
        if isinstance(reason, OSError) and reason.errno != errno.EINVAL:
            raise
        what = f"there is no {reason}" if isinstance(reason, KeyError) else reason
        raise ValueError(f"cannot load {name}: it is damaged, or not a file that tapegrad.save wrote ({what})") from reason


def _read(source: IO[bytes], start: int, length: int) -> dict[str, np.ndarray]:
    """The arrays in an archive that fills a file from `start`."""
    with zipfile.ZipFile(source) as archive:
        infos = archive.infolist()
        if len(archive.namelist()) != len(set(archive.namelist())):
            raise ValueError("two entries have the same name")
        if strange := {info.filename for info in infos} - {STRUCTURE, *(f"{number}.npy" for number in range(len(infos) - 1))}:
            raise ValueError(f"there are entries that do not belong to it: {reprlib.repr(sorted(strange))}")
        if not infos or min(info.header_offset for info in infos) != start:
            raise ValueError("there is something else before the state")
        if any(info.compress_type != zipfile.ZIP_STORED for info in infos) or sum(info.file_size for info in infos) > length:
            raise ValueError("entries are compressed, or longer than the file")
        return {info.filename: _read_array(archive, info) for info in infos}


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    memory = np.empty(info.file_size, np.uint8)
    count = 0
    with archive.open(info) as entry:
        while block := entry.read(CHUNK):  # the last one compares the checksum
            memory[count : count + len(block)] = np.frombuffer(block, np.uint8)
            count += len(block)
    if count < memory.size:
        raise ValueError(f"{info.filename} is shorter than it should be")
    header = io.BytesIO(memory[:HEADER].tobytes())
    if npy.read_magic(header) != (1, 0):
        raise ValueError(f"{info.filename} is of another version of the npy format")
    shape, in_columns, dtype = npy.read_array_header_1_0(header)
    if dtype.hasobject or dtype.kind not in DTYPE_KINDS or not dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError(f"{info.filename} is an array of {dtype} of shape {shape}")
    size = dtype.itemsize
    for n in shape:
        size *= n
    if header.tell() + size != memory.size:
        raise ValueError(f"{info.filename} has {memory.size - header.tell()} bytes where {size} are needed")
    array: np.ndarray = np.ndarray(shape, dtype, memory, header.tell(), order="F" if in_columns else "C")
    return array if array.flags.aligned else array.copy()
