"""Functions whose text is the project's own: right to the last digits everywhere, and in blocks as they are one by one."""

import math

import numpy as np
import pytest
from many_cases import each

import tapegrad as tg
from tapegrad.kernels.opcodes import OPCODES
from tapegrad.ops.elementwise import FORMS
from tapegrad.rules import special

# Values by their arguments, rounded from sixty digits.
KNOWN = {
    "erf": {
        1e-310: 1.1283791670955e-310,
        1e-09: 1.1283791670955127e-09,
        0.1: 0.1124629160182849,
        0.3: 0.3286267594591274,
        0.499: 0.5196206559894685,
        0.5: 0.5204998778130465,
        0.55: 0.563323366325109,
        0.84: 0.7651427114549945,
        1.0: 0.8427007929497149,
        1.7: 0.9837904585907745,
        2.5: 0.999593047982555,
        4.0: 0.9999999845827421,
        5.8: 0.9999999999999998,
        -0.25: -0.27632639016823696,
        -1.2: -0.9103139782296353,
    },
    "erfc": {
        -5.0: 1.9999999999984626,
        -0.6: 1.6038560908479258,
        -0.1: 1.1124629160182848,
        1e-20: 1.0,
        0.2: 0.7772974107895215,
        0.499: 0.48037934401053156,
        0.5: 0.4795001221869535,
        0.55: 0.436676633674891,
        1.0: 0.15729920705028513,
        2.0: 0.004677734981047266,
        3.3: 3.0577097964381654e-06,
        7.0: 4.183825607779414e-23,
        12.0: 1.3562611692059042e-64,
        19.5: 2.0909541479227294e-167,
        26.0: 5.663192408856143e-296,
    },
    "ndtr": {
        -37.0: 5.725571222524577e-300,
        -25.5: 9.856236518963929e-144,
        -12.0: 1.776482112077679e-33,
        -5.0: 2.866515718791939e-07,
        -3.1: 0.0009676032132183566,
        -1.9: 0.028716559816001807,
        -0.7: 0.24196365222307303,
        -0.1: 0.460172162722971,
        1e-12: 0.5000000000003989,
        0.3: 0.6179114221889527,
        1.4: 0.9192433407662289,
        2.9: 0.998134186699616,
        6.0: 0.9999999990134123,
    },
    "erfinv": {
        1e-300: 8.86226925452758e-301,
        1e-05: 8.862269254759594e-06,
        0.1: 0.08885599049425769,
        -0.3: -0.2724627147267543,
        0.6: 0.5951160814499948,
        0.809: 0.9246316156016472,
        0.9: 1.1630871536766743,
        0.99: 1.8213863677184494,
        0.9985: 2.2448402503847205,
        0.9995: 2.461266457171732,
        0.99999: 3.123413274341571,
        0.9999999999: 4.572824958544925,
    },
    "digamma": {
        1e-80: -1e80,
        0.001: -1000.5755719318103,
        0.2: -5.289039896592188,
        0.9: -0.7549269499470513,
        1.0: -0.5772156649015329,
        2.0: 0.42278433509846713,
        3.7: 1.1671535393615113,
        9.999: 2.2516474172057355,
        10.0: 2.251752589066721,
        25.0: 3.198742512851974,
        10000000000.0: 23.025850929890456,
        1e90: 207.2326583694641,
        -0.5: 0.03648997397857652,
        -3.25: 4.46627587235028,
    },
    "trigamma": {
        1e-80: 1e160,
        0.001: 1000001.6425331958,
        0.2: 26.267377205423777,
        0.9: 1.9225399594772035,
        1.0: 1.6449340668482264,
        2.0: 0.6449340668482264,
        3.7: 0.3100378576700383,
        9.999: 0.10517738667672887,
        10.0: 0.10516633568168575,
        25.0: 0.04081066325722558,
        10000000000.0: 1.00000000005e-10,
        1e90: 1e-90,
        -0.5: 8.934802200544679,
        -3.25: 19.474085068082154,
    },
    "tetragamma": {
        1e-80: -2.0000000000000004e240,
        0.001: -2000000002.3976321,
        0.2: -251.4780361144359,
        0.9: -3.20179704379472,
        1.0: -2.4041138063191885,
        2.0: -0.4041138063191886,
        3.7: -0.09539530872855403,
        9.999: -0.011052155237122937,
        10.0: -0.011049834970802067,
        25.0: -0.001665279318422468,
        10000000000.0: -1.0000000001e-20,
        1e90: -1e-180,
        -0.5: -0.82879664423432,
        -3.25: 123.95521103942203,
    },
    "gelu_slope": {
        -37.5: -6.476271143055812e-305,
        -20.0: -1.1014360483133464e-86,
        -5.0: -7.146946001792295e-06,
        -2.0: -0.0852318010781969,
        -0.5: 0.13250487534383715,
        0.0: 0.5,
        1e-09: 0.5000000007978845,
        0.3: 0.7323277668271099,
        1.0: 1.0833154705876864,
        4.0: 1.0005036496612265,
        39.0: 1.0,
    },
    "log_ndtr": {
        -1000000.0: -500000000014.73444,
        -45.0: -1017.2260942419524,
        -37.0: -689.0305855768906,
        -20.0: -203.91715537109727,
        -5.0: -15.064998393988725,
        -1.0: -1.8410216450092636,
        -0.01: -0.7011578934443701,
        0.0: -0.6931471805599453,
        0.5: -0.3689464152886564,
        2.0: -0.02301290932896349,
        6.0: -9.865876455243758e-10,
        9.0: -1.1285884059538405e-19,
    },
    "inverse_mills": {
        -1000000.0: 1000000.000001,
        -45.0: 45.022200328343594,
        -37.0: 37.02698768612699,
        -20.0: 20.04975306852785,
        -5.0: 5.186503967125842,
        -1.0: 1.525135276160981,
        -0.01: 0.8042616400770792,
        0.0: 0.7978845608028654,
        0.5: 0.5091604338370335,
        2.0: 0.055247862678989956,
        6.0: 6.075882855817676e-09,
        9.0: 1.0279773571668915e-18,
    },
    "sinc": {
        0.0: 1.0,
        5e-324: 1.0,
        1e-09: 1.0,
        0.25: 0.9003163161571061,
        -0.4: 0.7568267286406569,
        0.5: 0.6366197723675814,
        0.6: 0.5045511524271047,
        -1.3: -0.19809085184633995,
        1.5: -0.2122065907891938,
        2.0: 0.0,
        7.7: -0.033443910051979456,
        40.3: 0.006390027478914151,
        1000000000.0: 0.0,
    },
    "sinc_slope": {
        0.0: 0.0,
        1e-200: -3.289868133696453e-200,
        1e-09: -3.289868133696453e-09,
        0.25: -0.7728381398822342,
        -0.4: 1.119524335664274,
        0.5: -1.2732395447351628,
        0.6: -1.3559469113367535,
        -1.3: 0.29976492342010236,
        1.6: 0.3113897978344449,
        2.0: 0.5,
        7.7: 0.0806791119927861,
        40.3: 0.014426680516465664,
    },
}
FUNCTIONS = {
    "erf": special.erf,
    "erfc": special.erfc,
    "ndtr": special.ndtr,
    "erfinv": special.erfinv,
    "digamma": special.digamma,
    "trigamma": lambda x: special.polygamma(1.0, x),
    "tetragamma": lambda x: special.polygamma(2.0, x),
    "gelu_slope": special.gelu_slope,
    "log_ndtr": special.log_ndtr,
    "inverse_mills": special.inverse_mills,
    "sinc": special.sinc,
    "sinc_slope": lambda x: special.sinc_derivative(1.0, x),
}
ON_TENSORS = {
    "erf": tg.erf,
    "erfc": tg.erfc,
    "erfinv": tg.erfinv,
    "digamma": tg.digamma,
    "trigamma": lambda x: tg.polygamma(1, x),
    "tetragamma": lambda x: tg.polygamma(2, x),
    "ndtr": tg.special.ndtr,
    "log_ndtr": tg.special.log_ndtr,
    "gelu_slope": FORMS[OPCODES["_gelu_slope"]],
    "inverse_mills": FORMS[OPCODES["_inverse_mills"]],
    "sinc": tg.sinc,
    "sinc_slope": lambda x: FORMS[OPCODES["_sinc_derivative"]](tg.ones_like(x), x),
}
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1e308, -1e308, 1.0, -1.0]
UNITS = 4  # of the last digit; two or fewer where the C library has the function
functions = each("name", FUNCTIONS)


@functions
def test_values_are_right_to_the_last_digits(name: str) -> None:
    allowed = 2 if name in ("erf", "erfc") else UNITS
    for x, expected in KNOWN[name].items():
        scale = max(abs(expected), 2.0) if name == "digamma" else expected  # of the logarithm that it is a part of
        scale = max(abs(expected), abs(1.0 / x)) if name == "sinc_slope" and abs(x) > 0.5 else scale  # of the cosine by x
        assert abs(FUNCTIONS[name](x) - expected) <= allowed * math.ulp(scale), x


@each("name", ON_TENSORS)
def test_arrays_have_the_bits_of_numbers(name: str) -> None:
    points = np.r_[np.random.default_rng(0).uniform(-30.0, 30.0, 700), np.linspace(-1.0, 1.0, 1500), list(KNOWN[name]), EDGES]
    together = ON_TENSORS[name](tg.tensor(points)).numpy()
    alone = [ON_TENSORS[name](tg.tensor(x)).item() for x in points]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(np.signbit(together) & (together == together), np.signbit(alone) & (together == together))


@each("name", ON_TENSORS)
def test_common_arguments_have_the_same_bits_beside_others(name: str) -> None:
    """A block with an uncommon argument goes another way."""
    common = np.random.default_rng(1).uniform(0.1, 0.9, 40)
    mixed = np.r_[common, EDGES]
    np.testing.assert_array_equal(ON_TENSORS[name](tg.tensor(mixed)).numpy()[:40], ON_TENSORS[name](tg.tensor(common)).numpy())


@pytest.mark.parametrize("x", [-36.0, -9.0, -3.0, -0.4, 0.0, 0.7, 5.0])
def test_gelu_keeps_its_digits_in_both_tails(x: float) -> None:
    assert tg.nn.functional.gelu(tg.tensor(x)).item() == pytest.approx(x * special.ndtr(x), rel=1e-15, abs=0.0)


@each("order", range(5))
def test_orders_of_polygamma_may_stand_side_by_side(order: int) -> None:
    x = np.array([0.3, 2.5, 12.0])
    beside = tg.polygamma(order, tg.tensor(np.r_[x, math.inf])).numpy()[:3]
    np.testing.assert_array_equal(beside, tg.polygamma(order, tg.tensor(x)).numpy())
