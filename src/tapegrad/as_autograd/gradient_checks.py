"""Derivatives compared with differences."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.as_autograd.products import make_jvp, make_vjp
from tapegrad.as_autograd.vector_spaces import vspace
from tapegrad.as_autograd.wrapping import get_name, unary_to_nary

__all__ = ["check_equivalent", "check_grads", "check_jvp", "check_vjp", "combo_check", "quick_grad_check", "scalar_close"]

TOLERANCE = 1e-6
STEP = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers are the same to 1e-6, absolutely or relatively."""
    difference = abs(a - b)
    return bool(difference < TOLERANCE or difference < TOLERANCE * abs(a + b))


def _difference(f: Callable[[Any], Any], x: Any, v: Any) -> Any:
    """The derivative along a direction as a central difference."""
    space = vspace(x)
    after, before = (f(space.add(x, space.scalar_mul(v, sign * STEP / 2))) for sign in (1.0, -1.0))
    results = vspace(after)
    return results.scalar_mul(results.add(after, results.scalar_mul(before, -1.0)), 1.0 / STEP)


def check_vjp(f: Callable[[Any], Any], x: Any) -> None:
    """Compare a product from the left with a difference, in a random projection.

    Raises
    ------
    AssertionError
        If they differ.
    """
    vjp, y = make_vjp(f, x)
    inputs, outputs = vspace(x), vspace(y)
    v, w = inputs.randn(), outputs.randn()
    pulled = inputs.covector(vjp(outputs.covector(w)))
    if vspace(pulled) != inputs:
        raise AssertionError(f"the VJP of {get_name(f)} is of {vspace(pulled)}, and its argument of {inputs}")
    exact, numeric = inputs.inner_prod(v, pulled), outputs.inner_prod(w, _difference(f, x, v))
    if not scalar_close(exact, numeric):
        raise AssertionError(
            f"Derivative (VJP) check of {get_name(f)} failed with arg {x}:\nanalytic: {exact}\nnumeric:  {numeric}"
        )


def check_jvp(f: Callable[[Any], Any], x: Any) -> None:
    """Compare a product from the right with a difference, in a random projection.

    Raises
    ------
    AssertionError
        If they differ.
    """
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], _difference(f, x, v))


def check_equivalent(x: Any, y: Any) -> None:
    """Compare two vectors in a random projection.

    Raises
    ------
    AssertionError
        If they differ, or are of different spaces.
    """
    space = vspace(x)
    if space != vspace(y):
        raise AssertionError(f"VSpace mismatch:\nx: {space}\ny: {vspace(y)}")
    v = space.randn()
    if not scalar_close(space.inner_prod(x, v), space.inner_prod(y, v)):
        raise AssertionError(f"Value mismatch:\nx: {x}\ny: {y}")


@unary_to_nary
def check_grads(f: Callable[[Any], Any], x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """Function that compares derivatives of `f` at its arguments with differences, up to an order.

    Raises
    ------
    AssertionError
        By that function: if they differ.
    ValueError
        By that function: for another mode than ``"fwd"`` and ``"rev"``.
    """
    if not set(modes) <= {"fwd", "rev"}:
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', but got {modes!r}")
    if "fwd" in modes:
        check_jvp(f, x)
        if order > 1:
            _check_next(lambda x, v: make_jvp(f, x)(v)[1], x, vspace(x).randn(), modes, order, f"jvp_{get_name(f)}")
    if "rev" in modes:
        check_vjp(f, x)
        if order > 1:
            _check_next(lambda x, v: make_vjp(f, x)[0](v), x, vspace(f(x)).randn(), modes, order, f"vjp_{get_name(f)}")


def _check_next(product: Callable[[Any, Any], Any], x: Any, v: Any, modes: Sequence[str], order: int, name: str) -> None:
    product.__name__ = name
    check_grads(product, (0, 1), modes, order=order - 1)(x, v)


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """Function that makes `check_grads` at all combinations of the values that it is given for each argument."""
    check = check_grads(fun, *args, **kwargs)

    def of_all(*values: Sequence[Any], **named: Sequence[Any]) -> None:
        for chosen in itertools.product(*values):
            for parts in itertools.product(*named.values()):
                check(*chosen, **dict(zip(named, parts, strict=True)))

    return of_all


def quick_grad_check(fun: Callable[..., Any], arg0: Any, extra_args: Sequence[Any] = (), kwargs: Any = None, **_: Any) -> None:
    """`check_grads` in reverse mode by the first argument, for code of before version 1.2."""
    warnings.warn("quick_grad_check is deprecated. Use autograd.test_util.check_grads", UserWarning, stacklevel=2)
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)
