"""Small functions as scripts have them: likelihoods, filters, forces, transforms, layers, test functions of optimisation.

Each takes the namespace that it is to be written with, and a point.
"""

from __future__ import annotations

from typing import Any

import numpy
import scipy.special as sc

__all__ = ["OF_PROBABILITIES", "OF_VECTORS"]

POINTS = numpy.random.default_rng(3).normal(size=(20, 3))
LABELS = (POINTS @ [1.0, -2.0, 0.5] > 0).astype(float)
CLASSES = numpy.random.default_rng(4).integers(0, 3, 20)
TIMES = numpy.linspace(0.1, 3, 9)
SEEN = numpy.exp(-TIMES) + 0.1 * numpy.cos(9 * TIMES)


def logistic_nll(np: Any, x: Any) -> Any:
    z = POINTS @ x[:3]
    return -np.mean(LABELS * z - np.logaddexp(0, z)) + 0.1 * np.sum(x[3:] ** 2)


def softmax_ce(np: Any, x: Any) -> Any:
    W = np.vstack([x.reshape(2, 3), np.zeros((1, 3))]).T
    z = POINTS @ W
    z = z - z.max(axis=1, keepdims=True)
    return -(z[np.arange(20), CLASSES] - np.log(np.exp(z).sum(axis=1))).mean()


def gmm(np: Any, x: Any) -> Any:
    mu = x[:3]
    s = np.exp(x[3:])
    d = numpy.linspace(-2, 2, 7)
    comp = -0.5 * ((d[:, None] - mu) / s) ** 2 - np.log(s) - 0.5 * np.log(2 * np.pi)
    m = comp.max(1)
    return (m + np.log(np.exp(comp - m[:, None]).sum(1))).sum()


def negbin(np: Any, x: Any) -> Any:
    mu, a = (np.exp(POINTS @ x[:3]), np.exp(x[3]))
    return -(
        sc.gammaln(CLASSES + a)
        - sc.gammaln(a)
        - sc.gammaln(CLASSES + 1)
        + a * np.log(a / (a + mu))
        + CLASSES * np.log(mu / (a + mu))
    ).sum()


def mvn_chol(np: Any, x: Any) -> Any:
    A = x.reshape(2, 3)
    C = A.T @ A + np.eye(3)
    L = np.linalg.cholesky(C)
    z = np.linalg.solve(L, POINTS.T)
    return 0.5 * (z**2).sum() + 20 * np.log(np.diagonal(L)).sum()


def garch(np: Any, x: Any) -> Any:
    r = numpy.sin(numpy.arange(8.0))
    w, a, b = (np.exp(x[0]), sc.expit(x[1]), sc.expit(x[3]))
    s2, ll = (np.var(r), 0.0)
    for k in range(8):
        ll = ll - 0.5 * (np.log(s2) + r[k] ** 2 / s2)
        s2 = w + a * r[k] ** 2 + b * s2
    return ll


def kalman(np: Any, x: Any) -> Any:
    q, r = (np.exp(x[0]), np.exp(x[1]))
    m, p, ll = (0.0, 1.0, 0.0)
    for z in SEEN:
        p = p + q
        k = p / (p + r)
        ll += -0.5 * np.log(2 * np.pi * (p + r)) - 0.5 * (z - m) ** 2 / (p + r)
        m = m + k * (z - m)
        p = (1 - k) * p
    return ll


def hmm_forward(np: Any, x: Any) -> Any:
    A = np.exp(x[:4].reshape(2, 2))
    A = A / A.sum(1, keepdims=True)
    a = np.array([0.5, 0.5])
    ll = 0.0
    for z in SEEN:
        a = a @ A * np.exp(-0.5 * (z - x[4:]) ** 2)
        c = a.sum()
        a = a / c
        ll = ll + np.log(c)
    return ll


def kde(np: Any, x: Any) -> Any:
    return np.log(np.exp(-0.5 * np.square(x[:, None] - numpy.linspace(-2, 2, 5)[None, :])).mean(axis=0)).sum()


def ks(np: Any, x: Any) -> Any:
    return np.max(np.abs(np.sort(sc.ndtr(x)) - np.arange(1, 7) / 6))


def spearman(np: Any, x: Any) -> Any:
    return np.corrcoef(x, x[::-1] ** 2)[0, 1] + np.argsort(np.argsort(x)) @ x


def lj(np: Any, x: Any) -> Any:
    q = x.reshape(3, 2) * 2
    d = q[:, None] - q[None]
    r2 = (d**2).sum(-1)[np.triu_indices(3, 1)]
    return np.sum(1 / r2**6 - 1 / r2**3)


def nbody(np: Any, x: Any) -> Any:
    q = x.reshape(3, 2)
    e = 0.0
    for i in range(3):
        for j in range(i):
            e -= 1 / np.sqrt(np.sum((q[i] - q[j]) ** 2) + 0.01)
    return e


def leapfrog(np: Any, x: Any) -> Any:
    q, p = (x[:3].copy(), x[3:].copy())
    for _ in range(5):
        p -= 0.05 * np.sin(q)
        q += 0.1 * p
        p -= 0.05 * np.sin(q)
    return 0.5 * p @ p - np.cos(q).sum()


def heat(np: Any, x: Any) -> Any:
    u = x.copy()
    for _ in range(6):
        u[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u @ u


def lowpass(np: Any, x: Any) -> Any:
    X = np.fft.rfft(x)
    X = X * (np.arange(4) < 2)
    return np.fft.irfft(X, 6)


def poisson_fft(np: Any, x: Any) -> Any:
    k = np.fft.fftfreq(6) * 2 * np.pi
    k2 = k**2
    k2[0] = 1.0
    return np.fft.ifft(np.fft.fft(x) / k2).real


def autocorr(np: Any, x: Any) -> Any:
    f = np.fft.fft(x, 12)
    return np.fft.ifft(f * np.conj(f)).real[:6]


def hilbert(np: Any, x: Any) -> Any:
    h = np.zeros(6)
    h[0] = h[3] = 1
    h[1:3] = 2
    return np.abs(np.fft.ifft(np.fft.fft(x) * h))


def rotation(np: Any, x: Any) -> Any:
    a, b, c = (np.sin(x[0]), np.cos(x[0]), x[1])
    R = np.stack([np.stack([b, -a]), np.stack([a, b])])
    return R @ x[2:4] * c


def rodrigues(np: Any, x: Any) -> Any:
    w = x[:3]
    th = np.linalg.norm(w)
    k = w / th
    v = x[3:]
    return v * np.cos(th) + np.cross(k, v) * np.sin(th) + k * np.dot(k, v) * (1 - np.cos(th))


def quaternion(np: Any, x: Any) -> Any:
    q = x[:4] / np.linalg.norm(x[:4])
    w, v = (q[0], q[1:])
    p = np.concatenate([x[4:], x[:1]])
    return p + 2 * w * np.cross(v, p) + 2 * np.cross(v, np.cross(v, p))


def project(np: Any, x: Any) -> Any:
    X = POINTS[:5] + x[:3]
    return (X[:, :2] / (X[:, 2:] + 9) * x[3]).ravel()


def arm(np: Any, x: Any) -> Any:
    a = np.cumsum(x)
    return np.sum(np.cos(a)) ** 2 + np.sum(np.sin(a)) ** 2


def transfer(np: Any, x: Any) -> Any:
    M = np.eye(2)
    for k in range(0, 6, 2):
        M = M @ (np.eye(2) * np.cos(x[k]) + np.sin(x[k + 1]) * np.array([[0.0, 1], [-1, 0]]))
    return M.trace()


def lowrank(np: Any, x: Any) -> Any:
    U, s, Vt = np.linalg.svd(x.reshape(2, 3), full_matrices=False)
    return U * np.array([1.0, 0.0]) * s @ Vt


def eigproj(np: Any, x: Any) -> Any:
    A = x.reshape(2, 3)
    w, Q = np.linalg.eigh(A @ A.T)
    return Q * np.sqrt(w) @ Q.T


def mlp(np: Any, x: Any) -> Any:
    W1, b = (x[:3][:, None] * np.ones((3, 4)), x[3])
    h = np.tanh(POINTS @ W1 + b)
    return np.mean((h.sum(-1) * x[4] - LABELS) ** 2)


def attention(np: Any, x: Any) -> Any:
    q = x.reshape(3, 2)
    s = q @ q.T / np.sqrt(2)
    a = np.exp(s - s.max(-1, keepdims=True))
    a /= a.sum(-1, keepdims=True)
    return (a @ q).ravel()


def layernorm(np: Any, x: Any) -> Any:
    X = x.reshape(2, 3)
    return ((X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-05) * np.arange(3)).sum(1)


def dropout(np: Any, x: Any) -> Any:
    rng = np.random.default_rng(0)
    m = rng.random(6) > 0.3
    return (x * m / 0.7).sum()


def reparam(np: Any, x: Any) -> Any:
    e = numpy.random.RandomState(0).randn(10)
    return np.mean(np.exp(x[0] + np.exp(x[1]) * e * 0.3))


def mc_option(np: Any, x: Any) -> Any:
    rng = numpy.random.default_rng(1)
    S = 100 * np.exp(0.05 - 0.5 * x[0] ** 2 + x[0] * rng.standard_normal(30))
    return np.exp(-0.05) * np.maximum(S - 100 * np.exp(x[3] * 0.1), 0).mean()


def topk(np: Any, x: Any) -> Any:
    return x[np.argpartition(x, -3)[-3:]].sum() + x[np.argsort(x)[:2]] @ np.array([1.0, 2])


def rbfgp(np: Any, x: Any) -> Any:
    X = POINTS[:6, :2]
    K = np.exp(x[0]) * np.exp(-0.5 * ((X[:, None] - X[None]) ** 2 @ np.exp(-x[1:3]))) + 0.1 * np.eye(6)
    L = np.linalg.cholesky(K)
    a = np.linalg.solve(L.T, np.linalg.solve(L, LABELS[:6]))
    return 0.5 * LABELS[:6] @ a + np.log(np.diag(L)).sum()


def sinkhorn(np: Any, x: Any) -> Any:
    K = np.exp(-np.abs(np.subtract.outer(x, x)))
    u = np.ones(6) / 6
    for _ in range(5):
        v = 1 / (K.T @ u) / 6
        u = 1 / (K @ v) / 6
    return np.sum(u[:, None] * K * v * np.abs(np.subtract.outer(x, x[::-1])))


def portfolio(np: Any, x: Any) -> Any:
    w = np.exp(x) / np.exp(x).sum()
    C = np.cov(numpy.random.default_rng(2).normal(size=(6, 30)))
    return w @ np.arange(6) / np.sqrt(w @ C @ w)


def rosen(np: Any, x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


def auglag(np: Any, x: Any) -> Any:
    c = np.stack([x[0] + x[1] - 1, x[2] * x[3]])
    lam = np.array([0.3, 0.1])
    return x @ x + lam @ c + 5 * np.square(c).sum()


def fancy_assign(np: Any, x: Any) -> Any:
    M = np.zeros_like(np.outer(x, x))
    M[[0, 1, 2], [3, 4, 5]] = x[:3]
    M[-1] += x
    M[:, 0] -= x[0]
    return M.sum(0)


def neg_step(np: Any, x: Any) -> Any:
    r = np.empty_like(x)
    r[::-2] = x[:3]
    r[::2] = x[3:] * r[5]
    return r


def ellips(np: Any, x: Any) -> Any:
    return x.reshape(1, 2, 3)[..., ::-1, :][0, :, [2, 0]]


def nanstuff(np: Any, x: Any) -> Any:
    y = x.copy()
    y[2] = np.nan
    return np.nansum(y) + np.nanmean(y) * 2 + np.nanstd(y)


def cplx(np: Any, x: Any) -> Any:
    z = x[:3] + 1j * x[3:]
    return np.abs(z) + np.angle(z) + (z * z.conj()).real + np.exp(z).imag


def gamma_cdf(np: Any, x: Any) -> Any:
    return sc.gammainc(2.5, TIMES * x[0]).sum() + np.log(sc.gammaincc(1.5, x)).sum()


def binom_cdf(np: Any, x: Any) -> Any:
    return sc.betainc(3.0, 4.0, x).sum()


def trunc_norm(np: Any, x: Any) -> Any:
    a = (0 - x[0]) / x[1]
    b = (1 - x[0]) / x[1]
    return np.log(sc.ndtr(b) - sc.ndtr(a)) + sc.log_ndtr(a) + sc.ndtri(x[2])


def copula(np: Any, x: Any) -> Any:
    z = sc.ndtri(x)
    return z @ z[::-1] / 6


def voigt_like(np: Any, x: Any) -> Any:
    return sc.erfcx(x).sum() + sc.erf(x).prod() + sc.erfc(x)[2] + sc.erfinv(x)[1]


def besselish(np: Any, x: Any) -> Any:
    return (sc.i0e(x) * sc.i1(x) + sc.j0(x) - sc.j1(x)).sum() + np.log(sc.i0(x[0] * 3))


def vonmises(np: Any, x: Any) -> Any:
    return np.sum(x[0] * np.cos(TIMES - x[1]) - np.log(2 * np.pi * sc.i0(x[0])))


OF_VECTORS = [
    logistic_nll,
    softmax_ce,
    gmm,
    negbin,
    mvn_chol,
    garch,
    kalman,
    hmm_forward,
    kde,
    ks,
    spearman,
    lj,
    nbody,
    leapfrog,
    heat,
    lowpass,
    poisson_fft,
    autocorr,
    hilbert,
    rotation,
    rodrigues,
    quaternion,
    project,
    arm,
    transfer,
    lowrank,
    eigproj,
    mlp,
    attention,
    layernorm,
    dropout,
    reparam,
    mc_option,
    topk,
    rbfgp,
    sinkhorn,
    portfolio,
    rosen,
    auglag,
    fancy_assign,
    neg_step,
    ellips,
    nanstuff,
    cplx,
]
OF_PROBABILITIES = [gamma_cdf, binom_cdf, trunc_norm, copula, voigt_like, besselish, vonmises]
