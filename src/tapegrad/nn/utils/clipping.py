"""Gradients that are too large, made smaller in place."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from types import GeneratorType

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.ops.overwriting import check_writable, overwrite
from tapegrad.tensors.grad_mode import no_grad
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["clip_grad_norm_", "clip_grad_value_"]


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale gradients, in place, so that their norm as one vector is not above a limit.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Their gradients are scaled; those without one are passed over.
    max_norm : float
        The limit.
    norm_type : float
        The p of the p-norm; ``inf`` is the largest element in modulus.
    error_if_nonfinite : bool
        Whether an infinite norm, or NaN, is an error. Else all gradients are scaled by it.
    foreach : bool, optional
        PyTorch's choice of implementation; without effect.

    Returns
    -------
    Tensor, 0-d
        The norm before.

    Raises
    ------
    RuntimeError
        If the norm is not finite and that is an error. No gradient is changed then.

    Notes
    -----
    The factor is ``max_norm / (norm + 1e-6)``, and at most 1.

    References
    ----------
    R. Pascanu, T. Mikolov, Y. Bengio, "On the difficulty of training recurrent neural networks", ICML, 2013.

    Examples
    --------
    >>> x = tg.tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> tg.nn.utils.clip_grad_norm_([x], max_norm=1.0)
    tensor(10.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    gradients = list(_gradients(parameters))
    order = float(norm_type)
    total = _norm(gradients, order)
    if error_if_nonfinite and not math.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite ({total}), so it cannot be clipped. To "
            "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    with quiet():
        factor = float(np.minimum(np.float64(max_norm) / (total + 1e-6), 1.0))
        if factor != 1.0:
            for gradient in gradients:
                _replace(gradient, array_of(gradient) * factor)
    kinds = {array_of(gradient).dtype for gradient in gradients}
    return wrap(np.array(total, np.result_type(*kinds)) if kinds else total)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Move the elements of gradients, in place, into an interval around 0.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Their gradients are clipped; those without one are passed over.
    clip_value : float
        Largest modulus of an element; NaN stays NaN.
    foreach : bool, optional
        PyTorch's choice of implementation; without effect.

    Examples
    --------
    >>> x = tg.tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> tg.nn.utils.clip_grad_value_([x], 7.0)
    >>> x.grad
    tensor([6., 7.])
    """
    limit = float(clip_value)
    for gradient in _gradients(parameters):
        _replace(gradient, np.clip(array_of(gradient), -limit, limit))


def _gradients(parameters: Tensor | Iterable[Tensor]) -> Iterator[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not listed and isinstance(parameters, GeneratorType):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur; was it used up before?", UserWarning, stacklevel=3
        )
    for p in listed:
        gradient = None if p._meta is None else p._meta.grad
        if gradient is not None:
            yield gradient


def _norm(gradients: list[Tensor], order: float) -> float:
    """The p-norm of all elements together: that of the norms of the arrays."""
    norms = [_norm_of(np.asarray(gradient._data).reshape(-1), order) for gradient in gradients]
    return float(_norm_of(np.array(norms, np.float64), order))


def _norm_of(vector: np.ndarray, order: float) -> float:
    if not vector.size:
        return 0.0
    with quiet():
        return float(np.linalg.norm(vector, order))


def _replace(gradient: Tensor, values: np.ndarray) -> None:
    with no_grad():
        check_writable(gradient, tracked=False)
    overwrite(gradient, values, None)
