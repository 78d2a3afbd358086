"""Linear tapes: the derivative of recorded rows at one point, as numbers that sweeps read both ways."""
