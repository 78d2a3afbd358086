"""One-liners as people write them for NumPy, by what they are given: `v` a vector, `p` one in (0, 1), `m` a matrix, `s` a square
matrix, `a` an array of three dimensions, `n` a number.

`LINES` have a derivative, `REFUSED` raise where they are differentiated with plain NumPy, since NumPy has no hook there, and `LOST`
with `tapegrad.numpy` as well.
"""

from __future__ import annotations

__all__ = ["LINES", "LOST", "REFUSED", "WRITES"]

_ELEMENTWISE = """
sin cos tan arctan sinh cosh tanh arcsinh exp exp2 expm1 square negative positive absolute fabs cbrt sinc sign floor ceil rint
trunc fix degrees radians deg2rad rad2deg conjugate real nan_to_num
"""
_OF_PROBABILITIES = "arcsin arccos arctanh log log2 log10 log1p sqrt reciprocal"
_PAIRS = """
add subtract multiply divide maximum minimum fmax fmin hypot arctan2 logaddexp logaddexp2 copysign true_divide fmod remainder
"""
_REDUCTIONS = """
sum prod mean std var max min ptp median nansum nanprod nanmean nanstd nanvar nanmax nanmin nanmedian amax amin average
"""
_SPECIAL = """
expit logit log_expit erf erfc erfinv erfcinv erfcx ndtr ndtri log_ndtr gammaln loggamma digamma psi gamma rgamma entr i0 i0e i1
i1e exprel log1p expm1 cbrt exp2 exp10 j0 j1 y0 y1 spence ellipk ellipe dawsn k0 k0e k1 k1e erfi cosm1
"""
_SPECIAL_CALLS = """
gammainc(1.5, x) | gammaincc(1.5, x) | betainc(1.5, 2.0, x) | jv(1, x) | iv(1, x) | kv(1, x) | expn(1, x) | exp1(x) | expi(x)
huber(0.5, x) | hyp0f1(0.5, x)
"""
_SPECIAL_PAIRS = "xlogy xlog1py rel_entr kl_div beta betaln binom boxcox poch"


def _split(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


_V = """
np.arange(6.0)[np.flatnonzero(x == x.max())].ndim * x | np.ones((2, 6))[:, np.flatnonzero(x == x.max())] @ x[:1]
np.histogram(x, [-2.0, -1.0, 0.5, 3.0], density=True)[0] * x[0] | np.histogram(x, 4, density=True)[0] | np.setxor1d(x, [0.45, 1.0])
np.histogram(x, 4, weights=x**2, density=True)[0] | np.unique_values(np.sqrt(x)).size * x | np.setxor1d(x[:3], 1.1 * x, True)
np.sum(x, 0, "f8") | x.sum(dtype="f8") | x.cumsum(0, "d") | np.mean(x, dtype="float64") | np.prod(x, dtype="d")
np.var(x, None, "f8") | np.concatenate((x, x), dtype="f8") | np.stack((x, x), dtype="float64") | np.hstack((x, x), dtype="f8")
np.full_like(x, x[0], "f8")
np.vstack((x, x), dtype="f8") | np.add.reduce(x, dtype="f8") | np.nanmean(x, dtype="d") | np.einsum("i,i", x, x, dtype="f8")
x.view(np.ndarray) | np.trim_zeros(x * 0, "b").sum() + x | np.trim_zeros(x * (abs(x) > 0.7))
np.trim_zeros(x * (abs(x) > 0.7), "B") | np.arange(6.0).clip(x[4], x[2]) | np.arange(6.0).clip(x, 3)
np.arange(6.0).clip(max=x[2]) | np.convolve(x, x[:3], 2)
np.histogram_bin_edges(x, 4) | np.unique_counts(x)[1] * x | np.unique_all(x)[0] | np.unique_inverse(x)[0]
np.pad(x, 1, mode="empty")[1:-1] | np.cov(x, aweights=[1, 2, 3, 1, 2, 3.0]) | np.cov(x, x**2, fweights=[1, 2, 3, 1, 2, 3])
np.cov(x, x**2, aweights=abs(x), ddof=0)
np.quantile(x, 0.3, method="inverted_cdf") | np.quantile(x, [0.5, 0.7], method="averaged_inverted_cdf")
np.percentile(x, 40, method="closest_observation") | np.nanquantile(x * np.where(x < 1, 1, np.nan), 0.5, method="inverted_cdf")
x + 1 | 1 + x | x - 1 | 1 - x | x * 2 | 2 * x | x / 2 | 2 / x | x**2 | x**3 | 2.0**x | -x | +x | abs(x) | x % 2 | x // 2 + x
divmod(x, 2)[1] | x * x | x + x[::-1] | x / x[::-1] | x * np.float64(2) | np.float64(2) * x | x * np.arange(6)
np.arange(6.0) - x | x + [1, 2, 3, 4, 5, 6] | x * (1.0,) * 6 * x | x @ x | np.ones(6) @ x | x @ np.arange(6) | np.arange(6) @ x
[1, 2, 3, 4, 5, 6] @ x | x[0] | x[-1] | x[1:4] | x[::2] | x[::-1] | x[4:1:-1] | x[...] | x[None] | x[:, None] | x[[0, 2]]
x[[True, False] * 3] | x[x > 0] | x[np.array([3, 0])] | x[np.int64(2)] | x[-2:] | x[()] | x[..., 0] | x[()][1:] | x[np.argsort(x)]
x[x.argmax()] | x[np.where(x > 0)] | x[np.flatnonzero(x > 0)] | x[~(x > 0)] | x[np.ix_([0, 2])] | x[slice(1, 3)] | x[range(2)]
x.sum() | x.mean() | x.std() | x.var() | x.max() | x.min() | x.prod() | x.std(ddof=1) | x.var(ddof=1) | x.sum(axis=0)
x.sum(keepdims=True) | x.sum(0, None, None, True) | x.mean(0, None, None, True) | x.std(0, None, None, 1) | x.max(0, None, True)
x.sum(where=x > 0) | x.mean(where=x > 0) | x.prod(where=x > 0) | x.std(where=x > 0) | x.var(where=x > 0, ddof=1)
x.max(where=x > 0, initial=-9.0) | x.min(initial=0.5) | x.sum(initial=2.0) | x.prod(initial=3.0) | x.max(initial=0.5) | x.cumsum()
x.cumprod() | x.clip(0, 1) | x.clip(min=0) | x.clip(None, 1.0) | x.round() + x | x.repeat(2) | x.reshape(2, 3) | x.reshape((3, 2))
x.reshape(-1, 2) | x.reshape(2, 3, order="F") | x.ravel() | x.flatten() | x.T | x.transpose() | x.copy() | x.squeeze()
x.astype(float) | x.astype(int) * x | x.real | x.imag + x | x.conj() | x.dot(x) | x.take([0, 2]) | x.take([7, 0], mode="wrap")
x.take([9, 0], mode="clip") | x.argmax() * x | x.argsort() * x | x.size * x | x.ndim + x | x.shape[0] * x | len(x) * x
x.nbytes * x | x.itemsize * x | x.strides[0] * x | x.any() * x | x.nonzero()[0] * x | (x > 0).choose([x, -x]) | x.compress(x > 0)
x.searchsorted(0.5) * x | x.swapaxes(0, 0) | x.flat[2] * x | x.view() | x.item.__name__ and x | x.__len__() * x | (x > 0) * x
(x > 0).sum() * x | np.where(x > 0, x, 0) | np.where(x > 0, x, -x) | np.where(x, x, 1) | np.where(x > 0, 1.0, x) | sum(x) | max(x)
min(x) | sorted(x)[0] * x | sum(v * v for v in x) | int(x[2]) * x | round(x[2], 1) + x | round(x[2]) * x | bool(x[0]) * x
f"{x[0]:.2f}" and x | np.concatenate([x, x]) | np.concatenate([x, [1.0]]) | np.concatenate((x[:2], x[4:])) | np.stack([x, 2 * x])
np.stack([x, x], axis=1) | np.vstack([x, x]) | np.hstack([x, x]) | np.hstack([x, 1.0]) | np.dstack([x, x])
np.column_stack([x, x]) | np.append(x, 1.0) | np.append(x, x[0]) | np.insert(x, 1, 5.0) | np.insert(x, 1, x[0]) | np.delete(x, 2)
np.tile(x, 2) | np.tile(x, (2, 1)) | np.repeat(x, 3) | np.roll(x, 2) | np.flip(x) | np.split(x, 2)[1] | np.split(x, [2, 4])[1]
np.array_split(x, 4)[0] | np.hsplit(x, 3)[1] | np.pad(x, 1) | np.pad(x, (1, 2), "edge") | np.pad(x, 2, "reflect")
np.pad(x, 1, "wrap") | np.pad(x, (2, 1), "mean") | np.pad(x, (2, 1), "median") | np.pad(x, 2, "maximum", stat_length=3)
np.pad(x, (1, 2), "minimum", stat_length=(2, 4)) | np.pad(x, (3, 2), "linear_ramp")
np.pad(x, 2, "linear_ramp", end_values=(5, -6)) | np.i0(x)
np.polynomial.legendre.legval(x, [1, 2, 3])
np.diff(x) | np.diff(x, 2) | np.diff(x, prepend=0.0) | np.diff(x, append=x[0]) | np.ediff1d(x)
np.gradient(x) | np.gradient(x, 0.5) | np.cumsum(x) | np.cumprod(x) | np.trapezoid(x) | np.trapezoid(x, dx=0.5)
np.interp(0.7, np.arange(6.0), x) | np.interp([0.2, 4.5], np.arange(6), x) | np.convolve(x, [1, 2]) | np.convolve(x, x, "same")
np.correlate(x, [1.0, 2.0]) | np.correlate(x, x, "full") | np.unwrap(3 * x) | np.sort(x) | np.partition(x, 2)[2] | np.unique(x)
np.outer(x, x) | np.outer(x, [1, 2]) | np.inner(x, x) | np.dot(x, x) | np.dot(x, np.arange(6)) | np.vdot(x, x)
np.kron(x, [1, 2]) | np.cross(x[:3], x[3:]) | np.tensordot(x, x, 1) | np.einsum("i,i", x, x) | np.einsum("i,j->ij", x, x)
np.einsum("i,i->i", x, np.arange(6)) | np.einsum(x, [0], x, [0], []) | np.linalg.norm(x) | np.linalg.norm(x, 1)
np.linalg.norm(x, np.inf) | np.linalg.norm(x, 3) | np.linalg.vector_norm(x) | np.linalg.outer(x, x) | np.vander(x, 3)
np.polyval(x, 2.0) | np.polyval([1, 2, 3], x) | np.polyadd(x, [1.0]) | np.polymul(x[:2], x[2:]) | np.polyder(x) | np.polyint(x)
np.poly(x[:3]) | np.polyfit(np.arange(6), x, 2) | np.quantile(x, 0.3) | np.percentile(x, [25, 50])
np.quantile(x, 0.4, method="nearest") | np.average(x, weights=np.arange(1, 7))
np.average(x, weights=np.arange(1, 7), returned=True)[0] | np.cov(x) | np.cov(x, x[::-1]) | np.corrcoef(x, x[::-1] ** 2)[0, 1]
np.ptp(x) | np.count_nonzero(x) * x | np.histogram(x, 3)[0] * x[:3] | np.histogram(x, 3)[1] | np.digitize(x, [0.0, 1.0]) * x
np.bincount([0, 1, 0, 2, 1, 0], x) | np.lexsort((x,)) * x | np.argwhere(x > 0).ravel()[0] * x
np.select([x > 1, x > 0], [x, 2 * x], 3 * x) | np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * 2])
np.piecewise(x, [x < 0], [1.0, lambda v: v]) | np.choose((x > 0).astype(int), [x, -x]) | np.extract(x > 0, x)
np.place.__name__ and x | np.clip(x, 0, 1) | np.clip(x, x.min() / 3, 1) | np.heaviside(x, 0.5) + x | np.modf(x)[0]
np.frexp(x)[0] | np.ldexp(x, 2) | np.ldexp(x, np.arange(6)) | np.spacing(x) + x | np.nextafter(x, 9.0)
np.float_power(abs(x), 1.5) | np.power(x, 3) | np.floor_divide(x, 2) + x | np.isfinite(x) * x | np.isnan(x) + x
np.signbit(x) * x | np.isclose(x, x) * x | np.allclose(x, x) * x | np.array_equal(x, x) * x | np.add.reduce(x)
np.multiply.reduce(x) | np.maximum.reduce(x) | np.add.accumulate(x) | np.multiply.accumulate(x) | np.maximum.accumulate(x)
np.add.outer(x, x) | np.multiply.outer(x, [1, 2]) | np.add.reduceat(x, [0, 3]) | np.logaddexp.reduce(x) | np.hypot.reduce(x)
np.subtract.reduce(x) | np.add.reduce(x, initial=2.0) | np.multiply(x, 2, dtype=float) | np.exp(x, casting="unsafe")
np.exp(x, out=np.empty_like(x)) | np.add(x, x, np.empty_like(x)) | np.exp(x, where=x > 0, out=np.zeros_like(x))
np.zeros_like(x) + x | np.ones_like(x) * x | np.full_like(x, 2.0) * x | np.full_like(x, x[0]) | np.empty_like(x).shape[0] * x
np.copy(x) | np.linspace(0, 1, 6) * x | np.linspace(x[0], x[1], 4) | np.linspace(0, x[2], 5, endpoint=False)
np.linspace(x[0], 3, 4, retstep=True)[1] | np.logspace(x[0], x[1], 3) | np.geomspace(abs(x[0]), abs(x[2]), 4) | np.atleast_1d(x)
np.atleast_2d(x) | np.atleast_3d(x) | np.expand_dims(x, 0) | np.squeeze(x[None]) | np.broadcast_to(x, (2, 6))
np.broadcast_arrays(x, np.ones((2, 1)))[0] | np.meshgrid(x, [1, 2])[0] | np.meshgrid(x, x, indexing="ij")[1] | np.diag(x)
np.diagflat(x) | np.tril(np.outer(x, x)) | np.resize(x, 8) | np.trim_zeros(x) | np.imag(x) + x | np.shape(x)[0] * x
np.size(x) * x | np.ndim(x) + x | np.result_type(x, 1).itemsize * x | np.finfo(x.dtype).eps + x | np.iscomplexobj(x) + x
np.apply_along_axis(lambda r: r * 2, 0, x) | np.cumulative_sum(x) | np.cumulative_sum(x, include_initial=True)
np.cumulative_prod(x) | np.nancumsum(x) | np.nancumprod(x) | np.nanargmax(x) * x | np.union1d(x, [0.1]) | np.isin(x, x[:2]) * x
np.setdiff1d(x, x[:2]) | np.std(x, mean=x.mean(keepdims=True)) | np.around(x, 1) + x | np.sum(x, axis=-1)
np.mean(x, keepdims=True) | np.prod(x[:2]) | np.lib.stride_tricks.sliding_window_view(x, 3) | np.take(x, [1, 1])
np.take_along_axis(x, np.argsort(x), 0) | np.put_along_axis.__name__ and x | np.unstack(x)[1] | x.__array_namespace__().exp(x)
"""
_TRANSFORMS = """
np.fft.fft(x).real | np.fft.fft(x).imag | np.abs(np.fft.fft(x)) | np.angle(np.fft.fft(x)) | abs(np.fft.rfft(x)) ** 2
np.fft.ifft(np.fft.fft(x)).real | np.fft.irfft(np.fft.rfft(x)) | np.fft.irfft(np.fft.rfft(x), 5) | np.fft.irfft(np.fft.rfft(x), 9)
np.abs(np.fft.rfft(x, 4)) | np.abs(np.fft.rfft(x, 9)) | np.abs(np.fft.fft(x, 9, norm="ortho"))
np.fft.irfft(np.fft.rfft(x, norm="ortho"), norm="forward") | np.fft.fftshift(x) | np.fft.ifftshift(x)
np.abs(np.fft.fftshift(np.fft.fft(x))) | (np.fft.fft(x) * np.exp(1j * np.arange(6))).real | (x * 1j).imag | abs(x + 1j)
abs(1j * x - x) | np.real(np.exp(1j * x)) | np.exp(1j * x).real | abs(np.exp(2j * np.pi * x).sum()) | np.fft.hfft(x)
np.abs(np.fft.ihfft(x)) | (np.fft.fft(x) / (1 + 2j)).real | (1 / (x + 1j)).real | np.fft.fft(x).conj().imag
(np.fft.fft(x) ** 2).real | np.linalg.norm(np.fft.fft(x)) | np.abs(np.fft.fft(x)[1:3]) | np.fft.fft(x)[0].real
np.abs(np.fft.fft(x).sum()) | np.abs(np.fft.fft(x).mean()) | np.fft.fftfreq(6) * x | np.vdot(np.fft.fft(x), np.fft.fft(x)).real
np.abs(np.sqrt(x + 1j)) | np.log(x + 2j).imag | np.fft.ifft(np.fft.fft(x) * np.fft.fft(x[::-1])).real
np.abs(np.fft.fft(x).reshape(2, 3)) | (np.fft.fft(x) - x).real | (x - np.fft.fft(x)).imag | np.where(x > 0, np.fft.fft(x), 0).real
np.concatenate([np.fft.fft(x), x]).real | np.abs(x @ np.exp(1j * np.outer(np.arange(6), np.arange(6))))
np.abs(np.exp(1j * np.outer(np.arange(6), np.arange(6))) @ x) | np.fft.fft(x).real.sum() | np.iscomplexobj(np.fft.fft(x)) * x
np.abs(np.fft.fft(np.exp(1j * x))) | np.abs(np.stack([x + 1j, x])) | np.abs((x + 1j) @ (x - 2j)) | np.fft.ifft(x).real
(x.astype(float) + 1j).real | np.dot(x + 1j, x).imag | np.fft.rfft(x).size * x | len(np.fft.rfft(x)) * x
np.sqrt(x * (1 + 0j)).imag | np.angle((2 + 0j) * x) * x | np.log(np.multiply(x, [1, 1j, 2, 3, 1j, 4])).imag * x
np.sin(x + 1j).real | np.tanh(1j * x + 0.2).imag | abs(np.arccosh(x + 2j)) | np.arctan(x + 2j).real | np.expm1(x * (1 + 1j)).imag
np.log1p(x + 1j).imag | np.exp2(1j * x).real | abs(np.log2(x + 1j)) | sc.erf(x + 0.5j).imag | np.prod(x + 1j).real
np.var(np.exp(1j * x)) | np.std(x + 1j * x[::-1]) | np.max(x + 1j * x[::-1]).imag | abs(np.min(np.exp(1j * x)))
(np.fft.fft(x) * [x[0], 2, 3, x[1], 5, 6]).real | np.concatenate([np.fft.fft(x), [x[0] * x[1], 1j]]).real | np.dot(x, x + 1j).imag
np.multiply([x[0], 1j], x[:2]).imag | np.where([True, False], [x[0] ** 2, 1j], x[:2]).real | np.multiply(x[:2], [1j, 2]).imag
np.outer(np.fft.fft(x), 2j).real | np.kron(1j, x).imag
np.stack([x[0] + 1j, 2j]).imag + x[:2] | np.hstack([x + 1j, 2j]).imag * x[0]
np.einsum("i,i", x + 1j, x * 1j).imag | np.real_if_close(np.exp(0j * x)) * x | np.iscomplex(x + 1j) * x | np.isfinite(x + 1j) * x
abs(x.astype(complex) * (1 + 1j)) | np.inner(x + 1j, np.arange(6) * 1j).real | np.linalg.norm(x + 1j, 3) | np.kron(x, [1j, 2]).imag
np.tensordot(x + 1j, np.arange(6), axes=1).real | np.outer(x, [1j, 1]).imag | np.vdot(x, x + 1j).imag | np.atleast_2d(x + 1j).imag
"""
_TRANSFORMS_OF_MATRICES = """
np.abs(np.fft.fft2(x)) | np.fft.ifft2(np.fft.fft2(x)).real | np.abs(np.fft.rfft2(x)) | np.fft.irfft2(np.fft.rfft2(x))
np.abs(np.fft.fft(x, axis=0)) | np.abs(np.fft.fftn(x, (2, 3), (0, 1))) | np.abs(np.fft.rfftn(x))
np.fft.irfftn(np.fft.rfftn(x), (3, 5), (0, 1)) | np.abs(np.fft.fftshift(np.fft.fft2(x))) | np.fft.fftshift(x, axes=1)
np.abs(np.fft.fft(x).sum(0)) | np.abs(np.fft.fft(x).T) | np.abs(np.fft.rfft(x, axis=0))
np.fft.irfft(np.fft.rfft(x, axis=0), 3, axis=0) | np.abs(np.fft.ifftn(x))
"""
_M = """
np.gradient(x, [0, 1, 3, 4.0], 2.0, axis=(1, 0)) | np.gradient(x, axis=(-1, 0))[0]
np.trim_zeros(x * (x > 0.4)) | x.view(np.ndarray) | x[np.tril_indices_from(x)] | x[np.triu_indices_from(x, 1)]
np.einsum(x, [0, 1], optimize=np.einsum_path("ij->", x)[0])
np.average(x, axis=(1, 0), weights=np.arange(12.0).reshape(4, 3)) | np.linalg.cond(x, 2) | np.linalg.pinv(x, 1e-3)
np.linalg.pinv(x, rtol=None) | np.quantile(x, 0.4, axis=1, method="averaged_inverted_cdf")
x.T | x.transpose() | x.transpose(1, 0) | x.transpose((1, 0)) | x.mT | x.reshape(2, 6) | x.reshape(-1) | x.ravel("F")
x.flatten("F") | x.swapaxes(0, 1) | x[0] | x[:, 1] | x[1, 2] | x[1][2] | x[::-1] | x[:, ::-1] | x[0, ::2] | x[[0, 2]]
x[:, [0, 2]] | x[[0, 1], [1, 2]] | x[x > 0] | x[..., None] | x[None] | x[np.ix_([0, 1], [1, 3])] | x[0, ...] | x[1:, :2]
x[:, (1,)] | x[1:, [-1]] | x[:, np.array([0, 1], np.uint8)]
x[x[:, 0] > 0] | x[[0, 1], ::-1] | x[-1] | x[:, -1:] | x[np.tril_indices(3)] | x @ x.T | x.T @ x | x @ np.arange(4)
np.arange(3) @ x | x.dot(x.T) | x.dot(x[0]) | np.arange(3.0) @ x | x.sum(0) | x.sum(1) | x.sum((0, 1)) | x.sum(axis=-1)
x.mean(0) | x.mean(1, keepdims=True) | x.std(0) | x.std(1, ddof=1) | x.var(axis=(0, 1)) | x.max(0) | x.min(1)
x.max(axis=0).sum() | x.prod(1) | x.cumsum(0) | x.cumsum(1) | x.cumsum() | x.cumprod(axis=1) | x.argmax(1) @ x | x.trace()
x.diagonal() | x.diagonal(1) | x.repeat(2, axis=0) | x.take([0, 2], axis=1) | x.compress([True, False, True], axis=0)
x.clip(-1, 1) | x.sum(axis=1, where=x > 0) | x.mean(0, where=x > -9) | x.std(axis=()) + x | x.size * x | x.shape[1] * x
x - x.mean(0) | x / x.sum(1, keepdims=True) | x * x[0] | x + x[:, :1] | np.linalg.norm(x) | np.linalg.norm(x, axis=1)
np.linalg.norm(x, "nuc") | np.linalg.norm(x, 2) | np.linalg.norm(x, 1) | np.linalg.matrix_norm(x)
np.linalg.svd(x, compute_uv=False) | np.linalg.svdvals(x) | np.linalg.pinv(x) | np.linalg.cond(x) | np.linalg.matrix_rank(x) * x
np.linalg.lstsq(x.T, np.ones(4))[0] | np.linalg.qr(x)[1] ** 2 | np.einsum("ij->ji", x) | np.einsum("ij,ij->i", x, x)
np.einsum("ij,kj", x, x) | np.einsum("...j,j->...", x, np.arange(4))
np.einsum("ij,jk,k->i", x, x.T, np.arange(3), optimize=True) | np.tensordot(x, x, 2) | np.tensordot(x, x, ([0], [0]))
np.kron(x, np.eye(2)) | np.dot(x, x[0]) | np.inner(x, x) | np.matmul(x, x.T) | np.vecdot(x, x) | np.vecdot(x, x, axis=0)
np.matvec(x, x[0]) | np.vecmat(x[:, 0], x) | np.cov(x) | np.cov(x, rowvar=False) | np.corrcoef(x)[0, 1] | np.median(x, axis=1)
np.median(x) | np.quantile(x, 0.4, axis=0) | np.percentile(x, 30, axis=1) | np.average(x, axis=0)
np.average(x, axis=1, weights=[1, 2, 3, 4]) | np.ptp(x, 0) | np.sort(x) | np.sort(x, 0) | np.sort(x, axis=None)
np.partition(x, 1, axis=0)[1] | x[np.lexsort((x[:, 1], x[:, 0]))] | np.diff(x) | np.diff(x, axis=0)
np.diff(x, axis=1, prepend=0) | np.gradient(x)[1] | np.gradient(x, axis=0) | np.trapezoid(x, axis=0) | np.cumsum(x, 1)
np.roll(x, 1) | np.roll(x, (1, 2), (0, 1)) | np.roll(x, (1, 2)) | np.flip(x) | np.flip(x, 0) | np.fliplr(x) | np.flipud(x)
np.rot90(x) | np.tile(x, 2) | np.repeat(x, [1, 2, 0], axis=0)
np.pad(x, ((1, 0), (2, 1)), "mean") | np.pad(x, ((1, 2), (0, 1)), "maximum", stat_length=((1, 2), (2, 1))) | np.pad(x, 1, "median")
np.pad(x, ((0, 2), (2, 1)), "linear_ramp", end_values=((1, 2), (3, 4))) | np.pad(x, {1: (1, 2)}, "minimum")
np.pad(x, 1) | np.pad(x, ((0, 1), (1, 0)), "edge")
np.concatenate([x, x]) | np.concatenate([x, x], 1) | np.concatenate([x, x], axis=None) | np.vstack([x, x[0]])
np.hstack([x, x[:, :1]]) | np.stack([x, x], -1) | np.block([[x, x], [x, x]]) | np.split(x, 3)[1] | np.hsplit(x, 2)[1]
np.vsplit(x, 3)[1] | np.array_split(x, 2, axis=1)[0] | np.insert(x, 1, 0.0, axis=0) | np.delete(x, 1, axis=1)
np.append(x, x, axis=0) | np.unique(x) | np.tril(x) | np.triu(x, 1) | np.diag(x) | np.diagonal(x) | np.trace(x)
np.where(x > 0, x, 0) | np.where(x.T > 0, x.T, 1) | np.argwhere(x > 0)[0] * x[0, :2] | np.count_nonzero(x > 0, axis=0) * x
np.apply_along_axis(lambda r: r.sum(), 1, x) | np.apply_along_axis(np.sort, 0, x) | np.apply_over_axes(np.sum, x, [0, 1])
np.moveaxis(x, 0, 1) | np.rollaxis(x, 1) | np.swapaxes(x, 0, 1) | np.expand_dims(x, (0, 3)) | np.squeeze(x[None], 0)
np.broadcast_to(x, (2, 3, 4)) | np.ravel(x) | np.reshape(x, (4, 3)) | np.permute_dims(x, (1, 0)) | np.matrix_transpose(x)
np.transpose(x) | np.logaddexp.reduce(x, axis=1) | np.add.reduce(x, axis=(0, 1)) | np.maximum.accumulate(x, axis=1)
np.multiply.reduce(x, axis=0, keepdims=True) | np.add.reduceat(x, [0, 2], axis=1) | np.take(x, [0, 1])
np.take_along_axis(x, x.argsort(1), 1) | x[np.unravel_index(x.argmax(), x.shape)] | sum(row.std() for row in x)
np.max(x, axis=(0, 1)) | np.nanmean(x, 1) | np.nansum(x, axis=0) | np.histogram(x, bins=[0, 1, 2])[0] * x[0, :2]
np.interp(x, [-1.0, 0.5, 2.0], [0.0, 1.0, 3.0]) | np.unwrap(3 * x, axis=0) | np.nanquantile(x, 0.5, axis=0)
np.linalg.multi_dot([x, x.T, x])
"""
_S = """
x[np.diag_indices_from(x)] | np.linalg.cond(x, 1) | np.linalg.svd(x @ x.T, hermitian=True)[1] | np.trace(x, dtype="f8")
np.linalg.svd(x + x.T, compute_uv=False, hermitian=True) | np.linalg.pinv(x @ x.T, hermitian=True)
np.linalg.inv(x) | np.linalg.det(x) | np.linalg.slogdet(x)[1] | np.linalg.solve(x, np.ones(3)) | np.linalg.solve(x, np.eye(3))
np.linalg.solve(np.eye(3) * 2, x) | np.linalg.cholesky(x @ x.T + np.eye(3)) | np.linalg.eigvalsh(x + x.T)
np.linalg.cholesky(x @ x.T + np.eye(3), upper=True)
np.linalg.eigh(x @ x.T)[0] | np.linalg.matrix_power(x, 3) | np.linalg.matrix_power(x, -1) | np.linalg.trace(x)
np.linalg.diagonal(x) | np.linalg.matrix_transpose(x) | np.linalg.cross(x, x.T) | np.linalg.tensorsolve(x, np.ones(3))
np.linalg.tensorinv(x, ind=1) | np.linalg.cond(x) | np.linalg.cond(x, 1) | np.linalg.lstsq(x, np.ones(3))[0]
np.linalg.matmul(x, x) | np.linalg.tensordot(x, x) | np.linalg.vecdot(x, x) | np.linalg.qr(x)[1] | np.linalg.svd(x)[1] | x @ x
x @ x @ x | x @ np.float32([1, 2, 3]) | (x > 0) @ x | np.cross(x, x.T) | np.trace(x @ x) | x.trace() | np.einsum("ii", x)
np.einsum("ii->i", x) | np.einsum("ij,jk->ik", x, x) | np.fill_diagonal.__name__ and x | x - x.T | np.diag(np.diag(x))
x * np.eye(3) | np.triu(x) @ np.tril(x)
"""
_A = """
x.sum(0) | x.sum((0, 2)) | x.mean(-1) | x.max(1) | x.std((1, 2)) | x.transpose(1, 0, 2) | x.transpose(2, 0, 1)
x.transpose((0, 2, 1)) | x.T | x.mT | x.swapaxes(0, 2) | x[0, 1, 2] | x[..., 0] | x[:, 0] | x[0, :, [1, 0]] | x[:, [0, 1], 0]
x[:, None, ..., 1] | x[::-1, ..., ::-1] | x @ np.ones(4) | x @ x.transpose(0, 2, 1) | np.ones(3) @ x | np.dot(x, np.ones(4))
np.dot(x, np.ones((4, 2))) | np.moveaxis(x, 0, -1) | np.moveaxis(x, (0, 1), (1, 0)) | np.rollaxis(x, 2) | np.rollaxis(x, 2, 1)
np.roll(x, 1, (0, 2)) | np.flip(x, (0, 2)) | np.rot90(x, 1, (1, 2)) | np.dsplit(x, 2)[1] | np.concatenate([x, x], 2)
np.stack([x, x], 1) | np.tensordot(x, x, ([0, 1], [0, 1])) | np.einsum("abc,abd->cd", x, x) | np.einsum("...i->...", x)
np.sort(x, 1) | np.cumsum(x, 2) | np.diff(x, axis=1) | np.median(x, axis=(0, 2)) | np.linalg.norm(x, axis=(1, 2))
np.trace(x[:, :, :3], axis1=1, axis2=2) | np.diagonal(x, 0, 1, 2) | np.squeeze(x[:1]) | np.expand_dims(x, 1) | np.ravel(x, "F")
x.ravel("A") | np.repeat(x, 2, axis=1) | np.take(x, [0, 1], axis=2) | np.average(x, axis=2, weights=[1, 2, 3, 4])
np.ptp(x, axis=0) | np.trapezoid(x, axis=1) | np.pad(x, 1) | np.tile(x, (1, 2, 1)) | np.apply_along_axis(np.sum, 1, x)
"""
_N = """
x + 1 | x * x | 2.0**x | np.sin(x) | np.exp(x) * x | abs(-x) | x.sum() | x.mean() | x.reshape(1) | x[()] | x[None]
np.stack([x, 2 * x]) | np.hstack([x, x]) | np.where(x > 0, x, 0) | np.full_like(x, 2.0) * x | np.maximum(x, 0) | x > 0 and x or -x
int(x + 1) * x | x.ndim + x | x.size * x | np.zeros(3) + x | np.ones(3) * x | np.arange(3) * x | np.linspace(0, x, 3)
np.atleast_1d(x) | x.astype(float) | np.power(x, 2) | x**0.5 | x / 3 | 3 % x | np.hypot(x, 1) | np.logaddexp(x, 0) | np.square(x)
np.clip(x, 0, 1) | x.T | np.sum(x) | np.outer(x, [1, 2]) | np.dot(x, x) | np.multiply(x, [1, 2]) | x.copy() | np.append([], x)
"""

# What NumPy has no hook for: it works with `tapegrad.numpy` alone.
REFUSED: list[tuple[str, str]] = [
    ("v", line)
    for line in _split("""
np.array(x) | np.asarray(x) | np.asarray(x) * 2 | np.array([x[0], 2 * x[1]]) | np.array([x, x]) | np.asarray([x[0], 1.0])
np.array([[x[0], 1.0], [2.0, x[1]]]) | np.array(list(x)) | np.sum([x[0], x[1]]) | np.sum([x, x], axis=0) | np.mean([v for v in x])
np.max([x[0], x[1]]) | np.r_[x, x] | np.r_[0.0, x] | np.c_[x, x] | np.full(3, x[0]) | np.full((2, 2), x[0])
np.ascontiguousarray(x) | np.prod([x[0], x[1]]) | np.exp([x[0], x[1]]) | np.dot([x[0], 1.0], [2.0, x[1]])
np.linalg.norm([x[0], x[1]]) | np.concatenate([[x[0]], x]) + 0 * np.asarray(x[0]) | np.max((x[0], x[1]))
np.stack([[x[0], x[1]], [1.0, 2.0]]) + np.array(x[0]) | np.array([x[0], x[1]]) @ np.array([[1.0, 2.0], [3.0, 4.0]])
np.asanyarray(x) | np.array(x, dtype=float) | np.array(x, copy=True) | np.array([x.sum(), x.max()])
np.array([f(x[0]) for f in (np.sin, np.cos)]) | np.exp(x, out=np.zeros(6)) | np.sum(x, out=np.zeros(()))
np.array((x[0], 1)).sum() | np.vectorize(lambda v: v**2 if v > 0 else -v)(x) | np.vectorize(lambda v, w: (v * w, v - w))(x, 2.0)[1]
np.vectorize(lambda v: 0 if v < 0 else v)(abs(x)) | np.vectorize(lambda v, w: v * w, otypes=[float], excluded={"w"})(x, w=3)
np.vectorize(lambda v: np.sin(v))(x.reshape(2, 3)) | np.lib.stride_tricks.as_strided(x, (3, 2), (8, 16))
np.lib.stride_tricks.as_strided(x[1:], (4, 2), x.strides * 2) | np.polynomial.polynomial.polyval(0.3, x)
np.polynomial.polynomial.polyval(x[:2], x) | np.polynomial.polynomial.polymul(x, [1, 2]) | np.polynomial.polynomial.polyder(x)
np.polynomial.polynomial.polyfromroots(x[:3]) | np.polynomial.polynomial.polyval2d(0.3, 0.4, x.reshape(2, 3))
np.polynomial.polynomial.polyfit(np.arange(6), x, 2) | np.polynomial.Polynomial(x)(0.3) | np.polynomial.Polynomial(x).deriv()(x[0])
np.polynomial.chebyshev.chebval([0.1, 0.4], x) | np.polynomial.chebyshev.chebder(x) | np.polynomial.chebyshev.chebmul(x, [1, 2])
np.polynomial.chebyshev.chebvander(x, 3) | np.polynomial.Chebyshev(x)(x[1]) | np.polynomial.chebyshev.chebint(x)
np.polynomial.legendre.legval(0.4, x)
np.polynomial.hermite.hermval(0.4, x) | np.polynomial.hermite_e.hermeval(x, x) | np.polynomial.laguerre.lagval(0.4, x)
np.polynomial.laguerre.lagadd(x, [1.0]) | np.polynomial.polyutils.mapdomain(x, [0, 1], [2, x[0]])
""")
]
# What takes a number out of what is differentiated.
LOST: list[tuple[str, str]] = [
    ("v", line)
    for line in _split("""
float(x[0]) * x | math.exp(x[0]) | math.sqrt(x[2]) + x | math.fsum(x) | math.hypot(x[0], x[1]) | x.tolist() | x[0].item()
x.item(0) * x | np.float64(x[0]) | complex(x[0]).real | math.sin(x[0]) * x | math.pow(x[2], 2)
"%.2f" % x[0] and x | x.tobytes() and x | math.isnan(x[0]) * x
""")
]

# Statements; the result is `y`.
WRITES: list[str] = _split("""
y = x * 1.0; y += 1 | y = x.copy(); y[0] = 5 | y = x.copy(); y[1:] = x[:-1] | y = x.copy(); y[1:] += y[:-1]
y = x.copy(); y[::-1] += x | y = x.copy(); y[::2] *= x[1::2] | y = x.copy(); y[[0, 0]] += 1.0 | y = x.copy(); y[x > 0] = 0
y = x.copy(); y[x > 0] *= x[0] | y = x.copy(); y[x > 0] = x[x > 0] ** 2 | y = x.copy(); y[...] = 3; y = y * x
y = x.copy(); y[:] = 0; y[2] = x[0] | y = x.copy(); z = y; z += 1 | y = x.copy(); z = y[1:3]; z *= 2
y = x.copy(); z = y[::-1]; z *= 2 | y = x.copy(); z = y.reshape(2, 3); z[0] = 3 | y = x.copy(); z = y.reshape(2, 3).T; z[0] = 3
y = x.copy(); z = y.ravel(); z[0] = 3 | y = x.copy(); z = y.flatten(); z[0] = 3 | y = x.copy(); z = y[[0, 1]]; z[0] = 3
y = x.copy(); z = y[0]; z += 3; y = y + z | y = x.copy(); z = y[0]; y[0] = 9; y = y * z | y = x.copy(); y[0], y[1] = y[1], y[0]
y = x.copy(); y.sort() | y = x.copy(); y[1:5].sort() | y = x.copy(); y.fill(x[0]) | y = x.copy(); y.put([0, 2], x[:2])
y = x.copy(); np.put(y, [0, 2], [1, 2]) | y = x.copy(); np.place(y, x > 0, [1, 2]) | y = x.copy(); np.putmask(y, x > 0, 0.0)
y = x.copy(); np.copyto(y, 2 * x) | y = x.copy(); np.copyto(y, 0, where=x > 0) | y = x.copy(); np.add.at(y, [0, 0], 1.0)
y = x.copy(); np.clip(y, 0, 1, out=y) | y = np.outer(x, x); np.fill_diagonal(y, 0) | y = np.outer(x, x); y[np.diag_indices(6)] = x
y = np.outer(x, x); y[0] = x; y[:, 1] = 2 | y = np.outer(x, x); y[[0, 1], [1, 2]] = x[:2] | y = np.outer(x, x); y -= y.mean(0)
y = np.outer(x, x); y /= y.sum(1, keepdims=True) + 20 | y = np.outer(x, x); y[y > 1] = 1 | y = np.outer(x, x); y[:, x > 0] = x[0]
y = np.outer(x, x); y.sort(0) | y = np.outer(x, x); y[[0, 1]] = y[[1, 0]] | y = np.outer(x, x); r = y[0]; r -= r.mean()
y = np.outer(x, x); y @= np.eye(6) * 2 | y = np.outer(x, x); y[0].sort() | y = np.outer(x, x); y[1:3, [0, 1]] = x[:2]
y = np.zeros_like(x); y[0] = x[1]; y[1:] += x[0] | y = np.zeros_like(x); y[::2] = x[:3] ** 2
y = np.empty_like(x); y[:] = x[::-1] | y = x * 2; np.multiply(y, x, out=y) | y = x * 2; np.negative(y, where=x > 0, out=y)
y = x * 2; y.clip(0, 1, out=y) | y = x.copy(); y **= 2; y //= 1; y = y * x | y = x.copy(); y[0] = y[1] = x[2]
y = x.copy(); y[-1] -= y[0] * 2 | y = x.copy(); a, b = np.split(y, 2); a += b
y = x.copy(); z = np.vsplit(y.reshape(2, 3), 2)[1]; z[0, 0] = 7 | y = x.copy(); z = np.atleast_2d(y); z[0, 0] = 7
y = x.copy(); y %= 0.7 | y = x.copy(); y.partition(2); y = np.sort(y) | y = x.copy(); y.flat[1] = 3 | y = x.copy(); y.real[0] = 2
y = x.copy(); y[np.ix_([0, 2])] = x[1] | y = x.copy(); y[:2] = [x[0], 1.0]
""")

LINES: list[tuple[str, str]] = [
    *(("v", f"np.{name}(x)") for name in _ELEMENTWISE.split()),
    *(("p", f"np.{name}(x)") for name in _OF_PROBABILITIES.split()),
    *(("p", f"np.{name}(x, {other})") for name in _PAIRS.split() for other in ("0.6", "np.arange(1, 7)", "x[::-1]")),
    *(("v", f"np.{name}(x)") for name in _REDUCTIONS.split()),
    *(("m", f"np.{name}(x, axis={axis})") for name in _REDUCTIONS.split() for axis in (0, -1)),
    *(("p", f"sc.{name}(x)") for name in _SPECIAL.split()),
    *(("p", f"sc.{name}({operands})") for name in _SPECIAL_PAIRS.split() for operands in ("x, 0.3", "0.3, x", "x, x[::-1]")),
    *(("p", f"sc.{call}") for call in _split(_SPECIAL_CALLS)),
    *(("v", line) for line in _split(_V)),
    *(("v", line) for line in _split(_TRANSFORMS)),
    *(("m", line) for line in _split(_TRANSFORMS_OF_MATRICES)),
    *(("m", line) for line in _split(_M)),
    *(("s", line) for line in _split(_S)),
    *(("a", line) for line in _split(_A)),
    *(("n", line) for line in _split(_N)),
]  # fmt: skip
