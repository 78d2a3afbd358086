"""Whether a loop has the bits of NumPy's: results at points where those of different C libraries differ in the last digit.

Of angles and exponents, half of each list are points where a library that fuses products and sums has another digit than one that
does not, and half where the former has not the nearest number; of ten thousand random points there are seven and twelve.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["compared", "points_of"]

UNIT, LARGE_UNIT = 2.0**-20, 25.0  # what the lists count
# Angles where one change in the reduction or in the series would be seen: a product and sum that is not fused, or a last digit.
ANGLES = (
    3.2010654528178697, 31.521413500644655, 334224.72268647625, -2.8851684698803934, -0.29269744417386834, 1.4833837648437362,
    1.6689547538507896, -1.4745014846871545,
)  # fmt: skip
FEW_DISTANCES = (
    0.961328658333369, 9.967066975818284, 45.383572221070295, 271.65689725130864, 0.03635812730682486, 0.19723433202710094,
    0.4487437680025559, 0.4564304303530884, 0.6367205654216382, 0.9404186892695825,
)  # fmt: skip
SINES = (
    170104, 223636, 320367, 971472, 2766557, 2960546, 3730723, 3766265, 5362108, 5789998, 5928777, 6340703, 6733113, 6812779,
    7068273, 7535608, 109678, 122645, 153359, 167579, 284467, 320883, 487070, 978348, 2890125, 3389843, 3451494, 3575732,
    3783143, 3856704, 6039869, 6829236,
)  # fmt: skip
FAR_SINES = (
    560852, 1319940, 1589822, 1635156, 1788986, 2023922, 2188428, 2426176, 2910085, 3004587, 3533782, 3653582,
    40096, 212654, 249262, 311684, 321816, 380028, 494606, 590163, 627061, 716735, 764303, 904320,
)  # fmt: skip
COSINES = (
    972959, 1430948, 1735929, 1839114, 2277556, 3724160, 4323303, 4809267, 4812561, 5229146, 5421173, 6091856, 7082558,
    7739058, 7874194, 8380312, 1035659, 1330288, 1790030, 2535011, 3919842, 4076776, 4241764, 4496566, 4620432, 4672144,
    5132303, 5143958, 5904231, 7992823, 8035991, 8053230,
)  # fmt: skip
FAR_COSINES = (
    497306, 565926, 771471, 1205312, 3008750, 3093011, 3103433, 3155549, 3877910, 3904715, 3915449, 4085727,
    152031, 228235, 232063, 332013, 370522, 383874, 496553, 525378, 822941, 907152, 913510, 1008656,
)  # fmt: skip
# Of sums of exponentials: where the logarithm has another digit, and where it or the exponential has.
DISTANCES = (
    642702, 756687, 806196, 921940, 923530, 1013651, 1158026, 1214023, 1328847, 1368256, 1562185, 1568238, 1595039, 1841654,
    1878311, 2016701, 2061703, 2084462, 2146404, 2400279, 2555040, 2917665, 3117505, 3155066, 384409, 654725, 763034, 1216354,
    1426929, 1826274, 2193460, 2507668, 2531642, 2936322, 3554629, 3556100, 3655619, 3956016, 4357729, 4426416, 5209230,
    5827922, 6293044, 6420988, 6506202, 6741122, 7788452, 7975364,
)  # fmt: skip
POWER_DISTANCES = (  # where the power of two has another digit
    12438, 75880, 136839, 168103, 300533, 830966, 840219, 1256464, 1292449, 1420105, 1798502, 2267711, 2290449, 2427463, 2493130,
    2503096, 2674681, 2774347, 2775330, 2836057, 2933505, 3168436, 3182057, 3290342, 3434510, 3466871, 3580174, 3601143, 3648729,
    3828046, 3912387, 4051866,
)  # fmt: skip
FAR_DISTANCES = (
    282017, 456900, 1052844, 2568103, 3146649, 3391567, 3576108, 3587273, 3979349, 4073741, 5273458, 5867481, 6537936, 7214957,
    7839289, 7894592,
)  # fmt: skip
# Of exponentials: where a coefficient or a number of the table with another last digit would be seen, or what is fused or is not.
EXPONENTS = (
    -8329518, -7943325, -7770690, -7662976, -7544569, -7530332, -7408000, -7247909, -7156517, -6954026, -6659672, -6590891,
    -6187729, -6122468, -6063166, -6029063, -5921779, -5406285, -5298560, -4879208, -4599694, -4534714, -4381107, -4272587,
    -4222223, -3702061, -3694043, -3675043, -3635585, -3583676, -3514459, -3478194, -3471571, -3402850, -3348699, -3033687,
    -2918256, -2634720, -2346130, -2181266, -2073333, -1930777, -1376696, -1237706, -1140891, -1119055, -1091424, -1012856,
    -935186, -609426, -556210, -476180, -365119, -358551, -338597, -199561, -68681, -51984, -46201, 413769, 474330, 586194,
    638333, 1044219, 1089304, 2399268, 2496953, 2584600, 2659358, 2713809, 2869915, 2937664, 3522816, 3575751, 3712660,
    3765915, 4049851, 4103655, 4131736, 4230098, 4396040, 4573876, 4783881, 4934473, 5132918, 5179365, 5245529, 5341777,
    5417396, 5476346, 5504477, 5671185, 5778819, 5973740, 6021426, 6076636, 6087121, 6132513, 6439791, 6501461, 7042528,
    7322246, 7454188, 7651697, 7784726, 7887961, 8155404,
)  # fmt: skip
# Of lengths, both sides: where a product and sum would be seen if they were fused, and where the length is not the nearest number.
FIRST_SIDES = (
    15217, 27212, 70378, 85211, 112744, 138346, 138568, 168385, 172068, 279631, 306298, 306997, 308759, 366473, 378248,
    393806, 396946, 403506, 418410, 441777, 447000, 520305, 562224, 644883, 665865, 673572, 678512, 678797, 679369, 703780,
    765411, 781088, 793704, 811707, 833112, 837983, 852086, 862201, 902586, 1026415, 1033122, 1042421,
)  # fmt: skip
SECOND_SIDES = (
    5633, 26901, 27431, 47037, 35454, 114969, 134109, 72602, 207992, 166402, 366023, 169524, 292183, 359314, 334428, 473380,
    138861, 130152, 146638, 688249, 172959, 274543, 349381, 1013277, 807763, 372207, 392913, 793709, 779519, 291151, 247415,
    432935, 953818, 500806, 296286, 540685, 454618, 874897, 368206, 403528, 473072, 367698,
)  # fmt: skip


def compared(ufunc: Any, address: int, ways: tuple[int, ...]) -> tuple[int, int]:
    """The address of a loop, and with which last argument its results are those of a function of NumPy's; zeros if with none."""
    sets = points_of(ufunc)
    for how in ways:
        if all(_agree(ufunc, (address, how), operands) for operands in sets):
            return address, how
    return 0, 0


def _agree(ufunc: Any, loop: tuple[int, int], operands: tuple[Any, ...]) -> bool:
    found = np.empty_like(operands[0])
    ARRAY_KERNELS.call_function(id(found), id(operands[0]), id(operands[-1]), *loop, len(operands) - 1)
    with quiet():
        expected = ufunc(*operands)
    is_nan = np.isnan(expected)
    return bool(np.all(np.where(is_nan, np.isnan(found), found.view(np.int64) == expected.view(np.int64))))


def points_of(ufunc: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Operands that a loop of ours computes, and such that it leaves to the C library."""
    spread = np.arange(1.0, 257.0) * 0.6180339887498949 % 1.0  # as even as it can be, and no multiples of anything
    if ufunc is np.sin or ufunc is np.cos:
        near, far = (SINES, FAR_SINES) if ufunc is np.sin else (COSINES, FAR_COSINES)
        known = UNIT * np.array(near), LARGE_UNIT * np.array(far) + 0.5, ANGLES
        angles = 0.86 * spread, -2.5 * spread, np.exp2(54.0 * spread - 28.0), *known
        return (np.concatenate(angles),), (np.array([0.5, 1e9, -1e300, np.inf, np.nan]),)
    if ufunc is np.exp:
        return _exponents(spread)
    if ufunc is np.hypot:
        short, long = np.exp2(3.0 * spread), np.exp2(60.0 * (spread[::-1] ** 2))
        left = np.array([1e200, 1e-200, 0.0, np.inf, 1.0]), np.array([1e201, 1e-201, -0.0, np.nan, 2.0])
        first, second = [short, long, np.array(FIRST_SIDES, float)], [short[::-1], short, np.array(SECOND_SIDES, float)]
        return (np.concatenate(first), np.concatenate(second)), left
    listed = UNIT * np.array(DISTANCES + POWER_DISTANCES), 64.0 * UNIT * np.array(FAR_DISTANCES)
    distances = np.concatenate([spread, 50.0 * spread, np.exp2(38.0 * spread - 30.0), *listed, FEW_DISTANCES])
    left = np.array([600.0, 0.0, 1000.0, np.inf, -np.inf, np.nan]), np.array([0.0, 950.0, 0.0, np.inf, 0.0, 0.0])
    return (np.zeros_like(distances), -distances), left  # beside zero nothing hides the last digits


def _exponents(spread: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The same for exponentials."""
    # Beside sixteenths of log(2) a rounded multiple is another one.
    sixteenths = np.arange(-16300.0, 16300.0, 211.0) * 0.043321698784996574
    beside = sixteenths, np.nextafter(sixteenths, 1e9), np.nextafter(sixteenths, -1e9)
    exponents = 1414.0 * spread - 707.0, 2.0 * spread - 1.0, -np.exp2(69.0 * spread - 60.0), UNIT * np.array(EXPONENTS)
    sizes = np.array([0.0, 708.2, 709.5, 709.9, 720.0, 745.5, 746.5, 800.0, 1e300, np.inf, np.nan])
    return (np.concatenate([*exponents, *beside, [-707.6, 707.6]]),), (np.concatenate([sizes, -sizes]),)
