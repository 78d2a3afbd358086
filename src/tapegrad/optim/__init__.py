"""Optimisers: they update parameters in place from their gradients."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places

if _TYPE_CHECKING:
    from tapegrad.optim import lr_scheduler
    from tapegrad.optim.adadelta import Adadelta
    from tapegrad.optim.adagrad import Adagrad
    from tapegrad.optim.adam import Adam
    from tapegrad.optim.adamax import Adamax
    from tapegrad.optim.adamw import AdamW
    from tapegrad.optim.asgd import ASGD
    from tapegrad.optim.lbfgs import LBFGS
    from tapegrad.optim.nadam import NAdam
    from tapegrad.optim.optimizer import Optimizer
    from tapegrad.optim.radam import RAdam
    from tapegrad.optim.rmsprop import RMSprop
    from tapegrad.optim.rprop import Rprop
    from tapegrad.optim.sgd import SGD

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]

_names = _NamesOnDemand(
    globals(),
    _places(
        {
            "optim.lr_scheduler": ".",
            "optim.adadelta": ". Adadelta",
            "optim.adagrad": ". Adagrad",
            "optim.adam": ". Adam",
            "optim.adamax": ". Adamax",
            "optim.adamw": ". AdamW",
            "optim.asgd": ". ASGD",
            "optim.lbfgs": ". LBFGS",
            "optim.nadam": ". NAdam",
            "optim.optimizer": ". Optimizer",
            "optim.radam": ". RAdam",
            "optim.rmsprop": ". RMSprop",
            "optim.rprop": ". Rprop",
            "optim.sgd": ". SGD",
        }
    ),
)


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
