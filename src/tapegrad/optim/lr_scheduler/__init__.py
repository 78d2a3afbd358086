"""Schedules of learning rates, to be stepped after the optimiser."""

from tapegrad.optim.lr_scheduler.annealing import CosineAnnealingLR, LinearLR
from tapegrad.optim.lr_scheduler.one_cycle import OneCycleLR
from tapegrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tapegrad.optim.lr_scheduler.schedule import LambdaLR, LRScheduler
from tapegrad.optim.lr_scheduler.steps import ExponentialLR, MultiStepLR, StepLR

__all__ = [
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "StepLR",
]
