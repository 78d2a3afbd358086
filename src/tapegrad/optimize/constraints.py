"""Constraints whose values and Jacobians come from one recording."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.drivers.containers import flatten
from tapegrad.drivers.leaves import plain_tree
from tapegrad.named_tuples import Named
from tapegrad.optimize.dependence import constants, recorded
from tapegrad.optimize.packing import Packing, as_arguments

__all__ = [
    "Constraint", "between", "constraint_functions", "equality", "inequality", "listed_constraints", "recordable",
    "scipy_constraints",
]  # fmt: skip

KINDS = {"eq": 0.0, "ineq": np.inf}  # of dicts, in capitals too, and how far up their functions may go


class Constraint(Named):
    """``lower <= function(x) <= upper``.

    Attributes
    ----------
    function : callable
        Takes the structured variable and returns an array, a float, or a container of these.
    lower, upper : float or ndarray
        For all of its numbers, one after the other.

    Examples
    --------
    >>> tg.optimize.inequality(np.log).upper
    inf
    """

    __slots__ = ()
    function: Callable[..., Any]
    lower: Any
    upper: Any

    def __new__(cls, function: Callable[..., Any], lower: Any, upper: Any) -> Self:
        """The constraint of these."""
        return super().__new__(cls, function, lower, upper)

    def to_scipy(self, x0: Any) -> Any:
        """SciPy's own constraint, for variables of the structure of `x0`.

        Parameters
        ----------
        x0 : array, float or container of these

        Returns
        -------
        scipy.optimize.NonlinearConstraint
            With exact Jacobian and Hessian, of the vector of all elements of the variable.

        Raises
        ------
        TypeError
            If `x0` is not of floats.

        Examples
        --------
        >>> circle = tg.optimize.equality(lambda x: (x * x).sum() - 2.0).to_scipy(np.zeros(2))
        >>> circle.fun(np.array([1.0, 2.0])), circle.jac(np.array([1.0, 2.0]))
        (array([3.]), array([[2., 4.]]))
        """
        return self.packed(Packing(x0, "constraint"))

    def packed(self, packing: Packing, second: bool = True, sparse: bool = False) -> Any:
        """The same for a packing, on request without the Hessian, which most methods warn that they do not take."""
        from scipy.optimize import NonlinearConstraint

        vector = _vector_function(self.function, packing, name="constraint", keeps=second, sparse=sparse)
        known = {"hess": vector.hessian} if second else {}
        return NonlinearConstraint(vector.value, self.lower, self.upper, jac=vector.jacobian, **known)


def equality(function: Callable[..., Any]) -> Constraint:
    """The constraint that a function is zero.

    Parameters
    ----------
    function : callable
        Takes the variable and returns an array, a float, or a container of these.

    Returns
    -------
    Constraint
        For `minimize`.

    Examples
    --------
    >>> circle = tg.optimize.equality(lambda x: (x * x).sum() - 2.0)
    >>> tg.optimize.minimize(lambda x: x.sum(), np.array([1.0, -2.0]), constraints=circle, tol=1e-9).x.round(4)
    array([-1., -1.])
    """
    return Constraint(function, 0.0, 0.0)


def inequality(function: Callable[..., Any]) -> Constraint:
    """The constraint that a function is not negative.

    Parameters
    ----------
    function : callable
        As for `equality`.

    Returns
    -------
    Constraint
        For `minimize`.

    Examples
    --------
    >>> above = tg.optimize.inequality(lambda x: x[0] - 1.0)
    >>> tg.optimize.minimize(lambda x: (x * x).sum(), [2.0, 2.0], constraints=above, tol=1e-9).x.round(6)
    array([1., 0.])
    """
    return Constraint(function, 0.0, np.inf)


def between(function: Callable[..., Any], lower: Any, upper: Any) -> Constraint:
    """The constraint that a function lies between two bounds.

    Parameters
    ----------
    function : callable
        As for `equality`.
    lower, upper : float or ndarray
        Bounds; infinite ones bound nothing, equal ones make an equality.

    Returns
    -------
    Constraint
        For `minimize`.

    Examples
    --------
    >>> slope = tg.optimize.between(lambda x: x[1] - x[0], -1.0, 1.0)
    >>> tg.optimize.minimize(lambda x: x[0] ** 2 + (x[1] - 3.0) ** 2, [0.0, 0.0], constraints=slope, tol=1e-9).x.round(6)
    array([1., 2.])
    """
    return Constraint(function, lower, upper)


def listed_constraints(given: Any) -> Any:
    """Constraints in any of the forms that `minimize` takes, iterables as lists, after a look at whether they are any.

    Raises
    ------
    TypeError
        If something is no constraint.
    KeyError, ValueError
        If a dict has no ``"type"`` or ``"fun"``, or a type that there is not; the classes are SciPy's.
    """
    if given is None:
        return ()
    if not _is_one(given) and isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        given = list(given)
    _check(given, "constraints")
    return given


def _is_one(given: Any) -> bool:
    return isinstance(given, (Constraint, dict)) or hasattr(given, "fun") or hasattr(given, "A")


def _check(given: Any, name: str) -> None:
    if isinstance(given, dict):
        for key in ("type", "fun"):
            if key not in given:
                raise KeyError(f"minimize: {name} is a dict without {key!r}: it has {sorted(map(str, given))}")
        if str(given["type"]).lower() not in KINDS:
            raise ValueError(f"minimize: {name} has the type {given['type']!r}; it is 'eq' or 'ineq'")
    elif not _is_one(given):
        if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
            hint = " A function does not say by itself what it is to be." if callable(given) else ""
            raise TypeError(
                f"minimize: {name} is {given!r}, which is no constraint.{hint} Give tg.optimize.equality(f), inequality(f) or "
                "between(f, lower, upper), SciPy's NonlinearConstraint or LinearConstraint, a dict with 'type' and 'fun', or a "
                "sequence of these."
            )
        for k, one in enumerate(given):
            _check(one, f"{name}[{k}]")


def scipy_constraints(given: Any, packing: Packing, second: bool, sparse: bool = False) -> Any:
    """Constraints as SciPy takes them, with derivatives filled in where there are none."""
    if isinstance(given, Constraint):
        return [given.packed(packing, second, sparse)]
    if isinstance(given, dict):
        return [_filled(given, packing)]
    if hasattr(given, "fun"):
        return [_plainly(given)]
    if not isinstance(given, Sequence):
        return given
    found: list[Any] = []
    for one in given:
        made = scipy_constraints(one, packing, second, sparse)
        found.extend(made if isinstance(made, list) else [made])
    return found


def _filled(given: dict[str, Any], packing: Packing) -> dict[str, Any]:
    """A constraint in SciPy's older form, of a function of the structured variable."""
    jacobian = given.get("jac")
    if jacobian is None:
        vector = _vector_function(given["fun"], packing, given.get("args", ()), "constraint")
        return {"type": given["type"], "fun": vector.value, "jac": vector.jacobian}
    further = constants(as_arguments(given.get("args", ())))
    if not callable(jacobian):  # SciPy differences a function of the vector
        return given | {"fun": _plain(given["fun"]), "args": further}
    of_vector = {name: _plain(_of_vector(given[name], packing)) for name in ("fun", "jac")}
    return given | of_vector | {"args": further}


def _of_vector(function: Callable[..., Any], packing: Packing) -> Callable[..., Any]:
    """A function of the vector that one of the structured variable stands for."""
    return lambda x, *args: function(packing.structured(x), *args)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results are arrays, whatever tracked tensors are in them: its derivatives are found otherwise."""

    def call(*arguments: Any) -> Any:
        value = plain_tree(function(*arguments))
        return np.asarray(value, np.float64) if isinstance(value, (list, tuple)) else value

    return call


def _plainly(given: Any) -> Any:
    """SciPy's own constraint, whose functions take the vector, with results that are arrays."""
    import copy

    made = copy.copy(given)
    for name in ("fun", "jac", "hess"):
        if callable(getattr(given, name)):
            setattr(made, name, _plain(getattr(given, name)))
    return made


def _vector_function(*given: Any, **options: Any) -> Any:
    """A `VectorFunction`, which IPOPT's problems are none of."""
    return look_up("optimize.recordings:VectorFunction")(*given, **options)


# A constraint of the structured variable that can be recorded, and whether SciPy has its derivatives without a recording: the
# function may be one that cannot be recorded.
Recordable = tuple[Constraint, bool]


def recordable(given: Any) -> list[Recordable]:
    """Those constraints that can be recorded."""
    if isinstance(given, Constraint):
        return [(given, False)]
    if isinstance(given, dict):
        jacobian = given.get("jac")
        if jacobian is not None and not callable(jacobian):  # then SciPy differences a function of the vector
            return []
        fun, further = given["fun"], tuple(given.get("args", ()))
        upper = KINDS[given["type"].lower()]
        return [(Constraint(lambda x: recorded(fun, x, *further), 0.0, upper), jacobian is not None)]
    if hasattr(given, "fun"):
        return [(Constraint(lambda x: recorded(given.fun, _vector(x)), given.lb, given.ub), True)]
    if hasattr(given, "A"):
        matrix = given.A.toarray() if hasattr(given.A, "toarray") else np.asarray(given.A)
        return [(Constraint(lambda x: matrix @ _vector(x), given.lb, given.ub), True)]
    return [one for each in given for one in recordable(each)] if isinstance(given, Sequence) else []


def _vector(x: Any) -> Any:
    """The vector of all elements of a structured variable, as functions of SciPy's own constraints take it."""
    leaves: list[Any] = []
    flatten(x, leaves)
    parts = [np.reshape(leaf, -1) for leaf in leaves]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def constraint_functions(given: Any) -> list[Constraint]:
    """The same, if all of them are.

    Raises
    ------
    NotImplementedError
        If one is not.
    """
    if not isinstance(given, (Constraint, dict)) and isinstance(given, Sequence):
        return [one for each in given for one in constraint_functions(each)]
    found = recordable(given)
    if not found:
        what = "a constraint whose jac SciPy finds by differences" if isinstance(given, dict) else f"a {type(given).__name__}"
        raise NotImplementedError(
            f"minimize: the solution depends on tracked tensors, but there is {what}, which cannot be recorded. Give "
            "tg.optimize.equality, inequality or between instead, or run under tg.no_grad() for a solution without derivatives."
        )
    return [one for one, _ in found]
