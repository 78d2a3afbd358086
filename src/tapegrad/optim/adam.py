"""Adam: steps scaled by running moments of the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.optim.optimizer import Optimizer, Parameters, as_number, check_not_negative, checked_betas, evaluate
from tapegrad.optim.updating import Rule, gradient_of, larger, next_count, update, zeros_like
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["Adam"]


class Adam(Optimizer):
    """Adam: the mean of recent gradients over the root of the mean of their squares.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        Leaves to be optimised, or groups of them with options of their own; see `Optimizer`.
    lr : float or Tensor
        Learning rate: about the length of a step in each element.
    betas : (float, float)
        Parts of the two means that are kept at each step.
    eps : float
        Added to the root, which may be zero.
    weight_decay : float
        Multiple of the parameters that is added to the gradient.
    amsgrad : bool
        Whether to divide by the root of the largest mean of squares so far.
    maximize : bool
        Whether to go up and not down.
    decoupled_weight_decay : bool
        Whether the decay shrinks the parameters and leaves the gradient alone, as in `AdamW`.
    foreach, capturable, differentiable, fused : optional
        See `Optimizer`.

    Raises
    ------
    ValueError
        If an option is out of its range.

    Notes
    -----
    In step ``t``, with gradient ``g`` [1]_::

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        w = w - lr * (m / (1 - beta1**t)) / (sqrt(v / (1 - beta2**t)) + eps)

    With `amsgrad` [2]_ the largest ``v`` so far takes the place of ``v`` in the last line.

    References
    ----------
    .. [1] D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR, 2015.
    .. [2] S. J. Reddi, S. Kale, S. Kumar, "On the convergence of Adam and beyond", ICLR, 2018.

    Examples
    --------
    >>> x = tg.tensor([1.0, -20.0], requires_grad=True)
    >>> optimizer = tg.optim.Adam([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.5000, -19.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_not_negative({"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay})
        parts = checked_betas(betas)
        super().__init__(
            params,
            {
                "lr": lr, "betas": parts, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
                "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )  # fmt: skip

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients, in place; see `Optimizer.step`."""
        loss = evaluate(closure)
        for group in self.param_groups:
            amsgrad = group["amsgrad"]
            rules: dict[float, Rule] = {}  # of parameters by the number of their steps, seldom more than one
            for p in group["params"]:
                gradient = gradient_of(p)
                if gradient is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = make(0.0, 0)
                    state["exp_avg"] = zeros_like(p)
                    state["exp_avg_sq"] = zeros_like(p)
                if amsgrad and "max_exp_avg_sq" not in state:
                    state["max_exp_avg_sq"] = zeros_like(p)
                count = next_count(state["step"])
                rule = rules.get(count)
                if rule is None:
                    rule = rules[count] = _rule(group, count)
                if amsgrad:
                    update(rule, p, gradient, state["exp_avg"], state["exp_avg_sq"], state["max_exp_avg_sq"])
                else:
                    update(rule, p, gradient, state["exp_avg"], state["exp_avg_sq"])
                state["step"]._data = count
        return loss


def _rule(group: dict[str, Any], count: float) -> Rule:
    lr, eps, decay, maximize = as_number(group["lr"]), group["eps"], group["weight_decay"], group["maximize"]
    beta1, beta2 = map(as_number, group["betas"])
    fresh1, fresh2 = 1 - beta1, 1 - beta2
    length, scale = lr / (1 - beta1**count), (1 - beta2**count) ** 0.5
    shrink = 1 - lr * decay if decay != 0 and group["decoupled_weight_decay"] else None

    def rule(root: Any, w: Any, g: Any, m: Any, v: Any, *largest: Any) -> tuple[Any, ...]:
        if maximize:
            g = -g
        if shrink is not None:
            w = w * shrink
        elif decay != 0:
            g = g + decay * w
        m = m + fresh1 * (g - m)
        v = beta2 * v + fresh2 * (g * g)
        if not largest:
            return w - length * (m / (root(v) / scale + eps)), m, v
        top = larger(largest[0], v)
        return w - length * (m / (root(top) / scale + eps)), m, v, top

    return rule
