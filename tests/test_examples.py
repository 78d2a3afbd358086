"""The examples and the README's code run as they stand, and print what they promise."""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def output_of(example: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / example)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed_by_readme() -> tuple[list[str], list[str]]:
    """What the README's Python prints, and what the comments beside the prints promise."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("\n".join(blocks), {})
    promised = [line.split("#")[1].strip() for line in "\n".join(blocks).splitlines() if line.startswith("print(")]
    return printed.getvalue().splitlines(), promised


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed, promised = printed_by_readme()
    assert printed == promised


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


def test_rosenbrock():
    lines = output_of("rosenbrock.py").splitlines()
    errors = {row[:14].strip(): float(row.split()[-1]) for row in lines[3:16]}
    assert len(errors) == 13
    # Methods without derivatives stop early on a valley that is this narrow.
    assert all(error < 1e-3 for method, error in errors.items() if method not in ("Nelder-Mead", "Powell", "COBYLA"))
    evaluations = {line[:22].strip(): int(line[33:55]) for line in lines[-2:]}
    assert evaluations["tape"] * 20 < evaluations["finite differences"]


def test_logistic_regression():
    rows = output_of("logistic_regression.py").splitlines()[1:]
    losses = {row.split()[-2] for row in rows}
    assert len(rows) == 5
    assert len({round(float(loss), 7) for loss in losses}) == 1


def test_curve_fit():
    *parameters, evaluations, agreement = output_of("curve_fit.py").splitlines()[1:]
    for row in parameters:
        true, fitted, deviation = (float(word) for word in row.split()[-3:])
        assert abs(fitted - true) < 4.0 * deviation
    exact, differences = (int(part.split()[-1]) for part in evaluations.split(","))
    assert 2 * exact < differences
    assert float(agreement.split()[-1]) < 1e-5


def test_constrained():
    slsqp, trust = (row.split() for row in output_of("constrained.py").splitlines()[1:])
    assert slsqp[4] == trust[4]  # the energy
    assert float(slsqp[-1]) < 0.01


def test_implicit():
    derivative, losses, penalties = output_of("implicit.py").splitlines()
    exact, differences = (part.split()[-1] for part in derivative.split(","))
    assert abs(float(exact) - float(differences)) < 1e-6
    before, after = (float(part.split()[-1]) for part in losses.split(","))
    assert after < before
    matter, others = (float(part.split()[-1]) for part in penalties.split(","))
    assert matter < others


def test_numba_ode():
    exact, differences, summary = output_of("numba_ode.py").splitlines()
    misfits = [line.split("misfit")[1].split()[0] for line in (exact, differences)]
    assert misfits[0] == misfits[1]
    assert summary.startswith("the exact gradient is")
