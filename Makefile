# Every target works from a bare clone: it makes .venv and installs first when needed.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The first Python that is new enough; override with `make PYTHON=python3.12 setup`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
EXTRAS ?= cpu,jax,dev,export
# More than a small machine's cores: many tests wait for a process that they start.
JOBS ?= 4
# For instance: make test TESTS='hortus/core -k registry'
TESTS ?=

export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: help setup test lint format bench demo reference

help:  ## show this
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

setup: $(STAMP)  ## make .venv and install hortus with everything a developer needs

# pip's own errors go to the terminal; of its progress only the downloads are shown.
$(STAMP): pyproject.toml Makefile
	@if [ -z "$(PYTHON)" ]; then echo "hortus needs Python 3.10 or newer: make PYTHON=/path/to/python3" >&2; exit 1; fi
	@if [ ! -x $(BIN)/python ]; then echo "Making $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv $(VENV); fi
	@echo "Installing hortus[$(EXTRAS)] into $(VENV), a few minutes the first time"
	@set -o pipefail; $(BIN)/python -m pip install --disable-pip-version-check -e '.[$(EXTRAS)]' \
		| grep --line-buffered -E '^ *(Downloading|Installing build)' || test $${PIPESTATUS[0]} -eq 0
	@$(BIN)/python -m compileall -q hortus  # so that the first command is as quick as the next
	@touch $@
	@echo "Installed: try $(BIN)/hortus --help"

test: setup  ## run the tests
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(TESTS)

lint: setup  ## check style, imports and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup  ## put the code into house style
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

bench: setup  ## measure speed
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

reference: setup  ## write the API reference to build/reference, from the docstrings
	@$(BIN)/python docs/build_reference.py build/reference

DEMO ?= build/demo

demo: setup  ## draw sample data, train a detector on it, and write a report of what it learnt
	@$(BIN)/python examples/demo/demo.py $(DEMO)
	@printf '\nMore: %s\n' "$(BIN)/hortus --help, $(BIN)/hortus list, $(BIN)/hortus describe resnet_imagenet --diff"
