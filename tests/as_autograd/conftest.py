"""Tests here import autograd as its users do."""

import tapegrad.as_autograd  # noqa: F401
