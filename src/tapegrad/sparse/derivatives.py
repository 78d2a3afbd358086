"""Drivers for sparse derivatives: functions that give Jacobians and Hessians as SciPy's sparse arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.derivatives import Outputs, sizes_of
from tapegrad.drivers.leaves import Call
from tapegrad.sparse.colouring import ORDERS
from tapegrad.sparse.compression import Bidirectional, Info
from tapegrad.sparse.dense_rows import described_row
from tapegrad.sparse.evaluation import Evaluation, matrix_of
from tapegrad.sparse.recorded_calls import paths_of, recorded
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["SparseDerivative", "hessian", "jacobian", "plan", "value_and_jacobian"]

MODES = ("auto", "forward", "reverse", "rows")
HESSIAN_MODES = ("auto", "star", "acyclic", "edges")
DETECTIONS = ("local", "global")
FORMATS = ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")


class SparseDerivative:
    """A function that gives a sparse derivative, and keeps what is known of its structure.

    Attributes
    ----------
    info : Info
        How the latest result was computed: its number of colours, above all.
    pattern : csr_array of bool
        Of the whole derivative. It never loses entries: what a call at another point adds, stays.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        second: bool,
        argnums: Any,
        has_aux: bool,
        with_value: bool,
        format: str,
        **options: Any,
    ) -> None:
        detect = options.pop("detect", "local")
        given = {"format": format, "detect": detect, "mode": options.get("mode", "auto"), "order": options.get("order", "auto")}
        modes = HESSIAN_MODES if second else MODES
        for name, known in (("format", FORMATS), ("detect", DETECTIONS), ("mode", modes), ("order", ("auto", *ORDERS))):
            if given[name] not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, but got {given[name]!r}")
        if detect == "global" and not hasattr(f, "recorded_calls"):
            raise TypeError(
                f"detect='global' joins the patterns of all paths that a program has recorded, but got {f!r}: give tg.program(f), "
                "and call it where the other paths are"
            )
        self._is_global = detect == "global"
        self._f, self._second, self._argnums, self._has_aux, self._with_value = f, second, argnums, has_aux, with_value
        self._format = format
        self._name = "sparse.hessian" if second else "sparse.jacobian"
        self._evaluation = Evaluation(second, **options)
        self._may_have_code = hasattr(f, "__replay__") and not (has_aux or self._is_global)
        functools.update_wrapper(self, f, assigned=("__name__", "__qualname__", "__doc__"), updated=())

    @property
    def info(self) -> Info:
        """How the latest result was computed."""
        return self._evaluation.plan.info

    @property
    def pattern(self) -> Any:
        """Where there are entries."""
        return self._evaluation.plan.pattern.to_scipy()

    @property
    def colours(self) -> Any:
        """The number of the product that each column goes into, -1 for one that goes into none.

        Of each row where ``info.method`` is ``"reverse"``; a pair, of columns and of rows, where it is ``"bidirectional"``.
        """
        plan = self._evaluation.plan
        return (plan.colours.copy(), plan.row_colours.copy()) if isinstance(plan, Bidirectional) else plan.colours.copy()

    def _recorded(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Call, Outputs, Any]:
        return recorded(self._f, args, kwargs, self._argnums, self._has_aux, self._name, self._second)

    def prepare(self, *args: Any, **kwargs: Any) -> SparseDerivative:
        """Find the structure at a point, without computing a derivative; itself."""
        made, outputs, derivative = self._recorded(args, kwargs)
        self._learn_paths(args, made, outputs)
        self._evaluation.prepared(derivative, self._locate(args, kwargs))
        return self

    def _learn_paths(self, args: Sequence[Any], made: Call, outputs: Outputs) -> None:
        if self._is_global:
            for other in paths_of(self._f, args, self._argnums, self._name, self._second, made, outputs):
                self._evaluation.learn(other)

    def _locate(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[[], str]:
        return lambda: described_row(lambda: self._recorded(args, kwargs)[2], self._second)

    def _by_code(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Call, Outputs, Any]:
        """As `_recorded`, or with a matrix in the place of the derivative, if machine code of a program gives its products."""
        asked = self._evaluation.directions() if self._may_have_code else None
        if asked is None:
            return self._recorded(args, kwargs)
        plan, vectors = asked
        needs = "hvp" if self._second else "value_jvp" if self._with_value else "jvp", *vectors
        is_known = lambda made: self._evaluation.is_whole(plan, made.structures)  # noqa: E731
        given = args, kwargs, self._argnums, self._has_aux, self._name, self._second
        made, outputs, found = recorded(self._f, *given, needs=needs, is_known=is_known)
        if isinstance(found, np.ndarray):
            found = matrix_of(plan.pattern, plan.entries(lambda _: found.T))
        return made, outputs, found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative at a point."""
        made, outputs, derivative = self._by_code(args, kwargs)
        if hasattr(derivative, "indptr"):
            matrix = derivative
        else:
            self._learn_paths(args, made, outputs)
            matrix = self._evaluation.matrix(derivative, locate=self._locate(args, kwargs))
            self._evaluation.note(derivative, made.structures)
        found = self._arranged(matrix, made, outputs)
        if self._with_value:
            value = outputs.values()
            return ((value, made.aux) if self._has_aux else value), found
        return (found, made.aux) if self._has_aux else found

    def _arranged(self, matrix: Any, made: Call, outputs: Outputs) -> Any:
        rows, columns = made.leaves if self._second else outputs.tensors, made.leaves
        if len(rows) == len(columns) == 1 and made.structure is None and (self._second or outputs.structure is None):
            return self._finished(matrix, columns[0])
        blocks, done = [], 0
        for size in sizes_of(rows):
            band, before, row = matrix if size == matrix.shape[0] else matrix[done : done + size], 0, []
            for leaf, width in zip(columns, sizes_of(columns), strict=True):
                row.append(self._finished(band[:, before : before + width], leaf))
                before += width
            blocks.append(made.arranged(row))
            done += size
        return made.arranged(blocks) if self._second else outputs.arranged(blocks)

    def _finished(self, block: Any, leaf: Tensor) -> Any:
        dtype = array_of(leaf).dtype
        if block.dtype != dtype:
            block = block.astype(dtype)
        return block.asformat(self._format)


def value_and_jacobian(
    f: Callable[..., Any],
    argnums: Any = 0,
    has_aux: bool = False,
    *,
    format: str = "csr",
    pattern: Any = None,
    mode: str = "auto",
    order: str = "auto",
    check: bool = False,
    detect: str = "local",
) -> SparseDerivative:
    """Function that gives the value of a function and its sparse Jacobian; see `jacobian`.

    Parameters
    ----------
    f, argnums, has_aux, format, pattern, mode, order, check, detect
        As for `jacobian`.

    Returns
    -------
    callable
        Gives ``(value, jacobian)``, or ``((value, aux), jacobian)`` with `has_aux`.

    Raises
    ------
    ValueError
        As for `jacobian`.

    Examples
    --------
    >>> value, matrix = tg.sparse.value_and_jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    >>> value, matrix.toarray()
    (array([1., 4.]), array([[2., 0.],
           [0., 4.]]))
    """
    options = {"pattern": pattern, "mode": mode, "order": order, "check": check, "detect": detect}
    return SparseDerivative(f, False, argnums, has_aux, True, format, **options)


def jacobian(
    f: Callable[..., Any],
    argnums: Any = 0,
    has_aux: bool = False,
    *,
    format: str = "csr",
    pattern: Any = None,
    mode: str = "auto",
    order: str = "auto",
    check: bool = False,
    detect: str = "local",
) -> SparseDerivative:
    """Function that gives the Jacobian of a function as a sparse array.

    Parameters
    ----------
    f : callable
        Returns an array, a float, or a container of these; called once for each call. Python's or compiled, as for
        `tapegrad.jacobian`.
    argnums : int or sequence of int
        Which positional arguments to differentiate by.
    has_aux : bool
        Whether `f` returns a pair, of which the second is handed through.
    format : str
        Of the results, as SciPy names it.
    pattern : sparse array or array, optional
        Where the Jacobian may have entries other than zero, if it is not to be found out. It is not doubted unless `check` is set.
    mode : str
        ``"forward"``, ``"reverse"``, or ``"auto"``, which takes the one with fewer colours, or both where long rows and long
        columns keep either from having few. ``"rows"`` is one pass over what a compiled function recorded, for each row of the
        Jacobian by itself; ``"auto"`` takes it where it is quicker.
    order : str
        In which order columns are coloured: ``"natural"``, ``"largest-first"``, ``"smallest-last"``, ``"incidence-degree"``, or
        ``"auto"`` for the best of these.
    check : bool
        Whether each result is compared with products of the Jacobian with random vectors, in rows that are finite.
    detect : str
        ``"local"``: the pattern is that of the points where it was called, and grows. ``"global"``, if `f` is a `tapegrad.program`:
        that of all paths which the program has recorded, wherever it was called, so that it need not grow where they are taken.

    Returns
    -------
    SparseDerivative
        A callable that gives the Jacobian, or ``(jacobian, aux)``. The Jacobian of one output by one argument has a row for each
        element of the output and a column for each of the argument, in C order; for containers, the structure of the output with
        that of the arguments in each place. Entries of the pattern that are zero at a point are kept.

    Raises
    ------
    ValueError
        If an option is another one; by the callable, if `pattern` has another shape, or the mode is none for this function.
    PatternError
        By the callable, with `check`: if the pattern lacks an entry, which is named.
    TypeError
        If `detect` is ``"global"`` and `f` no program; by the callable: if an input or an output is not of floats.

    Notes
    -----
    Columns of which no row has two get one colour, and a product with a vector for each colour gives all entries [1]_; of a
    `tapegrad.program` by its machine code, up to 32 colours. The structure is looked at in each call: where it is another one
    than before (a branch, another index), the pattern gains what is new, and the colours are made anew.

    References
    ----------
    .. [1] A. H. Gebremedhin, F. Manne, A. Pothen, "What color is your Jacobian? Graph coloring for computing derivatives", SIAM
       Review 47(4), 2005.

    Examples
    --------
    >>> jacobian = tg.sparse.jacobian(lambda x: np.diff(x) ** 2)
    >>> jacobian(np.array([1.0, 2.0, 4.0])).toarray()
    array([[-2.,  2.,  0.],
           [ 0., -4.,  4.]])
    >>> jacobian.info.colours
    2
    """
    options = {"pattern": pattern, "mode": mode, "order": order, "check": check, "detect": detect}
    return SparseDerivative(f, False, argnums, has_aux, False, format, **options)


def hessian(
    f: Callable[..., Any],
    argnums: Any = 0,
    has_aux: bool = False,
    *,
    format: str = "csr",
    pattern: Any = None,
    mode: str = "auto",
    order: str = "auto",
    check: bool = False,
    detect: str = "local",
) -> SparseDerivative:
    """Function that gives the Hessian of a scalar function as a sparse array.

    Parameters
    ----------
    f : callable
        Returns a scalar; called once for each call.
    argnums, has_aux, format, order, check, detect
        As for `jacobian`.
    pattern : sparse array or array, optional
        As for `jacobian`; symmetric.
    mode : str
        ``"star"``: products that have the entries as their elements. ``"acyclic"``: fewer products, of which entries are found one
        after the other, so that rounding gathers. ``"edges"``: edge-pushing [2]_, one pass over what was recorded, by elements.
        ``"auto"`` takes edge-pushing or a star colouring, whichever is quicker.

    Returns
    -------
    SparseDerivative
        A callable that gives the Hessian, or ``(hessian, aux)``: symmetric to the bit. For containers, their structure with the
        same structure in each place.

    Raises
    ------
    ValueError, PatternError, TypeError
        As for `jacobian`.
    MemoryError
        By the callable: if the pattern of a function of many variables is dense.

    Notes
    -----
    A star colouring [1]_, and a product for each colour, of which each gives entries directly; see `jacobian`. Sums over elements,
    of which many share variables, need many colours, and are where edge-pushing is quicker.

    References
    ----------
    .. [1] A. H. Gebremedhin, A. Tarafdar, F. Manne, A. Pothen, "New acyclic and star coloring algorithms with application to
       computing Hessians", SIAM Journal on Scientific Computing 29(3), 2007.
    .. [2] R. M. Gower, M. P. Mello, "A new framework for the computation of Hessians", Optimization Methods and Software 27, 2012.

    Examples
    --------
    >>> hessian = tg.sparse.hessian(lambda x: (x[1:] * x[:-1] ** 2).sum())
    >>> hessian(np.array([1.0, 2.0, 3.0])).toarray()
    array([[4., 2., 0.],
           [2., 6., 4.],
           [0., 4., 0.]])
    """
    options = {"pattern": pattern, "mode": mode, "order": order, "check": check, "detect": detect}
    return SparseDerivative(f, True, argnums, has_aux, False, format, **options)


def plan(f: Callable[..., Any], *args: Any, second: bool = False, **options: Any) -> SparseDerivative:
    """`jacobian` or `hessian` with the structure found at a point, so that later calls pay products only.

    Parameters
    ----------
    f : callable
    *args
        Its arguments at that point.
    second : bool
        Whether it is the Hessian that is wanted.
    **options
        Of `jacobian` or `hessian`.

    Returns
    -------
    SparseDerivative

    Examples
    --------
    >>> structure = tg.sparse.plan(lambda x: x * x[::-1], np.ones(4))
    >>> structure.info.colours, structure.info.entries
    (2, 8)
    >>> structure(np.array([1.0, 2.0, 3.0, 4.0])).toarray()[0]
    array([4., 0., 0., 1.])
    """
    made: SparseDerivative = (hessian if second else jacobian)(f, **options)
    return made.prepare(*args)
