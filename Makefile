# Every target sets up what it needs: a virtual environment in .venv with the locked packages.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
LOCK := requirements/dev.txt
LINTED := $(wildcard src tests scripts bench demo)
PYTEST := $(PY) -m pytest
POSTGRES_15 ?= /usr/lib/postgresql/15/bin

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-local-cluster test-connect test-postgres-long check check-types check-rules bench tpch fuzz stress soak mutate docs lock build clean java

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-6s %s\n", $$1, $$2}' Makefile

demo: $(READY) java ## a small shop with stream tables, live in the terminal
	@$(PY) demo/shop.py

test: check java ## everything: check, all tests on local Spark, the portable ones on a cluster and on Spark Connect
	$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder
	@$(MAKE) -j 2 --output-sync=target test-local-cluster test-connect

test-local-cluster test-connect: test-%: $(READY)
	$(PYTEST) --engine $* -m portable tests

test-postgres-long: $(READY) java ## PostgreSQL: 100 writers and ten kills, all of TPC-H, a million rows, an older server
	TRICKLE_POSTGRES_LONG=1 TRICKLE_LOAD_ROWS=1000000 $(PYTEST) -o timeout=7200 \
	  tests/replicas/test_proof.py tests/replicas/test_tpch.py tests/replicas/test_loading.py \
	  tests/immediate/postgres tests/catalog/pooled
	@test -x $(POSTGRES_15)/postgres || { echo "no PostgreSQL 15 in $(POSTGRES_15): apt-get install postgresql-15, or POSTGRES_15=folder"; exit 1; }
	TRICKLE_TEST_POSTGRES=$(POSTGRES_15) $(PYTEST) -o timeout=600 tests/postgres tests/sources/postgres tests/replicas

check: $(READY) ## format, lint, types, import rules, fresh generated pages
	@$(MAKE) -j 2 --output-sync=target check-types check-rules

check-types: $(READY)
	$(VENV)/bin/mypy $(LINTED)

check-rules: $(READY)
	$(VENV)/bin/ruff format --check $(LINTED)
	$(VENV)/bin/ruff check $(LINTED)
	$(VENV)/bin/lint-imports --no-logo
	$(PY) scripts/generate_docs.py --check

bench: $(READY) java ## time from change to refreshed result, as a table and as JSON
	@$(PY) -m bench

tpch: $(READY) java ## the 22 queries of TPC-H at scale 1 through all cycles of changes, compared with recomputation
	JAVA_TOOL_OPTIONS= TRICKLE_DRIVER_MEMORY=8g TRICKLE_TPCH_SCALE=1 $(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder -o timeout=7200 tests/tpch

fuzz: $(READY) java ## random queries and all other random cases, round after round, until one fails or you stop it
	@while TRICKLE_FUZZ_SEED=$$RANDOM$$RANDOM $(PYTEST) -q tests/oracle/test_random_queries.py \
	  && $(PYTEST) -q -m hypothesis --hypothesis-seed=$$RANDOM$$RANDOM; do :; done

stress: $(READY) java ## random graphs through 200 ticks each: order, nothing lost, all as their queries (SEEDS=50)
	TRICKLE_STRESS_SEEDS=$(or $(SEEDS),50) TRICKLE_STRESS_TICKS=200 $(PYTEST) -q -rP tests/scenarios/gates/test_stress.py

soak: $(READY) java ## 50 stream tables over 10 sources kept fresh for ten minutes: memory stays, nothing drifts (MINUTES=10)
	@$(PY) scripts/soak.py --minutes $(or $(MINUTES),10)

mutate: $(READY) ## whether the random queries notice a fault in each rule
	$(PY) scripts/mutate.py

docs: $(READY) ## write the generated pages again
	$(PY) scripts/generate_docs.py

build: $(READY) ## the wheel and the source archive, in dist/
	$(PY) -m hatchling build

lock: $(READY) ## write requirements/dev.txt again from pyproject.toml (UPGRADE=--upgrade for newer versions)
	$(VENV)/bin/uv pip compile pyproject.toml --extra connect --group dev --output-file $(LOCK) --quiet \
	  --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links $(UPGRADE)

clean: ## remove the virtual environment and everything that tools left behind
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

java: $(READY)
	@$(PY) scripts/check_java.py

$(READY): $(LOCK) pyproject.toml
	@scripts/make_venv $(VENV)
	@echo "installing packages into $(VENV) (some minutes the first time)"
	@$(PY) -m pip install --quiet --require-hashes -r $(LOCK)
	@$(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
