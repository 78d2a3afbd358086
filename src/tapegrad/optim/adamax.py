"""Adamax: Adam with the largest of recent gradients in the place of the root of their mean square."""

from __future__ import annotations

from typing import Any

from tapegrad.optim.elementwise_optimizer import ElementwiseOptimizer
from tapegrad.optim.optimizer import Parameters, as_number, check_not_negative, checked_betas
from tapegrad.optim.updating import Rule, larger, zeros_like
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["Adamax"]


class Adamax(ElementwiseOptimizer):
    """Adamax: the mean of recent gradients over the largest of them, which fades.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        Leaves to be optimised, or groups of them with options of their own; see `Optimizer`.
    lr : float or Tensor
        Learning rate: about the length of a step in each element.
    betas : (float, float)
        Parts of the mean and of the largest gradient that are kept at each step.
    eps : float
        Added to the moduli of gradients, which may be zero.
    weight_decay : float
        Multiple of the parameters that is added to the gradient.
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
        u = max(beta2 * u, abs(g) + eps)
        w = w - lr / (1 - beta1**t) * m / u

    References
    ----------
    .. [1] D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR, 2015; section 7.1.

    Examples
    --------
    >>> x = tg.tensor([1.0, -20.0], requires_grad=True)
    >>> optimizer = tg.optim.Adamax([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.5000, -19.5000], requires_grad=True)
    """

    kept = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_not_negative({"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay})
        parts = checked_betas(betas)
        super().__init__(
            params,
            {
                "lr": lr, "betas": parts, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
                "differentiable": differentiable, "capturable": capturable,
            },
        )  # fmt: skip

    def _started(self, group: dict[str, Any], p: Tensor) -> dict[str, Tensor]:
        return {"step": make(0.0, 0), "exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    def _rule(self, group: dict[str, Any], count: float, state: dict[str, Tensor]) -> tuple[Rule, dict[str, float]]:
        eps, decay, maximize = group["eps"], group["weight_decay"], group["maximize"]
        beta1, beta2 = map(as_number, group["betas"])
        fresh, length = 1 - beta1, as_number(group["lr"]) / (1 - beta1**count)

        def rule(root: Any, w: Any, g: Any, m: Any, u: Any) -> tuple[Any, ...]:
            if maximize:
                g = -g
            if decay != 0:
                g = g + decay * w
            m = m + fresh * (g - m)
            u = larger(beta2 * u, abs(g) + eps)
            return w - length * (m / u), m, u

        return rule, {}
