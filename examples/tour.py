"""A walk through computation graphs: what is recorded, what a backward pass does with it, and what is left afterwards.

Run it with ``python examples/tour.py``. Every section is one function that can be read by itself; what it prints as a
fact it has asserted first.
"""

import warnings

import tapegrad as tg


def building_a_graph() -> None:
    """y = (x + w)(w + 1), operation by operation."""
    x = tg.tensor([2.0], requires_grad=True)
    w = tg.tensor([1.0], requires_grad=True)

    # Each line computes its value at once, and because x and w ask for gradients, also notes how it was made.
    a = tg.add(x, w)
    b = tg.add(w, 1)
    y = tg.mul(a, b)
    print("y = (x + w)(w + 1) =", y)

    # w reaches y along two paths, through a and through b; the chain rule adds them up:
    # dy/dw = b + a = (w + 1) + (x + w) = 5, and dy/dx = b = 2.
    y.backward()
    assert w.grad.item() == 5.0
    assert x.grad.item() == 2.0
    print("dy/dw =", w.grad, " dy/dx =", x.grad)


def leaves() -> None:
    """Tensors that the user made are leaves; backward leaves gradients in them only."""
    x = tg.tensor([2.0], requires_grad=True)
    w = tg.tensor([1.0], requires_grad=True)
    a, b = x + w, w + 1
    y = a * b
    y.backward()

    print("is_leaf        x, w, a, b, y:", *(t.is_leaf for t in (x, w, a, b, y)))
    assert [t.is_leaf for t in (x, w, a, b, y)] == [True, True, False, False, False]

    # Nobody asked for a, b and y to be tracked; they are because something they depend on is.
    print("requires_grad  x, w, a, b, y:", *(t.requires_grad for t in (x, w, a, b, y)))
    assert all(t.requires_grad for t in (x, w, a, b, y))

    # The gradients of results are given back as soon as they have been passed on. Asking for one gets a hint.
    with warnings.catch_warnings(record=True) as hints:
        warnings.simplefilter("always")
        gradient_of_a = a.grad
    assert gradient_of_a is None
    assert len(hints) == 1
    print("a.grad is", gradient_of_a, "- and the library says:", str(hints[0].message)[:77], "...")


def how_a_tensor_was_made() -> None:
    """`grad_fn` names the operation behind a result, and leads on to those before it."""
    x = tg.tensor([2.0], requires_grad=True)
    w = tg.tensor([1.0], requires_grad=True)
    a, b = x + w, w + 1
    y = a * b

    print("x.grad_fn, w.grad_fn:", x.grad_fn, w.grad_fn)
    print("a.grad_fn, b.grad_fn, y.grad_fn:", a.grad_fn.name(), b.grad_fn.name(), y.grad_fn.name())
    assert x.grad_fn is None
    assert (a.grad_fn.name(), y.grad_fn.name()) == ("AddBackward0", "MulBackward0")

    # One step back from y are a and b; one step back from a are the two leaves.
    (before_a, _), (before_b, _) = y.grad_fn.next_functions
    assert before_a is a.grad_fn
    assert before_b is b.grad_fn
    to_the_leaves = [node.name() for node, _ in a.grad_fn.next_functions]
    print("before y:", before_a.name(), "and", before_b.name(), "- before a:", " and ".join(to_the_leaves))
    assert a.grad_fn.next_functions[0][0].variable is x


def keeping_the_gradient_of_a_result() -> None:
    """`retain_grad` before the backward pass keeps what would be given back."""
    x = tg.tensor([2.0], requires_grad=True)
    w = tg.tensor([1.0], requires_grad=True)
    a, b = x + w, w + 1
    a.retain_grad()
    b.retain_grad()
    y = a * b
    y.backward()

    # dy/da = b and dy/db = a.
    assert (a.grad.item(), b.grad.item()) == (2.0, 3.0)
    print("dy/da =", a.grad, " dy/db =", b.grad)


def gradients_add_up() -> None:
    """A leaf's gradient is added to by every backward pass until somebody clears it."""
    x = tg.tensor([2.0], requires_grad=True)
    w = tg.tensor([1.0], requires_grad=True)

    seen = []
    for _ in range(3):
        ((x + w) * (w + 1)).backward()
        seen.append(w.grad.item())
    assert seen == [5.0, 10.0, 15.0]
    print("w.grad after one, two, three passes:", *seen)

    gradient = w.grad
    w.grad.zero_()
    assert w.grad is gradient
    print("after w.grad.zero_():", w.grad, "- still the same object")
    w.grad = None
    ((x + w) * (w + 1)).backward()
    assert w.grad.item() == 5.0
    print("after w.grad = None and one more pass:", w.grad)


def writing_in_place() -> None:
    """A trailing underscore, and ``+=``, change a tensor; ``m = m + 1`` makes another one for the name."""
    m = tg.ones(1)
    original = m
    m.add_(1)
    assert m is original
    m += 1
    assert m is original
    print("after m.add_(1) and m += 1:", m, "- the same object")
    m = m + 1
    assert m is not original
    print("after m = m + 1:", m, "- a new object; the old one still holds", original)

    # A backward pass needs values from the forward pass. If one was written over, it says so instead of being wrong.
    w = tg.tensor([3.0], requires_grad=True)
    factor = tg.tensor([2.0])
    y = w * factor
    factor.zero_()
    try:
        y.backward()
    except RuntimeError as error:
        print("a factor overwritten before backward:", str(error).split(":")[0])
    else:
        raise AssertionError("the overwritten factor went unnoticed")

    # And a leaf that is being tracked must not change under the graph that grows from it.
    try:
        w.add_(1)
    except RuntimeError as error:
        print("w.add_(1) on a tracked leaf:", str(error).split(".")[0])
    else:
        raise AssertionError("the leaf was changed")
    with tg.no_grad():
        w.add_(1)
    assert w.item() == 4.0
    print("the same under no_grad, as an optimiser does it:", w)


def going_backward_twice() -> None:
    """The graph is given back after its first backward pass, unless it is kept on purpose."""
    x = tg.tensor([2.0], requires_grad=True)
    w = tg.tensor([1.0], requires_grad=True)

    y = (x + w) * (w + 1)
    y.backward()
    try:
        y.backward()
    except RuntimeError as error:
        print("second pass:", str(error)[:53], "...")
    else:
        raise AssertionError("the graph was still there")

    w.grad.zero_()
    y = (x + w) * (w + 1)
    y.backward(retain_graph=True)
    first = w.grad.item()
    w.grad.zero_()
    y.backward()
    assert first == w.grad.item() == 5.0
    print("with retain_graph=True the first pass gives", first, "and the second", w.grad.item())


def a_vector_with_weights() -> None:
    """A result of several elements is differentiated along a direction: one weight for each element."""
    x = tg.tensor([2.0], requires_grad=True)
    w = tg.tensor([1.0], requires_grad=True)
    a, b = x + w, w + 1
    y0 = a * b  # dy0/dw = 5
    y1 = a + b  # dy1/dw = 2
    both = tg.cat([y0, y1], dim=0)

    try:
        both.backward()
    except RuntimeError as error:
        print("without weights:", error)
    else:
        raise AssertionError("two elements have no single gradient")
    both.backward(gradient=tg.tensor([1.0, 2.0]))
    assert w.grad.item() == 1 * 5 + 2 * 2
    print("1 * dy0/dw + 2 * dy1/dw =", w.grad)


def derivatives_of_derivatives() -> None:
    """`autograd.grad` returns gradients instead of storing them; with ``create_graph`` they can be differentiated."""
    x = tg.tensor([3.0], requires_grad=True)
    y = tg.pow(x, 2)

    (first,) = tg.autograd.grad(y, x, create_graph=True)
    print("d(x^2)/dx at 3:", first)
    assert first.item() == 6.0
    assert first.requires_grad
    (second,) = tg.autograd.grad(first, x)
    print("d2(x^2)/dx2 at 3:", second)
    assert second.item() == 2.0
    assert x.grad is None

    # To any depth.
    x = tg.tensor(1.0, requires_grad=True)
    value, values = x**5, []
    for _ in range(5):
        (value,) = tg.autograd.grad(value, x, create_graph=True)
        values.append(value.item())
    assert values == [5.0, 20.0, 60.0, 120.0, 120.0]
    print("the derivatives of x^5 at 1:", *values)


def one_row_of_a_jacobian_at_a_time() -> None:
    """Seeds that are zero but in one place pick the gradient of one element of a matrix product."""
    x = tg.Variable(tg.FloatTensor([[1, 2]]), requires_grad=True)
    m = tg.Variable(tg.FloatTensor([[3, 4], [5, 6]]))
    product = tg.mm(x, m)  # [[1*3 + 2*5, 1*4 + 2*6]]
    assert product.tolist() == [[13.0, 16.0]]

    product.backward(tg.FloatTensor([[1, 0]]), retain_graph=True)
    print("gradient of the first element:", x.grad.tolist())
    assert x.grad.tolist() == [[3.0, 5.0]]
    x.grad.data.zero_()
    product.backward(tg.FloatTensor([[0, 1]]))
    print("gradient of the second element:", x.grad.tolist())
    assert x.grad.tolist() == [[4.0, 6.0]]


def a_mean_of_squares() -> None:
    """A mean is one number, so it needs no seed."""
    v = tg.tensor([[1.0, 2.0]], requires_grad=True)
    out = tg.mean(v * v)
    out.backward()
    assert out.item() == 2.5
    assert v.grad.tolist() == [[1.0, 2.0]]
    print("mean of v^2:", out.item(), " its gradient, v itself:", v.grad)


def a_linear_layer() -> None:
    """A layer is a small graph too, whose leaves are its parameters."""
    tg.manual_seed(0)
    net = tg.nn.Linear(3, 4)
    batch = tg.randn(2, 3, requires_grad=True)
    print(net, "on a batch of shape", tuple(batch.shape), "gives shape", tuple(net(batch).shape))

    loss = tg.sum(net(batch))
    loss.backward(retain_graph=True)
    loss.backward()
    # The loss is a sum over two rows, so each bias element counts twice, in each of the two passes.
    assert net.bias.grad.tolist() == [4.0] * 4
    assert net.weight.grad.shape == net.weight.shape
    assert batch.grad.shape == batch.shape
    print("gradient of the bias after two passes:", net.bias.grad)

    # A few steps of gradient descent on a problem that the layer can solve exactly.
    target = batch.detach() @ tg.randn(3, 4)
    for _ in range(500):
        net.zero_grad()
        error = tg.nn.functional.mse_loss(net(batch.detach()), target)
        error.backward()
        with tg.no_grad():
            for parameter in net.parameters():
                parameter -= 0.2 * parameter.grad
    assert error.item() < 1e-6
    print(f"squared error after 500 steps of gradient descent: {error.item():.1e}")


def a_graph_decided_by_a_loop() -> None:
    """The graph is what ran. A ``while`` that looks at values decides how long it gets, anew in every pass."""

    def newton_root(a: tg.Tensor) -> tuple[tg.Tensor, int]:
        guess, steps = a, 0
        while abs(guess * guess - a) > 1e-10 * a:
            guess = (guess + a / guess) / 2
            steps += 1
        return guess, steps

    for start in (2.0, 10.0, 1000.0):
        a = tg.tensor(start, requires_grad=True)
        root, steps = newton_root(a)
        root.backward()
        exact = 0.5 / start**0.5
        assert abs(a.grad.item() - exact) < 1e-9
        print(f"sqrt({start:g}) in {steps} steps: {root.item():.10f}, slope {a.grad.item():.10f} (exact {exact:.10f})")


SECTIONS = (
    building_a_graph,
    leaves,
    how_a_tensor_was_made,
    keeping_the_gradient_of_a_result,
    gradients_add_up,
    writing_in_place,
    going_backward_twice,
    a_vector_with_weights,
    derivatives_of_derivatives,
    one_row_of_a_jacobian_at_a_time,
    a_mean_of_squares,
    a_linear_layer,
    a_graph_decided_by_a_loop,
)


def main() -> None:
    """All sections in order."""
    for number, section in enumerate(SECTIONS, start=1):
        title = section.__name__.replace("_", " ")
        print(f"\n{number}. {title.capitalize()}")
        print(f"   {(section.__doc__ or '').strip()}\n")
        section()


if __name__ == "__main__":
    main()
