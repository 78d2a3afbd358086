"""Arrays of several layouts at which reductions, scans and norms are tested."""

import numpy as np

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(3, 4))
CUBE = RNG.normal(size=(2, 3, 4))
STRIDED = RNG.normal(size=(4, 3)).T[:, ::2]
POINTS = {"matrix": MATRIX, "strided": STRIDED, "vector": MATRIX[0], "number": np.array(0.7)}
INF = float("inf")
