"""Several schedules of one optimiser: one after another, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tapegrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tapegrad.optim.lr_scheduler.schedule import LRScheduler, rates, set_rate
from tapegrad.optim.optimizer import Optimizer

__all__ = ["ChainedScheduler", "SequentialLR"]


class _Composed(LRScheduler):
    """What both share: the schedules, their state, and the way back."""

    _schedulers: list[LRScheduler]

    def _take(self, optimizer: Optimizer | None, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        for number, schedule in enumerate(schedulers):
            if not isinstance(schedule, LRScheduler):
                raise TypeError(f"{name} at index {number} should be a scheduler, but got {type(schedule).__name__}.")
            if isinstance(schedule, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified when "
                    f"calling `step`, but got one at index {number} in the given schedulers sequence; step it by itself."
                )
            optimizer = schedule.optimizer if optimizer is None else optimizer
            if schedule.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler {type(schedule).__name__} "
                    f"at index {number}, whose optimizer is another."
                )
        assert optimizer is not None
        self._schedulers, self.optimizer = list(schedulers), optimizer

    def _rewind(self, to: int | None = None) -> None:
        super()._rewind(to)
        for schedule in self._schedulers:
            schedule._rewind(to)

    def _restart(self) -> None:
        for group in self.optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        self._rewind(-1)
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser, with the state of each schedule."""
        return {**super().state_dict(), "_schedulers": [schedule.state_dict() for schedule in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for schedule, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            schedule.load_state_dict(state)


class SequentialLR(_Composed):
    """Schedules one after another, each from its own epoch 0 on.

    Parameters
    ----------
    optimizer : Optimizer
    schedulers : list of LRScheduler
        Of this optimiser.
    milestones : list of int
        The epochs in which the second one, the third one, ... begin.
    last_epoch : int
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If there are no schedules, one is of another optimiser or of `ReduceLROnPlateau`, or milestones do not fit.
    TypeError
        If there is something else among the schedules.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedules = tg.optim.lr_scheduler
    >>> warm_up = schedules.ConstantLR(optimizer, factor=0.25, total_iters=2)
    >>> decay = schedules.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = schedules.SequentialLR(optimizer, [warm_up, decay], milestones=[2])
    >>> for _ in range(4):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.25]
    [0.25]
    [1.0]
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        self._take(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, "
                f"but got number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._milestones = list(milestones)
        self._step_count = 0
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        for schedule in self._schedulers:  # each was made with a first step of its own
            schedule._rewind()
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first.step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:
        """Go on to the next epoch; call it after the optimiser's step."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            schedule._restart()
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()


class ChainedScheduler(_Composed):
    """Schedules that all take their step, each from the rates that the one before it left.

    Parameters
    ----------
    schedulers : sequence of LRScheduler
        Of one optimiser.
    optimizer : Optimizer, optional
        Theirs.

    Raises
    ------
    ValueError
        If there are no schedules, or one is of another optimiser or of `ReduceLROnPlateau`.
    TypeError
        If there is something else among the schedules.

    Examples
    --------
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedules = tg.optim.lr_scheduler
    >>> warm_up, decay = schedules.ConstantLR(optimizer, 0.5, total_iters=2), schedules.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = schedules.ChainedScheduler([warm_up, decay])
    >>> for _ in range(4):
    ...     print(schedule.get_last_lr())
    ...     optimizer.step()
    ...     schedule.step()
    [0.5]
    [0.25]
    [0.25]
    [0.125]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._take(optimizer, schedulers)
        self._step_count = 0
        self.last_epoch = max(schedule.last_epoch for schedule in self._schedulers)
        self._last_lr = rates(self.optimizer)

    def step(self) -> None:
        """Go on to the next epoch; call it after the optimiser's step."""
        self.last_epoch += 1
        for schedule in self._schedulers:
            schedule.step()
        self._last_lr = rates(self.optimizer)
