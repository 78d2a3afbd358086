"""Linear algebra: `tapegrad.linalg`, with PyTorch's names. Everything takes batches of matrices in the last two dimensions."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places

if _TYPE_CHECKING:
    from tapegrad.errors import LinAlgError
    from tapegrad.linalg.chains import matmul, matrix_power, multi_dot
    from tapegrad.linalg.determinants import det, slogdet
    from tapegrad.linalg.exponential import matrix_exp
    from tapegrad.linalg.factorisations import cholesky, qr
    from tapegrad.linalg.least_squares import lstsq, matrix_rank, pinv
    from tapegrad.linalg.matrix_norms import cond, matrix_norm, norm, vector_norm
    from tapegrad.linalg.reported_failures import cholesky_ex, inv_ex, lu_factor_ex, solve_ex
    from tapegrad.linalg.solving import inv, solve, solve_triangular
    from tapegrad.linalg.spectral import eigh, eigvalsh, svd, svdvals
    from tapegrad.linalg.tensor_equations import tensorinv, tensorsolve
    from tapegrad.linalg.triangular_factors import lu, lu_factor, lu_solve
    from tapegrad.ops.diagonals import diagonal_of_matrices as diagonal
    from tapegrad.ops.powers import powers_of_each as vander
    from tapegrad.ops.vectors import cross_along as cross
    from tapegrad.ops.vectors import vecdot

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "inv_ex",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

_names = _NamesOnDemand(
    globals(),
    _places(
        {
            "errors": "LinAlgError",
            "linalg.chains": "matmul matrix_power multi_dot",
            "linalg.determinants": "det slogdet",
            "linalg.exponential": "matrix_exp",
            "linalg.factorisations": "cholesky qr",
            "linalg.least_squares": "lstsq matrix_rank pinv",
            "linalg.triangular_factors": "lu lu_factor lu_solve",
            "linalg.matrix_norms": "cond matrix_norm norm vector_norm",
            "linalg.reported_failures": "cholesky_ex inv_ex lu_factor_ex solve_ex",
            "linalg.solving": "inv solve solve_triangular",
            "linalg.tensor_equations": "tensorinv tensorsolve",
            "linalg.spectral": "eigh eigvalsh svd svdvals",
            "ops.vectors": "vecdot",
        }
    )
    | {
        "cross": "ops.vectors:cross_along",
        "diagonal": "ops.diagonals:diagonal_of_matrices",
        "vander": "ops.powers:powers_of_each",
    },
)


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
