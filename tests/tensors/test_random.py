"""Random numbers: seeds, distributions, refusals."""

import pytest

import tapegrad as tg


def test_the_same_seed_gives_the_same_numbers():
    tg.manual_seed(3)
    first = tg.randn(5)
    tg.manual_seed(3)
    assert tg.randn(5).tolist() == first.tolist()


def test_another_seed_gives_other_numbers():
    tg.manual_seed(3)
    first = tg.randn(5)
    tg.manual_seed(4)
    assert tg.randn(5).tolist() != first.tolist()


def test_negative_seeds_start_streams_of_their_own():
    tg.manual_seed(-1)
    first = tg.randn(5).tolist()
    tg.manual_seed(1)
    other = tg.randn(5).tolist()
    tg.manual_seed(-1)
    assert tg.randn(5).tolist() == first != other


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_beyond_64_bits_are_refused(seed):
    with pytest.raises(ValueError, match="does not fit in 64 bits"):
        tg.manual_seed(seed)


@pytest.mark.parametrize("dtype", [tg.float16, tg.float32, tg.float64])
def test_rand_is_uniform_in_the_half_open_unit_interval(dtype):
    made = tg.rand(100_000, dtype=dtype)
    values = made.numpy().astype(float)
    assert made.dtype == dtype
    assert values.min() >= 0.0
    assert values.max() < 1.0
    assert abs(values.mean() - 0.5) < 0.01
    assert abs(values.var() - 1 / 12) < 0.005


@pytest.mark.parametrize("dtype", [tg.float16, tg.float32, tg.float64])
def test_randn_is_normal(dtype):
    made = tg.randn(100_000, dtype=dtype)
    values = made.numpy().astype(float)
    assert made.dtype == dtype
    assert abs(values.mean()) < 0.02
    assert abs(values.var() - 1.0) < 0.03


@pytest.mark.parametrize("factory", [tg.rand, tg.randn])
def test_continuous_numbers_need_a_floating_dtype(factory):
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        factory(2, dtype=tg.int64)


def test_randint_covers_its_interval():
    assert set(tg.randint(-1, 2, (1000,)).tolist()) == {-1, 0, 1}


def test_randint_starts_at_zero_if_one_bound_is_given():
    assert set(tg.randint(2, (1000,)).tolist()) == {0, 1}


def test_randint_takes_size_by_name():
    assert tuple(tg.randint(5, size=(2, 3)).shape) == (2, 3)


def test_randint_like():
    made = tg.randint_like(tg.zeros(2, 3), 4, 5)
    assert (made.tolist(), made.dtype) == ([[4.0] * 3] * 2, tg.float64)


@pytest.mark.parametrize("bounds", [(5, 5), (0,), (3, 1)])
def test_randint_refuses_empty_intervals(bounds):
    with pytest.raises(RuntimeError, match="expects 'from' to be less than 'to'"):
        tg.randint(*bounds, (2,))


def test_randint_refuses_bounds_beyond_the_dtype():
    with pytest.raises(RuntimeError, match="out of bounds for uint8"):
        tg.randint(0, 300, (2,), dtype=tg.uint8)


def test_randperm_is_a_permutation():
    assert sorted(tg.randperm(50).tolist()) == list(range(50))


def test_normal_of_numbers():
    values = tg.normal(2.0, 3.0, (100_000,)).numpy()
    assert abs(values.mean() - 2.0) < 0.05
    assert abs(values.std() - 3.0) < 0.05


def test_normal_of_tensors_broadcasts():
    made = tg.normal(tg.tensor([[1.0], [2.0]]), tg.tensor([0.0, 0.0]))
    assert made.tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_normal_refuses_negative_deviations():
    with pytest.raises(RuntimeError, match=r"normal expects std >= 0.0, but found std -1"):
        tg.normal(0.0, -1.0, (2,))


def test_normal_refuses_shapes_that_do_not_broadcast():
    with pytest.raises(RuntimeError, match="must match or broadcast"):
        tg.normal(tg.zeros(2), tg.ones(3))


@pytest.mark.parametrize(
    "made",
    [
        lambda: tg.randint(low=7, high=8, size=(2,)),
        lambda: tg.randint(7, high=8, size=(2,)),
        lambda: tg.randint(7, 8, size=(2,)),
    ],
)
def test_bounds_of_integers_may_be_given_by_name(made):
    assert made().tolist() == [7, 7]


def test_upper_bound_of_integers_may_be_given_by_name():
    assert tg.randint(high=1, size=(3,)).tolist() == [0, 0, 0]


def test_lower_bound_of_integers_alone_is_refused():
    with pytest.raises(TypeError, match="randint"):
        tg.randint(low=1, size=(3,))
