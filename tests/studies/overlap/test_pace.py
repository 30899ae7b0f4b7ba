"""How many networks are trained at once."""

from __future__ import annotations

import pytest
import torch

from blemish.studies.overlap import pace
from blemish.studies.overlap.plan import Plan
from blemish.studies.overlap.training import Schedule

NAMES = ("fog", "contrast", "brightness", "pixelate", "snow")
IMAGES = torch.randint(0, 256, (64, 3, 32, 32), dtype=torch.uint8)
PLAN = Plan(NAMES, "small_net", 10, Schedule(epochs=2, batch=16), preset="cifar")
GPU = torch.device("cuda")


def test_a_cpu_trains_one_at_a_time() -> None:
    assert pace.faster_size(PLAN, NAMES, IMAGES, torch.device("cpu")) == 1


def test_one_network_is_no_question() -> None:
    assert pace.faster_size(PLAN, NAMES[:1], IMAGES, GPU) == 1


@pytest.mark.parametrize(("seconds", "best"), [({1: 1.0, 2: 3, 3: 3, 5: 9}, 1), ({1: 9, 2: 1, 3: 1, 5: 9}, 3)])
def test_the_size_that_takes_least_in_all_is_chosen(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], best: int
) -> None:
    """Five networks: one by one, three and two, or all at once."""
    monkeypatch.setattr(pace, "group_seconds", lambda _plan, names, *_: seconds[len(names)])
    assert pace.faster_size(PLAN, NAMES, IMAGES, GPU) == best


def test_what_does_not_fit_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(plan: Plan, names: tuple[str, ...], images: torch.Tensor, device: torch.device) -> float:
        if len(names) > 1:
            raise torch.cuda.OutOfMemoryError("full")
        return 1000.0

    monkeypatch.setattr(pace, "group_seconds", seconds)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    assert pace.faster_size(PLAN, NAMES, IMAGES, GPU) == 1


def test_corrupting_is_part_of_what_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    plain = pace.Trainer

    def trainer(net, corruptors, *rest):
        seen.append([[c.name for c in corruptor.corruptions] for corruptor in corruptors])
        return plain(net, corruptors, *rest)

    monkeypatch.setattr(pace, "Trainer", trainer)
    assert pace.group_seconds(PLAN, NAMES[:2], IMAGES, torch.device("cpu")) > 0
    assert seen == [[["fog"], ["contrast"]]]
