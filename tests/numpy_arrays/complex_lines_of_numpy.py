"""Lines of NumPy with complex numbers, as people write them: ``x`` is a vector of four numbers, and ``z = x + 1j * x[::-1]``.

`COMPLEX_LINES` are expressions, `COMPLEX_WRITES` statements that leave their result in ``r``.
"""

from __future__ import annotations

__all__ = ["COMPLEX_LINES", "COMPLEX_WRITES"]

COMPLEX_LINES = [
    line
    for row in """
z.sum() | z.mean() | z.prod() | z.dot(z) | np.vdot(z, z) | np.outer(z, z) | z.cumsum() | np.cumsum(z) | np.cumprod(z)
z.std() | z.var() | z.max() | abs(z) | z.real.sum() + z.imag.max() | np.concatenate([z, z.conj()]) | np.stack([z, x])
np.hstack([z, 1]) | np.append(z, x[0]) | np.roll(z, 1) | np.flip(z) | np.repeat(z, 2) | np.tile(z, 2) | np.diff(z)
np.convolve(z, z) | np.correlate(z, z) | np.polyval(z, 2.0) | np.trapezoid(z) | np.diag(z) | np.trace(np.diag(z))
np.linalg.det(z.reshape(2, 2)) | np.linalg.slogdet(z.reshape(2, 2))[1] | np.linalg.pinv(z.reshape(2, 2))
np.linalg.pinv(z.reshape(4, 1)) | np.linalg.matrix_power(z.reshape(2, 2), 3) | np.kron(z, z) | np.cross(z[:3], x[:3])
np.exp(z) | np.expm1(z) | np.log1p(z) | np.log2(z) | np.sinc(z) | np.square(z) | np.reciprocal(z) | np.sign(z) | z.round(1)
np.isfinite(z) * x | np.iscomplexobj(z) * x | np.isreal(z) * x | np.real_if_close(z) | np.nan_to_num(z) | np.angle(z)
np.angle(z, deg=True) | np.unwrap(np.angle(z)) | np.zeros_like(z) + x | np.ones_like(z) * x | np.full_like(z, 2.0) * x
z.astype(complex) | z.squeeze() | z.swapaxes(0, 0) | z.nbytes * x | z.itemsize * x | z.nonzero()[0] * x | z.take([0, 1])
z[::2].strides[0] * x | z.reshape(2, 2).T.strides[1] * x
z.fill(x[0]) or z | np.fft.fft(z) | np.fft.ifft(np.fft.fft(x) * z).real | np.fft.fftshift(z) | np.fft.fft2(z.reshape(2, 2))
np.sum(z, initial=2) | np.sum(z, initial=2 + 1j) | z.sum(None, None, None, False, 3.0) | np.pad(z, 1, constant_values=2.0)
np.pad(z, 1) | np.pad(z, (1, 2), "edge") | np.pad(z, 1, mode="linear_ramp", end_values=1j) | np.diff(z, prepend=1.0)
np.diff(z, prepend=x[:1], append=1j) | np.diff(z, 1, -1, 1.0) | np.append(z, x) | np.append(x, z) | np.append(x[0], 1j)
np.append(z, [1, 2]) | np.append(z.reshape(2, 2), x.reshape(2, 2), axis=0) | np.hstack([x, z]) | np.hstack([1, z, x[0]])
np.concatenate([z[:2], x, [1j]]) | np.stack([x, z], axis=1) | np.vstack([x, z]) | np.column_stack([x, z]) | np.dstack([x, z])
np.atleast_1d(z, x)[1] | np.atleast_2d(z) | np.insert(z, 1, x[0]) | np.delete(z, 1) | np.trapezoid(z, x)
np.trapezoid(z, dx=0.1) | np.gradient(z) | np.gradient(z, 0.1) | np.cumsum(z.reshape(2, 2), axis=1)
np.cumprod(z.reshape(2, 2), axis=1) | z.cumprod() | np.add.reduce(z) | np.add.reduce(z.reshape(2, 2), axis=1)
np.add.reduce(z.reshape(2, 2), 1) | np.multiply.reduce(z) | np.multiply.reduce(z.reshape(2, 2)) | np.add.accumulate(z)
np.multiply.accumulate(z.reshape(2, 2)) | np.multiply.outer(z, x) | np.multiply.outer(x, z) | np.subtract.outer(z, z)
np.add.outer(z, 1.0) | np.where(np.abs(z) > 2, z, x) | np.where(np.abs(z) > 2, 0, z) | np.where(z, x, 1) | np.take(z, [0, 0])
np.repeat(z, [1, 2, 0, 1]) | np.round(z, 2) + z | np.argmax(z) * z | z.argmin() * z | np.allclose(z, z) * z
np.count_nonzero(z) * z | z.any() * z | np.all(z) * z | z.min() | np.std(z.reshape(2, 2), axis=0) | z.var(ddof=1)
z.mean(dtype=complex) | z.mean(where=x > 0) | np.nansum(z) | np.sum(z * np.conj(z)) | (z * z.conj()).real | np.abs(z) ** 2
z.real ** 2 + z.imag ** 2 | np.linalg.norm(z, 1) | np.linalg.norm(z.reshape(2, 2), axis=1)
np.linalg.multi_dot([z.reshape(2, 2)] * 3) | np.polyval([1, 2, 3], z) | np.polyval(x, z) | np.correlate(z, x, "full")
np.correlate(x, z, "same") | np.convolve(x, z, "same") | np.cross(x[:3], z[:3]) | np.inner(z, x) | np.dot(z, 2) | np.dot(x, z)
np.outer(x, z) | np.kron(x, z) | np.vdot(x, z) | np.vdot(z, x) | np.linalg.vector_norm(z)
np.linalg.matrix_norm(z.reshape(2, 2)) | np.linalg.matrix_rank(z.reshape(2, 2)) * x
np.linalg.matrix_power(z.reshape(2, 2), -2) | np.linalg.matrix_power(z.reshape(2, 2), 0) | np.linalg.pinv(z.reshape(1, 4))
np.linalg.det(np.stack([z.reshape(2, 2), z.reshape(2, 2).T * 2])) | np.linalg.slogdet(z.reshape(2, 2))[0]
np.linalg.cholesky(z.reshape(2, 2) @ z.reshape(2, 2).conj().T + np.eye(2), upper=True)
np.linalg.solve(x.reshape(2, 2), z[:2]) | np.linalg.svd(z.reshape(2, 2))[1] | np.searchsorted(np.sort(x), 0.5) * z
(z == z) * x | (z != 1) * x | sum(z) | abs(z[0]) | np.exp(1j * x[0])
np.exp(-2j * np.pi * np.outer(np.arange(4), np.arange(4)) / 4) @ x | np.array([1j, 2]) * x[0] | x ** (0.5 + 0j)
np.sqrt(x + 0j) | np.hypot(z.real, z.imag) | np.zeros(4, complex) + z | np.eye(4) @ z | z.reshape(2, 2).sum(0)
z.reshape(2, -1).T | z.ndim * z.size * len(z) * z | (z.dtype == complex) * z
z.astype(np.complex64).real.astype(float) * 0 + z.real | np.angle(z) + np.arctan2(z.imag, z.real) | np.log(z).imag
np.isclose(z, z) * z | np.tril(z.reshape(2, 2), -1) | np.diagflat(z) | np.broadcast_to(z, (2, 4))
np.rollaxis(z.reshape(2, 2), 1) | np.array_split(z, 2)[0] | np.split(z, 2)[1] | np.compress(x > 0, z)
np.interp(x, np.arange(4.0), z) | np.fft.ifft(z) | np.fft.fftn(z.reshape(2, 2)) | np.fft.irfft(z) | np.fft.hfft(z)
np.fft.ihfft(x) | np.fft.fft(z, n=6) | np.fft.fft(z, norm="ortho") | np.fft.fftfreq(4) * z
""".strip().splitlines()
    for line in row.split(" | ")
]

COMPLEX_WRITES = """
r = np.gradient(z.reshape(2, 2), 0.1, 0.2)[1]
r = np.gradient(z, 0.5)
w = np.conj(z); w[0] = 0; r = z
w = z.conj(); w[0] = 0; r = z
w = z.conjugate(); w[0] = 0; r = z
w = np.conjugate(z); w[0] = 0; r = w
w = z * 1; w[0] = 0; r = z
w = +z; w[0] = 0; r = z
w = z.copy(); w[0] = 0; r = z
w = np.copy(z); w[0] = 0; r = z
z.real[0] = 5; r = z
z.imag[1:] = x[1:] ** 2; r = z
z.real = x ** 2; r = z
z.real = 3.0; r = z
y = x * 2; z.real = y; y[0] = 9.0; r = z
y = x * 2; z.imag = y; z[0] = 9.0; r = z + y
z.real *= 2; r = z
z.real += x; r = z
v = z.real; v *= 3; r = z
v = np.real(z); v[0] = 3; r = z
v = np.imag(z); v[0] = 3; r = z
y = x * 2; z = y + 0j; y[0] = 9.0; r = z
y = x * 2; z = y.astype(complex); y[0] = 9.0; r = z
y = x * 2; z = y.astype(complex); z[0] = 9.0; r = z + y
y = x * 2; z = y * 1j; y[0] = 9.0; r = z
y = x * 2; z = 1j * y; z[0] = 9.0; r = z + y
y = x * 2; z = y + 1j * y; z[0] = 9.0; r = z + y
y = x * 2; z = y - 1j * y; y[0] = 9.0; r = z
y = x * 2; z = y * (1 + 0j); y[0] = 9.0; r = z
y = x * 2; z = y / (1 + 0j); y[0] = 9.0; r = z
y = x * 2; y.real[0] = 4; r = y
y = x * 2; y.real = x ** 2; r = y
y = x * 2; v = np.real(y); v[0] = 7.0; r = y
y = x * 2; v = y.imag; r = v + y
y = x * 2; y.conj()[0] = 7.0; r = y
y = x * 2; np.conj(y)[0] = 7.0; r = y
w = z[1:]; w[0] = 0; r = z
w = z[::-1]; w[0] = x[0] * 1j; r = z
w = z.reshape(2, 2); w[0, 0] = x[0] * 1j; r = z
w = z.ravel(); w[0] = x[0] * 1j; r = z
w = z.flatten(); w[0] = x[0] * 1j; r = z
w = z.T; w[0] = x[0] * 1j; r = z
z = z.reshape(2, 2); w = z.T; w[0] = x[0] * 1j; r = z
z = z.reshape(2, 2); w = z.T.ravel(); w[0] = x[0] * 1j; r = z
z = z.reshape(2, 2); w = np.diagonal(z); r = w
w = z[[0, 1]]; w[0] = 0; r = z
w = z[0]; w += 1; r = z
z[0], z[1] = (z[1], z[0]); r = z
z += x; r = z
w = z; w += x; r = z
w = z; w *= 1j; r = z
w = z; w /= 2; r = z
w = z; w -= x; r = z
w = z; w **= 2; r = z
z[np.abs(z) > 2] = 0; r = z
z[z.real > 1] *= 2; r = z
w = np.where(x > 0, z, 0); w[0] = 0; r = z
r = z @ z
r = z ** x
r = z ** 0.5
r = z == z
r = np.empty_like(z); r[:] = x
r = z[None].squeeze()
z = np.fft.rfft(x); z[0] = 0; r = np.fft.irfft(z, 4)
z = np.fft.rfft(x); z[1:].real[...] = 0; r = np.fft.irfft(z, 4)
z = np.fft.rfft(x); z.imag[1] = x[0]; r = np.fft.irfft(z, 4)
z = np.fft.fft(x); z.real = np.abs(z); r = np.fft.ifft(z)
z = np.fft.fft(x); z = z / np.abs(z); r = z
z = np.zeros_like(x + 0j); z[1] = x[0]; z.real[2] = x[1]; r = z
z = np.zeros_like(x, dtype=complex); z[1] = x[0] * 1j; r = z
z = np.zeros_like(x, dtype=complex); z.real = x; z.imag = x ** 2; r = z
v = z.real; z += 1; r = v * 1
v = z.real; z *= 2; r = v * 1
v = z.real; z[:] = x; r = v * 1
v = z.imag; z *= 1j; r = v * 1
v = z[1:]; z *= 1j; r = v * 1
z.real.fill(2.0); r = z * x
z.real.sort(); r = z * x
np.add(z, x, out=z); r = z * x
np.multiply(z, 1j, out=z); r = z * x
np.add(x, x, out=z.real); r = z * x
np.copyto(z, x); r = z * x
np.add.at(z, [0, 0], x[0]); r = z * x
z[..., 0] = 0; r = z
z = z.reshape(2, 2); z[:, 0] = x[:2]; r = z
z = z.reshape(2, 2); z[0] += x[:2]; r = z
z = z.reshape(2, 2); r = z.conj().T @ z
z = z.reshape(2, 2); r = np.einsum("ij,jk", z, z)
z = z.reshape(2, 2); r = np.linalg.norm(z)
z = z.reshape(2, 2); r = np.linalg.inv(z)
z = z.reshape(2, 2); r = np.linalg.solve(z, x[:2])
z = z.reshape(2, 2); r = np.linalg.cholesky(z @ z.conj().T + np.eye(2))
z = z.reshape(2, 2); r = np.triu(z)
z = z.reshape(2, 2); r = np.tensordot(z, z)
z = z.reshape(2, 2); r = np.swapaxes(z, 0, 1)
z = z.reshape(2, 2); r = np.moveaxis(z, 0, 1)
z = z.reshape(2, 2); r = z.transpose(1, 0)
z = z.reshape(2, 2); r = z.sum(axis=0, keepdims=True)
z = z.reshape(2, 2); r = z.mean(axis=1)
z = z.reshape(2, 2); r = z.trace()
z = z.reshape(2, 2); r = z.diagonal()
a = b = z.sum(); a += 1; r = b
a = z[0]; b = a; a *= 2; r = b + z
a = b = z; a += 1; r = b
y = x * 2; y.flat = x ** 2; r = y
z = np.zeros_like(x, complex); z[1] = x[0] * 1j; r = z
z = np.full_like(x, x[0], dtype=complex); r = z
z = np.ones_like(x, dtype=complex) * x; r = z
z = np.zeros_like(x + 0j, shape=(2,)); z[0] = x[0]; r = z
z = np.zeros_like(x, dtype=float); z[1] = x[0]; r = z
o = np.zeros_like(z); np.add(z, 1, out=o); r = o
o = np.zeros_like(x); np.abs(z, out=o); r = o
o = np.zeros_like(z); np.sum(z.reshape(2, 2), axis=0, out=o[:2]); r = o
o = np.zeros_like(z); np.exp(z, o); r = o
np.exp(z, out=z); r = z
np.multiply(z, z, out=z); r = z
np.multiply(z[1:], z[:-1], out=z[1:]); r = z
z[1:] *= z[:-1]; r = z
z[:] = z[::-1]; r = z
z += z[::-1]; r = z
np.copyto(z, x, where=x > 0); r = z
r = z[0].real * x
r = z[-1].imag * x
r = z[0] * z[1]
r = z[0] ** 2
r = z @ np.ones((4, 2))
r = z[None, :] * z[:, None]
r = z[np.newaxis]
w = z.flatten("F"); r = w
z = z.reshape(2, 2); w = z.flatten("F"); w[0] = 0; r = z + w.reshape(2, 2)
z = z.reshape(2, 2); r = z.ravel("F")
z = z.reshape(2, 2); r = z.reshape(4, order="F")
""".strip().splitlines()
