"""Every fused kernel against the plain operation, in Triton's interpreter, which needs no GPU."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from interpreted_kernels import CASES, interpreted

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return interpreted(tmp_path_factory.mktemp("interpreted"))


@pytest.mark.parametrize("name", CASES)
def test_kernels_give_what_the_plain_operations_give(found: dict[str, Any], name: str) -> None:
    case = found["cases"][name]
    assert not case["error"], case["error"]
    assert case["launched"], "no kernel ran"
    assert case["values"] > 1, "nothing to compare"
    assert case["distance"] <= CASES[name][1]


def test_every_kernel_has_run(found: dict[str, Any]) -> None:
    assert len(found["kernels"]) > 10
    launched = {kernel for case in found["cases"].values() for kernel in case.get("launched", ())}
    assert {*found["kernels"]} == launched
