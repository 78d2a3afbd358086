# Set-up and checks; every target makes what it needs, and making it again does nothing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PLOTS := plots
BENCHMARKS ?= .
EFFORT ?=
BASE ?= main
TABLES ?= workloads problems operations scripts
ONLY ?=
ROUNDS ?= 7
SIZE ?= 8
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DELETE_ON_ERROR:
.PHONY: demo test stress oracle packages array-api lint bench bench-html bench-compare breadth table scripts compatibility docs docs-check browser wheel clean

# The examples one after the other; those that draw write a picture of their name.
demo: $(VENV)/examples.stamp
	@mkdir -p $(PLOTS)
	$(BIN)/python examples/tour.py
	$(BIN)/python examples/rosenbrock.py $(PLOTS)/rosenbrock.png
	$(BIN)/python examples/logistic_regression.py $(PLOTS)/logistic_regression.png
	$(BIN)/python examples/curve_fit.py $(PLOTS)/curve_fit.png
	$(BIN)/python examples/stiff_reactions.py $(PLOTS)/stiff_reactions.png
	$(BIN)/python examples/swing_up.py $(PLOTS)/swing_up.png
	$(BIN)/python examples/bundle_adjustment.py $(PLOTS)/bundle_adjustment.png
	$(BIN)/python examples/inverse_heat.py $(PLOTS)/inverse_heat.png
	$(BIN)/python examples/constrained.py $(PLOTS)/constrained.png
	$(BIN)/python examples/implicit.py $(PLOTS)/implicit.png
	$(BIN)/python examples/numba_ode.py $(PLOTS)/numba_ode.png
	$(BIN)/python examples/digits.py
	$(BIN)/python examples/many_rows.py

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --ignore=tests/oracle

# The stress suite at its full sizes; ends with a table of scenario, iterations, figure and limit.
stress: $(VENV)/dev.stamp
	$(BIN)/python -m pytest tests/stress --long

# The same programs on tapegrad and on PyTorch; installs PyTorch.
oracle: $(VENV)/oracle.stamp
	$(BIN)/python -m pytest tests/oracle

# Compiled functions of packages that people use, and packages that are built on autograd, with a table of their fits; installs them.
packages: $(VENV)/packages.stamp
	$(BIN)/python -m pytest tests/nopython/test_nopython_packages.py tests/as_autograd/test_as_autograd_packages.py
	$(BIN)/python asv_bench/packages.py

# The public conformance suite of the Array API standard on tapegrad.numpy; SUITE=path of array-api-tests, unpacked or an archive.
array-api: $(VENV)/conformance.stamp
	$(BIN)/python tests/array_api/run.py $(SUITE)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict src

# One quick pass of every benchmark on the installed code, or of those that BENCHMARKS matches; asv needs to know the machine once.
bench: $(VENV)/bench.stamp
	cd asv_bench && ../$(BIN)/asv machine --yes >/dev/null && ../$(BIN)/asv run --quick --show-stderr --python=same --bench '$(BENCHMARKS)'

# A page of graphs, .asv/html/peers.html, with peers that are installed in $(VENV) beside us; BENCHMARKS chooses, EFFORT=--quick measures once.
bench-html: $(VENV)/bench.stamp
	cd asv_bench && ../$(BIN)/asv machine --yes >/dev/null && ../$(BIN)/asv run $(EFFORT) --show-stderr --python=same --set-commit-hash "$$(git rev-parse HEAD)" --bench '$(BENCHMARKS)'
	cd asv_bench && ../$(BIN)/asv publish && ../$(BIN)/python result_pages.py

# What this checkout does to benchmarks that BENCHMARKS matches, beside the commit BASE, in turns, and what of it is noise.
bench-compare: $(VENV)/bench.stamp
	$(BIN)/python asv_bench/compare.py --base '$(BASE)' --bench '$(BENCHMARKS)' --rounds $(ROUNDS)

# Every operation that the tests have a case of, beside PyTorch's, which it installs; SIZE=1000 and SIZE=100000 for larger ones.
breadth: $(VENV)/oracle.stamp
	$(BIN)/python asv_bench/breadth.py --size $(SIZE)

# The tables of the README and docs/speed.md, written there with machine, versions and date: those in TABLES. ONLY=text prints rows with that text and writes nothing.
table: $(VENV)/bench.stamp
	$(BIN)/python asv_bench/readme_tables.py $(TABLES) --rounds $(ROUNDS) --only '$(ONLY)'

# Whole optimisation scripts in fresh processes, and calls of whole problems, beside the peers that are installed in $(VENV).
scripts: $(VENV)/dev.stamp
	$(BIN)/python asv_bench/scripts/run.py
	$(BIN)/python asv_bench/problems.py

# docs/pytorch-compatibility.md, from its table and the tests' marks; needs nothing installed.
compatibility:
	$(PYTHON) docs/compatibility.py

# The documentation site, into docs/_build: pages, reference from the docstrings, and the examples, which are run for it. Warnings are errors.
docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build

# The built site in a browser, from its files: every page opens without an error, and the search finds what it should.
docs-check:
	$(PYTHON) tests/site_in_a_browser.py docs/_build

# Debian's chromium, in which pictures and pages are tested, where there is no browser.
browser:
	@$(PYTHON) -c 'import sys; sys.path.insert(0, "tests"); import inspection_browser; sys.exit(not inspection_browser.program())' || { \
		sudo=$$(test "$$(id -u)" = 0 || echo sudo); \
		$$sudo apt-get update -qq && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-liberation; \
	}

# A wheel and the source archive in dist/, tried in fresh environments with each Python that is at hand.
wheel: $(VENV)/pyvenv.cfg
	$(BIN)/python release/check_wheels.py --sdist

clean:
	rm -rf $(VENV) $(VENV)-* $(PLOTS) docs/_build docs/_generated

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("tapegrad needs Python 3.11 or newer, and $(PYTHON) is %d.%d; try make PYTHON=python3.12" % v[:2])'
	$(PYTHON) -m venv $(VENV)

# Installed in place, so that edits of the source need no second installation.
$(VENV)/%.stamp: pyproject.toml $(VENV)/pyvenv.cfg
	$(PIP) --editable '.[$*]'
	@touch $@
