"""Functions of packages, each with a point and constants: what the packages' users fit, compare and simulate with."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Case", "all_cases"]


class Case(NamedTuple):
    """A function and its arguments.

    Attributes
    ----------
    module, name : str
        Where it is.
    arguments : tuple
    differentiated : int
        The place of the argument that it is differentiated by; -1 for all of them, which are numbers then.
    item : str
        What of the result is taken.
    step : float
        Of differences, by the size of the point; large where the function computes in single precision.
    """

    module: str
    name: str
    arguments: tuple[Any, ...]
    differentiated: int = 0
    item: str = ""
    step: float = 1e-6


RNG = np.random.default_rng(0)
X, Y = RNG.random(12) + 0.1, RNG.random(12) + 0.1
MATRIX = RNG.random((4, 5)) + 0.2
P, Q = X[:6] / X[:6].sum(), Y[:6] / Y[:6].sum()
COLUMN, OTHER = X[:6].reshape(6, 1), Y[:6].reshape(6, 1)
SQUARES = (X[:6, None] - Y[None, :6]) ** 2
RETURNS, BENCHMARK = RNG.normal(size=12) * 0.02, RNG.normal(size=12) * 0.02
STARTS, ENDS = np.arange(9), np.arange(3, 12)

DISTRIBUTIONS = {
    "norm": (0.2, 1.3), "expon": (0.0, 1.2), "laplace": (0.2, 1.1), "lognorm": (0.8, 0.0, 1.2), "truncnorm": (0.0, 2.0, 0.2, 1.3),
    "truncexpon": (0.0, 2.0, 0.0, 1.3), "crystalball": (1.5, 3.0, 0.4, 0.6),
}  # fmt: skip
ELASTIC = ["dtw", "adtw", "ddtw", "erp", "msm", "twe", "wddtw", "wdtw", "soft_dtw", "shape_dtw"]
POINTWISE = ["euclidean", "manhattan", "minkowski", "squared", "shift_scale_invariant"]
DIVERGENCES = [
    "euclidean", "squared_euclidean", "manhattan", "minkowski", "canberra", "bray_curtis", "cosine", "alternative_cosine", "dot",
    "inner_product", "tsss", "true_angular", "correlation", "hellinger", "alternative_hellinger", "jensen_shannon_divergence",
    "wasserstein_1d", "symmetric_kl_divergence",
]  # fmt: skip
METRICS = ["euclidean", "canberra", "cosine", "correlation", "bray_curtis", "hellinger", "poincare", "minkowski", "symmetric_kl"]
ROLLING = {
    "rolling_mean_1d_nb": (3,), "rolling_std_1d_nb": (4,), "rolling_max_1d_nb": (3,), "ewm_mean_1d_nb": (3,), "ewm_std_1d_nb": (3,),
    "expanding_mean_1d_nb": (), "expanding_max_1d_nb": (), "diff_1d_nb": (), "pct_change_1d_nb": (), "ffill_1d_nb": (),
    "nanstd_1d_nb": (),
}  # fmt: skip
PERFORMANCE = {
    "cum_returns_final_1d_nb": (), "annualized_return_1d_nb": (252.0,), "annualized_volatility_1d_nb": (252.0,),
    "drawdown_1d_nb": (), "max_drawdown_1d_nb": (), "calmar_ratio_1d_nb": (252.0,), "omega_ratio_1d_nb": (252.0,),
    "sharpe_ratio_1d_nb": (252.0,), "downside_risk_1d_nb": (252.0,), "sortino_ratio_1d_nb": (252.0,),
    "information_ratio_1d_nb": (BENCHMARK,), "beta_1d_nb": (BENCHMARK,), "alpha_1d_nb": (BENCHMARK, 252.0),
    "cond_value_at_risk_1d_nb": (), "capture_1d_nb": (BENCHMARK, 252.0), "ulcer_index_1d_nb": (),
}  # fmt: skip
FLOWS: dict[str, tuple[float, ...]] = {
    "Reynolds": (2.5, 0.25, 1.1, 1.8e-5), "friction_factor": (1e5, 1e-4), "Haaland": (1e5, 1e-4), "Colebrook": (1e5, 1e-4),
    "Clamond": (1e5, 1e-4), "Churchill_1977": (1e5, 1e-4), "entrance_rounded": (0.1, 0.0235), "contraction_sharp": (1.0, 0.4),
    "diffuser_sharp": (0.5, 1.0), "drag_sphere": (200.0,), "Barati": (200.0,), "v_terminal": (70e-6, 2600.0, 1000.0, 1e-3),
    "Ergun": (8e-4, 0.4, 1e-3, 1e3, 1e-3), "V_horiz_conical": (108.0, 156.0, 42.0, 36.0), "SA_torispheroidal": (2.0, 1.0, 0.06),
    "isothermal_gas": (11.3, 0.00185, 1e6, 9e5, 1000.0, 0.5), "Panhandle_A": (0.693, 0.34, 90e5, 20e5, 160e3, 288.7),
    "bend_rounded": (0.9, 30.0, 0.02),
}  # fmt: skip
HEAT: dict[str, tuple[float, ...]] = {
    "LMTD": (100.0, 60.0, 30.0, 40.2), "turbulent_Dittus_Boelter": (1e5, 1.2), "turbulent_Gnielinski": (1e5, 1.2, 0.0185),
    "Nu_vertical_plate_Churchill": (0.69, 2.63e9), "Nu_horizontal_cylinder_Churchill_Chu": (0.69, 2.63e9),
    "Nu_cylinder_Churchill_Bernstein": (6071.0, 0.7), "Nu_cylinder_Zukauskas": (7992.0, 0.707),
    "Nu_sphere_Churchill": (0.69, 2.63e5), "blackbody_spectral_radiance": (800.0, 4e-6), "R_cylinder": (0.9, 1.0, 10.0, 10.0),
}  # fmt: skip


def all_cases() -> Iterator[Case]:
    """All of them, package by package."""
    for name, parameters in DISTRIBUTIONS.items():
        yield from (Case(f"numba_stats.{name}", kind, (X, *parameters)) for kind in ("pdf", "logpdf", "cdf"))
    yield from (Case("aeon.distances", f"{name}_distance", (X.reshape(2, 6), Y.reshape(2, 6))) for name in ELASTIC + POINTWISE)
    yield from (Case("aeon.distances", f"{name}_cost_matrix", (X[:6], Y[:6])) for name in ("dtw", "msm", "soft_dtw"))
    yield from (Case("pynndescent.distances", name, (P, Q), step=1e-3) for name in DIVERGENCES)
    yield Case(
        "pynndescent.distances", "sinkhorn", (P[:4], Q[:4], abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))), step=1e-3
    )
    yield from (Case("umap.distances", name, (X[:5] / 5, X[5:10] / 7)) for name in METRICS)
    both = COLUMN, OTHER
    yield Case("tslearn.metrics._dtw", "_njit_dtw", both)
    yield Case("tslearn.metrics._dtw", "_njit_accumulated_matrix", (*both, np.ones((6, 6), bool)))
    yield Case("tslearn.metrics._frechet", "_njit_frechet", both)
    yield Case("tslearn.metrics._gak", "_njit_log_gak_from_gram_matrix", (-SQUARES,))
    yield Case("tslearn.metrics._soft_dtw", "_njit_soft_dtw", (*both, 0.5))
    yield Case("tslearn.metrics._soft_dtw", "_njit_soft_dtw_normalized", (*both, 0.5))
    yield Case("tslearn.metrics.dtw_variants", "_njit_local_squared_dist", (X, Y))
    yield Case("tslearn.metrics.dtw_variants", "_njit_subsequence_cost_matrix", (COLUMN[:4], OTHER))
    yield from (Case("vectorbt.generic.nb", name, (X, *rest)) for name, rest in ROLLING.items())
    yield from (
        Case("vectorbt.generic.nb", f"nan{name}_nb", (MATRIX,)) for name in ("prod", "cumsum", "sum", "mean", "median", "max")
    )
    yield from (Case("vectorbt.returns.nb", name, (RETURNS, *rest)) for name, rest in PERFORMANCE.items())
    yield Case("vectorbt.indicators.nb", "true_range_nb", (MATRIX, MATRIX * 0.9, MATRIX * 0.95))
    yield Case("vectorbt.indicators.nb", "mstd_nb", (MATRIX, 3, False))
    kernels = "pandas.core._numba.kernels"
    yield from (Case(kernels, f"sliding_{name}", (X, np.float64, STARTS, ENDS, 1), item="[0]") for name in ("mean", "sum"))
    yield Case(kernels, "sliding_var", (X, np.float64, STARTS, ENDS, 1, 1), item="[0]")
    yield Case(kernels, "sliding_min_max", (X, np.float64, STARTS, ENDS, 1, True), item="[0]")
    yield from (Case("fluids.numba", name, arguments, -1) for name, arguments in FLOWS.items())
    yield from (Case("ht.numba", name, arguments, -1) for name, arguments in HEAT.items())
    yield Case("quantecon._inequality", "gini_coefficient", (X,))
    yield Case("quantecon._lss", "simulate_linear_model", (np.eye(2) * 0.5 + 0.1, np.ones(2), RNG.normal(size=(2, 4)), 5))
    yield Case("quantecon.markov.approximation", "std_norm_cdf", (0.3,), -1)
    tableau = np.array([[1.0, 2.0, 1.0], [2.0, 1.0, 3.0]])
    yield Case("quantecon.optimize.linprog_simplex", "linprog_simplex", (-X[:3], tableau, np.array([3.0, 4.0])), item=".fun")
    yield Case("quantecon.optimize.linprog_simplex", "linprog_simplex", (-X[:3], tableau, np.array([3.0, 4.0])), 2, ".x")
    game = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-1.0, -1.5])
    yield Case("quantecon.optimize.lcp_lemke", "lcp_lemke", game, item=".z")
    yield Case("quantecon.optimize.minmax", "minmax", (MATRIX,), item="[0]")
    yield from (
        Case("quantecon.quad", f"_qnw{rule}1", (5, 0.4, 1.3), 2, "[0]") for rule in ("trap", "simp", "lege", "cheb", "gamma")
    )
    earth = np.array([5.0, 6.0, 7.0, 8.0])
    layers = np.array([10.0, 10.0, 10.0, 0.0]), earth, earth / 1.75, np.array([2.5, 2.7, 2.9, 3.3])
    yield Case("disba._cps._surf96", "dltar1", (0.08, 0.3, *layers, 0), 4)
    rotors = "clifford.tools.g3c.rotor_parameterisation"
    yield from (Case(rotors, name, (X[:6],)) for name in ("val_TR_biv_params_to_rotor", "val_rotorconversion"))
    yield Case("clifford.tools.g3c", "get_left_gmt_matrix", (RNG.normal(size=32),))
