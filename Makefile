# make quick and make test set up everything they need: Python >= 3.11 is all that a machine must have.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV_VERSION := 0.13.8
# uv does not read pip's setting for folders of wheels.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)

.PHONY: help setup quick test lint format lock bench clean

help:
	@echo "make quick   the quick report: results/report.html (sets up first)"
	@echo "make test    the tests (sets up first)"
	@echo "make setup   create $(VENV) from the lock files and compile the kernels"
	@echo "make lint    ruff, snakefmt, snakemake --lint"
	@echo "make format  let ruff and snakefmt rewrite"
	@echo "make bench   speed against peers, on this machine"
	@echo "make lock    lock anew after an edit of pyproject.toml"
	@echo "make clean   remove $(VENV)"

setup: $(READY)

# Two installations, because a hash on torch would force one build of it on every machine. Kernels are compiled
# here once and kept beside their source, so that no run waits for the compiler.
$(READY): requirements.lock requirements-torch.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "error: Python's venv module is missing; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt
	$(BIN)/python -m workflow.compile
	@touch $@

quick: $(READY)
	$(BIN)/snakemake --cores all
	@echo "results/quick.csv  results/figures/tie_ranges_quick.png"
	@echo "$(CURDIR)/results/report.html"

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/snakemake --lint

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow/rules

bench: $(READY)
	$(BIN)/python -m benchmarks

lock: $(READY)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --group dev --no-header \
	  pyproject.toml -o requirements.lock
	$(BIN)/python -m workflow.environment

clean:
	rm -rf $(VENV)
