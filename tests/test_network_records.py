"""The scripts in perf/ that train many small networks: their records, and the CIFAR-10 experiment in miniature."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from blemish.core.errors import InputError
from blemish.studies.separation.noise import Noise
from perf_scripts import module

ROOT = Path(__file__).parents[1]
interval = re.compile(r" \[[^]]+\](?= \|)")


def protocol(**changes: Any) -> dict[str, Any]:
    return {"test_images": 11, "sets": {"noise": ["linf:0", "linf:0.1"]}, "seed": 0, **changes}


def filled(*names: str) -> Any:
    records = module("network_records").Records(protocol())
    for number, name in enumerate(names):
        right = torch.arange(22).reshape(2, 11) % (number + 2) == 0
        records.add(name, {"run": number}, noise=right)
    return records


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    found = module("network_records")
    filled("a", "b").write(tmp_path / "one.npz")
    filled("c").write(tmp_path / "two.npz")
    records = found.Records.read(tmp_path / "one.npz", tmp_path / "two.npz")
    assert records.facts == {"a": {"run": 0}, "b": {"run": 1}, "c": {"run": 0}}
    np.testing.assert_array_equal(records.right("b", "noise"), np.arange(22).reshape(2, 11) % 3 == 0)
    assert records.accuracies("a", "noise") == {"linf:0": 6 / 11, "linf:0.1": 5 / 11}


def test_records_of_other_settings_are_refused(tmp_path: Path) -> None:
    found = module("network_records")
    filled("a").write(tmp_path / "one.npz")
    missing = tmp_path / "none.npz"
    assert found.Records.continued(protocol(), [missing]).facts == {}
    assert list(found.Records.continued(protocol(), [missing, tmp_path / "one.npz"]).facts) == ["a"]
    with pytest.raises(InputError, match=r"one\.npz: networks of other settings \(seed was 0, now 1\)"):
        found.Records.continued(protocol(seed=1), [tmp_path / "one.npz"])
    with pytest.raises(InputError, match="no records"):
        found.Records.read()


def test_no_network_is_begun_that_would_end_too_late() -> None:
    deadline = module("network_records").Deadline(3600)
    assert deadline.allows_another()
    deadline.took(4000)
    assert not deadline.allows_another()
    assert not module("network_records").Deadline(-1).allows_another()


def test_noise_is_that_of_the_package() -> None:
    """The test images of the script are the points of `blemish mscr`, channels first."""
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (5, 3, 8, 8)).astype(np.uint8))
    test = {"linf": (0.0, 0.1), "l2": (1.5,)}
    sets = list(module("mscr_cifar").noisy_sets(images, test, run=2, seed=7))
    points = images.permute(0, 2, 3, 1).numpy().astype(np.float32) / np.float32(255)
    for found, (norm, eps) in zip(sets, [("linf", 0.0), ("linf", 0.1), ("l2", 1.5)], strict=True):
        expected = Noise(eps, norm=norm, seed=7, run=2).around(points)  # type: ignore[arg-type]
        np.testing.assert_allclose(found.permute(0, 2, 3, 1).numpy(), expected, atol=2e-7)


def test_the_experiment_has_every_radius_of_the_paper() -> None:
    script = module("mscr_cifar")
    train, test = script.radii(False)
    assert train["linf"] == (0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.105882, 0.15)  # Table 3
    assert set(train["linf"]) < set(test["linf"])
    assert set(train["l2"]) < set(test["l2"])
    # √(3074 / 3) = 32.01: the ratio of radii of equal mean square in 3,072 dimensions.
    np.testing.assert_allclose(train["l2"], sorted([0.3201, 0.6402, 2.2407, 3.3893, 1.342251]), atol=2e-4)
    names = [str(cell) for cell in script.cells(train, 3)]
    assert len(names) == len(set(names)) == 39
    assert [name.endswith("run0") for name in names] == [True] * 13 + [False] * 26


def test_tables_of_made_up_networks(capsys: pytest.CaptureFixture[str]) -> None:
    """Clean 60 %, 45 % at every radius: MSCR −25 %, whichever ε_min; bits chosen, so that this is exact."""
    script, tables, found = module("mscr_cifar"), module("mscr_cifar_tables"), module("network_records")
    train, test = script.radii(False)
    noise = [f"{norm}:{eps:g}" for norm, values in test.items() for eps in values]
    made = protocol(test_images=20, train_images=100, net="WRN-16-4", k=1, clip=False, data=["a", "b"], eps_train=train)
    made |= {"epsilon_min": {"copy": script.COPY}, "sets": {"noise": noise, "corrupted": ["fog@3"]}}
    records = found.Records(made)
    right = torch.zeros(len(noise), 20, dtype=torch.bool)
    right[:, :9] = True
    right[0, :12] = True
    scores = {"clean": 0.6, "mscr": -0.25, "mscr_l2": -0.25, "mean_corruption_error": 0.5}
    for cell in script.cells(train, 2):
        facts = {"norm": cell.norm, "eps": cell.eps, "run": cell.run, **scores}
        records.add(str(cell), facts, noise=right, corrupted=torch.ones(1, 20, dtype=torch.bool))
    for norm in ("linf", "l2"):
        matrix = tables.matrix_of(records, norm)
        assert matrix.accuracies.shape == (2, len(test[norm]) + (norm == "l2"), len(train[norm]) + (norm == "l2"))
        assert [value.value for value in matrix.mscr()] == pytest.approx([-0.25] * matrix.accuracies.shape[2])
        tables.accuracy_table(matrix)
        tables.mscr_table(matrix)
        tables.copy_note(matrix)
    tables.matched_table(records)
    text = capsys.readouterr().out
    assert "| 0.05 | 60.00 ± 0.00 | -25.00 ± 0.00 | -25.00 ± 0.00 | 90.43 | -7.35 |" in text  # Table 3 beside ours
    assert "2r is 0.200000 (51/255) in the copy and 0.211764 (54/255) in CIFAR-10" in text
    assert "| L2 2.241 (L∞ 0.07) | 2 | 60.00 ± 0.00 |" in text
    del records.facts["linf-0.05-run1"], records.correct["linf-0.05-run1"]
    assert len(tables.matrix_of(records, "linf").accuracies) == 1  # the second round is not complete


def test_the_experiment_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    for name, count in (("train", 100), ("test", 100)):
        labels = np.arange(count) % 10
        images = (rng.integers(0, 60, (count, 32, 32, 3)) + 19 * labels[:, None, None, None]).astype(np.uint8)
        np.savez(tmp_path / f"{name}.npz", images=images, labels=labels)
    arguments = [tmp_path / "train.npz", tmp_path / "test.npz", tmp_path / "out.npz", "--quick", "--drawn-frost"]
    arguments += ["--device", "cpu", "--limit", 100, "--runs", 1]

    def call(*more: object) -> str:
        monkeypatch.setattr(sys, "argv", ["mscr_cifar.py", *map(str, [*arguments, *more])])
        module("mscr_cifar").main()
        return capsys.readouterr().out

    assert "0 networks are there, 3 are missing" in call("--seconds", 0)
    found = module("network_records").Records
    assert "all networks are there" in call()
    whole = found.read(tmp_path / "out.npz")
    assert sorted(whole.facts) == ["l2-3.2-run0", "linf-0.1-run0", "none-run0"]
    assert whole.facts["none-run0"]["mean_corruption_error"] == pytest.approx(
        1 - whole.right("none-run0", "corrupted").mean()
    )
    for name in ("linf-0.1-run0", "l2-3.2-run0"):
        del whole.facts[name], whole.correct[name]
    whole.write(tmp_path / "earlier.npz")
    (tmp_path / "out.npz").unlink()
    assert "1 networks are there, 2 are missing" in call("--earlier", tmp_path / "earlier.npz")
    again = found.read(tmp_path / "out.npz")
    assert len(again.facts) == 3


def test_an_index_knows_accuracies_without_the_answers(tmp_path: Path) -> None:
    found = module("network_records")
    filled("a", "b").write_index(tmp_path / "index.json")
    records = found.Records.read(tmp_path / "index.json")
    assert records.accuracies("a", "noise") == {"linf:0": 6 / 11, "linf:0.1": 5 / 11}
    records.write_index(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "index.json").read_bytes()
    assert '"right":{"a":{"noise":[6,5]}' in (tmp_path / "index.json").read_text()  # short, and exact


def test_parts_of_a_run_have_one_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parts have lists of their own, which the next call of a part goes on from, or, told so, one for all."""
    found = module("network_records")
    for part, names in enumerate(("ab", "c")):
        filled(*names).write(tmp_path / f"run-part{part}.npz")
    arguments = ["network_records.py", str(tmp_path / "out"), *map(str, sorted(tmp_path.glob("*.npz")))]
    for more, said in ([], "run-part0: 2 networks\nrun-part1: 1 networks\n"), (["--whole"], "run: 3 networks\n"):
        monkeypatch.setattr(sys, "argv", [*arguments, *more])
        found.main()
        assert capsys.readouterr().out == said
    whole = found.Records.read(tmp_path / "out" / "run.json")
    assert whole.accuracies("c", "noise") == filled("c").accuracies("c", "noise")


NOISY, ALL = ("mscr_cifar.json",), ("mscr_cifar.json", "overlap_all-*.json")


def rows_of(script: str, files: Sequence[str], *more: str) -> list[str]:
    """The rows of tables that a script prints for records that are kept in perf/."""
    found = [str(path) for pattern in files for path in sorted((ROOT / "perf").glob(pattern))]
    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stdout(io.StringIO()) as said:
        patched.setattr(sys, "argv", [script, *found, *more])
        module(script).main()
    return [line for line in said.getvalue().splitlines() if line.startswith("| ")]


@pytest.mark.parametrize(
    ("script", "files"),
    [("mscr_cifar_tables", NOISY), pytest.param("mscr_predicts_mce", ALL, marks=pytest.mark.slow)],
)
def test_the_page_has_the_tables_of_the_committed_records(script: str, files: Sequence[str]) -> None:
    rows = rows_of(script, files)
    page = (ROOT / "docs/mscr-cifar.md").read_text(encoding="utf-8")
    assert len(rows) > 30
    assert [row for row in rows if row not in page] == []


def test_the_page_has_the_correlations_of_the_committed_records() -> None:
    """As above without intervals, which take long; and the numbers between the tables are from the tables."""
    page = (ROOT / "docs/mscr-cifar.md").read_text(encoding="utf-8")
    known = {interval.sub("", line) for line in page.splitlines()}
    rows = [interval.sub("", row) for row in rows_of("mscr_predicts_mce", ALL, "--resamples", "2")]
    assert len(rows) == 1 + 8 + 1 + 3 + 1 + 15 + 2 * (1 + 18)  # summary, ranges, by corruption, two kinds by radius
    assert [row for row in rows if row not in known] == []
    assert "| fine-tuned on one corruption | 387 of 129 kinds | -0.58 | -0.13 | -0.95 |" in rows
    said = re.findall(r"[+−]\.\d\d", page.partition("## Does MSCR predict mCE?")[2])
    assert len(said) > 5
    values = {value for row in rows for value in re.findall(r"[+-]0\.\d\d", row)}
    assert {text.replace("−", "-").replace(".", "0.") for text in said} - values == set()
