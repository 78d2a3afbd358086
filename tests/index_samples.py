"""Index keys that the tests of reading and of writing share."""

from typing import Any

import numpy as np

MATRIX = np.random.default_rng(3).normal(size=(3, 4))
MASK = MATRIX > 0.0
EMPTY: list[int] = []

# Keys that mean the same in NumPy and in PyTorch.
BASIC: list[Any] = [
    0, -1, (0, 1), (-1, -1), slice(1, None), slice(None, None, 2), slice(-100, 100), slice(2, 1), (slice(None), 0),
    (slice(None), slice(1, 3)), (0, slice(1, None)), None, (None, 0), (0, None), Ellipsis, (Ellipsis, 0), (0, Ellipsis),
    (Ellipsis, None, 0), (None, Ellipsis, None), (), (slice(0, 2), None, slice(0, 3, 2)),
]  # fmt: skip
ADVANCED: list[Any] = [
    [0, 2], [2, 0, 2], [-1, 0], EMPTY, [[0, 1], [2, 0]], ([0, 1], [1, 3]), ([0, 0], [1, 1]), ([[0], [1]], [0, 2, 2]),
    (slice(None), [3, 0, 3]), ([0, 2], slice(1, 3)), ([0, 1], None), (None, [0, 1]), (Ellipsis, [0, 2]),
    ([0, 2], Ellipsis), (slice(None), None, [1, 2]), [True, False, True], ([0], [True, False, True, True]), MASK,
    (MASK, None), (slice(None), np.array([True, False, True, False])), np.array([1, 0, 1], np.int16), range(2),
    (slice(0, 2), [True, True, False, False]),
]  # fmt: skip

# Keys that neither reading nor writing accepts on MATRIX.
INDEX_ERRORS: list[tuple[Any, type[Exception], str]] = [
    (5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    ((0, -5), IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
    ([0, 3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    ((slice(None), [4]), IndexError, "index 4 is out of bounds for dimension 1 with size 4"),
    ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
    ((slice(None), slice(None), None, 0), IndexError, "too many indices for tensor of dimension 2"),
    ((MASK, 0), IndexError, "too many indices for tensor of dimension 2"),
    (
        [True, False],
        IndexError,
        "The shape of the mask [2] at index 0 does not match the shape of the indexed",
    ),
    (MASK[:, :2], IndexError, "The shape of the mask [3, 2] at index 1 does not match"),
    (([0, 1], [0, 1, 2]), IndexError, "indexing tensors could not be broadcast together with shapes [2], [3]"),
    (1.0, IndexError, "only integers, slices (`:`), ellipsis (`...`), None"),
    ("a", IndexError, "only integers, slices (`:`), ellipsis (`...`), None"),
    ([1.0], IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    (np.array([1.0]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    ([0, slice(None)], IndexError, "use a tuple"),
    ((Ellipsis, Ellipsis), IndexError, "single ellipsis"),
    (slice(None, None, -1), ValueError, "step must be greater than zero"),
    ((0, slice(None, None, 0)), ValueError, "step must be greater than zero"),
    ([[0, 1], [2]], ValueError, "expected sequence of length"),
]
