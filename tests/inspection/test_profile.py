"""`profile` attributes rows and passes to lines and operations, and leaves everything as it was. No time is asserted."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.inspection.source_lines import is_users_file
from tapegrad.tape.tape import TAPE


def model(w: Any, x: Any) -> Any:
    hidden = x @ w
    hidden = np.tanh(hidden)
    return (hidden * hidden).sum()


def chain(x: Any, count: int) -> Any:
    for _ in range(count):
        x = x * 0.5 + 1.0
    return x


def line(profile: Any, text: str) -> Any:
    (found,) = [one for one in profile.lines if one.line.text == text]
    return found


@pytest.fixture
def weights() -> tg.Tensor:
    return tg.tensor(np.linspace(-1.0, 1.0, 12).reshape(3, 4), requires_grad=True)


def test_rows_belong_to_the_lines_that_recorded_them(weights: tg.Tensor) -> None:
    with tg.profile() as p:
        model(weights, np.ones((5, 3))).backward()
    assert line(p, "hidden = x @ w").operations["Mm"] == 1
    assert line(p, "hidden = np.tanh(hidden)").operations == {"Tanh": 1}
    assert line(p, "return (hidden * hidden).sum()").operations == {"Mul": 1, "Sum": 1}
    for text in ("hidden = x @ w", "hidden = np.tanh(hidden)", "return (hidden * hidden).sum()"):
        assert line(p, text).backward > 0.0


def test_passes_are_counted_and_their_host_rows_named(weights: tg.Tensor) -> None:
    with tg.profile() as p:
        for _ in range(3):
            model(weights, np.ones((5, 3))).backward()
    assert len(p.passes) == 3
    assert [one.host_rows for one in p.passes] == [1, 1, 1]
    found = line(p, "hidden = x @ w")
    assert found.host > 0.0
    assert found.reasons == {"the derivative of Mm is Python (a host row)": 3}
    assert "takes the slow way (3 of 4 rows): the derivative of Mm is Python (a host row)" in str(p)
    (product,) = [one for one in p.operations if one.name == "Mm"]
    assert product.is_host and product.rows == 3


def test_gradients_are_those_without_it(weights: tg.Tensor) -> None:
    x = np.linspace(0.0, 1.0, 15).reshape(5, 3)
    model(weights, x).backward()
    expected, weights.grad = weights.grad, None
    with tg.profile():
        model(weights, x).backward()
    assert weights.grad is not None and expected is not None
    np.testing.assert_array_equal(weights.grad.numpy(), expected.numpy())


def test_drivers_are_measured_too() -> None:
    with tg.profile() as p:
        gradient = tg.grad(lambda x: (x * np.exp(x)).sum())(np.zeros(3))
    np.testing.assert_array_equal(gradient, np.ones(3))
    assert len(p.passes) == 1
    assert {one.name for one in p.operations} >= {"Mul", "Exp", "Sum"}


def test_loops_whose_rows_are_reclaimed_meanwhile() -> None:
    x = tg.tensor(1.0, requires_grad=True)
    with tg.profile() as p:
        for _ in range(40):
            chain(x, 100).backward()
    found = line(p, "x = x * 0.5 + 1.0")
    assert found.visits == 4000
    assert found.rows > 7000
    assert found.backward > 0.0
    assert x.grad is not None


def test_float32_is_said_to_be_slow() -> None:
    x = tg.tensor(np.ones(4, np.float32), requires_grad=True)
    with tg.profile() as p:
        (x * x).sum()
    assert line(p, "(x * x).sum()").reasons == {"mul in float32: compiled operators take float64": 1}


def test_functions_of_users_derivatives_are_not_counted_twice() -> None:
    class Slow(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2.0 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            total = sum(range(20000))
            return 2.0 * g + 0.0 * total

    x = tg.tensor(1.0, requires_grad=True)
    with tg.profile() as p:
        y = Slow.apply(x)
        y.backward()
    assert sum(one.total for one in p.lines) <= p.seconds
    assert line(p, "total = sum(range(20000))").forward > 0.0


def _are_nested(events: list[Any]) -> bool:
    """Whether events of one track lie inside of each other or apart, up to rounding, as viewers expect."""
    ends: list[float] = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while ends and ends[-1] <= event["ts"] + 0.01:
            ends.pop()
        if ends and event["ts"] + event["dur"] > ends[-1] + 0.01:
            return False
        ends.append(event["ts"] + event["dur"])
    return True


def test_trace_file_is_what_viewers_read(weights: tg.Tensor, tmp_path: Path) -> None:
    with tg.profile() as p:
        model(weights, np.ones((5, 3))).backward()
    p.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C"}
    assert all({"name", "ph", "pid", "tid"} <= event.keys() for event in events)
    assert all(event["dur"] >= 0.0 and event["ts"] >= 0.0 for event in events if event["ph"] == "X")
    assert _are_nested([event for event in events if event["ph"] == "X" and event["tid"] == 1])
    assert {"model", "Mm (Python)"} <= {event["name"] for event in events}
    assert "hidden = x @ w" in {event.get("args", {}).get("source") for event in events}


# What the format of trace events asks of each phase, beside its name, process and thread.
FIELDS: dict[str, dict[str, Any]] = {
    "M": {"args": dict},
    "X": {"ts": float, "dur": float, "cat": str},
    "C": {"ts": float, "args": dict, "cat": str},
}


def test_trace_events_are_to_the_letter_of_the_format(weights: tg.Tensor, tmp_path: Path) -> None:
    with tg.profile() as p:
        model(weights, np.ones((5, 3))).backward()
    p.save(tmp_path / "trace.json")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    trace = json.loads((tmp_path / "trace.json").read_text(), parse_constant=refuse)
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"} and trace["displayTimeUnit"] in ("ms", "ns")
    for event in trace["traceEvents"]:
        wanted = {"name": str, "ph": str, "pid": int, "tid": int, **FIELDS[event["ph"]]}
        assert all(isinstance(event[field], kind) for field, kind in wanted.items()), event
        assert set(event) <= {*wanted, "args"}
    metadata = [event for event in trace["traceEvents"] if event["ph"] == "M"]
    assert {event["name"] for event in metadata} == {"process_name", "thread_name"}
    assert all(isinstance(event["args"]["name"], str) for event in metadata)
    counters = [event["args"] for event in trace["traceEvents"] if event["ph"] == "C"]
    assert counters and all(isinstance(value, int) for counter in counters for value in counter.values())
    threads = {event["tid"] for event in metadata}
    assert {event["tid"] for event in trace["traceEvents"]} <= threads
    assert any(event["name"].startswith("hidden = x @ w  (test_profile.py:") for event in trace["traceEvents"])


def test_events_beyond_the_most_are_left_out(tmp_path: Path) -> None:
    with tg.profile(events=10) as p:
        chain(tg.tensor(1.0, requires_grad=True), 100)
    p.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert sum(event["ph"] != "M" for event in trace["traceEvents"]) == 10
    assert trace["otherData"]["events left out"] > 100


def test_everything_is_as_before_at_the_end() -> None:
    x = tg.tensor(1.0, requires_grad=True)
    chain(x, 3).backward()
    names = ("run", "scalar_row", "array1", "host_row")
    entries, backward, tracing = [getattr(TAPE, name) for name in names], vars(tg.Tensor)["backward"], sys.gettrace()
    with pytest.raises(ZeroDivisionError), tg.profile():
        chain(x, 3 // 0)
    assert [getattr(TAPE, name) for name in names] == entries
    assert vars(tg.Tensor)["backward"] is backward
    assert sys.gettrace() is tracing
    with tg.profile() as p:
        pass
    assert str(p)


def test_there_is_one_at_a_time() -> None:
    with tg.profile(), pytest.raises(RuntimeError, match="another profile is running"), tg.profile():
        pass


def test_other_threads_are_left_alone() -> None:
    x = tg.tensor(1.0, requires_grad=True)

    def work() -> None:
        chain(x, 10).backward()

    with tg.profile() as p:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert p.passes == []
    assert x.grad is not None


def test_reasons_of_lines_that_are_not_shown_are_told(weights: tg.Tensor) -> None:
    single = tg.tensor(np.ones(3, dtype=np.float32), requires_grad=True)
    with tg.profile() as p:
        for _ in range(2000):
            chain(1.0, 1)  # three lines that take longer
        square = single * single
        product = np.ones((5, 3)) @ weights
    del square, product
    table = p.table(lines=3)
    assert "mul in float32" in table and "the derivative of Mm is Python" in table


@pytest.mark.parametrize("name", ["numba", "llvmlite", "numpy", "scipy", "tapegrad", "json"])
def test_files_of_libraries_count_for_the_line_that_calls_them(name: str) -> None:
    assert not is_users_file(str(sys.modules.get(name, __import__(name)).__file__))
