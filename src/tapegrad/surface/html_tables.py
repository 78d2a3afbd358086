"""Small tables of HTML, as notebooks show tensors and results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from tapegrad.surface.attributes import describe
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["table", "tensor_table"]

MOST = 12  # rows and columns whose elements are shown


def table(rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table whose first column are headings.

    Parameters
    ----------
    rows : iterable of sequence of str
        Texts, which are escaped.
    caption : str
        Above it.
    """
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        + "".join(f"<td style='text-align:left;white-space:pre;font-family:monospace'>{escape(text)}</td>" for text in texts)
        + "</tr>"
        for name, *texts in rows
    )
    return f"<table>{f'<caption>{escape(caption)}</caption>' if caption else ''}{body}</table>"


def tensor_table(t: Tensor) -> str:
    """A tensor in a notebook: its elements where they are few, shape, dtype, what made it, and its gradient."""
    data = array_of(t)
    rows = [("shape", str(tuple(data.shape))), ("dtype", data.dtype.name)]
    if t.requires_grad:
        rows.append(("made by", "nothing: a leaf" if t.is_leaf else str(t.grad_fn.name())))
    gradient = t.grad if t.is_leaf else None
    if gradient is not None:
        rows.append(("gradient", describe(gradient)))
    return _elements(data) + table(rows)


def _elements(data: np.ndarray) -> str:
    if data.ndim not in (1, 2) or not data.size or max(data.shape) > MOST:
        return f"<pre>{escape(describe(_plain(data)))}</pre>"
    cells = np.atleast_2d(data)
    body = "".join("<tr>" + "".join(f"<td>{_number(x)}</td>" for x in row) + "</tr>" for row in cells.tolist())
    return f"<table>{body}</table>"


def _plain(data: np.ndarray) -> Any:
    from tapegrad.tensors.factories import as_tensor

    return as_tensor(data)


def _number(x: Any) -> str:
    return f"{x:.5g}" if isinstance(x, float) else str(x)
