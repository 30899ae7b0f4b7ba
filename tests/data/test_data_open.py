"""From a path to a source: what is taken for what, and what the errors say."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from blemish.core.errors import InputError
from blemish.data.open import open_source, open_stored


def picture(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path)
    return path


def shard(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "PNG")
    with tarfile.open(path, "w") as archive:
        for name, content in {"x.png": buffer.getvalue(), "x.cls": b"6"}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


class TestKinds:
    def test_class_folders(self, tmp_path: Path) -> None:
        picture(tmp_path / "cat" / "x.png")
        picture(tmp_path / "dog" / "x.png")
        assert open_source(str(tmp_path)).names == ("cat/x.png", "dog/x.png")
        assert open_source(tmp_path, mapping={"cat": 1, "dog": 0}).labels.tolist() == [1, 0]

    def test_tables(self, tmp_path: Path) -> None:
        picture(tmp_path / "x.png")
        (tmp_path / "labels.csv").write_text("file,class_index\nx.png,4\n")
        (tmp_path / "other.csv").write_text("file,class_index\nx.png,5\n")
        assert open_source(tmp_path).labels.tolist() == [4]
        assert open_source(tmp_path / "other.csv").labels.tolist() == [5]
        assert open_source(tmp_path, labels=tmp_path / "other.csv").labels.tolist() == [5]

    def test_arrays(self, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", np.zeros((2, 8, 8, 3), np.uint8))
        np.save(tmp_path / "y.npy", np.array([1, 0]))
        assert open_source(tmp_path / "x.npy", labels=tmp_path / "y.npy").labels.tolist() == [1, 0]

    def test_shards(self, tmp_path: Path) -> None:
        shard(tmp_path / "s-0.tar")
        for path in (tmp_path, tmp_path / "s-0.tar", tmp_path / "s-{0..0}.tar"):
            assert open_source(str(path)).labels.tolist() == [6]

    def test_datasets_and_sources(self) -> None:
        source = open_source(TensorDataset(torch.zeros(2, 3, 8, 8), torch.tensor([0, 1])))
        assert source.labels.tolist() == [0, 1]
        assert open_source(source) is source


class TestErrors:
    @pytest.mark.parametrize("name", ["gone", "gone.npz", "gone.jpg"])
    def test_missing(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(
            InputError, match=f"{name}: no such file or folder; expected a folder with a folder per class"
        ):
            open_source(tmp_path / name)

    def test_other_files(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="a single picture, without a label"):
            open_source(picture(tmp_path / "x.png"))
        (tmp_path / "x.pkl").touch()
        with pytest.raises(InputError, match="a file of an unknown kind; expected a folder"):
            open_source(tmp_path / "x.pkl")

    def test_folders_of_other_things(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="holds nothing that can be used"):
            open_source(tmp_path)
        picture(tmp_path / "x.png")
        with pytest.raises(InputError, match="holds 1 pictures without labels"):
            open_source(tmp_path)
        np.save(tmp_path / "fog.npy", np.zeros(3))
        with pytest.raises(InputError, match=r"a folder of array files; expected one of them, such as fog\.npy"):
            open_source(tmp_path)

    def test_corrupted_sets_are_not_clean_images(self, tmp_path: Path) -> None:
        picture(tmp_path / "tree" / "fog" / "1" / "cat" / "x.png")
        (tmp_path / "arrays").mkdir()
        np.save(tmp_path / "arrays" / "fog.npy", np.zeros((5, 8, 8, 3), np.uint8))
        np.save(tmp_path / "arrays" / "labels.npy", np.zeros(5, int))
        for name in ("tree", "arrays"):
            with pytest.raises(InputError, match="looks like a corrupted set"):
                open_source(tmp_path / name)
            assert open_stored(tmp_path / name).conditions()[0] == "fog@1"

    def test_settings_that_do_not_apply(self, tmp_path: Path) -> None:
        shard(tmp_path / "s.tar")
        np.save(tmp_path / "x.npy", np.zeros((2, 8, 8, 3), np.uint8))
        for name, settings in {"s.tar": {"labels": "y"}, "x.npy": {"mapping": "imagenet"}}.items():
            with pytest.raises(InputError, match=f"{next(iter(settings))} given for .*{name}"):
                open_source(tmp_path / name, **settings)
