"""Values of large arrays by compiled loops, which have the bits of NumPy's functions one after the other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.ops.order_statistics import element_of_rank
from tapegrad.ops.run_reductions import rows_and_rest
from tapegrad.ops.scans import running_product
from tapegrad.recording.stretched_operands import outer_products

RNG = np.random.default_rng(11)
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e308, -1e308]
SHAPES = [(SMALL + 8,), (60, 50), (50, 60), (3, 700), (700, 3), (5, 40, 30), (40, 5, 30), (1, 3000), (3000, 1)]
SMALL_SHAPES = [(1,), (9,), (130,), (8, 8), (3, 1), (1, 3), (2, 3, 4), (5, 20, 7), (2, 3, 2, 40)]
Array = np.ndarray[Any, Any]


def sample(shape: tuple[int, ...], edges: bool = False) -> Array:
    """Numbers of both signs, some of them equal; among them what is not finite."""
    a = RNG.normal(size=shape).round(2)
    if edges:
        step = max(a.size // 40, 3)
        a.reshape(-1)[::step] = RNG.choice(EDGES, len(a.reshape(-1)[::step]))
    return a


def assert_same_bits(found: Array, expected: Array) -> None:
    """As numbers, and in the signs of zeros."""
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found)[~np.isnan(found)], np.signbit(expected)[~np.isnan(found)])


def softmax(a: Array, axis: int) -> Array:
    e = np.exp(a - np.maximum.reduce(a, axis, keepdims=True))
    return e / np.add.reduce(e, axis, keepdims=True)


def log_softmax(a: Array, axis: int) -> Array:
    shifted = a - np.maximum.reduce(a, axis, keepdims=True)
    return shifted - np.log(np.add.reduce(np.exp(shifted), axis, keepdims=True))


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("shape", [*SHAPES, *SMALL_SHAPES], ids=str)
@pytest.mark.parametrize(("function", "expected"), [(tg.softmax, softmax), (tg.log_softmax, log_softmax)])
def test_softmax_has_the_bits_of_numpys_functions(
    function: Callable[..., tg.Tensor], expected: Callable[..., Array], shape: tuple[int, ...], edges: bool
) -> None:
    a = sample(shape, edges)
    for axis in range(a.ndim):
        with np.errstate(all="ignore"):
            assert_same_bits(function(tg.tensor(a), axis).numpy(), expected(a, axis))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("function", "accumulate"), [(tg.cummax, np.maximum.accumulate), (tg.cummin, np.minimum.accumulate)])
def test_running_extremes_are_numpys_and_stand_where_they_were_reached_last(
    function: Callable[..., Any], accumulate: Callable[..., Array], shape: tuple[int, ...]
) -> None:
    a = sample(shape, edges=True)
    for axis in range(a.ndim):
        values, places = function(tg.tensor(a), axis)
        expected = accumulate(a, axis)
        assert_same_bits(values.numpy(), expected)
        numbers = np.arange(a.shape[axis]).reshape([-1 if k == axis else 1 for k in range(a.ndim)])
        reached = np.where((a == expected) | np.isnan(a), numbers, 0)
        np.testing.assert_array_equal(places.numpy(), np.maximum.accumulate(reached, axis))


def test_gradients_of_running_extremes_go_to_the_places() -> None:
    a, w = sample((50, 60)), sample((50, 60))
    for axis in range(2):
        x = tg.tensor(a, requires_grad=True)
        values, places = tg.cummax(x, axis)
        (values * tg.tensor(w)).sum().backward()
        expected = np.zeros(a.shape)
        for index in np.ndindex(a.shape):
            to = list(index)
            to[axis] = places[index].item()
            expected[tuple(to)] += w[index]
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12, atol=1e-12)


LOSSES: list[tuple[Callable[..., tg.Tensor], Callable[[Array], Array]]] = [
    (tg.nn.functional.mse_loss, lambda r: r * r),
    (
        lambda x, y, **o: tg.nn.functional.smooth_l1_loss(x, y, beta=0.7, **o),
        lambda r: np.where(r < 0.7, 0.5 * r * r / 0.7, r - 0.35),
    ),
    (
        lambda x, y, **o: tg.nn.functional.huber_loss(x, y, delta=0.7, **o),
        lambda r: np.where(r <= 0.7, 0.5 * r * r, 0.7 * (r - 0.35)),
    ),
]


@pytest.mark.parametrize(("loss", "of_magnitudes"), LOSSES)
def test_losses_of_residuals_have_the_bits_of_numpys_functions(loss: Callable[..., Any], of_magnitudes: Callable[..., Any]) -> None:
    x, y = sample((50, 60), edges=True), sample((50, 60))
    with np.errstate(all="ignore"):
        expected = of_magnitudes(np.abs(x - y))
    assert_same_bits(loss(tg.tensor(x), tg.tensor(y), reduction="none").numpy(), expected)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("loss", "_"), LOSSES)
def test_gradients_of_such_losses_are_those_of_their_halves(loss: Callable[..., Any], _: object, reduction: str) -> None:
    a, b, w = sample((50, 60)), sample((50, 60)), sample((50, 60))

    def gradients(rows: slice) -> list[Array]:
        x, y = (tg.tensor(array[rows], requires_grad=True) for array in (a, b))
        found = loss(x, y, reduction=reduction)
        (
            found * tg.tensor(w[rows]) if reduction == "none" else found * (x.numel() / 3000 if reduction == "mean" else 1)
        ).sum().backward()
        return [x.grad.numpy(), y.grad.numpy()]

    parts = zip(*(gradients(slice(k, k + 10)) for k in range(0, 50, 10)), strict=True)
    for whole, part in zip(gradients(slice(None)), parts, strict=True):
        np.testing.assert_allclose(whole, np.concatenate(part), rtol=1e-14)


def test_neighbouring_numbers_are_the_c_librarys() -> None:
    x, y = (
        array.reshape(-1) for array in np.meshgrid(np.r_[EDGES, 1.0, -1.0, sample((50,))], np.r_[EDGES, 1.0, -1.0, sample((50,))])
    )
    assert x.size > SMALL
    for a, b in ((x, y), (x, np.array(0.5)), (np.array(-0.0), y)):
        found = tg.nextafter(tg.tensor(a), tg.tensor(b)).numpy()
        assert_same_bits(found, np.nextafter(a, b))


@pytest.mark.parametrize("name", ["remainder", "fmod", "logaddexp", "sign", "relu", "round", "frac", "silu", "sigmoid"])
def test_what_is_written_in_place_is_what_a_copy_would_have(name: str) -> None:
    """Of memory in another order, too."""
    a = sample((60, 50), edges=True)
    others = (2.0,) if name in ("remainder", "fmod") else (tg.tensor(sample((50, 60))),) if name == "logaddexp" else ()
    if not hasattr(tg.Tensor, f"{name}_"):
        others, name = (), "sigmoid"
    for turned in (False, True):
        x = tg.tensor(a.T.copy()) if not turned else tg.tensor(a.copy()).T
        expected = getattr(x, name)(*others).numpy().copy()
        getattr(x, f"{name}_")(*others)
        assert_same_bits(x.numpy(), expected)


@pytest.mark.parametrize(
    "a",
    [
        RNG.normal(size=20_000), RNG.integers(0, 5, 20_000).astype(float), np.arange(20_000.0), np.repeat([np.inf, 0.0], 9_000),
        np.sin(np.arange(20_000) * 2 * np.pi / 9),
    ],
    ids=["random", "few", "ascending", "two", "of the sample's period"],
)  # fmt: skip
def test_an_element_of_a_rank_is_that_of_the_sorted_vector(a: Array) -> None:
    for rank in (0, 1, 100, a.size // 3, a.size // 2, a.size - 2, a.size - 1):
        assert element_of_rank(a, rank) == np.sort(a)[rank]


@pytest.mark.parametrize("value", [1.0, 0.1, -3.5, np.inf, np.nan, 1e308])
def test_an_adjoint_of_one_number_is_summed_over_stretched_axes(value: float) -> None:
    """Where sums of so many equal numbers do not round they are one product, and else they are what they were."""
    for shape, whole in (((60,), (40, 60)), ((40, 1), (40, 60)), ((1, 50, 1), (3, 50, 20))):
        x = tg.tensor(np.ones(shape), requires_grad=True)
        (x.expand(*whole).sum() * value).backward()
        y = tg.tensor(np.ones(shape), requires_grad=True)
        ((y + tg.zeros(whole)).sum() * value).backward()
        total = np.float64(0.0)
        with np.errstate(all="ignore"):
            for _ in range(int(np.prod(whole)) // x.numel()):
                total += value
        for found in (x.grad, y.grad):
            np.testing.assert_allclose(found.numpy(), np.full(shape, total), rtol=0.0 if value in (1.0, -3.5) else 1e-12)


def test_one_number_is_added_to_parts_of_an_adjoint() -> None:
    a = tg.tensor(np.ones((50, 60)), requires_grad=True)
    total = 2.0 * a[:20].sum() + 3.0 * a[10:, ::7].sum() + 0.5 * a.T[5:].sum() + a.sum()
    total.backward()
    expected = np.ones((50, 60))
    expected[:20] += 2.0
    expected[10:, ::7] += 3.0
    expected[:, 5:] += 0.5
    np.testing.assert_array_equal(a.grad.numpy(), expected)


@pytest.mark.parametrize(
    "function", [tg.nn.functional.elu, tg.selu, lambda x, **o: tg.celu(x, 0.7, **o), tg.nn.functional.hardtanh]
)
def test_nonlinearities_in_place_are_those_of_a_copy(function: Callable[..., tg.Tensor]) -> None:
    for a in (sample((50, 60)), sample((2, 3))):
        x = tg.tensor(a, requires_grad=True)
        y = tg.tensor(a, requires_grad=True)
        written = function(x.clone(), inplace=True)
        plain = function(y)
        (written * written).sum().backward()
        (plain * plain).sum().backward()
        np.testing.assert_array_equal(written.detach().numpy(), plain.detach().numpy())
        np.testing.assert_array_equal(x.grad.numpy(), y.grad.numpy())


@pytest.mark.parametrize("decimals", [1, 2, 5, 22, 30, -1, -3])
def test_numbers_rounded_to_decimals_are_numpys(decimals: int) -> None:
    with np.errstate(all="ignore"):
        a = sample((60, 50), edges=True) * 1234.5678
        assert_same_bits(tg.round(tg.tensor(a), decimals=decimals).numpy(), np.round(a, decimals))


@pytest.mark.parametrize("shape", [(60, 50), (5, 40, 30), (1500, 2), (2, 1500), (4, 2000, 1)])
def test_gated_halves_are_those_of_numpys_functions(shape: tuple[int, ...]) -> None:
    a = sample(shape, edges=True)
    for dim in [k for k, extent in enumerate(shape) if extent % 2 == 0]:
        former, latter = np.split(a, 2, dim)
        with np.errstate(all="ignore"):
            expected = former * tg.sigmoid(tg.tensor(np.ascontiguousarray(latter))).numpy()
        assert_same_bits(tg.nn.functional.glu(tg.tensor(a), dim).numpy(), expected)


@pytest.mark.parametrize("value", [1.0, -0.7])
@pytest.mark.parametrize("function", [tg.addcmul, tg.addcdiv])
def test_a_sum_with_a_product_is_computed_in_one_memory_that_is_nobody_elses(function: Callable[..., Any], value: float) -> None:
    a, b, c = sample((60, 50)), sample((60, 50)), 1.0 + RNG.random(50)
    kept = [t.copy() for t in (a, b, c)]
    term = b * c if function is tg.addcmul else b / c
    found = function(*map(tg.tensor, (a, b, c)), value=value)
    assert_same_bits(found.numpy(), a + (term if value == 1.0 else value * term))
    for t, before in zip((a, b, c), kept, strict=True):
        np.testing.assert_array_equal(t, before)


@pytest.mark.parametrize("rows", [[1, 3, 1], [0], [], [-1, 2, 2, 2]], ids=str)
def test_values_added_to_few_rows_have_the_bits_of_their_sums(rows: list[int]) -> None:
    a, values = sample((60, 50), edges=True), sample((len(rows), 50), edges=True)
    sums = np.zeros_like(a)
    with np.errstate(all="ignore"):
        np.add.at(sums, rows, values)
        found = tg.index_put(tg.tensor(a), (tg.tensor(np.array(rows, np.int64)),), tg.tensor(values), accumulate=True)
        assert_same_bits(found.numpy(), a + sums)


RUNS = [
    ((46, 46, 46), (0, 2)),
    ((46, 46, 46), (2,)),
    ((7, 40, 30), (0, 2)),
    ((5, 1, 40, 1, 30), (0, 4)),
    ((900, 3), (1,)),
    ((40, 3000), (1,)),
]


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize(("shape", "axes"), RUNS, ids=str)
@pytest.mark.parametrize(
    ("function", "expected"),
    [(tg.sum, np.add.reduce), (tg.amax, np.maximum.reduce), (tg.amin, np.minimum.reduce)],
    ids=["sum", "amax", "amin"],
)
def test_reductions_along_short_runs_have_the_bits_of_numpys(
    function: Callable[..., tg.Tensor], expected: Callable[..., Array], shape: tuple[int, ...], axes: tuple[int, ...], edges: bool
) -> None:
    a = sample(shape, edges)
    for keepdim in (False, True):
        with np.errstate(all="ignore"):
            assert_same_bits(function(tg.tensor(a), axes, keepdim).numpy(), expected(a, axes, keepdims=keepdim))


@pytest.mark.parametrize(("shape", "axes"), RUNS, ids=str)
def test_norms_along_runs_have_the_bits_of_their_squares(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    a = sample(shape)
    assert_same_bits(tg.linalg.vector_norm(tg.tensor(a), 2, axes).numpy(), np.sqrt(np.add.reduce(a * a, axes)))


@pytest.mark.parametrize(("shape", "axes"), [*RUNS, ((30, 4, 40), (0, 1)), ((3, 40, 2, 30), (0, 2))], ids=str)
@pytest.mark.parametrize("function", [tg.amax, tg.amin])
def test_elements_that_tie_for_an_extreme_share_its_cotangent(
    function: Callable[..., tg.Tensor], shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    a, rng = RNG.integers(0, 9, shape).astype(float), np.random.default_rng(3)
    x = tg.tensor(a, requires_grad=True)
    value = function(x, axes, True)
    weights = rng.normal(size=value.shape)
    (value * tg.tensor(weights)).sum().backward()
    chosen = a == value.detach().numpy()
    assert_same_bits(x.grad.numpy(), np.where(chosen, weights * (chosen / chosen.sum(axes, keepdims=True)), 0.0))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_running_products_have_the_bits_of_numpys(shape: tuple[int, ...]) -> None:
    a = sample(shape, True)
    for axis in range(a.ndim):
        with np.errstate(all="ignore"):
            assert_same_bits(tg.cumprod(tg.tensor(a), axis).numpy(), np.multiply.accumulate(a, axis))
            backwards = np.flip(np.multiply.accumulate(np.flip(a, axis), axis), axis)
        assert_same_bits(running_product(tg.tensor(a), axis, True).numpy(), backwards)


def test_cotangents_of_long_log_softmax_are_those_of_its_definition() -> None:
    a, g = sample((2, 70_000)), RNG.normal(size=(2, 70_000))
    x = tg.tensor(a, requires_grad=True)
    z = tg.log_softmax(x, 1)
    (z * tg.tensor(g)).sum().backward()
    assert_same_bits(x.grad.numpy(), g - np.exp(z.detach().numpy()) * np.add.reduce(g, 1, keepdims=True))


@pytest.mark.parametrize("shape", [(300, 9), (2, 1030), (9, 300), (3, 50, 20), (2, 40, 300)], ids=str)
def test_cotangents_of_log_softmax_are_those_of_its_definition_along_each_axis(shape: tuple[int, ...]) -> None:
    a, g = sample(shape), sample(shape)
    for axis in range(a.ndim):
        x = tg.tensor(a, requires_grad=True)
        z = tg.log_softmax(x, axis)
        (found,) = tg.autograd.grad(z, [x], tg.tensor(g))
        expected = g - np.exp(z.detach().numpy()) * np.add.reduce(g, axis, keepdims=True)
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("shape", [(40, 60), (60, 40), (3, 50, 20), (900, 1, 4)], ids=str)
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_first_elements_of_columns_are_those_of_a_stable_order(shape: tuple[int, ...], largest: bool, count: int) -> None:
    a = sample(shape, True)
    a[np.isinf(a)] = 7.0  # which only nan is larger than
    for axis in range(a.ndim):
        if shape[axis] >= count:
            order = np.argsort(np.where(np.isnan(a), -np.inf, -a) if largest else a, axis, kind="stable")
            expected = np.take(order, range(count), axis)
            np.testing.assert_array_equal(tg.topk(tg.tensor(a), count, axis, largest).indices.numpy(), expected)


def test_outer_products_in_batches_are_those_of_the_blas() -> None:
    a, b = sample((30, 20, 1)), sample((30, 1, 25))
    b.reshape(-1)[::7] = -0.0
    found = outer_products(a, b)
    assert found is not None
    assert_same_bits(found, np.matmul(a, b))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_smoothed_losses_have_the_bits_of_their_factors(reduction: str, ignored: int) -> None:
    a, targets = sample((70, 90)), RNG.integers(0, 5, 70)
    logs, kept = log_softmax(a, 1), targets != ignored
    factors = np.where(kept[:, None], -0.2 / 90, 0.0) * np.ones((1, 90))
    factors[np.flatnonzero(kept), targets[kept]] -= (1.0 - 0.2) * 1.0
    if reduction == "mean":
        factors /= float(kept.sum())
    x = tg.tensor(a, requires_grad=True)
    loss = tg.nn.functional.cross_entropy(x, tg.tensor(targets), ignore_index=ignored, reduction=reduction, label_smoothing=0.2)
    expected = np.add.reduce(logs * factors, 1 if reduction == "none" else (0, 1))
    assert_same_bits(loss.detach().numpy(), np.asarray(expected))
    weights = np.linspace(-1.0, 1.0, 70) if reduction == "none" else np.array(0.7)
    (found,) = tg.autograd.grad(loss, [x], tg.tensor(weights))
    g = weights[..., None] * factors
    np.testing.assert_allclose(found.numpy(), g - np.exp(logs) * g.sum(1, keepdims=True), rtol=0, atol=1e-15)


def test_smoothed_losses_of_large_images_are_those_of_their_parts() -> None:
    a, targets = sample((2, 60, 9, 5)), RNG.integers(0, 60, (2, 9, 5))
    x = tg.tensor(a, requires_grad=True)
    losses = tg.nn.functional.cross_entropy(x, tg.tensor(targets), ignore_index=3, reduction="none", label_smoothing=0.3)
    (found,) = tg.autograd.grad(losses, [x], tg.tensor(np.ones((2, 9, 5))))
    for k in range(5):
        part = tg.tensor(np.ascontiguousarray(a[..., k]), requires_grad=True)
        own = tg.tensor(np.ascontiguousarray(targets[..., k]))
        alone = tg.nn.functional.cross_entropy(part, own, ignore_index=3, reduction="none", label_smoothing=0.3)
        np.testing.assert_allclose(losses[..., k].detach().numpy(), alone.detach().numpy(), rtol=1e-14)
        (expected,) = tg.autograd.grad(alone, [part], tg.tensor(np.ones((2, 9))))
        np.testing.assert_allclose(found[..., k].numpy(), expected.numpy(), rtol=0, atol=1e-15)


@pytest.mark.parametrize("size", [1 << 15, (1 << 15) + 1, 40_961, 70_000])
@pytest.mark.parametrize("edges", [False, True])
def test_sums_of_all_elements_are_those_of_rows_as_einsum_adds_them(size: int, edges: bool) -> None:
    a = sample((size,), edges)
    with np.errstate(all="ignore"):
        assert_same_bits(np.asarray(tg.tensor(a).sum().item()), np.asarray(rows_and_rest(a)))
    finite = sample((size,)) * 10.0 ** RNG.integers(-9, 9, size)
    assert tg.tensor(finite).sum().item() == rows_and_rest(finite)
    np.testing.assert_allclose(rows_and_rest(finite), np.add.reduce(finite), rtol=1e-10)
