"""The command that builds the engine's library, into the package or the folder that it is given.

python -m tapegrad.library_build [FOLDER] [--processor x86-64-v3]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tapegrad.kernels import library
from tapegrad.library_build.build import build, default_processor


def _main() -> None:
    parser = argparse.ArgumentParser(description="Build the engine's library.")
    parser.add_argument("folder", type=Path, nargs="?", default=Path(library.FOLDER))
    parser.add_argument("--processor", default=default_processor())
    chosen = parser.parse_args()
    print(build(chosen.folder, chosen.processor))


if __name__ == "__main__":
    _main()
