"""The text of tensors, compared character by character with what PyTorch prints for the same values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.surface.printing import format_tensor

nan, inf = np.nan, np.inf


@pytest.mark.point(84)
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (6.0, "tensor(6.)"),
        (3.5, "tensor(3.5000)"),
        (3, "tensor(3)"),
        (True, "tensor(True)"),
        (-0.0, "tensor(-0.)"),
        (nan, "tensor(nan)"),
        (-inf, "tensor(-inf)"),
        (1e10, "tensor(1.0000e+10)"),
        (1e8, "tensor(100000000.)"),
        (9e7, "tensor(90000000.)"),
        (1e-5, "tensor(1.0000e-05)"),
        (5e-324, "tensor(4.9407e-324)"),
        (123456.789, "tensor(123456.7890)"),
    ],
)
def test_zero_dimensional(value, text):
    assert format_tensor(np.array(value)) == text


@pytest.mark.point(85)
@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([1.0, -20.0], "tensor([  1., -20.])"),
        ([1.0, 2.5], "tensor([1.0000, 2.5000])"),
        ([0.0, 2.5], "tensor([0.0000, 2.5000])"),
        ([0.0, 0.0], "tensor([0., 0.])"),
        ([1.0, nan], "tensor([1., nan])"),
        ([nan, 0.0, -inf], "tensor([nan, 0., -inf])"),
        ([2.5, nan, inf], "tensor([2.5000,    nan,    inf])"),
        ([1.0, 1000.0], "tensor([   1., 1000.])"),
        ([1.0, 1001.0], "tensor([1.0000e+00, 1.0010e+03])"),
        ([1e8, 1e8 + 8], "tensor([1.0000e+08, 1.0000e+08])"),
        ([1e-4, 1e-3], "tensor([0.0001, 0.0010])"),
        ([9e-5, 1e-3], "tensor([9.0000e-05, 1.0000e-03])"),
        ([0.0, 1e-6], "tensor([0.0000e+00, 1.0000e-06])"),
        ([nan, 1e9], "tensor([       nan, 1.0000e+09])"),
        ([1, -20, 300], "tensor([  1, -20, 300])"),
        ([True, False], "tensor([ True, False])"),
        ([True, True], "tensor([True, True])"),
    ],
)
def test_number_format_is_chosen_for_the_whole_tensor(values, text):
    assert format_tensor(np.array(values)) == text


@pytest.mark.point(85)
def test_rows_are_aligned():
    assert format_tensor(np.array([[1.0, 2.0], [-3.0, 40.0]])) == "tensor([[ 1.,  2.],\n        [-3., 40.]])"


@pytest.mark.point(85)
def test_blocks_of_rank_three_are_separated_by_an_empty_line():
    values = np.arange(8).reshape(2, 2, 2)
    assert format_tensor(values) == ("tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])")


def test_blocks_of_rank_four_are_separated_by_two_empty_lines():
    values = np.arange(4).reshape(2, 1, 2, 1)
    assert format_tensor(values) == ("tensor([[[[0],\n          [1]]],\n\n\n        [[[2],\n          [3]]]])")


@pytest.mark.point(85)
def test_long_rows_wrap_and_continue_eight_columns_in():
    assert format_tensor(np.arange(25.0)) == (
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
        "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24.])"
    )


def test_wrapped_rows_of_a_matrix_continue_one_column_further_in():
    values = np.arange(40).reshape(2, 20)
    assert format_tensor(values) == (
        "tensor([[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "         18, 19],\n"
        "        [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37,\n"
        "         38, 39]])"
    )


@pytest.mark.point(85)
def test_above_a_thousand_elements_the_ends_are_shown():
    assert format_tensor(np.arange(1001.0)) == ("tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])")


@pytest.mark.point(85)
def test_a_thousand_elements_are_shown_whole():
    assert "..." not in format_tensor(np.zeros(1000))


@pytest.mark.point(85)
def test_the_middle_of_a_long_matrix_is_left_out():
    values = np.arange(1010).reshape(202, 5) % 10
    assert format_tensor(values) == (
        "tensor([[0, 1, 2, 3, 4],\n"
        "        [5, 6, 7, 8, 9],\n"
        "        [0, 1, 2, 3, 4],\n"
        "        ...,\n"
        "        [5, 6, 7, 8, 9],\n"
        "        [0, 1, 2, 3, 4],\n"
        "        [5, 6, 7, 8, 9]])"
    )


def test_the_format_of_a_summary_follows_from_what_is_shown():
    values = np.ones(2000)
    values[1000] = 0.5
    assert format_tensor(values) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


@pytest.mark.point(84)
@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros(0), "tensor([])"),
        (np.zeros((2, 0)), "tensor([], size=(2, 0))"),
        (np.zeros(0, np.int64), "tensor([], dtype=int64)"),
        (np.zeros((0, 3), np.float32), "tensor([], size=(0, 3), dtype=float32)"),
    ],
)
def test_empty(array, text):
    assert format_tensor(array) == text


@pytest.mark.point(84)
@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (np.float64, "tensor([1.])"),
        (np.float32, "tensor([1.], dtype=float32)"),
        (np.float16, "tensor([1.], dtype=float16)"),
        (np.int64, "tensor([1])"),
        (np.int32, "tensor([1], dtype=int32)"),
        (np.uint8, "tensor([1], dtype=uint8)"),
        (np.bool_, "tensor([True])"),
    ],
)
def test_dtypes_other_than_the_usual_are_named(dtype, text):
    assert format_tensor(np.ones(1, dtype)) == text


@pytest.mark.point(84)
@pytest.mark.usefixtures("default_float32")
def test_the_usual_float_is_the_default_dtype():
    assert format_tensor(np.ones(1)) == "tensor([1.], dtype=float64)"


@pytest.mark.point(84)
def test_suffix_stands_last():
    assert format_tensor(np.ones(1, np.float32), "grad_fn=<AddBackward0>") == (
        "tensor([1.], dtype=float32, grad_fn=<AddBackward0>)"
    )


def test_suffix_goes_to_its_own_line_when_the_last_is_full():
    assert format_tensor(np.arange(19.0), "requires_grad=True") == (
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
        "        14., 15., 16., 17., 18.], requires_grad=True)"
    )
    assert format_tensor(np.arange(12.0) + 0.5, "grad_fn=<AddBackward0>") == (
        "tensor([ 0.5000,  1.5000,  2.5000,  3.5000,  4.5000,  5.5000,  6.5000,  7.5000,\n"
        "         8.5000,  9.5000, 10.5000, 11.5000], grad_fn=<AddBackward0>)"
    )
    assert format_tensor(np.arange(8.0) + 0.5, "grad_fn=<AddBackward0>") == (
        "tensor([0.5000, 1.5000, 2.5000, 3.5000, 4.5000, 5.5000, 6.5000, 7.5000],\n       grad_fn=<AddBackward0>)"
    )


@pytest.mark.point(85)
@given(st.lists(st.floats(width=64), min_size=1, max_size=1000))
def test_no_line_is_longer_than_eighty_columns(values):
    assert max(map(len, format_tensor(np.array(values), "grad_fn=<AddBackward0>").split("\n"))) <= 80


@pytest.mark.point(85)
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=60))
def test_printed_numbers_are_the_values_to_four_digits(values):
    text = format_tensor(np.array(values)).removeprefix("tensor([").removesuffix("])")
    printed = np.array([float(number) for number in text.split(",")])
    # Half a unit of the last digit: relative in scientific notation, absolute otherwise.
    np.testing.assert_allclose(printed, values, rtol=6e-5, atol=6e-5 if "e" not in text else 5e-324)


def test_strided_and_read_only_arrays_print_like_their_copies():
    array = np.broadcast_to(np.arange(6.0).reshape(2, 3).T[::-1], (2, 3, 2))
    assert format_tensor(array) == format_tensor(array.copy())


def test_a_tensor_without_dimensions_is_formatted_as_its_number() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    assert f"{x.sum():.2f} {x.sum()} {tg.tensor(3):d} {tg.tensor(True)} {tg.tensor(2):>4}" == "3.00 3.0 3 True    2"


def test_other_tensors_are_formatted_as_they_print() -> None:
    assert f"{tg.tensor([1.25])}" == "tensor([1.2500])"
    assert f"{tg.nn.Parameter(tg.tensor(1.0))}" == str(tg.nn.Parameter(tg.tensor(1.0)))
    for t in (tg.tensor([1.25]), tg.ones(2)):
        with pytest.raises(TypeError, match="unsupported format string passed to Tensor.__format__"):
            f"{t:.2f}"
