"""Speed and memory of tapegrad, and of its peers where they are installed; all on one core."""

import os

# Here, because NumPy and the peers read these once, when they are imported.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# For the peers that start threads whatever they are told.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
