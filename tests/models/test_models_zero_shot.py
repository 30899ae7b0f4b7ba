"""Zero-shot classifiers made by hand: what is asked, how classes become vectors, and what is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from blemish.core.class_names import imagenet_names
from blemish.core.errors import InputError
from blemish.core.typed import as_json, read_typed
from blemish.models import zero_shot
from blemish.models.base import Classifier, ModelInfo, Preprocessing
from blemish.models.card import ModelCard
from blemish.models.open import open_model
from blemish.models.prompts import Prompts, read_prompts, read_templates
from blemish.models.speed import speed_up
from blemish.models.zero_shot import Towers, zero_shot_classifier
from toy_runs import benchmark, evaluate, source

PROMPTS = Prompts(("a {}", "the {}!"), ("red", "green", "blue", "green"))
SCALE, BIAS = 10.0, -4.0


class Net(nn.Module):
    """Features of a sentence: how often r, g and b are in it, and one. Of a picture: its mean colour, and nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.encoded = 0

    def forward(self, values: Tensor) -> Tensor:
        return torch.nn.functional.pad(values.mean((2, 3)) * self.weight, (0, 1))

    def encode_text(self, tokens: Tensor) -> Tensor:
        self.encoded += len(tokens)
        return torch.stack([(tokens == ord(letter)).sum(1) for letter in "rgb"] + [torch.ones(len(tokens))], 1).float()


def tokens(texts: Sequence[str]) -> Tensor:
    longest = max(map(len, texts))
    return torch.tensor([[ord(sign) for sign in text.ljust(longest)] for text in texts])


def classifier(prompts: Prompts = PROMPTS, net: Net | None = None, read: Callable[..., Tensor] = tokens) -> Classifier:
    network = net or Net()
    towers = Towers(network, read, network.encode_text, network, SCALE, BIAS)
    return zero_shot_classifier(
        towers,
        prompts,
        name="by hand",
        kind="toy",
        preprocessing=Preprocessing(),
        card=ModelCard(web_scale=True),
        device=torch.device("cpu"),
    )


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(zero_shot, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "class-vectors"


class TestClassifier:
    def test_the_vector_of_a_class(self) -> None:
        """By hand: each sentence to length one, their mean to length one; logits are 10 · cosine − 4.

        "a red" has one r, "the red!" one as well; so has "a green" one g and one r.
        """
        model = classifier()
        picture = torch.tensor([200, 100, 50], dtype=torch.uint8).view(1, 3, 1, 1)
        feature = np.array([200, 100, 50, 0]) / math.hypot(200, 100, 50)
        red = np.array([1, 0, 0, 1]) / math.sqrt(2)
        green = np.array([1, 1, 0, 1]) / math.sqrt(3)
        blue = np.array([0, 0, 1, 1]) / math.sqrt(2)
        logits = SCALE * np.array([feature @ red, feature @ green, feature @ blue, feature @ green]) + BIAS
        assert model.forward(model.preprocessing(picture))[0].tolist() == pytest.approx(logits.tolist(), abs=1e-5)
        assert model(picture)[0].tolist() == pytest.approx((np.exp(logits) / np.exp(logits).sum()).tolist(), abs=1e-5)

    def test_sentences_of_different_lengths_count_the_same(self) -> None:
        """The mean is of vectors of length one: "rrr" and "g" weigh alike."""
        model = classifier(Prompts(("{}rrr", "{}g"), ("", "b")))
        first = np.array([3, 0, 0, 1]) / math.sqrt(10) + np.array([0, 1, 0, 1]) / math.sqrt(2)
        assert isinstance(model.module, zero_shot.ZeroShot)
        made = model.module.get_buffer("vectors")[0]
        assert made.tolist() == pytest.approx((first / np.linalg.norm(first)).tolist(), abs=1e-6)

    def test_equal_names_tie(self) -> None:
        """Ties go to the lower number, so classes of one name may not differ by rounding."""
        levels = torch.randint(0, 256, (64, 3, 5, 5), dtype=torch.uint8)
        scores = classifier()(levels)
        assert torch.equal(scores[:, 1], scores[:, 3])

    def test_a_bias_changes_no_probability(self) -> None:
        """Given that exactly one class is right, independent sigmoids are a softmax, in which a bias cancels."""
        levels = torch.randint(0, 256, (8, 3, 5, 5), dtype=torch.uint8)
        model = classifier()
        logits = model.forward(model.preprocessing(levels)).double()
        alone = logits.sigmoid()
        others = torch.stack([(1 - alone).prod(1) / (1 - alone[:, i]) for i in range(4)], 1)
        only = alone * others
        assert torch.allclose(model(levels).double(), only / only.sum(1, keepdim=True), atol=1e-5)

    def test_half_precision_is_for_the_network_alone(self) -> None:
        """Cosines in bfloat16 have steps of 1/256: classes would tie that do not."""
        names = tuple("r" * count + "b" * (60 - count) for count in range(60))
        model = classifier(Prompts(("{}",), names))
        quick = speed_up(model, precision="bfloat16", channels_last=False)
        values = model.preprocessing(torch.tensor([255, 0, 0], dtype=torch.uint8).view(1, 3, 1, 1))
        assert quick.forward(values).dtype == torch.float32
        assert len(set(quick.forward(values)[0].tolist())) == len(set(model.forward(values)[0].tolist())) == 60

    def test_what_the_header_says(self) -> None:
        model = classifier()
        said = model.describe(4)
        assert said.prompts is not None
        assert (said.prompts.templates, said.prompts.class_names) == (2, 4)
        assert (said.prompts.scale, said.prompts.bias) == (SCALE, BIAS)
        assert model.classes == PROMPTS.names
        assert read_typed(ModelInfo, as_json(said)) == said


class TestDigests:
    def test_of_everything_that_decides(self) -> None:
        net = Net()
        net.weight.data += 1
        same = {classifier().weights, classifier(net=Net()).weights}
        others = {
            classifier(replace(PROMPTS, templates=("a {}", "the {}?"))).weights,
            classifier(replace(PROMPTS, names=("red", "green", "blue", "blue"))).weights,
            classifier(net=net).weights,
            classifier(read=lambda texts: tokens([text.upper() for text in texts])).weights,
        }
        assert (len(same), len(others), len(same | others)) == (1, 4, 5)

    def test_a_run_does_not_go_on_with_others(self, tmp_path: Path) -> None:
        data = replace(source(8), labels=np.arange(8) % 4, classes=PROMPTS.names)
        evaluate(classifier(), data, benchmark("contrast@1"), out=tmp_path)
        other = classifier(replace(PROMPTS, templates=("a {}",)))
        with pytest.raises(InputError, match=r"model\.weights was .*model\.prompts"):
            evaluate(other, data, benchmark("contrast@1"), out=tmp_path)

    def test_data_with_other_classes(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"image 6/6.png has the label 6.* asked for 4 class names.*--class-names"):
            evaluate(classifier(), replace(source(8), classes=None), benchmark("contrast@1"), out=tmp_path)
        few = replace(source(8), labels=np.arange(8) % 3, classes=("x", "y", "z"))
        with pytest.raises(InputError, match=r"3 classes for 4 class names.*--class-names"):
            evaluate(classifier(), few, benchmark("contrast@1"), out=tmp_path)


class TestKept:
    def test_vectors_are_computed_once(self, cache: Path) -> None:
        first, second = Net(), Net()
        made = classifier(net=first)
        again = classifier(net=second)
        assert (first.encoded, second.encoded) == (2 * 3, 0)  # two sentences about three names
        levels = torch.randint(0, 256, (4, 3, 5, 5), dtype=torch.uint8)
        assert torch.equal(made(levels), again(levels))
        assert [file.name for file in cache.iterdir()] == [f"{made.weights}.npy"]

    @pytest.mark.parametrize("damage", [b"", b"not an array", None])
    def test_damaged_files_are_made_again(self, cache: Path, damage: bytes | None) -> None:
        file = cache / f"{classifier().weights}.npy"
        if damage is None:
            np.save(file, np.ones((7, 4), np.float32))
        else:
            file.write_bytes(damage)
        net = Net()
        classifier(net=net)
        assert net.encoded == 6
        assert np.load(file).shape == (3, 4)

    def test_without_a_place_for_it(self, cache: Path) -> None:
        cache.parent.write_text("a file where the folder would be")
        assert classifier().classes == PROMPTS.names


class TestPrompts:
    def test_those_of_openai(self) -> None:
        """80 and 7 templates, 1,000 names of which two occur twice (OpenAI's lists as open_clip has them)."""
        prompts = read_prompts(None, None)
        assert (len(prompts.templates), len(prompts.names), len(prompts.different_names)) == (80, 1000, 998)
        assert prompts.names == imagenet_names()
        assert prompts.templates[0] == "a bad photo of a {}."
        assert len(read_templates("simple")) == 7
        assert {*read_templates("simple")} <= {*prompts.templates}

    def test_files(self, tmp_path: Path) -> None:
        (tmp_path / "lines.txt").write_text("a {}\n{} and {}\n")
        (tmp_path / "list.json").write_text('["a {}"]')
        assert read_templates(tmp_path / "lines.txt") == ("a {}", "{} and {}")
        assert read_templates(str(tmp_path / "list.json")) == ("a {}",)
        assert Prompts(("{} and {}",), ("x{y}",)).texts("x{y}") == ["x{y} and x{y}"]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("a photo\n", "template 1 is 'a photo'; expected {} for the name"),
            ("a {}\n\na {}\n", "template 2 is ''"),
            ("", "no templates in it; expected a text with a template per line"),
            ("[1]", "template 1 is 1; expected {}"),
            ("[", "not readable as JSON"),
        ],
    )
    def test_files_that_are_none(self, tmp_path: Path, content: str, message: str) -> None:
        (tmp_path / "t.txt").write_text(content)
        with pytest.raises(InputError, match=message):
            read_templates(tmp_path / "t.txt")
        with pytest.raises(InputError, match=r"no such file of templates; expected .*, openai or simple"):
            read_templates("fancy")

    def test_models_that_are_asked_nothing(self) -> None:
        with pytest.raises(InputError, match="templates for model 'demo:plain', which is asked nothing"):
            open_model("demo:plain", device="cpu", templates="simple")
        assert open_model("demo:plain", device="cpu", class_names=["a"]).classes is None
