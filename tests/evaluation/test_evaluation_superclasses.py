"""Runs that ask for superclasses: probabilities are pooled before the top five, and headers say how."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import CLEAN, parse_condition
from blemish.benchmarks.files import benchmark_toml, load_benchmark, parse_benchmark
from blemish.core.class_names import imagenet_names
from blemish.core.errors import InputError
from blemish.data.open import open_stored
from blemish.data.source import Source
from blemish.data.superclasses import superclasses_named
from blemish.evaluation.predict import Grouping
from blemish.evaluation.runs import Run
from blemish.models.base import Classifier
from toy_runs import evaluate
from toy_runs import model as seven_classes

SIXTEEN = superclasses_named("sixteen")
LABELS = [404, 294, 207, 281]  # airplane, bear, dog, cat


class TestGrouping:
    PROBABILITIES = torch.tensor([[0.5, 0.1, 0.25, 0.15]])
    GROUPS = ((0, 1), (2,), (3, 1, 2))

    @pytest.mark.parametrize(
        ("pool", "pooled"),
        [("mean", [0.3, 0.25, 0.5 / 3]), ("sum", [0.6, 0.25, 0.5]), ("max", [0.5, 0.25, 0.25])],
    )
    def test_by_hand(self, pool: str, pooled: list[float]) -> None:
        assert Grouping(self.GROUPS, pool)(self.PROBABILITIES)[0].tolist() == pytest.approx(pooled)

    def test_the_mean_does_not_favour_many_members(self) -> None:
        """The largest mean is not that of the largest sum: 109 dogs at .004 each have .436, one airplane .3."""
        probabilities = torch.zeros(1, 1000)
        probabilities[0, list(SIXTEEN.members[10])], probabilities[0, 404] = 0.004, 0.3
        answers = {pool: int(Grouping(SIXTEEN.members, pool)(probabilities).argmax()) for pool in ("mean", "sum")}
        assert {pool: SIXTEEN.classes[answer] for pool, answer in answers.items()} == {"mean": "airplane", "sum": "dog"}

    def test_a_model_with_too_few_classes(self) -> None:
        with pytest.raises(InputError, match="a model with 4 classes for a set that needs class 9"):
            Grouping(((0, 9),), "mean")(self.PROBABILITIES)


def forward(values: Tensor) -> Tensor:
    """1,000 logits that depend on the image."""
    means = values.mean((1, 2, 3))
    return 8 * torch.sin(torch.arange(1000) * (1 + 0.37 * means[:, None]))


def thousand() -> Classifier:
    return Classifier("net", "function", forward, "none")


def picture(i: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(i).integers(0, 200 + i, (16, 16, 3), dtype=np.uint8))


def source(names: tuple[str, ...] = ("a/0.png", "b/1.png", "c/2.png", "d/3.png")) -> Source:
    return Source("pictures", names, np.arange(4), np.array(LABELS), picture)


def benchmark(pool: str = "mean", *conditions: str) -> Benchmark:
    protocol = Protocol(superclasses="sixteen", pool=pool)
    return Benchmark("own", "", "accuracy", tuple(map(parse_condition, conditions or ("contrast@3",))), protocol)


def pooled_by_hand(pool: str) -> NDArray[np.float64]:
    logits = np.concatenate([forward(torch.from_numpy(_values(i))[None]).double().numpy() for i in range(4)])
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    return np.stack([getattr(shares[:, list(members)], pool)(1) for members in SIXTEEN.members], axis=1)


def _values(i: int) -> NDArray[np.float32]:
    return (np.asarray(picture(i)).transpose(2, 0, 1) / 255).astype(np.float32)


@pytest.mark.parametrize("pool", ["mean", "sum", "max"])
def test_records_hold_superclasses(pool: str, tmp_path: Path) -> None:
    run = evaluate(thousand(), source(), benchmark(pool), out=tmp_path)
    records = run.records(CLEAN)
    expected = pooled_by_hand(pool)
    assert [SIXTEEN.classes[label] for label in records.labels] == ["airplane", "bear", "dog", "cat"]
    np.testing.assert_array_equal(records.top5, np.argsort(-expected, axis=1, kind="stable")[:, :5])
    np.testing.assert_allclose(records.confidence, expected.max(1), rtol=1e-4)
    np.testing.assert_allclose(records.label_confidence, expected[np.arange(4), records.labels], rtol=1e-4)
    assert run.info.classes == SIXTEEN.classes
    assert records.header.protocol is not None
    assert (records.header.protocol.superclasses, records.header.protocol.pool) == ("sixteen", pool)


def test_another_pool_is_another_run(tmp_path: Path) -> None:
    evaluate(thousand(), source(), benchmark("mean"), out=tmp_path)
    with pytest.raises(InputError, match='protocol.pool was "mean", now "sum"'.replace(".", r"\.")):
        evaluate(thousand(), source(), benchmark("sum"), out=tmp_path)


def test_a_model_without_imagenets_classes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="7 outputs, but the superclasses sixteen are made of ImageNet's 1,000"):
        evaluate(seven_classes(), source(), benchmark(), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_model_whose_classes_are_in_another_order(tmp_path: Path) -> None:
    names = tuple(f"class {i}" for i in range(1000))
    evaluate(replace(thousand(), classes=names), source(), benchmark(), out=tmp_path / "unknown names")
    turned = replace(thousand(), classes=tuple(reversed(imagenet_names())))
    with pytest.raises(InputError, match="labels that are not the outputs of model net"):
        evaluate(turned, source(), benchmark(), out=tmp_path / "turned")


class TestPublishedSet:
    @pytest.fixture
    def stored(self, tmp_path: Path) -> Path:
        """LAION-C's layout: a folder for each level called intensity_level_N, in it one for each superclass."""
        root = tmp_path / "LAION-C"
        for level in (1, 2):
            for folder, i in (("bird", 1), ("dog", 2)):
                path = root / "mosaic" / f"intensity_level_{level}" / folder / f"{i}.png"
                path.parent.mkdir(parents=True)
                picture(10 * level + i).save(path)
        return root

    def measured(self, stored: Path, out: Path) -> Run:
        conditions = tuple(map(parse_condition, ("laion:mosaic@1", "laion:mosaic@2")))
        chosen = replace(load_benchmark("laion-c"), conditions=conditions, protocol=Protocol(**LAION))
        # Folders of WordNet ids, of which the set holds two images: 128 is a stork, a bird, 207 a dog.
        clean = Source("val", ("n0/0.png", "n1/1.png", "n2/2.png"), np.arange(3), np.array([404, 128, 207]), picture)
        return evaluate(thousand(), clean, chosen, out=out, stored=open_stored(stored))

    @pytest.mark.filterwarnings("ignore::blemish.core.errors.Notice")
    def test_is_measured_beside_clean_images(self, stored: Path, tmp_path: Path) -> None:
        run = self.measured(stored, tmp_path / "out")
        records = run.records(parse_condition("laion:mosaic@2"))
        assert records.images.tolist() == ["n1/1.png", "n2/2.png"]
        values = torch.stack([torch.from_numpy(_values(20 + i)) for i in (1, 2)])
        expected = Grouping(superclasses_named("laion-c").members, "mean")(forward(values).softmax(1))
        np.testing.assert_array_equal(records.top5[:, 0], expected.argmax(1))
        assert run.info.benchmark.title == "LAION-C"  # only the published images are
        assert run.info.protocol.pixels == "stored"

    @pytest.mark.filterwarnings("ignore::blemish.core.errors.Notice")
    def test_missing_levels_are_refused(self, stored: Path, tmp_path: Path) -> None:
        """The reference's evaluation skips what it cannot load, and so changes its mean without a word."""
        chosen = replace(load_benchmark("laion-c"), protocol=Protocol(**LAION))
        with pytest.raises(InputError, match="no images of laion:mosaic@3"):
            evaluate(thousand(), source(), chosen, out=tmp_path / "out", stored=open_stored(stored))


LAION = {"superclasses": "laion-c", "pool": "mean"}


def test_made_here_it_is_laion_c_like(tmp_path: Path) -> None:
    chosen = replace(
        load_benchmark("laion-c"), conditions=(parse_condition("laion:stickers@1"),), protocol=Protocol(**LAION)
    )
    clean = Source("val", ("1.png", "2.png"), np.arange(2), np.array([128, 207]), picture)
    run = evaluate(thousand(), clean, chosen, out=tmp_path)
    assert run.info.benchmark.title == "LAION-C-like distortions"
    version = run.info.protocol.corruptions["laion:stickers"]
    assert getattr(version, "files", None) == "drawn"


@pytest.mark.parametrize("name", ["laion-c", "human-16"])
def test_benchmark_files(name: str) -> None:
    pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    chosen = load_benchmark(name)
    assert chosen.protocol.pool == "mean"
    assert chosen.reference == name
    assert parse_benchmark(benchmark_toml(chosen), where="again") == chosen


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ({"superclasses": "sixteen"}, "superclasses without pool; expected both"),
        ({"pool": "mean"}, "pool without superclasses; expected both"),
        ({"superclasses": "sixteen", "pool": "median"}, "unknown pool 'median'; expected one of mean, sum, max"),
    ],
)
def test_protocols_that_mean_nothing(protocol: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Protocol(**protocol)  # type: ignore[arg-type]


def test_natural_sets_have_classes_of_their_own() -> None:
    with pytest.raises(InputError, match="natural:imagenet-r with superclasses; its classes are its own"):
        benchmark("mean", "natural:imagenet-r")
