"""Parquet, Hugging Face, TSV and WebDataset: pictures are replaced, all else stays, runs are continued."""

from __future__ import annotations

import base64
import csv
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from PIL import Image

import blemish
from blemish.core.errors import InputError
from blemish.core.rng import hash_id
from blemish.data.open import open_source
from blemish.data.pictures import encode_picture
from blemish.export import Outcome, corrupt_container, find_container, make_recipe
from pictures import pictures

SIZES = [(40, 56), (64, 24), (30, 30)]


def image(number: int) -> Image.Image:
    return Image.fromarray(pictures(1, 3, *SIZES[number % 3], first=number)[0].permute(1, 2, 0).numpy())


def stored(number: int) -> bytes:
    return encode_picture(image(number), "png")


def levels(content: bytes) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(content)))


def corrupted(number: int, severity: float, number_id: int, name: str = "fog") -> NDArray[np.uint8]:
    return np.asarray(blemish.corrupt(image(number), name, severity, ids=number_id))


def run(path: Path, out: Path, *, columns: list[str] | None = None, **settings: Any) -> Outcome:
    container = find_container(path, columns)
    assert container is not None
    quick = settings.pop("quick", False)
    prune = settings.pop("prune", False)
    recipe = make_recipe(["fog"], settings.pop("severities", [1, 3]), **{"file_format": "png", **settings})
    return corrupt_container(container, out, recipe, quick=quick, prune=prune)


def table(first: int = 0, count: int = 5) -> pa.Table:
    rows = [{"bytes": stored(first + i), "path": f"{i}.jpg"} for i in range(count)]
    values = {"question": [f"q{i}" for i in range(count)], "image": rows, "label": [i % 2 for i in range(count)]}
    return pa.table(values).replace_schema_metadata({"mine": "kept"})


def parquet(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for number in range(2):
        path = folder / f"test-{number:05}-of-00002.parquet"
        pq.write_table(table(5 * number), path, row_group_size=2, compression="zstd")
    return folder


class TestParquet:
    def test_columns_metadata_and_row_groups_stay(self, tmp_path: Path) -> None:
        source = parquet(tmp_path / "in")
        outcome = run(source, tmp_path / "out")
        assert (outcome.written, outcome.failures) == (20, [])
        assert sum(outcome.presets.values()) == 10
        for number in range(2):
            name = f"test-{number:05}-of-00002.parquet"
            before, after = (pq.ParquetFile(folder / name) for folder in (source, tmp_path / "out" / "fog" / "3"))
            assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)
            assert after.num_row_groups == before.num_row_groups == 3
            assert after.read().drop(["image"]).equals(before.read().drop(["image"]))
            for row, value in enumerate(after.read().column("image").to_pylist()):
                assert value["path"] == f"{row}.png"
                place = 5 * number + row
                assert np.array_equal(levels(value["bytes"]), corrupted(place, 3, place))

    def test_they_are_what_a_model_is_shown_on_the_fly(self, tmp_path: Path) -> None:
        """The id of a row, and colour, are those of the source that is read to measure a model."""
        source = parquet(tmp_path / "in")
        run(source, tmp_path / "out")
        clean, copies = open_source(source), open_source(tmp_path / "out" / "fog" / "1")
        for row in range(len(clean)):
            expected = blemish.corrupt(clean.read(row), "fog", 1, ids=int(clean.ids[row]))
            assert np.array_equal(np.asarray(copies.read(row)), np.asarray(expected))

    def test_lists_columns_and_rows_without_pictures(self, tmp_path: Path) -> None:
        one = pa.binary()
        values = {
            "left": pa.array([stored(0), None], one),
            "right": pa.array([stored(1), stored(2)], one),
            "more": pa.array([[stored(3), stored(4)], []], pa.list_(one)),
        }
        path = tmp_path / "pairs.parquet"
        pq.write_table(pa.table(values), path)
        with pytest.raises(InputError, match=r"3 columns that may be the images .* --columns IMAGE"):
            run(path, tmp_path / "out")
        with pytest.raises(InputError, match="column 'middle' holds nothing; expected encoded pictures"):
            run(path, tmp_path / "out", columns=["middle"])
        assert run(path, tmp_path / "left", columns=["left"]).notes == ["pictures in right, more stay as they are"]
        outcome = run(path, tmp_path / "out", columns=["left", "right", "more"])
        assert (outcome.written, outcome.notes) == (4, [])
        made = pq.read_table(tmp_path / "out" / "fog" / "3" / "pairs.parquet").to_pydict()
        assert made["left"][1] is None
        assert made["more"][1] == []
        assert np.array_equal(levels(made["left"][0]), corrupted(0, 3, 0))
        assert np.array_equal(levels(made["right"][1]), corrupted(2, 3, hash_id("right 1")))
        assert np.array_equal(levels(made["more"][0][1]), corrupted(4, 3, hash_id("more[1] 0")))

    def test_a_file_with_a_bad_picture_is_reported_and_the_others_are_made(self, tmp_path: Path) -> None:
        source = parquet(tmp_path / "in")
        bad = table(5).to_pydict()
        bad["image"][3]["bytes"] = b"no picture"
        pq.write_table(pa.table(bad), source / "test-00001-of-00002.parquet")
        outcome = run(source, tmp_path / "out")
        assert outcome.written == 10
        [failure] = outcome.failures
        assert failure.name == "test-00001-of-00002.parquet"
        assert failure.reason.startswith("row 3 of ")
        assert [path.name for path in (tmp_path / "out" / "fog" / "1").iterdir()] == ["test-00000-of-00002.parquet"]


def test_what_stays_beside_pixels_that_move_is_told_of(tmp_path: Path) -> None:
    container = find_container(parquet(tmp_path / "in"))
    assert container is not None
    (note,) = corrupt_container(container, tmp_path / "a", make_recipe(["fog", "noc:shear"], [3])).notes
    assert note.startswith("pixels are moved, by a map, by noc:shear: all other columns and files are those of the")
    assert corrupt_container(container, tmp_path / "b", make_recipe(["fog"], [3])).notes == []


class TestContinued:
    def test_what_is_missing_damaged_or_of_a_changed_source_is_made_again(self, tmp_path: Path) -> None:
        source, out = parquet(tmp_path / "in"), tmp_path / "out"
        run(source, out, severities=[1])
        assert (run(source, out).written, run(source, out).skipped) == (10, 20)
        name = "test-00000-of-00002.parquet"
        good = (out / "fog" / "1" / name).read_bytes()
        (out / "fog" / "1" / name).write_bytes(good[:-1] + b"x")
        (out / "fog" / "3" / name).unlink()
        assert run(source, out, quick=True).written == 5  # of the size that is known
        outcome = run(source, out)
        assert (outcome.written, outcome.again, outcome.skipped) == (5, 5, 15)
        assert (out / "fog" / "1" / name).read_bytes() == good
        pq.write_table(table(20), source / name)
        with pytest.raises(InputError, match=f"{name}: changed after its copies in fog/3/{name} were made"):
            run(source, out, severities=[1])
        outcome = run(source, out)
        assert (outcome.written, outcome.again) == (10, 10)

    def test_other_settings_are_refused_and_gone_files_pruned(self, tmp_path: Path) -> None:
        source, out = parquet(tmp_path / "in"), tmp_path / "out"
        run(source, out)
        with pytest.raises(InputError, match='format was "png", now "jpeg:95"'):
            run(source, out, file_format="jpeg:95")
        (source / "test-00000-of-00002.parquet").unlink()
        (source / "test-00001-of-00002.parquet").rename(source / "only.parquet")
        with pytest.raises(InputError, match="copies of 2 pictures that are not in the source any more"):
            run(source, out)
        assert run(source, out, prune=True).removed == 4

    def test_the_source_is_never_overwritten(self, tmp_path: Path) -> None:
        source = parquet(tmp_path / "out" / "fog" / "1")
        with pytest.raises(InputError, match="is a source and would be overwritten"):
            run(source, tmp_path / "out")


def shards(folder: Path, *, same_keys: bool = False) -> Path:
    folder.mkdir(parents=True)
    for number in range(2):
        with tarfile.open(folder / f"s-{number}.tar", "w") as archive:
            for i in range(2):
                key = f"a/{i}" if same_keys else f"a/{number}{i}"
                fields = {"jpg": stored(2 * number + i), "cls": b"7", "seg.png": stored(50)}
                for field, content in fields.items():
                    entry = tarfile.TarInfo(f"{key}.{field}")
                    entry.size, entry.mtime, entry.mode = len(content), 99, 0o640
                    archive.addfile(entry, io.BytesIO(content))
    return folder


@pytest.mark.parametrize("same_keys", [False, True])
def test_shards(same_keys: bool, tmp_path: Path) -> None:
    """Members in their order, with labels and maps as they were; pictures as a model is shown them on the fly."""
    source = shards(tmp_path / "in", same_keys=same_keys)
    outcome = run(source, tmp_path / "out")
    assert (outcome.written, outcome.notes) == (8, ["pictures in seg.png stay as they are"])
    for number in range(2):
        name = f"s-{number}.tar"
        with tarfile.open(source / name) as before, tarfile.open(tmp_path / "out" / "fog" / "3" / name) as after:
            names = [name.replace("jpg", "png") if name.endswith("jpg") else name for name in before.getnames()]
            assert after.getnames() == names
            for old, new in zip(before.getmembers(), after.getmembers(), strict=True):
                assert (new.mtime, new.mode) == (99, 0o640)
                if not old.name.endswith(".jpg"):
                    assert after.extractfile(new).read() == before.extractfile(old).read()
    clean, copies = open_source(source), open_source(tmp_path / "out" / "fog" / "3")
    assert np.array_equal(clean.labels, copies.labels)
    for row in range(4):
        expected = blemish.corrupt(clean.read(row), "fog", 3, ids=int(clean.ids[row]))
        assert np.array_equal(np.asarray(copies.read(row)), np.asarray(expected))


def tsv(path: Path, rows: list[list[str]], header: str = "index\timage\tquestion\tA") -> Path:
    with path.open("w", newline="") as stream:
        stream.write(f"{header}\n")
        csv.writer(stream, delimiter="\t", lineterminator="\n").writerows(rows)
    return path


def text(number: int) -> str:
    return base64.b64encode(stored(number)).decode()


def read_tsv(path: Path) -> list[list[str]]:
    limit = csv.field_size_limit(2**30)
    try:
        with path.open(newline="") as stream:
            return list(csv.reader(stream, delimiter="\t"))
    finally:
        csv.field_size_limit(limit)


class TestTsv:
    def test_the_layout_of_vlmevalkit(self, tmp_path: Path) -> None:
        """A picture, a reference to another row's, a list of pictures, and none: as VLMEvalKit's loader reads them."""
        rows = [
            ["10", text(0), 'a "quoted"\nquestion\twith a tab', "yes"],
            ["11", "10", "the same picture", "no"],
            ["12", repr([text(1), text(2)]), "two pictures", "é"],
            ["13", "", "no picture", ""],
        ]
        source = tsv(tmp_path / "Toy.tsv", rows)
        assert run(source, tmp_path / "out").written == 8
        assert sorted(path.name for path in (tmp_path / "out").glob("*.tsv")) == ["Toy_fog_1.tsv", "Toy_fog_3.tsv"]
        header, *made = read_tsv(tmp_path / "out" / "Toy_fog_3.tsv")
        assert header == ["index", "image", "question", "A"]
        assert [[row[0], *row[2:]] for row in made] == [[row[0], *row[2:]] for row in rows]
        assert (made[1][1], made[3][1]) == ("10", "")
        assert np.array_equal(levels(base64.b64decode(made[0][1])), corrupted(0, 3, hash_id("10")))
        first, second = eval(made[2][1], {})  # as the toolkit does
        assert np.array_equal(levels(base64.b64decode(first)), corrupted(1, 3, hash_id("12")))
        assert np.array_equal(levels(base64.b64decode(second)), corrupted(2, 3, hash_id("12/1")))

    def test_a_subset_has_the_same_pixels(self, tmp_path: Path) -> None:
        """Ids are by the index, not by the place."""
        whole = tsv(tmp_path / "all.tsv", [[str(i), text(i), "q", "a"] for i in range(4)])
        some = tsv(tmp_path / "some.tsv", [["2", text(2), "q", "a"]])
        run(whole, tmp_path / "whole")
        run(some, tmp_path / "part")
        rows = read_tsv(tmp_path / "whole" / "all_fog_3.tsv"), read_tsv(tmp_path / "part" / "some_fog_3.tsv")
        assert rows[0][3] == rows[1][1]

    def test_a_lone_carriage_return_ends_no_row(self, tmp_path: Path) -> None:
        row = ["1", text(0), "one\rtwo", "a"]
        with (tmp_path / "Toy.tsv").open("w", newline="") as stream:
            csv.writer(stream, delimiter="\t", quoting=csv.QUOTE_ALL).writerows(
                [["index", "image", "question", "A"], row]
            )
        run(tmp_path / "Toy.tsv", tmp_path / "out")
        _, made = read_tsv(tmp_path / "out" / "Toy_fog_3.tsv")
        assert [made[0], *made[2:]] == ["1", "one\rtwo", "a"]

    def test_names_without_colons(self, tmp_path: Path) -> None:
        source = tsv(tmp_path / "Toy.tsv", [["1", text(0), "q", "a"]])
        container = find_container(source)
        assert container is not None
        corrupt_container(container, tmp_path / "out", make_recipe(["noc:shear"], [2.5]))
        assert (tmp_path / "out" / "Toy_noc-shear_2.5.tsv").is_file()

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([["1", "x" * 80, "q", "a"]], "row 0 of .*: not a"),
            ([["1", "!" * 80, "q", "a"]], "not a picture in base64"),
            ([["1", "[1, 2]", "q", "a"]], "a list of something else"),
            ([["1", text(0), "q"]], "row 0 has 3 cells; expected 4"),
        ],
    )
    def test_bad_rows(self, rows: list[list[str]], message: str, tmp_path: Path) -> None:
        outcome = run(tsv(tmp_path / "bad.tsv", rows), tmp_path / "out")
        [failure] = outcome.failures
        with pytest.raises(InputError, match=message):
            raise InputError(failure.reason)
        assert list((tmp_path / "out").glob("*.tsv")) == []

    def test_without_pictures(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="columns index, picture; expected one called image"):
            run(tsv(tmp_path / "bad.tsv", [["1", "a"]], "index\tpicture"), tmp_path / "out")


@pytest.mark.slow
def test_a_hugging_face_dataset_is_read_back_with_its_features(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    names = datasets.ClassLabel(names=["cat", "dog"])
    features = datasets.Features({"image": datasets.Image(), "label": names, "text": datasets.Value("string")})
    rows = {"image": [image(i) for i in range(5)], "label": [0, 1, 0, 1, 1], "text": list("abcde")}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(tmp_path / "saved")
    assert run(tmp_path / "saved", tmp_path / "out").written == 10
    [path] = (tmp_path / "out" / "fog" / "3").iterdir()
    again = datasets.Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))
    assert again.features == features
    assert again["text"] == rows["text"]
    assert [np.array_equal(np.asarray(again[i]["image"]), corrupted(i, 3, i)) for i in range(5)] == [True] * 5
    assert run(tmp_path / "saved", tmp_path / "out").skipped == 10


@pytest.mark.slow
def test_workers_change_nothing(tmp_path: Path) -> None:
    source = parquet(tmp_path / "in")
    container = find_container(source)
    assert container is not None
    recipe = make_recipe(["fog", "gaussian_noise"], [1, 3])
    for jobs in (1, 2):
        corrupt_container(container, tmp_path / str(jobs), recipe, jobs=jobs)
    names = sorted(path.relative_to(tmp_path / "1") for path in (tmp_path / "1").rglob("*") if path.is_file())
    assert len(names) == 10
    assert all((tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes() for name in names)
