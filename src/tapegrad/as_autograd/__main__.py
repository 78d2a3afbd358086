"""``python -m tapegrad.as_autograd script.py`` runs a script with `autograd` standing for tapegrad."""

from __future__ import annotations

import os
import runpy
import sys

USAGE = "usage: python -m tapegrad.as_autograd script.py [arguments]\n       python -m tapegrad.as_autograd -m module [arguments]"


def main(arguments: list[str]) -> None:
    """Run what the arguments name, as ``python`` would.

    Raises
    ------
    SystemExit
        If they name nothing.
    """
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        raise SystemExit(USAGE)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
