"""Materialised arrays: layout, equality with the library call, resume and refusals; and recipes that are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.core.files import STAGING
from blemish.corruptions.transform import corrupt
from blemish.export import corrupt_arrays, make_recipe
from stored_sets import contents, noise

NAMES = ["gaussian_noise", "fog", "contrast"]


class TestArrays:
    def test_cifar_layout(self, tmp_path: Path) -> None:
        images, labels = noise(7, 16, 16, 3), np.arange(7) % 3
        np.savez(tmp_path / "test.npz", images=images, labels=labels)
        outcome = corrupt_arrays(tmp_path / "test.npz", tmp_path / "dst", make_recipe(NAMES, seed=4))
        assert outcome.written == 7 * 15
        assert outcome.presets == {"cifar": 7}
        assert set(contents(tmp_path / "dst")) == {
            "blemish.json",
            "blemish-files.jsonl",
            "labels.npy",
            *(f"{name}.npy" for name in NAMES),
        }
        np.testing.assert_array_equal(np.load(tmp_path / "dst" / "labels.npy"), np.concatenate([labels] * 5))
        for name in NAMES:
            stored = np.load(tmp_path / "dst" / f"{name}.npy")
            assert stored.shape == (35, 16, 16, 3)
            assert stored.dtype == np.uint8
            for severity in range(1, 6):
                expected = corrupt(images, name, severity=severity, seed=4)
                np.testing.assert_array_equal(stored[(severity - 1) * 7 : severity * 7], expected)

    @pytest.mark.parametrize("shape", [(4, 16, 20), (4, 16, 20, 1)])
    def test_gray(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        np.save(tmp_path / "x.npy", noise(*shape))
        corrupt_arrays(tmp_path / "x.npy", tmp_path / "dst", make_recipe(["fog"], [2, 4]))
        stored = np.load(tmp_path / "dst" / "fog.npy")
        assert stored.shape == (8, *shape[1:])
        expected = corrupt(noise(*shape).reshape(4, 16, 20, 1), "fog", severity=4)
        np.testing.assert_array_equal(stored[4:].reshape(expected.shape), expected)
        assert not (tmp_path / "dst" / "labels.npy").exists()

    def test_jobs_and_resume(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("blemish.export.arrays._CHUNK", 2 * 16 * 16 * 3)
        np.save(tmp_path / "x.npy", noise(9, 16, 16, 3))
        recipe = make_recipe(NAMES, [1, 5])
        corrupt_arrays(tmp_path / "x.npy", tmp_path / "one", recipe)
        corrupt_arrays(tmp_path / "x.npy", tmp_path / "two", recipe, jobs=2)
        assert contents(tmp_path / "one") == contents(tmp_path / "two")
        whole = contents(tmp_path / "one")
        (tmp_path / "one" / "fog.npy").unlink()
        left_over = tmp_path / "one" / STAGING / "99-0-fog.npy"
        left_over.parent.mkdir()
        left_over.write_bytes(b"half")
        outcome = corrupt_arrays(tmp_path / "x.npy", tmp_path / "one", recipe)
        assert (outcome.written, outcome.skipped) == (18, 36)
        assert contents(tmp_path / "one") == whole

    def test_other_images_labels_or_severities_are_refused(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "x.npz", x=noise(3, 16, 16, 3), y=np.arange(3))
        recipe = make_recipe(["fog"], [1, 2])
        corrupt_arrays(tmp_path / "x.npz", tmp_path / "dst", recipe)
        with pytest.raises(InputError, match=r"severities was \[1, 2\], now \[1\]"):
            corrupt_arrays(tmp_path / "x.npz", tmp_path / "dst", make_recipe(["fog"], [1]))
        np.savez(tmp_path / "x.npz", x=noise(3, 16, 16, 3), y=np.arange(3) + 1)
        with pytest.raises(InputError, match="holds other labels"):
            corrupt_arrays(tmp_path / "x.npz", tmp_path / "dst", recipe)
        np.savez(tmp_path / "x.npz", x=noise(3, 16, 16, 3, seed=1), y=np.arange(3))
        with pytest.raises(InputError, match=r"images was .*, now"):
            corrupt_arrays(tmp_path / "x.npz", tmp_path / "dst", recipe)

    def test_refusals(self, tmp_path: Path) -> None:
        np.save(tmp_path / "fog.npy", noise(3, 16, 16, 3))
        with pytest.raises(InputError, match="is a source and would be overwritten"):
            corrupt_arrays(tmp_path / "fog.npy", tmp_path, make_recipe(["fog"], [1]))
        with pytest.raises(InputError, match="resize and crop are for pictures"):
            corrupt_arrays(tmp_path / "fog.npy", tmp_path / "dst", make_recipe(["fog"], [1], crop=8))
        assert not (tmp_path / "dst").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": ["fogg"]}, "did you mean fog"),
        ({"names": []}, "no corruptions"),
        ({"severities": []}, "no severities"),
        ({"severities": [1, 6]}, "severity 6; expected a number in 0 … 5"),
        ({"severities": [float("nan")]}, "severity nan"),
        ({"severities": ["x"]}, "severity 'x'"),
        ({"file_format": "gif"}, "unknown format 'gif'; expected jpeg, jpeg:95"),
        ({"preset": "huge"}, "unknown preset 'huge'"),
        ({"crop": 4}, "crop to 4 pixels; expected at least 8"),
        ({"resize": 32, "crop": 64}, "a crop of 64 out of pictures resized to 32"),
    ],
)
def test_recipes_are_checked(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_recipe(**arguments)  # type: ignore[arg-type]
