"""Adadelta: steps whose size is that of recent steps, in the units of the parameters."""

from __future__ import annotations

from typing import Any

from tapegrad.optim.elementwise_optimizer import ElementwiseOptimizer
from tapegrad.optim.optimizer import Parameters, as_number, check_not_negative
from tapegrad.optim.updating import Rule, zeros_like
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["Adadelta"]


class Adadelta(ElementwiseOptimizer):
    """Adadelta: the gradient times the root mean square of recent steps over that of recent gradients.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        Leaves to be optimised, or groups of them with options of their own; see `Optimizer`.
    lr : float or Tensor
        Multiple of the step.
    rho : float
        Part of the two means that is kept at each step.
    eps : float
        Added to both mean squares; without it no first step would be made.
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
    In a step, with gradient ``g`` [1]_::

        v = rho * v + (1 - rho) * g**2
        d = sqrt(u + eps) / sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d**2
        w = w - lr * d

    References
    ----------
    .. [1] M. D. Zeiler, "ADADELTA: an adaptive learning rate method", arXiv:1212.5701, 2012.

    Examples
    --------
    >>> x = tg.tensor([1.0, -20.0], requires_grad=True)
    >>> optimizer = tg.optim.Adadelta([x], eps=0.01)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.6877, -19.6838], requires_grad=True)
    """

    kept = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative({"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay})
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(
            params,
            {
                "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "capturable": capturable,
                "foreach": foreach, "differentiable": differentiable,
            },
        )  # fmt: skip

    def _started(self, group: dict[str, Any], p: Tensor) -> dict[str, Tensor]:
        return {"step": make(0.0, 0), "square_avg": zeros_like(p), "acc_delta": zeros_like(p)}

    def _rule(self, group: dict[str, Any], count: float, state: dict[str, Tensor]) -> tuple[Rule, dict[str, float]]:
        lr, rho, eps, decay = as_number(group["lr"]), group["rho"], group["eps"], group["weight_decay"]
        maximize = group["maximize"]

        def rule(root: Any, w: Any, g: Any, v: Any, u: Any) -> tuple[Any, ...]:
            if maximize:
                g = -g
            if decay != 0:
                g = g + decay * w
            v = rho * v + (1 - rho) * (g * g)
            d = root(u + eps) / root(v + eps) * g
            return w - lr * d, v, rho * u + (1 - rho) * (d * d)

        return rule, {}
