PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test perf clean

# The photographs of frost come with another distribution, installed for its files alone: as blemish fetch-frost would
# get them, but into the environment.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps imagecorruptions
	touch $@

demo: $(READY)  ## measure two small networks on embedded digits and write a report
	$(BIN)/blemish demo --out demo

test: $(READY)  ## lint, types, import direction and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2

# In an environment of its own: the peer installs over the package that the photographs of frost come from, and has them.
perf:  ## time every corruption against the peer package, in one run
	$(PYTHON) -m venv $(VENV)-perf
	$(VENV)-perf/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(VENV)-perf/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . numba imagecorruptions-imaug
	OMP_NUM_THREADS=1 $(VENV)-perf/bin/python perf/cpu.py

clean:
	rm -rf $(VENV) $(VENV)-perf demo
