"""Steps of optimisers and rates of schedules, beside those of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed; make oracle installs it")

from torch.testing._internal.common_optimizers import optim_db  # noqa: E402

import tapegrad as tg  # noqa: E402

pytestmark = pytest.mark.oracle
RNG = np.random.default_rng(0)
MATRIX, RIGHT, START, SQUARE = (RNG.normal(size=shape) for shape in ((8, 6), (8,), (6,), (2, 2)))


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def _options() -> Iterator[tuple[str, dict[str, Any]]]:
    """Options that PyTorch tries its own optimisers with."""
    for info in optim_db:
        name = info.optim_cls.__name__
        if hasattr(tg.optim, name) and name != "LBFGS":
            for given in info.optim_inputs_func(device="cpu"):
                yield name, {key: value.item() if torch.is_tensor(value) else value for key, value in given.kwargs.items()}


def steps(library: Any, name: str, options: dict[str, Any]) -> np.ndarray:
    x, y = library.tensor(START.copy(), requires_grad=True), library.tensor(SQUARE.copy(), requires_grad=True)
    a, b = library.tensor(MATRIX), library.tensor(RIGHT)
    optimizer = getattr(library.optim, name)([x, y], **options)
    places = []
    for _ in range(8):
        optimizer.zero_grad()
        (((a @ x - b) ** 2).sum() + (y**4).sum() + (x[:2] @ y).sum()).backward()
        optimizer.step()
        places.append(np.concatenate([x.detach().numpy(), y.detach().numpy().ravel()]))
    return np.array(places)


@pytest.mark.parametrize(("name", "options"), list(_options()))
def test_steps_are_those_of_pytorch(name: str, options: dict[str, Any]) -> None:
    np.testing.assert_allclose(steps(tg, name, options), steps(torch, name, options), rtol=1e-10, atol=1e-12)


CONVEX: dict[str, Callable[[Any, Any, Any], Any]] = {
    "squares": lambda a, b, x: ((a @ x - b) ** 2).sum(),
    "logistic": lambda a, b, x: (1 + (-(b * (a @ x))).exp()).log().sum() + 0.1 * (x**2).sum(),
    "fourth powers": lambda a, b, x: ((a @ x - b) ** 4).sum() + (x**2).sum(),
    "exponentials": lambda a, b, x: (a @ x).exp().sum() + (x**2).sum(),
    "distances": lambda a, b, x: (1 + (a @ x - b) ** 2).sqrt().sum(),
}
LBFGS_OPTIONS: list[dict[str, Any]] = [
    {"lr": 0.1}, {"lr": 0.05, "max_iter": 3, "history_size": 2}, {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 3}, {"line_search_fn": "strong_wolfe", "max_iter": 4},
]  # fmt: skip


def evaluations(library: Any, loss: Callable[[Any, Any, Any], Any], options: dict[str, Any]) -> np.ndarray:
    """The points at which L-BFGS asks for the loss, over four calls."""
    x = library.tensor(START.copy(), requires_grad=True)
    a, b = library.tensor(MATRIX), library.tensor(RIGHT)
    optimizer = library.optim.LBFGS([x], **options)
    points = []

    def closure() -> Any:
        optimizer.zero_grad()
        value = loss(a, b, x)
        value.backward()
        points.append(np.array(x.detach().numpy()))
        return value

    for _ in range(4):
        optimizer.step(closure)
    return np.array(points)


@pytest.mark.parametrize("options", LBFGS_OPTIONS)
@pytest.mark.parametrize("loss", CONVEX)
def test_lbfgs_evaluates_at_the_points_of_pytorch(loss: str, options: dict[str, Any]) -> None:
    ours, theirs = (evaluations(library, CONVEX[loss], options) for library in (tg, torch))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "StepLR": lambda s, o: s.StepLR(o, 3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5], gamma=0.5),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.3, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, 0.8, 6),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 7, power=1.7),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda epoch: 0.5 ** (epoch // 2)),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, [lambda epoch: 0.9, lambda epoch: 1 / (1 + epoch)]),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, eta_min=0.1),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, eta_min=0.01),
    "warm restarts of one length": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [1.0, 0.5], total_steps=30),
    "CyclicLR": lambda s, o: s.CyclicLR(o, [0.1, 0.2], 1.0, step_size_up=3, step_size_down=5),
    "CyclicLR that halves": lambda s, o: s.CyclicLR(o, 0.1, 1.0, step_size_up=3, mode="triangular2", base_momentum=0.7),
    "CyclicLR that decays": lambda s, o: s.CyclicLR(o, 0.1, 1.0, step_size_up=4, mode="exp_range", gamma=0.9),
    "CyclicLR by a function": lambda s, o: s.CyclicLR(
        o, 0.1, 1.0, step_size_up=2, scale_fn=lambda n: 1 / n, cycle_momentum=False
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.2, total_iters=3), s.StepLR(o, 2, 0.5), s.CosineAnnealingLR(o, 4), s.CosineAnnealingWarmRestarts(o, 2)],
        [4, 9, 15],
    ),
    "SequentialLR of functions": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.5, 9), s.MultiplicativeLR(o, lambda epoch: 0.8 - 0.1 * (epoch == 0)), s.PolynomialLR(o, 5)], [3, 8]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.LinearLR(o)], o),
}  # fmt: skip


def rates(library: Any, make: Callable[[Any, Any], Any], kind: str) -> np.ndarray:
    """Rates and momenta of two groups, epoch by epoch."""
    params = [{"params": [library.ones(1, requires_grad=True)], "lr": lr} for lr in (1.0, 0.25)]
    optimizer = getattr(library.optim, kind)(params, lr=1.0, **({"momentum": 0.9} if kind == "SGD" else {}))
    schedule = make(library.optim.lr_scheduler, optimizer)
    found = []
    for _ in range(25):
        groups = optimizer.param_groups
        found.append(
            [
                *[g["lr"] for g in groups],
                *schedule.get_last_lr(),
                *[g["momentum"] if kind == "SGD" else g["betas"][0] for g in groups],
            ]
        )
        optimizer.step()
        schedule.step()
    return np.array(found)


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.filterwarnings("ignore:.*epoch parameter:UserWarning")
def test_rates_are_those_of_pytorch(name: str, kind: str) -> None:
    ours, theirs = (rates(library, SCHEDULES[name], kind) for library in (tg, torch))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)
