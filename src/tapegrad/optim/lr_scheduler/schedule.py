"""What schedules share."""

from __future__ import annotations

import warnings
from typing import Any

from tapegrad.ops.in_place import fill_
from tapegrad.optim.optimizer import Optimizer, as_number
from tapegrad.tensors.grad_mode import no_grad
from tapegrad.tensors.tensor import Tensor

__all__ = ["LRScheduler", "checked_optimizer", "for_groups", "rates", "set_momentum", "set_rate"]


class LRScheduler:
    """Base of the schedules: counts epochs and sets the learning rates of an optimiser's groups.

    A subclass defines `get_lr`. Making a schedule sets the rates of epoch 0.

    Parameters
    ----------
    optimizer : Optimizer
    last_epoch : int
        Number of the last epoch when a schedule is taken up again; the groups have ``initial_lr`` then. -1 starts anew.

    Raises
    ------
    TypeError
        If `optimizer` is none.
    KeyError
        If a schedule is to be taken up and a group has no ``initial_lr``.

    Warns
    -----
    UserWarning
        If the first step of the schedule comes before the first of the optimiser: the first rate would never be used.

    Examples
    --------
    >>> class Harmonic(tg.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / (self.last_epoch + 1) for lr in self.base_lrs]
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = Harmonic(optimizer)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked_optimizer(optimizer)
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler with last_epoch >= 0; "
                    "load the optimizer's state first"
                )
        self.base_lrs: list[Any] = [_own(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._last_lr: list[Any] = []
        optimizer.watch_steps()
        self.step()

    def get_lr(self) -> list[Any]:
        """The rates of epoch ``last_epoch``, one for each group, from the present ones."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr")

    def get_last_lr(self) -> list[Any]:
        """The rates that were set last, one for each group."""
        return self._last_lr

    @property
    def _is_initial(self) -> bool:
        """Whether this is the step that the initialiser makes."""
        return self._step_count == 1

    def step(self) -> None:
        """Go on to the next epoch; call it after the optimiser's step."""
        if self._step_count == 1 and not self.optimizer.has_stepped:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite order: "
                "`optimizer.step()` before `lr_scheduler.step()`. Otherwise the first value of the schedule is skipped.",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        self.last_epoch += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            set_rate(group, rate)
        self._last_lr = rates(self.optimizer)

    def _rewind(self, to: int | None = None) -> None:
        """Let the next step be the first one again: of the present epoch, or of the one after `to`."""
        self.last_epoch = self.last_epoch - 1 if to is None else to
        self._step_count = 0

    def _restart(self) -> None:
        """Set the rates of epoch 0, whatever they are now, and go on from there."""
        for group, rate in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            set_rate(group, rate)
        self._rewind(-1)
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; the optimiser's state has the rates themselves."""
        self.__dict__.update(state_dict)


def checked_optimizer(optimizer: Any) -> Optimizer:
    """An optimiser that a schedule is to be of.

    Raises
    ------
    TypeError
        If it is none.
    """
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def _own(rate: Any) -> Any:
    """A rate that nobody else can change."""
    return rate.detach().clone() if isinstance(rate, Tensor) else rate


def rates(optimizer: Optimizer) -> list[Any]:
    """The present learning rates of the groups."""
    return [_own(group["lr"]) for group in optimizer.param_groups]


def set_rate(group: dict[str, Any], rate: Any) -> None:
    """Give a group another learning rate; one that is a tensor is written in place."""
    if isinstance(group["lr"], Tensor):
        with no_grad():
            fill_(group["lr"], as_number(rate))
    else:
        group["lr"] = rate


def for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group, from one for all or a list.

    Raises
    ------
    ValueError
        If there are not as many as groups.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups has {count}."
        )
    return list(value)


def set_momentum(group: dict[str, Any], momentum: float) -> None:
    """Give a group another momentum, which is the first of its ``betas`` where it has these."""
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
