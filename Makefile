# Two commands do everything on a machine with python3 and make:  make demo   make test
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# One BLAS thread per test process: two cores are easily oversubscribed.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
JOBS   ?= 2

.PHONY: demo test test-statistical lint docs bench experiments-quick experiments clean

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

test: $(VENV)/.all           ## everything but the long statistical runs
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) -m "not statistical" $(ARGS)

test-statistical: $(VENV)/.all  ## level and power over thousands of repetitions
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) -m statistical $(ARGS)

lint: $(VENV)/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.all           ## the site, every example run, warnings are errors; opens at docs/_build/html/index.html
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(VENV)/.all          ## speed, as ratios measured side by side
	$(BIN)/python -m benchmarks.core

experiments-quick: $(VENV)/.all  ## one repetition of every cell of every table and figure of the paper
	$(ONE_THREAD) $(BIN)/python -m experiments all --quick --jobs $(JOBS)

experiments: $(VENV)/.all    ## the paper's repetitions; goes on where it stopped
	$(ONE_THREAD) $(BIN)/python -m experiments all --jobs $(JOBS)

clean:
	rm -rf $(VENV) docs/_build docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache
