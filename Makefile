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

.PHONY: reproduce rates test lint types unit test-cpus sanitize test-arm test-x86 stress adversary fuzz growth \
	fuzz-http kill-agent damage-logs backup-agent kill-sweep test-cluster test-container test-browser test-adapters test-no-compiler bench bench-operations docs test-site picture sizes dist clean

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
	$(BIN)/clang-format --dry-run --Werror $(filter %pp,$(NATIVE))

types: $(SETUP)
	$(BIN)/pyright

unit: $(SETUP)
	$(BIN)/python -m pytest -n auto --dist worksteal

# The suite at every CPU level of the native core that this machine executes.
# `make test-cpus CPUS='v2 v3'` takes these alone.
test-cpus: $(SETUP)
	$(BIN)/python native/compiler.py --all-levels
	$(BIN)/python -m tests.cpus $(CPUS)

# The native core with checks of addresses and of undefined behaviour: some minutes, with GCC.
sanitize: $(SETUP)
	$(BIN)/python native/compiler.py --sanitize
	LD_PRELOAD=$$($${CXX:-c++} -print-file-name=libasan.so) PYTHONMALLOC=malloc PYTHONPATH=build/sanitized \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	$(BIN)/python -m pytest -n 0 tests/native tests/slot/step/test_lanes.py tests/solver/test_active_set.py tests/solver/test_interior_point.py tests/solver/test_working_set.py

# The same on 64-bit ARM or x86, emulated on the other: needs root, debootstrap and qemu-user-static.
# `make test-arm TESTS='tests/rules tests/solver'` takes these.
test-arm: $(SETUP)
	tests/elsewhere.sh arm64 $(TESTS)

test-x86: $(SETUP)
	tests/elsewhere.sh amd64 $(TESTS)

# The full count of random and degenerate steps, warnings being errors; the tests run a share of it.
# `make stress PAIRS='quadratic convex'` takes these rows alone, on every domain.
stress: $(SETUP)
	$(BIN)/python -W error -m tests.stress --steps 200000
	$(BIN)/python -W error -m tests.stress --steps 5000 --pairs $(PAIRS)

# Every public entry with odd arguments: an answer or a coldq.Error with a sentence. An agent beside
# its model: no difference, through refusals and crashes. Odd tables: an answer or a sentence.
fuzz: $(SETUP)
	$(BIN)/python -m tests.fuzz --calls 20000
	$(BIN)/python -m tests.agent.stateful --cases 3000
	$(BIN)/python -m tests.problems.fuzzed_tables --cases 5000

# Steps drawn to break the solver, at moderate and extreme scales, and a backbone's in raw units.
adversary: $(SETUP)
	$(BIN)/python -m tests.adversary --steps 7000
	$(BIN)/python -m tests.adversary --steps 1500 --scale extreme
	$(BIN)/python -m tests.adversary --traffic 20000

# An agent on disk, killed 200 times at work: nothing acknowledged is lost, nothing counts twice.
kill-agent: $(SETUP)
	$(BIN)/python -m tests.agent.kills --kills 200

# The log of an agent, damaged 200 times: refused or right, never older than what was acknowledged.
damage-logs: $(SETUP)
	$(BIN)/python -m tests.agent.damaged_logs --cases 200

# A served agent under load, backed up 50 times, over HTTP and from its file: each is of one moment.
backup-agent: $(SETUP)
	$(BIN)/python -m tests.agent.backups --count 50

# A sweep, killed 20 times at work: every result once, none half written, no process left behind.
kill-sweep: $(SETUP)
	$(BIN)/python -m tests.evaluation.sweeps.kills --kills 20

# A sweep on a Dask cluster and on a Ray cluster of two processes each, one of them killed.
test-cluster: $(VENV)/.ready-cluster
	$(BIN)/python -m pytest tests/cluster --override-ini addopts=

# The server's interface, drawn from its own OpenAPI page: no 500, nothing without a token.
fuzz-http: $(VENV)/.ready-http
	$(BIN)/python -m tests.serve.drawn_requests --cases 300

# The lines of the container file as they are written, in a fresh folder and environment: some minutes.
test-container: $(SETUP)
	$(BIN)/python -m tests.serve.container

# `pip install .` into an empty environment with no compiler, cmake or ninja on the path, and the
# README's first example: some minutes.
test-no-compiler: $(SETUP)
	$(BIN)/python -m tests.no_compiler

# Constraints from JAX and PyTorch functions, with both of them installed.
test-adapters: $(VENV)/.ready-adapters
	$(BIN)/python -m pytest tests/adapters --override-ini addopts=

# Do regret and violation grow as claimed, and is every bound kept? 20 seeds, some minutes.
growth: $(SETUP)
	$(BIN)/python -m pytest tests/statistical --override-ini addopts=

# The report in a real browser: needs chromium, on the path or named by CHROMIUM.
test-browser: $(VENV)/.ready-browser
	$(BIN)/python -m pytest tests/browser --override-ini addopts=

# The site in build/site, from docs/, the docstrings and the examples, which are run. No network is
# needed once the packages are installed. A warning, a dead link among them, is an error.
docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The site in a real browser, at the widths of a desk and a phone, with and without scripts: needs
# chromium, on the path or named by CHROMIUM.
test-site: docs $(VENV)/.ready-browser
	$(BIN)/python -m pytest tests/site --override-ini addopts=

# The picture of the front page.
picture: $(SETUP)
	$(BIN)/python examples/web_capacity.py docs/web-capacity.png

# How cost grows with size, as a table and as the picture of docs/growth.md: a quarter of an hour.
sizes: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks.sizes --picture docs/growth.png

# Wheel (of every CPU level) and sdist in dist/, checked; each is installed into an empty environment, in which the first
# example of the README is run.
dist: $(VENV)/.ready-dist
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist -C cmake.define.COLDQ_ALL_LEVELS=ON .
	PATH=$(abspath $(BIN)):$$PATH $(BIN)/auditwheel repair --wheel-dir dist dist/*-linux_*.whl
	rm dist/*-linux_*.whl
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m tests.installed dist

bench: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.agents

# What operators wait for: connections, bursts, /live under a long feedback, /metrics of many agents.
bench-operations: $(SETUP)
	$(BIN)/python -m benchmarks.operations

$(SETUP): $(VENV)/.ready-packages $(NATIVE)
	$(BIN)/python native/compiler.py
	touch $@

$(VENV)/.ready-packages: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("coldq needs Python 3.11 or later, but this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(VENV)/.ready-bench: $(SETUP)
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@

$(VENV)/.ready-http: $(SETUP)
	$(BIN)/python -m pip install --quiet --editable '.[http]'
	touch $@

$(VENV)/.ready-browser: $(SETUP)
	$(BIN)/python -m pip install --quiet --editable '.[browser]'
	touch $@

$(VENV)/.ready-cluster: $(SETUP)
	$(BIN)/python -m pip install --quiet --editable '.[test,cluster]'
	touch $@

$(VENV)/.ready-docs: $(SETUP)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

$(VENV)/.ready-dist: $(SETUP)
	$(BIN)/python -m pip install --quiet --editable '.[dist]'
	touch $@

$(VENV)/.ready-adapters: $(SETUP)
	$(BIN)/python -m pip install --quiet --editable '.[jax,torch]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
