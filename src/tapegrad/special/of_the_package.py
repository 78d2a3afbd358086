"""Names that `special` has for functions of the package: they are these functions."""

from __future__ import annotations

from typing import Any

from tapegrad.surface.tensor_methods import public

__all__ = ["NAMES", "function"]

NAMES = {
    "digamma": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expit": "expit", "expm1": "expm1",
    "gammaln": "lgamma", "log1p": "log1p", "log_softmax": "log_softmax", "logit": "logit", "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma", "polygamma": "polygamma", "psi": "digamma", "round": "round", "sinc": "sinc",
    "softmax": "softmax", "xlogy": "xlogy",
}  # fmt: skip


def function(name: str) -> Any:
    """The package's function for a name of `special`."""
    return public(NAMES[name])
