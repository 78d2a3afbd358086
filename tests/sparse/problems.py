"""Objectives and residuals of the kind that collections of test problems hold, written from their published formulae.

The names are those of CUTEst [1]_, where each formula can be compared. Others come with the source that it names: [2]_ for chains
and bands of elements, [3]_ for Broyden's and Powell's.

References
----------
.. [1] N. I. M. Gould, D. Orban, Ph. L. Toint, "CUTEst: a constrained and unconstrained testing environment with safe threads for
   mathematical optimization", Computational Optimization and Applications 60, 2015.
.. [2] Ph. L. Toint, "Test problems for partially separable optimization and results for the routine PSPMIN", report 83/4, Namur
   1983.
.. [3] J. J. More, B. S. Garbow, K. E. Hillstrom, "Testing unconstrained optimization software", ACM Transactions on Mathematical
   Software 7(1), 1981.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SIZE = 24


def chained_rosenbrock(x: Any) -> Any:
    """ROSENBR as a chain (GENROSE without its constant)."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def arwhead(x: Any) -> Any:
    """ARWHEAD: an arrow, by the last variable."""
    return ((x[:-1] ** 2 + x[-1] ** 2) ** 2 - 4.0 * x[:-1] + 3.0).sum()


def bdqrtic(x: Any) -> Any:
    """BDQRTIC: a band of four, and the last variable."""
    squares = x**2
    inner = squares[:-4] + 2.0 * squares[1:-3] + 3.0 * squares[2:-2] + 4.0 * squares[3:-1] + 5.0 * squares[-1]
    return ((3.0 - 4.0 * x[:-4]) ** 2 + inner**2).sum()


def broyden_tridiagonal(x: Any) -> Any:
    """BROYDN3D: residuals."""
    inner = (3.0 - 2.0 * x[1:-1]) * x[1:-1] - x[:-2] - 2.0 * x[2:] + 1.0
    first = (3.0 - 2.0 * x[:1]) * x[:1] - 2.0 * x[1:2] + 1.0
    last = (3.0 - 2.0 * x[-1:]) * x[-1:] - x[-2:-1] + 1.0
    return np.concatenate((first, inner, last))


def broyden_seven_diagonals(x: Any) -> Any:
    """BROYDN7D: powers of 7/3 of the tridiagonal residuals and of sums of distant variables."""
    half = len(x) // 2
    inner = (3.0 - 2.0 * x[1:-1]) * x[1:-1] - x[:-2] - 2.0 * x[2:] + 1.0
    first = (3.0 - 2.0 * x[0]) * x[0] - 2.0 * x[1] + 1.0
    last = (3.0 - 2.0 * x[-1]) * x[-1] - x[-2] + 1.0
    ends = np.abs(first) ** (7.0 / 3.0) + np.abs(last) ** (7.0 / 3.0)
    return ends + (np.abs(inner) ** (7.0 / 3.0)).sum() + (np.abs(x[:half] + x[half:]) ** (7.0 / 3.0)).sum()


def chained_wood(x: Any) -> Any:
    """CHAINWOO: Wood's function in overlapping pieces."""
    a, b, c, d = x[:-2:2], x[1:-2:2], x[2::2], x[3::2]
    valleys = 100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2 + 90.0 * (d - c**2) ** 2 + (1.0 - c) ** 2
    return 1.0 + (valleys + 10.0 * (b + d - 2.0) ** 2 + 0.1 * (b - d) ** 2).sum()


def cragg_levy(x: Any) -> Any:
    """CRAGGLVY."""
    a, b, c, d = x[:-2:2], x[1:-2:2], x[2::2], x[3::2]
    return ((np.exp(a) - b) ** 4 + 100.0 * (b - c) ** 6 + np.tan(c - d) ** 4 + a**8 + (d - 1.0) ** 2).sum()


def dixmaan_a(x: Any) -> Any:
    """DIXMAANA: pairs at distances of a third and of two thirds."""
    third = len(x) // 3
    far = (x[:third] * x[2 * third :]).sum()
    return 1.0 + (x**2).sum() + 0.125 * (x[: 2 * third] ** 2 * x[third:] ** 4).sum() + 0.125 * far


def edensch(x: Any) -> Any:
    """EDENSCH: the extended function of Dennis and Schnabel."""
    a, b = x[:-1], x[1:]
    return 16.0 + ((a - 2.0) ** 4 + (a * b - 2.0 * b) ** 2 + (b + 1.0) ** 2).sum()


def engval1(x: Any) -> Any:
    """ENGVAL1."""
    return ((x[:-1] ** 2 + x[1:] ** 2) ** 2 - 4.0 * x[:-1] + 3.0).sum()


def freudenstein_roth(x: Any) -> Any:
    """FREUROTH: a chain of the function of Freudenstein and Roth."""
    a, b = x[:-1], x[1:]
    one, other = a - 13.0 + ((5.0 - b) * b - 2.0) * b, a - 29.0 + ((b + 1.0) * b - 14.0) * b
    return (one**2 + other**2).sum()


def liarwhd(x: Any) -> Any:
    """LIARWHD: an arrow by the first variable."""
    return (4.0 * (x**2 - x[0]) ** 2 + (x - 1.0) ** 2).sum()


def nondia(x: Any) -> Any:
    """NONDIA: Rosenbrock's function with the first variable in all pieces."""
    return (x[0] - 1.0) ** 2 + (100.0 * (x[0] - x[:-1] ** 2) ** 2).sum()


def nondquar(x: Any) -> Any:
    """NONDQUAR: a chain, and the last variable in all of it."""
    return (x[0] - x[1]) ** 2 + (x[-2] - x[-1]) ** 2 + ((x[:-2] + x[1:-1] + x[-1]) ** 4).sum()


def powell_singular(x: Any) -> Any:
    """POWELLSG: blocks of four."""
    a, b, c, d = x[::4], x[1::4], x[2::4], x[3::4]
    return ((a + 10.0 * b) ** 2 + 5.0 * (c - d) ** 2 + (b - 2.0 * c) ** 4 + 10.0 * (a - d) ** 4).sum()


def schmidt_vetters(x: Any) -> Any:
    """SCHMVETT."""
    a, b, c = x[:-2], x[1:-1], x[2:]
    return (-1.0 / (1.0 + (a - b) ** 2) - np.sin(0.5 * (np.pi * b + c)) - np.exp(-(((a + c) / b - 2.0) ** 2))).sum()


def sinquad(x: Any) -> Any:
    """SINQUAD: an arrow by the first and the last variable."""
    inner = np.sin(x[1:-1] - x[-1]) - x[0] ** 2 + x[1:-1] ** 2
    return (x[0] - 1.0) ** 4 + (inner**2).sum() + (x[-1] ** 2 - x[0] ** 2) ** 2


def toint_gauss(x: Any) -> Any:
    """TOINTGSS."""
    a, b, c = x[:-2], x[1:-1], x[2:]
    return ((10.0 / (len(x) + 2.0) + c**2) * (2.0 - np.exp(-((a - b) ** 2) / (0.1 + c**2)))).sum()


def tridia(x: Any) -> Any:
    """TRIDIA: a quadratic function."""
    weights = np.arange(2.0, len(x) + 1.0)
    return (x[0] - 1.0) ** 2 + (weights * (2.0 * x[1:] - x[:-1]) ** 2).sum()


def woods(x: Any) -> Any:
    """WOODS: blocks of four."""
    a, b, c, d = x[::4], x[1::4], x[2::4], x[3::4]
    valleys = 100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2 + 90.0 * (d - c**2) ** 2 + (1.0 - c) ** 2
    return (valleys + 10.0 * (b + d - 2.0) ** 2 + 0.1 * (b - d) ** 2).sum()


def dqrtic(x: Any) -> Any:
    """DQRTIC: separable."""
    return ((x - np.arange(1.0, len(x) + 1.0)) ** 4).sum()


class Problem(NamedTuple):
    """An objective (or residuals), and where its gradient (or they) are known to be zero."""

    function: Callable[[Any], Any]
    stationary: Any = None


ones, zeros, numbers = np.ones(SIZE), np.zeros(SIZE), np.arange(SIZE)
OBJECTIVES = {
    "ROSENBR": Problem(chained_rosenbrock, ones),
    "ARWHEAD": Problem(arwhead, np.where(numbers < SIZE - 1, 1.0, 0.0)),
    "BDQRTIC": Problem(bdqrtic),
    "BROYDN7D": Problem(broyden_seven_diagonals),
    "CHAINWOO": Problem(chained_wood, ones),
    "CRAGGLVY": Problem(cragg_levy),
    "DIXMAANA": Problem(dixmaan_a, zeros),
    "DQRTIC": Problem(dqrtic, numbers + 1.0),
    "EDENSCH": Problem(edensch),
    "ENGVAL1": Problem(engval1),
    "FREUROTH": Problem(freudenstein_roth),
    "LIARWHD": Problem(liarwhd, ones),
    "NONDIA": Problem(nondia, ones),
    "NONDQUAR": Problem(nondquar, zeros),
    "POWELLSG": Problem(powell_singular, zeros),
    "SCHMVETT": Problem(schmidt_vetters),
    "SINQUAD": Problem(sinquad, ones),
    "TOINTGSS": Problem(toint_gauss, zeros),
    "TRIDIA": Problem(tridia, 0.5**numbers),
    "WOODS": Problem(woods, ones),
}
RESIDUALS = {"BROYDN3D": Problem(broyden_tridiagonal)}
