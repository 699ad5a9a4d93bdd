# Two commands do everything on a machine with python3 and make:  make demo   make test
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
INSTALL := -m pip install --quiet --disable-pip-version-check
PIP    := $(BIN)/python $(INSTALL) -c constraints.txt
FLOOR  := .venv-floor
PLAIN  := .venv-plain
BUILD  := .venv-build
# One BLAS thread per test process: two cores are easily oversubscribed.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
JOBS   ?= 2

.PHONY: demo test coverage test-statistical test-plain test-floor dist test-dist check-dist lint hooks docs bench experiments-quick experiments clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e .
	@touch $@

$(VENV)/.all: $(VENV)/.core
	$(PIP) -e ".[all]"
	@touch $@

$(VENV)/.demo: $(VENV)/.core
	$(PIP) -e ".[cli,report]"
	@touch $@

demo: $(VENV)/.demo          ## a real two-sample test, printed for a person, and a report to open; needs no torch
	@$(BIN)/cpmmd demo

# Seeded: what is refused once is refused again. tests/fuzz and test-statistical go further.
test: $(VENV)/.all           ## everything but the long statistical runs
	$(ONE_THREAD) $(BIN)/python -m pytest --hypothesis-seed=0 -n $(JOBS) -m "not statistical" $(ARGS)

# Not part of `make test`: on Python 3.11 tracing takes a third to three quarters more processor time.
coverage: $(VENV)/.all       ## the same tests, and what they reach; opens at .coverage/html/index.html
	$(ONE_THREAD) $(BIN)/python -m pytest --hypothesis-seed=0 -n $(JOBS) -m "not statistical" --cov --cov-report=term --cov-report=html $(ARGS)

test-statistical: $(VENV)/.all  ## level and power over thousands of repetitions
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) -m statistical $(ARGS)

# Without torch, so that any Python that has wheels of the rest can run it: make test-plain PYTHON=python3.13
$(PLAIN)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(PLAIN)
	$(PLAIN)/bin/python $(INSTALL) -c constraints.txt -e ".[cli,files,plot,report,dask,test]"
	@touch $@

test-plain: $(PLAIN)/.ready  ## the tests without torch
	PYTHONPATH=tests/packaging $(ONE_THREAD) $(PLAIN)/bin/python -m pytest -p without_torch --hypothesis-seed=0 -n $(JOBS) -m "not statistical" $(ARGS)

# Wheels only: a floor that has to be compiled is none. Without torch, whose floor is its pin: tests/packaging/without_torch.py skips
# the tests that come to it, each with its reason.
$(FLOOR)/.ready: pyproject.toml constraints-floor.txt
	$(PYTHON) -m venv --clear $(FLOOR)
	$(FLOOR)/bin/python $(INSTALL) --only-binary :all: -c constraints-floor.txt -e ".[cli,files,plot,report,dask,test]"
	@touch $@

test-floor: $(FLOOR)/.ready  ## the tests with the lowest versions that pyproject.toml allows
	PYTHONPATH=tests/packaging $(ONE_THREAD) $(FLOOR)/bin/python -m pytest -p without_torch --hypothesis-seed=0 -n $(JOBS) -m "not statistical" $(ARGS)

$(BUILD)/.ready: constraints.txt
	$(PYTHON) -m venv --clear $(BUILD)
	$(BUILD)/bin/python $(INSTALL) -c constraints.txt build hatchling twine
	@touch $@

# The time in the archives is that of the last commit, so that a commit always gives the same bytes; without git it is a fixed one.
SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),1735689600)
BUILD_IN = SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) $(BUILD)/bin/python -m build --no-isolation . --outdir

dist: $(BUILD)/.ready        ## the wheel and the source distribution, in dist/
	$(BUILD_IN) dist

test-dist: dist              ## both are complete, repeatable, and work in an environment of their own
	$(BUILD_IN) $(BUILD)/again
	$(PYTHON) tests/packaging/check_dist.py dist $(BUILD)/again

check-dist: $(BUILD)/.ready  ## what is in dist/ has metadata and a page that PyPI takes
	$(BUILD)/bin/python -m twine check --strict dist/*

lint: $(VENV)/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

hooks: $(VENV)/.all          ## lint what is committed, before each commit
	$(BIN)/pre-commit install

docs: $(VENV)/.all           ## the site, every example run, warnings are errors; opens at docs/_build/html/index.html
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(VENV)/.all          ## speed, as ratios measured side by side
	$(BIN)/python -m benchmarks.core

experiments-quick: $(VENV)/.all  ## one repetition of every cell of every table and figure of the paper
	$(ONE_THREAD) $(BIN)/python -m experiments all --quick --jobs $(JOBS)

experiments: $(VENV)/.all    ## the paper's repetitions; goes on where it stopped
	$(ONE_THREAD) $(BIN)/python -m experiments all --jobs $(JOBS)

clean:
	rm -rf $(VENV) $(FLOOR) $(PLAIN) $(BUILD) dist .coverage docs/_build docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache
