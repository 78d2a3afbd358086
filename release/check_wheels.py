"""Build a wheel, or take one, and try it in fresh environments: each Python at hand, with the oldest and newest NumPy and Numba.

    python release/check_wheels.py                  # builds into dist/ and tries that
    python release/check_wheels.py dist/*.whl       # tries these
    python release/check_wheels.py --python PATH    # with an interpreter that is not in the path, too
    python release/check_wheels.py --sdist          # builds the source archive too, and prints its SHA-256 for the recipe

Ends with a table, and with an error if a combination failed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
# What a wheel must do where nothing else is installed; prints versions.
TRIAL = """
import numpy, numba
import tapegrad as tg

def f(x):
    return (numpy.sin(x) * x).sum()

x = numpy.linspace(0.0, 1.0, 5)
value, gradient = tg.value_and_grad(f)(x)
assert numpy.allclose(gradient, numpy.cos(x) * x + numpy.sin(x)), gradient
assert tg.hessian(f)(x).shape == (5, 5)
compiled = tg.grad(numba.njit(lambda v: v[0] * v[1] ** 2))(numpy.array([2.0, 3.0]))
assert compiled.tolist() == [9.0, 12.0], compiled
t = tg.tensor(2.0, requires_grad=True)
(t * t).backward()
assert t.grad.item() == 4.0
assert tg.explain_nan(lambda x: numpy.log(x), -1.0)
print(tg.__version__, numpy.__version__, numba.__version__)
"""


def interpreters(further: Sequence[str] = ()) -> dict[str, str]:
    """The Pythons of this machine that the package supports and that run, by version."""
    at_hand = [path for version in VERSIONS if (path := shutil.which(f"python{version}"))]
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"  # whose names in the path may be of none
    of_pyenv = [str(path) for version in VERSIONS for path in sorted(kept.glob(f"{version}.*/bin/python"))]
    found = {}
    for path in (*further, *at_hand, sys.executable, *of_pyenv):
        words = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        asked = subprocess.run(words, capture_output=True, text=True, check=False)
        if not asked.returncode:
            found.setdefault(asked.stdout.strip(), path)
    return {version: found[version] for version in VERSIONS if version in found}


def oldest() -> list[str]:
    """The dependencies at the versions that the project names as the least."""
    return [requirement.replace(">=", "==") + ".*" for requirement in PROJECT["dependencies"]]


def combinations(python: str) -> Iterator[tuple[str, list[str]]]:
    """Names of sets of dependencies, and what pip is told for them; the oldest ones have wheels for the oldest Python only."""
    yield "newest", []
    if python == VERSIONS[0]:
        yield "oldest", oldest()


def build(folder: Path, sdist: bool) -> list[Path]:
    """A wheel, and on request the source archive, of this folder."""
    wanted = ["--wheel", "--sdist"] if sdist else ["--wheel"]
    with tempfile.TemporaryDirectory() as place:
        python = environment(sys.executable, Path(place))
        run([python, "-m", "pip", "install", "--quiet", "build"])
        run([python, "-m", "build", "--outdir", str(folder), *wanted, str(ROOT)])
    return sorted(folder.glob(f"tapegrad-{PROJECT['version']}*"))


def run(words: Sequence[str], **settings: str) -> str:
    """What a command prints.

    Raises
    ------
    RuntimeError
        If it fails, with the end of what it complained.
    """
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**clean, **settings}, cwd=tempfile.gettempdir())
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[:4])}: {done.stderr.strip()[-600:]}")
    return done.stdout


def environment(python: str, folder: Path) -> str:
    """The Python of a fresh environment."""
    run([python, "-m", "venv", str(folder)])
    return str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")


def tried(wheel: Path, python: str, requirements: Sequence[str]) -> str:
    """What the trial prints in a fresh environment, and whether the engine that came in the wheel is used."""
    with tempfile.TemporaryDirectory() as place:
        own = environment(python, Path(place, "venv"))
        run([own, "-m", "pip", "install", "--quiet", str(wheel.resolve()), *requirements])
        printed = run([own, "-W", "error::RuntimeWarning", "-c", TRIAL], XDG_CACHE_HOME=place).split()
        engine = re.search(r"^engine: *(.*)$", run([own, "-m", "tapegrad", "info"]), flags=re.MULTILINE)
        came = engine is not None and engine[1].startswith("built with the package")
        whose = "of the wheel" if came else "NOT of the wheel"
        return f"tapegrad {printed[0]}, NumPy {printed[1]}, Numba {printed[2]}, engine {whose}"


def main(arguments: Sequence[str]) -> int:
    """Build, try, print; 1 if something failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("wheels", nargs="*", type=Path)
    parser.add_argument("--sdist", action="store_true", help="build the source archive too, and print its SHA-256")
    parser.add_argument("--python", action="append", default=[], help="a further interpreter to try the wheels with")
    given = parser.parse_args(arguments)
    made = given.wheels or build(ROOT / "dist", given.sdist)
    for archive in (path for path in made if path.name.endswith(".tar.gz")):
        print(f"{archive.name}: sha256 {hashlib.sha256(archive.read_bytes()).hexdigest()}")
    failed = 0
    for wheel in (path for path in made if path.suffix == ".whl"):
        for version, python in interpreters(given.python).items():
            for name, requirements in combinations(version):
                try:
                    found = tried(wheel, python, requirements)
                except RuntimeError as error:
                    found = f"FAILED: {error}"
                failed += "FAILED" in found or "NOT" in found
                print(f"{wheel.name}  Python {version}  {name}: {found}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
