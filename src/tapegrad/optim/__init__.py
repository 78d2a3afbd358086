"""Optimisers: they update parameters in place from their gradients."""

from tapegrad.optim import lr_scheduler
from tapegrad.optim.adagrad import Adagrad
from tapegrad.optim.adam import Adam
from tapegrad.optim.adamw import AdamW
from tapegrad.optim.lbfgs import LBFGS
from tapegrad.optim.optimizer import Optimizer
from tapegrad.optim.rmsprop import RMSprop
from tapegrad.optim.sgd import SGD

__all__ = ["LBFGS", "SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
