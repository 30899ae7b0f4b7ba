"""Settings as data: what they say, and that streams are what their procedures say, from the seed alone."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.studies.arena.course import Course, course_of
from blemish.studies.arena.image_lists import LISTS
from blemish.studies.arena.images import CorruptedImages
from blemish.studies.arena.ordering import dirichlet_chunks, dirichlet_slots, generator, label_shift
from blemish.studies.arena.setting import Setting, built_in, load_setting, orders, parse_setting

FACTS = Path(__file__).parents[4] / "shared" / "facts"
CORRUPTIONS = ("fog", "gaussian_noise", "snow", "own:thing")
LABELS = np.random.default_rng(0).integers(0, 10, 600)


def course(name: str, seed: int = 1) -> Course:
    setting = load_setting(name)
    return course_of(setting, setting.variants[0], CORRUPTIONS, LABELS, seed)


@pytest.mark.parametrize("name", [name for name in built_in() if name != "ccc"])
class TestEverySetting:
    def test_is_a_function_of_its_seed(self, name: str) -> None:
        one, same, other = course(name), course(name), course(name, seed=2)
        assert np.array_equal(one.rows, same.rows)
        assert not np.array_equal(one.rows, other.rows)

    def test_shows_every_image_under_every_condition(self, name: str) -> None:
        shown = course(name)
        counts = Counter(zip(shown.condition.tolist(), shown.rows.tolist(), strict=True))
        times = {"cyclic": {10}, "gradual": {1, 2}, "label_shift": set(counts.values())}.get(name, {1})
        assert set(counts.values()) == times
        if name != "label_shift":
            assert len(counts) == len(shown.conditions) * len(LABELS)

    def test_batches_cover_it_and_stay_in_their_blocks(self, name: str) -> None:
        shown = course(name)
        batches = list(shown.batches(64))
        assert [start for start, _ in batches] == [0, *(stop for _, stop in batches[:-1])]
        assert batches[-1][1] == len(shown)
        assert all(len(set(shown.condition[a:b])) == 1 for a, b in batches) or load_setting(name).mixed
        assert set(shown.resets) <= {start for start, _ in batches}


def test_orders_are_those_of_the_facts() -> None:
    assert len(orders()["standard"]) == 15
    assert all(sorted(order) == sorted(orders()["standard"]) for order in orders().values())
    if not FACTS.is_dir():
        pytest.skip("no facts beside the checkout")
    facts = json.loads((FACTS / "tta_orders.json").read_text())
    assert list(orders()["standard"]) == facts["standard"]
    assert [list(orders()[f"order-{i}"]) for i in range(10)] == facts["ten_orders"]


def test_the_5000_images_are_those_of_the_facts() -> None:
    text = resources.files("blemish.studies.arena").joinpath(LISTS["robustbench"]).read_text(encoding="utf-8")
    numbers = json.loads(text)["numbers"]
    assert len(set(numbers)) == 5000
    if not FACTS.is_dir():
        pytest.skip("no facts beside the checkout")
    lines = (FACTS / "robustbench_imagenet_5000.txt").read_text().split()
    assert numbers == [int(line.rpartition("_")[2].partition(".")[0]) for line in lines]


def test_a_benchmark_without_the_fifteen_keeps_its_own_order() -> None:
    setting = load_setting("continual")
    assert [name for name, _ in setting.domains(CORRUPTIONS, "standard")] == [
        "gaussian_noise", "snow", "fog", "own:thing",
    ]  # fmt: skip
    assert [name for name, _ in setting.domains(CORRUPTIONS, "benchmark")] == list(CORRUPTIONS)


def test_gradual_is_cottas() -> None:
    shown = course("gradual")
    levels = [shown.conditions[shown.condition[start]] for start in shown.blocks]
    assert levels[:5] == [f"gaussian_noise@{s}" for s in (5, 4, 3, 2, 1)]
    assert levels[5:14] == [f"snow@{s}" for s in (1, 2, 3, 4, 5, 4, 3, 2, 1)]


def test_chunks_bind_classes_and_are_balanced() -> None:
    """With a small concentration a class is in few places; chunks hold ten images or more, as the procedure says."""
    labels = np.repeat(np.arange(10), 100)
    rows = dirichlet_chunks(labels, 0.1, generator(0, 0))
    assert sorted(rows.tolist()) == list(range(1000))
    runs = 1 + int(np.count_nonzero(np.diff(labels[rows])))
    assert runs < 100  # of images in any order about 900 differ from the one before
    loose = dirichlet_chunks(labels, 1000.0, generator(0, 0))
    assert runs < 1 + int(np.count_nonzero(np.diff(labels[loose]))) <= 100  # every class in every chunk
    with pytest.raises(InputError, match=r"chunks with 10 images each were not found"):
        dirichlet_chunks(np.repeat(np.arange(2), 500), 1e-9, _Stubborn())  # type: ignore[arg-type]


class _Stubborn:
    """A generator whose every class goes to the first chunk."""

    def permutation(self, values: object) -> object:
        return values

    def dirichlet(self, alpha: np.ndarray) -> np.ndarray:
        return np.eye(len(alpha))[0] * 0.999 + 0.001 / len(alpha)


def test_slots_are_at_most_a_hundred() -> None:
    labels = np.arange(300)
    rows = dirichlet_slots(labels, 0.1, generator(0, 0))
    assert sorted(rows.tolist()) == list(range(300))


def test_label_shift_draws_one_class_at_a_time() -> None:
    """r / (r + C − 1): practically always at 500,000; one in ten at 1."""
    labels = np.repeat(np.arange(10), 50)
    strong = labels[label_shift(labels, 500_000.0, generator(0, 0))].reshape(10, 100)
    assert len(strong) * 100 == 2 * len(labels)
    assert (strong == strong[:, :1]).mean() > 0.99
    assert sorted(strong[:, 0].tolist()) == list(range(10))
    weak = labels[label_shift(labels, 1.0, generator(0, 0))]
    assert 60 < np.bincount(weak).min() <= np.bincount(weak).max() < 140


def test_pixels_are_those_of_the_benchmark_in_every_setting() -> None:
    """Each image under each condition is the one that the corruption makes of it alone."""
    clean = torch.randint(0, 256, (40, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    ids, labels = torch.arange(100, 140), np.arange(40) % 4
    protocol = Protocol(preset="cifar", seed=3, storage="jpeg85")
    for name in ("mixed", "gradual"):
        shown = course_of(load_setting(name), "standard", ("gaussian_noise", "fog"), labels, 0)
        conditions = {text: parse_condition(text) for text in shown.conditions}
        images = CorruptedImages(shown, clean, ids, conditions, protocol, torch.device("cpu"))
        images.size = 17  # pieces that fit nothing
        found = images.between(10, 60)
        from blemish.evaluation.pixels import as_stored

        for place in (10, 26, 27, 59):
            row = int(shown.rows[place])
            condition = conditions[shown.conditions[shown.condition[place]]]
            alone = condition.apply(clean[row : row + 1], seed=3, ids=ids[row : row + 1], preset="cifar")
            assert torch.equal(found[place - 10], as_stored(alone, "jpeg85")[0])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("severities = []", "no severities"),
        ("severities = [0]", "severity 0"),
        ('order = "eleventh"', "order 'eleventh'; expected one of standard, benchmark, ten, order-0"),
        ("rounds = 0", "rounds 0"),
        ("speed = 2", "speed 2"),
        ("batch = 0", "batch 0"),
        ('labels = "backwards"', "labels is 'backwards'"),
        ("colour = 3", "unknown entry 'colour'"),
        ('mixed = true\nreset = "shift"', "a mixed stream with resets"),
        ("walk = true\nrounds = 2", "a walk with labels, resets or rounds"),
        ("=", "not readable as TOML"),
    ],
)
def test_what_is_refused(entries: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        parse_setting(f'name = "mine"\ntitle = "x"\n{entries}\n', where="mine.toml")
    assert str(error.value).startswith("mine.toml: ")


def test_settings_from_files_and_severities(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\ntitle = "mine"\nrounds = 3\n')
    setting = load_setting(path)
    assert setting == Setting(name="mine", title="mine", rounds=3)
    assert setting.at(3.0).severities == (3.0,)
    assert load_setting("gradual").at(3.0) == load_setting("gradual")
    with pytest.raises(InputError, match="unknown setting 'continuous'"):
        load_setting("continuous")
    assert replace(setting, order="ten").variants == tuple(f"order-{i}" for i in range(10))


def test_every_built_in_setting_says_whose_it_is() -> None:
    for name in built_in():
        setting = load_setting(name)
        assert setting.name == name
        assert setting.title
        assert setting.source
