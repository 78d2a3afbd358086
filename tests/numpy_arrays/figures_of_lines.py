"""Counts how many lines of the collection are right under a driver, refused with an error, or silently different:
``python tests/numpy_arrays/figures_of_lines.py``."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from classes_of_numpy import QUESTIONS, WRITES_OF_NUMBERS  # noqa: E402
from idioms_of_numpy import IDIOMS, STATEMENTS  # noqa: E402
from lines_of_numpy import LINES, LOST, REFUSED, WRITES  # noqa: E402
from test_functions_under_drivers import NAMESPACES, POINTS, SCRIPTS, V, check, expression, statements  # noqa: E402


def written_for(script: Callable[[Any, Any], Any]) -> Callable[[Any], Callable[[Any], Any]]:
    """What makes a function of a namespace from one that takes it first."""
    return lambda xp: functools.partial(script, xp)


# By whether NumPy can hand them on: it has no hook for the second kind, and the third takes numbers out.
KINDS = {
    "can be dispatched": [
        *((expression(line), POINTS[kind], line) for kind, line in [*LINES, *(("v", line) for line in IDIOMS), *QUESTIONS]),
        *((statements(text), V, text) for text in WRITES + STATEMENTS + WRITES_OF_NUMBERS),
        *((written_for(script), x, inspect.getsource(script)) for script, x in SCRIPTS),
    ],
    "no hook": [(expression(line), POINTS[kind], line) for kind, line in REFUSED],
    "takes numbers out": [(expression(line), POINTS[kind], line) for kind, line in LOST],
}


def main() -> None:
    """Print a line for each kind and namespace, and each line that is different without an error."""
    warnings.simplefilter("ignore")
    print(f"{'':20} {'':16} {'lines':>6} {'right':>6} {'error':>6} {'different':>10}  right")
    for kind, lines in KINDS.items():
        for name in NAMESPACES:
            found: Counter[str] = Counter()
            for make, x, line in lines:
                try:
                    check(make, name, x, line)
                except AssertionError:
                    found["different"] += 1
                    print("different:", line)
                except Exception:
                    found["error"] += 1
                else:
                    found["right"] += 1
            counts = f"{len(lines):6} {found['right']:6} {found['error']:6} {found['different']:10}"
            print(f"{kind:20} {name:16} {counts}  {found['right'] / len(lines):.1%}")


if __name__ == "__main__":
    main()
