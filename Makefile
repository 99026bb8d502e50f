# `make demo` and `make test` need nothing but Python (3.10 or newer) and make.
# Everything is started as a module of $(BIN)/python: the first line of an installed script names its interpreter by
# its whole path, which fails where that path is long and is worked around where it holds a space.
PYTHON ?= python3
VENV   ?= .venv
SUPPLY := $(VENV)-supply
BIN    := $(VENV)/bin
TORCH  ?= 0
ALL    ?= 0
PEERS  ?= 0
ARGS   ?=

.DEFAULT_GOAL := help
.PHONY: help demo test coverage matrix lint audit sbom bench gpu clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10) and "oomscope needs Python 3.10 or newer; name one with PYTHON=...")'
	"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@$(BIN)/python -m compileall -q oomscope
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.demo

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test,dev]'
	@touch $@ $(VENV)/.test $(VENV)/.demo

$(VENV)/.torch: | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check torch==2.13.0
	@touch $@

demo: $(VENV)/.demo ## Write a report from a real out-of-memory snapshot
	@$(BIN)/python -m oomscope demo oom_fragmentation --force

test: $(VENV)/.test $(if $(filter 1,$(TORCH)),$(VENV)/.torch) ## Run the tests (ALL=1: also long ones; TORCH=1: also those that need torch)
	$(BIN)/python -m pytest -n auto --dist loadgroup $(if $(filter 1,$(ALL))$(ARGS),,-m "not thorough") $(ARGS)

coverage: $(VENV)/.dev ## Run the tests and show which lines and branches none of them takes
	$(BIN)/python -m pytest -n auto --dist loadgroup --cov --cov-report=term $(ARGS)

matrix: ## Run the tests under every Python from 3.10 on that is found here
	@"$(PYTHON)" tests/matrix.py $(ARGS)

lint: $(VENV)/.dev ## Check style, types and the direction of imports
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python $(BIN)/lint-imports

$(SUPPLY)/.tools: | $(BIN)/python
	"$(PYTHON)" -m venv --clear $(SUPPLY)
	$(SUPPLY)/bin/python -m pip install -q --disable-pip-version-check 'pip-audit>=2.7' 'cyclonedx-bom>=4'
	@touch $@

audit: $(SUPPLY)/.tools ## Look the dependencies up among known vulnerabilities (needs the network)
	$(SUPPLY)/bin/python -m pip_audit --strict $(ARGS) .

sbom: $(SUPPLY)/.tools ## Write what is installed with oomscope to dist/oomscope.cdx.json (CycloneDX)
	@mkdir -p dist
	"$(PYTHON)" -m venv --clear --without-pip $(SUPPLY)/installed
	$(SUPPLY)/bin/python -m pip --python $(SUPPLY)/installed/bin/python install -q --disable-pip-version-check .
	$(SUPPLY)/bin/python -m cyclonedx_py environment --output-reproducible --pyproject pyproject.toml -o dist/oomscope.cdx.json $(SUPPLY)/installed/bin/python
	@echo dist/oomscope.cdx.json

bench: $(VENV)/.test ## Measure time, memory and size (PEERS=1: beside other readers, in a venv of their own)
	$(BIN)/python -m tests.benchmarks$(if $(filter 1,$(PEERS)),.bench_peers) $(ARGS)

gpu: $(VENV)/.test ## Run the tests that need a CUDA device
	$(BIN)/python -m pytest tests/gpu $(ARGS)

clean: ## Remove what the other targets made
	rm -rf $(VENV) $(SUPPLY) .venv-3.* build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
