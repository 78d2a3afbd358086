"""More lines of NumPy, as people write them: statistics, densities, selections, `einsum`, polynomials, strides, loops and writes.

All are of a vector `x`; of the statements the result is `y`.
"""

from __future__ import annotations

__all__ = ["IDIOMS", "STATEMENTS"]


def _split(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


IDIOMS: list[str] = _split("""
np.quantile(x, 0.35, method="hazen") | np.percentile(x, [10, 95], method="median_unbiased")
np.quantile(x, [0.05, 0.6], method="weibull") | np.quantile(x, 0.35, method="normal_unbiased")
np.quantile(x, [0.1, 1.0], method="interpolated_inverted_cdf")
np.meshgrid(x, x[:2], sparse=True)[1] | np.meshgrid(x, x[:2], sparse=True, indexing="ij")[0]
(x - x.mean()) / x.std(ddof=1) | x / np.abs(x).max() | (x - x.min()) / np.ptp(x) | np.cumsum(x) / np.arange(1, 7)
np.log1p(np.abs(x)).mean() | np.convolve(x, np.ones(3) / 3, mode="valid") | np.diff(np.log(np.abs(x)))
x[np.abs(x) < np.percentile(np.abs(x), 80)] | np.maximum.accumulate(np.cumsum(x)) - np.cumsum(x)
np.where(np.isnan(x), 0.0, x) | np.nan_to_num(x / np.array([1, 0, 1, 1, 1, 1.0]), posinf=0, neginf=0)
np.bincount(np.array([0, 1, 2, 0, 1, 2]), weights=x, minlength=4) | np.add.reduceat(x, [0, 2, 4]) / 2
np.array_split(x, 3)[1].mean() | np.stack(np.split(x, 3)).mean(0) | np.digitize(x, np.linspace(-2, 3, 5)) + x
np.searchsorted(np.sort(x), 0.5) + x | x[np.argsort(np.abs(x))[::-1]] | np.take_along_axis(x, np.argsort(-x), axis=0)
np.sort(x)[::-1].cumsum() | np.corrcoef(x[:-1], x[1:])[0, 1] | np.cov(np.stack([x, x**2]))[0, 1]
np.average(x, weights=np.exp(x)) | (np.exp(x) / np.exp(x).sum()) @ x | np.exp(x - np.logaddexp.reduce(x))
-0.5 * x**2 - 0.5 * np.log(2 * np.pi) | np.sum(-0.5 * ((x - x.mean()) / x.std()) ** 2 - np.log(x.std()))
sc.xlogy(2.0, np.abs(x)) - x - sc.gammaln(3.0) | sc.gammaln(np.abs(x) + 1) - sc.gammaln(np.abs(x))
sc.xlog1py(2.0, np.abs(x)) + sc.betaln(np.abs(x), 2.0) | sc.log_ndtr(x).sum() | np.log(sc.ndtr(x[1]) - sc.ndtr(x[1] - 1))
sc.gammaincc(2.0, np.abs(x)) | sc.betainc(2.0, 3.0, sc.expit(x)) | sc.entr(sc.expit(x)).sum() | np.log(np.cosh(x))
np.logaddexp(0, x) | np.logaddexp(0, -x) | np.log(1 + np.exp(x)) | -np.log1p(np.exp(-x)) | x * sc.expit(x)
np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))) | np.where(np.abs(x) < 1, 0.5 * x**2, np.abs(x) - 0.5)
np.piecewise(x, [np.abs(x) < 1], [lambda t: t**2 / 2, lambda t: np.abs(t) - 0.5])
np.select([x < -1, x < 0, x < 1], [x**2, x, np.sin(x)], default=0) | np.select([x < 0], [x])
np.choose([0, 1, 0, 1, 0, 1], [x, -x]) | np.choose((x > 0).astype(int), (0.0, x))
np.apply_along_axis(lambda r: np.cumsum(r), 0, x) | np.apply_along_axis(np.sum, 0, x)
np.einsum("i,j,k->ijk", x[:2], x[2:4], x[4:]) | np.einsum("i->", x) | np.einsum("i,i,i->i", x, x, x)
np.einsum("i,j->j", x, x) | np.einsum("i...,i...->...", x, x) | np.einsum("ii->i", np.outer(x, x))
np.einsum("ij,j->i", np.outer(x, x), x) | np.einsum("ij,ij->", np.outer(x, x), np.ones((6, 6)))
np.einsum("ij,jk,kl->il", x.reshape(2, 3), x.reshape(3, 2), np.eye(2), optimize="greedy")
np.einsum(x.reshape(2, 3), [0, 1], x.reshape(3, 2), [1, 2], [0, 2]) | x.reshape(2, 3)[:, ::-1] | x.reshape(2, 3)[::-1, ::2]
x.reshape(2, 3)[..., -1] | x.reshape(2, 3)[[1, 0], [0, 2]] | x.reshape(2, 3)[[1, 0]][:, [2, 0]]
x.reshape(2, 3)[np.ix_([1, 0], [2, 0])] | x.reshape(2, 3)[:, None, :] * x.reshape(2, 3)[None]
x.reshape(2, 3)[np.array([True, False])] | x.reshape(2, 3)[:, np.array([True, False, True])]
x.reshape(2, 3)[x.reshape(2, 3) > 0] | x.reshape(3, 2)[1:, 0] | x.reshape(3, 2)[-1, -1] | x.reshape(3, 2)[:, -1:]
x.reshape(1, 2, 3)[0, ..., 1:] | x[np.newaxis, :, np.newaxis] | x[slice(None, None, -2)] | x[np.r_[0:2, 4:6]]
x[[[0, 1], [2, 3]]] | x[np.array([[0, -1], [2, 3]])] | x[np.array([], dtype=int)].sum() + x | x[2:2].sum() + x | x[-3:-1]
x[5:0:-2] | x[np.s_[::3]] | x[tuple([slice(1, 3)])] | x[(x > 0) & (x < 2)] | x[~np.isin(np.arange(6), [1, 2])]
np.add(x, x, out=np.zeros_like(x)) | np.sqrt(x, out=np.zeros_like(x), where=x > 0)
np.log(x, out=np.full_like(x, -1.0), where=x > 0) | np.divide(1.0, x, out=np.zeros_like(x), where=x != 0)
np.sum(x, where=x > 0) | np.mean(x, where=[True, False] * 3) | np.prod(x, where=np.abs(x) > 1)
np.max(x, initial=-np.inf, where=x < 2) | np.cumsum(x, out=np.zeros_like(x)) | np.clip(x, -1, 1, out=np.empty_like(x))
np.take(x, [0, 3], out=np.zeros_like(x[:2])) | np.stack([x, x], out=np.zeros_like(np.stack([x, x])))
np.concatenate([x, x], out=np.zeros_like(np.tile(x, 2))) | np.matmul(x, x)
np.matmul(x.reshape(2, 3), x.reshape(3, 2), out=np.zeros_like(np.ones((2, 2)) * x[0]))
np.maximum(x, 0, out=np.zeros_like(x)) | np.lib.stride_tricks.sliding_window_view(x, 3).mean(-1)
np.lib.stride_tricks.sliding_window_view(x, 2)[::2].sum(1) | x * 1 | np.meshgrid(x, x)[0] * 2
np.meshgrid(x, [1.0, 2.0], indexing="ij")[0] | np.add.outer(x, x).trace() | np.subtract.outer(x, x) ** 2
np.hypot.outer(x[:2], x[2:4]) | np.exp(-0.5 * np.subtract.outer(x, x) ** 2).sum()
np.exp(-np.sum((x[:, None] - x[None, :]) ** 2)) | np.triu(np.outer(x, x), 1).sum() | np.tril(np.ones((6, 6))) @ x
np.eye(6) * x | np.diag(x) @ x | np.diagonal(np.outer(x, x)) | np.polynomial.polynomial.polyval(x, [1.0, 2.0, 3.0])
np.polynomial.chebyshev.chebval(x, [1.0, 2.0, 3.0]) | np.polynomial.legendre.legval(x, [1.0, 0.5, 0.2])
np.polynomial.hermite.hermval(x, [1.0, 0.5, 0.2]) | np.polynomial.laguerre.lagval(x, [1.0, 0.5]) | np.poly1d([1.0, 2.0])(x)
np.broadcast_to(x, (3, 6)).sum(0) | np.broadcast_to(x[:, None], (6, 2)).mean() | np.broadcast_arrays(x, x[0])[1]
np.broadcast_to(x[0], (3,)) | np.trapezoid(x, np.linspace(0, 1, 6)) | np.trapezoid(np.sin(x), x)
np.interp(0.3, np.linspace(0, 1, 6), x) | np.interp(np.clip(x, 0, 1), [0.0, 0.5, 1.0], [0.0, 1.0, 0.0])
np.interp(x, np.arange(6.0) - 2, np.arange(6.0) ** 2, left=-1, right=5) | np.cross(x[:3], [1.0, 2.0, 3.0])
np.linalg.norm(x[:3] - x[3:]) | np.linalg.norm(np.outer(x, x), "fro") | np.linalg.norm(x, -np.inf) | np.linalg.norm(x, 0) + x
np.linalg.norm(x.reshape(2, 3), axis=0) | np.linalg.norm(x.reshape(2, 3), np.inf)
np.linalg.slogdet(np.outer(x[:2], x[:2]) + np.eye(2))[1] | np.linalg.det(x[:4].reshape(2, 2))
np.linalg.solve(np.eye(6) + np.outer(x, x), x) | np.linalg.inv(np.diag(np.exp(x)))[0]
np.linalg.cholesky(np.eye(3) + np.outer(x[:3], x[:3]))[2] | np.linalg.eigvalsh(np.outer(x, x) + np.diag(np.arange(6.0)))
np.linalg.multi_dot([x.reshape(2, 3), x.reshape(3, 2), x[:2]]) | np.trace(np.outer(x, x)) | np.kron(x[:2], x[2:4])
np.vdot(x, x[::-1]) | np.inner(x, x[::-1]) | np.tensordot(x, x, 0) | np.tensordot(x.reshape(2, 3), x.reshape(3, 2), axes=1)
np.roll(x, -1) - x | np.roll(x, 1) + np.roll(x, -1) - 2 * x | np.pad(x, 1, mode="symmetric")
np.pad(x, (0, 2), constant_values=1.0) | np.repeat(x, [1, 0, 2, 0, 1, 1]) | np.tile(x[:2], 3) | np.rot90(x.reshape(2, 3))
np.flip(x.reshape(2, 3), 1) | np.fliplr(x.reshape(2, 3)) | np.block([[x[:3]], [x[3:]]]) | np.block([x[:2], x[2:4]])
np.atleast_2d(x).T | np.expand_dims(x, (0, 2)) | np.squeeze(x[None, :, None]) | np.squeeze(x[None], axis=0)
np.moveaxis(x.reshape(1, 2, 3), 0, -1) | np.swapaxes(x.reshape(2, 3), 0, 1) | np.ravel(x.reshape(2, 3), order="F")
x.reshape(2, 3).ravel(order="K") | x.reshape(3, -1).T.ravel() | x.reshape(2, 3).T.reshape(-1) | x.reshape(2, 3).flatten("F")
np.unstack(x.reshape(2, 3), axis=1)[2] | np.hsplit(x.reshape(1, 6), 2)[0] | x.reshape(2, 3).swapaxes(0, 1)[1]
x.reshape(2, 3).diagonal() | x.reshape(2, 3).trace() | x.reshape(2, 3).max(axis=1, keepdims=True)
x.reshape(2, 3).argmin(0) * x[:3] | x.reshape(2, 3).std(axis=0, ddof=1) | x.reshape(2, 3).var(axis=1, keepdims=True)
x.reshape(2, 3).prod(axis=0) | x.reshape(2, 3).cumsum(axis=0) | x.reshape(2, 3).sum(axis=(0, 1), keepdims=True)
x.reshape(2, 3).mean(axis=-1) | x.reshape(2, 3).repeat(2, axis=1) | x.reshape(2, 3).dot(x[:3])
np.linspace(x[0], x[2], 5) | np.linspace(x[0], x[2], 5, endpoint=False) | np.linspace(x[0], x[2], 5, retstep=True)[1] * x
np.logspace(x[0], x[1], 4) | np.geomspace(abs(x[0]), abs(x[1]), 4) | np.eye(3) * x[0] | np.ones((2, 3)) * x[:3]
np.zeros(6) + x | np.diag([1.0, 2.0]) * x[0] | np.identity(3) @ x[:3] | np.tri(3) @ x[:3]
np.vander(np.arange(3.0), 3) @ x[:3] | np.apply_along_axis(np.sum, 0, x.reshape(2, 3))
np.apply_along_axis(lambda r: r * r.sum(), 1, x.reshape(2, 3)) | np.apply_over_axes(np.sum, x.reshape(2, 3), [0, 1])
np.take_along_axis(x.reshape(2, 3), np.argsort(x.reshape(2, 3), axis=1), axis=1)
np.lib.stride_tricks.sliding_window_view(x, 3).mean(axis=1) | np.nansum(np.where(x > 0, x, np.nan))
np.nanmean(np.where(x > 0, x, np.nan)) | np.nanstd(np.where(x > 0, x, np.nan)) | np.nanmedian(np.where(x > 0, x, np.nan))
np.nanvar(x, ddof=1) | np.nanpercentile(x, 30) | np.polyfit(np.arange(6.0), x, 2) | np.polyfit(np.arange(6.0), x, 1)[0]
np.polyadd(x, [1, 2]) | np.polymul(x[:3], x[3:]) | np.polydiv(x, [1.0, 2.0])[0] | np.polysub(x, 1)
np.roots([1, -3, 2])[0] * x | np.poly1d(x)(2.0) | np.linalg.slogdet(x[:4].reshape(2, 2))[1]
np.linalg.inv(x[:4].reshape(2, 2)) | np.linalg.solve(x[:4].reshape(2, 2), x[4:])
np.linalg.lstsq(x.reshape(3, 2), np.arange(3.0), rcond=None)[0] | np.linalg.pinv(x.reshape(3, 2))
np.linalg.eigvalsh(x[:4].reshape(2, 2) @ x[:4].reshape(2, 2).T)
np.abs(np.linalg.eigh(x[:4].reshape(2, 2) @ x[:4].reshape(2, 2).T)[1]) | np.linalg.svd(x.reshape(2, 3), compute_uv=False)
np.linalg.svd(x.reshape(2, 3))[1] | np.abs(np.linalg.qr(x.reshape(3, 2))[1])
np.linalg.cholesky(x.reshape(2, 3) @ x.reshape(2, 3).T) | np.linalg.matrix_power(x[:4].reshape(2, 2), 3)
np.linalg.matrix_rank(x.reshape(2, 3)) * x | np.linalg.cond(x[:4].reshape(2, 2))
np.linalg.multi_dot([x[:4].reshape(2, 2)] * 3) | np.linalg.norm(x[:4].reshape(2, 2), 2)
np.linalg.norm(x[:4].reshape(2, 2), "nuc") | np.linalg.norm(x, 0) * x | np.linalg.norm(x.reshape(2, 3), ord=1)
np.linalg.norm(x.reshape(2, 3), ord=2, axis=(0, 1)) | np.linalg.norm(x.reshape(2, 3), axis=0, keepdims=True)
np.linalg.tensorinv(x[:4].reshape(2, 2), 1) | np.linalg.tensorsolve(x[:4].reshape(2, 2), x[:2])
np.trapezoid(x, np.arange(6) ** 2) | np.trapezoid(np.arange(6), x) | np.abs(np.fft.rfft(x))
np.abs(np.fft.fft2(x.reshape(2, 3))) | np.fft.fft(x, n=4).imag | np.fft.rfft(x, norm="ortho").real
np.real(np.fft.ifftn(np.fft.fftn(x.reshape(2, 3)))) | np.fft.ihfft(x).real | np.abs(x + 1j) | np.angle(np.exp(1j * x))
(x * (1 + 2j)).imag | np.abs(x.astype(complex) ** 2) | [v for v in np.nditer(np.arange(3))][0] * x
np.vectorize(lambda v: v)(np.arange(6)) * x | np.frompyfunc(lambda v: v * 2, 1, 1)(np.arange(6)).astype(float) * x
f"{x}" and x | f"{x.mean():.3f}" and x | str(x) and repr(x) and x | x[0] in [1, 2] or x | (x == x).all() * x
(x != x).any() * x + x | (x < x[0]) & (x > -1) | np.logical_and(x > 0, x < 1) * x | np.logical_not(x > 0) * x | ~(x > 0) * x
(x > 0) ^ (x < 1) | -(x > 0).astype(int) * x | np.where((x > 0) & (x < 1), x ** 2, 0) | np.where(x > 0)[0] * x[:4]
np.argwhere(x > 0).ravel() * x[:4] | np.flatnonzero(x > 0).sum() * x | np.nonzero(x)[0] * x | np.compress(x > 0, x)
np.ix_([0, 1], [1])[0].sum() * x | np.unravel_index(x.argmax(), (2, 3))[0] * x | np.ravel_multi_index((1, 2), (2, 3)) * x
np.isin(np.arange(6), [1, 2]) * x | np.sort(x.reshape(2, 3), axis=0) | np.sort(x, kind="stable") | np.sort(x.reshape(2, 3))
np.partition(x, 3)[3] | np.max(x, initial=5.0) | np.sum(x, where=[True, False] * 3) | np.mean(x, where=x > 0)
np.sum(x.reshape(2, 3), axis=-1) | np.amax(x.reshape(2, 3), 1) | np.argmax(x) * x | np.cumsum(x.reshape(2, 3), 0)
np.cumprod(x.reshape(2, 3), 1) | np.diff(x, prepend=0) | np.diff(x.reshape(2, 3), axis=0) | np.gradient(x.reshape(2, 3))[1]
np.gradient(x, np.arange(6.0) ** 2) | np.gradient(x, edge_order=2) | np.interp(x, x.copy() * 0 + np.arange(6), np.arange(6.0))
np.interp(np.arange(3), np.arange(6), x) | np.interp([0.5, 1.5], [0, 1, 2], x[:3], left=-1)
np.convolve(x, np.ones(3) / 3, "valid") | np.correlate(x, [1, 2], "same") | np.sinh(x) / np.cosh(x)
np.arcsinh(x) + np.arctan(x) | np.log10(np.abs(x)) | np.log2(np.abs(x)) | np.spacing(x) * 0 + x | np.nextafter(x, 1.0)
np.copysign(x, -1) | np.remainder(x, 0.7) | np.fmod(x, 0.7) | np.divmod(x, 0.7)[1] | np.floor_divide(x, 0.7) * x
np.gcd(4, 6) * x | np.conj(x) | np.real(x) + np.imag(x) | np.iscomplexobj(x) * x + x | np.isrealobj(x) * x
np.may_share_memory(x, x) * x | np.shares_memory(x, x) * x | np.broadcast_shapes(x.shape, (2, 6))[0] * x
np.require(np.arange(6.0)) * x | np.nan_to_num(x / 0.0 * 0) + x | np.errstate(all="ignore").__enter__() or x / x
x.conj() @ x | x.__matmul__(x) | x.__add__(1) | x.__rsub__(1) | x.__getitem__(0) * x | np.subtract(1, x) | 2 ** x
2.5 ** x[0] | x ** (-1) | x ** 0 | x ** 0.0 | x ** np.arange(6) | np.arange(1, 7) ** x | 1 / x ** 2 | x * True | x + False
True + x | x * np.bool_(True) | x * np.array(2) | x * np.array([2]) | x * np.uint8(200) | x * np.int64(2)
x * np.float32(0.5) | np.float32(0.5) * x | np.float16(0.5) * x | x[0] * np.float32(0.5) | x[0] * np.arange(3)
np.arange(3) * x[0] | x[0] * np.float64(3) | np.float64(3) * x[0] | np.float64(3) - x[0] | np.float64(3) / x[0]
np.float64(3) ** x[0] | np.array(3.0) * x[0] | np.array(3.0) - x | np.int64(3) - x[0] | [1, 2, 3] * x[:3] | (1, 2, 3) + x[:3]
x[:3] + [[1, 2, 3], [4, 5, 6]] | np.add(range(6), x) | np.multiply([1, 2, 3], x[:3]) | np.maximum([0] * 6, x)
np.dot([1, 2, 3], x[:3]) | np.dot(x, 2) | np.dot(3.0, x) | np.matmul(x.reshape(2, 3), [1, 2, 3]) | x @ [1, 2, 3, 4, 5, 6]
np.ones((3, 6)) @ x | x @ np.ones((6, 2)) | np.vdot(x, x.reshape(2, 3)) | np.einsum("i,i", x, np.arange(6))
np.einsum("...i,i", x.reshape(2, 3), x[:3]) | np.einsum("ij,ij->i", x.reshape(2, 3), x.reshape(2, 3))
np.einsum("i,j,k", x[:2], x[:2], x[:2]) | np.einsum("bij,bjk->bik", x.reshape(1, 2, 3), x.reshape(1, 3, 2))
np.einsum("ij,jk,kl->il", x.reshape(2, 3), x.reshape(3, 2), x.reshape(2, 3), optimize=True) | np.polydiv(x, [1.0, 2.0])[1]
np.polydiv(x, x[:2])[0] | np.polydiv(x, x[:3])[1] | np.polydiv([1.0, 2.0, 3.0], x[:2])[0] | x * range(6) | range(6) + x
np.dot(range(6), x) | np.maximum(x, range(6)) | np.histogram(np.arange(6), bins=3, weights=x)[0]
np.histogram(np.arange(6) / 6, bins=[0.0, 0.3, 0.5, 1.0], weights=x)[0] | math.floor(x[2]) * x | math.ceil(x[0]) * x
""")

# ``\\n`` stands for the end of a line.
STATEMENTS: list[str] = [
    text.replace("\\n", "\n")
    for text in _split(r"""
y = np.zeros_like(x); y[1:] = np.diff(x) | y = np.zeros_like(x); y += x; y *= 2
y = np.empty_like(x); y[::2] = x[::2]; y[1::2] = 0 | y = x.copy(); y[y < 0] = 0.0 | y = x.copy(); y[y < 0] *= 0.1
y = x.copy(); y[1:-1] = (y[:-2] + y[2:]) / 2 | y = x.copy(); y[1:] -= 0.5 * y[:-1].copy()
y = x.copy(); y[[0, 1, 1]] += np.array([1.0, 2.0, 3.0]) | y = x.copy(); np.add.at(y, [0, 1, 1], x[:3])
y = np.zeros_like(x); np.add.at(y, [0, 0, 2, 3, 3, 3], x) | y = np.zeros_like(x[:3]); np.add.at(y, [0, 1, 2, 0, 1, 2], x)
y = np.ones_like(x); np.multiply.at(y, [0, 2], x[:2]) | y = x.copy(); np.subtract.at(y, [0, 0], x[0])
y = x.copy(); np.maximum.at(y, [0, 1], 0.9) | y = x.copy(); np.put(y, [1, 2], 0.0)
y = x.copy(); np.put_along_axis(y, np.array([0, 3]), x[4:], 0) | y = x.copy(); np.place(y, y > 0, [1.0, 2.0])
y = x.copy(); np.copyto(y, x[::-1], where=x > 0) | y = np.zeros_like(x); np.copyto(y, x)
y = x.copy(); np.putmask(y, y > 1, x * 2) | y = x.copy(); np.fill_diagonal(y.reshape(2, 3), 0)
y = x.reshape(2, 3).copy(); y[:, 0] = 0; y[1] += y[0] | y = x.reshape(2, 3).copy(); y[:, [0, 2]] = y[:, [2, 0]]
y = x.reshape(2, 3).copy(); y[y > 1] = 1 | y = x.reshape(2, 3).copy(); y[0, :2] += x[4:]
y = x.reshape(2, 3).copy(); y.T[0] = 5 | y = x.reshape(2, 3).copy(); y[..., 1] = y[..., 0] ** 2
y = x.reshape(2, 3).copy(); y[np.arange(2), [0, 2]] = 0
y = x.reshape(2, 3).copy(); y -= y.mean(axis=0); y /= y.std(axis=0) + 1 | y = x.reshape(2, 3).copy(); y[:] = y[::-1]
y = x.reshape(2, 3).copy(); y[[0, 1]] = y[[1, 0]] | y = x.reshape(2, 3).copy(); y *= x[:3]
y = x.reshape(2, 3).copy(); y[y.argmax(0), np.arange(3)] = 0
y = x.copy(); b = np.broadcast_to(y, (2, 6)); y[0] = 3.0; y = b * 1.0
y = np.zeros_like(np.broadcast_to(x, (2, 6))); y[0] = x; y[1] = y[0] * 2 | y = x.copy(); v = y[1:4]; v[:] = 0
y = x.copy(); v = y.reshape(3, 2)[:, 0]; v += 1 | y = x.copy(); v = y[::-1]; v[0] = 9 | y = x.copy(); v = y[y > 0]; v[:] = 0
y = x.copy(); v = y.T; v *= 3 | y = x.copy(); a, b, c = y.reshape(3, 2); a += c | y = x.copy(); w = y.view(); w[2] = 0.0
y = x.copy(); w = y.ravel(); w[2] = 0.0 | y = x.copy(); w = y.flatten(); w[2] = 0.0
y = x.copy(); w = np.atleast_2d(y); w[0, 0] = 0 | y = x.copy(); w = np.squeeze(y[None]); w[1] = 0
y = x.copy(); w = np.swapaxes(y.reshape(2, 3), 0, 1); w[0, 1] = 7 | y = x.copy(); w = np.split(y, 3)[1]; w *= 0
y = x.copy(); w = y[None, :]; w[0, 1] = 4 | y = x.copy(); w = np.moveaxis(y.reshape(2, 3), 0, 1); w[2] = 1
y = x.copy(); np.abs(y, out=y) | y = x.copy(); np.sqrt(np.abs(y), out=y) | y = x.copy(); np.cumsum(y, out=y)
y = x.copy(); np.add(y, 1, out=y, where=y > 0) | y = x.copy(); np.multiply(y, y, out=y) | y = x.copy(); np.exp(y, y)
y = x.copy(); y[::-1].sort() | y = x.copy(); y.sort(axis=0); y[0] = 0 | y = x.copy(); y.fill(2.0); y[0] = x[0]
y = x.copy(); y.flat[2] = 0.0 | y = x.copy(); y.flat[[0, 1]] = 3.0 | y = np.outer(x, x); np.fill_diagonal(y, x)
y = np.outer(x, x); y[np.triu_indices(6, 1)] = 0 | y = np.outer(x, x); i = np.arange(6); y[i, i] += 1.0
y = np.outer(x, x); y[np.tril_indices(6)] *= 2 | y = np.outer(x, x); y[:, 1] -= y[:, 0] * y[0, 1]
y = np.outer(x, x); y[1:, 1:] = y[:-1, :-1].copy() | y = np.outer(x, x); y[y < 0] = -y[y < 0]
y = np.eye(6) * x; y[0, 1] = x[2] | y = np.diag(x).copy(); y[0] = x | y = x.copy(); y[0] += y[1]; y[1] += y[2]; y[2] += y[0]
y = x.copy(); t = y[0]; y[0] = y[1]; y[1] = t | y = x.copy(); y[0], y[-1] = y[-1], y[0]
y = np.zeros_like(x)\nfor i in range(6): y[i] = x[: i + 1].sum()
y = x.copy()\nfor i in range(1, 6): y[i] = y[i - 1] * 0.5 + y[i] | y = np.zeros_like(x)\nfor i, v in enumerate(x): y[i] = v**2
y = x * 1\nfor k in range(3): y = y - 0.1 * np.sin(y) | s = 0.0\nfor v in x: s = s + v**2\ny = s
s = 0.0\nfor v in x: s += v**2\ny = s | y = []\nfor v in x: y.append(v * 2)\ny = np.stack(y)
y = np.zeros_like(x)\nfor v in np.nditer(np.arange(6)): y[int(v)] = x[int(v)] * 2
y = 0.0\nfor i in np.ndindex(2, 3): y = y + x.reshape(2, 3)[i] ** 2 | y = 0.0\nfor r in x.reshape(2, 3): y = y + r.max()
y = 0.0\nfor a, b in zip(x[::2], x[1::2]): y += a * b | y = x[0]\nwhile y < 10: y = y * 2
y = x.copy()\ny[0] = 1.0\ny[1] = y[0] + x[1] | m = x > 0; y = np.zeros_like(x); y[m] = np.log(x[m]); y[~m] = x[~m] ** 2
y = np.zeros_like(x); y[x > 0] = x[x > 0]; y[x <= 0] = -x[x <= 0]
y = np.zeros_like(x, shape=(2, 6)); y[0] = x; y[1, ::2] = x[1::2] | y = np.full_like(x, 3.0, shape=(2, 2)); y[0, 0] = x[1]
y = np.ones_like(x, dtype=float)[:3]; y[:] = x[3:] | y = (x * np.ones((2, 6))); y[0, 0] = 0; y = y.sum(0)
y = np.repeat(x, 2); y[::2] = 0 | y = np.tile(x, 2); y[:6] *= 2 | y = np.concatenate([x, x]); y[3:9] = 0
y = np.stack([x, x]); y[1] = y[0] ** 2; y = y.sum(0) | y = np.where(x > 0, x, 0); y[0] = 5 | y = np.sort(x); y[0] = 0
y = np.pad(x, 1); y[0] = x[0] | y = np.roll(x, 1); y[0] = 0.0 | y = np.cumsum(x); y[1:] -= y[:-1].copy()
y = x[[0, 1, 2]]; y[0] = 7 | y = x[x > 0]; y[0] = 7 | y = x + 0; y[0] = 1; y = y.std() | y = abs(x); y[0] = 1
y = np.maximum(x, 0); y[0] = 1 | y = -x; y += 1; y **= 2 | y = x * 2; y /= x; y -= 1; y = y + x
y = x * 2; y //= 1; y = y + x | y = x - 1; y @= np.eye(6)
y=0.0\nfor i in np.ndindex(6): y=y+x[i] | y=0.0\nfor v in x.flat: y=y+v*v | y=0.0\nfor row in x.reshape(2,3): y=y+row.sum()**2
y=0.0\nfor a,b in zip(x.reshape(2,3),x.reshape(2,3)[::-1]): y=y+a@b | y=0.0\nfor a,b in x.reshape(3,2): y=y+a*b
a, b, *c = x; y = a * b + sum(c) | a, b = x[:2]; y = a / b | (a, b), (c, d), e = x.reshape(3, 2); y = a * d + e
y = [*x][1] * 2 | y = tuple(x)[2] ** 2
y = x.tolist.__name__ and x | y = x.__copy__() | y = x.view(); z = y * 2; y = z
f = lambda a, *, b=2: a * b; y = f(x, b=x[0])
y = x.copy(); y.real = x**2 | y = x.copy(); y.real[1:] = x[0] | y = x.copy(); y.flat = x[::-1] | y = x.copy(); y.flat = x[::-1].flat
y = x.copy(); y[:-1] -= y[1:] | y = x.copy(); z = y[1:4]; z[:] = 0; y = y + z.sum()
y = x.copy().reshape(3, 2); y[:, None, :][0] = 7
y = np.zeros((6, 6)) + x * 0; y[np.triu_indices(6, 2)[0], 0] = x[0] | y = x.copy(); np.negative(y, out=y, where=y < 0)
y = x.copy(); y[slice(None, None, 2)] = x[0] | y = x.copy(); y[None] = x * 2 | y = x.copy(); np.place(y, y > 0, [0.5])
y = x.copy(); np.put_along_axis(y, np.array([0]), x[1], 0)
y = np.full_like(x, np.nan); np.log(x, out=y, where=x > 0); y = np.nansum(y)
""")
]
