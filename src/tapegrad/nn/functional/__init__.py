"""The modules' computations as functions."""

from tapegrad.affine import linear
from tapegrad.nn.functional.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from tapegrad.nn.functional.attention import scaled_dot_product_attention
from tapegrad.nn.functional.binary import binary_cross_entropy, binary_cross_entropy_with_logits
from tapegrad.nn.functional.checking import checked
from tapegrad.nn.functional.classification import cross_entropy, nll_loss
from tapegrad.nn.functional.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from tapegrad.nn.functional.dropping import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from tapegrad.nn.functional.embedding import embedding
from tapegrad.nn.functional.fixed_pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from tapegrad.nn.functional.likelihoods import gaussian_nll_loss, kl_div, poisson_nll_loss
from tapegrad.nn.functional.margins import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
)
from tapegrad.nn.functional.normalisation import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm
from tapegrad.nn.functional.residuals import huber_loss, l1_loss, mse_loss, smooth_l1_loss
from tapegrad.nn.functional.similarity import cosine_similarity, normalize, pairwise_distance
from tapegrad.tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "embedding",
    "feature_alpha_dropout",
    "gaussian_nll_loss",
    "group_norm",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "linear",
    "local_response_norm",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "pairwise_distance",
    "poisson_nll_loss",
    "relu",
    "rms_norm",
    "scaled_dot_product_attention",
    "sigmoid",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "tanh",
    "triplet_margin_loss",
]


def relu(input: Tensor) -> Tensor:
    """``max(x, 0)`` of every element."""
    return input.relu()


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))`` of every element."""
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent of every element."""
    return input.tanh()


def softmax(input: Tensor, dim: int) -> Tensor:
    """Exponentials normalised to a sum of one along the axis `dim`."""
    return input.softmax(dim)


globals().update({name: checked(globals()[name]) for name in __all__})
