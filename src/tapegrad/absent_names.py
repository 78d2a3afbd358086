"""Names of PyTorch that are not here and will not come: what to write instead, for the error of who asks for them.

Looked at when a name is not found, by `NamesOnDemand` and for tensors: asking by `hasattr` is told the truth.
"""

from __future__ import annotations

__all__ = ["advice"]

_COMPLEX = "tensors are real; functions of NumPy's arrays under a driver such as tg.grad compute with complex numbers"
_SPARSE = "tensors are dense; tg.sparse has sparse Jacobians and Hessians, as SciPy's arrays"
_QUANTISED = "there are no quantised tensors; write x.div(scale).round().clamp(low, high)"
_CPU = "there is the CPU only; leave it away"
_HALF = "the dtypes that are differentiated are tg.float32 and tg.float64; write x.float()"
_MIXED = "operations keep the dtypes of their operands; leave it away, or write x.float()"
_COMPILED = "write tg.program(f), or Numba's @njit and tg.njit_op(f)"
_FOURIER = "write np.fft in a function of NumPy's arrays under a driver such as tg.grad"
_STORAGE = "the memory of a tensor is that of a NumPy array: x.numpy()"
_WORKERS = "write tg.parallel.sum_over, or tg.program(f).map(points, executor=...)"
_FORWARD = "write tg.jvp(f, x, v) or tg.linearize(f, x)"

_OF_THE_PACKAGE = {
    "cdouble cfloat chalf complex complex128 complex32 complex64 imag polar view_as_complex view_as_real": _COMPLEX,
    "hspmm smm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo sparse_coo_tensor sparse_csc_tensor "
    "sparse_csr sparse_csr_tensor spmm sspaddmm": _SPARSE,
    "ao dequantize fake_quantize_per_tensor_affine qint32 qint8 quantization quantize_per_channel quantize_per_tensor "
    "quint8": _QUANTISED,
    "accelerator backends cuda mps mtia set_default_device xpu": _CPU,
    "bfloat16": _HALF,
    "amp autocast get_autocast_dtype is_autocast_enabled": _MIXED,
    "compile export fx jit": _COMPILED,
    "bartlett_window blackman_window fft hamming_window hann_window istft kaiser_window signal stft": _FOURIER,
    "storage": _STORAGE,
    "distributed futures multiprocessing": _WORKERS,
    "distributions": "write the logarithm of the density, with tg.special where it needs more than tg.lgamma",
    "func": "write tg.grad, tg.jacobian, tg.hessian, tg.vjp, tg.jvp: functions of NumPy's arrays",
    "vmap": "write operations on whole arrays, or tg.program(f).map(points)",
    "eig": "general matrices have complex eigenvalues: write tg.linalg.eigh for symmetric ones, or np.linalg.eig under a driver",
    "symeig": "write tg.linalg.eigh",
    "lstsq": "write tg.linalg.lstsq",
    "lu": "write tg.linalg.lu_factor",
    "lu_solve": "write tg.linalg.lu_solve",
    "matrix_rank": "write tg.linalg.matrix_rank",
    "solve": "write tg.linalg.solve",
    "triangular_solve": "write tg.linalg.solve_triangular",
    "set_default_tensor_type": "write tg.set_default_dtype",
    "set_num_threads get_num_threads": "NumPy's linear algebra has the threads that OMP_NUM_THREADS sets before Python starts",
    "set_printoptions": "tensors print as PyTorch's do by default; write x.numpy() for NumPy's options",
    "use_deterministic_algorithms": "all algorithms are deterministic; leave it away",
}
_OF_TENSORS = {
    "cdouble cfloat chalf imag": _COMPLEX,
    "ccol_indices coalesce col_indices crow_indices dense_dim indices row_indices smm sparse_dim sparse_mask sspaddmm to_dense "
    "to_sparse to_sparse_coo to_sparse_csc to_sparse_csr values": _SPARSE,
    "dequantize int_repr q_scale q_zero_point qscheme": _QUANTISED,
    "cuda ipu mtia pin_memory record_stream to_mkldnn xpu": _CPU,
    "bfloat16 half": _HALF,
    "istft stft": _FOURIER,
    "resize_ resize_as_ set_ share_memory_ storage storage_type untyped_storage": _STORAGE,
    "lstsq": "write tg.linalg.lstsq",
    "lu": "write tg.linalg.lu_factor(x)",
    "lu_solve": "write tg.linalg.lu_solve",
    "solve": "write tg.linalg.solve",
    "symeig": "write tg.linalg.eigh(x)",
    "triangular_solve": "write tg.linalg.solve_triangular",
    "apply_ map_ map2_": "write operations on whole tensors, or Numba's @vectorize and tg.njit_op",
}
_OF_LAYERS = {
    "MultiheadAttention Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer": (
        "write tg.nn.Linear and tg.nn.functional.scaled_dot_product_attention"
    ),
    "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d "
    "LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear UninitializedParameter": (
        "write the layer with its sizes, as tg.nn.Linear(in_features, out_features)"
    ),
    "DataParallel SyncBatchNorm parallel": _WORKERS,
    "intrinsic qat quantizable quantized": _QUANTISED,
    "EmbeddingBag": "write tg.nn.Embedding and a sum, mean or max of what it gives",
    "NLLLoss2d": "write tg.nn.NLLLoss",
    "CrossMapLRN2d": "write tg.nn.LocalResponseNorm",
    "Container": "write tg.nn.Module",
}
_OF_FUNCTIONS_OF_LAYERS = {
    "upsample upsample_bilinear upsample_nearest": "write tg.nn.functional.interpolate",
    "embedding_bag": "write tg.nn.functional.embedding and a sum, mean or max of what it gives",
    "multi_head_attention_forward": "write tg.nn.functional.scaled_dot_product_attention",
}
_OF_OPTIMISERS = {
    "SparseAdam": "gradients are dense; write tg.optim.Adam",
    "Adafactor Muon": "write tg.optim.AdamW",
    "swa_utils": "keep the mean yourself, with tg.no_grad() and mean.lerp_(p, 1 / count), or write tg.optim.ASGD",
}
_OF_LINEAR_ALGEBRA = {
    "eig eigvals": _OF_THE_PACKAGE["eig"],
    "ldl_factor ldl_factor_ex ldl_solve": "write tg.linalg.lu_factor and tg.linalg.lu_solve",
    "householder_product": "write tg.linalg.qr",
}
_OF_DERIVATIVES = {"forward_ad": _FORWARD, "profiler": "write tg.profile()"}

_BY_MODULE = {
    "tapegrad": _OF_THE_PACKAGE,
    "Tensor": _OF_TENSORS,
    "tapegrad.nn": _OF_LAYERS,
    "tapegrad.nn.functional": _OF_FUNCTIONS_OF_LAYERS,
    "tapegrad.optim": _OF_OPTIMISERS,
    "tapegrad.linalg": _OF_LINEAR_ALGEBRA,
    "tapegrad.autograd": _OF_DERIVATIVES,
}


def advice(place: str) -> dict[str, str]:
    """What to write instead of the names that a module, or ``"Tensor"``, does not have."""
    return {name: text for names, text in _BY_MODULE.get(place, {}).items() for name in names.split()}
