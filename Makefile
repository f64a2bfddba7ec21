# Two commands do everything on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
CORES ?= 2
# Options of Snakemake for `make run`, of pytest for `make test`.
ARGS ?= --quiet rules
TESTS ?=
VENV := .venv
RUN := $(VENV)/bin/python
# Paths stay relative, so that a checkout in a folder with spaces works.
STAMP := $(VENV)/.installed

.PHONY: demo run test lint install answer report clean

demo: run report answer

install: $(STAMP)

$(STAMP): envs/requirements.txt envs/packages.txt envs/archives.txt envs/fetch_archives.py pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet -r envs/requirements.txt
	$(RUN) -m pip install --quiet --no-deps --require-hashes -r envs/packages.txt
	$(RUN) -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(RUN) envs/fetch_archives.py
	touch $(STAMP)

run: $(STAMP)
	$(RUN) tools/run.py --cores $(CORES) $(ARGS)

report: $(STAMP)
	$(RUN) -m snakemake --report results/report.html

answer: $(STAMP)
	$(RUN) tools/answer.py

test: $(STAMP)
	$(RUN) -m pytest $(TESTS)

lint: $(STAMP)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m snakefmt --check Snakefile rules
	$(RUN) -m snakemake --lint
	$(RUN) -m mypy
	$(RUN) -c "from importlinter.cli import lint_imports_command as lint; lint()"

clean:
	rm -rf results .snakemake
