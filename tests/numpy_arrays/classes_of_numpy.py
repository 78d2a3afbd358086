"""Lines that choose by the class of a value, of a vector `v` and an array without dimensions `n`; and writes into arrays without
dimensions, which are told apart from numbers by their class, with the result `y`."""

from __future__ import annotations

from lines_of_numpy import _split

__all__ = ["QUESTIONS", "WRITES_OF_NUMBERS"]

_V = """
(x if isinstance(x, np.ndarray) else np.array([0.0])).sum() | x * isinstance(x, (list, np.ndarray)) | x * isinstance(x, list)
x * (x.__class__ is np.ndarray) | x * issubclass(x.__class__, np.ndarray) | x * isinstance(x[1:], np.ndarray)
x * isinstance(x + 1, np.ndarray) | x * isinstance(np.sin(x), np.ndarray) | x * isinstance(x > 0, np.ndarray)
x * isinstance(x.T, np.ndarray) | x * isinstance(x.astype(int), np.ndarray) | x * isinstance(np.zeros_like(x), np.ndarray)
x * isinstance(np.nonzero(x)[0], np.ndarray) | x * isinstance(np.concatenate([x, x]), np.ndarray) | x * isinstance(x, float)
x * isinstance(x[0], float) | x * isinstance(x[0], (int, float)) | x * isinstance(x[0], (np.floating, np.integer))
x * isinstance(x[0], np.float64) | x * isinstance(x[0], np.generic) | x * isinstance(x[0], np.number)
x + isinstance(x[0], np.ndarray) | x * isinstance(x[0], numbers.Number) | x * isinstance(x[0], numbers.Real)
x * isinstance(x, numbers.Number) | x * np.isscalar(x[0]) | x + np.isscalar(x) | x * isinstance(x[0], int)
x * isinstance(x.sum(), float) | x * isinstance(x.max(), np.floating) | x * isinstance(np.mean(x), float)
x * isinstance(np.dot(x, x), float) | x * isinstance(x @ x, float) | x * isinstance(np.linalg.norm(x), np.floating)
x * isinstance(x[0] * 2, float) | x * isinstance(2 / x[0], float) | x * isinstance(np.exp(x[0]), float)
x * isinstance(abs(x[0]), float) | x * isinstance(sum(x), float) | x * isinstance(max(x), float)
x * isinstance(x[0] > 0, np.bool_) | x * isinstance(x[0] > 0, bool) | x * isinstance(x.argmax(), np.integer)
x * isinstance(x.argmax(), int) | x * isinstance(x.astype(np.float32)[0], np.float32)
x * isinstance(x.astype(np.float32)[0], float) | x * isinstance(x.astype(int)[0], np.int64) | x * isinstance(round(x[0]), int)
x * isinstance(next(iter(x)), float) | x * isinstance(x.flat[0], float) | x * isinstance(x.flat, np.flatiter)
x * isinstance(x[..., 0], np.ndarray) | x * isinstance(x[0][...], np.ndarray) | x * isinstance(x[0][()], np.ndarray)
x * isinstance(np.squeeze(x[:1]), np.ndarray) | x * isinstance(np.squeeze(x[0]), np.ndarray)
x * isinstance(x[:1].reshape(()), np.ndarray) | x * isinstance(np.where(True, x[0], x[1]), np.ndarray)
x * isinstance(np.zeros_like(x[0]), np.ndarray) | x * isinstance(np.copy(x[0]), np.ndarray)
x * isinstance(x[0].copy(), np.ndarray) | x * isinstance(np.roll(x[0], 1), np.ndarray)
x * isinstance(np.full_like(x[0], 2.0), np.ndarray) | x * isinstance(np.broadcast_to(x[0], ()), np.ndarray)
x * isinstance(np.select([True], [x[0]]), np.ndarray) | x * isinstance(np.piecewise(x[0], [True], [1.0]), np.ndarray)
x * isinstance(np.tensordot(x, x, 1), np.ndarray) | x * isinstance(np.zeros_like(x[0]) + x[0], np.ndarray)
x * isinstance(np.copy(x[0]).copy(), np.ndarray) | x * isinstance(np.copy(x[0]).T, np.ndarray)
x * isinstance(+np.copy(x[0]), np.ndarray) | x * isinstance(np.copy(x[0])[()], np.ndarray)
x * isinstance(np.copy(x[0])[...], np.ndarray) | x * isinstance(x + 1j, np.ndarray) | x * isinstance((x + 1j)[0], complex)
x * isinstance((x + 1j)[0], np.complex128) | x * isinstance(np.fft.fft(x), np.ndarray)
x * isinstance(np.abs(np.fft.fft(x))[0], float) | x * isinstance(np.copy(x[0] + 1j), np.ndarray)
x * isinstance((x[0] + 1j).copy(), complex) | x * hasattr(x, "__len__") | x + hasattr(x[0], "__len__")
x * hasattr(np.copy(x[0]), "__len__") | x * hasattr(x, "__array__") | x * np.iterable(x) | x + np.iterable(x[0])
[x * 2 if isinstance(p, np.ndarray) else x for p in (x, [1.0])][0] | x * {np.ndarray: 2.0, float: 3.0}[x.__class__]
x * {np.ndarray: 2.0, np.float64: 3.0}[x[0].__class__]
"""
_N = """
x * isinstance(x, np.ndarray) | x * isinstance(x, float) | x * isinstance(x * 2, float) | x + isinstance(x * 2, np.ndarray)
x * isinstance(x.copy(), np.ndarray) | x * isinstance(x[()], float) | x * isinstance(x.reshape(()), np.ndarray)
x * isinstance(np.squeeze(x), np.ndarray) | x * isinstance(x.sum(), float) | x * hasattr(x, "__len__")
x * isinstance(x.T, np.ndarray) | x * isinstance(x.astype(float), np.ndarray) | x + np.isscalar(x) | x * np.isscalar(x[()])
x * isinstance(np.conj(x), float) | x * isinstance(x.imag, np.ndarray) | x * isinstance(x.view(), np.ndarray)
x * isinstance(np.transpose(x), np.ndarray)
"""
QUESTIONS: list[tuple[str, str]] = [*(("v", line) for line in _split(_V)), *(("n", line) for line in _split(_N))]

WRITES_OF_NUMBERS: list[str] = [
    text.replace("\\n", "\n")
    for text in _split(r"""
q = r = np.zeros_like(x[0]); q += x[1]; y = q * r | q = r = np.where(True, x[0], 0.0); q += x[1]; y = q * r
q = r = np.copy(x[0]); q *= 2; y = q * r | q = np.copy(x[0]); v = q.reshape(1); v[0] = 7 * x[1]; y = q + x[0]
q = np.zeros_like(x[0]); v = q[...]; v[...] = x[1]; y = q * 1 | q = np.copy(x[0]); v = q.T; v[()] = 3 * x[1]; y = q + v
q = r = np.roll(x[0], 1); q -= x[1]; y = r + 1 | q = r = np.copy(x[0]); np.multiply(q, x[1], out=q); y = r + 0
q = r = np.tensordot(x, x, 1); q /= 2; y = r + 0 | q = r = np.full_like(x[0], 2.0); q **= 2; y = r * x[1]
q = np.full_like(x[0], 2.0); p = q.copy(); p += x[1]; y = p * q | q = np.zeros_like(x[0]); q.fill(x[1]); y = q * q
q = r = np.zeros_like(x[0]); np.copyto(q, x[1]); y = r + q | q = r = np.copy(x[0]); q += q; y = r + 0
q = np.copy(x[0]); b = q * x[1]; q += 1; y = b * q | q = r = x[0]; q += x[1]; y = q * r | q = r = x.sum(); q *= 2; y = q * r
q = r = np.copy(x[0])[()]; q += 1; y = q * r | q = r = x[0].copy(); q += 1; y = q * r | q = r = +np.copy(x[0]); q += 1; y = q * r
q = r = np.copy(x[0] + 1j); q += x[1]; y = np.abs(r) | q = r = x[0] + 1j; q *= 2; y = np.abs(r) + np.abs(q)
q = r = np.select([True], [x[0]]); q += 1; y = q * r | q = r = np.broadcast_to(x[0], ()).copy(); q += 1; y = q * r
s = np.zeros_like(x[0])\nfor v in x: s += v * v\ny = s + 0 | s = t = np.zeros_like(x[0])\nfor v in x: s += v\ny = t + 0
""")
]
