"""Results of solvers: SciPy's, which also know how they were come to and show that."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.optimize.histories import History
from tapegrad.optimize.post_import_hooks import when_imported

__all__ = ["Result", "with_history"]

WIDE, HIGH = 320, 90


class _Fields(dict[str, Any]):
    """What SciPy's results are until `scipy.optimize` is imported, of which they inherit from then on."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__

    def __dir__(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        text: str = look_up("optimize.scipy_solvers:solvers")().OptimizeResult.__repr__(self)
        return text


class Result(_Fields):
    """SciPy's result with a history: an `OptimizeResult` for everybody who has imported that.

    Attributes
    ----------
    history : History
        For each iteration the objective, the gradient's largest absolute element, and the number of evaluations up to then. It is
        no field of the dictionary that SciPy's results are.
    """

    history: History

    def plot(self, axes: Any = None) -> Any:
        """Draw the history: the objective, and the gradient's norm where it is known.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; a new figure without it.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ModuleNotFoundError("plot() needs matplotlib: pip install 'tapegrad[plot]'", name="matplotlib") from None
        figure = Figure(layout="constrained") if axes is None else axes.figure
        axes = figure.add_subplot() if axes is None else axes
        history = self.history
        (line,) = axes.plot(history.iteration, history.objective, "o-", markersize=3, label="objective")
        if _is_wide(history.objective):
            axes.set_yscale("log")
        axes.set_xlabel("iteration")
        axes.set_ylabel("objective", color=line.get_color())
        norms = history.gradient_norm
        if np.isfinite(norms).any():
            other = axes.twinx()
            other.plot(history.iteration, norms, "s--", color="tab:orange", markersize=3)
            if (norms[np.isfinite(norms)] > 0.0).any():
                other.set_yscale("log")
            other.set_ylabel("largest element of the gradient", color="tab:orange")
        return figure

    def _repr_html_(self) -> str:
        """A table, and a curve of the objective, for notebooks."""
        from tapegrad.surface.html_tables import table

        rows = [(name, str(self[name])) for name in ("success", "message") if name in self]
        if "fun" in self and np.ndim(self["fun"]) == 0:
            rows.append(("objective", f"{float(self['fun']):.10g}"))
        elif "cost" in self:
            rows.append(("half of the sum of squares", f"{float(self['cost']):.10g}"))
        history = self.history
        if len(history):
            last = history[-1]
            rows += [("largest element of the gradient", f"{last.gradient_norm:.3g}")] if last.gradient_norm >= 0.0 else []
        rows += [(text, str(self[name])) for name, text in (("nit", "iterations"), ("nfev", "evaluations")) if name in self]
        rows.append(("x", _shortened(self.get("x"))))
        return table(rows) + _curve(history)


def _inherit(optimize: Any) -> None:
    Result.__bases__ = (optimize.OptimizeResult,)


when_imported("scipy.optimize", _inherit)


def _is_wide(values: np.ndarray) -> bool:
    """Whether a logarithmic axis shows more."""
    finite = values[np.isfinite(values)]
    return finite.size > 0 and bool(finite.min() > 0.0) and finite.max() / finite.min() > 100.0


def _shortened(x: Any) -> str:
    text = np.array2string(x, threshold=12, edgeitems=4) if isinstance(x, np.ndarray) else repr(x)
    return text if len(text) < 400 else text[:400] + "..."


def _curve(history: History) -> str:
    """The objective over the iterations as SVG, by its logarithm where it ranges far."""
    values = [entry.objective for entry in history if math.isfinite(entry.objective)]
    if len(values) < 2:
        return ""
    is_wide = _is_wide(np.array(values))
    shown = [math.log10(value) for value in values] if is_wide else values
    low, high = min(shown), max(shown)
    height = (high - low) or 1.0
    points = " ".join(
        f"{5 + (WIDE - 10) * k / (len(shown) - 1):.1f},{HIGH - 20 - (HIGH - 30) * (value - low) / height:.1f}"
        for k, value in enumerate(shown)
    )
    ends = f"{values[0]:.4g} to {values[-1]:.4g} in {len(values) - 1} iterations{', logarithmic' if is_wide else ''}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{HIGH}"><title>objective</title>'
        f'<polyline points="{points}" fill="none" stroke="#369" stroke-width="1.5"/>'
        f'<text x="5" y="{HIGH - 5}" font-size="11" font-family="sans-serif">{ends}</text></svg>'
    )


def with_history(result: Any, history: History) -> Result:
    """A result of SciPy's with what is known of the way to it."""
    found = Result(result)
    object.__setattr__(found, "history", history)
    return found
