"""Functions of complex numbers that have one complex derivative, by the partials of the table of rules.

A formula for the derivative of a real function holds on the complex plane as well, away from the cuts, if it has the same branch. A
vjp multiplies with the conjugate of that derivative.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tapegrad.kernels.opcodes import OPCODES, calls_in, names_in
from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.numpy_arrays.complex_arithmetic import conjugate, multiply
from tapegrad.numpy_arrays.complex_arrays import ComplexArray, parts
from tapegrad.numpy_protocol.operands import one
from tapegrad.ops.namespaces import PLAIN
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.rules.table import RULES
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of, is_recording

__all__ = ["HOLOMORPHIC", "from_pair", "of_pair", "pair_of", "rule_of", "to_pair"]

Data = np.ndarray[Any, Any]

# Names of rules by the ufuncs that they are. The formula of arccosh has another branch where the real part is negative.
HOLOMORPHIC: dict[Any, str] = {
    np.sin: "sin", np.cos: "cos", np.tan: "tan", np.arcsin: "asin", np.arccos: "acos", np.arctan: "atan", np.sinh: "sinh",
    np.cosh: "cosh", np.tanh: "tanh", np.arcsinh: "asinh", np.arctanh: "atanh", np.exp2: "exp2", np.expm1: "expm1",
    np.log1p: "log1p", np.log2: "log2", np.log10: "log10", np.sqrt: "sqrt",
}  # fmt: skip


OF_SCIPY = {"erf": "erf", "erfc": "erfc"}  # by the names of the ufuncs in scipy.special


def rule_of(ufunc: Any) -> str | None:
    """Name of the rule whose derivative holds for a ufunc of complex numbers."""
    name = OF_SCIPY.get(ufunc.__name__) if not hasattr(np, ufunc.__name__) else None
    return HOLOMORPHIC.get(ufunc, name)


def of_pair(values: Data) -> Data:
    """Complex numbers as real ones, with real and imaginary part in a last dimension."""
    return np.ascontiguousarray(values).view(values.real.dtype).reshape(*values.shape, 2)


def from_pair(pair: Data) -> Data:
    """The way back."""
    found: Data = np.ascontiguousarray(pair).view(np.result_type(pair.dtype, np.complex64))[..., 0]
    return found


def to_pair(z: Any) -> Tensor:
    """What is differentiated as one array, with real and imaginary part in a last dimension."""
    real, imag = parts(z)
    shape = np.shape(real)
    imag = imag if np.shape(imag) == shape else imag + np.zeros(shape, real.dtype)
    found: Tensor = tg.stack([one(real), one(imag)], -1)
    return found


def pair_of(pair: Tensor) -> ComplexArray:
    """The complex array of such a pair."""
    pair = as_arrays(pair)
    return ComplexArray(as_arrays(tg.select(pair, -1, 0)), as_arrays(tg.select(pair, -1, 1)))


def holomorphic(ufunc: Any, z: Any) -> ComplexArray:
    """A ufunc of this table of complex numbers that are differentiated."""
    pair = to_pair(z)
    name = rule_of(ufunc)
    assert name is not None  # it was asked for
    return pair_of(apply(_operation(name), (pair,), of_pair(ufunc(from_pair(array_of(pair)))), name))


@functools.cache
def _operation(name: str) -> Structural:
    rule = RULES[OPCODES[name]]
    (text,) = rule.partials
    names = names_in(text or "")
    uses = tuple(use for variable, use in (("x", 0), ("z", "z")) if variable in names)
    return Structural(rule.node, (uses,), _vjp)


@functools.cache
def _derivative(name: str) -> Any:
    """A rule's partial as a function of complex numbers: NumPy's, or such that are differentiated."""
    (text,) = RULES[OPCODES[name]].partials
    # Rule text is ours, never a user's.
    return eval(f"lambda x, z: {text}", {**{called: getattr(np, called) for called in calls_in(text or "")}, "__builtins__": {}})


def _vjp(g: Tensor, ctx: Context) -> tuple[Tensor]:
    if ctx.on is PLAIN or not is_recording():
        x, z = (None if t is None else from_pair(array_of(t)) for t in (ctx.inputs[0], ctx.result))
        with np.errstate(all="ignore"):
            return (one(of_pair(from_pair(array_of(g)) * np.conjugate(_derivative(ctx.attrs)(x, z)))),)
    tracked = [None if t is None else pair_of(t) for t in (ctx.inputs[0], ctx.result)]
    return (to_pair(multiply(pair_of(g), conjugate(_derivative(ctx.attrs)(*tracked)))),)
