"""The examples and the code of documents run as they stand, and print what they promise."""

import contextlib
import functools
import inspect
import io
import os
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from forked_processes import Forked, Origin
from fresh_processes import environment
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

ROOT = Path(__file__).parent.parent
DRAWING = [
    "rosenbrock", "logistic_regression", "curve_fit", "constrained", "implicit", "numba_ode", "stiff_reactions", "swing_up",
    "inverse_heat", "bundle_adjustment",
]  # fmt: skip
SMALLER = {"inverse_heat": ["40"]}
PNG_BEGINS, PNG_ENDS = b"\x89PNG\r\n\x1a\n", b"\x00\x00\x00\x00IEND\xaeB`\x82"


@functools.cache
def origin() -> Origin:
    """Of the examples' processes: half of the time of most would be these imports."""
    return Origin("numpy numba scipy.optimize matplotlib.figure matplotlib.backends.backend_agg", "-W", "error")


def output_of(example: str, *arguments: str) -> str:
    process = Forked(origin(), str(ROOT / "examples" / example), environment(), *arguments)
    printed, complained = process.communicate()
    assert process.returncode == 0, complained
    return printed


@functools.cache
def drawn_by(example: str) -> tuple[str, bytes]:
    """What an example prints, and the file that it draws; run once for all tests of it."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder, "picture.png")
        printed = output_of(f"{example}.py", str(picture), *SMALLER.get(example, []))
        return printed, picture.read_bytes()


def printed_by(document: str) -> tuple[list[str], list[str]]:
    """What the Python of a document prints, and what the comments beside the prints promise."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("\n".join(blocks), {})
    promised = [line.split("#")[1].strip() for line in "\n".join(blocks).splitlines() if line.startswith("print(")]
    return printed.getvalue().splitlines(), promised


PAGES = [path.relative_to(ROOT) for path in sorted((ROOT / "docs").glob("**/*.md"))]
DOCUMENTS = ["README.md", *(str(path) for path in PAGES if not any(part.startswith("_") for part in path.parts))]
WITH_CODE = [name for name in DOCUMENTS if "```python" in (ROOT / name).read_text(encoding="utf-8")]


@pytest.mark.parametrize("document", WITH_CODE)
def test_documents_print_what_they_promise(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed, promised = printed_by(document)
    assert printed == promised
    assert printed


def test_tour():
    printed = output_of("tour.py")
    for line in (
        "dy/dw = tensor([5.])  dy/dx = tensor([2.])",
        "is_leaf        x, w, a, b, y: True True False False False",
        "a.grad_fn, b.grad_fn, y.grad_fn: AddBackward0 AddBackward0 MulBackward0",
        "w.grad after one, two, three passes: 5.0 10.0 15.0",
        "1 * dy0/dw + 2 * dy1/dw = tensor([9.])",
        "d(x^2)/dx at 3: tensor([6.], grad_fn=<MulBackward0>)",
        "gradient of the second element: [[4.0, 6.0]]",
    ):
        assert line in printed


def test_digits():
    *_, trained, fresh, loaded = (float(line.split()[-1].rstrip("%")) for line in output_of("digits.py").splitlines()[1:])
    assert trained >= 97.0
    assert fresh < 50.0
    assert loaded == trained


def test_missing_libraries_are_named_with_their_extra(tmp_path: Path):
    (tmp_path / "sklearn.py").write_text("raise ImportError(name='sklearn')")
    code = f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); runpy.run_path({str(ROOT / 'examples' / 'digits.py')!r})"
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=settings, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("needs sklearn; install what the examples need with: pip install 'tapegrad[examples]'")


@pytest.mark.parametrize("example", DRAWING)
def test_pictures_are_whole_png_files(example: str):
    _, picture = drawn_by(example)
    assert picture.startswith(PNG_BEGINS)
    assert picture.endswith(PNG_ENDS)


@pytest.mark.parametrize("example", DRAWING)
def test_missing_matplotlib_is_named_with_its_extra(example: str, monkeypatch: pytest.MonkeyPatch):
    for module in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    draw: Any = runpy.run_path(str(ROOT / "examples" / f"{example}.py"))["draw"]
    with pytest.raises(SystemExit, match=r"the picture needs matplotlib; .* pip install 'tapegrad\[examples\]'"):
        draw(*[None] * len(inspect.signature(draw).parameters))


def test_rosenbrock():
    lines = drawn_by("rosenbrock")[0].splitlines()
    errors = {row[:14].strip(): float(row.split()[-1]) for row in lines[3:16]}
    assert len(errors) == 13
    # Methods without derivatives stop early on a valley that is this narrow.
    assert all(error < 1e-3 for method, error in errors.items() if method not in ("Nelder-Mead", "Powell", "COBYLA"))
    evaluations = {line[:22].strip(): int(line[33:55]) for line in lines[-4:]}
    assert evaluations["on arrays"] * 20 < evaluations["differences, arrays"]
    assert evaluations["of the compiled loop"] * 20 < evaluations["differences, loop"]


def test_logistic_regression():
    rows = drawn_by("logistic_regression")[0].splitlines()[1:]
    losses = {row.split()[-2] for row in rows}
    assert len(rows) == 5
    assert len({round(float(loss), 7) for loss in losses}) == 1


def test_swing_up():
    structure, solved, effort = drawn_by("swing_up")[0].splitlines()
    assert "6 colours" in structure
    assert solved.endswith("solved")
    assert float(effort.split()[1]) == pytest.approx(58.8, abs=0.05)


def test_bundle_adjustment():
    *_, off = drawn_by("bundle_adjustment")[0].splitlines()
    before, after, noise = (float(word) for word in re.findall(r"\d+\.\d+", off))
    assert after < noise < before


def test_inverse_heat():
    *_, start, fitted = drawn_by("inverse_heat")[0].splitlines()
    before, after = (int(line.split()[-2]) for line in (start, fitted))
    assert after < 10 < before


def test_curve_fit():
    *parameters, evaluations, agreement = drawn_by("curve_fit")[0].splitlines()[1:]
    for row in parameters:
        true, fitted, deviation = (float(word) for word in row.split()[-3:])
        assert abs(fitted - true) < 4.0 * deviation
    exact, differences = (int(part.split()[-1]) for part in evaluations.split(","))
    assert 2 * exact < differences
    assert float(agreement.split()[-1]) < 1e-5


def test_stiff_reactions():
    *rates, summary = drawn_by("stiff_reactions")[0].splitlines()[1:]
    for row in rates:
        _, true, _, fitted, deviation = map(float, row.split())
        assert abs(fitted - true) < 4.0 * deviation
    assert 20.0 < float(summary.split(" is ")[1].split()[0]) < 60.0  # of 75 values


def test_constrained():
    slsqp, trust = (row.split() for row in drawn_by("constrained")[0].splitlines()[1:])
    assert slsqp[4] == trust[4]  # the energy
    assert float(slsqp[-1]) < 0.01


def test_implicit():
    derivative, losses, penalties = drawn_by("implicit")[0].splitlines()
    exact, differences = (part.split()[-1] for part in derivative.split(","))
    assert abs(float(exact) - float(differences)) < 1e-6
    before, after = (float(part.split()[-1]) for part in losses.split(","))
    assert after < before
    matter, others = (float(part.split()[-1]) for part in penalties.split(","))
    assert matter < others


def test_numba_ode():
    exact, differences, summary = drawn_by("numba_ode")[0].splitlines()
    misfits = [line.split("misfit")[1].split()[0] for line in (exact, differences)]
    assert misfits[0] == misfits[1]
    assert summary.startswith("the exact gradient is")


def test_many_rows():
    *_, bits, error = output_of("many_rows.py", "20_000").splitlines()
    assert bits == "same bits: True"
    assert float(error.split()[-1]) < 0.15
