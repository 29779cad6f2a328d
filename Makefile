# jitlab: `make lab` opens the tour, `make test` runs everything. Both need Python 3.11 or later, and make their own .venv.
#   make lab ARGS="--no-browser --port 8899"    hands arguments on to JupyterLab
#   make test PYTEST_ARGS="-k softmax"          hands arguments on to pytest

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE := scripts/with-node
TOOLS := tests/browser/node_modules/.bin
ARGS ?=
PYTEST_ARGS ?=
EXTENSION_SOURCES := $(shell find extension/src extension/style extension/schema -type f) package.json yarn.lock hatch_build.py
NOTEBOOKS := $(wildcard notebooks/*.ipynb)

.PHONY: lab test test-python test-extension test-browser screenshots lint lint-python lint-extension bench docs clean

lab: $(VENV)/.extension
	$(BIN)/jitlab lab $(ARGS)

# Every stage runs, also after a failure of an earlier one; pytest comes last, so that its closing line is near the end.
test: $(VENV)/.test $(VENV)/.extension tests/browser/node_modules/.ready
	@failed=; \
	for stage in lint-python lint-extension test-extension test-browser test-python; do \
	  echo "== $$stage"; $(MAKE) --no-print-directory $$stage || failed="$$failed $$stage"; \
	done; \
	if [ -n "$$failed" ]; then echo "make test: failed in:$$failed"; exit 1; fi

test-python: $(VENV)/.test $(VENV)/.extension
	$(BIN)/python -m pytest $(if $(NOTEBOOKS),--nbval-lax notebooks) tests $(PYTEST_ARGS)

test-extension: $(VENV)/.extension node_modules/.ready
	$(NODE) jlpm test

test-browser: $(VENV)/.test $(VENV)/.extension tests/browser/node_modules/.ready
	JITLAB_CHROMIUM="$$(scripts/find-chromium)" && export JITLAB_CHROMIUM && cd tests/browser && ../../$(NODE) jlpm playwright test

# The pictures of README and docs, from the first lesson as it runs now.
screenshots: $(VENV)/.test $(VENV)/.extension tests/browser/node_modules/.ready
	JITLAB_CHROMIUM="$$(scripts/find-chromium)" JITLAB_PICTURES=screenshots.ts && export JITLAB_CHROMIUM JITLAB_PICTURES && cd tests/browser && ../../$(NODE) jlpm playwright test

lint: lint-python lint-extension

lint-python: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/mypy

lint-extension: tests/browser/node_modules/.ready node_modules/.ready
	$(NODE) $(TOOLS)/tsc -p tsconfig.json
	$(NODE) $(TOOLS)/tsc -p tests/browser/tsconfig.json
	$(NODE) $(TOOLS)/eslint -c tests/browser/eslint.config.mjs extension tests/browser
	$(NODE) $(TOOLS)/prettier --log-level warn --check extension tests/browser '*.json'

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py $(ARGS)

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) node_modules tests/browser/node_modules extension/lib jitlab/labextension

# ---- what the targets above stand on ----

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "jitlab needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV) || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq python3-venv && $(PYTHON) -m venv $(VENV); }

# Editable, so that Python edits need nothing; the link makes the extension in the checkout the one JupyterLab loads.
$(VENV)/.extension: $(BIN)/python pyproject.toml $(EXTENSION_SOURCES)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[lab]'
	$(BIN)/jupyter-builder develop . --overwrite
	@touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

$(VENV)/.bench: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

# yarn.lock is the only prerequisite besides the manifest: the folders are what it says.
node_modules/.ready: $(VENV)/.extension package.json yarn.lock
	$(NODE) jlpm install --immutable
	@touch $@

tests/browser/node_modules/.ready: $(VENV)/.extension tests/browser/package.json tests/browser/yarn.lock
	cd tests/browser && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 ../../$(NODE) jlpm install --immutable
	@touch $@
