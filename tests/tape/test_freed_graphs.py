"""retain_graph, and what may still run once a pass has released what the rows had saved."""

from collections.abc import Callable

import pytest
from engine_fixtures import assert_values, leaf

import tapegrad as tg

grad = tg.autograd.grad
SECOND_TIME = r"(?is)trying to backward through the graph a second time.*already been freed.*retain_graph=True"

SAVES_NOTHING: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "add": lambda x: x + 1.0,
    "add tensors": lambda x: x + x,
    "sub": lambda x: x - 2.0,
    "neg": lambda x: -x,
    "sum": lambda x: x.sum(),
    "sum over an axis": lambda x: x.sum(0),
    "mean": lambda x: x.mean(),
    "cumsum": lambda x: x.cumsum(0),
    "view": lambda x: x.view(4),
    "transpose": lambda x: x.t(),
    "basic index": lambda x: x[0],
    "cat": lambda x: tg.cat([x, x]),
    "stack": lambda x: tg.stack([x, x]),
    "clone": lambda x: x.clone(),
}
SAVES_SOMETHING: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "mul": lambda x: x * x,
    "mul by a number": lambda x: x * 2.0,
    "div by a number": lambda x: x / 4.0,
    "div": lambda x: x / x,
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "pow": lambda x: x**2,
    "sqrt": lambda x: x.sqrt(),
    "sin": lambda x: x.sin(),
    "tanh": lambda x: x.tanh(),
    "matmul": lambda x: x @ x,
    "prod": lambda x: x.prod(),
    "softmax": lambda x: x.softmax(1),
    "where": lambda x: tg.where(x > 1.5, x, -x),
    "boolean index": lambda x: x[x > 1.5],
}


def ones_like(y: tg.Tensor) -> tg.Tensor:
    return tg.ones_like(y.detach())


def square_leaf() -> tg.Tensor:
    return leaf([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.point(29)
@pytest.mark.parametrize("name", SAVES_NOTHING)
def test_row_that_saves_nothing_runs_twice(name: str) -> None:
    x = square_leaf()
    y = SAVES_NOTHING[name](x)
    (first,) = grad(y, x, ones_like(y))
    (second,) = grad(y, x, ones_like(y))
    assert first.tolist() == second.tolist()


@pytest.mark.point(29)
@pytest.mark.parametrize("name", SAVES_SOMETHING)
def test_row_that_saves_something_runs_once(name: str) -> None:
    x = square_leaf()
    y = SAVES_SOMETHING[name](x)
    y.backward(ones_like(y))
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward(ones_like(y))


@pytest.mark.parametrize("name", SAVES_SOMETHING)
def test_row_that_saves_something_runs_twice_when_retained(name: str) -> None:
    x = square_leaf()
    y = SAVES_SOMETHING[name](x)
    (first,) = grad(y, x, ones_like(y), retain_graph=True)
    (second,) = grad(y, x, ones_like(y))
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize("start", [1.5, [1.5]])
def test_second_pass_over_a_product_raises(start: float | list[float]) -> None:
    x = leaf(start)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()


def test_second_pass_over_a_number_times_a_scalar_raises() -> None:
    y = leaf(1.5) * 2.0
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()


def test_second_pass_over_scalar_sums_runs() -> None:
    x = leaf(1.5)
    y = x + 1.0 - x + x
    y.backward()
    y.backward()
    assert x.grad.item() == 2.0


@pytest.mark.point(29)
def test_failed_second_pass_adds_nothing() -> None:
    x = leaf([1.5])
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()
    assert_values(x.grad, [3.0])


def test_retained_graph_runs_as_often_as_wanted() -> None:
    x = leaf([1.5])
    y = x * x
    for _ in range(5):
        y.backward(retain_graph=True)
    assert_values(x.grad, [15.0])


def test_retained_graph_is_freed_by_the_pass_that_does_not_retain() -> None:
    x = leaf([1.5])
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()


@pytest.mark.point(28)
def test_recorded_pass_retains_the_graph() -> None:
    x = leaf([1.5])
    y = x * x
    grad(y, x, create_graph=True)
    assert_values(grad(y, x)[0], [3.0])


@pytest.mark.point(28)
def test_recorded_pass_frees_when_told_to() -> None:
    x = leaf([1.5])
    y = x * x
    grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        grad(y, x)


def test_grad_frees_like_backward() -> None:
    x = leaf([1.5])
    y = x * x
    grad(y, x)
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        grad(y, x)


@pytest.mark.point(29)
def test_disjoint_paths_of_one_loss_are_freed_apart() -> None:
    x, w = leaf([2.0]), leaf([3.0])
    loss = x * x + w * w
    grad(loss, x)
    assert_values(grad(loss, w)[0], [6.0])


@pytest.mark.point(29)
def test_rows_below_a_requested_inner_result_are_not_freed() -> None:
    x = leaf([2.0])
    y = x * x
    z = y.exp()
    grad(z, y)
    assert_values(grad(y, x)[0], [4.0])


def test_shared_part_freed_by_one_loss_stops_the_other() -> None:
    x = leaf([2.0])
    shared = x * x
    first, second = shared + 1.0, shared + 2.0
    first.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        second.backward()


def test_new_operation_on_a_freed_result_can_be_recorded() -> None:
    x = leaf([2.0])
    y = x * x
    y.backward()
    assert (y * 2).tolist() == [8.0]


def test_new_operation_on_a_freed_result_raises_at_backward() -> None:
    x = leaf([2.0])
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        (y + 1.0).backward()


def test_result_keeps_its_grad_fn_when_freed() -> None:
    y = leaf([2.0]) ** 2
    y.backward()
    assert y.grad_fn.name() == "PowBackward0"


def test_freed_rows_that_nothing_needs_do_not_stop_a_pass() -> None:
    x, w = leaf([2.0]), leaf([3.0])
    a = x * x
    loss = a + w
    a.backward()
    assert_values(grad(loss, w)[0], [1.0])


def test_rebuilt_graph_runs_after_a_freed_one() -> None:
    x = leaf([2.0])
    for _ in range(3):
        (x * x).backward()
    assert_values(x.grad, [12.0])


@pytest.mark.point(28)
def test_backward_with_recording_warns_of_cycles_once_a_process() -> None:
    import subprocess
    import sys

    code = """if True:
        import warnings
        import tapegrad as tg
        x = tg.tensor([2.0], requires_grad=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            (x * x).backward(create_graph=True)
            (x * x).backward(create_graph=True)
        print([str(w.message) for w in caught if "reference cycle" in str(w.message)].__len__())
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize("call", ["y.backward(create_graph=True)", "tg.autograd.backward([y], create_graph=True)"])
def test_warning_of_cycles_names_the_line_of_the_caller(call: str) -> None:
    import subprocess
    import sys

    code = f"import tapegrad as tg\nx = tg.tensor([2.0], requires_grad=True)\ny = x * x\n{call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.startswith("<string>:4: UserWarning: Using backward() with create_graph=True will create a reference cycle")


@pytest.mark.parametrize("options", [{}, {"allow_unused": True}, {"materialize_grads": True}], ids=str)
def test_a_held_result_stays_an_input_when_its_own_graph_is_freed(options: dict[str, bool]) -> None:
    x = leaf([1.0, 2.0])
    m = x * x
    loss = ((m + 1.0) + 2.0) + 3.0
    m.sum().backward()
    tg.tape.default_tape().collect()
    (g,) = tg.autograd.grad(loss, m, tg.ones(2), **options)
    assert_values(g, [1.0, 1.0])


def test_a_result_written_without_recording_stays_whole_when_its_graph_is_freed() -> None:
    x = leaf(2.0)
    before = [x * 1.0 for _ in range(20)]
    y = x * x
    with tg.no_grad():
        y.mul_(2.0)
    z = y * 3.0
    (y + 0.0).backward()
    del z, before
    tg.tape.default_tape().collect()
    with tg.no_grad():
        y.mul_(2.0)
    (g,) = tg.autograd.grad(y + 1.0, y)
    assert_values(g, 1.0)


@pytest.mark.parametrize("start", [1.5, [1.5, 2.0]], ids=["scalar", "array"])
@pytest.mark.parametrize("given", [{}, {"allow_unused": True}, {"materialize_grads": True}], ids=str)
def test_second_pass_raises_too_when_the_rows_below_were_reclaimed(start: float | list[float], given: dict[str, bool]) -> None:
    x = leaf(start)
    y = (x + 2.0) * 2.0
    grad(y, x, ones_like(y))
    tg.tape.default_tape().collect()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        grad(y, x, ones_like(y), **given)


@pytest.mark.parametrize("start", [1.5, [1.5, 2.0]], ids=["scalar", "array"])
def test_gradient_does_not_lose_the_part_of_a_freed_graph_whose_rows_were_reclaimed(start: float | list[float]) -> None:
    x = leaf(start)
    y = (x + 2.0) * 2.0
    grad(y, x, ones_like(y))
    tg.tape.default_tape().collect()
    total = y + x * 3.0
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        grad(total, x, ones_like(total))


def test_freed_result_whose_rows_were_reclaimed_is_still_an_input() -> None:
    x = leaf(1.5)
    y = (x + 2.0) * 2.0
    y.backward()
    tg.tape.default_tape().collect()
    assert_values(grad(y * y, y)[0], 14.0)
