"""Files of state: what survives, what is refused, and what interrupted or damaged files do."""

import collections
import io
import json
import math
import os
import random
import struct
import zipfile
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf, numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.lib import format as npy

import tapegrad as tg
from tapegrad import nn

DTYPES = [tg.float16, tg.float32, tg.float64, tg.int8, tg.int16, tg.int32, tg.int64, tg.uint8, tg.bool]


def content(state: Any) -> bytes:
    file = io.BytesIO()
    tg.save(state, file)
    return file.getvalue()


def loaded(data: bytes) -> Any:
    return tg.load(io.BytesIO(data))


def there_and_back(state: Any) -> Any:
    return loaded(content(state))


def assert_same(got: Any, expected: Any) -> None:
    """Equal in class, structure, flags and bits."""
    assert type(got) is type(expected)
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for ours, theirs in zip(got, expected, strict=True):
            assert_same(ours, theirs)
    elif isinstance(expected, dict):
        assert_same(list(got.items()), list(expected.items()))
    elif isinstance(expected, tg.Tensor):
        assert got.requires_grad is expected.requires_grad
        assert_same(numbers(got), numbers(expected))
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert (got.dtype, got.shape, got.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
    elif type(expected) is float:
        assert struct.pack("d", got) == struct.pack("d", expected)
    elif type(expected) is complex:
        assert_same((got.real, got.imag), (expected.real, expected.imag))
    else:
        assert got == expected


# What survives

shapes = npst.array_shapes(min_dims=0, min_side=0, max_side=3)
numeric = st.sampled_from(DTYPES).flatmap(lambda dtype: npst.arrays(dtype, shapes))
any_text = st.text(st.characters(exclude_categories=()), max_size=5)  # surrogates too, as in names of files
tensors = st.builds(
    lambda array, kind, tracked: kind(tg.from_numpy(array)).requires_grad_(tracked and array.dtype in (tg.float32, tg.float64)),
    numeric,
    st.sampled_from([lambda t: t, lambda t: nn.Parameter(t, requires_grad=False)]),
    st.booleans(),
)
of_numpy = st.one_of(npst.integer_dtypes(), npst.floating_dtypes(), npst.complex_number_dtypes(), npst.datetime64_dtypes())
arrays = npst.arrays(st.one_of(of_numpy, npst.unicode_string_dtypes(max_len=3), npst.byte_string_dtypes(max_len=3)), shapes)
scalars = npst.arrays(st.one_of(npst.integer_dtypes(endianness="="), npst.floating_dtypes(endianness="=")), ()).map(lambda a: a[()])
plain = st.one_of(st.none(), st.booleans(), st.integers(), st.integers(-(2**200), 2**200), st.floats(), any_text)
keys = st.one_of(plain, st.tuples(st.integers(), any_text))
states = st.recursive(
    st.one_of(plain, st.complex_numbers(), st.floats().map(tg.tensor), tensors, arrays, scalars),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3).map(collections.OrderedDict),
    ),
    max_leaves=8,
)


@given(states)
def test_state_survives_exactly(state):
    assert_same(there_and_back(state), state)


NUMBERS = [math.nan, -math.nan, -0.0, math.inf, -math.inf, 5e-324, 2**63, -(2**100), 2**20000]


@pytest.mark.parametrize("number", NUMBERS, ids=range(len(NUMBERS)))
def test_number_survives_exactly(number):
    assert_same(there_and_back(number), number)


def test_state_of_an_optimiser_survives():
    groups = [{"lr": 0.1, "betas": (0.9, 0.99), "params": [0]}]
    state = {"state": {0: {"momentum_buffer": tg.ones(2), "step": 3}}, "param_groups": groups}
    assert_same(there_and_back(state), state)


def test_state_of_a_module_loads_into_another():
    net, other = nn.Linear(2, 3), nn.Linear(2, 3)
    other.load_state_dict(there_and_back(net.state_dict()))
    assert_same(other.state_dict(), net.state_dict())


def test_result_is_saved_as_its_value():
    got = there_and_back(leaf([1.0]) * 2.0)
    assert (got.tolist(), got.requires_grad) == ([2.0], False)


def test_gradient_is_not_saved():
    x = leaf([1.0])
    (x * x).backward()
    assert there_and_back(x).grad is None


def test_loaded_leaf_takes_part_in_graphs():
    x = there_and_back(leaf([3.0]))
    (x * x).backward()
    assert x.grad.tolist() == [6.0]


def test_what_occurs_twice_is_one_thing_when_loaded():
    x, items = nn.Parameter(tg.ones(1)), [1]
    first, second, third, fourth = there_and_back([x, x, items, items])
    assert first is second
    assert third is fourth


def test_repeated_containers_take_no_more_room():
    state: Any = []
    for _ in range(100):
        state = [state, state]
    assert len(content(state)) < 10_000


def test_tensors_on_the_same_memory_share_it_when_loaded():
    x = nn.Parameter(tg.ones(2))
    parameter, state = there_and_back([x, x.detach()])
    state.zero_()
    assert parameter.tolist() == [0.0, 0.0]


def test_views_share_memory_with_their_base_when_loaded():
    base = tg.zeros(2, 3)
    whole, row, column = there_and_back([base, base[1], base.t()[2]])
    row += 1.0
    column += 1.0
    assert whole.tolist() == [[0.0, 0.0, 1.0], [1.0, 1.0, 2.0]]


def test_arrays_share_memory_with_tensors_when_loaded():
    array = np.arange(6.0)
    tensor, backwards = there_and_back([tg.from_numpy(array[2:]), array[::-1]])
    backwards[0] = 9.0
    assert tensor.tolist() == [2.0, 3.0, 4.0, 9.0]


def test_view_alone_does_not_carry_its_base():
    assert len(content(tg.zeros(100_000)[5:7])) < 2000


def test_bytes_between_views_are_not_written():
    secret = np.full((50, 3), 7.0)
    assert struct.pack("d", 7.0) not in content([tg.from_numpy(secret)[:, 0].zero_(), tg.from_numpy(secret)[:, 2].zero_()])


def test_expanded_tensor_stays_small():
    got = there_and_back(tg.ones(1).expand(10**12))
    assert (got.shape, got.stride()) == ((10**12,), (0,))


def test_same_state_makes_the_same_bytes():
    assert content({"a": tg.ones(2), "b": [1.5]}) == content({"a": tg.ones(2), "b": [1.5]})


def test_numpy_reads_the_arrays_without_pickle():
    with np.load(io.BytesIO(content([tg.ones(2), tg.arange(3.0)])), allow_pickle=False) as archive:
        assert archive["1"].tolist() == [0.0, 1.0, 2.0]


# What is refused


class Strange(tg.Tensor):
    pass


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"optim": [0, 1, 2, {1, 2}]}, r"state\['optim'\]\[3\] is of type builtins.set"),
        ({"net": nn.Linear(1, 1)}, r"state\['net'\] is of type tapegrad.nn.linear.Linear.*state_dict\(\)"),
        ([Strange([1.0])], r"state\[0\] is of type .*Strange"),
        ([np.array([None])], r"state\[0\] is an array of object"),
        ({(1, b"x"): 0}, r"state\[\(1, b'x'\)\]\[1\] is of type builtins.bytes"),
        ((collections.defaultdict(int),), r"state\[0\] is of type collections.defaultdict"),
        (np.ma.zeros(2), r"^state is of type numpy.ma"),
        (len, r"^state is of type builtins.builtin_function_or_method"),
    ],
)
def test_what_cannot_be_saved_is_named(state, message):
    with pytest.raises(TypeError, match=message):
        content(state)


def test_cycle_is_an_error():
    state: dict[str, Any] = {"a": []}
    state["a"].append(state)
    with pytest.raises(ValueError, match=r"state\['a'\]\[0\] contains itself"):
        content(state)


def test_endless_nesting_is_an_error():
    state: list[Any] = []
    for _ in range(10_000):
        state = [state]
    with pytest.raises(ValueError, match="nested too deeply"):
        content(state)


@pytest.mark.parametrize("call", [lambda: tg.save([], 3), lambda: tg.load(3)])
def test_what_is_no_file_is_a_type_error(call):
    with pytest.raises(TypeError, match="expected a path or a binary file object, but got int"):
        call()


# Files


@pytest.mark.parametrize("name", ["state", "state.npz"])
def test_file_has_the_name_that_was_given(tmp_path, name):
    tg.save([1], tmp_path / name)
    assert os.listdir(tmp_path) == [name]
    assert tg.load(str(tmp_path / name)) == [1]


def test_missing_file_is_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        tg.load(tmp_path / "none")


def test_missing_folder_is_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        tg.save([], tmp_path / "none" / "state")


@pytest.mark.parametrize("step", ["write_array", "fsync", "replace"])
def test_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "state"
    tg.save("old", path)
    module = npy if step == "write_array" else os
    original, calls = getattr(module, step), []

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        calls.append(tg.load(path))
        if step == "write_array" and len(calls) == 1:
            return original(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        tg.save(["new", tg.ones(2)], path)
    assert (os.listdir(tmp_path), tg.load(path), set(calls)) == (["state"], "old", {"old"})


def test_failed_save_leaves_the_old_file(tmp_path):
    tg.save("old", tmp_path / "state")
    with pytest.raises(TypeError):
        tg.save(["new", object()], tmp_path / "state")
    assert tg.load(tmp_path / "state") == "old"


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "state"
    tg.save("old", path)
    path.chmod(0o640)
    tg.save("new", path)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "state")
    tg.save("new", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert tg.load(tmp_path / "state") == "new"


def test_file_object_is_read_from_its_position():
    file = io.BytesIO(b"before")
    file.seek(0, os.SEEK_END)
    tg.save([1], file)
    file.seek(6)
    assert tg.load(file) == [1]


def test_the_first_of_two_states_in_a_file_is_not_mistaken_for_the_second():
    with pytest.raises(ValueError, match="something else before the state"):
        loaded(content("first") + content("second"))


# Damage

SAMPLE = {
    "weights": [tg.arange(6.0), nn.Parameter(tg.ones(2, 3)), tg.tensor(1.5, dtype=tg.float32)],
    (1, 2): {"lr": 0.1, "nan": math.nan},
    "mask": np.array([True, False]),
}


@settings(max_examples=150)
@given(st.randoms(use_true_random=False), st.sampled_from(["cut", "bit", "byte", "delete", "insert", "directory"]))
def test_damaged_file_is_an_error_or_right(rnd: random.Random, kind: str):
    data = bytearray(content(SAMPLE))
    place, count = rnd.randrange(len(data)), rnd.randrange(1, 9)
    match kind:
        case "cut":
            del data[place:]
        case "bit":
            data[place] ^= 1 << rnd.randrange(8)
        case "byte":
            data[place] = rnd.randrange(256)
        case "delete":
            del data[place : place + count]
        case "insert":
            data[place:place] = rnd.randbytes(count)
        case "directory":
            for _ in range(3):
                data[rnd.randrange(len(data) - 300, len(data))] = rnd.randrange(256)
    try:
        got = loaded(bytes(data))
    except ValueError as error:
        outcome, expected = str(error)[:28], "cannot load the file object:"
    else:
        outcome, expected = got, SAMPLE
    assert_same(outcome, expected)


def entries(state: Any) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content(state))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return file.getvalue()


def as_entry(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def described(description: Any, *arrays: np.ndarray) -> bytes:
    """An archive with a structure of choice, sound as a zip file."""
    text = description if isinstance(description, str) else json.dumps(description)
    parts = {"structure.npy": np.frombuffer(text.encode(), np.uint8)} | {f"{k}.npy": array for k, array in enumerate(arrays)}
    return archived({name: as_entry(array) for name, array in parts.items()})


def node(node: Any, *arrays: np.ndarray) -> bytes:
    return described(
        {"format": "tapegrad state", "version": 1, "arrays": len(arrays), "nodes": [node], "state": {"node": 0}}, *arrays
    )


def doubled_key(depth: int, copies: int = 2) -> bytes:
    """A dict whose key is a tuple of tuples, each there several times, and so on."""
    nodes = [{"tuple": []}, *({"tuple": [{"node": k}] * copies} for k in range(depth)), {"dict": [[{"node": depth}, 1]]}]
    return described({"format": "tapegrad state", "version": 1, "arrays": 0, "nodes": nodes, "state": {"node": depth + 1}})


EIGHT = np.zeros(8, np.uint8)
MALFORMED = {
    "no zip file": (lambda: b"text", "not a zip file"),
    "empty": (lambda: b"", "not a zip file"),
    "zip file of something else": (lambda: archived({"a.txt": b"a"}), "a.txt"),
    "empty zip file": (lambda: archived({}), "something else before"),
    "bools that overlap": (
        lambda: node({"array": {"memory": 0, "view": ["|b1", 0, [10**9, 4, 4], [0, 1, 1]]}}, EIGHT + np.uint8(2)),
        "neither true nor false",
    ),
    "no structure": (lambda: archived({"0.npy": as_entry(np.zeros(2))}), "do not belong to it"),
    "missing array": (lambda: archived({k: v for k, v in entries(SAMPLE).items() if k != "1.npy"}), "do not belong"),
    "entry beside": (lambda: archived(entries(SAMPLE) | {"9.npy": as_entry(np.zeros(2))}), "do not belong"),
    "array beside": (lambda: archived(entries([1]) | {"0.npy": as_entry(np.zeros(2))}), "should hold 0 arrays, but holds 1"),
    "entry that escapes": (lambda: archived(entries(SAMPLE) | {"../0.npy": as_entry(np.zeros(2))}), r"\.\./0\.npy"),
    "compressed": (lambda: archived(entries(SAMPLE), zipfile.ZIP_DEFLATED), "compressed"),
    "objects": (lambda: archived(entries(SAMPLE) | {"0.npy": as_entry(np.array([print]))}), "array of object"),
    "longer array": (lambda: archived(entries(SAMPLE) | {"0.npy": as_entry(np.zeros(2)) + b"x"}), "bytes where"),
    "malformed JSON": (lambda: described('{"format": '), "Expecting value"),
    "deep JSON": (lambda: described("[" * 100_000), "recursion"),
    "JSON of something else": (lambda: described([1]), "its structure is not that of a state"),
    "no nodes": (lambda: described({"format": "tapegrad state", "version": 1, "arrays": 0}), "there is no 'nodes'"),
    "node of itself": (lambda: node({"list": [{"node": 0}]}), "there is no earlier node 0"),
    "node before": (lambda: node({"list": [{"node": -1}]}), "there is no earlier node -1"),
    "unknown node": (lambda: node({"code": "print(1)"}), "malformed code"),
    "unknown value": (lambda: node({"list": [{"code": "print(1)"}]}), "unknown kind of value 'code'"),
    "array that is not there": (lambda: node({"array": {"memory": 1}}, EIGHT), "there is no array 1"),
    "view beyond the end": (lambda: node({"array": {"memory": 0, "view": ["<f8", 8, [1], [8]]}}, EIGHT), "a view of bytes 8 to 16"),
    "view before the beginning": (
        lambda: node({"array": {"memory": 0, "view": ["<i1", 0, [2], [-1]]}}, EIGHT),
        "a view of bytes -1",
    ),
    "view of objects": (lambda: node({"array": {"memory": 0, "view": ["|O", 0, [1], [8]]}}, EIGHT), "an array of object"),
    "scalar of objects": (lambda: node({"list": [{"scalar": ["|O", "00" * 8]}]}), "a scalar of object"),
    "bools of other bytes": (lambda: node({"array": {"memory": 0}}, np.full(2, 3, np.uint8).view(bool)), "neither true nor false"),
    "tracked integers": (lambda: node({"tensor": {"memory": 0, "requires_grad": True}}, EIGHT), "require gradients"),
    "list as a key": (lambda: node({"dict": [[{"node": 0}, 1]]}), "earlier node"),
    "key that hashes for ever": (lambda: doubled_key(60), "a key of a dict"),
    "key that hashes too deeply": (lambda: doubled_key(1000, 1), "a key of a dict"),
    "the same key twice": (lambda: node({"dict": [[1, 1], [True, 2]]}), "same key twice"),
}


@pytest.mark.parametrize(("make", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_file_is_refused(make, reason):
    with pytest.raises(ValueError, match=rf"(?s)cannot load the file object: .*{reason}"):
        loaded(make())


def test_array_that_claims_to_be_huge_is_refused():
    part = as_entry(np.zeros(2)).replace(b"(2,), }           ", b"(200000000000,), }")
    with pytest.raises(ValueError, match="has 16 bytes where 1600000000000 are needed"):
        loaded(archived(entries(SAMPLE) | {"0.npy": part}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_refused():
    file = io.BytesIO(content(SAMPLE))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("0.npy", as_entry(np.zeros(2)))
    with pytest.raises(ValueError, match="two entries have the same name"):
        loaded(file.getvalue())


def test_version_of_the_future_is_refused():
    with pytest.raises(ValueError, match="of version 2 of the format, and this tapegrad reads version 1"):
        loaded(described({"format": "tapegrad state", "version": 2}))


def test_error_names_the_file(tmp_path):
    (tmp_path / "broken").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"cannot load '.*broken'"):
        tg.load(tmp_path / "broken")
