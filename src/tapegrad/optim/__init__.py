"""Optimisers: they update parameters in place from their gradients."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places

if _TYPE_CHECKING:
    from tapegrad.optim import lr_scheduler
    from tapegrad.optim.adagrad import Adagrad
    from tapegrad.optim.adam import Adam
    from tapegrad.optim.adamw import AdamW
    from tapegrad.optim.lbfgs import LBFGS
    from tapegrad.optim.optimizer import Optimizer
    from tapegrad.optim.rmsprop import RMSprop
    from tapegrad.optim.sgd import SGD

__all__ = ["LBFGS", "SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]

_names = _NamesOnDemand(
    globals(),
    _places(
        {
            "optim.lr_scheduler": ".",
            "optim.adagrad": ". Adagrad",
            "optim.adam": ". Adam",
            "optim.adamw": ". AdamW",
            "optim.lbfgs": ". LBFGS",
            "optim.optimizer": ". Optimizer",
            "optim.rmsprop": ". RMSprop",
            "optim.sgd": ". SGD",
        }
    ),
)


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
