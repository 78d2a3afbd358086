"""Gradients compared with central differences: `gradcheck` and `gradgradcheck`, as in `torch.autograd`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.errors import GradcheckError
from tapegrad.tensors.grad_mode import enable_grad
from tapegrad.tensors.tensor import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


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
    from tapegrad.drivers.difference_checks import Check, sequence, tracked_inputs

    arguments = sequence(inputs)
    tracked = tracked_inputs(arguments)
    check = Check(func, arguments, tracked, eps, atol, rtol)
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
    from tapegrad.autograd.entry_points import grad
    from tapegrad.drivers.difference_checks import outputs_of, random_seeds, sequence

    arguments = sequence(inputs)
    if grad_outputs is None:
        outputs = [y for y in outputs_of(func(*arguments)) if y.requires_grad]
        seeds = random_seeds(outputs, gen_non_contig_grad_outputs)
    else:
        seeds = sequence(grad_outputs)

    def gradients(*both: Any) -> tuple[Tensor, ...]:
        own = both[: len(arguments)]
        outputs = [y for y in outputs_of(func(*own)) if y.requires_grad]
        wanted = [x for x in own if isinstance(x, Tensor) and x.requires_grad]
        found = grad(outputs, wanted, both[len(arguments) :], create_graph=True, allow_unused=True)
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
