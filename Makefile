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

.PHONY: demo run test lint install answer report mteb published reproduce-paper miniatures bench plan clean

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

# All task scores in mteb's own result format, in results/mteb.
mteb: $(STAMP)
	$(RUN) tools/mteb_results.py results/tasks/*

# The study's published numbers: DIR is the folder, MODEL pairs ours with theirs (MODEL=pythia-410m=Pythia/410m/main).
published: $(STAMP)
	$(RUN) tools/published.py "$(DIR)" $(MODEL)

# Pythia-410M scored here, layers 15, 17 and 24 of two tasks, against the published files in DIR; needs the hub.
reproduce-paper: $(STAMP)
	$(RUN) tools/reproduce.py "$(DIR)" $(CORES)

# Seven small models trained here, read at every checkpoint; eight minutes on two cores. Its tables take the place of the demo's.
miniatures: $(STAMP)
	$(RUN) tools/run.py --cores $(CORES) --configfile configs/miniatures.yaml $(ARGS)
	$(RUN) -m snakemake --configfile configs/miniatures.yaml --report results/report.html
	$(RUN) tools/miniatures.py

# What a study will cost, before it runs; refuses where the disk cannot hold it (CONFIG=configs/scale.yaml for a preset).
plan: $(STAMP)
	$(RUN) tools/plan.py $(CONFIG)

# What it costs: all layers over the bare forward pass, one pass over a pass per layer, metrics over LAPACK (paired; 20 min);
# and how cost grows with N, D, layers and tokens, written to docs/growth.md (half an hour).
bench: $(STAMP)
	$(RUN) -m snakemake --cores $(CORES) --quiet all -- results/models/smollm2-135m/manifest.json results/data/bible/samples.parquet
	OMP_NUM_THREADS=1 $(RUN) -m benchmarks.extraction
	OMP_NUM_THREADS=1 $(RUN) -m benchmarks.one_pass
	OMP_NUM_THREADS=1 $(RUN) -m benchmarks.metrics
	$(RUN) -m benchmarks.growth --full

# Unit tests side by side, one thread each; then those that run whole studies, the cluster's last. TESTS=PATH runs some only.
test: $(STAMP)
ifeq ($(TESTS),)
	OMP_NUM_THREADS=1 $(RUN) -m pytest -n $(CORES) --dist loadfile tests/unit
	$(RUN) -m pytest tests/workflow tests/faults tests/cluster
else
	$(RUN) -m pytest $(TESTS)
endif

lint: $(STAMP)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m snakefmt --check Snakefile rules
	$(RUN) -m snakemake --lint
	$(RUN) -m mypy
	$(RUN) -c "from importlinter.cli import lint_imports_command as lint; lint()"

clean:
	rm -rf results .snakemake
