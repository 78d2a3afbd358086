"""The 1cycle policy: rates rise once and fall once, and momentum the other way."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.optim.lr_scheduler.schedule import LRScheduler, for_groups, set_momentum
from tapegrad.optim.optimizer import Optimizer

__all__ = ["OneCycleLR"]


class OneCycleLR(LRScheduler):
    """Rates rise from a low value to the highest and fall to a far lower one; step it after each batch.

    Parameters
    ----------
    optimizer : Optimizer
    max_lr : float or list of float
        The highest rate, one for all groups or for each.
    total_steps : int, optional
        Steps of the cycle; `epochs` times `steps_per_epoch` if not given.
    epochs, steps_per_epoch : int, optional
    pct_start : float
        Part of the cycle in which rates rise.
    anneal_strategy : {"cos", "linear"}
        How they do.
    cycle_momentum : bool
        Whether momentum (or the first of ``betas``) falls where rates rise.
    base_momentum, max_momentum : float or list of float
        Between these.
    div_factor : float
        The highest rate over the initial one.
    final_div_factor : float
        The initial rate over the last one.
    three_phase : bool
        Whether rates fall to the initial one as slowly as they rose, and only then further.
    last_epoch : int
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, the number of steps is not given, or it is exceeded.

    References
    ----------
    L. N. Smith, N. Topin, "Super-convergence: very fast training of neural networks using large learning rates",
    arXiv:1708.07120, 2017.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = tg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=5, pct_start=0.6, anneal_strategy="linear")
    >>> for _ in range(3):
    ...     print(round(schedule.get_last_lr()[0], 12))
    ...     optimizer.step()
    ...     schedule.step()
    0.04
    0.52
    1.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            _check_count("epochs", epochs)
            _check_count("steps_per_epoch", steps_per_epoch)
            total_steps = epochs * steps_per_epoch
        _check_count("total_steps", total_steps)
        if not 0 <= pct_start <= 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        self.use_beta1 = "betas" in optimizer.defaults
        if cycle_momentum and not self.use_beta1 and "momentum" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")

        # A phase: its last step, and what rate and momentum go from and to, by the names that a group has for them.
        top = float(pct_start * total_steps) - 1
        up = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
        down = ("max_lr", "initial_lr", "base_momentum", "max_momentum")
        out = ("initial_lr", "min_lr", "max_momentum", "max_momentum")
        directly = ("max_lr", "min_lr", "base_momentum", "max_momentum")
        self.phases: list[Any] = (
            [(top, up), (2 * top, down), (total_steps - 1, out)] if three_phase else [(top, up), (total_steps - 1, directly)]
        )

        highest = for_groups("max_lr", optimizer, max_lr)
        most = for_groups("max_momentum", optimizer, max_momentum)
        least = for_groups("base_momentum", optimizer, base_momentum)
        if last_epoch == -1:
            for group, rate, above, below in zip(optimizer.param_groups, highest, most, least, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
                if cycle_momentum:
                    group["max_momentum"], group["base_momentum"] = above, below
                    set_momentum(group, above)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of step ``last_epoch``; sets its momentum."""
        if self.last_epoch > self.total_steps:
            raise ValueError(f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}")
        number = sum(self.last_epoch > end for end, _ in self.phases[:-1])
        start = self.phases[number - 1][0] if number else 0.0
        end, names = self.phases[number]
        part = (self.last_epoch - start) / (end - start)
        found = []
        for group in self.optimizer.param_groups:
            rate_from, rate_to, momentum_from, momentum_to = (group.get(name) for name in names)
            found.append(self._between(rate_from, rate_to, part))
            if self.cycle_momentum:
                set_momentum(group, self._between(momentum_from, momentum_to, part))
        return found

    def _between(self, start: Any, end: Any, part: float) -> Any:
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
