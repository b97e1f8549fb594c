# `make quick` and `make test` install everything they need into .venv; the prerequisites are Python 3.11 or newer
# and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_VENV := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready
DISTRIBUTED_VENV := .venv-distributed
DISTRIBUTED_READY := $(DISTRIBUTED_VENV)/.ready
# Snakemake copies the files that it reads to the cache of the user, and ends in a traceback where that cannot be
# written, as with a read-only home: before it reads the Snakefile.
USER_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
ifneq ($(shell mkdir -p "$(USER_CACHE)" 2>/dev/null && test -w "$(USER_CACHE)" && echo writable),writable)
export XDG_CACHE_HOME := $(CURDIR)/.snakemake/cache
endif
UV_VERSION := 0.13.8
# uv does not read pip's setting for folders of wheels.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)

.PHONY: help setup quick test test-thorough test-all lint format lock bench backbones distributed docs notebooks clean

help:
	@echo "make quick   create the quick report, results/report.html"
	@echo "make test    run the tests, about three minutes on two cores"
	@echo "make test-thorough  run the rest, about ten minutes: real data, browsers, kills, fuzzing, plans"
	@echo "make test-all  run both at once, in less time than one after the other"
	@echo "make setup   install the locked packages into $(VENV) and compile the kernels"
	@echo "make backbones  install timm, torchvision, transformers and sentence-transformers for docs/make-features.md"
	@echo "make distributed  test databases in many files on a Dask cluster and on S3, in $(DISTRIBUTED_VENV)"
	@echo "make lint    check style, types and rules: ruff, mypy, snakefmt, snakemake --lint"
	@echo "make format  rewrite the sources with ruff and snakefmt"
	@echo "make bench   compare speed and memory with other libraries on this machine"
	@echo "make docs    build the documentation site, site/index.html; SOURCE_URL=https://host/owner/name/blob/main adds"
	@echo "             links from the API reference to the lines of the code"
	@echo "make notebooks  run the notebooks of docs/notebooks/ and store their outputs"
	@echo "make lock    update the lock files and environment.yml after editing pyproject.toml"
	@echo "make clean   delete $(VENV), $(DOCS_VENV), $(DISTRIBUTED_VENV) and site/"
	@echo "quick, test, test-thorough, test-all, lint, format, bench, notebooks and lock run setup first where it is"
	@echo "needed; docs and distributed do not."

# An environment is made anew in an empty folder: behind a link that would empty another one.
refuse_link = test ! -L $(1) || { echo "error: $(1) is a symbolic link; delete it, or make setup where it points" >&2; exit 1; }

setup: $(READY)

# torch is installed separately, because locking it with hashes would force one build on every machine. The lock is
# complete, hence --no-deps. Byte code and kernels are compiled once, here, so that no run waits for a compiler, even
# where PYTHONDONTWRITEBYTECODE is set: what needs no torch beside its download; byte code not of tests and of packages
# that no run imports. A file of a later Python has no byte code, and no meaning here: -qq.
PACKAGES = $(VENV)/lib/python3*/site-packages
BYTE_CODE := $(BIN)/python -m compileall -qq -j 0 -x '/(tests?|sympy|networkx|torchmetrics|onnx|_inductor|pip|uv)/'
$(READY): requirements.lock requirements-torch.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is required; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "error: Python's venv module is missing; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(call refuse_link,$(VENV))
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps -r requirements.lock
	$(BYTE_CODE) $(PACKAGES) & \
	  $(BIN)/python -c "from tiebench.compile import compile_counting; compile_counting()" & \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements-torch.txt && wait
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	$(BYTE_CODE) $(PACKAGES)/torch & \
	  $(BIN)/python -m compileall -q $(dir $(wildcard */__init__.py)) && $(BIN)/python -m workflow.compile && wait
	@touch $@

quick: $(READY)
	$(BIN)/snakemake --cores all
	@echo "results/quick.csv  results/figures/tie_ranges_quick.png"
	@echo "$(CURDIR)/results/report.html"

test: $(READY)
	$(BIN)/python -m pytest -m "not thorough" -n auto --dist loadfile --no-loadscope-reorder

test-thorough: $(READY)
	$(BIN)/python -m pytest -m thorough -n auto --dist loadfile --no-loadscope-reorder

test-all: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/snakemake --lint

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow/rules

bench: $(READY)
	$(BIN)/python -m benchmarks

# The site has an environment of its own, so that `make setup` installs nothing for it. SOURCES=FOLDER keeps the pages
# that Sphinx reads there, for tests to look at.
$(DOCS_READY): requirements-docs.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is required; name one: make PYTHON=python3.12 docs" >&2; exit 1; }
	@$(call refuse_link,$(DOCS_VENV))
	$(PYTHON) -m venv --clear $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(DOCS_VENV)/bin/uv pip install --quiet --python $(DOCS_VENV)/bin/python --require-hashes --no-deps \
	  -r requirements-docs.lock
	@touch $@

docs: $(DOCS_READY)
	$(DOCS_VENV)/bin/python -m workflow.documentation site --source-url '$(SOURCE_URL)' \
	  $(if $(SOURCES),--sources '$(SOURCES)')
	@echo "$(CURDIR)/site/index.html"

notebooks: $(READY)
	$(BIN)/python -m workflow.documentation.notebooks

$(DISTRIBUTED_READY): requirements-distributed.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is required; name one: make PYTHON=python3.12 distributed" >&2; exit 1; }
	@$(call refuse_link,$(DISTRIBUTED_VENV))
	$(PYTHON) -m venv --clear $(DISTRIBUTED_VENV)
	$(DISTRIBUTED_VENV)/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(DISTRIBUTED_VENV)/bin/uv pip install --quiet --python $(DISTRIBUTED_VENV)/bin/python --require-hashes --no-deps \
	  -r requirements-distributed.lock
	@touch $@

# Schedulers and workers import the same packages: what the first has compiled is kept for the others.
distributed: $(DISTRIBUTED_READY)
	PYTHONDONTWRITEBYTECODE= TIEBENCH_MUST_RUN=distributed $(DISTRIBUTED_VENV)/bin/python -m pytest tests/tiebench/test_distributed.py \
	  tests/tiebench/test_distributed_cluster.py \
	  "tests/tiebench/test_library_documentation.py::test_every_block_of_a_page_runs[large-databases.md]"

# Beside the pinned packages and the pinned torch, whose build stays: other versions of the lock would be other results.
backbones: $(READY)
	$(BIN)/uv pip install --python $(BIN)/python --group backbones -c requirements-torch.txt -c requirements.lock

# torch is installed from requirements-torch.txt: the lock must bring neither torch nor the CUDA libraries that its
# default build depends on, whichever package asks for it. In pyproject.toml such an override would also keep
# `uv pip install ".[torch]"` from installing torch. marionette-driver pins psutil on macOS, to a version older than that
# which the workflow uses everywhere.
lock: $(READY)
	printf '%s\n' "torch ; python_version < '0'" "psutil>=5.9.8" | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	  --generate-hashes --group suite --group dev --override - --no-header pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --group docs \
	  --constraint requirements.lock --no-header pyproject.toml -o requirements-docs.lock
	sed -n 's/^\(\(numpy\|numba\|llvmlite\)==[^ ]*\).*/\1/p' requirements.lock | \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --group distributed \
	  --constraint - --no-header pyproject.toml -o requirements-distributed.lock
	$(BIN)/python -m workflow.environment

clean:
	rm -rf $(VENV) $(DOCS_VENV) $(DISTRIBUTED_VENV) site
