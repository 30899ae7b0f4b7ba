"""What `evaluate` takes from a notebook: lists, functions, no folder; and what its results offer there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import blemish
from blemish.core.errors import InputError
from blemish.evaluation.arguments import as_benchmark, as_classifier

mpl.use("agg")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "blemish" / "results"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> blemish.Run:
    out = tmp_path_factory.mktemp("results")
    return blemish.evaluate("demo:plain", "demo:digits", ["fog", "contrast@3"], out=out, limit=100)


class TestBenchmarks:
    def test_lists(self) -> None:
        benchmark = as_benchmark(["fog", "snow@2.5", blemish.parse_condition("contrast@1")])
        levels = [f"fog@{level}" for level in range(1, 6)]
        assert [str(c) for c in benchmark.conditions] == ["clean", *levels, "snow@2.5", "contrast@1"]
        assert (benchmark.name, benchmark.metric) == ("fog, snow@2.5, contrast@1", "error")

    def test_sequences_are_headed_by_flips(self) -> None:
        benchmark = as_benchmark(["p:tilt"])
        assert [str(c) for c in benchmark.conditions] == ["clean", "p:tilt@1"]
        assert benchmark.metric == "flips"

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            (["fogg"], "unknown corruption 'fogg'.*fog"),
            ([3], "a condition of type int; expected a text such as fog or fog@3"),
            (7, "a benchmark of type int; expected a name, a file, a Benchmark or a list of conditions"),
            ([], "an empty list of conditions; expected at least one, such as fog or fog@3"),
            ("fog@3", r"unknown benchmark 'fog@3'.*Conditions are given as a list: \['fog@3'\]"),
            ("fog, snow@2", r"Conditions are given as a list: \['fog', 'snow@2'\]"),
            ("imagenet-x", r"unknown benchmark 'imagenet-x'; did you mean [^.]*$"),
        ],
    )
    def test_refused(self, asked: object, message: str) -> None:
        with pytest.raises(InputError, match=message):
            as_benchmark(asked)  # type: ignore[arg-type]


class _Foreign:
    """An array of another library, read-only as JAX's are."""

    def __init__(self, values: NDArray[np.float32]) -> None:
        self._values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[np.float32]:
        self._values.flags.writeable = False
        return self._values


class TestModels:
    def test_names(self) -> None:
        assert as_classifier(nn.Linear(2, 2), None).name == "Linear"
        assert as_classifier(nn.Linear(2, 2), "mine").name == "mine"
        assert as_classifier("demo:plain", "other").name == "other"

    def test_what_is_no_model(self) -> None:
        with pytest.raises(InputError, match="a int; expected a torch module, a scikit-learn classifier, a Classifier"):
            as_classifier(3, None)  # type: ignore[arg-type]

    def test_functions(self, cache: Path) -> None:
        """A function sees uint8 batches, and is measured anew every time: what it does cannot be seen."""
        model = blemish.open_model("demo:plain")
        seen: list[torch.dtype] = []

        def answer(images: Tensor) -> Tensor:
            seen.append(images.dtype)
            return model(images).log()

        runs = [blemish.evaluate(answer, "demo:digits", ["contrast@3"], limit=50) for _ in range(2)]
        assert set(seen) == {torch.uint8}
        assert runs[0].name == "answer"
        assert runs[0].folder != runs[1].folder
        assert all(one.folder.is_relative_to(cache) for one in runs)
        np.testing.assert_array_equal(runs[0]["contrast@3"].top5, runs[1]["contrast@3"].top5)

    @pytest.mark.parametrize("read", [np.asarray, lambda scores: _Foreign(scores.numpy())])
    def test_functions_that_give_arrays(self, read: Callable[[Tensor], Any]) -> None:
        """Of NumPy, or of what NumPy can read, as JAX's arrays are."""
        model = blemish.open_model("demo:plain", device="cpu")
        given = blemish.from_function(lambda images: read(model(images).log()), device="cpu")
        run = blemish.evaluate(given, "demo:digits", ["contrast@3"], limit=50)
        plain = blemish.evaluate(model, "demo:digits", ["contrast@3"], limit=50)
        np.testing.assert_array_equal(run["contrast@3"].top5, plain["contrast@3"].top5)
        texts = blemish.from_function(lambda images: np.array([["cat"]] * len(images)), device="cpu")
        with pytest.raises(InputError, match="output of type ndarray; expected a tensor of class scores"):
            texts(torch.zeros(2, 3, 32, 32, dtype=torch.uint8))

    def test_functions_that_give_probabilities(self) -> None:
        model = blemish.open_model("demo:plain")
        with pytest.raises(InputError, match="they are probabilities"):
            blemish.evaluate(lambda images: model(images), "demo:digits", ["contrast@3"], limit=50)
        named = blemish.from_function(lambda images: model(images), name="mine", output="probabilities", device="cpu")
        run = blemish.evaluate(named, "demo:digits", ["contrast@3"], limit=50)
        plain = blemish.evaluate(model, "demo:digits", ["contrast@3"], limit=50)
        np.testing.assert_array_equal(run["contrast@3"].top5, plain["contrast@3"].top5)


class TestCache:
    def test_the_same_call_finds_its_results_again(self, cache: Path) -> None:
        first = blemish.evaluate("demo:plain", "demo:digits", ["contrast@3"], limit=50)
        file = first.folder / "records" / "contrast@3.parquet"
        before = file.stat().st_mtime_ns
        again = blemish.evaluate("demo:plain", "demo:digits", ["contrast@3"], limit=50)
        assert first.folder == again.folder
        assert first.folder.is_relative_to(cache)
        assert file.stat().st_mtime_ns == before

    def test_other_questions_have_other_folders(self) -> None:
        asked = [
            ("demo:plain", "demo:digits", ["contrast@3"]),
            ("demo:noisy", "demo:digits", ["contrast@3"]),
            ("demo:plain", "demo:digits", ["contrast@4"]),
        ]
        folders = {blemish.evaluate(*one, limit=50).folder.parent for one in asked}
        assert len(folders) == 3

    def test_labels_of_other_classes_have_another_folder(self) -> None:
        """Names of classes decide which outputs labels stand for."""
        digits = blemish.open_source("demo:digits").take(range(50))
        folders = [
            blemish.evaluate("demo:plain", replace(digits, classes=classes), ["contrast@3"]).folder
            for classes in (tuple("abcdefghij"), tuple("jihgfedcba"))
        ]
        assert folders[0] != folders[1]

    def test_a_model_that_answers_otherwise_is_refused_though_all_is_measured(self) -> None:
        """The weights are the same, and what is done with them is not: a fixed bug must not get the old numbers."""

        class Net(nn.Module):
            sign = 1.0

            def __init__(self) -> None:
                super().__init__()
                module = blemish.open_model("demo:plain").module
                assert module is not None
                self.net = module

            def forward(self, images: Tensor) -> Tensor:
                scores: Tensor = self.net(images)
                return self.sign * scores

        def measure() -> None:
            model = blemish.from_module(Net(), preprocessing=blemish.Preprocessing())
            blemish.evaluate(model, "demo:digits", ["contrast@3"], limit=50, allow_chance=True)

        measure()
        Net.sign = -1.0
        with pytest.raises(InputError, match=r"gives other scores for .* than when the run began"):
            measure()


class TestResults:
    def test_records_by_name(self, run: blemish.Run) -> None:
        assert run["contrast@3"].condition == "contrast@3"
        with pytest.raises(InputError, match=r"no condition 'fog@7'; .*fog@"):
            run["fog@7"]
        with pytest.raises(InputError, match=r"no condition 0; .*"):
            run[0]  # type: ignore[index]

    def test_names_of_what_is_finished(self, run: blemish.Run) -> None:
        assert list(run) == ["clean", *(f"fog@{level}" for level in range(1, 6)), "contrast@3"]
        assert "fog@3" in run
        assert "snow@3" not in run

    def test_what_holds_no_run(self, run: blemish.Run) -> None:
        with pytest.raises(InputError, match=r"no run.json in it itself, but in its folders .*demo-plain.*; open one"):
            blemish.open_run(run.folder.parent)
        with pytest.raises(InputError, match=r"no run.json in it; expected a folder that blemish run made"):
            blemish.open_run(run.folder / "records")
        for nothing in (None, [None]):
            with pytest.raises(InputError, match="results of type NoneType; expected a run, or the folder that holds"):
                blemish.score(nothing)  # type: ignore[call-overload]

    def test_a_run_as_a_table(self, run: blemish.Run) -> None:
        table = run.table()
        assert list(table["condition"]) == ["clean", *(f"fog@{level}" for level in range(1, 6)), "contrast@3"]
        assert list(table["severity"]) == [None, 1, 2, 3, 4, 5, 3]
        assert table["accuracy"][3] == run["fog@3"].correct.mean()
        assert table["error"][3] == 1 - table["accuracy"][3]
        assert str(run).startswith("demo-plain on fog, contrast@3: 100 images\ncondition")
        assert "<td>fog@3</td>" in run._repr_html_()

    def test_records_as_a_table(self, run: blemish.Run) -> None:
        records = run["fog@3"]
        table = records.table()
        assert len(table["image"]) == 100
        assert list(table["prediction"]) == records.top5[:, 0].tolist()
        assert list(table["correct"]) == records.correct.tolist()
        assert "fog@3: 100 predictions" in str(records)

    def test_curves_begin_with_the_clean_images(self, run: blemish.Run) -> None:
        curves = run.curves()
        assert list(curves) == ["fog", "contrast"]
        assert list(curves["fog"].severities) == [0, 1, 2, 3, 4, 5]
        assert curves["contrast"].values[0] == pytest.approx(100 * (1 - run["clean"].correct.mean()))
        assert len(run.plot().lines) == 2

    def test_scores(self, run: blemish.Run) -> None:
        scores = blemish.score(run.folder, replicates=50)
        assert scores.caption().startswith("demo-plain on fog, contrast@3, 100 images: mean error ")
        assert scores.headline is not None
        assert str(scores.headline.estimate) in scores.caption()
        errors = scores.errors()
        assert list(errors["condition"]) == list(run.table()["condition"])
        assert errors["error"][3] == pytest.approx(100 * run.table()["error"][3])
        curve = scores.curves()["fog"]
        assert curve.low is not None
        assert curve.high is not None
        assert all(low <= value <= high for low, value, high in zip(curve.low, curve.values, curve.high, strict=True))
        assert len(scores.plot().collections) == 2
        assert [one.model for one in blemish.score([run, run.folder], replicates=50)] == ["demo-plain", "demo-plain"]

    def test_folders_where_runs_are_expected(self, run: blemish.Run, tmp_path: Path) -> None:
        out = run.folder.parent
        other = blemish.evaluate("demo:noisy", "demo:digits", ["fog", "contrast@3"], out=out, limit=100)
        assert blemish.compare(run.folder, other, replicates=50).first == "demo-plain"
        with pytest.raises(InputError, match=r"holds 2 runs .*; expected one, or a list to take them all"):
            blemish.score(out)
        assert [one.model for one in blemish.score([out], replicates=50)] == ["demo-noisy", "demo-plain"]
        page = blemish.write_report(out, tmp_path / "report.html", replicates=50)
        assert "noisy" in page.read_text(encoding="utf-8")
        for pair in ([run, other.folder], [other, run]):
            compared = blemish.compare(pair, replicates=50)
            assert {compared.first, compared.second} == {"demo-plain", "demo-noisy"}
            assert compared.first == ("demo-plain" if pair[0] is run else "demo-noisy")
        assert blemish.compare(out, replicates=50).first == "demo-noisy"  # the folder of both
        with pytest.raises(InputError, match=r"1 runs \(demo-plain\); expected two to compare"):
            blemish.compare(run)

    @pytest.mark.slow
    def test_all_results_in_one_frame(self, run: blemish.Run) -> None:
        pytest.importorskip("pandas")
        frame = blemish.load_results(run.folder, replicates=50)
        assert frame.shape == (7, 9)
        assert frame[frame.condition == "fog@3"].error.item() == pytest.approx(100 * run.table()["error"][3])
        assert (frame.low <= frame.error).all()
        assert run["fog@3"].to_pandas().correct.mean() == run.table()["accuracy"][3]
