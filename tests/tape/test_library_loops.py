"""Loops that do the arithmetic of the C library or of NumPy's: they have its bits, and where they have not, they are not used."""

import ctypes
import platform
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from fresh_processes import environment, run
from many_cases import each

import tapegrad as tg
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.kernels.library import FEATURES, available_features
from tapegrad.recording.primal_values import LARGE
from tapegrad.tape import library_loops, loop_comparison
from tapegrad.tape.library_loops import KERNELS, call, loop_of, own_loop
from tapegrad.tape.loop_comparison import compared, points_of
from tapegrad.tape.tape import TAPE

RNG = np.random.default_rng(36)
EDGES = np.array([0.0, 1.0, 0.126, 0.85546875, np.pi / 2, 2.4262638092041016, 511.5, 512.0, 746.0, 950.0, 105414336.0, 2.0**54])
EDGES = np.concatenate([EDGES, [5e-324, 2.3e-308, 1e-200, 2.0**-459, 2.0**511, 1e200, np.inf, np.nan, 0.3333, 3.0, 40.0, 1e9]])
EDGES = np.concatenate([EDGES, np.nextafter(EDGES, 0.0), np.nextafter(EDGES, np.inf)])
EDGES = np.concatenate([EDGES, -EDGES])
ANGLES = [np.sin, np.cos]
PAIRS = [np.hypot, np.logaddexp, np.logaddexp2]
LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
IS_GLIBC = platform.libc_ver()[0] == "glibc" and platform.machine() == "x86_64"
# NumPy's own library of exponentials is in its packages for Linux, and is called on these processors.
HAS_VECTORS = IS_GLIBC and set(FEATURES["x86-64-v4"]) <= available_features()
OF_C_LIBRARY = [ufunc for ufunc in KERNELS if ufunc is not np.exp]
FOUND = np.show_config(mode="dicts")["SIMD Extensions"]["found"]  # the names that this NumPy has
Array = np.ndarray[Any, Any]


def assert_same_bits(found: Array, expected: Array) -> None:
    """As numbers, every nan being one, and in the signs of zeros."""
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found)[~np.isnan(found)], np.signbit(expected)[~np.isnan(found)])


def spread(count: int, least: float, largest: float) -> Array:
    """Numbers of both signs whose logarithms are spread evenly."""
    sizes = np.exp(RNG.uniform(np.log(least), np.log(largest), count))
    return RNG.choice([-1.0, 1.0], count) * sizes


def samples(ufunc: Any) -> list[tuple[Array, ...]]:
    """Operands that are computed here, and blocks with some that are not."""
    count = 40_000
    if ufunc in ANGLES:
        turns = np.round(RNG.uniform(-6e7, 6e7, count)) * (np.pi / 2)
        quick = [RNG.uniform(-3.0, 3.0, count), spread(count, 1e-300, 1e8), turns, turns + spread(count, 1e-12, 0.2)]
        return [(x,) for x in (*quick, spread(count, 1e-3, 1e300), np.tile(EDGES, 40), RNG.permutation(np.tile(EDGES, 40)))]
    if ufunc is np.exp:
        sixteenths = np.round(RNG.uniform(-16300.0, 16300.0, count)) * 0.043321698784996574
        quick = [RNG.uniform(-707.0, 707.0, count), RNG.uniform(-3.0, 3.0, count), spread(count, 1e-300, 700.0), sixteenths]
        masks = np.where(RNG.random(count) < 0.3, RNG.choice(EDGES, count), RNG.uniform(-3.0, 3.0, count))
        none = np.where(
            RNG.random(count) < 0.3, RNG.choice([-np.inf, np.nan, -1e300, -746.0], count), RNG.uniform(-3.0, 3.0, count)
        )
        ends = RNG.uniform(-760.0, -700.0, count), RNG.uniform(700.0, 712.0, count)
        return [(x,) for x in (*quick, masks, none, *ends, np.tile(EDGES, 40), RNG.permutation(np.tile(EDGES, 40)))]
    x = spread(count, 1e-3, 1e3)
    pairs = [(x, spread(count, 1e-3, 1e3)), (x, x + spread(count, 1e-18, 1e3)), (x, x * spread(count, 1e-18, 1.0))]
    pairs += [(np.zeros(count), spread(count, 1e-300, 700.0)), (spread(count, 1e-300, 1e300), spread(count, 1e-300, 1e300))]
    grid = np.stack([a.ravel() for a in np.meshgrid(EDGES, EDGES)])
    return [*pairs, tuple(grid), tuple(RNG.permutation(grid, axis=1))]


@each("ufunc", list(KERNELS))
def test_loops_have_the_bits_of_numpy(ufunc: Any) -> None:
    for operands in samples(ufunc):
        out = np.empty_like(operands[0])
        with np.errstate(all="ignore"):
            LARGE[ufunc](*operands, out=out)
            assert_same_bits(out, ufunc(*operands))


@pytest.mark.skipif(not IS_GLIBC, reason="of other C libraries nothing is known")
@each("ufunc", OF_C_LIBRARY)
def test_loops_are_used_with_this_library(ufunc: Any) -> None:
    assert own_loop(ufunc)[0]
    assert loop_of(ufunc) == own_loop(ufunc)


@pytest.mark.skipif(not HAS_VECTORS, reason="NumPy takes exponentials from its own library on some processors only")
def test_exponentials_are_by_our_loop_where_numpy_has_its_library() -> None:
    assert own_loop(np.exp)[0]
    assert loop_of(np.exp) == own_loop(np.exp)


@pytest.mark.skipif(not HAS_VECTORS, reason="NumPy takes exponentials from its own library on some processors only")
@each("name", ["sigmoid", "silu", "elu"])
def test_rules_have_their_exponentials_by_our_loop(name: str) -> None:
    code = BLOCKS_OF_RULES.format(name=name)
    assert run(code, environment()).stdout.split() == ["True"]


BLOCKS_OF_RULES = """
import tapegrad as tg
from tapegrad.kernels.opcodes import FUNCTIONS
from tapegrad.tape.function_table import WORDS
from tapegrad.tape.library_loops import own_loop
from tapegrad.tape.tape import TAPE
import numpy as np

tg.nn.functional.{name}(tg.ones(3, requires_grad=True)).sum().backward()
table = TAPE.kernel_table
at = len(table) - WORDS + 2 * FUNCTIONS.index("exp")
print(tuple(table[at : at + 2]) == own_loop(np.exp))
"""


@each("ufunc", list(KERNELS))
def test_loops_take_any_strides_and_lengths(ufunc: Any) -> None:
    address, how = loop_of(ufunc)
    memory = [spread(8000, 1e-3, 30.0) for _ in range(ufunc.nin)]
    memory[0][5::701] = 1e301
    for count in (0, 1, 2, 3, 4, 5, 7, 8, 15, 255, 256, 257, 511, 512, 513, 1300):
        for steps in ((8, 8, 8), (8, 8, 16), (24, 8, 8), (0, 8, 8), (8, 0, 8), (-8, 16, 24)):
            views = [np.lib.stride_tricks.as_strided(a[2000:], (count,), (step,)) for a, step in zip(memory, steps, strict=False)]
            out = np.full(4000, 7.0)
            into = np.lib.stride_tricks.as_strided(out, (count,), (steps[2],))
            places = np.array([a.__array_interface__["data"][0] for a in (*views, into)])
            strides = np.array([*steps[: ufunc.nin], steps[2]])
            counts = np.array([count])
            LOOP(address)(places.ctypes.data, counts.ctypes.data, strides.ctypes.data, how)
            expected = np.full(4000, 7.0)
            with np.errstate(all="ignore"):
                np.lib.stride_tricks.as_strided(expected, (count,), (steps[2],))[:] = ufunc(*views)
            assert_same_bits(out, expected)


@each("ufunc", list(KERNELS))
def test_the_result_may_lie_where_an_operand_does(ufunc: Any) -> None:
    loop = loop_of(ufunc)
    for count in (5, 300, 1111):
        operands = [spread(count, 1e-3, 710.0 if ufunc is np.exp else 1e3) for _ in range(ufunc.nin)]
        for k in range(ufunc.nin):
            given = [a.copy() for a in operands]
            call(loop, given[k], *given)
            with np.errstate(all="ignore"):
                assert_same_bits(given[k], ufunc(*operands))


@pytest.mark.skipif(not HAS_VECTORS, reason="there are no wide registers that could be lacking")
def test_exponentials_are_numpys_where_the_library_has_no_loops_for_wide_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(TAPE.kernels, ModuleType):
        pytest.skip("what is compiled here is for this processor")
    monkeypatch.setattr(library_loops, "_found", {})
    monkeypatch.setattr(TAPE.kernels, "is_wide", False)
    assert own_loop(np.exp) == (0, 0)


def test_sigmoids_of_any_length_have_the_bits_that_numpys_exponential_gives() -> None:
    for (x,) in samples(np.exp):
        for count in (1, 3, 8, 17, 255, 256, 259, 511, 512, 2049, len(x)):
            leaf = tg.tensor(x[:count], requires_grad=True)
            tg.nn.functional.silu(leaf).backward(tg.ones(count))
            with np.errstate(all="ignore"):
                e = np.exp(-np.abs(x[:count]))
                sigmoid = np.where(x[:count] >= 0.0, 1.0, e) / (1.0 + e)
                slope = sigmoid * (1.0 + x[:count] * (1.0 - sigmoid))
            assert_same_bits(tg.sigmoid(leaf).detach().numpy(), sigmoid)
            assert_same_bits(leaf.grad.numpy(), np.where(slope == 0.0, 0.0, slope))


WITHOUT_FUSED = """
import numpy as np
import tapegrad as tg
from tapegrad.recording.primal_values import LARGE
from tapegrad.tape.library_loops import KERNELS, own_loop
from tapegrad.tape.loop_comparison import points_of

rng = np.random.default_rng(0)
for ufunc in KERNELS:
    operands = [np.concatenate([a, rng.uniform(-6.0, 6.0, 30_000)]) for a in points_of(ufunc)[0]]
    out = np.empty_like(operands[0])
    with np.errstate(all="ignore"):
        LARGE[ufunc](*operands, out=out)
        expected = ufunc(*operands)
    print(ufunc.__name__, own_loop(ufunc)[0] != 0, (out == expected).all())
"""


@pytest.mark.skipif(not IS_GLIBC, reason="of other C libraries nothing is known")
def test_loops_are_not_used_where_the_library_rounds_otherwise() -> None:
    # glibc takes other code where it is told that the processor cannot fuse products and sums.
    lines = run(WITHOUT_FUSED, {**environment(), "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2"}).stdout.split("\n")
    found = dict(line.split(" ", 1) for line in lines if line)
    assert found.pop("exp").endswith(" True")
    assert found == {
        "sin": "False True",
        "cos": "False True",
        "hypot": "True True",
        "logaddexp": "False True",
        "logaddexp2": "True True",  # whose logarithm is that of the library, with products and sums rounded each
    }


@pytest.mark.skipif(not HAS_VECTORS, reason="there are no wide registers that could be left alone")
def test_exponentials_are_numpys_where_it_calls_the_c_library() -> None:
    features = {"NPY_DISABLE_CPU_FEATURES": "X86_V4" if "X86_V4" in FOUND else "AVX512_SKX"}
    lines = run(WITHOUT_FUSED, {**environment(), **features}).stdout.split("\n")
    assert "exp False True" in lines


@each("ufunc", list(KERNELS))
def test_values_are_numpys_where_loops_are_not_used(ufunc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_loops, "_found", dict.fromkeys(KERNELS, (0, 0)))
    operands = [spread(3 * SMALL, 1e-3, 30.0) for _ in range(ufunc.nin)]
    tensors = [tg.tensor(a) for a in operands]
    assert_same_bits(getattr(tg, ufunc.__name__)(*tensors).numpy(), ufunc(*operands))


@pytest.mark.skipif(not IS_GLIBC, reason="of other C libraries nothing is known")
@each("ufunc", list(KERNELS) if HAS_VECTORS else OF_C_LIBRARY)
def test_a_loop_is_not_used_if_one_digit_of_its_results_is_another(ufunc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, left = points_of(ufunc)
    for operands, at in ((quick, 0), (quick, -1), (left, 0)):

        def other(*values: Array, count: int = len(operands[0]), at: int = at) -> Array:
            results = ufunc(*values)
            if len(results) == count:
                results[at] = np.nextafter(results[at], 9.0)
            return results

        monkeypatch.setattr(loop_comparison, "points_of", lambda _: (quick, left))
        address, how = own_loop(ufunc)
        assert compared(ufunc, address, (how,)) == (address, how)
        assert compared(other, address, (how,)) == (0, 0)


@pytest.mark.skipif(not IS_GLIBC, reason="of other C libraries nothing is known")
@each("ufunc", [np.logaddexp, np.logaddexp2])
def test_one_way_of_rounding_agrees_and_no_other(ufunc: Any) -> None:
    address, own = own_loop(ufunc)
    assert [how for how in KERNELS[ufunc][1] if compared(ufunc, address, (how,)) != (0, 0)] == [own]


SLOPES: dict[Any, Any] = {
    np.exp: lambda x: (np.exp(x),),
    np.sin: lambda x: (np.cos(x),),
    np.cos: lambda x: (-np.sin(x),),
    np.hypot: lambda x, y: (x / np.hypot(x, y), y / np.hypot(x, y)),
    np.logaddexp: lambda x, y: (1.0 / (1.0 + np.exp(y - x)), 1.0 / (1.0 + np.exp(x - y))),
    np.logaddexp2: lambda x, y: (1.0 / (1.0 + np.exp2(y - x)), 1.0 / (1.0 + np.exp2(x - y))),
}


@each("ufunc", list(KERNELS))
def test_gradients_of_long_arrays_are_those_of_the_functions(ufunc: Any) -> None:
    operands = [spread(3 * SMALL, 1e-3, 30.0) for _ in range(ufunc.nin)]
    leaves = [tg.tensor(a, requires_grad=True) for a in operands]
    getattr(tg, ufunc.__name__)(*leaves).sum().backward()
    for leaf, slope in zip(leaves, SLOPES[ufunc](*operands), strict=True):
        if ufunc in [*ANGLES, np.exp]:
            assert_same_bits(leaf.grad.numpy(), slope)
        np.testing.assert_allclose(leaf.grad.numpy(), slope, rtol=2e-15 if ufunc is np.hypot else 1e-12)
