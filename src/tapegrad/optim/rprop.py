"""Rprop: steps whose lengths follow from the signs of the gradient alone."""

from __future__ import annotations

from typing import Any

from tapegrad.optim.elementwise_optimizer import ElementwiseOptimizer
from tapegrad.optim.optimizer import Parameters, as_number, check_not_negative
from tapegrad.optim.updating import Rule, chosen, filled_like, zeros_like
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["Rprop"]


class Rprop(ElementwiseOptimizer):
    """Resilient backpropagation: each element has a step length, which grows while the sign of its gradient stays.

    For the gradient of a whole sum; where it is of samples, its signs are too random.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        Leaves to be optimised, or groups of them with options of their own; see `Optimizer`.
    lr : float or Tensor
        First length of a step.
    etas : (float, float)
        What the length is multiplied by where the sign has changed, and where it has not.
    step_sizes : (float, float)
        Least and greatest length.
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
    In a step, with gradient ``g`` and the last one ``p`` [1]_: where ``g * p`` is positive, the length is multiplied by the second
    of `etas`; where it is negative by the first, and the element stays where it is and forgets ``g``. Others go by their length
    against the sign of ``g``.

    References
    ----------
    .. [1] M. Riedmiller, H. Braun, "A direct adaptive method for faster backpropagation learning: the RPROP algorithm", ICNN, 1993.

    Examples
    --------
    >>> x = tg.tensor([1.0, -20.0], requires_grad=True)
    >>> optimizer = tg.optim.Rprop([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([  0.5000, -19.5000], requires_grad=True)
    """

    kept = ("prev", "step_size")

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative({"learning rate": lr})
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
                "differentiable": differentiable, "capturable": capturable,
            },
        )  # fmt: skip

    def _started(self, group: dict[str, Any], p: Tensor) -> dict[str, Tensor]:
        return {"step": make(0.0, 0), "prev": zeros_like(p), "step_size": filled_like(p, as_number(group["lr"]))}

    def _rule(self, group: dict[str, Any], count: float, state: dict[str, Tensor]) -> tuple[Rule, dict[str, float]]:
        (shorter, longer), (least, most), maximize = group["etas"], group["step_sizes"], group["maximize"]

        def rule(root: Any, w: Any, g: Any, before: Any, length: Any) -> tuple[Any, ...]:
            if maximize:
                g = -g
            turn = g * before
            length = chosen(turn > 0, length * longer, chosen(turn < 0, length * shorter, length + turn * 0))
            length = chosen(length < least, least, chosen(length > most, most, length))
            g = chosen(turn < 0, 0.0, g)
            return chosen(g > 0, w - length, chosen(g < 0, w + length, w - g * length)), g, length

        return rule, {}
