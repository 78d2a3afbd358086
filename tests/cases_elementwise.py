"""Elementwise operations that are no rules: compositions and keywords of rules."""

import numpy as np
from operation_case import Case

import tapegrad as tg

A = np.array([[0.7, -1.3, 2.2], [-0.4, 1.6, -2.8]])
B = np.array([[1.9, 0.6, -1.1], [2.5, -0.8, 1.4]])

CASES: list[Case] = [
    Case("add", lambda x, y: tg.add(x, y, alpha=3.0), (A, B), lambda x, y: x + 3.0 * y, "alpha"),
]
