"""Some of the classes of labelled images."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from blemish.cli.main import app
from blemish.core.errors import InputError, Notice
from blemish.data.classes import imagenet_wnids
from blemish.data.labels import fit_labels
from blemish.data.open import open_source
from blemish.data.source import Source
from blemish.data.subsets import chosen_classes, only_classes
from blemish.evaluation.runs import find_runs


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Two pictures of each of twenty-one of ImageNet's classes, of which the first and every tenth are told."""
    for number, wnid in enumerate(imagenet_wnids()[:21]):
        (tmp_path / "val" / wnid).mkdir(parents=True)
        for i in range(2):
            Image.new("RGB", (8, 8), (number, i, 0)).save(tmp_path / "val" / wnid / f"{i}.png")
    return tmp_path / "val"


def numbers(source: Source) -> set[int]:
    """Which class folders the pictures come from, as their colours tell."""
    return {int(np.asarray(source.read(i))[0, 0, 0]) for i in range(len(source))}


def test_imagenet_100_is_every_tenth_class_from_the_first() -> None:
    """NOC paper, section 4: every tenth ImageNet class by WordNet id; so 0, 10, …, 990 of the 1,000."""
    wnids = imagenet_wnids()
    labels = np.arange(1000)
    source = Source(
        "all", [str(i) for i in labels], labels, labels, read=lambda _: Image.new("RGB", (8, 8)), classes=wnids
    )
    chosen = chosen_classes(source, "every:10")
    assert len(chosen) == 100
    assert chosen == tuple(sorted(wnids)[::10])
    assert chosen[:2] == ("n01440764", wnids[10])


def test_every_tenth_folder(folders: Path) -> None:
    source = open_source(folders)
    part = only_classes(source, chosen_classes(source, "every:10"), renumber=True)
    assert numbers(part) == {0, 10, 20}
    assert part.classes == tuple(imagenet_wnids()[i] for i in (0, 10, 20))
    assert sorted(set(part.labels.tolist())) == [0, 1, 2]
    assert part.name == "val (3 of 21 classes)"
    # A model of ImageNet's 1,000 classes is asked for their own numbers; one of three classes for three.
    with pytest.warns(Notice, match="labels are ImageNet's class indices"):
        assert sorted(set(fit_labels(part, 1000, model="net").labels.tolist())) == [0, 10, 20]
    assert fit_labels(part, 3, model="net").labels.tolist() == part.labels.tolist()
    again = pickle.loads(pickle.dumps(part))
    assert (again.labels.tolist(), numbers(again)) == (part.labels.tolist(), numbers(part))


def test_a_list_and_a_file(folders: Path, tmp_path: Path) -> None:
    source, wnids = open_source(folders), imagenet_wnids()
    assert chosen_classes(source, f"{wnids[7]}, {wnids[2]}") == (wnids[2], wnids[7])
    (tmp_path / "list.txt").write_text(f"{wnids[7]}\n\n{wnids[2]}\n")
    assert chosen_classes(source, str(tmp_path / "list.txt")) == (wnids[2], wnids[7])


def test_labels_that_were_given_keep_their_meaning(tmp_path: Path) -> None:
    labels = np.arange(12) % 6
    np.savez(tmp_path / "a.npz", images=np.zeros((12, 8, 8, 3), np.uint8), labels=labels)
    source = open_source(tmp_path / "a.npz")
    part = only_classes(source, chosen_classes(source, "every:4"), renumber=False)
    assert sorted(set(part.labels.tolist())) == [0, 4]
    assert sorted(set(only_classes(source, ("0", "4"), renumber=True).labels.tolist())) == [0, 1]


def test_what_is_refused(folders: Path) -> None:
    source = open_source(folders)
    for text, said in (
        ("every:0", "expected every:N with N of 1 or more"),
        ("every:ten", "no class 'every:ten'"),
        (" , ", "none named; expected every:N"),
        ("n01440765", "did you mean n01440764"),
    ):
        with pytest.raises(InputError, match=said):
            chosen_classes(source, text)
    with pytest.raises(InputError, match="no class 'cat'; expected the classes that were chosen"):
        only_classes(source, ["cat"], renumber=True)


def test_a_run_on_some_classes(tmp_path: Path) -> None:
    """The demo's net on five of its ten digits: the labels that it knows, of half of the images."""
    given = ["run", "digits-c", "-m", "demo:plain", "-d", "demo:digits", "--only", "fog@1", "--limit", "40", "-o"]
    result = CliRunner().invoke(app, [*given, str(tmp_path / "some"), "--classes", "every:2"])
    assert result.exit_code == 0, result.output
    (run,) = find_runs([tmp_path / "some"])
    records = run.records(run.conditions[0])
    assert set(records.labels.tolist()) == {0, 2, 4, 6, 8}
    assert records.correct.mean() > 0.5
    assert "5 of 10 classes" in run.info.data.name
