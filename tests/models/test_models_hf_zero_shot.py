"""CLIP and SigLIP of transformers, by the library itself: small ones with random weights."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from blemish.core.errors import InputError
from blemish.evaluation.executors import Processes
from blemish.evaluation.fitting import fit
from blemish.models import zero_shot
from blemish.models.hf_files import read_processor
from blemish.models.hub import Snapshot
from blemish.models.open import open_model
from blemish.studies.adaptation.base import adaptable
from command_line import invoke
from execution_jobs import pictures
from foreign import foreign
from hf_folders import NAMES, in_a_worker, save_clip
from toy_runs import benchmark, evaluate

pytestmark = pytest.mark.slow

transformers = foreign("transformers")

TEMPLATES = ("a photo of a {}", "the big {}", "small {} animal")
SENTENCE = "a photo of a {}"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "blemish" / "class-vectors"


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "clip-laion2b"
    save_clip(folder, "clip")
    return folder


@pytest.fixture(scope="module")
def siglip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "siglip"
    save_clip(folder, "siglip")
    return folder


def levels(count: int = 3) -> Tensor:
    generator = np.random.Generator(np.random.PCG64(2))
    return torch.from_numpy(generator.integers(0, 256, (count, 3, 40, 57), dtype=np.uint8))


def library_logits(folder: Path, texts: list[str], batch: Tensor) -> Tensor:
    """What transformers itself gives for pictures and sentences, as its documentation has it."""
    network = transformers.AutoModel.from_pretrained(folder).eval()
    tokeniser = transformers.AutoTokenizer.from_pretrained(folder)
    whole = {"padding": "max_length", "max_length": 12} if "siglip" in folder.name else {"padding": True}
    tokens = tokeniser(texts, return_tensors="pt", **whole)
    tokens = {name: tokens[name] for name in ("input_ids", *(() if "siglip" in folder.name else ("attention_mask",)))}
    values = read_processor(Snapshot("", folder, None, pickled=False))(
        images=[Image.fromarray(picture.permute(1, 2, 0).numpy()) for picture in batch], return_tensors="pt"
    )
    with torch.inference_mode():
        return network(**tokens, pixel_values=values["pixel_values"]).logits_per_image


class TestAgainstTheLibrary:
    @pytest.mark.parametrize("kind", ["clip", "siglip"])
    def test_one_sentence(self, kind: str, request: pytest.FixtureRequest) -> None:
        """With a single template, logits are the library's own for these sentences."""
        folder = request.getfixturevalue(kind)
        model = open_model(folder, device="cpu", templates=[SENTENCE], class_names=NAMES)
        expected = library_logits(folder, [SENTENCE.replace("{}", name) for name in NAMES], levels())
        made = model.forward(model.preprocessing(levels()))
        assert torch.allclose(made, expected, atol=1e-3)
        assert torch.allclose(model(levels()), expected.softmax(1), atol=1e-4)
        # SigLIP's own probabilities are sigmoids: others, but of the same order.
        assert torch.equal(expected.double().sigmoid().argsort(1), model(levels()).argsort(1)) or kind == "clip"

    def test_many_sentences(self, clip: Path) -> None:
        """The mean of the library's features, each of length one, as facts about zero-shot evaluation have it."""
        network = transformers.AutoModel.from_pretrained(clip).eval()
        tokeniser = transformers.AutoTokenizer.from_pretrained(clip)
        vectors = []
        with torch.inference_mode():
            for name in NAMES:
                tokens = tokeniser([text.replace("{}", name) for text in TEMPLATES], padding=True, return_tensors="pt")
                tokens = {key: tokens[key] for key in ("input_ids", "attention_mask")}
                features = network.get_text_features(**tokens)
                features = getattr(features, "pooler_output", features)
                vectors.append(functional.normalize(functional.normalize(features, dim=-1).mean(0), dim=-1))
        model = open_model(clip, device="cpu", templates=TEMPLATES, class_names=NAMES)
        assert isinstance(model.module, zero_shot.ZeroShot)
        assert torch.allclose(model.module.get_buffer("vectors"), torch.stack(vectors), atol=1e-5)


class TestHeader:
    def test_scale_and_bias(self, clip: Path, siglip: Path) -> None:
        first, second = (open_model(f, device="cpu", templates="simple", class_names=NAMES) for f in (clip, siglip))
        assert first.prompts is not None
        assert second.prompts is not None
        assert (first.prompts.scale, first.prompts.bias) == (pytest.approx(1 / 0.07, rel=1e-3), 0)  # as training begins
        assert (second.prompts.scale, second.prompts.bias) == (pytest.approx(np.exp(4.7)), -13)
        assert first.card is not None
        assert (first.card.training_data, first.card.said_by, first.card.web_scale) == (("LAION-2B",), "its name", True)
        assert first.kind == "transformers"

    def test_by_default_imagenet(self, clip: Path) -> None:
        model = open_model(clip, device="cpu", templates="simple")
        assert model(levels(1)).shape == (1, 1000)

    def test_settings_in_a_file(self, clip: Path, tmp_path: Path) -> None:
        shutil.copytree(clip, tmp_path / "net")
        (tmp_path / "names.txt").write_text("\n".join(NAMES))
        (tmp_path / "m.toml").write_text('model = "net"\nclass_names = "names.txt"\ntemplates = ["a {}"]\n')
        model = open_model(tmp_path / "m.toml", device="cpu")
        assert model.classes == NAMES
        assert model.weights == open_model(clip, device="cpu", templates=["a {}"], class_names=NAMES).weights


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_on_a_gpu(kind: str, request: pytest.FixtureRequest, device: torch.device, cache: Path) -> None:
    folder = request.getfixturevalue(kind)
    here = open_model(folder, device="cpu", templates=TEMPLATES, class_names=NAMES)
    shutil.rmtree(cache)  # so that the GPU encodes the sentences itself
    there = open_model(folder, device=device, templates=TEMPLATES, class_names=NAMES)
    assert here.weights == there.weights
    assert torch.allclose(here(levels()), there(levels()).cpu(), atol=2e-2)


class TestRuns:
    def test_workers(self, clip: Path, tmp_path: Path, cache: Path) -> None:
        model = open_model(clip, device="cpu", templates=TEMPLATES, class_names=NAMES)
        wanted, data = benchmark("contrast@1"), replace(pictures(12), classes=NAMES)
        alone = evaluate(model, data, wanted, out=tmp_path / "a")
        assert [file.stem for file in cache.iterdir()] == [model.weights]
        assert model.reopen is not None
        travels = replace(model, reopen=partial(in_a_worker, model.reopen))
        shared = evaluate(travels, data, wanted, out=tmp_path / "b", executor=Processes(1, threads=1))
        for condition in wanted.conditions:
            assert np.array_equal(alone.records(condition).top5, shared.records(condition).top5)

    def test_from_the_command_line(self, clip: Path, tmp_path: Path) -> None:
        for number, name in enumerate(NAMES[:3]):
            (tmp_path / "data" / name).mkdir(parents=True)
            for i in range(3):
                picture = levels(9)[3 * number + i].permute(1, 2, 0).numpy()
                Image.fromarray(picture).save(tmp_path / "data" / name / f"{i}.png")
        (tmp_path / "names.txt").write_text("\n".join(NAMES[:3]))
        (tmp_path / "say.txt").write_text("a photo of a {}\nthe {}\n")
        arguments = ["run", "imagenet-c", "--only", "contrast@1", "-m", str(clip), "-d", str(tmp_path / "data")]
        arguments += ["--templates", str(tmp_path / "say.txt"), "--class-names", str(tmp_path / "names.txt")]
        code, _, said_of_it = invoke(*arguments, "-o", tmp_path / "out", "--device", "cpu", "--anyway")
        assert code == 0, said_of_it
        (file,) = (tmp_path / "out").rglob("run.json")
        said = json.loads(file.read_text())["model"]
        assert (said["prompts"]["templates"], said["prompts"]["class_names"], said["outputs"]) == (2, 3, 3)
        assert said["card"]["web_scale"] is True

    def test_gradients_flow(self, siglip: Path) -> None:
        """Test-time adaptation trains what it is given."""
        model = open_model(siglip, device="cpu", templates=TEMPLATES, class_names=NAMES)
        logits = adaptable(model)(levels().float())
        logits.logsumexp(1).sum().backward()
        assert any(parameter.grad is not None for parameter in model.module.parameters())  # type: ignore[union-attr]


class TestRefusals:
    def test_too_few_class_names(self, clip: Path) -> None:
        """The way out is to name the classes, not to map folders."""
        data = replace(pictures(6), labels=np.arange(6) % 3, classes=NAMES[:3], labelling="order")
        model = open_model(clip, device="cpu", templates=TEMPLATES, class_names=["cat", "ant"])
        with pytest.raises(InputError, match=r"which was asked for 2 class names.*\(--class-names FILE\)"):
            fit(model, data)

    def test_a_model_of_texts_that_is_none(self, clip: Path, tmp_path: Path) -> None:
        shutil.copytree(clip, tmp_path / "net")
        (tmp_path / "net" / "tokenizer.json").unlink()
        with pytest.raises(InputError, match=r"hf:net: its tokeniser cannot be read"):
            open_model(tmp_path / "net", device="cpu")
        with pytest.raises(InputError, match="class 1 is called"):
            open_model(clip, device="cpu", class_names=["a", ""])
