"""Learning rates of the schedules beside their closed forms."""

import io
import math
from collections.abc import Callable
from typing import Any

import pytest

import tapegrad as tg

schedules = tg.optim.lr_scheduler
EPOCHS = 12


def optimiser(kind: str = "SGD", **options: Any) -> tg.optim.Optimizer:
    params = [{"params": [tg.ones(1, requires_grad=True)]}, {"params": [tg.ones(1, requires_grad=True)], "lr": 0.25}]
    optimizer: tg.optim.Optimizer = getattr(tg.optim, kind)(params, lr=1.0, **options)
    return optimizer


def cosine(epoch: int) -> float:
    return 0.1 + 0.9 * (1 + math.cos(math.pi * epoch / 5)) / 2


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[int], float]]] = {
    "StepLR": (lambda o: schedules.StepLR(o, 3, gamma=0.5), lambda epoch: 0.5 ** (epoch // 3)),
    "MultiStepLR": (
        lambda o: schedules.MultiStepLR(o, [2, 5, 5], gamma=0.5),
        lambda epoch: 0.5 ** sum(epoch >= m for m in (2, 5, 5)),
    ),
    "ExponentialLR": (lambda o: schedules.ExponentialLR(o, 0.9), lambda epoch: 0.9**epoch),
    "LambdaLR": (lambda o: schedules.LambdaLR(o, lambda epoch: 1 / (1 + epoch)), lambda epoch: 1 / (1 + epoch)),
    "LinearLR": (lambda o: schedules.LinearLR(o, 0.2, 0.8, 6), lambda epoch: 0.2 + 0.6 * min(epoch, 6) / 6),
    "ConstantLR": (lambda o: schedules.ConstantLR(o, 0.25, 4), lambda epoch: 0.25 if epoch < 4 else 1.0),
    "ConstantLR of nothing": (lambda o: schedules.ConstantLR(o, 0.0, 4), lambda epoch: 0.0 if epoch < 4 else 1.0),
    "PolynomialLR": (lambda o: schedules.PolynomialLR(o, 8, 1.5), lambda epoch: (1 - min(epoch, 8) / 8) ** 1.5),
    "MultiplicativeLR": (lambda o: schedules.MultiplicativeLR(o, lambda epoch: epoch / (1 + epoch)), lambda epoch: 1 / (1 + epoch)),
    "CosineAnnealingWarmRestarts": (
        lambda o: schedules.CosineAnnealingWarmRestarts(o, 3, 2, eta_min=0.1),
        lambda epoch: (
            0.1
            + 0.9 * (1 + math.cos(math.pi * (epoch / 3 if epoch < 3 else (epoch - 3) / 6 if epoch < 9 else (epoch - 9) / 12))) / 2
        ),
    ),
    "CyclicLR": (
        lambda o: schedules.CyclicLR(o, 0.2, 1.0, 2, 4, mode="triangular2", cycle_momentum=False),
        lambda epoch: 0.2 + 0.8 * 0.5 ** (epoch // 6) * (epoch % 6 / 2 if epoch % 6 <= 2 else (6 - epoch % 6) / 4),
    ),
    "CyclicLR by a function": (
        lambda o: schedules.CyclicLR(o, 0.0, 1.0, 1, scale_fn=lambda n: 1 / n, cycle_momentum=False),
        lambda epoch: epoch % 2 / (epoch // 2 + 1),
    ),
    "SequentialLR": (
        lambda o: schedules.SequentialLR(
            o, [schedules.ConstantLR(o, 0.5, 9), schedules.ExponentialLR(o, 0.9), schedules.StepLR(o, 2, 0.5)], [3, 7]
        ),
        lambda epoch: 0.5 if epoch < 3 else 0.9 ** (epoch - 3) if epoch < 7 else 0.5 ** ((epoch - 7) // 2),
    ),
    "SequentialLR of others": (
        lambda o: schedules.SequentialLR(
            o,
            [
                schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.5, 9), schedules.ExponentialLR(o, 0.9)], [2]),
                schedules.ChainedScheduler([schedules.ConstantLR(o, 0.5, 2), schedules.ExponentialLR(o, 0.9)]),
            ],
            [5],
        ),
        lambda epoch: 0.5 if epoch < 2 else 0.9 ** (epoch - 2) if epoch < 5 else 0.9 ** (epoch - 5) * (0.5 if epoch < 7 else 1.0),
    ),
    "ChainedScheduler": (
        lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o, 0.5, 3), schedules.ExponentialLR(o, 0.9)]),
        lambda epoch: 0.9**epoch * (0.5 if epoch < 3 else 1.0),
    ),
    "CosineAnnealingLR": (lambda o: schedules.CosineAnnealingLR(o, 5, eta_min=0.1), cosine),
}


def rates(schedule: Any, epochs: int = EPOCHS) -> list[float]:
    found = []
    for _ in range(epochs):
        found.append(schedule.get_last_lr()[0])
        assert schedule.get_last_lr() == [group["lr"] for group in schedule.optimizer.param_groups]
        schedule.optimizer.step()
        schedule.step()
    return found


@pytest.mark.parametrize("name", CASES)
def test_rates_follow_the_closed_form(name: str) -> None:
    make, closed_form = CASES[name]
    assert rates(make(optimiser())) == pytest.approx([closed_form(epoch) for epoch in range(EPOCHS)], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ["StepLR", "MultiStepLR", "ExponentialLR", "LambdaLR", "LinearLR"])
def test_rates_of_groups_keep_their_ratio(name: str) -> None:
    schedule = CASES[name][0](optimiser())
    rates(schedule, 4)
    first, second = schedule.get_last_lr()
    assert second == pytest.approx(first / 4, rel=1e-12)


@pytest.mark.parametrize("name", [*CASES, "OneCycleLR"])
def test_loaded_schedule_goes_on(name: str) -> None:
    make = CASES[name][0] if name in CASES else lambda o: schedules.OneCycleLR(o, 1.0, total_steps=2 * EPOCHS)
    first, second = make(optimiser(momentum=0.9)), make(optimiser(momentum=0.9))
    rates(first, 5)
    file = io.BytesIO()
    tg.save([first.state_dict(), first.optimizer.state_dict()], file)
    file.seek(0)
    state, groups = tg.load(file)
    second.load_state_dict(state)
    second.optimizer.load_state_dict(groups)
    assert rates(second) == rates(first)


def test_schedule_can_be_taken_up_from_the_optimiser() -> None:
    optimizer = optimiser()
    rates(schedules.ExponentialLR(optimizer, 0.5), 3)
    resumed = schedules.ExponentialLR(optimizer, 0.5, last_epoch=2)
    assert resumed.get_last_lr()[0] == 0.125


def test_rate_that_is_a_tensor_is_written_in_place() -> None:
    rate = tg.tensor(1.0)
    optimizer = tg.optim.SGD([tg.ones(1, requires_grad=True)], lr=rate)
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    before = schedule.get_last_lr()[0]
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert (before.item(), rate.item()) == (1.0, 0.5)


@pytest.mark.parametrize(("kind", "options"), [("SGD", {"momentum": 0.9}), ("Adam", {})])
def test_one_cycle_rises_and_falls(kind: str, options: dict[str, Any]) -> None:
    optimizer = optimiser(kind, **options)
    schedule = schedules.OneCycleLR(optimizer, [1.0, 0.5], total_steps=10, pct_start=0.4)

    def wave(start: float, end: float, part: float) -> float:
        return end + (start - end) * (1 + math.cos(math.pi * part)) / 2

    for step in range(10):
        up, part = step <= 3, step / 3 if step <= 3 else (step - 3) / 6
        rate = wave(1 / 25, 1.0, part) if up else wave(1.0, 1 / 25 / 1e4, part)
        momentum = wave(0.95, 0.85, part) if up else wave(0.85, 0.95, part)
        group = optimizer.param_groups[0]
        assert group["lr"] == pytest.approx(rate, rel=1e-12)
        assert (group["momentum"] if kind == "SGD" else group["betas"][0]) == pytest.approx(momentum, rel=1e-12)
        assert optimizer.param_groups[1]["lr"] == pytest.approx(rate / 2, rel=1e-12)
        optimizer.step()
        if step < 9:
            schedule.step()


def test_one_cycle_of_three_phases_returns_to_its_start() -> None:
    schedule = schedules.OneCycleLR(
        optimiser(), 1.0, epochs=2, steps_per_epoch=10, pct_start=0.25, anneal_strategy="linear", three_phase=True,
        cycle_momentum=False,
    )  # fmt: skip
    found = rates(schedule, 19)
    assert found[4] == pytest.approx(1.0)
    assert found[8] == pytest.approx(found[0]) == pytest.approx(1 / 25)
    assert schedule.get_last_lr()[0] == pytest.approx(1 / 25 / 1e4)


def test_restarts_take_parts_of_epochs() -> None:
    schedule = schedules.CosineAnnealingWarmRestarts(optimiser(), 2, 3)
    for epoch, part in ((0.5, 0.25), (2.0, 0.0), (6.5, 0.75), (8.0, 0.0), (17.0, 0.5), (1.0, 0.5)):
        schedule.step(epoch)
        assert schedule.get_last_lr()[0] == pytest.approx((1 + math.cos(math.pi * part)) / 2, abs=1e-12)


@pytest.mark.parametrize(("kind", "options"), [("SGD", {"momentum": 0.5}), ("Adam", {})])
def test_momentum_of_a_cycle_goes_the_other_way(kind: str, options: dict[str, Any]) -> None:
    optimizer = optimiser(kind, **options)
    schedule = schedules.CyclicLR(optimizer, 0.1, 1.0, 2, base_momentum=[0.6, 0.7])
    found = []
    for _ in range(5):
        found.append([group["momentum"] if kind == "SGD" else group["betas"][0] for group in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    assert [of[0] for of in found] == pytest.approx([0.9, 0.75, 0.6, 0.75, 0.9])
    assert [of[1] for of in found] == pytest.approx([0.9, 0.8, 0.7, 0.8, 0.9])


def test_one_cycle_ends() -> None:
    schedule = schedules.OneCycleLR(optimiser(), 1.0, total_steps=2, cycle_momentum=False)
    rates(schedule, 2)
    with pytest.raises(ValueError, match="Tried to step 3 times. The specified number of total steps is 2"):
        schedule.step()


@pytest.mark.parametrize(
    ("options", "metrics", "rate"),
    [
        ({}, [1.0, 0.9, 0.8, 0.7], 1.0),
        ({}, [1.0, 1.0, 1.0, 1.0], 0.5),
        ({"mode": "max"}, [1.0, 2.0, 3.0, 4.0], 1.0),
        ({"mode": "max"}, [4.0, 3.0, 2.0, 1.0], 0.5),
        ({"threshold": 0.5}, [1.0, 0.9, 0.8, 0.7], 0.5),
        ({"threshold": 0.15, "threshold_mode": "abs"}, [1.0, 0.9, 0.8, 0.7], 1.0),
        ({"patience": 0}, [1.0, 1.0, 1.0, 1.0], 0.125),
        ({"patience": 0, "cooldown": 1}, [1.0, 1.0, 1.0, 1.0], 0.25),
        ({"patience": 0, "min_lr": 0.3}, [1.0, 1.0, 1.0, 1.0], 0.3),
        ({"patience": 0, "eps": 0.3}, [1.0, 1.0, 1.0, 1.0], 0.5),
        ({}, [math.nan] * 3, 0.5),
    ],
)
def test_plateau(options: dict[str, Any], metrics: list[float], rate: float) -> None:
    schedule = schedules.ReduceLROnPlateau(optimiser(), **{"factor": 0.5, "patience": 2, **options})
    for metric in metrics:
        schedule.step(tg.tensor(metric))
    assert schedule.get_last_lr()[0] == pytest.approx(rate)


def test_schedule_before_the_optimiser_is_warned_of() -> None:
    optimizer = optimiser()
    optimizer.step()  # before there was a schedule
    schedule = schedules.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        schedule.step()


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: schedules.StepLR(tg.ones(1), 1), TypeError, "Tensor is not an Optimizer"),
        (lambda: schedules.StepLR(optimiser(), 1, last_epoch=3), KeyError, "'initial_lr' is not specified in param_groups"),
        (lambda: schedules.LambdaLR(optimiser(), [abs]), ValueError, "Expected 2 lr_lambdas, but got 1"),
        (lambda: schedules.LinearLR(optimiser(), start_factor=0.0), ValueError, "Starting multiplicative factor"),
        (lambda: schedules.LinearLR(optimiser(), end_factor=1.5), ValueError, "Ending multiplicative factor"),
        (lambda: schedules.OneCycleLR(optimiser(), 1.0), ValueError, "You must define either total_steps OR"),
        (lambda: schedules.OneCycleLR(optimiser(), [1.0], 5), ValueError, "max_lr must have the same length"),
        (lambda: schedules.OneCycleLR(optimiser(), 1.0, 0), ValueError, "Expected positive integer total_steps, but got 0"),
        (lambda: schedules.OneCycleLR(optimiser(), 1.0, 5, pct_start=2.0), ValueError, "pct_start, but got 2.0"),
        (lambda: schedules.OneCycleLR(optimiser("Adagrad"), 1.0, 5), ValueError, "must support momentum or beta1"),
        (lambda: schedules.OneCycleLR(optimiser(), 1.0, 5, anneal_strategy="cubic"), ValueError, "anneal_strategy must be one of"),
        (lambda: schedules.ReduceLROnPlateau(optimiser(), factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda: schedules.ReduceLROnPlateau(optimiser(), "mean"), ValueError, "mode mean is unknown!"),
        (lambda: schedules.ReduceLROnPlateau(optimiser(), min_lr=[0.1]), ValueError, "expected 2 min_lrs, got 1"),
        (lambda: schedules.ConstantLR(optimiser(), 1.5), ValueError, "expected to be between 0 and 1, but got 1.5"),
        (lambda: schedules.CosineAnnealingWarmRestarts(optimiser(), 0), ValueError, "Expected positive integer T_0, but got 0"),
        (lambda: schedules.CosineAnnealingWarmRestarts(optimiser(), 2).step(-1), ValueError, "non-negative epoch, but got -1"),
        (lambda: schedules.CyclicLR(optimiser(), 0.1, 1.0, mode="square"), ValueError, "mode is invalid"),
        (lambda: schedules.CyclicLR(optimiser("Adagrad"), 0.1, 1.0), ValueError, "must support momentum or beta1"),
        (lambda: schedules.CyclicLR(optimiser(), [0.1], 1.0), ValueError, "base_lr has 1 values, param_groups has 2"),
        (lambda: schedules.SequentialLR(optimiser(), [], []), ValueError, "expects at least one scheduler"),
        (lambda: schedules.ChainedScheduler([1.0]), TypeError, "at index 0 should be a scheduler, but got float"),
        (
            lambda: schedules.SequentialLR(optimiser(), [schedules.StepLR(optimiser(), 2)], []),
            ValueError,
            "expects all schedulers to belong to the same optimizer",
        ),
        (
            lambda: schedules.ChainedScheduler([schedules.ReduceLROnPlateau(optimiser())]),
            ValueError,
            "does not support `ReduceLROnPlateau`",
        ),
        (
            lambda: (lambda o: schedules.SequentialLR(o, [schedules.StepLR(o, 2)], [3]))(optimiser()),
            ValueError,
            "number of schedulers 1 and the number of milestones to be equal to 1",
        ),
    ],
)
def test_wrong_arguments(make: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()
