# Two commands do everything: `make reproduce` runs the main job, `make test` checks the project.
# Both set up a virtual environment in .venv first. Only Python 3.11+ and make are needed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Set up again when the requirements change, not when the code does: the install is editable. The
# extension is built again when its sources change, before anything runs.
SETUP := $(VENV)/.ready
NATIVE := native/CMakeLists.txt $(shell find native -name '*.[ch]pp')
# Tests start a hundred processes: where bytecode may not be written, each compiles all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: reproduce rates test lint types unit check bench operations sizes docs picture dist clean

reproduce: $(SETUP)
	$(BIN)/coldq reproduce

# The paper's Tables 1 and 2, measured: 13 minutes on two cores, resumed where it stopped.
rates: $(SETUP)
	$(BIN)/coldq rates --out results

# Types are checked by one core, beside the tests.
test: lint
	$(MAKE) --no-print-directory --jobs=2 types unit

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m tests.words
	$(BIN)/clang-format --dry-run --Werror $(filter %pp,$(NATIVE))

types: $(SETUP)
	$(BIN)/pyright

unit: $(SETUP)
	$(BIN)/python -m pytest -n auto --dist worksteal

# The suites that take long or need more than the tests do: `make check SUITE=stress` runs one,
# `make check` lists them, and ARGS='...' is for the suite's last command.
check: $(SETUP)
	$(BIN)/python -m tests.check --install $(SUITE) $(ARGS)

bench: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks.agents
	$(BIN)/python -m benchmarks --against benchmarks/ratios.json

# What operators wait for: connections, bursts, /live under a long feedback, /metrics of many agents.
operations: $(SETUP)
	$(BIN)/python -m benchmarks.operations

# How cost grows with size, as a table and as the picture of docs/growth.md: a quarter of an hour.
sizes: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks.sizes --picture docs/growth.png

# The site in build/site, from docs/, the docstrings and the examples, which are run. No network is
# needed once the packages are installed. A warning, a dead link among them, is an error.
docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The picture of the front page.
picture: $(SETUP)
	$(BIN)/python examples/web_capacity.py docs/web-capacity.png

# Wheel (of every CPU level) and sdist in dist/, checked; each is installed into an empty environment, in which the first
# example of the README is run.
dist: $(VENV)/.ready-dist
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist -C cmake.define.COLDQ_ALL_LEVELS=ON .
	PATH=$(abspath $(BIN)):$$PATH $(BIN)/auditwheel repair --wheel-dir dist dist/*-linux_*.whl
	rm dist/*-linux_*.whl
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m tests.installed dist

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(SETUP): $(VENV)/.ready-packages $(NATIVE)
	$(BIN)/python native/compiler.py
	touch $@

$(VENV)/.ready-packages: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("coldq needs Python 3.11 or later, but this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

# An extra of pyproject.toml by its name.
$(VENV)/.ready-%: $(SETUP)
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@
