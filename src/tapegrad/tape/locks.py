"""The locks of the package, in the order in which they are taken one inside the other; a fork waits for all of them."""

from __future__ import annotations

from threading import RLock

__all__ = [
    "IN_ORDER",
    "anomalies",
    "changing",
    "choosing",
    "gradients",
    "leaves",
    "loading",
    "packing",
    "registering",
    "routes",
    "watching",
]

gradients = RLock()  # the collector may run a finaliser, and that a pass, anywhere
registering = RLock()  # held while a row is given hooks that had none
watching = RLock()  # held while the tensors of a row change
leaves = RLock()  # a leaf has one row, whichever thread uses it first
anomalies = RLock()
packing = RLock()
routes = RLock()
changing = RLock()  # held while columns change their memory; recording never waits for it
loading = RLock()
choosing = RLock()  # the innermost lock, for the collector may end a thread's state anywhere

IN_ORDER = (gradients, registering, watching, leaves, anomalies, packing, routes, changing, loading, choosing)
