"""Rates that go smoothly from one value to another."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.optim.lr_scheduler.schedule import LRScheduler, rates
from tapegrad.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "LinearLR", "PolynomialLR"]


class LinearLR(LRScheduler):
    """Rates go linearly from one multiple of the initial ones to another, and stay there.

    Parameters
    ----------
    optimizer : Optimizer
    start_factor, end_factor : float
        The multiples; between 0 and 1, the first not 0.
    total_iters : int
        Epochs that it takes.
    last_epoch : int
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If a factor is out of its range.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> for _ in range(4):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.5]
    [0.75]
    [1.0]
    [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                f"Starting multiplicative factor expected to be greater than 0 and less or equal to 1, but got {start_factor}."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError(f"Ending multiplicative factor expected to be between 0 and 1, but got {end_factor}.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of epoch ``last_epoch``."""
        if self.last_epoch == 0:
            factor = self.start_factor
        elif self._is_initial or self.last_epoch > self.total_iters:
            factor = 1.0
        else:
            # Relative to the rates as they are, which other schedules may have changed too.
            rise = self.end_factor - self.start_factor
            factor = 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)
        return [rate * factor for rate in rates(self.optimizer)]


class CosineAnnealingLR(LRScheduler):
    """Rates fall from the initial ones along half a wave of the cosine, and rise again after it.

    Parameters
    ----------
    optimizer : Optimizer
    T_max : int
        Epochs of the fall.
    eta_min : float
        The lowest rate.
    last_epoch : int
        See `LRScheduler`.

    References
    ----------
    I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR, 2017; without the restarts.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> for _ in range(3):
    ...     print(round(schedule.get_last_lr()[0], 12))
    ...     optimizer.step()
    ...     schedule.step()
    1.0
    0.5
    0.0
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of epoch ``last_epoch``."""
        present = rates(self.optimizer)
        if self._is_initial:
            return present
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the present ones are the lowest
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * rise for rate, base in zip(present, self.base_lrs, strict=True)]
        # Relative to the rates as they are, which other schedules may have changed too.
        factor = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [factor * (rate - self.eta_min) + self.eta_min for rate in present]

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)


class PolynomialLR(LRScheduler):
    """Rates fall to zero as a power of the epochs that are left.

    Parameters
    ----------
    optimizer : Optimizer
    total_iters : int
        Epochs of the fall.
    power : float
        The power.
    last_epoch : int
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=2, power=2)
    >>> for _ in range(3):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [1.0]
    [0.25]
    [0.0]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of epoch ``last_epoch``."""
        present = rates(self.optimizer)
        if self._is_initial or self.last_epoch > self.total_iters:
            return present
        # Relative to the rates as they are, which other schedules may have changed too.
        left = self.total_iters - self.last_epoch
        factor = (left / (left + 1)) ** self.power
        return [rate * factor for rate in present]
