"""The modules' computations as functions."""

from typing import Any as _Any

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.linalg.distances import pdist
from tapegrad.nn.functional.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from tapegrad.nn.functional.attention import scaled_dot_product_attention
from tapegrad.nn.functional.bilinear_maps import bilinear
from tapegrad.nn.functional.binary import binary_cross_entropy, binary_cross_entropy_with_logits
from tapegrad.nn.functional.checking import checked
from tapegrad.nn.functional.class_margins import multilabel_margin_loss, triplet_margin_with_distance_loss
from tapegrad.nn.functional.classification import cross_entropy, nll_loss
from tapegrad.nn.functional.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from tapegrad.nn.functional.dropping import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from tapegrad.nn.functional.embedding import embedding
from tapegrad.nn.functional.fixed_pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from tapegrad.nn.functional.folding import fold, unfold
from tapegrad.nn.functional.gumbel import gumbel_softmax
from tapegrad.nn.functional.interpolation import interpolate
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
from tapegrad.nn.functional.power_pooling import lp_pool1d, lp_pool2d, lp_pool3d
from tapegrad.nn.functional.residuals import huber_loss, l1_loss, mse_loss, smooth_l1_loss
from tapegrad.nn.functional.shuffling import channel_shuffle, pixel_shuffle, pixel_unshuffle
from tapegrad.nn.functional.similarity import cosine_similarity, normalize, pairwise_distance
from tapegrad.nn.nonlinearities import (
    celu,
    celu_,
    elu,
    elu_,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    relu_,
    rrelu,
    rrelu_,
    selu,
    selu_,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
    threshold_,
)
from tapegrad.ops.affine import linear
from tapegrad.ops.counting import one_hot
from tapegrad.ops.padding import pad

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
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
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
    "elu",
    "elu_",
    "embedding",
    "feature_alpha_dropout",
    "fold",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mish",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
]

globals().update({name: checked(globals()[name]) for name in __all__})
_names = _NamesOnDemand(globals(), {})


def __getattr__(name: str) -> _Any:
    return _names.get(name)
