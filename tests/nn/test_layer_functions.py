"""Functions of layers at their edges: what they refuse, ties, empty windows, running values, random numbers."""

import inspect
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import leaf
from many_cases import each

import tapegrad as tg
from tapegrad.nn import functional

ones, zeros = tg.ones, tg.zeros
numbers = tg.tensor


# What is refused: the call, the kind of error, words of PyTorch's message

WRONG = {
    "conv1d channels": (
        lambda: functional.conv1d(ones(2, 3, 8), ones(4, 2, 3)),
        RuntimeError,
        "Given groups=1, weight of size [4, 2, 3], expected input[2, 3, 8] to have 2 channels, but got 3 channels instead",
    ),
    "conv1d short": (
        lambda: functional.conv1d(ones(2, 3, 8), ones(4, 3, 9)),
        RuntimeError,
        "Calculated padded input size per channel: (8). Kernel size: (9). Kernel size can't be greater than actual input size",
    ),
    "conv1d padding": (lambda: functional.conv1d(ones(1, 1, 8), ones(1, 1, 3), padding=-1), RuntimeError, "negative padding"),
    "conv1d stride": (lambda: functional.conv1d(ones(1, 1, 8), ones(1, 1, 3), stride=0), RuntimeError, "non-positive stride"),
    "conv2d count": (
        lambda: functional.conv2d(ones(1, 1, 8, 8), ones(1, 1, 3, 3), stride=(1, 2, 3)),
        RuntimeError,
        "expected stride to be a single integer value or a list of 2 values to match the convolution dimensions",
    ),
    "conv2d same": (
        lambda: functional.conv2d(ones(1, 1, 8, 8), ones(1, 1, 3, 3), stride=2, padding="same"),
        RuntimeError,
        "padding='same' is not supported for strided convolutions",
    ),
    "conv2d padding name": (
        lambda: functional.conv2d(ones(1, 1, 8, 8), ones(1, 1, 3, 3), padding="full"),
        RuntimeError,
        "Invalid padding string: 'full'",
    ),
    "conv1d groups": (
        lambda: functional.conv1d(ones(2, 4, 8), ones(3, 2, 3), groups=2),
        RuntimeError,
        "Given groups=2, expected weight to be divisible by 2 at dimension 0, but got weight of size",
    ),
    "conv1d bias": (
        lambda: functional.conv1d(ones(2, 3, 8), ones(4, 3, 3), ones(5)),
        RuntimeError,
        "expected bias to be 1-dimensional with 4 elements, but got bias of size [5] instead",
    ),
    "conv1d rank": (
        lambda: functional.conv1d(ones(8), ones(4, 3, 3)),
        RuntimeError,
        "Expected 2D (unbatched) or 3D (batched) input to conv1d, but got input of size: [8]",
    ),
    "conv1d dtype": (
        lambda: functional.conv1d(ones(1, 1, 4, dtype=tg.float32), ones(1, 1, 2)),
        RuntimeError,
        "Input type (float) and weight type (double) should be the same",
    ),
    "conv_transpose1d output_padding": (
        lambda: functional.conv_transpose1d(ones(1, 1, 4), ones(1, 1, 2), output_padding=1),
        RuntimeError,
        "output padding must be smaller than either stride or dilation",
    ),
    "conv_transpose1d size": (
        lambda: functional.conv_transpose1d(ones(1, 1, 4), ones(1, 1, 2), padding=9),
        RuntimeError,
        "Output size is too small",
    ),
    "max_pool2d padding": (
        lambda: functional.max_pool2d(ones(1, 4, 4), 2, padding=2),
        RuntimeError,
        "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and dilation=1",
    ),
    "max_pool2d size": (
        lambda: functional.max_pool2d(ones(2, 3, 8, 8), 9),
        RuntimeError,
        "Given input size: (3x8x8). Calculated output size: (3x0x0). Output size is too small",
    ),
    "avg_pool2d divisor": (
        lambda: functional.avg_pool2d(ones(1, 4, 4), 2, divisor_override=0),
        RuntimeError,
        "divisor must be not zero",
    ),
    "adaptive_avg_pool1d rank": (lambda: functional.adaptive_avg_pool1d(ones(4), 2), RuntimeError, "Expected 2D or 3D"),
    "embedding range": (lambda: functional.embedding(numbers([0, 5]), ones(3, 2)), IndexError, "index out of range in self"),
    "embedding dtype": (lambda: functional.embedding(numbers([0.0]), ones(3, 2)), RuntimeError, "scalar types: Long, Int"),
    "embedding padding": (
        lambda: functional.embedding(numbers([0]), ones(3, 2), 7),
        AssertionError,
        "Padding_idx must be within num_embeddings",
    ),
    "layer_norm shape": (
        lambda: functional.layer_norm(ones(2, 3), (2,)),
        RuntimeError,
        "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[2, 3]",
    ),
    "batch_norm single": (
        lambda: functional.batch_norm(ones(1, 3), None, None, training=True),
        ValueError,
        "Expected more than 1 value per channel when training, got input size [1, 3]",
    ),
    "batch_norm running": (
        lambda: functional.batch_norm(ones(2, 3), ones(2), ones(3)),
        RuntimeError,
        "running_mean should contain 3 elements not 2",
    ),
    "batch_norm evaluation": (
        lambda: functional.batch_norm(ones(2, 3), None, None),
        RuntimeError,
        "running_mean must be defined in evaluation mode",
    ),
    "group_norm": (
        lambda: functional.group_norm(ones(2, 4, 3), 3),
        RuntimeError,
        "Expected number of channels in input to be divisible by num_groups",
    ),
    "dropout": (
        lambda: functional.dropout(ones(2), 1.1),
        ValueError,
        "dropout probability has to be between 0 and 1, but got 1.1",
    ),
    "cross_entropy class": (
        lambda: functional.cross_entropy(zeros(2, 3), numbers([0, 7])),
        IndexError,
        "Target 7 is out of bounds.",
    ),
    "cross_entropy batch": (
        lambda: functional.cross_entropy(zeros(2, 3), numbers([0, 1, 2])),
        ValueError,
        "Expected input batch_size (2) to match target batch_size (3).",
    ),
    "cross_entropy spatial": (
        lambda: functional.cross_entropy(zeros(2, 3, 4), numbers([[0, 1, 2], [0, 1, 2]])),
        RuntimeError,
        "Expected target size [2, 4], got [2, 3]",
    ),
    "cross_entropy dtype": (
        lambda: functional.cross_entropy(zeros(2, 3), numbers([0.0, 1.0])),
        RuntimeError,
        "expected target dtype to be Long or Byte, but got Double",
    ),
    "cross_entropy weight": (
        lambda: functional.cross_entropy(zeros(2, 3), numbers([0, 1]), ones(2)),
        RuntimeError,
        "weight tensor should be defined either for all 3 classes or no classes but got weight tensor of shape: [2]",
    ),
    "cross_entropy tracked weight": (
        lambda: functional.cross_entropy(zeros(2, 3), numbers([0, 1]), ones(3, requires_grad=True)),
        RuntimeError,
        "is not differentiable with respect to argument 'weight'",
    ),
    "cross_entropy smoothing": (
        lambda: functional.cross_entropy(zeros(2, 3), numbers([0, 1]), label_smoothing=1.1),
        RuntimeError,
        "label_smoothing must be between 0.0 and 1.0. Got: 1.1",
    ),
    "huber_loss": (lambda: functional.huber_loss(ones(2), ones(2), delta=0), RuntimeError, "non-positive values for delta"),
    "smooth_l1_loss": (lambda: functional.smooth_l1_loss(ones(2), ones(2), beta=-1.0), RuntimeError, "negative values for beta"),
    "binary_cross_entropy input": (
        lambda: functional.binary_cross_entropy(numbers([1.5]), ones(1)),
        RuntimeError,
        "all elements of input should be between 0 and 1",
    ),
    "binary_cross_entropy size": (
        lambda: functional.binary_cross_entropy(ones(1), ones(2)),
        ValueError,
        "Please ensure they have the same size.",
    ),
    "with_logits size": (
        lambda: functional.binary_cross_entropy_with_logits(ones(2), ones(3)),
        ValueError,
        "must be the same as input size",
    ),
}


@pytest.mark.point(95)
@each(("call", "kind", "words"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_raise_errors_of_pytorch(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)


def test_a_refused_target_records_nothing():
    x = zeros(2, 3, requires_grad=True)
    with pytest.raises(IndexError):
        functional.nll_loss(x, numbers([0, 7]))
    functional.nll_loss(x, numbers([0, 1])).backward()
    assert x.grad.tolist() == [[-0.5, 0.0, 0.0], [0.0, -0.5, 0.0]]


# Convolutions


def test_a_batch_without_elements_has_gradients_of_zero():
    weight = ones(2, 3, 2, requires_grad=True)
    result = functional.conv1d(zeros(0, 3, 4), weight)
    result.sum().backward()
    assert (tuple(result.shape), weight.grad.abs().sum().item()) == ((0, 2, 3), 0.0)


def test_a_large_batch_is_worked_off_in_parts():
    x, w = tg.randn(40, 3, 70, 70), tg.randn(2, 3, 3, 3, requires_grad=True)
    functional.conv2d(x, w).sum().backward()
    windows = np.lib.stride_tricks.sliding_window_view(x.numpy(), (68, 68), (2, 3)).sum((0, 4, 5))
    np.testing.assert_allclose(w.grad.numpy(), np.stack([windows, windows]), rtol=1e-9, atol=1e-9)


def test_convolutions_of_integers_are_integers():
    x, w = numbers([[[1, 2, 4]]]), numbers([[[1, -1]]])
    assert functional.conv1d(x, w).tolist() == [[[-1, -2]]]


# Pooling


@pytest.mark.point(79)
def test_the_first_of_several_largest_elements_gets_the_gradient():
    x = ones(1, 4, requires_grad=True)
    functional.max_pool1d(x, 2).sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0, 1.0, 0.0]]


def test_an_element_that_is_largest_twice_gets_both_gradients():
    x = numbers([[1.0, 5.0, 2.0]], requires_grad=True)
    functional.max_pool1d(x, 2, stride=1).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 0.0]]


def test_nan_is_the_largest_element():
    assert np.isnan(functional.max_pool1d(numbers([[1.0, float("nan"), 2.0, 3.0]]), 4).item())


def test_infinities_stay_in_their_window():
    x = numbers([[1.0, 3.0, float("inf"), 1.0]])
    assert functional.avg_pool1d(x, 2).tolist() == functional.adaptive_avg_pool1d(x, 2).tolist() == [[2.0, float("inf")]]


def test_a_window_in_the_padding_alone_has_no_gradient():
    x = ones(1, 6, 1, requires_grad=True)
    result = functional.max_pool2d(x, (4, 2), padding=(0, 1), ceil_mode=True, dilation=2)
    result.sum().backward()
    assert (result.item(), x.grad.abs().sum().item()) == (float("-inf"), 0.0)


def test_returned_indices_may_be_written():
    x = numbers([[1.0, 5.0]], requires_grad=True)
    values, indices = functional.max_pool1d(x, 2, return_indices=True)
    indices.zero_()
    values.sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0]]


# Embedding


def test_the_padding_row_gets_no_gradient():
    table = ones(3, 2, requires_grad=True)
    functional.embedding(numbers([0, 2, 2]), table, padding_idx=-1).sum().backward()
    assert table.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_gradients_can_be_scaled_by_frequency():
    table = ones(3, 1, requires_grad=True)
    functional.embedding(numbers([0, 2, 2]), table, scale_grad_by_freq=True).sum().backward()
    assert table.grad.tolist() == [[1.0], [0.0], [1.0]]


def test_long_rows_are_shortened_in_the_table():
    table = numbers([[3.0, 4.0], [6.0, 8.0], [0.3, 0.4]])
    functional.embedding(numbers([0, 2]), table, max_norm=1.0)
    np.testing.assert_allclose(table.numpy(), [[0.6, 0.8], [6.0, 8.0], [0.3, 0.4]], rtol=1e-6)


def test_written_indices_do_no_harm():
    table, rows = ones(3, 1, requires_grad=True), numbers([1])
    result = functional.embedding(rows, table)
    rows.zero_()
    result.sum().backward()
    assert table.grad.tolist() == [[0.0], [1.0], [0.0]]


# Normalising layers


def test_running_values_move_towards_those_of_the_batch():
    mean, variance = zeros(1), ones(1)
    functional.batch_norm(numbers([[1.0], [3.0]]), mean, variance, training=True, momentum=0.25)
    assert (mean.tolist(), variance.tolist()) == ([0.5], [1.25])


def test_running_values_stay_in_evaluation():
    mean, variance = zeros(1), ones(1)
    functional.batch_norm(numbers([[1.0], [3.0]]), mean, variance)
    assert (mean.tolist(), variance.tolist()) == ([0.0], [1.0])


def test_running_values_may_be_written_after_their_use():
    x, mean, variance = ones(2, 1, requires_grad=True), zeros(1), ones(1)
    result = functional.batch_norm(x, mean, variance, eps=3.0)
    variance.fill_(100.0)
    result.sum().backward()
    assert x.grad.tolist() == [[0.5], [0.5]]


def test_instance_norm_moves_running_values_to_the_mean_over_the_batch():
    mean, variance = zeros(1), zeros(1)
    functional.instance_norm(numbers([[[0.0, 2.0]], [[4.0, 8.0]]]), mean, variance, momentum=1.0)
    assert (mean.tolist(), variance.tolist()) == ([3.5], [5.0])


# Dropout


def test_the_seed_reproduces_dropout():
    tg.manual_seed(3)
    first = functional.dropout(ones(50))
    tg.manual_seed(3)
    assert functional.dropout(ones(50)).tolist() == first.tolist()


def test_gradients_pass_where_elements_were_kept():
    x = ones(50, requires_grad=True)
    result = functional.dropout(x, 0.75)
    result.sum().backward()
    assert x.grad.tolist() == result.tolist()
    assert set(result.tolist()) == {0.0, 4.0}


@each(("p", "kept"), [(0.0, 1.0), (1.0, 0.0)])
def test_dropout_at_its_bounds(p, kept):
    assert functional.dropout(ones(3), p).tolist() == [kept] * 3


def test_dropout_in_evaluation_is_the_input_itself():
    x = ones(3)
    assert functional.dropout(x, 0.9, training=False) is x


def test_dropout_can_write_into_its_input():
    x = ones(3)
    assert functional.dropout(x, 1.0, inplace=True) is x
    assert x.tolist() == [0.0] * 3


@each(
    ("function", "shape"),
    [(functional.dropout1d, (9, 9, 3)), (functional.dropout2d, (9, 9, 3, 2)), (functional.dropout3d, (9, 9, 3, 2, 2))],
    ids=["1d", "2d", "3d"],
)
def test_whole_channels_are_dropped(function, shape):
    channels = function(ones(*shape), 0.5).numpy().reshape(81, -1)
    assert set(channels.min(1)) == {0.0, 2.0}
    assert (channels.min(1) == channels.max(1)).all()


def test_alpha_dropout_keeps_mean_and_variance():
    tg.manual_seed(0)
    result = functional.alpha_dropout(tg.randn(200_000), 0.3, training=True).numpy()
    assert abs(result.mean()) < 0.02
    assert abs(result.var() - 1.0) < 0.02


# Losses


def test_a_mean_over_no_targets_is_nan_without_gradient():
    x = zeros(2, 3, requires_grad=True)
    loss = functional.cross_entropy(x, numbers([-100, -100]))
    loss.backward()
    assert np.isnan(loss.item())
    assert x.grad.tolist() == [[0.0] * 3] * 2


@pytest.mark.point(83)
@each(("weight", "share"), [(None, [0.5, 0.5]), ([1.0, 3.0], [0.25, 0.75])], ids=str)
def test_mean_of_cross_entropy_is_over_the_weight_of_the_targets_kept(weight, share):
    x = zeros(3, 2, requires_grad=True)
    loss = functional.cross_entropy(x, numbers([0, 1, -100]), None if weight is None else numbers(weight))
    loss.backward()
    np.testing.assert_allclose(loss.item(), np.log(2.0), rtol=1e-15)
    half = np.array(share) / 2
    np.testing.assert_allclose(x.grad.numpy(), [[-half[0], half[0]], [half[1], -half[1]], [0.0, 0.0]], rtol=1e-15)


def test_logarithms_in_binary_cross_entropy_are_bounded():
    loss = functional.binary_cross_entropy(numbers([0.0, 1.0]), numbers([1.0, 0.0]), reduction="none")
    assert loss.tolist() == [100.0, 100.0]


def test_large_logits_do_not_overflow():
    x = numbers([1000.0, -1000.0], requires_grad=True)
    loss = functional.binary_cross_entropy_with_logits(x, numbers([0.0, 1.0]), reduction="sum")
    loss.backward()
    assert (loss.item(), x.grad.tolist()) == (2000.0, [1.0, -1.0])


def test_the_mean_of_the_divergence_warns():
    with pytest.warns(UserWarning, match="batchmean"):
        functional.kl_div(zeros(2), ones(2))


def test_a_zero_vector_has_no_direction():
    x = zeros(1, 2, requires_grad=True)
    functional.cosine_similarity(x, ones(1, 2)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[1e8 / np.sqrt(2)] * 2])


def test_a_query_that_may_look_at_nothing_gets_zeros():
    query = ones(2, 2, requires_grad=True)
    mask = numbers([[True, False], [False, False]])
    result = functional.scaled_dot_product_attention(query, ones(2, 2), numbers([[3.0], [4.0]]), mask)
    result.sum().backward()
    assert (result.tolist(), query.grad.tolist()) == ([[3.0], [0.0]], [[0.0, 0.0], [0.0, 0.0]])


NODES = {
    "ConvolutionBackward0": lambda x: functional.conv1d(x, ones(1, 2, 2)),
    "MaxPool2DWithIndicesBackward0": lambda x: functional.max_pool2d(x, 2),
    "AvgPool2DBackward0": lambda x: functional.avg_pool2d(x, 2),
    "AdaptiveAvgPool2DBackward0": lambda x: functional.adaptive_avg_pool2d(x, 2),
    "EmbeddingBackward0": lambda x: functional.embedding(numbers([0]), x[0]),
    "NativeLayerNormBackward0": lambda x: functional.layer_norm(x, (4,)),
    "NativeBatchNormBackward0": lambda x: functional.batch_norm(x, None, None, training=True),
    "NativeGroupNormBackward0": lambda x: functional.group_norm(x, 1),
    "MseLossBackward0": lambda x: functional.mse_loss(x, zeros(2, 2, 4)),
    "NllLossBackward0": lambda x: functional.cross_entropy(x[0], numbers([0, 1])),
    "NllLoss2DBackward0": lambda x: functional.nll_loss(x, numbers([[0, 1, 0, 1]] * 2)),
    "BinaryCrossEntropyWithLogitsBackward0": lambda x: functional.binary_cross_entropy_with_logits(x, zeros(2, 2, 4)),
}


@pytest.mark.point(89)
@each("name", NODES)
def test_nodes_have_the_names_of_pytorch(name):
    assert NODES[name](ones(2, 2, 4, requires_grad=True)).grad_fn.name() == name


@each(
    ("call", "words"),
    [
        (lambda: functional.conv1d([1.0], ones(1, 1, 1)), r"conv1d\(\): argument 'input' must be Tensor, not list"),
        (lambda: functional.layer_norm([1.0], (1,)), r"layer_norm\(\): argument 'input' \(position 1\) must be Tensor, not list"),
        (lambda: functional.mse_loss(ones(1), 1.0), r"mse_loss\(\): argument 'target' \(position 2\) must be Tensor, not float"),
        (lambda: functional.cross_entropy(zeros(1, 2), [1]), "argument 'target' .* must be Tensor, not list"),
    ],
)
def test_what_is_no_tensor_is_refused(call, words):
    with pytest.raises(TypeError, match=words):
        call()


@each("loss", [functional.cross_entropy, functional.nll_loss])
def test_what_older_pytorch_had_after_the_weights_is_not_taken_for_a_class(loss):
    with pytest.raises(TypeError, match="positional argument"):
        loss(zeros(2, 3), numbers([0, 1]), None, True)


def test_a_score_that_meets_the_margin_has_no_gradient() -> None:
    x = leaf([1.0, 2.0, 3.0])
    functional.multi_margin_loss(x, tg.tensor(1)).backward()  # the first score is lower by just the margin
    np.testing.assert_allclose(x.grad.numpy(), [0.0, -1 / 3, 1 / 3])


def test_margin_loss_of_no_samples_is_zero() -> None:
    assert functional.multi_margin_loss(tg.ones(0, 3), tg.zeros(0, dtype=tg.int64)) == 0.0


@each(
    ("scores", "target", "message"),
    [
        ((1, 3), [1, 2], r"Expected target size \[1\], but got \[2\]"),
        ((2, 3), [[1], [2]], r"Expected target size \[2\], but got \[2, 1\]"),
        ((2, 3), [1, 3], "target out of range"),
        ((2, 3), [1, -1], "target out of range"),
        ((2, 3), [1.0, 2.0], "expected targets of type Long but found Double"),
        ((2, 2, 3), [1, 2], "Expected non-empty vector or matrix"),
        ((2, 0), [0, 0], "Expected non-empty vector or matrix"),
    ],
)
def test_what_margin_losses_do_not_take(scores: tuple[int, ...], target: list[float], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        functional.multi_margin_loss(tg.ones(*scores), tg.tensor(target))


@each("name", functional.__all__)
def test_functions_can_be_pickled(name: str) -> None:
    function = getattr(functional, name)
    assert pickle.loads(pickle.dumps(function)) is function


FAMILIES = ["conv", "conv_transpose", "max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool"]


@each("family", FAMILIES)
@each(("rank", "sizes"), [(1, "l"), (2, "h, w"), (3, "d, h, w")])
def test_help_of_every_dimension_shows_arguments_shapes_errors_and_an_example(family: str, rank: int, sizes: str) -> None:
    function = getattr(functional, f"{family}{rank}d")
    text = inspect.getdoc(function) or ""
    for shown in (f"c, {sizes})", "Raises", f">>> tg.nn.functional.{family}{rank}d("):
        assert shown.replace("c, ", "m, ") in text if "transpose" in family else shown in text
    assert [name for name in inspect.signature(function).parameters if name not in text] == []


@each("family", FAMILIES)
def test_missing_arguments_are_refused_in_the_function_s_own_name(family: str) -> None:
    with pytest.raises(TypeError, match=rf"{family}2d\(\) missing"):
        getattr(functional, f"{family}2d")()


PACKED: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "convolution": lambda x: functional.conv1d(x, x[:, :, :2]),
    "layer_norm": lambda x: functional.layer_norm(x, (6,), x[0, 0]),
    "batch_norm": lambda x: functional.batch_norm(x, None, None, x[0, 0, :1], training=True),
}


@each("name", PACKED)
def test_saved_values_may_come_back_in_another_dtype_but_not_in_another_size(name: str) -> None:
    x = tg.tensor([[[1.0, 3.0, 2.0, 5.0, 4.0, 0.5]]], requires_grad=True)
    (wanted,) = tg.autograd.grad((PACKED[name](x) ** 2).sum(), x)
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t.to(tg.float16)):
        (found,) = tg.autograd.grad((PACKED[name](x) ** 2).sum(), x)
    assert np.allclose(found.numpy(), wanted.numpy(), rtol=0.02, atol=0.02)
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t.reshape(-1)[:1].reshape((1,) * t.ndim)):
        y = PACKED[name](x)
    with pytest.raises((RuntimeError, ValueError)):
        tg.autograd.grad(y.sum(), x)


@each("shape", [(0, 2), (0, 2, 3)])
def test_a_batch_without_elements_leaves_running_values(shape: tuple[int, ...]) -> None:
    layer = tg.nn.BatchNorm1d(2)
    assert layer(zeros(shape)).shape == shape
    assert (layer.running_mean.tolist(), layer.running_var.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_instances_are_normalised_without_a_bias() -> None:
    layer = tg.nn.InstanceNorm1d(2, affine=True, bias=False)
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


@each("drop", [functional.dropout, functional.alpha_dropout])
def test_a_number_is_dropped_or_kept(drop: Callable[..., tg.Tensor]) -> None:
    dropped, kept = drop(numbers(3.0), 1.0, training=True).item(), drop(numbers(3.0), 0.0, training=True).item()
    assert (dropped, kept) == (0.0, 3.0)
    assert drop(numbers(3.0), 0.5, training=True).shape == ()


@each("given", [(tg.int8, tg.float64), (tg.float64, tg.int64), (tg.float32, tg.float64)])
def test_cosine_similarity_is_that_of_the_promoted_vectors(given):
    first, second = (tg.tensor([3, 4]).to(dtype) for dtype in given)
    found = functional.cosine_similarity(first, second, dim=0)
    assert found.dtype == tg.float64 and abs(found.item() - 1.0) < 1e-12
