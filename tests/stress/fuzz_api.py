"""Runs random programs and looks at what must hold after each; prints the seed of each program before it runs.

``python tests/stress/fuzz_api.py SEED`` shows and runs one program again.
"""

import faulthandler
import gc
import sys
import time
import traceback

import numpy as np
from api_programs import CUTS, DOCUMENTED, Outcome, Program, begin, perform, run, signature, starts, step

import tapegrad as tg

STEP = 1e-5
# Ties, bounds that cross, and what is read from one triangle or within matrices of one rank.
BY_CONVENTION = (
    "clamp",
    "clip",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "chol",
    "eig",
    "pinv",
    "lstsq",
    "rank",
    "isclose",
    "nextafter",
    "copysign",
    "svd",
)
ORDERING = ("max", "min", "sort", "median", "kthvalue", "topk", "quantile", "mode")  # by convention among equal values
SLOWEST = 60.0  # seconds after which a program counts as hanging


def assert_small_graph_is_right() -> None:
    x, s = tg.tensor([1.0, 2.0], requires_grad=True), tg.tensor(3.0, requires_grad=True)
    (x * x * s).sum().backward()
    assert x.grad.tolist() == [6.0, 12.0] and s.grad.item() == 5.0, "the gradient of a small graph is wrong"


def state(tensors: list[tg.Tensor]) -> list[tuple[bytes, int, bool]]:
    return [(np.array(t._data).tobytes(), t._version, t.requires_grad) for t in tensors]


def loss_of(outcome: Outcome, weights: np.random.Generator) -> tg.Tensor | None:
    """A weighted sum of all tracked float64 results; None if there is none, or one is not finite."""
    leaves = {id(x) for x in outcome.leaves}
    total = None
    for t in outcome.tensors:
        if t.dtype != tg.float64 or id(t) in leaves or not t.requires_grad:
            continue
        if not np.isfinite(t._data).all() or np.abs(t._data).max(initial=0.0) > 1e6:
            return None
        part = (t * tg.tensor(weights.uniform(0.5, 1.5, size=t.shape))).sum()
        total = part if total is None else total + part
    return total


class Slope:
    """The value of the loss, and of its directional derivative, along a line through the leaves."""

    def __init__(self, program: Program, outcome: Outcome, rng: np.random.Generator) -> None:
        self.program, self.raised = program, outcome.raised
        self.weights = int(rng.integers(2**31))
        self.tracked = [
            k for k, s in enumerate(program.starts) if s.tracked and s.values.dtype == tg.float64 and np.isfinite(s.values).all()
        ]
        self.direction = {k: rng.uniform(-1.0, 1.0, size=program.starts[k].values.shape) for k in self.tracked}

    def derivative(self, outcome: Outcome, create_graph: bool) -> tg.Tensor | None:
        """The slope by a reverse pass; None where that is refused for a documented reason."""
        leaves = [outcome.leaves[k] for k in self.tracked]
        try:
            loss = loss_of(outcome, np.random.default_rng(self.weights))
            if loss is None:
                return None
            found = tg.autograd.grad(loss, leaves, create_graph=create_graph, retain_graph=True, materialize_grads=True)
        except DOCUMENTED:
            return None  # freed, overwritten, or without a derivative
        for g, x in zip(found, leaves, strict=True):
            assert g is not None and g.shape == x.shape and g.dtype == x.dtype, "a gradient is not like its leaf"
        return sum(((g * tg.tensor(self.direction[k])).sum() for g, k in zip(found, self.tracked, strict=True)), tg.tensor(0.0))

    def along(self, h: float, slope: bool) -> float:
        """The loss, or its slope, at a distance from the program's leaves; nan where the program takes another course."""
        shift = {k: self.program.starts[k].values + h * self.direction[k] for k in self.tracked}
        outcome = run(self.program, shift)
        if outcome.raised != self.raised:
            return np.nan
        try:
            value = self.derivative(outcome, False) if slope else loss_of(outcome, np.random.default_rng(self.weights))
        except DOCUMENTED:
            return np.nan
        return np.nan if value is None else value.item()

    def assert_agrees(self, analytic: float, slope: bool, what: str) -> bool:
        """Compare with central differences of two step sizes; False where the values are not smooth enough to tell."""
        middle = self.along(0.0, slope)
        estimates = []
        for h in (STEP, STEP / 2):
            up, down = self.along(h, slope), self.along(-h, slope)
            estimates.append(((up - down) / (2 * h), (up - middle) / h, (middle - down) / h))
        (coarse, *_), (fine, forward, backward) = estimates
        scale = 1.0 + abs(fine) + abs(middle)
        if not np.isfinite([analytic, coarse, fine, forward, backward]).all():
            return False
        if abs(coarse - fine) > 1e-5 * scale or abs(forward - backward) > 2e-4 * scale or not abs(middle) < 1e5:
            return False
        assert abs(analytic - fine) <= 1e-3 * scale, f"{what}: {analytic!r} by a reverse pass, {fine!r} by differences"
        return True


def make_and_run(seed: int) -> tuple[Program, Outcome]:
    """The program of a seed, each step of which is checked as it is made."""
    rng = np.random.default_rng(seed)
    program = Program(starts(rng))
    tg.manual_seed(0)
    outcome = begin(program, {})
    for _ in range(rng.integers(1, 7)):
        made = step(rng, len(outcome.tensors))
        program.steps.append(made)
        before, known = state(outcome.tensors), list(outcome.tensors)
        perform(made, outcome)
        writes = made.call.endswith("_") and made.call[-2:] != "__"
        writes |= "inplace" in (parameter.name for parameter in signature(made.call))
        writes |= made.call[:4] == ".__i" or made.call in ("setitem", ".__setitem__") or "out" in made.kwargs
        if outcome.raised[-1] is not None or not writes:
            for (data, count, tracked), (new_data, new_count, now_tracked) in zip(before, state(known), strict=True):
                assert data == new_data, "values of an operand changed"
                assert count == new_count, "the version of an operand changed"
                assert tracked == now_tracked or outcome.raised[-1] is None, "a refused call changed requires_grad"
    return program, outcome


def check(seed: int) -> int:
    """Run the program of a seed; how many gradients were compared with differences."""
    program, outcome = make_and_run(seed)
    compared = 0
    assert tg.is_grad_enabled(), "gradient mode is off"
    rng = np.random.default_rng(seed + 2**40)
    slope = Slope(program, outcome, rng)
    done = {made.call for made, raised in zip(program.steps, outcome.raised, strict=True) if raised is None}
    exact = is_tame(program, outcome) and all(t.dtype == tg.float64 or not t.requires_grad for t in outcome.tensors)
    second = rng.random() < 0.3
    if slope.tracked:
        # The second run's, because a step that asks for gradients releases what the first had saved.
        found = slope.derivative(outcome, second)
        if found is not None and exact and not done & CUTS and not any(call.startswith("new ") for call in done):
            compared += slope.assert_agrees(found.item(), False, "slope")
            if second:
                bent = 0.0
                if found.requires_grad:
                    leaves = [outcome.leaves[k] for k in slope.tracked]
                    for g, k in zip(tg.autograd.grad(found, leaves, materialize_grads=True), slope.tracked, strict=True):
                        assert g is not None
                        bent += float((g.numpy() * slope.direction[k]).sum())
                if np.isfinite(bent):
                    compared += slope.assert_agrees(bent, True, "curvature")
    assert_small_graph_is_right()
    return compared


def is_tame(program: Program, outcome: Outcome) -> bool:
    """Whether all numbers are of a size at which differences tell something, and no gradient is a matter of convention."""
    names = [made.call.split(".")[-1].strip("_") for made in program.steps]
    if any(name in ("eq", "ne") or any(word in name for word in BY_CONVENTION) for name in names):
        return False
    tied = any(len(np.unique(start.values)) < start.values.size for start in program.starts)
    if tied and any(word in name for name in names for word in ORDERING):
        return False
    arrays = [np.abs(np.asarray(t._data, float)) for t in outcome.tensors]
    for made in program.steps:
        for given in (*made.args, *made.kwargs.values()):
            parts = given if isinstance(given, (tuple, list)) else [given]
            arrays += [np.asarray(min(abs(v), 1 << 70), float) for v in parts if isinstance(v, (int, float))]
            arrays += [np.abs(v) for v in parts if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    return all(np.all((a == 0.0) | ((a > 1e-6) & (a < 1e6))) for a in arrays)


def rows_left(baseline: int) -> int:
    tape = tg.tape.default_tape()
    tape.collect()
    if tape.rows != baseline:
        gc.collect()
        tape.collect()
    return tape.rows - baseline


def show(seed: int) -> None:
    """Print the program of a seed as far as it gets."""
    from api_programs import Ref

    rng = np.random.default_rng(seed)
    program = Program(starts(rng))
    tg.manual_seed(0)
    outcome = begin(program, {})
    for k, start in enumerate(program.starts):
        print(f"t{k} = {start.values!r} {'tracked' if start.tracked else ''} {'* 1' if start.inner else ''}")
    for _ in range(rng.integers(1, 7)):
        made = step(rng, len(outcome.tensors))
        count = len(outcome.tensors)
        print(f"t{count} = {made.call} {made.args} {made.kwargs}".replace(Ref.__name__, "t"), end=" ", flush=True)
        perform(made, outcome)
        print("->", outcome.raised[-1] or [(tuple(t.shape), t.dtype.name, t.requires_grad) for t in outcome.tensors[count:]])


def fuzz(first: int, programs: int, seconds: float) -> None:
    """Run programs until their number or the time is up."""
    assert_small_graph_is_right()
    gc.collect()
    gc.freeze()
    rows_left(0)
    baseline = tg.tape.default_tape().rows
    end = time.monotonic() + seconds
    failed, compared, seed = [], 0, first
    while seed < first + programs and time.monotonic() < end:
        print(seed, flush=True)
        faulthandler.dump_traceback_later(SLOWEST, exit=True)
        try:
            compared += check(seed)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failed.append((seed, "".join(traceback.format_exception(error)[-3:])))
            del error
        left = rows_left(baseline)
        if left:
            failed.append((seed, f"{left} rows stay on the tape"))
            baseline += left
        if len(failed) >= 20:
            break
        seed += 1
    faulthandler.cancel_dump_traceback_later()
    for number, message in failed:
        print(f"seed {number} failed: {message}", file=sys.stderr)
    print(seed - first, compared, len(failed))
    sys.exit(bool(failed))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        show(int(sys.argv[1]))
        check(int(sys.argv[1]))
    else:
        fuzz(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
