"""Numbers that have a name, and what is known of dtypes."""

import math

import numpy as np

__all__ = ["e", "finfo", "iinfo", "inf", "nan", "newaxis", "pi"]

e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
newaxis = None
finfo, iinfo = np.finfo, np.iinfo
