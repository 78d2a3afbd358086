"""Run the Array API standard's public conformance suite on `tapegrad.numpy`.

``python tests/array_api/run.py SUITE [--examples N]``: SUITE is the suite's directory or archive (array-api-tests of the Consortium
for Python Data API Standards, MIT; what is recorded here is for its commit 55fcc60). It is run twice, since the namespace's arrays
are NumPy's own outside of drivers, and inside of them such as can hold what is differentiated. `xfails.txt` says which tests fail,
and why; any other failure makes the command fail.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def unpacked(suite: Path, into: Path) -> Path:
    """The directory that holds the suite's tests."""
    if suite.is_file():
        with tarfile.open(suite) as archive:
            archive.extractall(into, filter="data")
        suite = into
    found = [path.parent for path in [suite / "array_api_tests", *suite.glob("*/array_api_tests")] if path.is_dir()]
    if not found:
        sys.exit(f"{suite} is not the array-api-tests suite: there is no array_api_tests in it")
    return found[0]


def main() -> int:
    """Both runs; the worse of their exit statuses."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--examples", type=int, default=4)
    options = parser.parse_args()
    places = [str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"ARRAY_API_TESTS_MODULE": "tapegrad.numpy", "PYTHONPATH": os.pathsep.join(filter(None, places))}
    command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "-p", "no:cacheprovider", "--disable-deadline"]
    command += ["--derandomize", f"--max-examples={options.examples}", "--xfails-file", str(HERE / "xfails.txt")]
    command += ["--disable-warnings"]
    status = 0
    with tempfile.TemporaryDirectory() as into:
        suite = unpacked(options.suite.resolve(), Path(into))
        for where, plugin in (("outside of drivers", []), ("inside of a driver", ["-p", "inside_a_driver"])):
            print(f"tapegrad.numpy {where}:", flush=True)
            status = max(status, subprocess.run([*command, *plugin], cwd=suite, env=environment, check=False).returncode)
    return status


if __name__ == "__main__":
    sys.exit(main())
