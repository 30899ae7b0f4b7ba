PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test perf clean

# The frost photographs of the reference ship inside another distribution; it is installed for its files alone.
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

# In an environment of its own: the peer installs over the package that the frost photographs come from.
perf:  ## time every corruption against the peer package, in one run
	$(PYTHON) -m venv $(VENV)-perf
	$(VENV)-perf/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(VENV)-perf/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . imagecorruptions-imaug
	OMP_NUM_THREADS=1 $(VENV)-perf/bin/python perf/cpu.py

clean:
	rm -rf $(VENV) $(VENV)-perf demo
