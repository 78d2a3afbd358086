"""AdamW: Adam with weight decay that does not pass through the moments."""

from __future__ import annotations

from tapegrad.optim.adam import Adam
from tapegrad.optim.optimizer import Parameters
from tapegrad.tensors.tensor import Tensor

__all__ = ["AdamW"]


class AdamW(Adam):
    """`Adam` whose weight decay shrinks the parameters themselves, by ``1 - lr * weight_decay`` before each step.

    Parameters
    ----------
    params, lr, betas, eps, amsgrad, maximize, foreach, capturable, differentiable, fused
        As for `Adam`.
    weight_decay : float
        How much the parameters shrink in a step, over `lr`.

    Raises
    ------
    ValueError
        If an option is out of its range.

    References
    ----------
    I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", ICLR, 2019.

    Examples
    --------
    >>> x = tg.tensor([8.0], requires_grad=True)
    >>> optimizer = tg.optim.AdamW([x], lr=0.5, weight_decay=0.25)
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([6.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip
