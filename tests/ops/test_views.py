"""Views: shared memory, gradients through them, and writing into a view or its base."""

from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, node_name, parents
from many_cases import each

import tapegrad as tg

grad = tg.autograd.grad

VIEWS: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "whole slice": lambda t: t[:],
    "row": lambda t: t[1],
    "column": lambda t: t[:, 2],
    "step": lambda t: t[:, ::2],
    "element": lambda t: t[0, 1],
    "ellipsis": lambda t: t[..., 0],
    "new axis": lambda t: t[None],
    "view": lambda t: t.view(3, 2),
    "view with a free size": lambda t: t.view(-1),
    "reshape": lambda t: t.reshape(6),
    "t": lambda t: t.t(),
    "T": lambda t: t.T,
    "mT": lambda t: t.mT,
    "transpose": lambda t: t.transpose(0, 1),
    "permute": lambda t: t.permute(1, 0),
    "unsqueeze": lambda t: t.unsqueeze(1),
    "squeeze": lambda t: t[:1].squeeze(0),
    "flatten": lambda t: t.flatten(),
    "split": lambda t: t.split(1)[1],
    "chunk": lambda t: t.chunk(3, 1)[2],
    "unbind": lambda t: t.unbind(0)[1],
    "chain": lambda t: t.t()[1:].reshape(2, 2)[0],
    "detach": lambda t: t.detach(),
}
SINGLE_VIEWS = [name for name in VIEWS if name not in ("split", "chunk", "unbind", "detach", "chain")]


def start() -> np.ndarray:
    return np.arange(1.0, 7.0).reshape(2, 3)


def numpy_view(name: str, array: np.ndarray) -> np.ndarray:
    """The same view taken of numbered elements, to find which elements of the base it holds."""
    return VIEWS[name](tg.tensor(array)).numpy()


@each("name", VIEWS)
def test_view_shares_memory_with_its_base(name: str) -> None:
    base = tg.tensor(start())
    view = VIEWS[name](base)
    base.mul_(10.0)
    assert_values(view, 10.0 * numpy_view(name, start()))


@each("name", [name for name in VIEWS if name != "detach"])
def test_view_passes_the_gradient(name: str) -> None:
    x = leaf(start())
    view = VIEWS[name](x)
    (view * view).sum().backward()
    taken = np.isin(start(), numpy_view(name, start()))
    assert_values(x.grad, np.where(taken, 2.0 * start(), 0.0))


@each("name", SINGLE_VIEWS)
def test_write_through_a_view_reaches_the_base(name: str) -> None:
    x = leaf(start())
    base = x * 1.0
    VIEWS[name](base).mul_(10.0)
    taken = np.isin(start(), numpy_view(name, start()))
    assert_values(base, np.where(taken, 10.0, 1.0) * start())


@pytest.mark.point(37)
@each("name", SINGLE_VIEWS)
def test_write_through_a_view_passes_the_gradient(name: str) -> None:
    x = leaf(start())
    base = x * 1.0
    VIEWS[name](base).mul_(10.0)
    base.sum().backward()
    taken = np.isin(start(), numpy_view(name, start()))
    assert_values(x.grad, np.where(taken, 10.0, 1.0))


@each("name", SINGLE_VIEWS)
def test_gradient_of_what_was_written_through_a_view(name: str) -> None:
    base = leaf(start()) * 1.0
    view = VIEWS[name](base)
    w = leaf(np.full(tuple(view.shape), 2.0))
    view.copy_(w)
    (base * base).sum().backward()
    assert_values(w.grad, np.full(tuple(view.shape), 4.0))


@pytest.mark.point(37)
def test_write_through_a_view_gives_the_base_a_copy_slices_node() -> None:
    base = leaf(start()) * 1.0
    base[0].mul_(2.0)
    assert node_name(base) == "torch::autograd::CopySlices" and "<CopySlices" in repr(base.grad_fn)
    assert repr(base).endswith("grad_fn=<CopySlices>)")


@pytest.mark.point(37)
@each("which", ["written", "sibling"])
def test_write_through_a_view_makes_the_nodes_of_all_views_anew(which: str) -> None:
    base = leaf(start()) * 1.0
    views = {"written": base[0], "sibling": base[:, 0]}
    before = views[which].grad_fn
    views["written"].mul_(2.0)
    assert views[which].grad_fn is not before
    assert parents(views[which].grad_fn) == [base.grad_fn.name()]


def test_written_view_is_differentiated() -> None:
    x = leaf(start())
    base = x * 1.0
    view = base[0]
    view.mul_(2.0)
    (view * view).sum().backward()
    assert_values(x.grad, [[8.0, 16.0, 24.0], [0.0, 0.0, 0.0]])


@pytest.mark.point(37)
def test_sibling_view_sees_the_write() -> None:
    x = leaf(start())
    base = x * 1.0
    written, sibling = base[0], base[:, 0]
    written.mul_(2.0)
    (sibling * sibling).sum().backward()
    assert_values(x.grad, [[8.0, 0.0, 0.0], [8.0, 0.0, 0.0]])


def test_view_made_before_the_base_was_written_sees_it() -> None:
    x = leaf(start())
    base = x * 1.0
    view = base[1]
    base.mul_(3.0)
    view.sum().backward()
    assert_values(x.grad, [[0.0, 0.0, 0.0], [3.0, 3.0, 3.0]])


def test_view_of_a_view_is_written() -> None:
    x = leaf(start())
    base = x * 1.0
    base.t()[1:][0].mul_(5.0)
    base.sum().backward()
    assert_values(x.grad, [[1.0, 5.0, 1.0], [1.0, 5.0, 1.0]])


@pytest.mark.point(37)
def test_untracked_base_becomes_tracked() -> None:
    base, w = tg.zeros(3), leaf(2.0)
    base[1] = w * w
    assert base.requires_grad


@pytest.mark.point(37)
def test_gradient_through_an_untracked_base_that_was_written() -> None:
    base, w = tg.zeros(3), leaf(2.0)
    base[1] = w * w
    (base * 3.0).sum().backward()
    assert_values(w.grad, 12.0)


@pytest.mark.point(37)
def test_view_of_an_untracked_base_becomes_tracked() -> None:
    base = tg.zeros(3)
    view = base[:2]
    base[1] = leaf(2.0) * 1.0
    assert view.requires_grad


@pytest.mark.point(38)
def test_basic_assignment_makes_a_copy_slices_node() -> None:
    y = leaf(start()) * 1.0
    y[0] = 1.0
    assert "CopySlices" in node_name(y)


@pytest.mark.point(38)
@each("kind", ["mask", "indices"])
def test_advanced_assignment_makes_an_index_put_node(kind: str) -> None:
    y = leaf([1.0, 2.0]) * 1.0
    y[tg.tensor([True, False]) if kind == "mask" else tg.tensor([0])] = 1.0
    assert node_name(y).startswith("IndexPutBackward0")


KEYS = {
    "element": (1, 2),
    "row": 1,
    "slice": slice(0, 1),
    "column": (slice(None), 1),
    "step": (slice(None), slice(None, None, 2)),
    "everything": slice(None),
    "ellipsis": (Ellipsis, 0),
    "mask": start() > 2.5,
    "integers": ([0, 1], [2, 0]),
    "row integers": ([1],),
}


def key_of(name: str) -> object:
    key = KEYS[name]
    if isinstance(key, np.ndarray):
        return tg.tensor(key)
    if isinstance(key, tuple) and isinstance(key[0], list):
        return tuple(tg.tensor(part) for part in key)
    return key


@each("name", KEYS)
def test_assignment_of_a_number(name: str) -> None:
    y, expected = tg.tensor(start()), start()
    y[key_of(name)] = 9.0
    expected[KEYS[name]] = 9.0
    assert_values(y, expected)


@pytest.mark.point(38)
@each("name", KEYS)
def test_assignment_cuts_the_gradient_of_overwritten_places(name: str) -> None:
    x, expected = leaf(start()), np.full((2, 3), 2.0)
    y = x * 2.0
    y[key_of(name)] = 9.0
    y.sum().backward()
    expected[KEYS[name]] = 0.0
    assert_values(x.grad, expected)


@pytest.mark.point(38)
@each("name", KEYS)
def test_gradient_of_an_assigned_scalar_is_summed(name: str) -> None:
    y, w, weights = leaf(start()) * 1.0, leaf(2.0), start()
    y[key_of(name)] = w
    (y * tg.tensor(weights)).sum().backward()
    assert_values(w.grad, weights[KEYS[name]].sum())


@pytest.mark.point(38)
@each("name", KEYS)
def test_gradient_of_an_assigned_tensor(name: str) -> None:
    y, weights = leaf(start()) * 1.0, start()
    w = leaf(np.ones_like(weights[KEYS[name]]))
    y[key_of(name)] = w * 1.0
    (y * tg.tensor(weights)).sum().backward()
    assert_values(w.grad, weights[KEYS[name]])


@pytest.mark.point(38)
def test_gradient_of_an_assigned_row_is_summed_over_broadcast_rows() -> None:
    y, w = leaf(start()) * 1.0, leaf([1.0, 1.0, 1.0])
    y[:] = w
    (y * tg.tensor(start())).sum().backward()
    assert_values(w.grad, [5.0, 7.0, 9.0])


def test_assignment_is_differentiated_twice() -> None:
    x = leaf([1.0, 2.0])
    y = x**3
    y[0] = y[1].clone() * x[0]
    (g,) = grad(y.sum(), x, create_graph=True)
    assert_values(grad(g.sum(), x)[0], [12.0, 12.0 + 12.0 + 12.0])


def without_recording(t: tg.Tensor) -> None:
    with tg.no_grad():
        t.mul_(2.0)


WRITTEN: dict[str, Callable[[tg.Tensor, tg.Tensor, tg.Tensor], None]] = {
    "base": lambda base, view, part: without_recording(base),
    "view": lambda base, view, part: without_recording(view),
    "part of the view": lambda base, view, part: without_recording(part),
}


@each("name", WRITTEN)
def test_view_of_a_view_does_not_count_in_the_view_after_a_write_without_recording(name: str) -> None:
    x = leaf([1.0, 2.0, 3.0])
    base = x * 1.0
    view = base[:2]
    part = view[:1]
    WRITTEN[name](base, view, part)
    total = (view * 1.0).sum() + (part * 1.0).sum()
    of_view, of_leaf = grad(total, [view, x])
    assert of_view.tolist() == [1.0, 1.0] and of_leaf.tolist() == [2.0, 1.0, 0.0]


def test_gradient_retained_by_a_view_counts_uses_before_and_after_a_write_without_recording() -> None:
    view = (leaf([1.0, 2.0, 3.0]) * 1.0)[:2]
    view.retain_grad()
    before = (view * 3.0).sum()
    without_recording(view)
    (before + (view * 5.0).sum()).backward()
    assert_values(view.grad, [8.0, 8.0])


def test_view_made_under_no_grad_stays_untracked_when_its_base_is_written_without_recording() -> None:
    base = leaf([1.0, 2.0]) * 1.0
    with tg.no_grad():
        view = base[:1]
    without_recording(base)
    assert not view.requires_grad


def test_outputs_of_split_may_not_be_used_after_the_base_was_written_without_recording() -> None:
    base = leaf([1.0, 2.0]) * 1.0
    first, _ = base.split(1)
    without_recording(base)
    with pytest.raises(RuntimeError, match="(?is)output 0 of Split is a view and its base or another view of its base has been"):
        first.sum()


PIECES: dict[str, tuple[Callable[[tg.Tensor], tuple[tg.Tensor, ...]], str]] = {
    "split": (lambda t: t.split(1), "Split"),
    "split into sizes": (lambda t: t.split([1, 1]), "SplitWithSizes"),
    "chunk": (lambda t: t.chunk(2), "Split"),
    "unbind": (lambda t: t.unbind(0), "Unbind"),
    "iteration": (tuple, "Unbind"),
}


@pytest.mark.point(39)
@each("number", [0, 1])
@each("name", PIECES)
def test_pieces_may_not_be_written(name: str, number: int) -> None:
    take, label = PIECES[name]
    piece = take(leaf([1.0, 2.0]) * 1.0)[number]
    message = f"(?is)output {number} of {label} is a view and is being modified inplace.*returns multiple views"
    with pytest.raises(RuntimeError, match=message):
        piece.add_(1.0)


@pytest.mark.point(39)
@each("name", PIECES)
def test_pieces_may_not_be_used_after_the_base_was_written(name: str) -> None:
    take, label = PIECES[name]
    base = leaf([1.0, 2.0]) * 1.0
    piece = take(base)[0]
    base.mul_(2.0)
    message = f"(?is)output 0 of {label} is a view and its base or another view of its base has been modified"
    with pytest.raises(RuntimeError, match=message):
        piece.sum()


def test_gradient_of_a_piece_is_not_retained_after_the_base_was_written() -> None:
    base = leaf([1.0, 2.0]) * 1.0
    piece = base.unbind(0)[0]
    base.mul_(2.0)
    with pytest.raises(RuntimeError, match="(?is)output 0 of Unbind is a view and its base or another view of its base has been"):
        piece.retain_grad()


@pytest.mark.point(40)
def test_view_made_under_no_grad_may_not_be_written_with_grad_on() -> None:
    base = leaf([1.0, 2.0]) * 1.0
    with tg.no_grad():
        view = base[:1]
    message = "(?i)a view was created in no_grad mode and is being modified inplace with grad mode enabled"
    with pytest.raises(RuntimeError, match=message):
        view.mul_(leaf([2.0]))


def test_output_of_unbind_of_a_leaf_is_refused_as_one_of_many() -> None:
    with pytest.raises(RuntimeError, match="(?is)output 0 of Unbind is a view and is being modified inplace"):
        leaf([1.0, 2.0]).unbind(0)[0].add_(1.0)


@each(
    ("shape", "message"),
    [
        ((2,), r"(?i)the expanded size of the tensor \(3\) must match the existing size \(2\) at non-singleton dimension 0"),
        (
            (4, 3),
            r"(?i)the number of sizes provided \(1\) must be greater or equal to the number of dimensions in the tensor \(2\)",
        ),
    ],
    ids=str,
)
def test_assignment_of_another_shape_names_the_sizes(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        tg.zeros(2, 3)[0] = tg.zeros(*shape)


PARTIAL_WRITES: dict[str, Callable[[tg.Tensor], object]] = {
    "view": lambda t: t[:1].mul_(2.0),
    "view of a view": lambda t: t[:].view(-1)[:1].mul_(2.0),
    "assignment": lambda t: t.__setitem__(0, 5.0),
    "piece": lambda t: t.split(1)[0].mul_(2.0),
}


@pytest.mark.point(40)
@each("name", PARTIAL_WRITES)
def test_part_of_a_view_made_under_no_grad_may_not_be_written_with_grad_on(name: str) -> None:
    base = leaf([1.0, 2.0, 3.0]) * 1.0
    with tg.no_grad():
        view = base[:2]
    with pytest.raises(RuntimeError, match="(?i)is a view and is being modified|a view was created in no_grad mode"):
        PARTIAL_WRITES[name](view)
    assert base.tolist() == [1.0, 2.0, 3.0]


@each("name", PARTIAL_WRITES)
def test_part_of_an_output_of_split_may_not_be_written(name: str) -> None:
    base = leaf([1.0, 2.0, 3.0]) * 1.0
    first, _ = base.split(2)
    with pytest.raises(RuntimeError, match="(?is)output 0 of .* is a view and is being modified inplace.*returns multiple views"):
        PARTIAL_WRITES[name](first)
    assert base.tolist() == [1.0, 2.0, 3.0]


def test_part_of_an_output_of_split_may_not_be_used_after_the_base_was_written() -> None:
    base = leaf([1.0, 2.0, 3.0]) * 1.0
    part = base.split(2)[0][:1]
    base.mul_(2.0)
    with pytest.raises(RuntimeError, match="(?is)output 0 of Slice is a view and its base or another view of its base has been"):
        part.sum()


@pytest.mark.point(72)
def test_view_under_no_grad_has_no_node() -> None:
    x = leaf([1.0, 2.0])
    with tg.no_grad():
        view = x[:1]
    assert view.grad_fn is None


def test_reshape_of_strided_memory_copies() -> None:
    base = tg.tensor(start())
    copied = base.t().reshape(6)
    base.zero_()
    assert copied.tolist() == [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]


def test_reshape_of_strided_memory_passes_the_gradient() -> None:
    x = leaf(start())
    (x.t().reshape(6) * tg.arange(6.0)).sum().backward()
    assert_values(x.grad, [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]])


def test_expand_sums_its_gradient() -> None:
    x = leaf([[1.0], [2.0]])
    (x.expand(2, 3) * tg.tensor(start())).sum().backward()
    assert_values(x.grad, [[6.0], [15.0]])


def test_expand_keeps_a_size_of_minus_one() -> None:
    assert tuple(leaf([[1.0], [2.0]]).expand(-1, 4).shape) == (2, 4)


def test_contiguous_of_a_transpose_is_a_copy() -> None:
    x = leaf(start())
    copied = x.t().contiguous()
    (copied.view(6) * tg.arange(6.0)).sum().backward()
    assert_values(x.grad, [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]])


def test_base_outlives_its_dropped_view() -> None:
    x = leaf([1.0, 2.0, 3.0])
    base = x * 1.0
    view = base[1:]
    view.mul_(2.0)
    del view
    base.sum().backward()
    assert_values(x.grad, [1.0, 2.0, 2.0])


def test_view_outlives_its_dropped_base() -> None:
    x = leaf([1.0, 2.0, 3.0])
    base = x * 1.0
    view = base[1:]
    del base
    view.mul_(2.0)
    view.sum().backward()
    assert_values(x.grad, [0.0, 2.0, 2.0])


def test_element_of_an_array_is_written() -> None:
    x = leaf([1.0, 2.0])
    y = x * 1.0
    element = y[0]
    element.mul_(5.0)
    y.sum().backward()
    assert y.tolist() == [5.0, 2.0] and x.grad.tolist() == [5.0, 1.0]


def test_view_of_a_scalar_is_written() -> None:
    x = leaf(3.0)
    y = x * 1.0
    y.view(1).mul_(5.0)
    y.backward()
    assert y.item() == 15.0 and x.grad.item() == 5.0


def test_detached_view_of_a_scalar_is_written() -> None:
    y = leaf(3.0) * 1.0
    y.detach().mul_(5.0)
    assert y.item() == 15.0


def test_numpy_view_of_a_scalar_shares_memory() -> None:
    x = tg.tensor(3.0)
    array = x.numpy()
    x.mul_(2.0)
    assert float(array) == 6.0


def test_swapping_two_elements_through_a_clone() -> None:
    x = leaf([1.0, 2.0])
    y = x * 1.0
    kept = y[0].clone()
    y[0] = y[1]
    y[1] = kept
    (y * tg.tensor([10.0, 1.0])).sum().backward()
    assert y.tolist() == [2.0, 1.0] and x.grad.tolist() == [1.0, 10.0]


def test_filling_an_array_in_a_loop() -> None:
    x, out = leaf(0.5), tg.zeros(5)
    out[0] = x
    for k in range(1, 5):
        out[k] = out[k - 1].clone() * x
    out.sum().backward()
    np.testing.assert_allclose(x.grad.item(), sum((k + 1) * 0.5**k for k in range(5)), rtol=1e-13)


def viewed_leaf() -> tuple[tg.Tensor, tg.Tensor]:
    """An untracked tensor, and a leaf that is a view of it."""
    base = tg.tensor([0.0, 1.0, 2.0, 3.0])
    return base, base.reshape(2, 2).requires_grad_()


@pytest.mark.point(32)
@each("write", [lambda x: x.view(4).add_(1.0), lambda x: x.__setitem__(0, 1.0)], ids=["view", "item"])
def test_writing_into_a_leaf_that_is_a_view_raises(write: Callable[[tg.Tensor], object]) -> None:
    base, x = viewed_leaf()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"):
        write(x)
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0] and x.is_leaf and x.requires_grad


@pytest.mark.point(32)
@each("used_before", [True, False])
def test_leaf_that_is_a_view_stays_a_leaf_when_it_is_written_under_no_grad(used_before: bool) -> None:
    _, x = viewed_leaf()
    if used_before:
        (x * x).sum().backward()
        x.grad = None
    with tg.no_grad():
        x.sub_(1.0)
    (x * x).sum().backward()
    assert x.is_leaf
    assert_values(x.grad, [[-2.0, 0.0], [2.0, 4.0]])


@pytest.mark.point(32)
def test_leaf_that_is_a_view_has_the_values_written_to_its_base() -> None:
    base, x = viewed_leaf()
    base[0] = 9.0
    (x * x).sum().backward()
    assert_values(x.grad, [[18.0, 2.0], [4.0, 6.0]])


@pytest.mark.point(37)
def test_leaf_that_is_a_view_is_none_any_more_when_its_base_becomes_tracked() -> None:
    base, x = viewed_leaf()
    w = leaf([1.0, 1.0, 1.0, 2.0])
    base.mul_(w)
    assert not x.is_leaf and x.grad_fn.name() == "AsStridedBackward0"
    (x * x).sum().backward()
    assert_values(w.grad, [0.0, 2.0, 8.0, 36.0])


def test_view_says_that_it_is_one_and_of_what() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    views = [x[0], x[0][:1], x.T, x.view(4), x.expand(2, 2, 2), x.diagonal(), x.unbind()[1]]
    assert all(v._is_view() and v._base is x for v in views)
    others = [x, x.clone(), x * 1.0, x.detach(), x.data, x.reshape(4).clone(), x.flip(0)]
    assert not any(t._is_view() or t._base is not None for t in others)


@each(
    ("shape", "wrap", "message"),
    [((3,), False, "dimensions must larger than 1"), ((2, 2, 3), True, "all dimensions of input must be of equal length")],
)
def test_filling_a_diagonal_that_is_none_raises(shape: tuple[int, ...], wrap: bool, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        tg.zeros(*shape).fill_diagonal_(1.0, wrap=wrap)


def test_filling_the_diagonal_of_a_cube_and_of_a_leaf() -> None:
    cube = tg.zeros(2, 2, 2).fill_diagonal_(1.0)
    assert cube.sum() == 2.0 and cube[0, 0, 0] == cube[1, 1, 1] == 1.0
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf([[1.0, 2.0], [3.0, 4.0]]).fill_diagonal_(1.0)
