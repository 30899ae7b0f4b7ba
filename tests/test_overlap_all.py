"""perf/overlap_all.py and what reads its records: the matrix over all catalogues, and MSCR against errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.corruptions.catalog import catalog
from blemish.corruptions.noc import NOC
from blemish.corruptions.syn2nat import SYN2NAT
from blemish.studies.construction.gather import read_correct
from blemish.studies.construction.matrices import read_matrix
from blemish.studies.construction.overlap import overlap_matrix
from blemish.studies.construction.tables import read_table
from perf_scripts import module


def test_every_corruption_is_there_at_its_published_severities() -> None:
    """ImageNet-C's fifteen and four, candidates: 23 of NOC, 40 of Syn2Nat, 30 of C̄; four of optics, six of LAION-C."""
    script = module("overlap_all")
    assert len(script.published_conditions(script.PAPERS)) == 15 + 23 + 40
    texts = script.published_conditions()
    assert len(texts) == len(set(texts)) == 15 + 23 + 40 + 4 + 30 + 4 + 6
    assert all(parse_condition(text).group in catalog for text in script.SENSORS)
    assert {"fog@1-5", "frost@1-5", *(f"{unit.name}@1-5" for unit in NOC)} < set(texts)
    assert {f"{unit.name}@5" for unit in SYN2NAT} < set(texts)
    assert tuple(dict.fromkeys(text.partition("@")[0] for text in texts[:15])) == module("mscr_predicts_mce").FIFTEEN
    sample = module("overlap_all").sampled(texts, 12)
    assert len(set(sample)) == 12
    assert sample == module("overlap_all").sampled(texts, 12)


def test_networks_are_trained_measured_and_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = module("overlap_all")
    conditions = ["brightness@1-5", "noc:border@1-5", "syn2nat:invert@5"]
    monkeypatch.setattr(script, "published_conditions", lambda _: [text for text in conditions for _ in range(16)])
    monkeypatch.setattr(script, "SENSORS", ())
    rng = np.random.default_rng(0)
    for name in ("train", "test"):
        labels = np.arange(100) % 10
        images = (rng.integers(0, 60, (100, 32, 32, 3)) + 19 * labels[:, None, None, None]).astype(np.uint8)
        np.savez(tmp_path / f"{name}.npz", images=images, labels=labels)

    def call(out: str, *more: object) -> str:
        arguments = [tmp_path / "train.npz", tmp_path / "test.npz", tmp_path / out, "--quick", "--device", "cpu", *more]
        monkeypatch.setattr(sys, "argv", ["overlap_all.py", *map(str, arguments)])
        script.main()
        return capsys.readouterr().out

    assert "all networks are there" in call("one")
    records = module("network_records").Records.read(tmp_path / "one" / "overlap_all-tuned-seed0.npz")
    assert list(records.facts) == ["standard", "brightness", "noc:border", "syn2nat:invert"]
    assert records.right("standard", "corrupted").shape == (4, 100)
    assert list(records.accuracies("noc:border", "noise")) == ["linf:0.1", "linf:0.105882", "l2:1.34225"]
    assert "0 are missing" in call("one")
    # Elsewhere, from the list of what is done and the standard network.
    for name in ("noc:border", "syn2nat:invert"):
        del records.facts[name], records.correct[name]
    (tmp_path / "call1").mkdir()
    records.write(tmp_path / "call1" / "overlap_all-tuned-seed0.npz")
    arguments = [tmp_path / "done", tmp_path / "call1" / "overlap_all-tuned-seed0.npz"]
    monkeypatch.setattr(sys, "argv", ["network_records.py", *map(str, arguments)])
    module("network_records").main()
    assert "overlap_all-tuned-seed0: 2 networks" in capsys.readouterr().out
    with pytest.raises(InputError, match="no standard network to begin with; expected it or --earlier"):
        call("two", "--earlier", tmp_path / "done")
    (tmp_path / "one" / "standard-seed0.pt").rename(tmp_path / "done" / "standard-seed0.pt")
    said = call("two", "--earlier", tmp_path / "done")
    assert "2 networks are there, 2 are missing" in said
    rest = module("network_records").Records.read(tmp_path / "two" / "overlap_all-tuned-seed0.npz")
    assert list(rest.facts) == ["noc:border", "syn2nat:invert"]
    again = module("network_records").Records.read(tmp_path / "one" / "overlap_all-tuned-seed0.npz")
    for name in rest.facts:
        np.testing.assert_array_equal(rest.right(name, "corrupted"), again.right(name, "corrupted"))
    # From scratch, each part in a file of its own.
    for part, names in enumerate((["standard"], ["noc:border"])):
        assert "0 networks are there, 1 are missing" in call("two", "--from-scratch", 1, "--part", part, 2)
        file = tmp_path / "two" / f"overlap_all-scratch-seed0-part{part}.npz"
        assert list(module("network_records").Records.read(file).facts) == names


def test_what_fails_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A corruption that does not run is left out; a network that fails does not cost those after it."""
    script = module("overlap_all")
    conditions = ["brightness@1-5", "noc:border@1-5", "syn2nat:invert@5"]
    monkeypatch.setattr(script, "published_conditions", lambda _: [text for text in conditions for _ in range(16)])
    monkeypatch.setattr(script, "SENSORS", ())
    images = np.random.default_rng(0).integers(0, 256, (100, 32, 32, 3)).astype(np.uint8)
    np.savez(tmp_path / "images.npz", images=images, labels=np.arange(100) % 10)
    whole = script.tested_sets

    def broken(images: torch.Tensor, conditions: Any, seed: int) -> Any:
        if len(images) == 8 and conditions[0].group == "noc:border":
            raise RuntimeError("no such kernel")
        return whole(images, conditions, seed)

    class Failing(script.Trainer):  # type: ignore[misc, name-defined]
        def run_epoch(self) -> float:
            if self.corruptors[0].corruptions and self.corruptors[0].corruptions[0].name == "brightness":
                raise RuntimeError("out of memory")
            return float(super().run_epoch())

    monkeypatch.setattr(script, "tested_sets", broken)
    monkeypatch.setattr(script, "Trainer", Failing)
    arguments = [tmp_path / "images.npz", tmp_path / "images.npz", tmp_path / "out", "--quick", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["overlap_all.py", *map(str, arguments)])
    script.main()
    said = capsys.readouterr().out
    assert "left out, since it does not run here: noc:border@1-5 (RuntimeError('no such kernel'))" in said
    assert said.endswith("failed: brightness\n")
    records = module("network_records").Records.read(tmp_path / "out" / "overlap_all-tuned-seed0.npz")
    assert records.protocol["trained"] == ["brightness", "syn2nat:invert"]
    assert list(records.facts) == ["standard", "syn2nat:invert"]


def test_severities_are_whole_and_belong_to_images() -> None:
    """Each image has one of its corruption's severities by lot, whatever it shares a batch with."""
    script = module("overlap_all")
    corruptor = script.corruptor_of(parse_condition("contrast@1-5"))
    images, ids = torch.randint(0, 256, (200, 3, 32, 32), dtype=torch.uint8), torch.arange(200)
    made = corruptor(images, seed=3, ids=ids)
    assert torch.equal(corruptor(images[50:60], seed=3, ids=ids[50:60]), made[50:60])
    unit = parse_condition("contrast@1-5").steps[0].unit
    each = torch.stack([unit(images, severity=s, seed=3, ids=ids, preset="cifar") for s in range(1, 6)])
    same = (each == made).flatten(2).all(2)
    assert torch.equal(same.sum(0), torch.ones(200, dtype=torch.int64))
    # Forty of each are expected; as far off as this one in ten thousand times.
    assert all(abs(int(count) - 40) < 24 for count in same.sum(1))
    alone = script.corruptor_of(parse_condition("syn2nat:invert@5"))(images, seed=3, ids=ids)
    invert = parse_condition("syn2nat:invert@5").steps[0].unit
    assert torch.equal(alone, invert(images, severity=5, seed=3, ids=ids, preset="cifar"))


NAMES = ("gaussian_noise", "shot_noise", "fog", "contrast", "noc:border", "syn2nat:invert")


def made_up(folder: Path, way: str, seed: int, images: int = 600) -> Path:
    """Networks of six corruptions, two noises that are twins, with errors that fall as MSCR rises."""
    rng = np.random.default_rng(seed)
    fifteen = module("mscr_predicts_mce").FIFTEEN
    settings = [*NAMES, *(name for name in fifteen if name not in NAMES)]
    trained = list(NAMES) if way == "tuned" else list(NAMES[:4])
    protocol = {"experiment": "overlap_all", "way": way, "seed": seed, "test_images": images, "trained": trained}
    protocol |= {"net": "nets:some_net", "train_images": 1000, "fine_tune": {"epochs": 2} if way == "tuned" else None}
    sets = {
        "noise": ["linf:0.1", "linf:0.105882", "l2:1.34225"],
        "corrupted": ["clean", *(f"{n}@1-5" for n in settings)],
    }
    records = module("network_records").Records({**protocol, "sets": sets})
    for number, name in enumerate(["standard", *trained]):
        right = np.full(len(settings) + 1, 0.5 + 0.02 * number)
        right[0] = 0.9
        for other, setting in enumerate(settings, start=1):
            twins = {name, setting} == set(NAMES[:2])
            right[other] += 0.3 if setting == name else 0.25 if twins else 0.0
        answers = rng.random((len(right), images)) < right[:, None]
        noise = np.zeros((3, images), dtype=bool)
        noise[:, : int(images * (0.3 + 0.05 * number))] = True
        records.add(name, {"train_seconds": 1.0}, noise=torch.from_numpy(noise), corrupted=torch.from_numpy(answers))
    path = folder / f"{way}-{seed}.npz"
    records.write(path)
    return path


def test_tables_of_made_up_networks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned = [made_up(tmp_path, "tuned", seed) for seed in (0, 1)]
    scratch = made_up(tmp_path, "scratch", 0)
    arguments = [tmp_path / "out", *tuned, "--scratch", scratch, "--resamples", 3]
    monkeypatch.setattr(sys, "argv", ["overlap_all_tables.py", *map(str, arguments)])
    module("overlap_all_tables").main()
    text = capsys.readouterr().out
    assert "6 corruptions, 2 seeds; scores undefined: none" in text
    matrix = read_matrix(tmp_path / "out" / "overlap.csv")
    assert matrix.score("gaussian_noise", "shot_noise") > 0.7
    assert matrix.score("fog", "contrast") < 0.5
    table = read_table(tmp_path / "out" / "accuracies.csv")
    np.testing.assert_allclose(overlap_matrix(table).scores, matrix.scores)
    one, other = (read_correct(tmp_path / "out" / f"correct-seed{seed}.npz") for seed in (0, 1))
    mean = (one.correct.mean(axis=2) + other.correct.mean(axis=2)) / 2
    np.testing.assert_allclose(mean, table.values)
    assert "| 0 and 1 | 15 |" in text  # pairs of six corruptions
    assert "| from 0.1 | 6 | gaussian_noise, shot_noise," in text  # .3 of .9, each
    assert "| left out | members |" in text
    assert "| 0 | 6 |" in text  # pairs of the four from scratch
    # One seed is not finished, and scratch networks lie in two files.
    records = module("network_records").Records
    for name, file, kept in (("short", tuned[0], NAMES[:4]), ("a", scratch, NAMES[:2]), ("b", scratch, NAMES[2:4])):
        part = records.read(file)
        part.correct = {key: part.correct[key] for key in ("standard", *kept)}
        part.write(tmp_path / f"{name}.npz")
    files = [tmp_path / "out2", tmp_path / "short.npz", tuned[1], "--scratch", tmp_path / "a.npz", tmp_path / "b.npz"]
    monkeypatch.setattr(sys, "argv", ["overlap_all_tables.py", *map(str, files), "--resamples", "3"])
    module("overlap_all_tables").main()
    text = capsys.readouterr().out
    assert "left out, as not every seed has a network for them: noc:border, syn2nat:invert" in text
    assert "4 corruptions, 2 seeds; scores undefined: none" in text
    assert "| 0 | 6 |" in text
    found = module("overlap_all_tables").by_seed(tuned)
    del found[1].correct["standard"]
    with pytest.raises(InputError, match="seed 1: the standard network is missing"):
        module("overlap_all_tables").complete(found)


def test_correlations_of_made_up_networks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = module("mscr_predicts_mce")
    group = [
        network
        for seed in (0, 1)
        for network in script.networks(module("network_records").Records.read(made_up(tmp_path, "tuned", seed)))
    ]
    assert len(group) == 14
    assert sum(network.plain for network in group) == 2
    first = group[0]
    assert first.mscr["L∞, ε_min of the copy"] == pytest.approx((0.3 - first.clean) / first.clean)
    script.summary([group], 50)
    script.ranges([group])
    script.by_corruption([group], 50)
    text = capsys.readouterr().out
    for title, count in {
        "fine-tuned on one corruption": "14 of 7",
        "… seed 1": "7 of 7",
        "… on none of the fifteen": "6 of 3",  # standard, noc:border, syn2nat:invert
        "… on nothing called noise": "10 of 5",
    }.items():
        assert f"| {title} | {count} kinds | -" in text
    assert "| corruption | fine-tuned on one corruption |" in text
    clean = [100 * network.clean for network in group]
    row = f"| fine-tuned on one corruption | {(clean[0] + clean[7]) / 2:.2f} | {min(clean):.1f} … {max(clean):.1f} | "
    assert row in text
    script.draw([group], tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    errors = script.relative_errors(group)
    assert np.mean([errors["fog"][0], errors["fog"][7]]) == pytest.approx(100)  # the standard networks themselves
    script.table(group, 50)
    text = capsys.readouterr().out
    assert "fine-tuned on one corruption: 14 networks of 7 kinds of training" in text
    scores = np.array([network.mscr["L∞, ε_min of the copy"] for network in group])
    mean = np.mean([errors[name] for name in script.FIFTEEN], axis=0)
    assert script.pearson(scores, mean) < -0.8  # made so
    found = script.with_interval(script.spearman, (scores, mean), [network.trained_on for network in group], 100)
    assert found.low <= found.value <= found.high < 0
    # What is left of both after a fit on themselves is nothing, and does not correlate.
    assert script.partial(scores, mean, np.zeros(14)) == script.pearson(scores, mean)
    with pytest.raises(InputError, match="expected one to compare with"):
        script.relative_errors([network for network in group if not network.plain])


def test_correlations_by_hand() -> None:
    script = module("mscr_predicts_mce")
    values: Any = np.array([1.0, 2.0, 3.0, 10.0])
    assert script.pearson(values, -2 * values) == pytest.approx(-1)
    assert script.spearman(values, values**3) == pytest.approx(1)
    assert np.isnan(script.pearson(values, np.ones(4)))
