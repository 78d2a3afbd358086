"""Losses, distances and similarities as modules."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional
from tapegrad.nn.module import Module
from tapegrad.tensors.tensor import Tensor

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PairwiseDistance",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    """A loss with a reduction: ``"mean"``, ``"sum"`` or ``"none"``."""

    function: Any = None

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def options(self) -> dict[str, Any]:
        """Keywords of the function besides the reduction."""
        return {}

    def forward(self, *operands: Tensor) -> Tensor:
        """The loss of input and target."""
        return type(self).function(*operands, **self.options(), reduction=self.reduction)


class MSELoss(_Loss):
    """`functional.mse_loss` as a module.

    Examples
    --------
    >>> tg.nn.MSELoss()(tg.tensor([1.0, 3.0]), tg.tensor([1.0, 1.0]))
    tensor(2.)
    """

    function = staticmethod(functional.mse_loss)


class L1Loss(_Loss):
    """`functional.l1_loss` as a module."""

    function = staticmethod(functional.l1_loss)


class SmoothL1Loss(_Loss):
    """`functional.smooth_l1_loss` as a module."""

    function = staticmethod(functional.smooth_l1_loss)

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def options(self) -> dict[str, Any]:
        """Where the parabola ends."""
        return {"beta": self.beta}


class HuberLoss(_Loss):
    """`functional.huber_loss` as a module."""

    function = staticmethod(functional.huber_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def options(self) -> dict[str, Any]:
        """Where the parabola ends."""
        return {"delta": self.delta}


class _WeightedLoss(_Loss):
    """A loss with a factor for each class or element, kept as a buffer."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def options(self) -> dict[str, Any]:
        """The factors."""
        return {"weight": self.weight}


class NLLLoss(_WeightedLoss):
    """`functional.nll_loss` as a module."""

    function = staticmethod(functional.nll_loss)

    def __init__(self, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def options(self) -> dict[str, Any]:
        """The factors, and the class that counts for nothing."""
        return {"weight": self.weight, "ignore_index": self.ignore_index}


class CrossEntropyLoss(_WeightedLoss):
    """`functional.cross_entropy` as a module.

    Examples
    --------
    >>> tg.nn.CrossEntropyLoss()(tg.zeros(1, 2), tg.tensor([1]))
    tensor(0.6931)
    """

    function = staticmethod(functional.cross_entropy)

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def options(self) -> dict[str, Any]:
        """The factors, the class that counts for nothing, and the smoothing."""
        return {"weight": self.weight, "ignore_index": self.ignore_index, "label_smoothing": self.label_smoothing}


class BCELoss(_WeightedLoss):
    """`functional.binary_cross_entropy` as a module."""

    function = staticmethod(functional.binary_cross_entropy)


class BCEWithLogitsLoss(_WeightedLoss):
    """`functional.binary_cross_entropy_with_logits` as a module."""

    function = staticmethod(functional.binary_cross_entropy_with_logits)
    pos_weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def options(self) -> dict[str, Any]:
        """Both kinds of factors."""
        return {"weight": self.weight, "pos_weight": self.pos_weight}


class KLDivLoss(_Loss):
    """`functional.kl_div` as a module."""

    function = staticmethod(functional.kl_div)

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def options(self) -> dict[str, Any]:
        """Whether the target holds logarithms."""
        return {"log_target": self.log_target}


class PoissonNLLLoss(_Loss):
    """`functional.poisson_nll_loss` as a module."""

    function = staticmethod(functional.poisson_nll_loss)

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def options(self) -> dict[str, Any]:
        """What the input is, and which terms count."""
        return {"log_input": self.log_input, "full": self.full, "eps": self.eps}


class GaussianNLLLoss(_Loss):
    """`functional.gaussian_nll_loss` as a module."""

    function = staticmethod(functional.gaussian_nll_loss)

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def options(self) -> dict[str, Any]:
        """Which terms count."""
        return {"full": self.full, "eps": self.eps}


class _MarginLoss(_Loss):
    default = 0.0

    def __init__(self, margin: float | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = self.default if margin is None else margin

    def options(self) -> dict[str, Any]:
        """The margin."""
        return {"margin": self.margin}


class CosineEmbeddingLoss(_MarginLoss):
    """`functional.cosine_embedding_loss` as a module; the margin is 0 if not given."""

    function = staticmethod(functional.cosine_embedding_loss)


class MarginRankingLoss(_MarginLoss):
    """`functional.margin_ranking_loss` as a module; the margin is 0 if not given."""

    function = staticmethod(functional.margin_ranking_loss)


class HingeEmbeddingLoss(_MarginLoss):
    """`functional.hinge_embedding_loss` as a module; the margin is 1 if not given."""

    function = staticmethod(functional.hinge_embedding_loss)
    default = 1.0


class TripletMarginLoss(_Loss):
    """`functional.triplet_margin_loss` as a module."""

    function = staticmethod(functional.triplet_margin_loss)

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean") -> None:
        super().__init__(reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def options(self) -> dict[str, Any]:
        """The margin and the norm."""
        return {"margin": self.margin, "p": self.p, "eps": self.eps, "swap": self.swap}


class TripletMarginWithDistanceLoss(_Loss):
    """`functional.triplet_margin_with_distance_loss` as a module.

    Examples
    --------
    >>> loss = tg.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1))
    >>> loss(tg.tensor([[0.0]]), tg.tensor([[1.0]]), tg.tensor([[1.5]]))
    tensor(0.5000)
    """

    function = staticmethod(functional.triplet_margin_with_distance_loss)

    def __init__(self, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> None:
        super().__init__(reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead")
        self.distance_function = functional.pairwise_distance if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def options(self) -> dict[str, Any]:
        """The distance and the margin."""
        return {"distance_function": self.distance_function, "margin": self.margin, "swap": self.swap}


class MultiLabelMarginLoss(_Loss):
    """`functional.multilabel_margin_loss` as a module."""

    function = staticmethod(functional.multilabel_margin_loss)


class SoftMarginLoss(_Loss):
    """`functional.soft_margin_loss` as a module."""

    function = staticmethod(functional.soft_margin_loss)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """`functional.multilabel_soft_margin_loss` as a module."""

    function = staticmethod(functional.multilabel_soft_margin_loss)


class MultiMarginLoss(_WeightedLoss):
    """`functional.multi_margin_loss` as a module."""

    function = staticmethod(functional.multi_margin_loss)

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)
        if p not in (1, 2):
            raise ValueError(f"only p == 1 and p == 2 supported, but got {p}")
        self.p, self.margin = p, margin

    def options(self) -> dict[str, Any]:
        """The power, the margin and the factors."""
        return {"p": self.p, "margin": self.margin, "weight": self.weight}


class CosineSimilarity(Module):
    """`functional.cosine_similarity` as a module."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The cosines."""
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """`functional.pairwise_distance` as a module."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The distances."""
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
