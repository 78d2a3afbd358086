"""One thread of BLAS in all processes of the tests, unless the environment says otherwise; imported before NumPy.

Threads of matrix products wait by turning round and round: with as many in each worker as there are processors, workers take the
processors from each other, and singular values of a small matrix take a second. And with several, last digits of solutions are
others.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
