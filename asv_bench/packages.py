"""Fits of lifelines and pymanopt on tapegrad, beside the same on autograd: milliseconds of the processor a fit.

``python asv_bench/packages.py [--rounds N] [--only text]``, where the packages and autograd are installed (``make packages``). Both
libraries are processes of their own, that take turns in every round; a figure is the median. The last column is how many times
longer the fit takes on autograd. A remark says where results differ by more than 1e-6.
"""

from __future__ import annotations

from benchmarks import package_fits
from problems import options_of, print_table

if __name__ == "__main__":
    print_table(package_fits.__name__, "fit", ["autograd"], options_of(__doc__))
