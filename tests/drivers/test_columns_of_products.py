"""Products of a linear tape with the columns of a matrix: all columns in one call give what each gives by itself."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.linear.linear_tape import LinearTape, linear_tape

LENGTH = 700  # rows this long are swept for one vector after the other, up to six
COUNTS = (1, 2, 4, 6, 7, 9, 33)


def outputs_of(x: Any) -> list[Any]:
    """Pieces, sums, joined arrays of which a part depends on nothing, numbers, and an output that is an input."""
    sine, tail = tg.sin(x), x[1:] * x[:-1]
    joined = tg.cat([tg.ones(5, dtype=tg.float64), sine * sine, tail])
    total = (sine * x).sum()
    return [joined * 2.0, total * total + total, x, tail.exp(), tg.ones(3, dtype=tg.float64)]


def tape_of(second: bool = False) -> LinearTape:
    x = tg.tensor(np.random.default_rng(1).normal(size=LENGTH), requires_grad=True)
    found = outputs_of(x)
    made = linear_tape([x], [sum((y * y).sum() for y in found[:4])] if second else found, second)
    assert made is not None
    return made


def columns(rows: int, count: int) -> np.ndarray:
    """Vectors of which some are zero in long runs, and one everywhere."""
    found = np.random.default_rng(rows).normal(size=(rows, count))
    for k in range(count):
        found[k * rows // count : (k + 2) * rows // count, k] = 0.0
    found[:, count // 2] *= count == 1
    return found


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    return np.array_equal(found, expected)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_pulled(count: int, order: Any) -> None:
    tape = tape_of()
    given = np.array(columns(sum(size for _, size in tape.outputs), count), order=order)
    each = [tape.pull(given[:, k : k + 1]) for k in range(count)]
    assert same(tape.pull(given), np.concatenate(each, axis=1))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_pushed(count: int, order: Any) -> None:
    tape = tape_of()
    given = np.array(columns(LENGTH, count), order=order)
    each = [tape.push(given[:, k : k + 1]) for k in range(count)]
    assert same(tape.push(given), np.concatenate(each, axis=1))


@pytest.mark.parametrize("count", COUNTS)
def test_curved(count: int) -> None:
    tape = tape_of(second=True)
    given = columns(LENGTH, count)
    each = [tape.curve(given[:, k : k + 1]) for k in range(count)]
    np.testing.assert_allclose(tape.curve(given), np.concatenate(each, axis=1), rtol=1e-13, atol=1e-13)


def test_products_are_those_of_the_matrix() -> None:
    tape = tape_of()
    rows = sum(size for _, size in tape.outputs)
    matrix = tape.push(np.eye(LENGTH))
    given = columns(rows, 6)
    np.testing.assert_allclose(tape.pull(given), matrix.T @ given, rtol=1e-12, atol=1e-12)


def test_what_is_no_number_comes_through_and_zeros_mask_it() -> None:
    x = tg.tensor(np.zeros(LENGTH), requires_grad=True)
    tape = linear_tape([x], [tg.sqrt(x), x * 2.0])
    assert tape is not None
    given = np.zeros((2 * LENGTH, 3))
    given[LENGTH:, 0], given[0, 1], given[-1, 2] = 1.0, np.nan, np.inf
    found = tape.pull(given)
    assert same(found[:, 0], np.full(LENGTH, 2.0))
    assert np.isnan(found[0, 1]) and not found[1:, 1].any()
    assert found[-1, 2] == np.inf and not found[:-1, 2].any()


def test_vectors_may_be_of_other_dtypes_and_strides() -> None:
    tape = tape_of()
    rows = sum(size for _, size in tape.outputs)
    whole = np.random.default_rng(2).integers(-3, 4, size=(2 * rows, 6))
    expected = tape.pull(np.array(whole[::2], np.float64))
    assert same(tape.pull(whole[::2]), expected)
    assert same(tape.pull(whole.astype(np.float32)[::2]), expected)
    assert same(tape.pull(whole.astype(np.float64)[::-2][::-1][:, ::-1]), tape.pull(np.array(whole[1::2, ::-1], np.float64)))


def test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="elements"):
        tape_of().push(np.ones((LENGTH + 1, 1)))


def test_output_that_depends_on_nothing() -> None:
    x = tg.tensor(np.ones(3), requires_grad=True)
    tape = linear_tape([x], [tg.ones(2, dtype=tg.float64)])
    assert tape is not None
    for count in (1, 4, 20):
        assert not tape.pull(np.ones((2, count))).any() and not tape.push(np.ones((3, count))).any()
