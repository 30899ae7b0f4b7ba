"""Datasets of Hugging Face's library, with the library itself; nothing is downloaded."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from blemish.core.errors import InputError, Notice
from blemish.data.cache import load
from blemish.data.labels import fit_labels
from blemish.data.open import open_source
from blemish.data.source import Source
from command_line import command
from foreign import foreign
from image_tables import encoded, image_table, write_table

pytestmark = pytest.mark.slow
datasets = foreign("datasets")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No hub, and a cache of the test's own."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf-cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()


def rows(count: int = 6, names: Any = ("cat", "dog")) -> Any:
    label = datasets.ClassLabel(names=list(names)) if names else datasets.Value("int64")
    features = datasets.Features({"image": datasets.Image(), "label": label})
    pictures = [{"bytes": encoded(level), "path": None} for level in range(count)]
    return datasets.Dataset.from_dict({"image": pictures, "label": [i % 2 for i in range(count)]}, features=features)


def levels(source: Source) -> list[int]:
    return [int(np.asarray(source.read(i))[0, 0, 0]) for i in range(len(source))]


class TestObjects:
    def test_a_dataset(self) -> None:
        source = open_source(rows())
        assert levels(source) == list(range(6))
        assert source.labels.tolist() == [0, 1] * 3
        assert source.classes == ("cat", "dog")
        assert source.names == tuple("012345")
        assert fit_labels(source, 2, model="net").labels.tolist() == [0, 1] * 3
        with pytest.raises(InputError, match=r"2 classes \(cat, dog\), but model net has 1,000 outputs"):
            fit_labels(source, 1000, model="net")

    def test_wordnet_ids_and_a_mapping(self) -> None:
        source = open_source(rows(names=("n02102040", "n01440764")))
        with pytest.warns(Notice, match="2 classes named by WordNet ids"):
            assert fit_labels(source, 1000, model="net").labels.tolist() == [217, 0] * 3
        assert open_source(rows(), mapping={"cat": 8, "dog": 5}).labels.tolist() == [8, 5] * 3

    def test_parts_and_orders(self) -> None:
        chosen = open_source(rows().select([4, 1]))
        assert levels(chosen) == [4, 1]
        assert chosen.labels.tolist() == [0, 1]
        shuffled = rows().shuffle(seed=3)
        assert sorted(levels(open_source(shuffled))) == list(range(6))

    @pytest.mark.parametrize("form", ["torch", "numpy", None])
    def test_formats_change_nothing(self, form: str | None) -> None:
        assert load(open_source(rows().with_format(form))).fingerprint == load(open_source(rows())).fingerprint

    def test_a_transform_is_taken_as_it_comes(self) -> None:
        def flip(batch: dict[str, Any]) -> dict[str, Any]:
            return {**batch, "image": [Image.fromarray(255 - np.asarray(each)) for each in batch["image"]]}

        assert levels(open_source(rows().with_transform(flip))) == [255 - level for level in range(6)]

        def normal(batch: dict[str, Any]) -> dict[str, Any]:
            return {**batch, "image": [torch.full((3, 8, 8), -1.0) for _ in batch["image"]]}

        with pytest.raises(InputError, match=r"row 0 of .* has values from -1 to -1; .*leave normalising to the model"):
            open_source(rows().with_transform(normal))

        def random(batch: dict[str, Any]) -> dict[str, Any]:
            noise = np.random.default_rng().integers(0, 255, (8, 8, 3), dtype=np.uint8)
            return {**batch, "image": [Image.fromarray(noise) for _ in batch["image"]]}

        with pytest.raises(InputError, match="another one each time; expected a dataset without random transforms"):
            open_source(rows().with_transform(random))

    def test_a_transform_that_changes_labels(self) -> None:
        def other(batch: dict[str, Any]) -> dict[str, Any]:
            return {**batch, "label": [1 - label for label in batch["label"]]}

        with pytest.raises(InputError, match=r"row 0 of .*: its transform makes the label 1 of 0; expected the labels"):
            open_source(rows().with_transform(other))

        def as_tensors(batch: dict[str, Any]) -> dict[str, Any]:
            return {**batch, "label": torch.tensor(batch["label"])}

        assert levels(open_source(rows().with_transform(as_tensors))) == list(range(6))
        assert levels(open_source(rows().with_transform(lambda batch: {"image": batch["image"]}))) == list(range(6))

    def test_numbers_without_names(self) -> None:
        source = open_source(rows(names=None))
        assert source.classes is None
        assert source.labelling == "given"

    def test_files_that_are_named_by_their_paths(self, tmp_path: Path) -> None:
        (tmp_path / "x.png").write_bytes(encoded(77))
        features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
        table = {"image": [str(tmp_path / "x.png")], "label": [0]}
        assert levels(open_source(datasets.Dataset.from_dict(table, features=features))) == [77]
        (tmp_path / "x.png").unlink()
        with pytest.raises(InputError, match=r"row 0 of .*x\.png: no such file"):
            open_source(datasets.Dataset.from_dict(table, features=features)).read(0)

    def test_a_damaged_picture_is_named(self) -> None:
        features = datasets.Features({"img": datasets.Image(), "label": datasets.Value("int64")})
        table = {"img": [{"bytes": encoded(1), "path": None}, {"bytes": b"nonsense", "path": None}], "label": [0, 1]}
        source = open_source(datasets.Dataset.from_dict(table, features=features))
        with pytest.raises(InputError, match=r"row 1 of .*: not a readable picture"):
            load(source)

    def test_splits_and_streams_are_refused(self) -> None:
        splits = datasets.DatasetDict({"train": rows(), "test": rows()})
        with pytest.raises(InputError, match=r"has the splits train, test; expected one, such as data\['train'\]"):
            open_source(splits)
        assert len(open_source(datasets.DatasetDict({"test": rows()}))) == 6
        with pytest.raises(InputError, match="a stream, of type IterableDataset"):
            open_source(rows().to_iterable_dataset())

    def test_two_kinds_of_labels(self) -> None:
        both = rows().add_column("fine", [5] * 6).cast_column("fine", datasets.ClassLabel(names=list("abcdef")))
        both = both.rename_column("label", "coarse")
        with pytest.raises(InputError, match=r"2 columns that may be the labels \(coarse, fine\)"):
            open_source(both)
        assert open_source(both, columns=("image", "fine")).labels.tolist() == [5] * 6

    def test_loaders(self) -> None:
        plain = load(open_source(rows()))
        loaded = load(open_source(DataLoader(rows().with_format("torch"), batch_size=4)))
        assert loaded.fingerprint == plain.fingerprint

    def test_processes_reopen_it(self) -> None:
        source = open_source(rows())
        again = pickle.loads(pickle.dumps(source.take([5, 2])))
        assert levels(again) == [5, 2]


class TestPlaces:
    def test_a_saved_folder_the_hub_and_parquet_are_the_same_rows(self, tmp_path: Path) -> None:
        """Names and ids are positions, so that records of one way of reading pair up with those of another."""
        whole = rows()
        whole.save_to_disk(str(tmp_path / "saved"))
        whole.to_parquet(str(tmp_path / "data" / "test-00000-of-00001.parquet"))
        ways = [whole, tmp_path / "saved", tmp_path / "data", *(f"hf:{tmp_path / name}" for name in ("saved", "data"))]
        ways.append(f"hf:{tmp_path / 'data'}:test")
        sources = [open_source(way) for way in ways]
        assert len({load(source).fingerprint for source in sources}) == 1
        assert {source.classes for source in sources} == {("cat", "dog")}
        assert {source.labelling for source in sources} == {"names"}

    def test_decoded_images_are_used_again(self, tmp_path: Path) -> None:
        rows().save_to_disk(str(tmp_path / "saved"))
        for _ in range(2):
            load(open_source(tmp_path / "saved"), folder=tmp_path / "cache", limit=0)
        assert len(list((tmp_path / "cache").iterdir())) == 1
        load(
            open_source(datasets.load_from_disk(str(tmp_path / "saved")).select([1, 0])),
            folder=tmp_path / "cache",
            limit=0,
        )
        assert len(list((tmp_path / "cache").iterdir())) == 2

    def test_saved_splits(self, tmp_path: Path) -> None:
        datasets.DatasetDict({"train": rows(), "test": rows(4)}).save_to_disk(str(tmp_path / "saved"))
        with pytest.raises(InputError, match="saved: has the splits train, test; expected one"):
            open_source(tmp_path / "saved")
        assert len(open_source(tmp_path / "saved" / "test")) == 4

    def test_splits_of_the_hub(self, tmp_path: Path) -> None:
        for split in ("train", "test"):
            write_table(tmp_path / "set" / f"{split}.parquet", image_table([1, 2], [0, 1], ["a", "b"]))
        with pytest.raises(InputError, match=r"has the splits train, test; expected one, such as hf:.*/set:train"):
            open_source(f"hf:{tmp_path / 'set'}")
        assert levels(open_source(f"hf:{tmp_path / 'set'}:test")) == [1, 2]
        assert levels(open_source(f"hf:{tmp_path / 'set'}:default:test[1:]")) == [2]
        with pytest.raises(InputError, match=r"hf:.*:nothing: cannot be opened \(Unknown split"):
            open_source(f"hf:{tmp_path / 'set'}:nothing")

    def test_a_name_that_cannot_be_had(self) -> None:
        with pytest.raises(InputError, match="hf:nobody/nothing:test: cannot be opened"):
            open_source("hf:nobody/nothing:test")
        with pytest.raises(InputError, match="hf:: expected hf:NAME"):
            open_source("hf:")

    def test_the_command_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The digits' network with pictures that are no digits, in this process, in two others, and in a report."""
        monkeypatch.chdir(tmp_path)
        names = [f"digit {number}" for number in range(10)]
        write_table(Path("set/test.parquet"), image_table(range(40), [i % 10 for i in range(40)], names))
        options = ("run", "digits-c", "-m", "demo:plain", "-o", "out", "--device", "cpu", "--only", "contrast@1")
        result = command(*options, "-d", "hf:set:test", "--anyway", "--limit", 20)
        assert result.exit_code == 0, result.output
        again = command(*options, "-d", "hf:set:test", "--anyway", "--limit", 40, "--jobs", 2)
        assert again.exit_code == 0, again.output
        assert command("report", "out", "-o", "page.html").exit_code == 0
        assert "digit 5" in Path("page.html").read_text(encoding="utf-8")
