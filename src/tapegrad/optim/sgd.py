"""SGD: steps along the gradient, with momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.optim.optimizer import Optimizer, Parameters, as_number, check_not_negative, evaluate
from tapegrad.optim.updating import Rule, gradient_of, update, zeros_like
from tapegrad.tensors.tensor import Tensor

__all__ = ["SGD"]


class SGD(Optimizer):
    """Gradient descent, stochastic where the gradients are, with Polyak's or Nesterov's momentum.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        Leaves to be optimised, or groups of them with options of their own; see `Optimizer`.
    lr : float or Tensor
        Learning rate: the length of a step in gradients.
    momentum : float
        Part of the last direction that is kept.
    dampening : float
        Part of the gradient that is left out once there is a direction.
    weight_decay : float
        Multiple of the parameters that is added to the gradient.
    nesterov : bool
        Whether to look ahead along the direction.
    maximize : bool
        Whether to go up and not down.
    foreach, differentiable, fused : optional
        See `Optimizer`.

    Raises
    ------
    ValueError
        If an option is out of its range, or `nesterov` is asked for without momentum or with dampening.

    Notes
    -----
    With gradient ``g`` and direction ``b``, which starts as the first ``g`` [1]_, [2]_::

        b = momentum * b + (1 - dampening) * g
        w = w - lr * b                      # or w - lr * (g + momentum * b) with nesterov

    References
    ----------
    .. [1] B. T. Polyak, "Some methods of speeding up the convergence of iteration methods", USSR Computational Mathematics and
       Mathematical Physics 4(5), 1964.
    .. [2] I. Sutskever, J. Martens, G. Dahl, G. Hinton, "On the importance of initialization and momentum in deep learning",
       ICML, 2013.

    Examples
    --------
    >>> x = tg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.SGD([x], lr=0.25)
    >>> optimizer.zero_grad()
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5000, -1.0000], requires_grad=True)
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_not_negative({"learning rate": lr, "momentum value": momentum, "weight_decay value": weight_decay})
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
                "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
            },
        )  # fmt: skip

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients, in place; see `Optimizer.step`."""
        loss = evaluate(closure)
        for group in self.param_groups:
            has_momentum = group["momentum"] != 0
            first, later = _rule(group, True), _rule(group, False)
            for p in group["params"]:
                gradient = gradient_of(p)
                if gradient is None:
                    continue
                if not has_momentum:
                    update(first, p, gradient)
                    continue
                state = self.state[p]
                direction = state.get("momentum_buffer")
                if direction is None:
                    direction = zeros_like(p)
                    update(first, p, gradient, direction)
                    state["momentum_buffer"] = direction
                else:
                    update(later, p, gradient, direction)
        return loss


def _rule(group: dict[str, Any], first: bool) -> Rule:
    lr, decay, momentum = as_number(group["lr"]), group["weight_decay"], group["momentum"]
    maximize, nesterov, kept = group["maximize"], group["nesterov"], 1 - group["dampening"]

    def rule(root: Any, w: Any, g: Any, *directions: Any) -> tuple[Any, ...]:
        if maximize:
            g = -g
        if decay != 0:
            g = g + decay * w
        if not directions:
            return (w - lr * g,)
        b = g if first else momentum * directions[0] + kept * g
        return w - lr * (g + momentum * b if nesterov else b), b

    return rule
