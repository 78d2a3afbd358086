"""Programs in files: the same results where the function is not, and nothing runs of a file that is not as it was written."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from many_cases import each
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture
from random_expressions import points, random_function

import tapegrad as tg

DATA = np.random.default_rng(0).standard_normal((5, 3))


def regression(w: Any, ridge: Any) -> Any:
    return (np.log1p(np.exp(-(DATA @ w))) ** 2).sum() + ridge * (w[1:] * w[:-1]).sum()


def two_ways(x: Any) -> Any:
    return (x * x).sum() if x[0] > 0.0 else np.sin(x).sum()


def saved(program: Any) -> io.BytesIO:
    file = io.BytesIO()
    program.save(file)
    file.seek(0)
    return file


def recorded(function: Any, *arguments: Any, argnums: Any = 0) -> Any:
    program = tg.program(function)
    tg.value_and_grad(program, argnums)(*arguments)
    return program


def test_results_are_those_of_the_program() -> None:
    w = np.array([0.5, -1.0, 2.0])
    program = recorded(regression, w, 0.1)
    loaded = tg.load_program(saved(program))
    program.compile()
    run = tg.value_and_grad(program)
    run(w, 0.1)
    for point in (w, w + 1.0, -w):
        (value, gradient), (own_value, own) = tg.value_and_grad(loaded)(point, 0.3), run(point, 0.3)
        assert value == own_value
        assert gradient.tobytes() == own.tobytes()
        assert loaded(point, 0.3) == pytest.approx(regression(point, 0.3), rel=1e-14)
        assert type(loaded(point, 0.3)) is type(regression(point, 0.3))


def test_arguments_may_be_named_and_nested() -> None:
    def f(p: Any, *, power: int, s: float) -> Any:
        return (p["a"] ** power).sum() * p["b"] + s

    program = tg.program(f)
    point = {"a": np.array([1.0, 2.0]), "b": 3.0}
    expected = tg.value_and_grad(program)(point, power=3, s=0.5)
    loaded = tg.load_program(saved(program))
    value, gradient = tg.value_and_grad(loaded)(point, power=3, s=0.5)
    assert value == expected[0]
    assert gradient["a"].tolist() == expected[1]["a"].tolist()
    assert gradient["b"] == expected[1]["b"]
    with pytest.raises(tg.ProgramError, match="not recorded for arguments like these"):
        tg.value_and_grad(loaded)(point, power=2, s=0.5)


def test_all_recorded_branches_are_there_and_others_are_named() -> None:
    program = recorded(two_ways, np.array([1.0, 2.0]))
    one = tg.load_program(saved(program))
    with pytest.raises(tg.ProgramError, match="two_ways goes another way"):
        tg.grad(one)(np.array([-1.0, 2.0]))
    tg.grad(program)(np.array([-1.0, 2.0]))
    both = tg.load_program(saved(program))
    assert tg.grad(both)(np.array([-1.0, 2.0])).tolist() == tg.grad(two_ways)(np.array([-1.0, 2.0])).tolist()
    assert tg.grad(both)(np.array([3.0, 2.0])).tolist() == [6.0, 4.0]
    assert len(both.traces) == 2


@each("arguments", [(np.ones(2),), (np.ones(3, np.float32),), (1.0,), (np.ones(3), 2.0), (tg.ones(3),)])
def test_other_arguments_are_refused(arguments: Any) -> None:
    loaded = tg.load_program(saved(recorded(two_ways, np.ones(3))))
    with pytest.raises(tg.ProgramError, match="not recorded for arguments like these"):
        loaded(*arguments)


def test_optimisers_take_loaded_programs() -> None:
    def f(x: Any) -> Any:
        return ((x - 2.0) ** 2).sum()

    loaded = tg.load_program(saved(recorded(f, np.zeros(3))))
    np.testing.assert_allclose(tg.optimize.minimize(loaded, np.zeros(3)).x, 2.0, rtol=1e-6)


def test_points_are_mapped() -> None:
    loaded = tg.load_program(saved(recorded(two_ways, np.ones(3))))
    points = np.abs(DATA)
    assert np.array_equal(tg.grad(loaded).map(points), 2.0 * points)


def test_loaded_programs_are_pickled_and_mapped_by_workers() -> None:
    loaded = tg.load_program(saved(recorded(two_ways, np.ones(3))))
    points = np.abs(DATA)
    expected = tg.grad(loaded).map(points)
    assert np.array_equal(tg.grad(pickle.loads(pickle.dumps(loaded))).map(points), expected)
    with ProcessPoolExecutor(1, get_context("forkserver")) as executor:
        assert np.array_equal(tg.grad(loaded).map(points, executor=executor), expected)


def test_what_has_no_machine_code_is_not_saved() -> None:
    program = recorded(lambda x: np.linalg.det(x), np.eye(3))
    with pytest.raises(tg.ProgramError, match="no machine code"):
        program.save(io.BytesIO())


def test_what_was_not_recorded_is_not_saved() -> None:
    with pytest.raises(tg.ProgramError, match="call it first"):
        tg.program(two_ways).save(io.BytesIO())


def test_objects_among_the_arguments_are_not_saved() -> None:
    program = recorded(lambda x, o: (x * x).sum(), np.ones(3), object)
    with pytest.raises(tg.ProgramError, match="objects are among its arguments"):
        program.save(io.BytesIO())


ELSEWHERE = """
import sys, numpy as np, tapegrad as tg
value, gradient = tg.value_and_grad(tg.load_program(sys.argv[1]))(np.array([0.5, -1.0, 2.0]), 0.1)
print(value.hex(), *(g.hex() for g in gradient.tolist()))
"""


def test_a_process_without_the_source_has_the_same_bits(tmp_path: Path) -> None:
    w = np.array([0.5, -1.0, 2.0])
    program = recorded(regression, w, 0.1)
    program.save(tmp_path / "f.tgp")
    program.compile()
    run = tg.value_and_grad(program)
    run(w, 0.1)
    value, gradient = run(w, 0.1)
    ran = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, tmp_path / "f.tgp"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert ran.stdout.split() == [value.hex(), *(g.hex() for g in gradient.tolist())]


@pytest.mark.filterwarnings("ignore")
def test_random_functions_are_the_same_after_loading(request: pytest.FixtureRequest) -> None:
    wrong = []
    for seed in range(300 if request.config.getoption("--long") else 15):
        function, text = random_function(seed)
        arguments = points(seed)[0]
        program = recorded(function, *arguments, argnums=(0, 1, 2))
        loaded = tg.load_program(saved(program))
        program.compile()
        run, again = (tg.value_and_grad(p, (0, 1, 2)) for p in (program, loaded))
        run(*arguments)
        (value, gradients), (own_value, own) = run(*arguments), again(*arguments)
        if value != own_value or any(
            np.asarray(a).tobytes() != np.asarray(b).tobytes() for a, b in zip(gradients, own, strict=True)
        ):
            wrong.append(text)
    assert not wrong, "\n".join(wrong[:3])


# Damage.


def test_truncated_files_are_refused() -> None:
    whole = saved(recorded(regression, np.ones(3), 0.1)).getvalue()
    for length in range(0, len(whole), 97):
        with pytest.raises(tg.ProgramError):
            tg.load_program(io.BytesIO(whole[:length]))


def test_flipped_bits_are_refused_or_mean_nothing() -> None:
    whole = saved(recorded(regression, np.ones(3), 0.1)).getvalue()
    expected = tg.value_and_grad(tg.load_program(io.BytesIO(whole)))(np.ones(3), 0.1)
    for place in range(0, len(whole), 61):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        try:
            found = tg.value_and_grad(tg.load_program(io.BytesIO(bytes(damaged))))(np.ones(3), 0.1)
        except tg.ProgramError:
            continue
        assert found[0] == expected[0]
        assert np.array_equal(found[1], expected[1])


def test_other_files_are_refused(tmp_path: Path) -> None:
    tg.save({"format": "tapegrad program", "version": 99, "name": "f", "paths": []}, tmp_path / "later.tgp")
    with pytest.raises(tg.ProgramError, match="version 99"):
        tg.load_program(tmp_path / "later.tgp")
    tg.save({"weights": [1.0]}, tmp_path / "state.tg")
    with pytest.raises(tg.ProgramError, match="it is not a program"):
        tg.load_program(tmp_path / "state.tg")
    with pytest.raises(FileNotFoundError):
        tg.load_program(tmp_path / "nothing.tgp")


PARTS = ["operands", "spaces", "effects", "inputs", "gradients", "shapes", "results"]


@pytest.mark.parametrize("part", [*PARTS, "sizes", "buffers"])
def test_files_made_by_hand_are_checked_whole(part: str) -> None:
    state = tg.load(saved(recorded(regression, np.ones(3), 0.1)))
    rng = np.random.default_rng(0)
    graph = state["paths"][0]["graph"]
    numbers = graph[part]["numbers"] if part in PARTS else graph[part]
    expected = tg.value_and_grad(tg.load_program(made(state)))(np.ones(3), 0.1)
    refused = 0
    for _ in range(75):
        place, kept = rng.integers(len(numbers)), numbers.copy()
        numbers[place] += rng.choice([-1000, -3, -1, 1, 2, 1000, 2**40])
        try:
            loaded = tg.load_program(made(state))
            value, gradient = tg.value_and_grad(loaded)(np.ones(3), 0.1)
            assert (type(value), gradient.shape) == (float, expected[1].shape)  # another program, but a whole one
        except tg.ProgramError:
            refused += 1
        numbers[:] = kept
    assert refused > 15


def mixed(x: Any, y: Any) -> Any:
    return (np.exp(x @ y.T) * 0.1).sum() + np.sin(x * y).astype(np.float64).sum() - x.mean()


SINGLE = np.linspace(0.2, 0.9, 12, dtype=np.float32).reshape(3, 4), np.linspace(0.5, 0.1, 12, dtype=np.float32).reshape(3, 4)


def test_programs_of_float32_have_the_same_bits_after_loading() -> None:
    program = recorded(mixed, *SINGLE, argnums=(0, 1))
    loaded = tg.load_program(saved(program))
    program.compile()
    run, again = tg.value_and_grad(program, (0, 1)), tg.value_and_grad(loaded, (0, 1))
    for k in range(4):
        arguments = [a + np.float32(0.1 * k) for a in SINGLE]
        (value, gradients), (own_value, own) = again(*arguments), run(*arguments)
        if k:
            assert value == own_value
            assert [(g.dtype, g.tobytes()) for g in gradients] == [(g.dtype, g.tobytes()) for g in own]
    assert type(tg.load_program(saved(recorded(lambda x: (x * x).sum(), SINGLE[0])))(SINGLE[0])) is np.float32
    with pytest.raises(tg.ProgramError, match="not recorded for arguments like these"):
        again(*(a.astype(np.float64) for a in SINGLE))


@pytest.mark.parametrize("part", [*PARTS, "sizes", "singles"])
def test_files_of_float32_made_by_hand_are_checked_whole(part: str) -> None:
    state = tg.load(saved(recorded(mixed, *SINGLE, argnums=(0, 1))))
    rng = np.random.default_rng(0)
    graph = state["paths"][0]["graph"]
    numbers = graph[part]["numbers"] if part in PARTS else graph[part]
    refused = 0
    for _ in range(50):
        place, kept = rng.integers(len(numbers)), numbers.copy()
        numbers[place] += rng.choice([-1000, -3, -1, 1, 2, 1000, 2**40])
        try:
            value, gradients = tg.value_and_grad(tg.load_program(made(state)), (0, 1))(*SINGLE)
            assert (type(value), [g.shape for g in gradients]) == (float, [(3, 4), (3, 4)])  # another program, but a whole one
        except tg.ProgramError:
            refused += 1
        numbers[:] = kept
    assert refused > 10


def made(state: Any) -> io.BytesIO:
    file = io.BytesIO()
    tg.save(state, file)
    file.seek(0)
    return file
