"""Elementwise operations that are no rules: compositions, keywords of rules, and functions with kinks."""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
from operation_case import Case

import tapegrad as tg
from tapegrad.nn import functional

F = functional
A = np.array([[0.7, -1.3, 2.2], [-0.4, 1.6, -2.8]])
B = np.array([[1.9, 0.6, -1.1], [2.5, -0.8, 1.4]])
ROW = np.array([0.45, -1.7, 2.3])
UNIT = np.array([[0.2, 0.55, 0.9], [0.35, 0.62, 0.15]])
BITS = np.array([[12, 10, 7], [3, 0, 5]])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def _each(f: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    return np.vectorize(f, otypes=[float])


def _unary(name: str, call: Any, reference: Any, label: str = "", point: np.ndarray = A, **options: Any) -> Case:
    return Case(name, call, (point,), reference, label, **options)


def _binary(name: str, call: Any, reference: Any, label: str = "", **options: Any) -> Case:
    return Case(name, call, (A, ROW), reference, label, **options)


def digamma(x: float) -> float:
    """By the recurrence to arguments for which the asymptotic series has all digits."""
    steps = sum(1.0 / (x + k) for k in range(20))
    y = x + 20.0
    return math.log(y) - 0.5 / y - 1 / (12 * y**2) + 1 / (120 * y**4) - 1 / (252 * y**6) + 1 / (240 * y**8) - steps


def multivariate(a: np.ndarray) -> Any:
    return np.vectorize(lambda x: math.log(math.pi) * 1.5 + sum(math.lgamma(x - j / 2.0) for j in range(3)))(a)


CASES: list[Case] = [
    _binary("add", lambda x, y: tg.add(x, y, alpha=3.0), lambda x, y: x + 3.0 * y, "alpha"),
    _binary("sub", lambda x, y: tg.sub(x, y, alpha=3.0), lambda x, y: x - 3.0 * y, "alpha"),
    _binary("rsub", tg.rsub, lambda x, y: y - x),
    _binary("div", lambda x, y: tg.div(x, y, rounding_mode="floor"), lambda x, y: np.floor(x / y), "floor"),
    _binary("div", lambda x, y: tg.div(x, y, rounding_mode="trunc"), lambda x, y: np.trunc(x / y), "trunc"),
    _binary("remainder", lambda x, y: x % y, lambda x, y: x - y * np.floor(x / y), "operator"),
    _binary("remainder", lambda x, y: (x * 0.0 + 7.5) % y, lambda x, y: 7.5 - y * np.floor(7.5 / y) + 0.0 * x, "divisor"),
    _binary("fmod", tg.fmod, lambda x, y: x - y * np.trunc(x / y), "signs"),
    Case("addcmul", lambda x, y, w: tg.addcmul(x, y, w, value=-1.5), (A, B, ROW), lambda x, y, w: x - 1.5 * y * w),
    Case("addcdiv", lambda x, y, w: tg.addcdiv(x, y, w, value=-1.5), (A, ROW, B), lambda x, y, w: x - 1.5 * y / w),
    Case("lerp", lambda x, y: tg.lerp(x, y, 0.3), (A, B), lambda x, y: 0.7 * x + 0.3 * y, "number"),
    Case("clamp", lambda x: tg.clamp(x, -1.0, 1.5), (A,), lambda x: np.clip(x, -1.0, 1.5), "numbers"),
    Case("clamp", lambda x, y: tg.clamp(x, max=y), (A, ROW), np.minimum, "tensor"),
    Case("where", lambda c, x, y: tg.where(c, x, y), (A > 0, A, ROW), np.where),
    Case("float_power", tg.float_power, (np.abs(A), ROW), np.power, float32=False),
    Case("logit", lambda x: tg.logit(x, 0.3), (UNIT,), lambda x: np.log(np.clip(x, 0.3, 0.7) / (1 - np.clip(x, 0.3, 0.7))), "eps"),
    _unary("erfinv", tg.erfinv, _each(lambda x: NormalDist().inv_cdf(0.5 + 0.5 * x) / math.sqrt(2.0)), "", UNIT - 0.5),
    _unary("sinc", tg.sinc, np.sinc, order=3, tolerance=1e-5),
    _unary("sinc", tg.sinc, np.sinc, "far", 3.0 * A, tolerance=1e-5),
    _binary("logaddexp2", tg.logaddexp2, np.logaddexp2),
    _unary("round", lambda x: tg.round(x, decimals=1), lambda x: np.round(x, 1), "decimals", A + 0.03),
    _unary("softplus", lambda x: tg.softplus(x, 2.0), lambda x: np.log1p(np.exp(2 * x)) / 2, "beta"),
    _unary("softplus", lambda x: tg.softplus(x, 2.0, 1.0), lambda x: np.where(2 * x > 1, x, np.log1p(np.exp(2 * x)) / 2), "line"),
    _unary("nan_to_num", lambda x: tg.nan_to_num(x, posinf=5.0), lambda x: x),
    _binary("fmax", tg.fmax, np.fmax),
    _binary("fmin", tg.fmin, np.fmin),
    _unary("hardtanh", lambda x: F.hardtanh(x, -1.5, 1.0), lambda x: np.clip(x, -1.5, 1.0)),
    _unary("relu6", F.relu6, lambda x: np.clip(x, 0, 6), "", 3 * A),
    _unary("threshold", lambda x: F.threshold(x, 0.5, -2.0), lambda x: np.where(x > 0.5, x, -2.0)),
    _unary("hardshrink", F.hardshrink, lambda x: np.where(abs(x) > 0.5, x, 0.0)),
    _unary("softshrink", F.softshrink, lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0.0)),
    _unary("hardsigmoid", F.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0.0, 1.0), "", 2 * A),
    _unary("hardswish", F.hardswish, lambda x: x * np.clip(x / 6 + 0.5, 0.0, 1.0), "", 2 * A),
    _unary("elu", lambda x: F.elu(x, 1.7), lambda x: np.where(x > 0, x, 1.7 * np.expm1(x))),
    _unary("selu", F.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    _unary("celu", lambda x: F.celu(x, 1.7), lambda x: np.maximum(x, 0) + np.minimum(0, 1.7 * np.expm1(x / 1.7))),
    _unary("softsign", F.softsign, lambda x: x / (1 + abs(x))),
    _unary("tanhshrink", F.tanhshrink, lambda x: x - np.tanh(x)),
    _unary("mish", F.mish, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    _unary("gelu", F.gelu, _each(lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2)))),
    _unary(
        "gelu",
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        "tanh",
    ),
    _unary("rrelu", F.rrelu, lambda x: np.where(x > 0, x, x * 11 / 48)),
    Case("prelu", F.prelu, (A, np.array([0.3])), lambda x, w: np.where(x > 0, x, w * x), "one"),
    Case("prelu", F.prelu, (A, ROW), lambda x, w: np.where(x > 0, x, w * x), "channels"),
    _unary("leaky_relu", lambda x: F.leaky_relu(x, 0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    _unary("silu", F.silu, lambda x: x * _sigmoid(x)),
    _unary("logsigmoid", F.logsigmoid, lambda x: np.log(_sigmoid(x))),
    _unary("relu_", lambda x: F.relu_(x * 1.0), lambda x: np.maximum(x, 0.0)),
    _unary("elu_", lambda x: F.elu_(x * 1.0, 0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    _unary("celu_", lambda x: F.celu_(x * 1.0, 0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(2.0 * x))),
    _unary(
        "selu_", lambda x: F.selu_(x * 1.0), lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))
    ),
    _unary("leaky_relu_", lambda x: F.leaky_relu_(x * 1.0, 0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    _unary("hardtanh_", lambda x: F.hardtanh_(x * 1.0, -0.5, 1.0), lambda x: np.clip(x, -0.5, 1.0)),
    _unary("rrelu_", lambda x: F.rrelu_(x * 1.0), lambda x: np.where(x > 0, x, x * 11 / 48)),
    _unary("threshold_", lambda x: F.threshold_(x * 1.0, 0.5, -1.0), lambda x: np.where(x > 0.5, x, -1.0)),
    _unary("angle", tg.angle, lambda x: np.where(x < 0, math.pi, 0.0)),
    _binary("nextafter", tg.nextafter, np.nextafter),
    _unary("polygamma_", lambda x: (x * x).polygamma_(0), _each(lambda x: digamma(x * x)), tolerance=1e-5),
    _unary("glu", lambda x: F.glu(x[:, :2]), lambda x: x[:, :1] * _sigmoid(x[:, 1:2]), "last"),
    _unary("glu", lambda x: F.glu(x, 0), lambda x: x[:1] * _sigmoid(x[1:])),
    _unary("softmin", lambda x: F.softmin(x, 1), lambda x: np.exp(-x) / np.exp(-x).sum(1, keepdims=True)),
    _binary("eq", lambda x, y: x == y, np.equal, order=0),
    _binary("lt", lambda x, y: x < y, np.less, order=0),
    _binary("ge", tg.greater_equal, np.greater_equal, order=0),
    _binary("logical_xor", tg.logical_xor, np.logical_xor, order=0),
    _binary("isclose", lambda x, y: tg.isclose(x, y, rtol=0.5), lambda x, y: np.isclose(x, y, rtol=0.5), order=0),
    _unary("isnan", tg.isnan, np.isnan, order=0),
    _unary("isfinite", tg.isfinite, np.isfinite, order=0),
    _unary("isposinf", tg.isposinf, np.isposinf, order=0),
    _unary("isneginf", tg.isneginf, np.isneginf, order=0),
    _unary("signbit", tg.signbit, np.signbit, order=0),
    Case("gcd", tg.gcd, (BITS, BITS[:, ::-1]), np.gcd, order=0),
    Case("lcm", tg.lcm, (BITS, BITS[:, ::-1]), np.lcm, order=0),
    Case("bitwise_and", lambda x, y: x & y, (BITS, BITS[:, ::-1]), np.bitwise_and, order=0),
    Case("bitwise_left_shift", tg.bitwise_left_shift, (BITS, BITS % 4), np.left_shift, order=0),
    Case("bitwise_right_shift", tg.bitwise_right_shift, (BITS, BITS % 4), np.right_shift, order=0),
    Case("mvlgamma", lambda x: tg.mvlgamma(x, 3), (np.array([[1.7, 2.3], [4.1, 9.2]]),), multivariate),
]
