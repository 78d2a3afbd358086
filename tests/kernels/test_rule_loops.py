"""The two tables of rules: what is compiled together, and the loops that each other rule has, loaded when they are used."""

import numpy as np
import pytest
from fresh_processes import environment, run
from many_cases import each

import tapegrad as tg
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.engine.layout import KERNEL_COUNT
from tapegrad.kernels.opcodes import LOOPS, OPCODES, PRIMAL_LOOP, is_compilable
from tapegrad.recording.primal_values import forward
from tapegrad.rules.table import COMMON, RULES, Rule
from tapegrad.tape.tape import TAPE

HALVES = (slice(0, SMALL // 2), slice(SMALL // 2, None))
COMPILED = [rule for rule in RULES[COMMON:] if is_compilable(rule)]
LOADED = """
import tapegrad as tg
from tapegrad.kernels.opcodes import LOOPS
from tapegrad.tape.tape import TAPE

def loaded():
    return [name for name, word in LOOPS.items() if TAPE.kernel_table[word]]

x = tg.tensor({value}, requires_grad=True)
(x * x + tg.sin(x)).sum().backward()
print(loaded())
tg.erf(x).sum().backward()
print(loaded())
"""


@pytest.mark.parametrize("value", [0.5, [0.5, 0.25]], ids=["scalar", "array"])
def test_loops_of_a_rule_are_loaded_when_its_first_row_is_recorded(value: object) -> None:
    assert run(LOADED.format(value=value), environment()).stdout == "[]\n['loops_of_erf']\n"


ARRAY_THEN_NUMBER = """
import tapegrad as tg

x = tg.tensor([0.5, 0.25], requires_grad=True)
tg.erf(x).sum().backward()
y = tg.tensor(0.0, requires_grad=True)
(y * y).backward()
tg.erf(y).backward()
print(y.grad.item())
"""


def test_number_after_an_array_has_the_rules_derivative() -> None:
    assert float(run(ARRAY_THEN_NUMBER, environment()).stdout) == 1.1283791670955126


def test_each_rule_beyond_the_common_ones_has_a_word_for_its_loops() -> None:
    assert list(LOOPS.values()) == list(range(KERNEL_COUNT, KERNEL_COUNT + len(RULES) - COMMON))


def test_rules_that_the_engine_knows_by_number_are_common() -> None:
    known = ["_alias", "_mul0", "pow", "square", "_cube", "_root", "_inverse"]
    assert OPCODES["_alias"] == 0
    assert all(OPCODES[name] < COMMON for name in known)


def test_rule_whose_value_only_numpy_has_is_recorded() -> None:
    assert not is_compilable(RULES[OPCODES["cbrt"]])
    x = tg.tensor([-8.0, 27.0], requires_grad=True)
    tg.cbrt(x).sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [1.0 / 12.0, 1.0 / 27.0], rtol=1e-15)


@pytest.mark.parametrize("rule", COMPILED, ids=[rule.name for rule in COMPILED])
def test_compiled_value_is_that_of_the_function(rule: Rule) -> None:
    """The loop of the value, which scalars take in compiled operators, against the function that arrays take."""
    rng = np.random.default_rng(0)
    points = [rng.uniform(low, high, 50) for low, high in rule.domain]
    TAPE.need(f"loops_of_{rule.name}")
    out = np.empty(50)
    addresses = [p.ctypes.data for p in (*points, *[out] * (3 - len(points)), out)]
    TAPE.call_loop_of_rule(int(TAPE.kernel_table[LOOPS[f"loops_of_{rule.name}"]]), PRIMAL_LOOP, 50, *addresses, 0, 0, 0)
    np.testing.assert_allclose(out, forward[OPCODES[rule.name]](*points), rtol=1e-13, atol=1e-15)


@each("rule", RULES, ids=lambda rule: rule.name)
def test_values_of_a_large_array_have_the_bits_of_its_parts(rule: Rule) -> None:
    """Beyond `SMALL` elements a value may be one compiled loop, and conditions choose without branches."""
    edges = [0.0, -0.0, np.nan, np.inf, -np.inf]
    rng = np.random.default_rng(0)
    columns = [np.r_[rng.uniform(low - 1.0, high + 1.0, SMALL), edges, low, high, -low, -high] for low, high in rule.domain]
    value = forward[OPCODES[rule.name]]
    for operands in (columns, [columns[0], *(float(column[1]) for column in columns[1:])]):
        with np.errstate(all="ignore"):
            whole = value(*operands)
            halves = [value(*(a if isinstance(a, float) else a[part] for a in operands)) for part in HALVES]
        assert whole.tobytes() == np.concatenate(halves).tobytes()
