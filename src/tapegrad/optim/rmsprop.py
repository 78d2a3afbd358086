"""RMSprop: steps scaled by the running root mean square of the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.optim.optimizer import Optimizer, Parameters, as_number, check_not_negative, evaluate
from tapegrad.optim.updating import Rule, gradient_of, next_count, update, zeros_like
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """RMSprop: the gradient over the root of the mean of its recent squares.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        Leaves to be optimised, or groups of them with options of their own; see `Optimizer`.
    lr : float or Tensor
        Learning rate.
    alpha : float
        Part of the means that is kept at each step.
    eps : float
        Added to the root, which may be zero.
    weight_decay : float
        Multiple of the parameters that is added to the gradient.
    momentum : float
        Part of the last direction that is kept.
    centered : bool
        Whether to divide by the deviation from the mean gradient, and not by the root mean square.
    maximize : bool
        Whether to go up and not down.
    capturable, foreach, differentiable : optional
        See `Optimizer`.

    Raises
    ------
    ValueError
        If an option is out of its range.

    Notes
    -----
    With gradient ``g`` [1]_, and ``a = 0`` unless `centered` [2]_::

        v = alpha * v + (1 - alpha) * g**2
        a = alpha * a + (1 - alpha) * g
        b = momentum * b + g / (sqrt(v - a**2) + eps)
        w = w - lr * b

    References
    ----------
    .. [1] T. Tieleman, G. Hinton, "Lecture 6.5: rmsprop", Coursera, Neural Networks for Machine Learning, 2012.
    .. [2] A. Graves, "Generating sequences with recurrent neural networks", arXiv:1308.0850, 2013.

    Examples
    --------
    >>> x = tg.tensor([1.0, -20.0], requires_grad=True)
    >>> optimizer = tg.optim.RMSprop([x], lr=0.5, alpha=0.0)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.5000, -19.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(
            {
                "learning rate": lr, "epsilon value": eps, "momentum value": momentum, "weight_decay value": weight_decay,
                "alpha value": alpha,
            }
        )  # fmt: skip
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
                "capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            },
        )  # fmt: skip

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients, in place; see `Optimizer.step`."""
        loss = evaluate(closure)
        for group in self.param_groups:
            rule = _rule(group)
            names = ["square_avg"]
            if group["centered"]:
                names.append("grad_avg")
            if group["momentum"] > 0:
                names.append("momentum_buffer")
            for p in group["params"]:
                gradient = gradient_of(p)
                if gradient is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = make(0.0, 0)
                for name in names:
                    if name not in state:
                        state[name] = zeros_like(p)
                update(rule, p, gradient, *[state[name] for name in names])
                state["step"]._data = next_count(state["step"])
        return loss


def _rule(group: dict[str, Any]) -> Rule:
    lr, alpha, eps, decay = as_number(group["lr"]), group["alpha"], group["eps"], group["weight_decay"]
    centered, momentum, maximize, fresh = group["centered"], group["momentum"], group["maximize"], 1 - group["alpha"]

    def rule(root: Any, w: Any, g: Any, v: Any, *others: Any) -> tuple[Any, ...]:
        if maximize:
            g = -g
        if decay != 0:
            g = g + decay * w
        v = alpha * v + fresh * (g * g)
        new = [v]
        if centered:
            a = others[0] + fresh * (g - others[0])
            new.append(a)
            v = v - a * a
        b = g / (root(v) + eps)
        if momentum > 0:
            b = momentum * others[-1] + b
            new.append(b)
        return (w - lr * b, *new)

    return rule
