"""Drop-in for HIPS autograd: with this module imported, ``import autograd`` means tapegrad.

Importing it, ``python -m tapegrad.as_autograd script.py`` and ``pytest -p tapegrad.as_autograd`` do the same: ``autograd`` and its
modules are found here from then on, with autograd's names, arguments and results. An `autograd` that was imported before stays what
it is, and a warning says so.

Examples
--------
>>> import tapegrad.as_autograd
>>> import autograd.numpy as anp
>>> from autograd import grad
>>> grad(lambda x: anp.sum(anp.tanh(x) ** 2))(anp.array([0.0, 1.0])).round(6)
array([0.    , 0.6397])
"""

from tapegrad.as_autograd.finder import install as _install

_install()
