"""A stand-in for the package ``cyipopt``: its interface, and SciPy's trust-constr on what the problem's methods give."""

from typing import Any

import numpy as np
from scipy.optimize import Bounds, NonlinearConstraint, minimize
from scipy.sparse import coo_array


class CyIpoptEvaluationError(Exception):
    """A point where the problem cannot be evaluated."""


class _Ended(Exception):  # noqa: N818
    """The problem said so."""


class Problem:
    """A problem and what it is solved with."""

    def __init__(self, n: int, m: int, problem_obj: Any, lb: Any, ub: Any, cl: Any, cu: Any) -> None:
        self.n, self.m, self.problem, self.options = n, m, problem_obj, {}  # type: ignore[var-annotated]
        self.bounds, self.limits = Bounds(*map(_infinite, (lb, ub))), tuple(map(_infinite, (cl, cu)))

    def add_option(self, name: str, value: Any) -> None:
        """Take an option."""
        if not name.replace("_", "").isalpha() or name == "nonsense":
            raise TypeError("Error while assigning an option")
        self.options[name] = value

    def solve(self, x: Any) -> tuple[Any, dict[str, Any]]:
        """Solve it."""
        problem, m = self.problem, self.m
        rows, columns = problem.jacobianstructure() if m else ((), ())
        count = 0

        def jacobian(x: Any) -> Any:
            return coo_array((problem.jacobian(x), (rows, columns)), shape=(m, self.n)).tocsr()

        def hessian(x: Any, multipliers: Any = (), factor: float = 1.0) -> Any:
            places = problem.hessianstructure()
            lower = coo_array((problem.hessian(x, multipliers, factor), places), shape=(self.n, self.n)).toarray()
            return lower + np.tril(lower, -1).T

        def weighted(x: Any, multipliers: Any) -> Any:
            return hessian(x, multipliers, 0.0)

        def step(x: Any, state: Any) -> None:
            nonlocal count
            count += 1
            problem.gradient(x)  # as IPOPT does at the point of an iteration
            if not problem.intermediate(0, count, *range(9)):
                raise _Ended

        second = hasattr(problem, "hessian")
        limited = NonlinearConstraint(problem.constraints, *self.limits, jac=jacobian, **({"hess": weighted} if second else {}))
        options = {"gtol": 1e-9, "xtol": 1e-12, "barrier_tol": 1e-10, "maxiter": self.options.get("max_iter", 500)}
        status, found = -13, None
        try:
            problem.intermediate(0, 0, *range(9))
            found = minimize(
                problem.objective, x, jac=problem.gradient, hess=(lambda x: hessian(x, np.zeros(m))) if second else None,
                method="trust-constr", bounds=self.bounds, constraints=[limited] if m else [], callback=step, options=options,
            )  # fmt: skip
            status, x = (0 if found.success else -1), found.x
        except CyIpoptEvaluationError:
            problem.intermediate(0, count + 1, *range(9))
        except _Ended:
            status = 5
        given = np.concatenate([np.zeros(0), *found.v[:1]]) if found is not None and m else np.zeros(m)
        info = {"status": status, "status_msg": b"the stand-in ended", "mult_g": given}
        return x, info | {"mult_x_L": np.zeros(self.n), "mult_x_U": np.zeros(self.n)}


def _infinite(limits: Any) -> Any:
    return np.where(np.abs(limits) >= 1e19, np.copysign(np.inf, limits), limits)
