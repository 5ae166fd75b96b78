# Two commands do all the set-up: `make train` and `make test`. Needs Python 3.11, a C++17 compiler and make.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
DOCS_VENV := .venv-docs
ARGS ?=
TEST_ARGS ?=
CLUSTER ?= cluster

ENGINE_SOURCES := CMakeLists.txt pyproject.toml $(wildcard placement/engine/native/*/* placement/netlist/native/* placement/flat/native/*/*)

.PHONY: help install train evaluate test test-cluster test-browser sanitize lint reference figures docs format clean
.DEFAULT_GOAL := help

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(VENV)/.engine  ## Make .venv with the pinned packages and build the engine

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed; install it, or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "$(PYTHON) is not Python 3.11, which requirements.lock is for; README.md says how to install on others" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# --no-compile: pip would compile all of TensorFlow and Ray to bytecode, for minutes; Python compiles what is used.
$(VENV)/.packages: requirements.lock $(VENV)/.python
	@echo "Installing the pinned packages (once, a few minutes) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.engine: $(ENGINE_SOURCES) $(VENV)/.packages
	@echo "Building the engine ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

train: install  ## Train on a built-in design (ARGS="design=... ppo.iterations=...")
	$(BIN)/python train.py $(ARGS)

evaluate: install  ## Evaluate a placement or a trained policy (ARGS="design=... placement=...")
	$(BIN)/python evaluate.py $(ARGS)

test: install  ## Run all tests but those of test-cluster and test-browser (TEST_ARGS="-k name")
ifeq ($(strip $(TEST_ARGS)),)
	$(BIN)/python -m pytest -m "not cluster and not browser" --numprocesses 2 --dist loadfile --no-loadscope-reorder
else
	$(BIN)/python -m pytest $(TEST_ARGS)
endif

# In one process: they share one run, and mostly wait for its processes. CLUSTER=hosts: those on three hosts only.
test-cluster: install  ## Kill, starve, attack and resume real runs of many processes
	$(BIN)/python -m pytest -m "$(CLUSTER)"

# Needs Chromium, as Debian has it; skips, saying so, without.
test-browser: install  ## Use the window in a real browser
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

# ARGS="--list" lists them; ARGS=--all also makes those that take more than a minute; ARGS=NAME makes one.
figures: install  ## Make the documentation's pictures and generated pages (ARGS="--all")
	$(BIN)/python docs/figures.py $(ARGS)

# mkdocs-material prints an advertisement of its own unless it is told not to.
docs: $(DOCS_VENV)/.packages  ## Build the documentation's site into build/site
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict
	@echo "documentation: build/site/index.html"

$(DOCS_VENV)/.packages: requirements-docs.lock
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed; name one: make docs PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes -r requirements-docs.lock
	@touch $@

format: install  ## Put the code into the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove what was built (not runs/)
	rm -rf build $(VENV) $(DOCS_VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
