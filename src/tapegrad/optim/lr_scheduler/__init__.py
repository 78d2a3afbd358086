"""Schedules of learning rates, to be stepped after the optimiser."""

from tapegrad.optim.lr_scheduler.annealing import CosineAnnealingLR, LinearLR, PolynomialLR
from tapegrad.optim.lr_scheduler.composed import ChainedScheduler, SequentialLR
from tapegrad.optim.lr_scheduler.cyclic import CyclicLR
from tapegrad.optim.lr_scheduler.functions import LambdaLR, MultiplicativeLR
from tapegrad.optim.lr_scheduler.one_cycle import OneCycleLR
from tapegrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tapegrad.optim.lr_scheduler.restarts import CosineAnnealingWarmRestarts
from tapegrad.optim.lr_scheduler.schedule import LRScheduler
from tapegrad.optim.lr_scheduler.steps import ConstantLR, ExponentialLR, MultiStepLR, StepLR

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
