"""Special functions whose values are SciPy's, under PyTorch's names; their derivatives are rows of `numpy_protocol.scipy_special`.

A line of the table is a name, the ufunc of `scipy.special` that it stands for, and what the function is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapegrad.arrays import dtypes
from tapegrad.deferred import NamesOnDemand
from tapegrad.kernels.opcodes import OPCODES
from tapegrad.numpy_protocol.protocols import ufunc_of_scipy
from tapegrad.numpy_protocol.scipy_special import are_doubles, special
from tapegrad.ops.elementwise import FORMS
from tapegrad.recording.casting import cast
from tapegrad.tensors.tensor import Tensor, as_operand

__all__ = ["DOCUMENTED"]

TABLE = """
bessel_j0 j0 Bessel function of the first kind of order 0.
bessel_j1 j1 Bessel function of the first kind of order 1.
bessel_y0 y0 Bessel function of the second kind of order 0, of positive numbers.
bessel_y1 y1 Bessel function of the second kind of order 1, of positive numbers.
entr entr Entropy ``-x * log(x)``: 0 at 0, and minus infinity below.
erfcx erfcx ``exp(x**2) * erfc(x)``, which does not underflow.
gammainc gammainc Regularised lower incomplete gamma function of `input`, from 0 to `other`. It has a derivative by `other` alone.
gammaincc gammaincc Regularised upper incomplete gamma function of `input`, from `other` on. It has a derivative by `other` alone.
i0 i0 Modified Bessel function of the first kind of order 0.
i0e i0e ``exp(-abs(x)) * i0(x)``, which does not overflow.
i1 i1 Modified Bessel function of the first kind of order 1.
i1e i1e ``exp(-abs(x)) * i1(x)``, which does not overflow.
log_ndtr log_ndtr Logarithm of `ndtr`, without underflow.
modified_bessel_i0 i0 Modified Bessel function of the first kind of order 0.
modified_bessel_i1 i1 Modified Bessel function of the first kind of order 1.
modified_bessel_k0 k0 Modified Bessel function of the second kind of order 0, of positive numbers.
modified_bessel_k1 k1 Modified Bessel function of the second kind of order 1, of positive numbers.
ndtr ndtr Standard normal distribution function.
ndtri ndtri Inverse of `ndtr`: the quantile of the standard normal distribution.
scaled_modified_bessel_k0 k0e ``exp(x)`` times `modified_bessel_k0`, which does not underflow.
scaled_modified_bessel_k1 k1e ``exp(x)`` times `modified_bessel_k1`, which does not underflow.
xlog1py xlog1py ``input * log1p(other)``, 0 where `input` is 0.
zeta _zeta Hurwitz' zeta function: the sum of ``(k + other)**-input`` over all k from 0. It has a derivative by `other` alone.
"""
# Those that are rules of the table, for tensors; arrays under a driver have SciPy's digits.
RULES_OF = {"log_ndtr": "_log_ndtr", "ndtr": "_ndtr"}
OF_TWO = ("gammainc", "gammaincc", "xlog1py", "zeta")


def _read() -> dict[str, tuple[str, str]]:
    lines = [line.split(maxsplit=2) for line in TABLE.strip().splitlines()]
    return {name: (ufunc, text) for name, ufunc, text in lines}


DOCUMENTED = _read()


@functools.cache
def _of_scipy(name: str) -> Callable[..., Any]:
    try:
        import scipy.special  # noqa: F401
    except ImportError as missing:
        raise ModuleNotFoundError(f"tapegrad.special.{name} needs SciPy: pip install 'tapegrad[scipy]'", name="scipy") from missing

    ufunc, _ = DOCUMENTED[name]
    return FORMS[OPCODES[RULES_OF[name]]] if name in RULES_OF else special(ufunc_of_scipy(ufunc))


def _evaluated(name: str, *operands: Any) -> Tensor:
    """The function of operands in their common dtype, or the default one where they are no floats."""
    if are_doubles(operands):
        found: Tensor = _of_scipy(name)(*operands)
        return found
    if not any(isinstance(x, Tensor) for x in operands):
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {type(operands[0]).__name__}. Use tg.tensor(...)."
        )
    common = dtypes.result_type(*operands)
    dtype = common if common.kind == "f" else dtypes.get_default_dtype()
    result: Tensor = _of_scipy(name)(*[cast(as_operand(x), dtype) for x in operands])
    return result


def _made(name: str) -> Callable[..., Tensor]:
    if name in OF_TWO:

        def function(input: Any, other: Any) -> Tensor:
            return _evaluated(name, input, other)

    else:

        def function(input: Any) -> Tensor:  # type: ignore[misc]
            return _evaluated(name, input)

    function.__name__ = function.__qualname__ = name
    several = name in OF_TWO
    function.__doc__ = (
        f"{DOCUMENTED[name][1]}\n\nElementwise{'; arguments broadcast' if several else ''}. It needs the extra ``scipy``.\n\n"
        f"Parameters\n----------\n{'input, other : Tensor or number, one of them a tensor' if several else 'input : Tensor'}\n"
        "    Any shape.\n\nReturns\n-------\nTensor\n    Of the broadcast shape and promoted dtype."
    )
    return function


_names = NamesOnDemand(globals(), {}, DOCUMENTED, _made)


def __getattr__(name: str) -> Any:
    return _names.get(name)
