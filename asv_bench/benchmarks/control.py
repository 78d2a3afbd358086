"""No code of ours: if this moves between two runs, the machine did."""

import numpy as np


class Control:
    """NumPy alone."""

    def setup(self) -> None:
        self.values = np.random.default_rng(0).standard_normal(10**6)

    def time_numpy_exp(self) -> None:
        np.exp(self.values)
