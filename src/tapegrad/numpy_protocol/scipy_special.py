"""Ufuncs of `scipy.special` on tensors: values are SciPy's, derivatives come from the table below.

A row is the names of the operands and a partial derivative for each, as text that may use the result `z`, the constant `pi`,
functions of NumPy and other ufuncs of SciPy. What a partial calls has a row here or is an operation, and is differentiated again.
An operand whose partial is ``-`` is refused where it is differentiated: there is no closed form. SciPy is imported already where
one of its ufuncs is called; ufuncs with a counterpart among the package's own operations are in `protocols.SCIPY`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave, quiet
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.kernels.opcodes import OPCODES
from tapegrad.numpy_protocol.operands import NotCovered, named, one
from tapegrad.numpy_protocol.protocols import SCIPY, ufunc_of_scipy
from tapegrad.ops.elementwise import FORMS, FUNCTIONS, method
from tapegrad.ops.exponential_shares import SUM_START, numpys_loops
from tapegrad.ops.namespaces import PLAIN
from tapegrad.recording.primal_values import forward
from tapegrad.recording.structural import Context, Structural, apply, as_result
from tapegrad.surface import functions as tg
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make

__all__ = ["PARTIALS", "are_doubles", "special"]

TABLE = """
bei x | beip(x)
beip x | where(x == 0.0, 0.5, ber(x) - z / where(x == 0.0, 1.0, x))
ber x | berp(x)
berp x | where(x == 0.0, 0.0, -bei(x) - z / where(x == 0.0, 1.0, x))
beta a b | z * (digamma(a) - digamma(a + b)) | z * (digamma(b) - digamma(a + b))
betainc a b x | - | - | exp(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - betaln(a, b))
betaincc a b x | - | - | -exp(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - betaln(a, b))
betainccinv a b x | - | - | -exp(betaln(a, b) - xlogy(a - 1.0, z) - xlog1py(b - 1.0, -z))
betaincinv a b x | - | - | exp(betaln(a, b) - xlogy(a - 1.0, z) - xlog1py(b - 1.0, -z))
betaln a b | digamma(a) - digamma(a + b) | digamma(b) - digamma(a + b)
binom a b | z * (digamma(a + 1.0) - digamma(a - b + 1.0)) | z * (digamma(a - b + 1.0) - digamma(b + 1.0))
boxcox x a | x ** (a - 1.0) | where(a == 0.0, log(x) ** 2 / 2.0, (x**a * log(x) - z) / where(a == 0.0, 1.0, a))
boxcox1p x a | (1.0 + x) ** (a - 1.0) | where(a == 0.0, log1p(x) ** 2 / 2.0, ((1.0 + x)**a * log1p(x) - z) / where(a == 0.0, 1.0, a))
cbrt x | 1.0 / (3.0 * z * z)
chdtr a x | - | exp(xlogy(a / 2.0 - 1.0, x) - x / 2.0 - a / 2.0 * log(2.0) - gammaln(a / 2.0))
chdtrc a x | - | -exp(xlogy(a / 2.0 - 1.0, x) - x / 2.0 - a / 2.0 * log(2.0) - gammaln(a / 2.0))
chdtri a x | - | -exp(z / 2.0 + a / 2.0 * log(2.0) + gammaln(a / 2.0) - xlogy(a / 2.0 - 1.0, z))
cosdg x | -sindg(x) * pi / 180.0
cosm1 x | -sin(x)
cotdg x | -(1.0 + z * z) * pi / 180.0
dawsn x | 1.0 - 2.0 * x * z
ellipe x | -pi / 8.0 * hyp2f1(0.5, 1.5, 2.0, x)
ellipeinc x m | sqrt(1.0 - m * sin(x) ** 2) | (z - ellipkinc(x, m)) / (2.0 * m)
ellipk x | pi / 8.0 * hyp2f1(1.5, 1.5, 2.0, x)
ellipkinc x m | 1.0 / sqrt(1.0 - m * sin(x) ** 2) | (ellipeinc(x, m) / (1.0 - m) - z) / (2.0 * m) - sin(2.0 * x) / (4.0 * (1.0 - m) * sqrt(1.0 - m * sin(x) ** 2))
ellipkm1 x | -pi / 8.0 * hyp2f1(1.5, 1.5, 2.0, 1.0 - x)
entr x | -log(x) - 1.0
erfcinv x | -sqrt(pi) / 2.0 * exp(z * z)
erfcx x | 2.0 * x * z - 2.0 / sqrt(pi)
erfi x | 2.0 / sqrt(pi) * exp(x * x)
eval_chebyc n x | - | n * eval_chebyu(where(n == 0, 0, n - 1), x / 2.0)
eval_chebys n x | - | where(n == 0, 0.0, 1.0) * eval_gegenbauer(where(n == 0, 0, n - 1), 2.0, x / 2.0)
eval_chebyt n x | - | n * eval_chebyu(where(n == 0, 0, n - 1), x)
eval_chebyu n x | - | where(n == 0, 0.0, 2.0) * eval_gegenbauer(where(n == 0, 0, n - 1), 2.0, x)
eval_gegenbauer n a x | - | - | where(n == 0, 0.0, 2.0 * a) * eval_gegenbauer(where(n == 0, 0, n - 1), a + 1.0, x)
eval_genlaguerre n a x | - | - | where(n == 0, 0.0, -1.0) * eval_genlaguerre(where(n == 0, 0, n - 1), a + 1.0, x)
eval_hermite n x | - | 2.0 * n * eval_hermite(where(n == 0, 0, n - 1), x)
eval_hermitenorm n x | - | n * eval_hermitenorm(where(n == 0, 0, n - 1), x)
eval_jacobi n a b x | - | - | - | where(n == 0, 0.0, (n + a + b + 1.0) / 2.0) * eval_jacobi(where(n == 0, 0, n - 1), a + 1.0, b + 1.0, x)
eval_laguerre n x | - | where(n == 0, 0.0, -1.0) * eval_genlaguerre(where(n == 0, 0, n - 1), 1.0, x)
eval_legendre n x | - | where(n == 0, 0.0, (n + 1.0) / 2.0) * eval_jacobi(where(n == 0, 0, n - 1), 1.0, 1.0, x)
eval_sh_chebyt n x | - | 2.0 * n * eval_chebyu(where(n == 0, 0, n - 1), 2.0 * x - 1.0)
eval_sh_chebyu n x | - | where(n == 0, 0.0, 4.0) * eval_gegenbauer(where(n == 0, 0, n - 1), 2.0, 2.0 * x - 1.0)
eval_sh_jacobi n a b x | - | - | - | n * eval_sh_jacobi(where(n == 0, 0, n - 1), a + 2.0, b + 1.0, x)
eval_sh_legendre n x | - | where(n == 0, 0.0, n + 1.0) * eval_jacobi(where(n == 0, 0, n - 1), 1.0, 1.0, 2.0 * x - 1.0)
exp1 x | -exp(-x) / x
exp10 x | z * log(10.0)
expi x | exp(x) / x
expn a x | - | where(a < 0.5, -(1.0 + 1.0 / x) * exp(-x) / x, -expn(maximum(a - 1.0, 0.0), x))
exprel x | hyp1f1(2.0, 3.0, clip(x, -1e300, 1e3)) / 2.0
fdtr a b x | - | - | exp(a / 2.0 * log(a / b) + xlogy(a / 2.0 - 1.0, x) - (a + b) / 2.0 * log1p(a * x / b) - betaln(a / 2.0, b / 2.0))
fdtrc a b x | - | - | -exp(a / 2.0 * log(a / b) + xlogy(a / 2.0 - 1.0, x) - (a + b) / 2.0 * log1p(a * x / b) - betaln(a / 2.0, b / 2.0))
gamma x | z * digamma(x)
gammainc a x | - | exp(xlogy(a - 1.0, x) - x - gammaln(a))
gammaincc a x | - | -exp(xlogy(a - 1.0, x) - x - gammaln(a))
gammainccinv a x | - | -exp(z + gammaln(a) - xlogy(a - 1.0, z))
gammaincinv a x | - | exp(z + gammaln(a) - xlogy(a - 1.0, z))
gammasgn x | 0.0 * x
gdtr a b x | exp((b - 1.0) * log(a) + xlogy(b, x) - a * x - gammaln(b)) | - | exp(b * log(a) + xlogy(b - 1.0, x) - a * x - gammaln(b))
gdtrc a b x | -exp((b - 1.0) * log(a) + xlogy(b, x) - a * x - gammaln(b)) | - | -exp(b * log(a) + xlogy(b - 1.0, x) - a * x - gammaln(b))
huber a x | where(abs(x) <= a, 0.0, abs(x) - a) | where(abs(x) <= a, x, a * sign(x))
hyp0f1 a x | - | hyp0f1(a + 1.0, x) / a
hyp1f1 a b x | - | - | a / b * hyp1f1(a + 1.0, b + 1.0, x)
hyp2f1 a b c x | - | - | - | a * b / c * hyp2f1(a + 1.0, b + 1.0, c + 1.0, x)
hyperu a b x | - | - | -a * hyperu(a + 1.0, b + 1.0, x)
i0 x | i1(x)
i0e x | i1e(x) - sign(x) * z
i1 x | slope_of_i1(x, z)
i1e x | slope_of_i1e(x, z) - sign(x) * z
inv_boxcox x a | z ** (1.0 - a) | where(a == 0.0, -x * x / 2.0 * z, z * (x / (1.0 + a * x) - log(z)) / where(a == 0.0, 1.0, a))
inv_boxcox1p x a | (1.0 + z) ** (1.0 - a) | where(a == 0.0, -x * x / 2.0 * (1.0 + z), (1.0 + z) * (x / (1.0 + a * x) - log1p(z)) / where(a == 0.0, 1.0, a))
iv a x | - | (iv(a - 1.0, x) + iv(a + 1.0, x)) / 2.0
ive a x | - | (ive(a - 1.0, x) + ive(a + 1.0, x)) / 2.0 - sign(x) * z
j0 x | -j1(x)
j1 x | (j0(x) - jv(2.0, x)) / 2.0
jv a x | - | (jv(a - 1.0, x) - jv(a + 1.0, x)) / 2.0
k0 x | -k1(x)
k0e x | z - k1e(x)
k1 x | -(k0(x) + kv(2.0, x)) / 2.0
k1e x | z - (k0e(x) + kve(2.0, x)) / 2.0
kei x | keip(x)
keip x | ker(x) - z / x
ker x | kerp(x)
kerp x | -kei(x) - z / x
kl_div x y | log(x / y) | 1.0 - x / y
kn n x | - | -(kv(n - 1.0, x) + kv(n + 1.0, x)) / 2.0
kv a x | - | -(kv(a - 1.0, x) + kv(a + 1.0, x)) / 2.0
kve a x | - | z - (kve(a - 1.0, x) + kve(a + 1.0, x)) / 2.0
log_expit x | expit(-x)
log_ndtr x | sqrt(2.0 / pi) / erfcx(-x / sqrt(2.0))
loggamma x | digamma(x)
modstruve a x | - | modstruve(a - 1.0, x) - a * z / x
ndtr x | exp(-x * x / 2.0) / sqrt(2.0 * pi)
ndtri x | sqrt(2.0 * pi) * exp(z * z / 2.0)
ndtri_exp x | sqrt(2.0 * pi) * exp(z * z / 2.0 + x)
owens_t x a | -exp(-x * x / 2.0) * erf(a * x / sqrt(2.0)) / (2.0 * sqrt(2.0 * pi)) | exp(-x * x * (1.0 + a * a) / 2.0) / (2.0 * pi * (1.0 + a * a))
pdtr n x | - | -exp(xlogy(floor(n), x) - x - gammaln(floor(n) + 1.0))
pdtrc n x | - | exp(xlogy(floor(n), x) - x - gammaln(floor(n) + 1.0))
poch x a | z * (digamma(x + a) - digamma(x)) | z * digamma(x + a)
powm1 x y | y * x ** (y - 1.0) | (1.0 + z) * log(x)
pseudo_huber a x | 2.0 * z / a - x * x / (a * sqrt(1.0 + (x / a) ** 2)) | x / sqrt(1.0 + (x / a) ** 2)
rel_entr x y | log(x / y) + 1.0 | -x / y
rgamma x | -z * digamma(x)
sindg x | cosdg(x) * pi / 180.0
softplus x | expit(x)
spence x | where(x == 1.0, -1.0, log(x) / where(x == 1.0, 1.0, 1.0 - x))
stdtr a x | - | exp(gammaln((a + 1.0) / 2.0) - gammaln(a / 2.0)) / sqrt(a * pi) * (1.0 + x * x / a) ** (-(a + 1.0) / 2.0)
stdtrit a x | - | exp(gammaln(a / 2.0) - gammaln((a + 1.0) / 2.0)) * sqrt(a * pi) * (1.0 + z * z / a) ** ((a + 1.0) / 2.0)
struve a x | - | struve(a - 1.0, x) - a * z / x
tandg x | (1.0 + z * z) * pi / 180.0
wrightomega x | z / (1.0 + z)
xlog1py x y | where(x == 0.0, where(y <= -1.0, 0.0, log1p(y)), log1p(y)) | x / (1.0 + y)
y0 x | -y1(x)
y1 x | (y0(x) - yv(2.0, x)) / 2.0
yn n x | - | (yv(n - 1.0, x) - yv(n + 1.0, x)) / 2.0
yv a x | - | (yv(a - 1.0, x) - yv(a + 1.0, x)) / 2.0
_zeta a x | - | -order_beyond_one(a) * _zeta(a + 1.0, x)
"""  # noqa: E501 - a row is a line


class Partials:
    """Derivatives of one ufunc: its operands' names, and the code of each partial, None where there is none.

    `slopes` of arrays and `derivatives` of tensors are these as functions of the operands and the result, made at the first call.
    """

    def __init__(self, name: str, operands: list[str], texts: list[str]) -> None:
        self.name, self.operands, self.texts = name, operands, texts
        self.codes: list[CodeType | None] = [None if text == "-" else compile(text, f"<{name}>", "eval") for text in texts]
        self.slopes = functools.cache(functools.partial(self._function, _names_of_arrays))
        self.derivatives = functools.cache(functools.partial(self._function, _names))
        used = [() if code is None else code.co_names for code in self.codes]
        places = [tuple(k for k, operand in enumerate(operands) if operand in names) for names in used]
        self.step = Structural(
            f"{name.strip('_').title().replace('_', '')}Backward0",
            tuple((*there, *(("z",) if "z" in names else ())) for there, names in zip(places, used, strict=True)),
            functools.partial(_vjp, self),
            forward=self.value_again,
        )

    def _function(self, names: dict[str, Any], k: int) -> Callable[..., Any]:
        code, given = self.codes[k], (*self.operands, "z")
        assert code is not None
        space = {name: names[name] for name in code.co_names if name not in given}
        made: Callable[..., Any] = eval(f"lambda {', '.join(given)}: {self.texts[k]}", {"__builtins__": {}, **space})
        return made

    def value_again(self, arrays: Sequence[Any], attrs: Any) -> Any:
        """What the ufunc gives for other operands."""
        with quiet():
            return ufunc_of_scipy(self.name)(*arrays)


def _read() -> dict[str, Any]:
    table = {}
    for line in TABLE.strip().splitlines():
        head, *texts = line.split(" | ")
        name, *operands = head.split()
        table[name] = (name, operands, texts)
    return table


PARTIALS = _read()


@functools.cache
def _partials(name: str) -> Partials:
    return Partials(*PARTIALS[name])


def _by_name(name: str) -> Any:
    """What the text of partials calls: functions of NumPy, else ufuncs of SciPy."""
    own = ufunc_of_scipy(name) if name in PARTIALS else getattr(math, name) if name == "pi" else getattr(np, name, None)
    return own or ufunc_of_scipy(name)


class _Names(dict[str, Any]):
    """The same on tensors, for which nobody has to ask NumPy's protocols."""

    def __missing__(self, name: str) -> Any:
        found = self[name] = _OWN.get(name) or self._function(name)
        return found

    def _function(self, name: str) -> Any:
        found = _by_name(name)
        if name in PARTIALS:
            operation = special(found)
        elif name in SCIPY:
            operation = named(SCIPY[name])
        elif type(found) is np.ufunc and found.nin == 1 and name in OPCODES:
            operation = FUNCTIONS[name]
        else:
            return found

        def call(*operands: Any) -> Any:
            return operation(*operands) if type(operands[-1]) is Tensor else found(*operands)

        return call


def _order_beyond_one(a: Tensor) -> Any:
    """The order of a zeta function, by which there is no derivative; nan up to 1."""
    if type(a._data) is float and not TAPE.tracers:
        return a if a._data > 1.0 else make(math.nan, 0)
    return _names["where"](a > 1.0, a, math.nan)


# The derivative of `i1` is half the sum of the functions of the orders beside it, and by their recurrence a quotient less than the
# one below, which takes a sixth of the time. That may be differentiated no further: near 0 large numbers would cancel.
_OWN: dict[str, Callable[..., Any]] = {
    "order_beyond_one": _order_beyond_one,
    "slope_of_i1": lambda x, z: (_names["i0"](x) + _names["iv"](2.0, x)) / 2.0,
    "slope_of_i1e": lambda x, z: (_names["i0e"](x) + _names["ive"](2.0, x)) / 2.0,
}
_OF_ARRAYS: dict[str, Callable[..., Any]] = {
    "order_beyond_one": lambda a: np.where(a > 1.0, a, np.nan),
    "slope_of_i1": lambda x, z: _less_quotient(_names_of_arrays["i0"](x), z, x),
    "slope_of_i1e": lambda x, z: _less_quotient(_names_of_arrays["i0e"](x), z, x),
}


def _less_quotient(value: Any, z: Any, x: Any) -> Any:
    size = np.abs(x)
    if np.min(size, initial=1.0) >= 1e-9 and np.isfinite(z).all():  # most of them, in half of the passes
        return value - z / x
    near = size < 1e-9  # where it is 1/2 to the last digit, also where numbers have few
    quotient = np.where(near, 0.5, z / np.where(near, 1.0, x))
    return np.where(np.isfinite(z), value - quotient, value)


_names: _Names = _Names()
_absolute_zero = FORMS[OPCODES["_mul0"]]
_F64 = np.dtype(np.float64)


class _NamesOfArrays(dict[str, Any]):
    """The same on plain arrays; what is an operation here has its digits."""

    def __missing__(self, name: str) -> Any:
        found = self[name] = _OF_ARRAYS.get(name) or (_of_arrays(name) if name in SCIPY else _by_name(name))
        return found


def _of_arrays(name: str) -> Callable[..., Any]:
    operation, opcode = named(SCIPY[name]), OPCODES.get(SCIPY[name])

    def call(*xs: Any) -> Any:
        if opcode is not None and _are_doubles(xs):
            if TAPE.tracers or max([x.size for x in xs if type(x) is np.ndarray]) > SMALL:
                return np.asarray(forward[opcode](*xs))
            return operation(*[make(x if type(x) is np.ndarray else float(x), 0) for x in xs])._data
        return _array(operation(*[make(float(x), 0) if isinstance(x, float) else one(x) for x in xs]))

    return call


def _are_doubles(xs: tuple[Any, ...]) -> bool:
    """Whether there are arrays of float64 among operands, and nothing else but numbers."""
    found = False
    for x in xs:
        if type(x) is np.ndarray and x.dtype is _F64 and x.ndim:
            found = True
        elif not isinstance(x, float):
            return False
    return found


_names_of_arrays: _NamesOfArrays = _NamesOfArrays()


def _vjp(partials: Partials, g: Tensor, ctx: Context) -> tuple[Tensor | None, ...]:
    known = (*ctx.inputs, ctx.result)
    if ctx.on is PLAIN:
        product = _product_of_arrays
        arrays = [None if t is None else _array(t) for t in known]
        token = enter(IGNORING)
        try:
            slopes = [make(as_result(partials.slopes(k)(*arrays)), 0) if need else None for k, need in enumerate(ctx.needs)]
        finally:
            leave(token)
    else:
        product = method("_mul0")
        slopes = [one(partials.derivatives(k)(*known)) if need else None for k, need in enumerate(ctx.needs)]
    pairs = zip(slopes, ctx.shapes, strict=True)
    return tuple([None if slope is None else ctx.on.sum_to(product(g, slope), shape) for slope, shape in pairs])


def _product_of_arrays(g: Tensor, slope: Tensor) -> Tensor:
    """The same product without the rest of the operator."""
    a, b = g._data, slope._data
    if type(a) is not np.ndarray or type(b) is not np.ndarray or a.shape != b.shape or not a.dtype is b.dtype is _F64:
        return _absolute_zero(g, slope)
    is_number = not any(a.strides)
    if not a.ndim or a.size > SMALL or not b.flags.c_contiguous or not (is_number or a.flags.c_contiguous):
        return _absolute_zero(g, slope)
    loops, total = numpys_loops(), np.array(SUM_START)
    if not loops:
        return _absolute_zero(g, slope)
    z = np.empty(a.shape)
    ARRAY_KERNELS.products_or_zero(id(z), id(a), id(b), 0 if is_number else 1, id(total), loops)
    return make(z, 0)


def _array(t: Tensor) -> Any:
    data = array_of(t)
    return data if data.ndim else data[()]


def are_doubles(operands: Sequence[Any]) -> bool:
    """Whether operands are tensors of float64 and nothing else."""
    for t in operands:  # noqa: SIM110 - in a third of the time of a generator
        if type(t) is not Tensor or (type(t._data) is not float and t._data.dtype is not _F64):
            return False
    return True


def special(ufunc: Any) -> Callable[..., Any]:
    """A ufunc of `scipy.special` on tensors.

    Raises
    ------
    NotCovered
        If it is none, or there is no row for it.
    """
    name = ufunc.__name__
    if name not in PARTIALS or ufunc_of_scipy(name) is not ufunc:
        raise NotCovered

    def check(partials: Partials, operands: Sequence[Tensor]) -> None:
        for k, (t, code) in enumerate(zip(operands, partials.codes, strict=True)):
            if t._row and code is None:
                raise NotImplementedError(
                    f"scipy.special.{name.strip('_')} has no derivative by its operand {k} ({partials.operands[k]}) in closed "
                    "form; pass a constant, as tg.stop_gradient gives it"
                )

    def of_doubles(operands: tuple[Tensor, ...]) -> Tensor:
        token = enter(IGNORING)
        try:
            value = ufunc(*[t._data for t in operands])
        finally:
            leave(token)
        if not (is_recording() and any(t._row for t in operands)):
            return one(np.asarray(value))
        partials = _partials(name)
        check(partials, operands)
        return apply(partials.step, operands, value)

    def call(*inputs: Any) -> Any:
        if not TAPE.tracers and are_doubles(inputs):
            return of_doubles(inputs)
        operands = [one(np.int64(x) if type(x) is int else x) for x in inputs]
        with quiet():
            value = ufunc(*[x if type(x) is int else array_of(t) for x, t in zip(inputs, operands, strict=True)])
        if not (is_recording() and any(t._row for t in operands)):
            return one(np.asarray(value))
        partials = _partials(name)
        check(partials, operands)
        shape, dtype = value.shape, value.dtype
        # Orders that are integers stay so: SciPy evaluates polynomials of these otherwise, and some of no others.
        kinds = [array_of(t).dtype for t in operands]
        wide = [t if k == dtype or not (t._row or k.kind == "f") else t.to(dtype) for t, k in zip(operands, kinds, strict=True)]
        if TAPE.tracers:  # steps of programs have no numbers
            wide = [t if array_of(t).shape == shape else tg.broadcast_to(t, shape) for t in wide]
        return apply(partials.step, tuple(wide), value)

    return call
