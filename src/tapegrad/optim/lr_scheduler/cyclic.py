"""Rates that rise and fall between two values, and momentum the other way."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from tapegrad.optim.lr_scheduler.schedule import LRScheduler, checked_optimizer, for_groups, set_momentum, set_rate
from tapegrad.optim.optimizer import Optimizer

__all__ = ["CyclicLR"]


class CyclicLR(LRScheduler):
    """Rates rise from a low value to a high one and fall again, over and over; step it after each batch.

    Parameters
    ----------
    optimizer : Optimizer
    base_lr, max_lr : float or list of float
        The lowest and the highest rate, one for all groups or for each.
    step_size_up, step_size_down : int, optional
        Steps of a rise, and of a fall: as many as of a rise if not given.
    mode : {"triangular", "triangular2", "exp_range"}
        Whether all cycles are of one height, each has half the height of the one before, or `gamma` to the number of the step
        times the height.
    gamma : float
        See `mode`.
    scale_fn : callable, optional
        Gives the height of a cycle by its number, which starts with 1, or by the number of the step; `mode` has no effect then.
    scale_mode : {"cycle", "iterations"}
        Which of the two `scale_fn` is given.
    cycle_momentum : bool
        Whether momentum (or the first of ``betas``) falls where rates rise.
    base_momentum, max_momentum : float or list of float
        Between these.
    last_epoch : int
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If `mode` is not known, lists do not fit to the groups, or there is no momentum to be cycled.

    References
    ----------
    L. N. Smith, "Cyclical learning rates for training neural networks", WACV, 2017.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = tg.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.0, max_lr=1.0, step_size_up=2)
    >>> for _ in range(4):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.0]
    [0.5]
    [1.0]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        groups = checked_optimizer(optimizer).param_groups
        lowest = for_groups("base_lr", optimizer, base_lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(
                f"mode is invalid and scale_fn is None: mode is {mode!r}, not 'triangular', 'triangular2' or 'exp_range'"
            )
        if cycle_momentum and "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.total_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma = mode, gamma
        self.scale_fn = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        self.base_momentums = for_groups("base_momentum", optimizer, base_momentum)
        self.max_momentums = for_groups("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for group, rate, least, most in zip(groups, lowest, self.base_momentums, self.max_momentums, strict=True):
                set_rate(group, rate)
                if cycle_momentum:
                    set_momentum(group, most)
                    group["max_momentum"], group["base_momentum"] = most, least
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def get_lr(self) -> list[Any]:
        """The rates of step ``last_epoch``; sets its momentum."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        part = place / self.step_ratio if place <= self.step_ratio else (place - 1) / (self.step_ratio - 1)
        height = part * self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, least, most in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                set_momentum(group, most - (most - least) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def _scale(self, number: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(number)
        if self.mode == "triangular":
            return 1.0
        return float(0.5 ** (number - 1)) if self.mode == "triangular2" else float(self.gamma**number)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser; of `scale_fn`, the attributes if it is an object of a class."""
        function = self.scale_fn
        kept = None if function is None or isinstance(function, types.FunctionType) else dict(function.__dict__)
        return {**super().state_dict(), "scale_fn": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; `scale_fn` stays, and gets its attributes."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "scale_fn"})
        if state_dict["scale_fn"] is not None and self.scale_fn is not None:
            self.scale_fn.__dict__.update(state_dict["scale_fn"])
