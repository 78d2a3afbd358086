"""A long short-term memory layer with full weights over a sequence, and the cross-entropy of its last state."""

import numba
import numpy as np
from program import Program


@numba.njit
def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


@numba.njit
def loss(w, u, b, out_w, sequence, label):
    hidden = u.shape[1]
    h = np.zeros(hidden)
    c = np.zeros(hidden)
    for t in range(sequence.shape[0]):
        gates = w @ sequence[t] + u @ h + b
        i = sigmoid(gates[:hidden])
        f = sigmoid(gates[hidden : 2 * hidden])
        g = np.tanh(gates[2 * hidden : 3 * hidden])
        o = sigmoid(gates[3 * hidden :])
        c = f * c + i * g
        h = o * np.tanh(c)
    scores = out_w @ h
    scores = scores - np.max(scores)
    return np.log(np.sum(np.exp(scores))) - scores[label]


def twin(w, u, b, out_w, sequence, label):
    h = c = np.zeros(u.shape[1], complex)
    for x in sequence:
        i, f, g, o = np.split(w @ x + u @ h + b, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
    p = np.exp(out_w @ h)
    return -np.log(p[label] / p.sum())


RANDOM = np.random.default_rng(8)
PROGRAM = Program(
    "LSTM",
    loss,
    (
        RANDOM.standard_normal((12, 2)),
        RANDOM.standard_normal((12, 3)),
        RANDOM.standard_normal(12),
        RANDOM.standard_normal((4, 3)),
        RANDOM.standard_normal((5, 2)),
        2,
    ),
    (0, 1, 2, 3),
    twin,
)
