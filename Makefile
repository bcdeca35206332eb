# make demo   from nothing to an evaluated snapshot and an HTML report, on CPU
# make test   the test suite in a fresh environment
# make test-nightly  all of it, with many times the random schedules, every kill point and every fault
# make check  style, types, and the one direction of imports
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# A checkout that moves or whose dependencies change makes its environment again.
STAMP := $(VENV)/.stamp-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
# Tests mostly wait (for servers, locks and ends of processes), so three at a time suit two cores. A file's tests share
# their servers, and files start in their order: the long ones of tests/e2e come first. Nothing is parallel with: make test PARALLEL=
PARALLEL ?= -n 3 --dist loadfile --no-loadscope-reorder
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-nightly check format install install-test install-check clean
.DEFAULT_GOAL := help

.PHONY: help
help:
	@sed -n 's/^# //p' Makefile | head -4

$(STAMP)-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "cellar needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 3; }
	@echo "Making the environment in $(VENV) (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@rm -f $(VENV)/.stamp-*
	@$(PIP) install -c constraints.txt torch
	@touch $@

$(STAMP)-base: $(STAMP)-venv
	@$(PIP) install -c constraints.txt -e .
	@touch $@

$(STAMP)-test: $(STAMP)-base
	@$(PIP) install -c constraints.txt -e '.[test]'
	@touch $@

$(STAMP)-check: $(STAMP)-test
	@$(PIP) install -c constraints.txt -e '.[test,check]'
	@touch $@

install: $(STAMP)-base
install-test: $(STAMP)-test
install-check: $(STAMP)-check

demo: install
	$(BIN)/cellar demo

test: install-test
	$(BIN)/python -m pytest $(PARALLEL)

test-nightly: install-test
	$(BIN)/python -m pytest $(PARALLEL) -m "" --hypothesis-profile=nightly

check: install-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install-check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
