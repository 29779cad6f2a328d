# jitlab: `make lab` opens the tour, `make test` tests it. Both need Python 3.11 or later, and make their own .venv.
#   make lab ARGS="--no-browser --port 8899"    hands arguments on to JupyterLab
#   make test PYTEST_ARGS="-k softmax"          hands arguments on to pytest

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE := scripts/with-node
TOOLS := tests/browser/node_modules/.bin
ARGS ?=
PYTEST_ARGS ?=
# A file of tests stays in one process: its fixtures are made once, and what the process counts is counted by it alone.
# tests/conftest.py puts files that take long first; pytest-xdist would sort them by their number of tests.
PYTEST_WORKERS ?= --numprocesses=logical --maxprocesses=4 --dist=loadfile --no-loadscope-reorder
EXTENSION_SOURCES := $(shell find extension/src extension/style extension/schema -type f) jitlab/messages/table.json package.json yarn.lock hatch_build.py
NOTEBOOKS := $(wildcard notebooks/*.ipynb)
# Where it is set, each of the many kernels and processes that tests start would compile all of jitlab's source again.
unexport PYTHONDONTWRITEBYTECODE
OUTPUT_SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.PHONY: lab check test test-long test-python test-quick test-extension test-browser test-browser-short test-browser-repeat screenshots notebooks lint lint-python lint-extension bench bench-panel docs clean

lab: $(VENV)/.extension
	$(BIN)/jitlab lab $(ARGS)

# Before each commit: something of every layer, in 2 minutes. `make test` takes 9 minutes at most, `make test-long` a night.
check: STAGES := test-quick lint-python lint-extension test-extension
test: STAGES := test-python test-browser-short lint-python lint-extension test-extension
test-long: STAGES := lint-python lint-extension test-extension test-browser test-python
test-long: export JITLAB_PART = all
JOBS := 2
test-long: JOBS := 1
# Every stage runs, also after a failure of another one. Pytest runs beside the others, which keep one core busy at most; what
# it says is kept in a file and shown last, so that its closing line is near the end.
check test test-long: $(VENV)/.test $(VENV)/.extension tests/browser/node_modules/.ready node_modules/.ready
	@rm -f $(VENV)/pytest.log $(VENV)/failed; \
	$(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) $(OUTPUT_SYNC) $(STAGES:%=stage-%); status=$$?; \
	cat $(VENV)/pytest.log; \
	if [ $$status != 0 ]; then echo "make $@: failed in:" $$(cat $(VENV)/failed); exit 1; fi

stage-%:
	@echo "== $*"; \
	$(MAKE) --no-print-directory $* $(if $(filter test-python test-quick,$*),>$(VENV)/pytest.log 2>&1) || { echo $* >>$(VENV)/failed; exit 1; }

# Of long tests the tenth of the day, or what JITLAB_PART says.
test-python: $(VENV)/.test $(VENV)/.extension
	$(BIN)/python -m pytest $(PYTEST_WORKERS) $(if $(NOTEBOOKS),--nbval-lax notebooks) tests $(PYTEST_ARGS)

# The first case of each test that is neither slow nor long.
test-quick: $(VENV)/.test $(VENV)/.extension
	$(BIN)/python -m pytest $(PYTEST_WORKERS) --part=quick tests $(PYTEST_ARGS)

test-extension: $(VENV)/.extension node_modules/.ready
	$(NODE) jlpm test

# The long set, 30 minutes at most; `make test` runs the short one.
test-browser: export JITLAB_BROWSER = long
test-browser test-browser-short: $(VENV)/.test $(VENV)/.extension tests/browser/node_modules/.ready
	JITLAB_CHROMIUM="$$(scripts/find-chromium)" && export JITLAB_CHROMIUM && cd tests/browser && ../../$(NODE) jlpm playwright test

# So many runs of the short ones, each with a server of its own; what failed in which run stands in the folder. For flakes.
RUNS ?= 20
test-browser-repeat: $(VENV)/.test $(VENV)/.extension tests/browser/node_modules/.ready
	@rm -rf $(VENV)/runs; mkdir $(VENV)/runs; failed=0; \
	for run in $$(seq $(RUNS)); do \
	  if $(MAKE) --no-print-directory test-browser-short >$(VENV)/runs/$$run.log 2>&1; then said=passed; else said=failed; failed=$$((failed + 1)); fi; \
	  echo "run $$run of $(RUNS) $$said$$(grep -E '^  ✘' $(VENV)/runs/$$run.log)"; \
	done; echo "$$failed of $(RUNS) runs failed: $(VENV)/runs"; [ $$failed = 0 ]

# The pictures of README and docs, from the first lesson as it runs now.
screenshots: $(VENV)/.test $(VENV)/.extension tests/browser/node_modules/.ready
	JITLAB_CHROMIUM="$$(scripts/find-chromium)" JITLAB_PICTURES=screenshots.ts && export JITLAB_CHROMIUM JITLAB_PICTURES && cd tests/browser && ../../$(NODE) jlpm playwright test

# The lessons' outputs, anew: on a quiet machine, since they hold times. ARGS="notebooks/03-retracing.ipynb" for one.
notebooks: $(VENV)/.test
	$(BIN)/python scripts/run_notebooks.py $(ARGS)

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
	$(if $(ARGS),,$(BIN)/python benchmarks/compare_runs.py)

# The panel at 50 000 operations, 100 000 spans and 10 000 events a second; ARGS="report.json" for reports that jitlab made.
bench-panel: node_modules/.ready tests/browser/node_modules/.ready
	$(NODE) jlpm page:bench
	JITLAB_CHROMIUM="$$(scripts/find-chromium)" && export JITLAB_CHROMIUM && export JITLAB_PYTHON="$(abspath $(BIN)/python)" && cd tests/browser && ../../$(NODE) node performance.mjs $(abspath $(ARGS))

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q docs site

clean:
	rm -rf $(VENV) node_modules tests/browser/node_modules extension/lib jitlab/labextension jitlab/static

# ---- what the targets above stand on ----

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "jitlab needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV) || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq python3-venv && $(PYTHON) -m venv $(VENV); }

# Editable, so that Python edits need nothing; pip builds the extension too, and the link makes JupyterLab load it from the checkout.
define install
$(BIN)/pip install --quiet --disable-pip-version-check -e '.[$(1)]'
$(BIN)/jupyter-builder develop . --overwrite
endef

$(VENV)/.extension: $(BIN)/python pyproject.toml $(EXTENSION_SOURCES)
	$(call install,lab)
	@touch $@

# What tests need has all that the lab needs in it: one installation, not two.
$(VENV)/.test: $(BIN)/python pyproject.toml $(EXTENSION_SOURCES)
	$(call install,test)
	@touch $@ $(VENV)/.extension

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
