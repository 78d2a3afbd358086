"""What threads need: the package's locks, in the order in which they are taken one inside the other, and what each has of its own.

A fork waits for all of the locks.
"""

from __future__ import annotations

import _thread  # `threading` takes a millisecond of each process, and has these from here
from _thread import RLock

__all__ = [
    "IN_ORDER",
    "OfThread",
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

OfThread = _thread._local  # what each thread has of its own

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
