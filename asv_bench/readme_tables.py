"""Measure the tables of the README and of docs/speed.md and write them there, with the machine, the versions and the date.

``python asv_bench/readme_tables.py [workloads problems operations scripts] [--rounds N]`` (``make table TABLES=...``). Peers that
are not installed have no column. With ``--only text`` the rows whose names have that text are printed, and nothing is written.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from conditions import conditions

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
FORMS = ("tapegrad", "tapegrad compiled", "scipy", "autograd", "jax", "torch")


def command(table: str, rounds: int, only: str) -> list[str]:
    """What prints a table: its rows are the lines that begin with a bar."""
    every = ["--rounds", str(rounds), "--only", only]
    commands = {
        "workloads": ["ratios.py", *every],
        "problems": ["problems.py", "--markdown", *every],
        "operations": ["breadth.py", "--markdown", *every],
        "scripts": ["scripts/run.py", *([only] if only else []), "--runs", str(rounds), "--forms", *FORMS],
    }
    script, *words = commands[table]
    return [sys.executable, str(FOLDER / script), *words]


README, SPEED = ROOT / "README.md", ROOT / "docs" / "speed.md"
TABLES = {"workloads": [SPEED], "problems": [README], "operations": [README, SPEED], "scripts": [README]}  # and their documents


def measured(table: str, rounds: int, only: str) -> list[str]:
    """The rows of a table, which are also shown as they come."""
    found = []
    with subprocess.Popen(command(table, rounds, only), stdout=subprocess.PIPE, text=True, cwd=FOLDER) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith("|"):
                found.append(line.rstrip())
    if process.returncode or len(found) < 3:
        sys.exit(f"the table of {table} could not be measured")
    return found


def written(text: str, table: str, rows: list[str], told: str) -> str:
    """A document with a table replaced between its marks.

    Raises
    ------
    ValueError
        If the document has no marks for it.
    """
    begin, end = f"<!-- table: {table} -->\n", f"<!-- end of {table} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", flags=re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"the document has no {begin.strip()} ... {end}")
    lines = "\n".join(rows)
    return pattern.sub(lambda _: f"{begin}\n{lines}\n\n{told}\n\n{end}", text)


def main() -> None:
    """Measure what was asked for, and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], metavar="table", help=", ".join(TABLES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", metavar="text", help="part of the names of rows, which are printed and not written")
    parser.add_argument("--file", type=Path, help="another document for the tables")
    options = parser.parse_args()
    for table in options.tables or TABLES:
        rows, told = measured(table, options.rounds, options.only), f"Measured on {conditions()}."
        print(told)
        if not options.only:
            for document in [options.file] if options.file else TABLES[table]:
                document.write_text(written(document.read_text(encoding="utf-8"), table, rows, told), encoding="utf-8")
                print(f"{document} has the table of {table}")


if __name__ == "__main__":
    main()
