"""Adagrad: steps scaled by the root of the sum of all squared gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.optim.optimizer import Optimizer, Parameters, as_number, check_not_negative, evaluate
from tapegrad.optim.updating import Rule, filled_like, gradient_of, next_count, update
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Adagrad: the gradient over the root of the sum of its squares so far.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        Leaves to be optimised, or groups of them with options of their own; see `Optimizer`.
    lr : float or Tensor
        Learning rate.
    lr_decay : float
        How fast the learning rate falls: after ``t`` steps it is ``lr / (1 + t * lr_decay)``.
    weight_decay : float
        Multiple of the parameters that is added to the gradient.
    initial_accumulator_value : float
        Where the sums of squares start.
    eps : float
        Added to the root, which may be zero.
    maximize : bool
        Whether to go up and not down.
    foreach, differentiable, fused : optional
        See `Optimizer`.

    Raises
    ------
    ValueError
        If an option is out of its range.

    Notes
    -----
    In step ``t``, with gradient ``g`` [1]_::

        s = s + g**2
        w = w - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)

    References
    ----------
    .. [1] J. Duchi, E. Hazan, Y. Singer, "Adaptive subgradient methods for online learning and stochastic optimization", JMLR
       12, 2011.

    Examples
    --------
    >>> x = tg.tensor([1.0, -20.0], requires_grad=True)
    >>> optimizer = tg.optim.Adagrad([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.5000, -19.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_not_negative(
            {
                "learning rate": lr, "lr_decay value": lr_decay, "weight_decay value": weight_decay,
                "initial_accumulator_value value": initial_accumulator_value, "epsilon value": eps,
            }
        )  # fmt: skip
        super().__init__(
            params,
            {
                "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
                "differentiable": differentiable, "fused": fused,
            },
        )  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                self._start(p, initial_accumulator_value)

    def _start(self, p: Tensor, value: float) -> None:
        self.state[p]["step"] = make(0.0, 0)
        self.state[p]["sum"] = filled_like(p, value)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients, in place; see `Optimizer.step`."""
        loss = evaluate(closure)
        for group in self.param_groups:
            rules: dict[float, Rule] = {}  # of parameters by the number of their steps, seldom more than one
            for p in group["params"]:
                gradient = gradient_of(p)
                if gradient is None:
                    continue
                if not self.state[p]:  # of a group that was added later
                    self._start(p, group["initial_accumulator_value"])
                state = self.state[p]
                count = next_count(state["step"])
                rule = rules.get(count)
                if rule is None:
                    rule = rules[count] = _rule(group, count)
                update(rule, p, gradient, state["sum"])
                state["step"]._data = count
        return loss


def _rule(group: dict[str, Any], count: float) -> Rule:
    eps, decay, maximize = group["eps"], group["weight_decay"], group["maximize"]
    length = as_number(group["lr"]) / (1 + (count - 1) * group["lr_decay"])

    def rule(root: Any, w: Any, g: Any, s: Any) -> tuple[Any, ...]:
        if maximize:
            g = -g
        if decay != 0:
            g = g + decay * w
        s = s + g * g
        return w - length * (g / (root(s) + eps)), s

    return rule
