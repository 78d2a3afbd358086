"""Linear algebra: `tapegrad.linalg`, with PyTorch's names. Everything takes batches of matrices in the last two dimensions."""

from tapegrad.errors import LinAlgError
from tapegrad.linalg.chains import matmul, matrix_power, multi_dot
from tapegrad.linalg.determinants import det, slogdet
from tapegrad.linalg.exponential import matrix_exp
from tapegrad.linalg.factorisations import cholesky, qr
from tapegrad.linalg.least_squares import lstsq, matrix_rank, pinv
from tapegrad.linalg.matrix_norms import cond, matrix_norm, norm, vector_norm
from tapegrad.linalg.solving import inv, solve, solve_triangular, tensorinv, tensorsolve
from tapegrad.linalg.spectral import eigh, eigvalsh, svd, svdvals
from tapegrad.vectors import cross_along as cross
from tapegrad.vectors import vecdot

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
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
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vecdot",
    "vector_norm",
]
