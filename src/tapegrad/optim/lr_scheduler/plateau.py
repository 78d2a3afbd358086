"""Rates that are reduced when a metric stops getting better."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.optim.lr_scheduler.schedule import LRScheduler, rates, set_rate
from tapegrad.optim.optimizer import Optimizer, as_number

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """Rates are multiplied by a factor when a metric has not become better for some epochs.

    Parameters
    ----------
    optimizer : Optimizer
    mode : {"min", "max"}
        Whether lower or higher is better.
    factor : float
        The factor, below 1.
    patience : int
        Epochs without progress that are tolerated.
    threshold : float
        Progress that is too small to count.
    threshold_mode : {"rel", "abs"}
        Whether the threshold is relative to the best value.
    cooldown : int
        Epochs after a reduction in which none is counted.
    min_lr : float or list of float
        Below which rates are not reduced, for all groups or for each.
    eps : float
        A reduction that is smaller is not made.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, but is {factor}.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown! Use 'min' or 'max'.")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown! Use 'rel' or 'abs'.")
        count = len(optimizer.param_groups)
        lowest = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        if len(lowest) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(lowest)}")
        self.optimizer = optimizer
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = lowest
        self.last_epoch = 0
        self._last_lr = rates(optimizer)
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any) -> None:  # type: ignore[override]
        """Go on to the next epoch.

        Parameters
        ----------
        metrics : float or Tensor of one element
            What is to become better.
        """
        value = float(as_number(metrics))
        self.last_epoch += 1
        if self._is_better(value):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = rates(self.optimizer)

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction was so recent that none is counted."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float) -> bool:
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            return sign * value > sign * self.best * (1.0 + sign * self.threshold)
        return sign * value > sign * (self.best + sign * self.threshold)

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when `ReduceLROnPlateau` was "
                    f"initialized ({len(self.min_lrs)}). Set the `min_lrs` field to one value for each group."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs, strict=True):
            rate = float(as_number(group["lr"]))
            reduced = max(rate * self.factor, lowest)
            if rate - reduced > self.eps:
                set_rate(group, reduced)
