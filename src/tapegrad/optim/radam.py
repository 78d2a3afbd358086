"""RAdam: Adam that divides by the running mean square only once that is known well enough."""

from __future__ import annotations

from typing import Any

from tapegrad.optim.elementwise_optimizer import ElementwiseOptimizer
from tapegrad.optim.optimizer import Parameters, as_number, check_not_negative, checked_betas
from tapegrad.optim.updating import Rule, zeros_like
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["RAdam"]


class RAdam(ElementwiseOptimizer):
    """RAdam: Adam whose steps are rectified for how little is known of the mean square at first.

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

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        end = 2 / (1 - beta2) - 1
        rho = end - 2 * t * beta2**t / (1 - beta2**t)
        rectified = sqrt((rho - 4) * (rho - 2) * end / ((end - 4) * (end - 2) * rho))
        w = w - lr * m / (1 - beta1**t) * (rectified * sqrt(1 - beta2**t) / (sqrt(v) + eps) if rho > 5 else 1)

    References
    ----------
    .. [1] L. Liu, H. Jiang, P. He, W. Chen, X. Liu, J. Gao, J. Han, "On the variance of the adaptive learning rate and beyond",
       ICLR, 2020.

    Examples
    --------
    >>> x = tg.tensor([1.0, -20.0], requires_grad=True)
    >>> optimizer = tg.optim.RAdam([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0., 0.], requires_grad=True)
    """

    kept = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative({"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay})
        parts = checked_betas(betas)
        super().__init__(
            params,
            {
                "lr": lr, "betas": parts, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach,
                "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
            },
        )  # fmt: skip

    def _started(self, group: dict[str, Any], p: Tensor) -> dict[str, Tensor]:
        return {"step": make(0.0, 0), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def _rule(self, group: dict[str, Any], count: float, state: dict[str, Tensor]) -> tuple[Rule, dict[str, float]]:
        lr, eps, decay, maximize = as_number(group["lr"]), group["eps"], group["weight_decay"], group["maximize"]
        beta1, beta2 = map(as_number, group["betas"])
        fresh1, fresh2, known = 1 - beta1, 1 - beta2, 1 - beta2**count
        end = 2 / (1 - beta2) - 1
        length, rho = lr / (1 - beta1**count), end - 2 * count * beta2**count / known
        scale = None
        if rho > 5:
            scale = ((rho - 4) * (rho - 2) * end / ((end - 4) * (end - 2) * rho) * known) ** 0.5
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
            move = length * m
            return w - (move if scale is None else move * (scale / (root(v) + eps))), m, v

        return rule, {}
