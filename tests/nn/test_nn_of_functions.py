"""Modules that are one function with its options: margins, shuffled pixels, windows; and samples that have a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.nn import functional

F = functional
RNG = np.random.default_rng(6)
LINES, IMAGES, VOLUMES = (RNG.normal(size=shape) for shape in ((2, 4, 6), (2, 4, 6, 4), (1, 2, 4, 4, 4)))
MODULES: list[tuple[nn.Module, Callable[[Any], Any], str, np.ndarray]] = [
    (nn.ZeroPad1d((1, 2)), lambda x: F.pad(x, (1, 2)), "ZeroPad1d((1, 2))", LINES),
    (nn.ZeroPad2d(1), lambda x: F.pad(x, (1,) * 4), "ZeroPad2d((1, 1, 1, 1))", IMAGES),
    (nn.ZeroPad3d(1), lambda x: F.pad(x, (1,) * 6), "ZeroPad3d((1, 1, 1, 1, 1, 1))", VOLUMES),
    (nn.ConstantPad1d(1, 0.5), lambda x: F.pad(x, (1, 1), value=0.5), "ConstantPad1d(padding=(1, 1), value=0.5)", LINES),
    (nn.ConstantPad2d((1, 0, 2, -1), 2), lambda x: F.pad(x, (1, 0, 2, -1), value=2),
     "ConstantPad2d(padding=(1, 0, 2, -1), value=2)", IMAGES),
    (nn.ConstantPad3d(1, 2), lambda x: F.pad(x, (1,) * 6, value=2), "ConstantPad3d(padding=(1, 1, 1, 1, 1, 1), value=2)", VOLUMES),
    (nn.ReflectionPad1d(2), lambda x: F.pad(x, (2, 2), "reflect"), "ReflectionPad1d((2, 2))", LINES),
    (nn.ReflectionPad2d(2), lambda x: F.pad(x, (2,) * 4, "reflect"), "ReflectionPad2d((2, 2, 2, 2))", IMAGES),
    (nn.ReflectionPad3d(1), lambda x: F.pad(x, (1,) * 6, "reflect"), "ReflectionPad3d((1, 1, 1, 1, 1, 1))", VOLUMES),
    (nn.ReplicationPad1d(2), lambda x: F.pad(x, (2, 2), "replicate"), "ReplicationPad1d((2, 2))", LINES),
    (nn.ReplicationPad2d(2), lambda x: F.pad(x, (2,) * 4, "replicate"), "ReplicationPad2d((2, 2, 2, 2))", IMAGES),
    (nn.ReplicationPad3d(2), lambda x: F.pad(x, (2,) * 6, "replicate"), "ReplicationPad3d((2, 2, 2, 2, 2, 2))", VOLUMES),
    (nn.CircularPad1d(2), lambda x: F.pad(x, (2, 2), "circular"), "CircularPad1d((2, 2))", LINES),
    (nn.CircularPad2d(2), lambda x: F.pad(x, (2,) * 4, "circular"), "CircularPad2d((2, 2, 2, 2))", IMAGES),
    (nn.CircularPad3d(2), lambda x: F.pad(x, (2,) * 6, "circular"), "CircularPad3d((2, 2, 2, 2, 2, 2))", VOLUMES),
    (nn.PixelShuffle(2), lambda x: F.pixel_shuffle(x, 2), "PixelShuffle(upscale_factor=2)", IMAGES),
    (nn.PixelUnshuffle(2), lambda x: F.pixel_unshuffle(x, 2), "PixelUnshuffle(downscale_factor=2)", IMAGES),
    (nn.ChannelShuffle(2), lambda x: F.channel_shuffle(x, 2), "ChannelShuffle(groups=2)", LINES),
    (nn.LPPool1d(2, 3), lambda x: F.lp_pool1d(x, 2, 3), "LPPool1d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)",
     LINES),
    (nn.LPPool2d(1, 2, 1), lambda x: F.lp_pool2d(x, 1, 2, 1), "LPPool2d(norm_type=1, kernel_size=2, stride=1, ceil_mode=False)",
     IMAGES),
    (nn.LPPool3d(2, 3, 2, True), lambda x: F.lp_pool3d(x, 2, 3, 2, True),
     "LPPool3d(norm_type=2, kernel_size=3, stride=2, ceil_mode=True)", VOLUMES),
    (nn.Unfold((2, 3), stride=2), lambda x: F.unfold(x, (2, 3), stride=2),
     "Unfold(kernel_size=(2, 3), dilation=1, padding=0, stride=2)", IMAGES),
    (nn.Fold((3, 4), 2), lambda x: F.fold(x, (3, 4), 2), "Fold(output_size=(3, 4), kernel_size=2, dilation=1, padding=0, stride=1)",
     LINES),
]  # fmt: skip
NAMES = [type(module).__name__ for module, *_ in MODULES]


@pytest.mark.parametrize(("module", "function", "text", "points"), MODULES, ids=NAMES)
def test_a_module_is_its_function_and_prints_its_options(
    module: nn.Module, function: Callable[[Any], Any], text: str, points: np.ndarray
) -> None:
    assert repr(module) == text
    np.testing.assert_array_equal(module(tg.tensor(points)), function(tg.tensor(points)))


def test_losses_are_their_functions() -> None:
    x, y, z = (tg.tensor(RNG.normal(size=(3, 4))) for _ in range(3))
    classes = tg.tensor([[3, 0, -1, 1], [-1, 0, 0, 0], [2, 1, 0, 3]])
    assert nn.MultiLabelMarginLoss("sum")(x, classes).item() == F.multilabel_margin_loss(x, classes, "sum").item()
    loss = nn.TripletMarginWithDistanceLoss(margin=2.0, swap=True)
    assert loss(x, y, z).item() == pytest.approx(F.triplet_margin_loss(x, y, z, 2.0, swap=True).item())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.ZeroPad2d((1, 2)), ValueError, "padding must be one int or 4, but got 2"),
        (lambda: F.pixel_shuffle(tg.ones(1, 3, 2, 2), 2), RuntimeError, "input.size(-3)=3 is not divisible by 4"),
        (lambda: F.pixel_shuffle(tg.ones(2, 2), 2), RuntimeError, "at least 3 dimensions, but got input with 2 dimension(s)"),
        (lambda: F.pixel_shuffle(tg.ones(4, 2, 2), 0), RuntimeError, "expects a positive upscale_factor, but got 0"),
        (lambda: F.pixel_unshuffle(tg.ones(1, 2, 3), 2), RuntimeError, "width to be divisible by downscale_factor"),
        (lambda: F.channel_shuffle(tg.ones(1, 3, 2), 2), RuntimeError, "Got 3 channels and 2 groups."),
        (lambda: F.channel_shuffle(tg.ones(1, 3), 1), RuntimeError, "expects input with > 2 dims"),
        (lambda: F.multilabel_margin_loss(tg.ones(2), tg.tensor([2, 0])), RuntimeError, "the classes are 0 to 1, got [2, 0]"),
        (lambda: F.multilabel_margin_loss(tg.ones(2), tg.tensor([1])), RuntimeError, "inconsistent target size: [1]"),
        (lambda: F.multilabel_margin_loss(tg.ones(2), tg.ones(2)), RuntimeError, "expected targets of type Long but found Double"),
        (lambda: nn.TripletMarginWithDistanceLoss(margin=-1.0), ValueError, "margin to be greater than 0, got -1.0"),
        (lambda: F.triplet_margin_with_distance_loss(*map(tg.ones, (1, 2, 3)), margin=0.0), ValueError, "greater than 0, got 0.0"),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_samples_have_the_chances_that_the_logits_give() -> None:
    tg.manual_seed(3)
    chances = np.array([0.5, 0.3, 0.2])
    drawn = F.gumbel_softmax(tg.tensor(np.log(chances)).expand(4000, 3), hard=True)
    np.testing.assert_array_equal(drawn.sum(1), np.ones(4000))
    np.testing.assert_allclose(drawn.mean(0), chances, atol=0.03)


@pytest.mark.parametrize("dtype", [tg.float16, tg.float32])
def test_noise_is_finite_where_the_random_number_is_zero(dtype: Any) -> None:
    size = (200, 100) if dtype == tg.float16 else (20000, 100)
    tg.manual_seed(13)
    assert (tg.rand(*size, dtype=dtype) == 0).any()
    tg.manual_seed(13)
    assert np.isfinite(F.gumbel_softmax(tg.zeros(*size, dtype=dtype)).numpy()).all()


@pytest.mark.parametrize("hard", [False, True])
def test_samples_have_the_gradient_of_the_softmax(hard: bool) -> None:
    logits = tg.tensor([[0.3, -0.2], [1.0, 0.5]], requires_grad=True)
    weights = tg.tensor([[1.0, 2.0], [-1.0, 0.5]])
    tg.manual_seed(1)
    (F.gumbel_softmax(logits, 0.7, hard) * weights).sum().backward()
    tg.manual_seed(1)
    soft, w = F.gumbel_softmax(logits.detach(), 0.7).numpy(), weights.numpy()
    np.testing.assert_allclose(logits.grad, soft * (w - (soft * w).sum(1, keepdims=True)) / 0.7, rtol=1e-12)
