"""What importing does: nothing to the process that imports."""

from __future__ import annotations

import json
import subprocess
import sys

_CHECK = """
import importlib, json, logging, os, pkgutil, sys

before = dict(os.environ)
import blemish

light = sorted({"torch", "numpy", "PIL", "pyarrow"} & sys.modules.keys())
import torch

threads = torch.get_num_threads()
skipped = []
for module in pkgutil.walk_packages(blemish.__path__, "blemish."):
    if module.name.startswith("blemish.integrations."):  # which import the libraries that they are for
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        skipped.append([module.name, error.name])
changed = {name for name in {*before, *os.environ} if before.get(name) != os.environ.get(name)}
handlers = [type(handler).__name__ for handler in logging.getLogger("blemish").handlers]
print(json.dumps({
    "light": light, "changed": sorted(changed), "threads": [threads, torch.get_num_threads()],
    "skipped": skipped, "modules": sum(name.startswith("blemish.") for name in sys.modules),
    "handlers": handlers,
    "root": len(logging.getLogger().handlers),
    "propagate": logging.getLogger("blemish").propagate,
}))
"""


def test_imports_leave_the_process_alone() -> None:
    """Environment, threads and logging are the program's; only the command line, which is one, may set them."""
    done = subprocess.run([sys.executable, "-c", _CHECK], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["light"] == []
    assert found["changed"] == []
    assert found["threads"][0] == found["threads"][1]
    assert {missing for _, missing in found["skipped"]} <= {"numba", "triton"}
    assert found["modules"] > 200
    assert (found["handlers"], found["root"], found["propagate"]) == (["NullHandler"], 0, True)
    assert done.stderr == ""
