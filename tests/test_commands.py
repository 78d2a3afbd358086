"""Commands of the Makefile and of the documents: each is run by CI or stood in for by a test, and finds what its extra installs."""

from __future__ import annotations

import ast
import functools
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *(path for path in PAGES if not path.startswith(("docs/_build", "docs/_generated")))]

TARGETS = re.search(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)[1].split()  # type: ignore[index]
EXTRAS = dict(re.findall(r"^([\w-]+): \$\(VENV\)/(\w+)\.stamp$", MAKEFILE, flags=re.MULTILINE))  # of each target that has one

# What each target runs. Peers are not installed: who imports them does so in a function that is called where they are.
FILES = {
    "demo": "examples/*.py",
    "test": "tests/**/*.py",
    "stress": "tests/**/*.py",
    "oracle": "tests/oracle/**/*.py",
    "packages": "tests/*/test_*_packages.py",
    "array-api": "tests/array_api/*.py",
    "bench": "asv_bench/benchmarks/*.py",
    "breadth": "asv_bench/breadth.py",
    "bench-html": "asv_bench/result_pages.py",
    "bench-compare": "asv_bench/compare.py",
    "table": "asv_bench/[bpr]*.py",
    "scripts": "asv_bench/scripts/*.py",
    "compatibility": "docs/compatibility.py",
    "docs": "docs/[cgr]*.py",
    "docs-check": "tests/site_in_a_browser.py",
    "browser": "tests/inspection_browser.py",
    "wheel": "release/*.py",
}
# CI leaves these out: what they install or run takes too long. Their imports are tested here, their code by what is named.
NOT_IN_CI = {
    "stress": "tests/stress in short form, which is a part of make test",
    "oracle": "the marks and the page of compatibility",
    "packages": "the same functions where the packages are installed",
    "array-api": "tests/numpy_arrays/test_constants_of_arrays.py",
    "breadth": "asv_bench/benchmarks/breadth.py, which make bench runs",
    "scripts": "tests/optimize/test_optimisation_scripts.py",
    "wheel": "tests/test_release.py",
    "clean": "nothing",
}
PEERS = {"torch", "jax", "autograd", "lifelines", "pymanopt", "casadi", "aesara", "pytensor"}
WITH_EXTRAS = {
    "optimize/histories.py": ("progress", "tqdm"),
    "optimize/results.py": ("plot", "matplotlib"),
    "optimize/ipopt_interface.py": ("ipopt", "cyipopt"),
}
DISTRIBUTIONS = {"sklearn": "scikit-learn", "umap": "umap-learn", "numba_stats": "numba-stats", "llvmlite": "numba"}


def imports(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Packages that a module imports, and whether it does that in a function, or where it catches that they are missing."""

    def walk(node: ast.AST, later: bool) -> Iterator[tuple[str, bool]]:
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], later) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0], later
        later = later or isinstance(node, ast.FunctionDef)
        caught = isinstance(node, ast.Try) and any("ImportError" in ast.unparse(h.type or node) for h in node.handlers)
        for block in ("body", "handlers", "orelse", "finalbody"):
            for child in getattr(node, block, ()):
                yield from walk(child, later or caught)

    yield from walk(tree, False)


def uses_optimize(tree: ast.Module) -> bool:
    """Whether a module uses `tg.optimize` or its kin, which import SciPy."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("integrate", "optimize", "sparse")
        and ast.unparse(node.value) in ("tg", "tapegrad")
        for node in ast.walk(tree)
    )


def installed(extra: str | None) -> set[str]:
    """Distributions that an extra installs, with the package's own."""
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]] if extra else []
    return {re.split(r"[<>=~!\[; ]", requirement)[0] for requirement in wanted} | ({"tapegrad"} if extra else set())


@functools.cache
def own_modules() -> set[str]:
    """Names under which the project's tests, benchmarks and examples import each other."""
    paths = [path for folder in ("tests", "asv_bench", "examples") for path in (ROOT / folder).rglob("*.py")]
    return {path.stem for path in paths} | {path.parent.name for path in paths}


@functools.cache
def needed(path: Path) -> set[str]:
    """What a file imports, but for peers in functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {name for name, later in imports(tree) if not (later and (name in PEERS or name == "_testcapi"))}
    return found | ({"scipy"} if uses_optimize(tree) else set())


def missing(path: Path, extra: str | None) -> set[str]:
    """What a file imports and an environment with this extra does not have."""
    found = needed(path) - (own_modules() | set(sys.stdlib_module_names) | {"_testcapi"})
    return {DISTRIBUTIONS.get(name, name) for name in found} - installed(extra)


@pytest.mark.parametrize("target", FILES)
def test_what_a_target_runs_imports_what_its_extra_installs(target: str) -> None:
    paths = [path for path in ROOT.glob(FILES[target]) if target == "oracle" or "oracle" not in path.parts]
    assert paths
    lacking = {str(path.relative_to(ROOT)): lack for path in paths if (lack := missing(path, EXTRAS.get(target)))}
    # The tests of packages are left out where those are not installed.
    assert {path: lack for path, lack in lacking.items() if target == "packages" or not path.endswith("_packages.py")} == {}


def test_the_package_imports_its_dependencies_only() -> None:
    """All but `integrate`, `optimize`, `sparse`, a part of `special`, `as_autograd`, and a Bessel function works without SciPy."""
    lacking = {}
    for path in (ROOT / "src").rglob("*.py"):
        names = {name for name, _ in imports(ast.parse(path.read_text(encoding="utf-8")))} - set(sys.stdlib_module_names)
        if lack := {DISTRIBUTIONS.get(name, name) for name in names} - {"numpy", "numba", "tapegrad", "_testcapi"}:
            lacking[str(path.relative_to(ROOT / "src" / "tapegrad"))] = lack
    # These import in functions what an extra installs, and name the extra where it is missing.
    for path, (extra, library) in WITH_EXTRAS.items():
        assert library in installed(extra)
        lacking[path].remove(library)
    lacking = {path: lack for path, lack in lacking.items() if lack}
    needing = {path for path, lack in lacking.items() if lack == {"scipy"}} - {"numpy_protocol/elementwise.py"}
    assert {path.split("/")[0] for path in needing} == {"integrate", "optimize", "sparse", "special", "as_autograd"}
    assert {path for path, lack in lacking.items() if lack != {"scipy"}} == set()


def test_every_target_is_run_by_ci_or_named_with_what_stands_in_for_it() -> None:
    run = {word for line in CI.splitlines() if line.startswith("make ") for word in line.split() if word in TARGETS}
    assert run | set(NOT_IN_CI) == set(TARGETS)
    assert not run & set(NOT_IN_CI)
    told = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("CI does not run")[1].split("`tests/test_commands.py`")[0]
    assert set(re.findall(r"`make ([\w-]+)`", told)) - {"test", "bench"} == set(NOT_IN_CI) - {"clean"}


def commands(document: str) -> list[str]:
    blocks = re.findall(r"```(?:console|sh|bash)\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)
    return [line.split(" #")[0].strip() for block in blocks for line in block.splitlines() if line.strip() and line[0] != "#"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_of_documents_exist(document: str) -> None:
    """What they do is run by CI (targets), or by the tests of what they name."""
    for line in commands(document):
        for command in re.split(r" && | \| ", line):
            words = [word for word in shlex.split(command) if "=" not in word]
            assert is_known(words), f"{document}: {line}"


def is_known(words: list[str]) -> bool:
    program, arguments = Path(words[0]).name, words[1:]
    if program == "make":
        return bool(arguments) and all(word in TARGETS for word in arguments)
    if program == "cd":
        return (ROOT / arguments[0]).is_dir()
    if program in ("python", "python3") and arguments[0] == "-m":
        module = ROOT / "src" / arguments[1].replace(".", "/")
        ours = module.with_suffix(".py").exists() or (module / "__main__.py").exists()
        return ours or arguments[1] in ("pip", "pytest", "venv")
    if program in ("python", "python3"):
        return (ROOT / arguments[0]).exists()
    if program == "pytest":
        return all((ROOT / word).exists() for word in arguments if word.endswith(".py"))
    if program == "pip":
        extras = re.findall(r"\[(\w+)\]", " ".join(arguments))
        return arguments[0] == "install" and all(extra in PROJECT["optional-dependencies"] for extra in extras)
    return program in ("asv", "ruff", "mypy", "git")
