"""A step length along a direction that satisfies the strong Wolfe conditions.

The search brackets such a length and then zooms in, with cubic interpolation (J. Nocedal, S. J. Wright, "Numerical Optimization",
2nd edition, algorithms 3.5 and 3.6 and equation 3.59). Its safeguards are those of PyTorch, so that both take the same steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet

__all__ = ["Trial", "strong_wolfe"]

DECREASE, CURVATURE = 1e-4, 0.9  # constants of the two conditions


class Trial(NamedTuple):
    """What is known at one step length."""

    length: float
    loss: float
    gradient: np.ndarray
    slope: float  # of the loss along the direction


def strong_wolfe(
    evaluate: Callable[[float], Trial], start: Trial, length: float, reach: float, tolerance: float, limit: int
) -> tuple[Trial, int]:
    """Find a step length.

    Parameters
    ----------
    evaluate : callable
        Gives the trial at a length.
    start : Trial
        At length 0; its slope is negative.
    length : float
        The first to try.
    reach : float
        Largest element of the direction, in modulus.
    tolerance : float
        Length of the bracket, times `reach`, at which the search gives up.
    limit : int
        How many more lengths to try than the first.

    Returns
    -------
    Trial
        The one found; if the search gave up, the best of the bracket.
    int
        How many lengths were tried.
    """

    def is_too_high(trial: Trial) -> bool:
        return trial.loss > start.loss + DECREASE * trial.length * start.slope

    def is_flat(trial: Trial) -> bool:
        return abs(trial.slope) <= -CURVATURE * start.slope

    before, trial, count = start, evaluate(length), 1
    while count <= limit:
        if is_too_high(trial) or (count > 2 and trial.loss >= before.loss):
            break
        if is_flat(trial):
            return trial, count
        if trial.slope >= 0:
            break
        bounds = (trial.length + 0.01 * (trial.length - before.length), 10 * trial.length)
        following = interpolate(before, trial, bounds)
        before, trial = trial, evaluate(following)
        count += 1
    else:
        return (start if start.loss <= trial.loss else trial), count

    bracket = [before, trial]
    low = lower(bracket)
    stalled = False
    while count <= limit and not abs(bracket[1].length - bracket[0].length) * reach < tolerance:
        least, most = sorted(end.length for end in bracket)
        length = interpolate(bracket[0], bracket[1], (least, most))
        # A length close to an end of the bracket, twice or beyond it, would make no progress.
        margin = 0.1 * (most - least)
        if min(most - length, length - least) < margin:
            if stalled or length >= most or length <= least:
                length = most - margin if abs(length - most) < abs(length - least) else least + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        trial = evaluate(length)
        count += 1
        if is_too_high(trial) or trial.loss >= bracket[low].loss:
            bracket[1 - low] = trial
            low = lower(bracket)
            continue
        if is_flat(trial):
            return trial, count
        if trial.slope * (bracket[1 - low].length - bracket[low].length) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = trial
    return bracket[low], count


def lower(bracket: list[Trial]) -> int:
    """Which end of the bracket has the lower loss."""
    return 0 if bracket[0].loss <= bracket[1].loss else 1


def interpolate(a: Trial, b: Trial, bounds: tuple[float, float]) -> float:
    """Where the cubic through two trials, in value and slope, has its minimum; the middle of the bounds if it has none."""
    if a.length > b.length:
        a, b = b, a
    with quiet():
        gap = np.float64(b.length) - a.length
        d1 = a.slope + b.slope + 3 * (b.loss - a.loss) / -gap
        square = d1 * d1 - a.slope * b.slope
        if not square >= 0:
            return (bounds[0] + bounds[1]) / 2.0
        d2 = np.sqrt(square)
        place = float(b.length - gap * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)))
    return min(max(place, bounds[0]), bounds[1])
