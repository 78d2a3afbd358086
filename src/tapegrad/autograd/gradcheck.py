"""Gradients compared with central differences: `gradcheck` and `gradgradcheck`, as in `torch.autograd`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tapegrad.grad_mode import enable_grad
from tapegrad.tensor import Tensor, array_of, promote, wrap

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Array = np.ndarray[Any, Any]


class GradcheckError(RuntimeError):
    """Gradients that disagree with central differences, or with themselves."""


def _gradients(*arguments: Any, **settings: Any) -> Any:
    from tapegrad.autograd.passes import grad  # this file is imported with the package

    return grad(*arguments, **settings)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of a function against central differences.

    Parameters
    ----------
    func : callable
        Maps the inputs to a tensor, or a tuple or list of them.
    inputs : Tensor or sequence
        Arguments of `func`; tracked tensors are differentiated, and should be float64.
    eps : float
        Step of the differences.
    atol, rtol : float
        Gradients ``a`` agree with differences ``n`` if ``abs(a - n) <= atol + rtol * abs(n)``, element by element.
    raise_exception : bool
        Raise if a check fails, instead of returning False.
    nondet_tol : float
        By how much two passes over the same graph may differ.
    check_undefined_grad : bool
        Check that an output without a gradient counts as one whose gradient is zero.
    check_grad_dtypes : bool
        Check that gradients have the dtypes of their inputs.
    check_backward_ad : bool
        Must be True; reverse mode is all there is to check.
    check_batched_grad, check_batched_forward_grad, check_forward_ad : bool
        Must be False: there is neither batched nor forward differentiation of tensors.
    fast_mode : bool
        Compare one random projection of each Jacobian instead of all its elements: two calls of `func` for each input, but a small
        error in few of many elements may stay below `rtol`.
    masked : bool, optional
        Changes nothing; it tells how PyTorch treats sparse tensors.

    Returns
    -------
    bool
        Whether all checks passed.

    Raises
    ------
    GradcheckError
        If one failed.
    ValueError
        If no input is tracked.
    RuntimeError
        If elements of an input share memory.
    NotImplementedError
        If a check is asked for that does not exist.

    Warns
    -----
    UserWarning
        If a tracked input is not float64.

    Notes
    -----
    `func` is called twice for each element of the tracked inputs, whose memory is written for it and then restored: what it reaches
    otherwise than by its arguments (parameters of a module) moves as well. In the end values, flags and ``.grad`` are as before.

    Examples
    --------
    >>> x = tg.tensor([0.5, 1.5], requires_grad=True)
    >>> tg.autograd.gradcheck(lambda x: x.exp() * x[0], x)
    True
    """
    if not check_backward_ad:
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_forward_ad or check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError(
            "gradcheck: check_forward_ad, check_batched_grad and check_batched_forward_grad must be False; tapegrad has neither "
            "forward nor batched differentiation of Tensors"
        )
    arguments = _sequence(inputs)
    tracked = _tracked_inputs(arguments)
    check = _Check(func, arguments, tracked, eps, atol, rtol)
    try:
        with enable_grad():
            check.run(nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the second derivatives of a function: gradients of its gradients against central differences.

    Parameters
    ----------
    grad_outputs : Tensor or sequence of Tensor, optional
        Seeds of the outputs, which are differentiated too if they are tracked; random and tracked by default.
    gen_non_contig_grad_outputs : bool
        Let the random seeds lie in memory with gaps.
    check_fwd_over_rev, check_rev_over_rev : bool
        Must be False and True.

    Returns
    -------
    bool
        Whether all checks passed.

    Raises
    ------
    GradcheckError
        If one failed.

    See Also
    --------
    gradcheck : the other parameters and errors are as there.

    Examples
    --------
    >>> x = tg.tensor([0.5, 1.5], requires_grad=True)
    >>> tg.autograd.gradgradcheck(lambda x: x.exp() * x[0], x)
    True
    """
    if not check_rev_over_rev:
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_fwd_over_rev:
        raise NotImplementedError(
            "gradgradcheck: check_fwd_over_rev must be False; tapegrad has no forward-mode differentiation of Tensors"
        )
    arguments = _sequence(inputs)
    if grad_outputs is None:
        outputs = [y for y in _outputs(func(*arguments)) if y.requires_grad]
        seeds = _random_seeds(outputs, gen_non_contig_grad_outputs)
    else:
        seeds = _sequence(grad_outputs)

    def gradients(*both: Any) -> tuple[Tensor, ...]:
        own = both[: len(arguments)]
        outputs = [y for y in _outputs(func(*own)) if y.requires_grad]
        wanted = [x for x in own if isinstance(x, Tensor) and x.requires_grad]
        found = _gradients(outputs, wanted, both[len(arguments) :], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients if seeds else func,  # without seeds nothing is tracked, and nothing may vary
        arguments + seeds,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        masked=masked,
    )


def _sequence(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _outputs(returned: Any) -> tuple[Tensor, ...]:
    outputs = _sequence(returned)
    for index, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            raise TypeError(f"gradcheck expects func to return Tensors, but output {index} has type {type(output).__name__}")
    return outputs


def _random_seeds(outputs: Sequence[Tensor], with_gaps: bool) -> tuple[Tensor, ...]:
    rng = np.random.default_rng(0)
    seeds = []
    for y in outputs:
        memory = rng.uniform(-1.0, 1.0, (*y.shape, 2)).astype(array_of(y).dtype)
        values = memory[..., 0]
        seeds.append(wrap(values if with_gaps else values.copy()).requires_grad_())
    return tuple(seeds)


def _tracked_inputs(arguments: tuple[Any, ...]) -> dict[int, Tensor]:
    """The inputs that are differentiated, by place."""
    tracked = {k: x for k, x in enumerate(arguments) if isinstance(x, Tensor) and x.requires_grad}
    if not tracked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for k, x in tracked.items():
        array = array_of(x)
        if array.dtype != np.float64:
            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point or complex. This check will likely "
                "fail if all the inputs are not of double precision floating point or complex.",
                UserWarning,
                stacklevel=3,
            )
        if any(stride == 0 and extent > 1 for stride, extent in zip(array.strides, array.shape, strict=True)):
            raise RuntimeError(
                f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be "
                "able to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )
    return tracked


@contextmanager
def _restored(array: Array) -> Iterator[None]:
    before = array.copy()
    try:
        yield
    finally:
        array[...] = before


class _Check:
    """A function at a point, with its gradients by both ways."""

    def __init__(
        self, func: Callable[..., Any], arguments: tuple[Any, ...], tracked: dict[int, Tensor], eps: float, atol: float, rtol: float
    ) -> None:
        self.func, self.arguments, self.tracked = func, arguments, tracked
        self.eps, self.atol, self.rtol = eps, atol, rtol

    def run(self, nondet_tol: float, undefined: bool, dtypes: bool, fast: bool) -> None:
        """Make all checks.

        Raises
        ------
        GradcheckError
            If one fails.
        """
        outputs = _outputs(self.func(*self.arguments))
        places = [k for k, y in enumerate(outputs) if y.requires_grad]
        if not places:
            every = [k for k, y in enumerate(outputs) if array_of(y).dtype.kind == "f"]
            if any(np.any(block) for x in self.tracked.values() for block in self.numerical(x, every)):
                raise GradcheckError("Numerical gradient for function expected to be zero, since no output requires grad")
            return
        (self.check_projections if fast else self.check_elements)(outputs, places, nondet_tol)
        if undefined:
            self.check_undefined(outputs, places)
        if dtypes:
            self.check_dtypes(outputs, places)

    def values(self, places: Sequence[int]) -> list[Array]:
        """Values of some outputs at the point as it stands."""
        outputs = _outputs(self.func(*self.arguments))
        return [array_of(outputs[k]).astype(np.float64) for k in places]

    def difference(self, move: Callable[[float], None], places: Sequence[int]) -> list[Array]:
        """Central difference quotients of some outputs."""
        move(self.eps)
        above = self.values(places)
        move(-self.eps)
        below = self.values(places)
        return [(a - b) / (2.0 * self.eps) for a, b in zip(above, below, strict=True)]

    def numerical(self, x: Tensor, places: Sequence[int]) -> list[Array]:
        """Jacobians, one for each of some outputs: a row for each element of the input."""
        array = promote(x)
        rows = []
        with _restored(array):
            for place in np.ndindex(array.shape):
                value = array[place]

                def move(step: float, place: Any = place, value: Any = value) -> None:
                    array[place] = value + step

                rows.append([quotient.reshape(-1) for quotient in self.difference(move, places)])
                array[place] = value
        if not rows:
            return [np.zeros((0, 0)) for _ in places]
        return [np.array([row[k] for row in rows]) for k in range(len(places))]

    def gradients(self, output: Tensor, seed: Array) -> list[Array]:
        """Gradients with respect to the tracked inputs, zero where there is no dependence."""
        found = _gradients(output, list(self.tracked.values()), wrap(seed), retain_graph=True, allow_unused=True)
        return [np.zeros(x.shape) if g is None else array_of(g) for x, g in zip(self.tracked.values(), found, strict=True)]

    def analytical(self, output: Tensor) -> list[Array]:
        """Jacobians of one output, one for each tracked input: a row for each element of the input."""
        blocks = [np.zeros((x.numel(), output.numel())) for x in self.tracked.values()]
        for place in range(output.numel()):
            seed = np.zeros(output.shape, array_of(output).dtype)
            seed.reshape(-1)[place] = 1.0
            for block, g in zip(blocks, self.gradients(output, seed), strict=True):
                block[:, place] = g.reshape(-1)
        return blocks

    def agree(self, analytical: Any, numerical: Any, atol: float) -> bool:
        """Whether both ways give the same."""
        return bool(np.allclose(analytical, numerical, rtol=self.rtol, atol=atol))

    def check_elements(self, outputs: tuple[Tensor, ...], places: list[int], nondet_tol: float) -> None:
        """Compare all elements of all Jacobians."""
        numerical = {i: self.numerical(x, places) for i, x in self.tracked.items()}
        for number, k in enumerate(places):
            first, again = self.analytical(outputs[k]), self.analytical(outputs[k])
            for i, a, b in zip(self.tracked, first, again, strict=True):
                n = numerical[i][number].reshape(a.shape)
                if not self.agree(a, n, self.atol):
                    raise GradcheckError(f"{_mismatch(k, i)}numerical:{_text(n)}\nanalytical:{_text(a)}\n")
                self.check_reentrant(a, b, nondet_tol)

    def check_reentrant(self, first: Array, again: Array, nondet_tol: float) -> None:
        """Compare two passes over one graph."""
        if first.size and not np.max(np.abs(first - again)) <= nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
                "values, although analytical gradient matches numerical gradient. The tolerance for nondeterminism was "
                f"{nondet_tol}; give a larger nondet_tol if the difference is to be expected."
            )

    def check_projections(self, outputs: tuple[Tensor, ...], places: list[int], nondet_tol: float) -> None:
        """Compare ``v @ J @ u`` for random u and v, one pair for each Jacobian."""
        rng = np.random.default_rng(0)
        weights = [_direction(rng, outputs[k].shape) for k in places]
        passes = [
            [self.gradients(outputs[k], v.astype(array_of(outputs[k]).dtype)) for _ in range(2)]
            for k, v in zip(places, weights, strict=True)
        ]
        for number, (i, x) in enumerate(self.tracked.items()):
            u, array = _direction(rng, x.shape), promote(x)
            start = array.copy()

            def move(step: float, array: Array = array, start: Array = start, u: Array = u) -> None:
                array[...] = start + step * u

            with _restored(array):
                quotients = self.difference(move, places)
            for k, v, quotient, (first, again) in zip(places, weights, quotients, passes, strict=True):
                n, a = float(np.sum(v * quotient)), float(np.sum(first[number] * u))
                # An error of atol in every element.
                if not self.agree(a, n, self.atol * float(np.sum(np.abs(u))) * float(np.sum(np.abs(v)))):
                    slow_n, slow_a = self.numerical(x, [k])[0], self.analytical(outputs[k])[number]
                    raise GradcheckError(
                        f"{_mismatch(k, i)}numerical:{n}\nanalytical:{a}\n\nThese are projections (fast mode). All elements:\n"
                        f"numerical:{_text(slow_n.reshape(slow_a.shape))}\nanalytical:{_text(slow_a)}\n"
                    )
                self.check_reentrant(first[number], again[number], nondet_tol)

    def check_undefined(self, outputs: tuple[Tensor, ...], places: list[int]) -> None:
        """Compare an output alone with the same output beside others whose gradients are zero."""
        if len(places) == 1:
            return
        chosen, inputs = [outputs[k] for k in places], list(self.tracked.values())
        for k, alone in zip(places, chosen, strict=True):
            seeds = [wrap(np.full_like(array_of(y), float(y is alone))) for y in chosen]
            beside = _gradients(chosen, inputs, seeds, retain_graph=True, allow_unused=True, materialize_grads=True)
            expected = self.gradients(alone, np.ones_like(array_of(alone)))
            for i, g, e in zip(self.tracked, beside, expected, strict=True):
                if g is None or not self.agree(array_of(g), e, self.atol):
                    raise GradcheckError(
                        f"Expected an undefined gradient to count as zero, but the gradient of output {k} with respect to input "
                        f"{i} is another one when the other outputs are given zero gradients."
                    )

    def check_dtypes(self, outputs: tuple[Tensor, ...], places: list[int]) -> None:
        """Compare the dtypes of gradients with those of the inputs."""
        for k in places:
            seed = wrap(np.ones_like(array_of(outputs[k])))
            found = _gradients(outputs[k], list(self.tracked.values()), seed, retain_graph=True, allow_unused=True)
            for (i, x), g in zip(self.tracked.items(), found, strict=True):
                if g is not None and g.dtype != x.dtype:
                    raise GradcheckError(
                        f"The gradient of output {k} with respect to input {i} is {g.dtype}, but the input {x.dtype}"
                    )


def _direction(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A random direction of length one; no element is so small that its derivative is not seen."""
    u: Array = np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape))
    return u / max(float(np.sqrt(np.sum(u * u))), 1e-300)


def _mismatch(output: int, input: int) -> str:
    return f"Jacobian mismatch for output {output} with respect to input {input},\n"


def _text(block: Array) -> str:
    return repr(wrap(np.array(block)))
