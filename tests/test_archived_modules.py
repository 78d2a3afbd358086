"""One file with the bytecode of the package's modules: what it gives, and when Python's own way is taken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fresh_processes
import pytest

import tapegrad as tg

LONG_AGO = 1_500_000_000
SHOWN = (
    "import tapegrad.inside.two as two, tapegrad.one as one, tapegrad.inside as inside; "
    "print(*(type(m.__loader__).__module__ == 'tapegrad.archived_modules' for m in (one, inside, two)), one.VALUE, two.VALUE)"
)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of the same name, with a few modules."""
    folder = tmp_path / "tapegrad"
    (folder / "inside").mkdir(parents=True)
    shutil.copy(Path(tg.__file__).parent / "archived_modules.py", folder)
    (folder / "__init__.py").write_text("from tapegrad import archived_modules\n")
    (folder / "one.py").write_text("VALUE = 1\n")
    (folder / "inside" / "__init__.py").write_text("")
    (folder / "inside" / "two.py").write_text("VALUE = 2\n")
    for path in folder.rglob("*.py"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    return folder


def run(package: Path, code: str = SHOWN, **more: str) -> str:
    """What a process prints that writes bytecode."""
    settings = fresh_processes.environment(package=package)
    settings.pop("PYTHONDONTWRITEBYTECODE")
    settings.pop("PYTHONPYCACHEPREFIX", None)
    done = subprocess.run([sys.executable, "-c", code], env=settings | more, capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.strip()


def archive(package: Path) -> Path:
    return package / "__pycache__" / f"modules.{sys.implementation.cache_tag}.bytecode"


def test_second_process_finds_the_modules_of_the_first(package: Path) -> None:
    assert run(package) == "False False False 1 2"
    assert run(package) == "True True True 1 2"


def test_modules_say_of_themselves_what_pythons_say(package: Path) -> None:
    code = (
        "import inspect, tapegrad.inside.two as two, tapegrad.inside as inside; s = [m.__spec__ for m in (inside, two)]; "
        "print([(x.name, x.origin, x.cached, x.parent, x.has_location, x.submodule_search_locations) for x in s], "
        "[(m.__file__, m.__cached__, m.__package__) for m in (inside, two)], inside.__path__, inspect.getsource(two), "
        "two.__loader__.get_code('tapegrad.inside.two').co_filename)"
    )
    assert run(package, code) == run(package, code)


def test_what_a_process_finds_besides_is_added(package: Path) -> None:
    run(package, "import tapegrad.one")
    assert run(package) == "True False False 1 2"
    assert run(package) == "True True True 1 2"


@pytest.mark.parametrize("text", ["VALUE = 3\n", "VALUE = 33\n"])
def test_changed_sources_are_pythons(package: Path, text: str) -> None:
    run(package)
    path = package / "inside" / "two.py"
    path.write_text(text)
    assert run(package) == f"True True False 1 {text.split()[-1]}"
    os.utime(path, (LONG_AGO + 1, LONG_AGO + 1))
    assert run(package) == f"True True False 1 {text.split()[-1]}"
    assert run(package) == f"True True True 1 {text.split()[-1]}"


def test_sources_that_were_changed_just_now_are_not_added(package: Path) -> None:
    os.utime(package / "one.py")
    run(package)
    assert run(package) == "False True True 1 2"


def test_module_that_is_gone_is_not_found(package: Path) -> None:
    run(package)
    (package / "one.py").unlink()
    assert run(package, "from importlib.util import find_spec; print(find_spec('tapegrad.one'))") == "None"


def test_reloaded_module_is_pythons(package: Path) -> None:
    run(package)
    code = "import importlib, tapegrad.one as one; importlib.reload(one); print(type(one.__loader__).__name__)"
    assert run(package, code) == "SourceFileLoader"


def test_package_that_was_moved_is_pythons_at_first(package: Path, tmp_path: Path) -> None:
    run(package)
    moved = tmp_path / "elsewhere" / "tapegrad"
    shutil.move(package, moved)
    assert run(moved) == "False False False 1 2"
    assert run(moved) == "True True True 1 2"


@pytest.mark.parametrize(
    "damage", [lambda data: data[:40], lambda data: b"", lambda data: b"0 1\n" + data, lambda data: data[:-30]]
)
def test_damaged_file_is_as_good_as_none(package: Path, damage: object) -> None:
    run(package)
    archive(package).write_bytes(damage(archive(package).read_bytes()))  # type: ignore[operator]
    assert run(package).endswith(" 1 2")


@pytest.mark.parametrize("setting", ["PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"])
def test_nothing_is_written_where_python_writes_no_bytecode_there(package: Path, setting: str, tmp_path: Path) -> None:
    run(package, **{setting: str(tmp_path / "bytecode")})
    assert not archive(package).exists()


def test_finders_that_tools_put_first_are_asked_first(package: Path) -> None:
    run(package)
    code = (
        "import sys\n"
        "class Finder:\n    def find_spec(self, name, path=None, target=None):\n        names.append(name)\n"
        "names = []\nsys.meta_path.insert(0, Finder())\nimport tapegrad.one\nprint('tapegrad.one' in names)"
    )
    assert run(package, code) == "True"


def test_package_that_comes_again_has_one_finder(package: Path) -> None:
    code = (
        "import sys, tapegrad\nfor name in [n for n in sys.modules if n.startswith('tapegrad')]: del sys.modules[name]\n"
        "import tapegrad\nprint(sum(type(one).__module__ == 'tapegrad.archived_modules' for one in sys.meta_path))"
    )
    assert run(package, code) == "1"
