"""What to write for functions of SciPy that make arrays of NumPy's of what they are given, where there is no derivative."""

from __future__ import annotations

from types import FrameType, FunctionType

from tapegrad.frames import calling_frame

__all__ = ["DISTRIBUTIONS", "counterpart"]

COUNTERPARTS = {
    "block_diag": "tg.block_diag",
    "cdist": "tg.cdist",
    "cho_factor": "np.linalg.cholesky",
    "cho_solve": "tg.cholesky_solve",
    "comb": "scipy.special.binom",
    "convolve": "np.convolve",
    "cumulative_trapezoid": "tg.cumulative_trapezoid",
    "curve_fit": "tg.optimize.curve_fit",
    "euclidean": "np.linalg.norm(u - v)",
    "expm": "tg.linalg.matrix_exp",
    "factorial": "scipy.special.gamma(n + 1)",
    "fftconvolve": "np.convolve",
    "gmean": "np.exp(np.log(x).mean())",
    "least_squares": "tg.optimize.least_squares",
    "log_softmax": "tg.log_softmax(x, axis)",
    "logsumexp": "np.logaddexp.reduce(x, axis), or tg.logsumexp",
    "lu": "tg.linalg.lu",
    "lu_factor": "tg.linalg.lu_factor",
    "lu_solve": "tg.linalg.lu_solve",
    "minimize": "tg.optimize.minimize",
    "multigammaln": "tg.mvlgamma",
    "odeint": "tg.integrate.odeint",
    "pdist": "tg.pdist",
    "pearsonr": "np.corrcoef(x, y)[0, 1]",
    "polygamma": "tg.polygamma",
    "root": "tg.optimize.root",
    "softmax": "tg.softmax(x, axis)",
    "solve_ivp": "tg.integrate.solve_ivp",
    "solve_triangular": "tg.linalg.solve_triangular",
    "trapezoid": "np.trapezoid",
    "zscore": "(x - x.mean()) / x.std()",
}
_LINEAR_ALGEBRA = "cholesky det eigh eigvalsh inv lstsq norm pinv qr solve svd svdvals"
COUNTERPARTS |= {name: f"np.linalg.{name}" for name in _LINEAR_ALGEBRA.split()}
# Methods of distributions that `tapegrad.as_autograd` has with derivatives.
DISTRIBUTIONS = {
    "beta": "cdf logpdf pdf",
    "chi2": "cdf logpdf pdf",
    "dirichlet": "logpdf pdf",
    "gamma": "cdf logpdf pdf",
    "multivariate_normal": "entropy logpdf pdf",
    "norm": "cdf logcdf logpdf logsf pdf sf",
    "poisson": "cdf logpmf pmf",
    "t": "cdf logcdf logpdf pdf",
}


def counterpart() -> str:
    """A sentence about the function of SciPy that a user called, and that asks for an array; empty if it is none.

    Notes
    -----
    The function is that of the outermost frame of SciPy. Many are called through a decorator, which has them as a variable.
    """
    frame: FrameType | None = calling_frame()
    outermost = None
    while frame is not None and frame.f_globals.get("__name__", "").startswith(("scipy.", "numpy")):
        outermost, frame = frame, frame.f_back
    if outermost is None or not outermost.f_globals["__name__"].startswith("scipy."):
        return ""
    name = outermost.f_code.co_name
    if outermost.f_globals["__name__"].startswith("scipy.stats.") and "self" in outermost.f_locals:
        return _of_distribution(outermost.f_locals["self"], name)
    if name not in COUNTERPARTS:
        held = [value for value in outermost.f_locals.values() if isinstance(value, FunctionType)]
        name = next((value.__name__ for value in held if value.__name__ in COUNTERPARTS), name)
    if name not in COUNTERPARTS:
        return ""
    return f" SciPy's {name} computes on arrays of NumPy's; write {COUNTERPARTS[name]} in its place."


def _of_distribution(asked: object, method: str) -> str:
    """A sentence about a distribution, or about one whose parameters are given already."""
    whole = getattr(asked, "dist", None) or getattr(asked, "_dist", asked)
    name: str = getattr(whole, "name", None) or type(whole).__name__.removesuffix("_gen").removesuffix("_frozen")
    methods = DISTRIBUTIONS.get(name, "").split()
    if method in methods or (methods and method in ("__init__", "__call__", "freeze")):
        call = f"{name}.{method}" if method in methods else name
        return (
            f" SciPy's {name} computes on arrays of NumPy's; import tapegrad.as_autograd, and write autograd.scipy.stats.{call} of "
            "the same arguments, which has a derivative."
        )
    return (
        f" SciPy's distributions compute on arrays of NumPy's; write that of {name} with NumPy's functions and those of "
        "scipy.special (gammaln, xlogy, betaln, log_ndtr, gammainc)."
    )
