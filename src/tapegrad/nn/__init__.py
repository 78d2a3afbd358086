"""The small part of neural-network building blocks that differentiating scripts need."""

from tapegrad.nn import functional
from tapegrad.nn.activation import ReLU, Sigmoid, Softmax, Tanh
from tapegrad.nn.container import Sequential
from tapegrad.nn.linear import Linear
from tapegrad.nn.module import Module
from tapegrad.nn.parameter import Parameter

__all__ = ["Linear", "Module", "Parameter", "ReLU", "Sequential", "Sigmoid", "Softmax", "Tanh", "functional"]
