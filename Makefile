# Two commands do all the set-up: `make train` and `make test`. Needs Python 3.11 or newer, a C++17 compiler and make.
# Python 3.11 is preferred where Reverb runs (Linux on x86-64), and the newest Python otherwise.
ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell first=; [ "$$(uname -sm)" = "Linux x86_64" ] && first=python3.11; \
  for name in $$first $$(seq -f python3.%g 20 -1 11) python3; do \
    $$name -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$name; break; }; done)
endif
VENV := .venv
BIN := $(VENV)/bin
# The lock file of the existing environment, or of the one that $(PYTHON) will create.
LOCK := $(shell for python in $(BIN)/python $(PYTHON); do $$python -c 'import platform, sys; \
  reverb = sys.version_info[:2] == (3, 11) and (sys.platform, platform.machine()) == ("linux", "x86_64"); \
  print("requirements.lock" if reverb else "requirements-newer.lock")' 2>/dev/null && break; done)
DOCS_VENV := .venv-docs
ARGS ?=
TEST_ARGS ?=
CLUSTER ?= cluster
comma := ,

ENGINE_SOURCES := CMakeLists.txt pyproject.toml $(wildcard placement/engine/native/*/* placement/netlist/native/* placement/flat/native/*/*)

.PHONY: help install train evaluate test test-slow test-cluster test-browser sanitize lint reference figures docs format clean
.DEFAULT_GOAL := help

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(VENV)/.engine  ## Create .venv with the pinned packages and build the engine

$(VENV)/.python:
	@$(or $(PYTHON),false) -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "$(or $(PYTHON),python3) is not Python 3.11 or newer with its module venv; install one (Debian: python3-venv), or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# --no-compile: pip would take minutes to compile all packages to bytecode; Python compiles only imported modules, once.
unexport PYTHONDONTWRITEBYTECODE
$(VENV)/.packages: $(LOCK) $(VENV)/.python
	@echo "Installing $(LOCK) for $$($(BIN)/python -V) (once, a few minutes)$(if $(findstring newer,$(LOCK)),: the newest JAX$(comma) episodes in memory; Reverb and runtime=ray need Python 3.11 on Linux x86-64) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes -r $(LOCK)
	@touch $@

$(VENV)/.engine: $(ENGINE_SOURCES) $(VENV)/.packages
	@echo "Building the engine ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

train: install  ## Train on a built-in design (ARGS="design=... ppo.iterations=...")
	$(BIN)/python train.py $(ARGS)

evaluate: install  ## Evaluate a placement or a trained policy (ARGS="design=... placement=...")
	$(BIN)/python evaluate.py $(ARGS)

TWO_PROCESSES := --numprocesses 2 --dist loadfile --no-loadscope-reorder

test: install  ## Run all fast tests, or selected tests (TEST_ARGS="-k name")
ifeq ($(strip $(TEST_ARGS)),)
	$(BIN)/python -m pytest -m "not slow and not cluster and not browser" $(TWO_PROCESSES)
else
	$(BIN)/python -m pytest $(TEST_ARGS)
endif

test-slow: install  ## Run the slow tests: C++, stress, large designs
	$(BIN)/python -m pytest -m "slow and not cluster and not browser" $(TWO_PROCESSES)

# In one process: the tests share one run, and mostly wait for its processes. CLUSTER=hosts: only the tests on three hosts.
test-cluster: install  ## Kill, starve, attack and resume real runs of many processes
	$(BIN)/python -m pytest -m "$(CLUSTER)"

# Needs Debian's Chromium; without it, the tests are skipped.
test-browser: install  ## Run the tests of the window in a real browser
	$(BIN)/python -m pytest -m browser

sanitize: install  ## Run the C++ unit tests under ASan, UBSan and TSan (a few minutes)
	for kind in address,undefined thread; do \
	  $(BIN)/cmake -S . -B build/sanitize-$$kind -DPython_EXECUTABLE=$(abspath $(BIN)/python) -DPLACEMENT_NATIVE_TESTS=ON \
	    -DPLACEMENT_SANITIZE=$$kind -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g" && \
	  $(BIN)/cmake --build build/sanitize-$$kind --target native_tests --parallel 2 && \
	  UBSAN_OPTIONS=halt_on_error=1 build/sanitize-$$kind/native_tests || exit 1; \
	done

lint: install  ## Check style, types and the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

reference: install  ## Write the generated reference pages (docs/reference/settings.md)
	$(BIN)/python docs/settings.py

# ARGS="--list" lists them; ARGS=--all also creates those that take more than a minute; ARGS=NAME creates one.
figures: install  ## Create the documentation's pictures and generated pages (ARGS="--all")
	$(BIN)/python docs/figures.py $(ARGS)

# This variable disables an advertisement of mkdocs-material.
docs: $(DOCS_VENV)/.packages  ## Build the documentation's site into build/site
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict
	@echo "documentation: build/site/index.html"

$(DOCS_VENV)/.packages: requirements-docs.lock $(VENV)/.python
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes -r requirements-docs.lock
	@touch $@

format: install  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove build outputs (not runs/)
	rm -rf build $(VENV) .venv-newer $(DOCS_VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
