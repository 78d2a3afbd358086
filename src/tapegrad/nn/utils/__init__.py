"""What is done to the parameters of a module, or their gradients, as a whole."""

from tapegrad.nn.utils.clipping import clip_grad_norm_, clip_grad_value_
from tapegrad.nn.utils.parameter_vectors import parameters_to_vector, vector_to_parameters

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]
