"""Rates that are multiplied by a factor from time to time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tapegrad.optim.lr_scheduler.schedule import LRScheduler, rates
from tapegrad.optim.optimizer import Optimizer

__all__ = ["ConstantLR", "ExponentialLR", "MultiStepLR", "StepLR"]


class StepLR(LRScheduler):
    """Rates are multiplied by a factor every so many epochs.

    Parameters
    ----------
    optimizer : Optimizer
    step_size : int
        Epochs between two changes.
    gamma : float
        The factor.
    last_epoch : int
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [1.0]
    [1.0]
    [0.5]
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of epoch ``last_epoch``."""
        changes = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [rate * self.gamma if changes else rate for rate in rates(self.optimizer)]


class MultiStepLR(LRScheduler):
    """Rates are multiplied by a factor at given epochs.

    Parameters
    ----------
    optimizer : Optimizer
    milestones : iterable of int
        The epochs; one that is given twice counts twice.
    gamma : float
        The factor.
    last_epoch : int
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> for _ in range(4):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [1.0]
    [0.5]
    [0.5]
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones = dict(Counter(milestones))
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of epoch ``last_epoch``."""
        factor = self.gamma ** self.milestones.get(self.last_epoch, 0)
        return [rate * factor for rate in rates(self.optimizer)]


class ExponentialLR(LRScheduler):
    """Rates are multiplied by a factor in every epoch.

    Parameters
    ----------
    optimizer : Optimizer
    gamma : float
        The factor.
    last_epoch : int
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of epoch ``last_epoch``."""
        return [rate if self._is_initial else rate * self.gamma for rate in rates(self.optimizer)]


class ConstantLR(LRScheduler):
    """Rates are multiplied by a factor, and divided by it again after so many epochs.

    Parameters
    ----------
    optimizer : Optimizer
    factor : float
        Between 0 and 1.
    total_iters : int
        The epoch from which on rates are the initial ones.
    last_epoch : int
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If the factor is out of its range.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.25, total_iters=2)
    >>> for _ in range(3):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.25]
    [0.25]
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError(f"Constant multiplicative factor expected to be between 0 and 1, but got {factor}.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of epoch ``last_epoch``."""
        present = rates(self.optimizer)
        if self.last_epoch == 0:
            return [rate * self.factor for rate in present]
        if self.last_epoch != self.total_iters:
            return present
        return self.base_lrs if self.factor == 0 else [rate / self.factor for rate in present]
