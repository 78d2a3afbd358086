"""The loop that optimisers share whose rule takes each parameter with its own state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.optim.optimizer import Optimizer, evaluate
from tapegrad.optim.updating import Rule, gradient_of, next_count, update
from tapegrad.tensors.tensor import Tensor

__all__ = ["ElementwiseOptimizer"]


class ElementwiseOptimizer(Optimizer):
    """Base of optimisers that update every element by itself, from the gradient and from what is kept of earlier ones.

    A subclass names the parts of the state that its rule replaces, makes the state of a parameter in `_started`, and gives the
    rule of a step in `_rule`. Numbers that are kept beside these are written by `_rule`, too.
    """

    kept: tuple[str, ...] = ()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients, in place; see `Optimizer.step`."""
        loss = evaluate(closure)
        for group in self.param_groups:
            for p in group["params"]:
                gradient = gradient_of(p)
                if gradient is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(self._started(group, p))
                count = next_count(state["step"])
                rule, numbers = self._rule(group, count, state)
                update(rule, p, gradient, *[state[name] for name in self.kept])
                state["step"]._data = count
                for name, number in numbers.items():
                    state[name]._data = number
        return loss

    def _started(self, group: dict[str, Any], p: Tensor) -> dict[str, Tensor]:
        """The state of a parameter before its first step, with ``"step"``."""
        raise NotImplementedError(f"{type(self).__name__} defines no _started")

    def _rule(self, group: dict[str, Any], count: float, state: dict[str, Tensor]) -> tuple[Rule, dict[str, float]]:
        """The rule of a step, and the numbers of the state after it."""
        raise NotImplementedError(f"{type(self).__name__} defines no _rule")
