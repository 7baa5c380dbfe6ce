# Every target sets up what it needs: a virtual environment and the package with its compiled core.
PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin
SOURCES := $(wildcard src/core/*) CMakeLists.txt pyproject.toml

.PHONY: demo test test-fast lint types docs sanitize bench peers peers-metric reproduce-quick results clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "kernelweave needs Python 3.11 or newer; run make with PYTHON=python3.11 or a later one."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable '.[io,report]'
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.installed

## demo: train on breast cancer's three views, compare with the usual baselines, write kernelweave-report.html
demo: $(VENV)/.installed
	$(BIN)/kernelweave demo

## test: the whole suite
test: $(VENV)/.installed-dev
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -q

## lint: style of the sources
lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

## types: strict static types
types: $(VENV)/.installed-dev
	$(BIN)/mypy

## docs: the API reference from the docstrings, in build/api
docs: $(VENV)/.installed-dev
	$(BIN)/python docs/api.py build/api

## sanitize: the tests of the compiled core under AddressSanitizer and UBSan
sanitize: $(VENV)/.installed-dev
	PYTHON=$(BIN)/python sh tests/core/sanitize.sh

## bench: speed and memory as ratios, in one interleaved run; other packages too once `make peers` was called
bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

## reproduce-quick: a few cells of every experiment whose data are there; DATA names the folder of the files
DATA ?= $(KERNELWEAVE_DATA)
reproduce-quick: $(VENV)/.installed-dev
	$(BIN)/kernelweave reproduce all --quick --jobs 2 $(if $(DATA),--data $(DATA))

## results: docs/results.md from docs/records
results: $(VENV)/.installed-dev
	$(BIN)/kernelweave results

## peers: the other packages of the benchmark, in an environment of their own
peers: $(PEERS)/.installed

$(PEERS)/.installed:
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet 'torch==2.13.0' MKLpy himalaya packaging
	@touch $@

## peers-metric: metric-learn, in an environment of its own with the last scikit-learn it runs on
peers-metric: .venv-metric/.installed

.venv-metric/.installed:
	$(PYTHON) -m venv .venv-metric
	.venv-metric/bin/python -m pip install --quiet 'scikit-learn<1.6' metric-learn==0.7.0
	@touch $@

clean:
	rm -rf $(VENV) $(PEERS) .venv-metric build .mypy_cache .ruff_cache .pytest_cache .hypothesis
