"""The table of names: which file defines which function of the package and method of `Tensor`.

The files are imported when one of their names is first asked for, so that a process pays for what it uses. What a file has here is
what its ``__all__`` names. Functions that are not here are rows of the rule table.
"""

from __future__ import annotations

__all__ = [
    "ALIASES", "FAMILIES", "FILES", "FUNCTIONS_IN_PLACE", "FUNCTIONS_OF_LAYERS", "IN_PLACE_VIEWS", "MORE", "NEVER_TRUE",
    "NOT_METHODS", "OTHERS", "PLACES", "UNCHECKED", "WRITTEN", "WRITTEN_COPIES", "WRITTEN_DIRECTLY",
]  # fmt: skip

FILES: dict[str, str] = {
    "ops.affine": "addbmm addmm addmv addr baddbmm",
    "ops.arithmetic": "add clamp clip div float_power leaky_relu logit round rsub softplus sub where",
    "ops.comparing": (
        "allclose bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor eq equal gcd ge greater "
        "greater_equal gt isclose isfinite isinf isnan isneginf isposinf isreal lcm le less less_equal logical_and logical_not "
        "logical_or logical_xor lt ne not_equal signbit"
    ),
    "ops.covariances": "corrcoef cov",
    "ops.counting": "bincount histc unique unique_consecutive",
    "ops.diagonals": "diag diag_embed diagflat diagonal",
    "ops.differences": "cumulative_trapezoid diff trapezoid trapz",
    "ops.extremes": "MinMax ValuesIndices amax amin aminmax argmax argmin max min",
    "ops.grouped_reductions": "index_reduce scatter_reduce",
    "ops.grids": "broadcast_shapes broadcast_tensors cartesian_prod combinations meshgrid",
    "ops.indexing": "getitem",
    "ops.joining": (
        "atleast_1d atleast_2d atleast_3d block_diag cat column_stack concat concatenate dstack hstack row_stack stack vstack"
    ),
    "ops.missing_values": "nan_to_num nanmean nansum",
    "ops.moments": "std std_mean var var_mean",
    "ops.neighbours": "nextafter",
    "ops.normalisation": "log_softmax logsumexp softmax",
    "ops.multivariate_gamma": "mvlgamma",
    "ops.norms": "dist",
    "ops.order_statistics": "median mode nanmedian nanquantile quantile",
    "ops.powers": "ldexp vander",
    "ops.products": "bmm dot ger matmul mm mv outer",
    "ops.rearranging": "flip fliplr flipud roll rot90",
    "ops.contractions": "einsum",
    "ops.reductions": "all any count_nonzero mean prod sum",
    "ops.running_extremes": "cummax cummin",
    "ops.scaled_sums": "addcdiv addcmul",
    "ops.scans": "cumprod cumsum logcumsumexp",
    "ops.scattering": "index_put masked_scatter put scatter scatter_add",
    "ops.searching": "argwhere bucketize isin nonzero searchsorted unravel_index",
    "ops.selecting": "gather index_select masked_fill masked_select take take_along_dim",
    "ops.shaping": (
        "broadcast_to contiguous expand expand_as flatten ravel reshape reshape_as squeeze unflatten unsqueeze view view_as"
    ),
    "ops.slopes": "gradient",
    "ops.slice_writing": "index_add index_copy index_fill",
    "ops.sorting": "argsort kthvalue msort sort topk",
    "ops.splitting": (
        "chunk dsplit hsplit split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit"
    ),
    "ops.broadcast_sums": "sum_to_size",
    "ops.subviews": "as_strided narrow narrow_copy select select_scatter slice_scatter",
    "ops.tensor_products": "inner kron tensordot",
    "ops.tiling": "repeat_interleave tile",
    "ops.transposing": "adjoint moveaxis movedim permute swapaxes swapdims t transpose",
    "ops.triangles": "tril triu",
    "ops.undifferentiable": "floor_divide heaviside",
    "ops.view_scattering": "as_strided_scatter diagonal_scatter",
    "ops.vectors": "cross trace vdot",
}  # fmt: skip

# Names that are defined under others, or in files that are not the package's own surface.
OTHERS: dict[str, str] = {
    "angle": "ops.piecewise:angle", "celu": "ops.activations:celu", "celu_": "ops.in_place_nonlinearities:celu_",
    "chain_matmul": "linalg.chains:chain_matmul",
    "cholesky": "linalg.factorisations:legacy_cholesky",
    "cdist": "linalg.distances:cdist", "pdist": "linalg.distances:pdist", "renorm": "linalg.distances:renorm",
    "cholesky_inverse": "linalg.factorisations:cholesky_inverse", "cholesky_solve": "linalg.factorisations:cholesky_solve",
    "clone": "ops.cloning:clone", "conj": "surface.attributes:conj", "conj_physical": "surface.attributes:conj",
    "det": "linalg.determinants:det", "divide": "ops.arithmetic:div",
    "hardshrink": "ops.piecewise:hardshrink", "i0": "special.by_scipy:i0", "igamma": "special.by_scipy:gammainc",
    "igammac": "special.by_scipy:gammaincc", "inverse": "linalg.solving:inv", "logdet": "linalg.determinants:logdet",
    "matrix_exp": "linalg.exponential:matrix_exp", "matrix_power": "linalg.chains:matrix_power",
    "norm": "linalg.legacy_norm:legacy_norm", "positive": "ops.cloning:positive",
    "bernoulli": "ops.sampling:bernoulli", "multinomial": "ops.sampling:multinomial",
    "is_complex": "surface.questions:is_complex", "is_conj": "surface.questions:is_conj", "is_neg": "surface.questions:is_neg",
    "is_floating_point": "surface.questions:is_floating_point", "is_nonzero": "surface.questions:is_nonzero",
    "is_same_size": "surface.questions:is_same_size", "is_signed": "surface.questions:is_signed",
    "is_tensor": "surface.questions:is_tensor", "numel": "surface.attributes:numel", "real": "surface.attributes:conj",
    "resolve_conj": "surface.attributes:conj", "resolve_neg": "surface.attributes:conj",
    "pinverse": "linalg.least_squares:pinverse", "prelu": "ops.piecewise:prelu", "qr": "linalg.factorisations:legacy_qr",
    "rrelu": "ops.piecewise:rrelu", "rrelu_": "ops.in_place_nonlinearities:rrelu_", "selu": "ops.activations:selu",
    "selu_": "ops.in_place_nonlinearities:selu_", "slogdet": "linalg.determinants:slogdet",
    "subtract": "ops.arithmetic:sub", "svd": "linalg.spectral:legacy_svd", "threshold": "ops.piecewise:threshold",
    "threshold_": "ops.in_place_nonlinearities:threshold_",
    "true_divide": "ops.arithmetic:div",
}  # fmt: skip

PLACES: dict[str, str] = {name: f"{file}:{name}" for file, names in FILES.items() for name in names.split()} | OTHERS

# Functions of tensors among others, which look at their operands themselves.
UNCHECKED = frozenset(
    [
        *FILES["ops.joining"].split(), *FILES["ops.comparing"].split(), *FILES["ops.arithmetic"].split(),
        *FILES["ops.grids"].split(),
        "bucketize", "chain_matmul", "clone", "divide", "einsum", "isin", "is_tensor", "searchsorted", "subtract", "true_divide",
    ]
) - {"combinations"}  # fmt: skip

# Functions of the package that are no methods of a tensor.
NOT_METHODS = frozenset(
    [
        *FILES["ops.joining"].split(), *FILES["ops.grids"].split(),
        "bucketize", "celu", "chain_matmul", "cumulative_trapezoid", "einsum",
        "MinMax", "ValuesIndices", "cdist", "gradient", "pdist",
        "getitem", "is_tensor", "isin", "real", "rrelu",
        "celu_", "rrelu_", "searchsorted", "selu", "selu_", "std_mean", "tensordot", "threshold", "threshold_",
        "trapezoid", "trapz", "vander", "var_mean",
        "unravel_index", "where",
    ]
)  # fmt: skip

# PyTorch's other names for rules.
ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "divide": "div", "fix": "trunc", "multiply": "mul", "negative": "neg",
    "subtract": "sub", "true_divide": "div", "sgn": "sign", "special_expit": "sigmoid", "expit": "sigmoid",
}  # fmt: skip

# Operations besides the rules that have an in-place form.
WRITTEN = (
    "addcdiv", "addcmul", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "cumprod", "cumsum", "div", "divide", "eq", "float_power", "floor_divide", "gcd", "ge", "greater",
    "greater_equal", "gt", "heaviside", "i0", "igamma", "igammac", "index_reduce", "lcm", "ldexp", "le",
    "less", "less_equal", "logical_and", "logical_not", "logical_or",
    "logical_xor", "logit", "lt", "mvlgamma", "nan_to_num", "ne", "nextafter",
    "not_equal", "renorm", "round", "scatter_reduce", "true_divide",
)  # fmt: skip

# Operations whose result, a copy, is written into the tensor.
WRITTEN_COPIES = (
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "index_add", "index_copy", "index_fill", "index_put", "masked_fill",
    "masked_scatter", "put", "scatter", "scatter_add", "tril", "triu",
)  # fmt: skip

# Those that need not be computed before they are written, and where that is.
WRITTEN_DIRECTLY = {
    "index_copy": "ops.slice_writing:copy_into", "index_fill": "ops.slice_writing:fill_into",
    "masked_fill": "ops.selecting:fill_into", "masked_scatter": "ops.scattering:scatter_into",
    "tril": "ops.triangles:tril_into", "triu": "ops.triangles:triu_into",
}  # fmt: skip

# Methods in place, and `detach`, that PyTorch has as functions, besides those of rules of one argument.
FUNCTIONS_IN_PLACE = (
    "addmv_", "clamp_", "clamp_max_", "clamp_min_", "clip_", "detach", "detach_", "fill_", "gcd_", "index_put_", "lcm_", "ldexp_",
    "logit_", "nan_to_num_", "round_", "xlogy_", "zero_",
)  # fmt: skip

# Functions of layers that PyTorch has at the top, too, with the same arguments. Others that it has there (embedding, batch_norm,
# some losses) take theirs in another order.
FUNCTIONS_OF_LAYERS = (
    "adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear channel_shuffle conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d cosine_similarity dropout feature_alpha_dropout group_norm "
    "layer_norm max_pool1d max_pool2d max_pool3d pairwise_distance "
    "pixel_shuffle pixel_unshuffle rms_norm"
)

# Views that the tensor itself can become.
IN_PLACE_VIEWS = ("squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_")

# Questions about layouts and devices that tensors do not have.
NEVER_TRUE = ("is_meta", "is_mkldnn", "is_mps", "is_nested", "is_quantized", "is_sparse", "is_sparse_csr", "is_xpu")

# What else the package has, a dot being the file itself: what ``from tapegrad import *`` gives, and what it does not, as it stands
# for whole families.
MORE = {
    "autograd.anomaly_mode": "is_anomaly_check_nan_enabled is_anomaly_enabled",
    "tensors.devices": "device",
    "linalg": ".",
    "tensors.array_factories": "asarray scalar_tensor",
    "tensors.constants": "e finfo iinfo inf nan newaxis pi",
    "tensors.random": ". manual_seed normal rand rand_like randint randint_like randn randn_like randperm",
    "tensors.ranges": "arange eye linspace logspace tril_indices triu_indices",
    "utils": ".",
}
FAMILIES = {
    "drivers": ".",
    "drivers.derivative_checks": "check_grads",
    "drivers.checkpointing": "checkpoint",
    "drivers.curvature": "gauss_newton hessian hvp",
    "drivers.gradients": "elementwise_grad grad value_and_grad",
    "drivers.jacobians": "jacobian value_and_jacobian",
    "drivers.jacobian_products": "jvp linearize vjp",
    "nopython": "dual free_tape_memory njit_derivative njit_op register_derivative tape_memory",
    "numpy_arrays.constants": "stop_gradient",
    "files.saving": "load save",
    "inspection.drawing": "draw",
    "inspection.first_nan": "explain_nan",
    "inspection.profiling": "profile",
    "nn": ".",
    "nn.functional": FUNCTIONS_OF_LAYERS,
    "numpy": ".",
    "optim": ".",
    "optimize": ".",
    "integrate": ".",
    "parallel": ".",
    "sparse": ".",
    "special": ".",
    "programs.program": "program",
    "programs.saved_programs": "LoadedProgram load_program",
}
