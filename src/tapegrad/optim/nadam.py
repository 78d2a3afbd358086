"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

from tapegrad.optim.elementwise_optimizer import ElementwiseOptimizer
from tapegrad.optim.optimizer import Parameters, as_number, check_not_negative, checked_betas
from tapegrad.optim.updating import Rule, zeros_like
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["NAdam"]


class NAdam(ElementwiseOptimizer):
    """NAdam: Adam whose step looks ahead, as Nesterov's momentum does.

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
    momentum_decay : float
        How fast the momentum grows to its final value.
    decoupled_weight_decay : bool
        Whether the decay shrinks the parameters and leaves the gradient alone, as in `AdamW`.
    maximize : bool
        Whether to go up and not down.
    foreach, capturable, differentiable : optional
        See `Optimizer`.

    Raises
    ------
    ValueError
        If an option is out of its range.

    Notes
    -----
    In step ``t``, with gradient ``g`` [1]_::

        mu[t] = beta1 * (1 - 0.96 ** (t * momentum_decay) / 2)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        ahead = mu[t + 1] * m / (1 - mu[1] * ... * mu[t + 1]) + (1 - mu[t]) * g / (1 - mu[1] * ... * mu[t])
        w = w - lr * ahead / (sqrt(v / (1 - beta2**t)) + eps)

    References
    ----------
    .. [1] T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop, 2016.

    Examples
    --------
    >>> x = tg.tensor([1.0, -20.0], requires_grad=True)
    >>> optimizer = tg.optim.NAdam([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.4718, -19.4718], requires_grad=True)
    """

    kept = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(
            {
                "learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay,
                "momentum_decay value": momentum_decay,
            }
        )  # fmt: skip
        parts = checked_betas(betas)
        super().__init__(
            params,
            {
                "lr": lr, "betas": parts, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
                "capturable": capturable, "differentiable": differentiable,
            },
        )  # fmt: skip

    def _started(self, group: dict[str, Any], p: Tensor) -> dict[str, Tensor]:
        return {"step": make(0.0, 0), "mu_product": make(1.0, 0), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def _rule(self, group: dict[str, Any], count: float, state: dict[str, Tensor]) -> tuple[Rule, dict[str, float]]:
        lr, eps, decay, maximize = as_number(group["lr"]), group["eps"], group["weight_decay"], group["maximize"]
        beta1, beta2 = map(as_number, group["betas"])
        fresh1, fresh2, scale = 1 - beta1, 1 - beta2, 1 - beta2**count
        now, following = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (count, count + 1))
        product = as_number(state["mu_product"]) * now
        by_gradient, by_mean = lr * (1 - now) / (1 - product), lr * following / (1 - product * following)
        shrink = 1 - lr * decay if decay != 0 and group["decoupled_weight_decay"] else None

        def rule(root: Any, w: Any, g: Any, m: Any, v: Any) -> tuple[Any, ...]:
            if maximize:
                g = -g
            if shrink is not None:
                w = w * shrink
            elif decay != 0:
                g = g + decay * w
            m = m + fresh1 * (g - m)
            v = beta2 * v + fresh2 * (g * g)
            size = root(v / scale) + eps
            return w - by_gradient * (g / size) - by_mean * (m / size), m, v

        return rule, {"mu_product": product}
