"""Rates that functions of the epoch give."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from tapegrad.optim.lr_scheduler.schedule import LRScheduler, checked_optimizer, rates, set_rate
from tapegrad.optim.optimizer import Optimizer

__all__ = ["LambdaLR", "MultiplicativeLR"]


class _OfFunctions(LRScheduler):
    """What schedules share that are given a function, or one for each group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | list[Callable[[int], float]], last_epoch: int = -1
    ) -> None:
        groups = checked_optimizer(optimizer).param_groups
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * len(groups)
        if len(functions) != len(groups):
            raise ValueError(f"Expected {len(groups)} lr_lambdas, but got {len(functions)}")
        self.lr_lambdas: list[Any] = functions
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser; of the functions, the attributes of those that are objects of a class."""
        kept = [None if isinstance(f, types.FunctionType) else dict(f.__dict__) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; the functions stay, and get their attributes."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                function.__dict__.update(attributes)


class LambdaLR(_OfFunctions):
    """Rates that are the initial ones times a function of the epoch.

    Parameters
    ----------
    optimizer : Optimizer
    lr_lambda : callable or list of callables
        Gives the factor for an epoch; a list has one function for each group.
    last_epoch : int
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If there are not as many functions as groups.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> optimizer.step()
    >>> schedule.step()
    >>> optimizer.param_groups[0]["lr"]
    0.5
    """

    def get_lr(self) -> list[Any]:
        """The rates of epoch ``last_epoch``."""
        return [rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_OfFunctions):
    """Rates that are multiplied in every epoch by a function of it.

    Parameters
    ----------
    optimizer : Optimizer
    lr_lambda : callable or list of callables
        Gives the factor for an epoch from 1 on; a list has one function for each group.
    last_epoch : int
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If there are not as many functions as groups.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = tg.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> round(schedule.get_last_lr()[0], 12)
    0.041666666667
    """

    def get_lr(self) -> list[Any]:
        """The rates of epoch ``last_epoch``."""
        return rates(self.optimizer) if self._is_initial else self._multiplied()

    def _multiplied(self) -> list[Any]:
        return [rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, rates(self.optimizer), strict=True)]

    def _restart(self) -> None:
        """Multiply the present rates by the factor of epoch 0: the initial ones are not this schedule's own."""
        self._rewind(0)
        self._step_count = 1
        for group, rate in zip(self.optimizer.param_groups, self._multiplied(), strict=True):
            set_rate(group, rate)
        self._last_lr = rates(self.optimizer)
