"""Loops that the library has twice, for processors with wider registers and for those without: both have the same bits."""

from pathlib import Path

import numpy as np
import pytest
from fresh_processes import environment, run

from tapegrad.engine.layout import BLOCK, ROOM_BLOCKS
from tapegrad.kernels import library
from tapegrad.kernels.opcodes import OPCODES, PRIMAL_LOOP, has_staged_value, has_value_loop, partial_texts
from tapegrad.kernels.second_partials import second_texts
from tapegrad.rules.table import COMMON, RULES
from tapegrad.tape.function_table import functions_in
from tapegrad.tape.tape import TAPE

WIDER = library.FEATURES["x86-64-v4"]
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e308, -1e308, 0.5, 1.0, -1.0, 2.0]
COUNTS = (1, 7, 8, 33, BLOCK - 1)
NUMBERS = {
    "partial_block": range(len(partial_texts())),
    "value_block": [OPCODES[rule.name] for rule in RULES[:COMMON] if has_value_loop(rule) or has_staged_value(rule)],
    "second_block": range(len(second_texts())),
} | {f"loops_of_{rule.name}": range(PRIMAL_LOOP + 1) for rule in RULES[COMMON:]}
Forms = tuple[library.Functions, library.Functions]


@pytest.fixture(scope="module")
def forms(built: Path) -> Forms:
    """Functions of the library, the narrow and the wide ones."""
    found = library.find(str(built))
    if found is None or set(WIDER) - library.available_features():
        pytest.skip("there is no library here, or the registers are not wider")
    return library.Functions(found.module, False), library.Functions(found.module, True)


def test_functions_that_the_library_has_not_are_no_attributes(forms: Forms) -> None:
    for name in ("no_such_function", f"{library.WIDE}partial_block", "_numbers_of"):
        assert not any(hasattr(form, name) for form in forms)


def columns(count: int) -> np.ndarray:
    """Numbers of all sizes and both signs, near the places where functions change, and the odd ones."""
    rng = np.random.default_rng(count)
    found = rng.uniform(-3.0, 3.0, (5, count)) * 10.0 ** rng.integers(-3, 3, (5, count))
    found[:, ::5] = rng.choice(EDGES, found[:, ::5].shape)
    found[0, 1::4] = rng.integers(0, 3, found[0, 1::4].shape)  # orders of derivatives
    return found


@pytest.mark.parametrize("name", NUMBERS)
def test_loops_of_rules_have_the_same_bits(name: str, forms: Forms) -> None:
    for count in COUNTS:
        x, y, w, z, g = columns(count)
        for functions in {0, functions_in(TAPE.kernel_table)}:
            for number in NUMBERS[name]:
                results = []
                for form in forms:
                    out, room = np.full(count, 7.0), np.zeros(BLOCK * (ROOM_BLOCKS + 3))
                    addresses = [array.ctypes.data for array in (x, y, w, z, g, out)]
                    call(getattr(form, name).get(), number, count, *addresses, functions, room.ctypes.data)
                    results.append(np.where(np.isnan(out), np.nan, out).view(np.int64))
                np.testing.assert_array_equal(*results)


def call(address: int, *words: int) -> None:
    import ctypes

    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(words))(address)(*words)


def test_wide_loops_are_others(forms: Forms) -> None:
    narrow, wide = forms
    names = [name for name in narrow.module.__doc__.split() if not name.startswith(library.WIDE)]
    assert {name for name in names if getattr(narrow, name).get() != getattr(wide, name).get()} >= {
        *NUMBERS,
        "exponential_shares",
        "weigh_differences",
    }


WITHOUT = """
from tapegrad.kernels import library
features = library.available_features()
library.available_features = lambda: features - {"AVX512_SKX"}
import tapegrad as tg
from tapegrad.tape.tape import TAPE
x = tg.full((5000,), 0.5, requires_grad=True)
tg.nn.functional.gelu(x).sum().backward()
module = TAPE.kernels.module
assert TAPE.kernels.value_block.get() == module.address(module.__doc__.split().index("value_block"))
print(x.grad[0].item())
"""


def test_processor_without_wider_registers_has_the_narrow_loops() -> None:
    assert float(run(WITHOUT, environment()).stdout) == pytest.approx(0.8674951)
