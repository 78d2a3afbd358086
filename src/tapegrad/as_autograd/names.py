"""Modules of autograd, and where in this room what they offer is defined."""

from __future__ import annotations

__all__ = ["EAGER", "FALLBACKS", "MODULES", "OPEN"]

_OPERATORS = (
    "checkpoint deriv elementwise_grad grad grad_and_aux grad_named hessian hessian_tensor_product hessian_vector_product "
    "holomorphic_grad jacobian make_ggnvp make_hvp make_jvp make_vjp multigrad_dict tensor_jacobian_product value_and_grad "
    "vector_jacobian_product"
)
_BUILTINS = "dict isinstance list tuple type"
_DEFINING = "def_linear defjvp defjvp_argnum defjvp_argnums defvjp defvjp_argnum defvjp_argnums"
_SPACES = "SparseObject VSpace vspace"
_TRACING = "Box JVPNode VJPNode getval isbox notrace_primitive register_notrace"
_FORMULAS = "balanced_eq match_complex metadata repeat_to_match_shape replace_zero unbroadcast unbroadcast_f"
_NUMPY = (
    "array_from_args atleast_1d atleast_2d atleast_3d column_stack concatenate concatenate_args hstack make_diagonal metadata "
    "row_stack stack vstack where"
)
_ROOM = "as_autograd"


def _stats(name: str, functions: str) -> dict[str, dict[str, str]]:
    return {f"autograd.scipy.stats.{name}": {f"{_ROOM}.distributions.{name}": functions}}


# For each module the files of the package, and the names that they give.
MODULES: dict[str, dict[str, str]] = {
    "autograd": {
        f"{_ROOM}.differential_operators": _OPERATORS,
        f"{_ROOM}.containers": _BUILTINS,
        f"{_ROOM}.primitives": "primitive",
    },
    "autograd.builtins": {f"{_ROOM}.containers": f"{_BUILTINS} DictBox SequenceBox isinstance_ type_ tuple_ list_ dict_"},
    "autograd.core": {
        f"{_ROOM}.products": "make_jvp make_vjp",
        f"{_ROOM}.primitives": "primitive",
        f"{_ROOM}.given_derivatives": f"primitive_jvps primitive_vjps {_DEFINING}",
        f"{_ROOM}.vector_spaces": _SPACES,
        f"{_ROOM}.tracing": _TRACING,
    },
    "autograd.differential_operators": {
        f"{_ROOM}.differential_operators": f"{_OPERATORS} make_jvp_reversemode _make_jvp _make_vjp",
        f"{_ROOM}.wrapping": "unary_to_nary",
        f"{_ROOM}.primitives": "primitive",
        f"{_ROOM}.given_derivatives": "defvjp_argnum",
        f"{_ROOM}.vector_spaces": "vspace",
    },
    "autograd.extend": {
        f"{_ROOM}.primitives": "primitive",
        f"{_ROOM}.given_derivatives": _DEFINING,
        f"{_ROOM}.vector_spaces": _SPACES,
        f"{_ROOM}.tracing": _TRACING,
    },
    "autograd.misc": {f"{_ROOM}.tracing": "const_graph"},
    "autograd.misc.fixed_points": {f"{_ROOM}.fixed_points": "fixed_point"},
    "autograd.misc.flatten": {f"{_ROOM}.flattening": "flatten flatten_func"},
    "autograd.misc.optimizers": {f"{_ROOM}.optimizers": "adam rmsprop sgd unflatten_optimizer"},
    "autograd.misc.tracers": {f"{_ROOM}.tracing": "const_graph const_graph_unary"},
    "autograd.numpy": {f"{_ROOM}.numpy_functions": _NUMPY},
    "autograd.numpy.fft": {},
    "autograd.numpy.linalg": {f"{_ROOM}.numpy_functions": "eigh eigvalsh"},
    "autograd.numpy.random": {},
    "autograd.numpy.numpy_boxes": {f"{_ROOM}.tracing": "ArrayBox"},
    "autograd.numpy.numpy_vjps": {f"{_ROOM}.numpy_functions": _FORMULAS},
    "autograd.numpy.numpy_vspaces": {f"{_ROOM}.vector_spaces": "ArrayVSpace ComplexArrayVSpace"},
    "autograd.numpy.numpy_wrapper": {f"{_ROOM}.numpy_functions": _NUMPY},
    "autograd.scipy": {},
    "autograd.scipy.integrate": {f"{_ROOM}.integration": "odeint"},
    "autograd.scipy.linalg": {f"{_ROOM}.matrix_functions": "solve_banded solve_sylvester solve_triangular sqrtm"},
    "autograd.scipy.signal": {f"{_ROOM}.convolution": "convolve"},
    "autograd.scipy.special": {f"{_ROOM}.special_functions": "logsumexp multigammaln polygamma"},
    "autograd.scipy.stats": {},
    **_stats("beta", "cdf logpdf pdf"),
    **_stats("chi2", "cdf logpdf pdf"),
    **_stats("dirichlet", "logpdf pdf"),
    **_stats("gamma", "cdf logpdf pdf"),
    **_stats("multivariate_normal", "entropy logpdf pdf"),
    **_stats("norm", "cdf logcdf logpdf logsf pdf sf"),
    **_stats("poisson", "cdf logpmf pmf"),
    **_stats("t", "cdf logcdf logpdf pdf"),
    "autograd.test_util": {f"{_ROOM}.gradient_checks": "check_equivalent check_grads check_jvp check_vjp combo_check scalar_close"},
    "autograd.tracer": {
        f"{_ROOM}.tracing": f"{_TRACING} Node",
        f"{_ROOM}.primitives": "primitive",
    },
    "autograd.util": {f"{_ROOM}.wrapping": "func subval subvals", f"{_ROOM}.gradient_checks": "quick_grad_check"},
    "autograd.wrap_util": {f"{_ROOM}.wrapping": "get_doc get_name unary_to_nary wrap_nary_f wraps"},
}

# Functions that have the name of the module beside them, which they take the place of.
EAGER: dict[str, dict[str, str]] = {"autograd.misc": {"flatten": f"{_ROOM}.flattening:flatten"}}

# What gives all other names of a module.
FALLBACKS: dict[str, str] = {
    "autograd.numpy": f"{_ROOM}.numpy_names:numpy_name",
    "autograd.numpy.numpy_wrapper": f"{_ROOM}.numpy_names:numpy_name",
    "autograd.numpy.fft": f"{_ROOM}.numpy_names:fft_name",
    "autograd.numpy.linalg": f"{_ROOM}.numpy_names:linalg_name",
    "autograd.numpy.random": f"{_ROOM}.numpy_names:random_name",
} | {name: f"{_ROOM}.numpy_names:scipy_name" for name in MODULES if name.startswith("autograd.scipy.")}

# Modules for whose functions anybody may give another derivative.
OPEN = {"autograd.numpy.fft", "autograd.numpy.linalg"} | {name for name in MODULES if name.startswith("autograd.scipy.")}
