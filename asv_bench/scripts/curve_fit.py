"""A damped oscillation fitted to 300 measurements, by Levenberg and Marquardt's method."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = 0.38542063
SETTINGS = {"p0": [1.0, 0.3, 1.8, 0.0, 0.0]}
TIMES = np.linspace(0.0, 10.0, 300)


def oscillation(t, a, decay, frequency, phase, offset, np=np):
    return a * np.exp(-decay * t) * np.cos(frequency * t + phase) + offset


MEASURED = oscillation(TIMES, 2.0, 0.2, 2.0, 0.4, 0.5) + 0.05 * np.random.default_rng(0).standard_normal(len(TIMES))


def misfit(found):
    return 0.5 * ((oscillation(TIMES, *found) - MEASURED) ** 2).sum()


def tapegrad():
    import tapegrad as tg

    found, _ = tg.optimize.curve_fit(oscillation, TIMES, MEASURED, **SETTINGS)
    return misfit(found)


def scipy():
    from scipy.optimize import curve_fit

    found, _ = curve_fit(oscillation, TIMES, MEASURED, **SETTINGS)
    return misfit(found)


def autograd():
    import autograd.numpy as anp
    from autograd import jacobian
    from scipy.optimize import curve_fit

    slopes = jacobian(lambda p: oscillation(TIMES, *p, np=anp))
    found, _ = curve_fit(oscillation, TIMES, MEASURED, jac=lambda t, *p: slopes(np.array(p)), **SETTINGS)
    return misfit(found)


def jax():
    import jax
    import jax.numpy as jnp
    from scipy.optimize import curve_fit

    jax.config.update("jax_enable_x64", True)
    slopes = jax.jit(jax.jacfwd(lambda p: oscillation(TIMES, *p, np=jnp)))
    found, _ = curve_fit(oscillation, TIMES, MEASURED, jac=lambda t, *p: slopes(np.array(p)), **SETTINGS)
    return misfit(found)


def torch():
    import torch
    from scipy.optimize import curve_fit

    t = torch.tensor(TIMES)
    slopes = torch.func.jacfwd(lambda p: oscillation(t, *p, np=torch))
    found, _ = curve_fit(
        oscillation, TIMES, MEASURED, jac=lambda t, *p: slopes(torch.tensor(p, dtype=torch.float64)).numpy(), **SETTINGS
    )
    return misfit(found)


def casadi():
    import casadi as ca
    from scipy.optimize import curve_fit

    p = ca.MX.sym("p", 5)
    curve = oscillation(ca.DM(TIMES), *ca.vertsplit(p), np=ca)
    slopes = ca.Function("slopes", [p], [ca.jacobian(curve, p)])
    found, _ = curve_fit(oscillation, TIMES, MEASURED, jac=lambda t, *p: slopes(p).full(), **SETTINGS)
    return misfit(found)


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
