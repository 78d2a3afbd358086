"""Rates that fall along half a wave of the cosine, again and again."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.optim.lr_scheduler.schedule import LRScheduler, rates, set_rate
from tapegrad.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingWarmRestarts"]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Rates fall from the initial ones along half a wave of the cosine, and start anew.

    Parameters
    ----------
    optimizer : Optimizer
    T_0 : int
        Epochs of the first fall.
    T_mult : int
        How many times as many each next one has.
    eta_min : float
        The lowest rate.
    last_epoch : int
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    References
    ----------
    I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR, 2017.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(3):
    ...     print(round(schedule.get_last_lr()[0], 12))
    ...     optimizer.step()
    ...     schedule.step()
    1.0
    0.5
    1.0
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of the present place in the fall."""
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (rate - self.eta_min) * height for rate in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on to the next epoch, or to the one that is given.

        Parameters
        ----------
        epoch : float, optional
            May be a part of one, as in ``epoch + batch / batches``.

        Raises
        ------
        ValueError
            If it is negative.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            start, self.T_i = 0, self.T_0
            if self.T_mult == 1:
                start = int(epoch // self.T_0) * self.T_0
            else:
                while epoch >= start + self.T_i:
                    start += self.T_i
                    self.T_i *= self.T_mult
            self.T_cur = epoch - start
        self.last_epoch = math.floor(epoch)
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            set_rate(group, rate)
        self._last_lr = rates(self.optimizer)
