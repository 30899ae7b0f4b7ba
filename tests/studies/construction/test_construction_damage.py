"""Damaged files of a training: unfinished work starts again and says so, finished work is never lost unseen."""

from __future__ import annotations

import errno
import io
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from blemish.core.errors import InputError, StorageError
from blemish.core.states import DamagedFileError, read_state
from blemish.studies.overlap.harness import Plan, Trained, train_all
from blemish.studies.overlap.measure import measure_all
from blemish.studies.overlap.training import Schedule

CPU = torch.device("cpu")
PLAN = Plan(("gaussian_noise", "fog", "contrast"), "small_net", 3, Schedule(epochs=3, batch=16, rate=0.05))
UNFINISHED = "models/unfinished-gaussian_noise-2.pt"


def flipped(content: bytes) -> bytes:
    """One bit in the numbers of a tensor, which torch.load does not notice."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        largest = archive.read(max(archive.infolist(), key=lambda entry: entry.file_size))
    place = content.index(largest) + len(largest) // 2
    return content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :]


def other(_: bytes) -> bytes:
    """A sound file of something else."""
    buffer = io.BytesIO()
    torch.save({"names": ["gaussian_noise", "fog"]}, buffer)
    return buffer.getvalue()


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[: len(content) // 2],
    "its last byte missing": lambda content: content[:-1],
    "empty": lambda _: b"",
    "garbage": lambda content: bytes(range(256)) * (len(content) // 256),
    "zeros": lambda content: bytes(len(content)),
    "a bit flipped": flipped,
    "of something else": other,
}


def pictures() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    return torch.randint(0, 256, (32, 3, 16, 16), dtype=torch.uint8, generator=generator), torch.arange(32) % 3


def train(folder: Path) -> tuple[list[Trained], list[tuple[str, int]]]:
    heard: list[tuple[str, int]] = []
    found = train_all(PLAN, *pictures(), folder, device=CPU, together=2, report=lambda *said: heard.append(said[:2]))
    return found, heard


def weights(trained: list[Trained]) -> list[dict[str, Tensor]]:
    return [torch.load(model.weights, weights_only=True)["weights"] for model in trained]


def same(ones: list[dict[str, Tensor]], others: list[dict[str, Tensor]]) -> bool:
    return all(
        torch.equal(one[key], other[key]) for one, other in zip(ones, others, strict=True) for key in one | other
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage") / "whole"
    train(folder)
    return folder


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that was stopped in the second epoch of its first pair; the standard network is finished."""
    folder = tmp_path_factory.mktemp("damage") / "cut"

    def stop(name: str, done: int, *_: object) -> None:
        if name == "2 networks" and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_all(PLAN, *pictures(), folder, device=CPU, together=2, report=stop)
    assert (folder / UNFINISHED).is_file()
    return folder


class TestUnfinished:
    @pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
    def test_starts_again_and_says_so(
        self, whole: Path, cut: Path, tmp_path: Path, damage: Callable[[bytes], bytes]
    ) -> None:
        folder = tmp_path / "cut"
        shutil.copytree(cut, folder)
        path = folder / UNFINISHED
        path.write_bytes(damage(path.read_bytes()))
        standard = (folder / "models" / "standard.pt").read_bytes()
        with pytest.warns(
            RuntimeWarning, match=r"unfinished-gaussian_noise-2\.pt: damaged \(.+\); it is set aside"
        ) as said:
            found, heard = train(folder)
        assert len(said) == 1
        assert heard == [*(("2 networks", epoch) for epoch in (1, 2, 3)), *(("contrast", epoch) for epoch in (1, 2, 3))]
        assert (folder / "models" / "standard.pt").read_bytes() == standard
        assert same(weights(found), weights(train(whole)[0]))
        assert [path.suffix for path in folder.rglob("unfinished-*")] == [".damaged"]

    def test_of_the_standard_network(self, whole: Path, cut: Path, tmp_path: Path) -> None:
        folder = tmp_path / "cut"
        (folder / "models").mkdir(parents=True)
        shutil.copy(cut / "training.json", folder)
        (folder / "models" / "unfinished-standard-1.pt").write_bytes(b"")
        with pytest.warns(RuntimeWarning, match=r"unfinished-standard-1\.pt: damaged") as said:
            found, _ = train(folder)
        assert len(said) == 1
        assert same(weights(found), weights(train(whole)[0]))

    def test_sound_ones_go_on_in_silence(self, cut: Path, tmp_path: Path) -> None:
        shutil.copytree(cut, tmp_path / "cut")
        assert train(tmp_path / "cut")[1][:2] == [("2 networks", 2), ("2 networks", 3)]


class TestLeftBehind:
    """By a run that was killed after it had written weights, and before it removed the state they came from."""

    def test_is_removed_when_its_networks_are_finished(self, whole: Path, cut: Path, tmp_path: Path) -> None:
        shutil.copytree(whole, tmp_path / "whole")
        shutil.copy(cut / UNFINISHED, tmp_path / "whole" / UNFINISHED)
        assert train(tmp_path / "whole")[1] == []
        assert not [*tmp_path.rglob("unfinished-*")]

    def test_is_used_when_one_of_its_networks_is_missing(self, whole: Path, cut: Path, tmp_path: Path) -> None:
        shutil.copytree(cut, tmp_path / "cut")
        shutil.copy(whole / "models" / "gaussian_noise.pt", tmp_path / "cut" / "models")
        found, heard = train(tmp_path / "cut")
        assert heard[:2] == [("2 networks", 2), ("2 networks", 3)]
        assert same(weights(found), weights(train(whole)[0]))
        assert not [*tmp_path.rglob("unfinished-*")]

    def test_is_kept_for_networks_that_may_still_be_asked_for(self, cut: Path, tmp_path: Path) -> None:
        shutil.copytree(cut, tmp_path / "cut")
        plan = replace(PLAN, corruptions=("contrast",))
        train_all(plan, *pictures(), tmp_path / "cut", device=CPU)
        assert (tmp_path / "cut" / UNFINISHED).is_file()


def test_a_full_disk_ends_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first state that cannot be kept, not when everything is trained."""
    heard: list[tuple[str, int]] = []
    folder = tmp_path / "out"

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def report(name: str, done: int, *_: object) -> None:
        heard.append((name, done))
        monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(StorageError, match=r"cannot write .*unfinished-standard-1\.pt: No space left on device"):
        train_all(PLAN, *pictures(), folder, device=CPU, together=1, report=report)
    assert heard == [("standard", 1)]
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {"training.json"}


class TestFinished:
    @pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
    def test_is_refused_by_name(self, whole: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
        folder = tmp_path / "whole"
        shutil.copytree(whole, folder)
        path = folder / "models" / "fog.pt"
        content = damage(path.read_bytes())
        path.write_bytes(content)
        with pytest.raises(
            StorageError, match=r"fog\.pt: damaged \(.+\); remove it, and this network is trained again"
        ):
            train(folder)
        assert path.read_bytes() == content
        path.unlink()
        assert train(folder)[1] == [("fog", epoch) for epoch in (1, 2, 3)]

    def test_is_not_measured(self, tmp_path: Path) -> None:
        path = tmp_path / "fog.pt"
        path.write_bytes(other(b""))
        with pytest.raises(StorageError, match=r"fog\.pt: damaged \(without weights, seconds\)"):
            measure_all(PLAN, [Trained("fog", path, 1.0)], None, tmp_path, device=CPU)  # type: ignore[arg-type]

    def test_from_before_there_were_seals(self, whole: Path, tmp_path: Path) -> None:
        shutil.copytree(whole, tmp_path / "whole")
        path = tmp_path / "whole" / "models" / "fog.pt"
        content = torch.load(path, weights_only=True)
        changed = {**content, "seconds": 1e9}
        torch.save(changed, path)
        with pytest.raises(
            StorageError, match=r"fog\.pt: damaged \(changed since it was written: its seal does not fit"
        ):
            train(tmp_path / "whole")
        del changed["seal"]
        torch.save(changed, path)
        assert {model.name: model.seconds for model in train(tmp_path / "whole")[0]}["fog"] == 1e9

    def test_is_no_start_for_others(self, tmp_path: Path) -> None:
        plan = Plan(("fog",), "small_net", 3, Schedule(epochs=1, batch=16), fine_tune=Schedule(epochs=1, batch=16))
        folder = tmp_path / "tuned"
        standard, fog = train_all(plan, *pictures(), folder, device=CPU)
        fog.weights.unlink()
        standard.weights.write_bytes(flipped(standard.weights.read_bytes()))
        with pytest.raises(StorageError, match=r"standard\.pt: damaged \(the checksum of .+ does not fit\); remove it"):
            train_all(plan, *pictures(), folder, device=CPU)
        assert not fog.weights.exists()


def test_a_file_that_cannot_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.pt: no such file") as refused:
        read_state(tmp_path / "none.pt", ())
    assert not isinstance(refused.value, DamagedFileError)
