# Everything a newcomer needs: `make demo` and `make test`. Python 3.11, pip and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TRACE_STAMP := $(VENV)/.installed-trace

SCALE ?= quick

.PHONY: demo test test-all lint format bench docs ledger gallery clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

# The tests of trace need torch and transformers; the demo does not.
$(TRACE_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[trace]"
	touch $(TRACE_STAMP)

demo: $(STAMP)
	$(BIN)/tokenflock run --example sphere --out runs/demo --overwrite

test: $(TRACE_STAMP) lint
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadgroup

test-all: $(TRACE_STAMP) lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench,spectral]"
	$(BIN)/tokenflock bench --scale $(SCALE) --out benchmarks/results
	$(BIN)/python docs/build_benchmarks.py

docs: $(STAMP)
	$(BIN)/python docs/build.py

ledger: $(STAMP)
	$(BIN)/python docs/build_ledger.py --scale $(SCALE)

gallery: $(STAMP)
	$(BIN)/python docs/build_gallery.py

clean:
	rm -rf $(VENV) runs build dist .pytest_cache .ruff_cache .hypothesis
