"""ASGD: gradient descent beside which the mean of the points is kept."""

from __future__ import annotations

from typing import Any

from tapegrad.optim.elementwise_optimizer import ElementwiseOptimizer
from tapegrad.optim.optimizer import Parameters, as_number, check_not_negative
from tapegrad.optim.updating import Rule, zeros_like
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["ASGD"]


class ASGD(ElementwiseOptimizer):
    """Averaged stochastic gradient descent: steps that become shorter, and the mean of the points they lead to.

    The mean of a parameter ``p`` is ``optimizer.state[p]["ax"]``; it is what converges.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        Leaves to be optimised, or groups of them with options of their own; see `Optimizer`.
    lr : float or Tensor
        First length of a step, in gradients.
    lambd : float
        Decay of the parameters, which also sets how fast steps become shorter.
    alpha : float
        Power of that.
    t0 : float
        The step after which the mean is taken.
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

        w = w - eta * (g + lambd * w)
        ax = ax + (w - ax) / max(1, t - 1 - t0)
        eta = lr / (1 + lambd * lr * t) ** alpha

    References
    ----------
    .. [1] B. T. Polyak, A. B. Juditsky, "Acceleration of stochastic approximation by averaging", SIAM Journal on Control and
       Optimization 30(4), 1992.

    Examples
    --------
    >>> x = tg.tensor([1.0, -20.0], requires_grad=True)
    >>> optimizer = tg.optim.ASGD([x], lr=0.25)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5000, -9.9995], requires_grad=True)
    """

    kept = ("ax",)

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_not_negative({"learning rate": lr, "weight_decay value": weight_decay})
        super().__init__(
            params,
            {
                "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
                "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
            },
        )  # fmt: skip

    def _started(self, group: dict[str, Any], p: Tensor) -> dict[str, Tensor]:
        eta = make(float(as_number(group["lr"])), 0)
        return {"step": make(0.0, 0), "eta": eta, "mu": make(1.0, 0), "ax": zeros_like(p)}

    def _rule(self, group: dict[str, Any], count: float, state: dict[str, Tensor]) -> tuple[Rule, dict[str, float]]:
        lr, lambd, decay, maximize = as_number(group["lr"]), group["lambd"], group["weight_decay"], group["maximize"]
        eta, mu = as_number(state["eta"]), as_number(state["mu"])
        shrink = 1 - lambd * eta

        def rule(root: Any, w: Any, g: Any, mean: Any) -> tuple[Any, ...]:
            if maximize:
                g = -g
            if decay != 0:
                g = g + decay * w
            w = w * shrink - eta * g
            return w, w if mu == 1 else mean + (w - mean) * mu

        return rule, {"eta": lr / (1 + lambd * lr * count) ** group["alpha"], "mu": 1 / max(1.0, count - group["t0"])}
