"""Zero-shot models of open_clip, by the library itself: small ones with random weights."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from blemish.core.class_names import imagenet_names
from blemish.core.errors import InputError
from blemish.models.open import open_model
from blemish.models.open_clip_model import open_clip_preprocessing
from blemish.models.prompts import read_templates
from foreign import foreign

pytestmark = pytest.mark.slow

open_clip = foreign("open_clip")

TINY: dict[str, Any] = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}
# As SigLIP is built there: a text tower of its own, no scale of the start, a bias.
SIGMOID = TINY | {"custom_text": True, "init_logit_bias": -10}
NAMES = ("cat", "dog", "crane bird", "construction crane", "cat")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the weights of two small models, which open_clip knows by name from now on."""
    folder = tmp_path_factory.mktemp("open_clip")
    for name, settings in (("blemish-tiny", TINY), ("blemish-sigmoid", SIGMOID)):
        (folder / f"{name}.json").write_text(json.dumps(settings))
        open_clip.add_model_config(folder / f"{name}.json")
        torch.manual_seed(4)
        network = open_clip.create_model(name)
        torch.save(network.state_dict(), folder / f"{name}.pth")
        foreign("safetensors.torch").save_file(
            {key: value.contiguous() for key, value in network.state_dict().items()}, folder / f"{name}.safetensors"
        )
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def picture(height: int = 50, width: int = 71) -> Image.Image:
    levels = np.random.Generator(np.random.PCG64(5)).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(levels)


def as_batch(shown: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(shown)).permute(2, 0, 1)[None].contiguous()


def library_probabilities(name: str, file: Path) -> Tensor:
    """What open_clip's own functions for zero-shot evaluation give, with the scale that the model has learnt."""
    network, _, prepare = open_clip.create_model_and_transforms(name)
    network.load_state_dict(torch.load(file, weights_only=True))
    templates = [lambda name, template=template: template.replace("{}", name) for template in read_templates("simple")]
    with torch.inference_mode():
        vectors = open_clip.build_zero_shot_classifier(
            network.eval(), open_clip.get_tokenizer(name), NAMES, templates, num_classes_per_batch=2, use_tqdm=False
        )
        features = network.encode_image(prepare(picture())[None], normalize=True)
        return (network.logit_scale.exp() * features @ vectors).softmax(1)


@pytest.mark.parametrize("name", ["blemish-tiny", "blemish-sigmoid"])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_the_same_as_open_clip(weights: Path, name: str, suffix: str) -> None:
    file = weights / f"{name}{suffix}"
    model = open_model(f"open_clip:{name}", weights=file, device="cpu", templates="simple", class_names=NAMES)
    made = model(as_batch(picture()))
    assert torch.allclose(made, library_probabilities(name, weights / f"{name}.pth"), atol=1e-5)
    assert torch.equal(made[:, 0], made[:, 4])
    assert model.prompts is not None
    assert model.prompts.scale == pytest.approx(1 / 0.07, rel=1e-4)  # as training begins
    assert model.prompts.bias == (-10 if name == "blemish-sigmoid" else 0)
    assert (model.name, model.kind, model.classes) == (name, "open_clip", NAMES)
    assert model.card is not None
    assert model.card.parameters == sum(p.numel() for p in open_clip.create_model(name).parameters())


@pytest.mark.parametrize("shape", [(50, 71), (33, 200), (32, 32)])
@pytest.mark.parametrize("mode", ["shortest", "squash"])
def test_pixel_for_pixel(weights: Path, shape: tuple[int, int], mode: str) -> None:
    name = "blemish-tiny"
    _, _, prepare = open_clip.create_model_and_transforms(name, image_resize_mode=mode)
    model = open_model(f"open_clip:{name}", weights=weights / f"{name}.pth", device="cpu", class_names=["a"])
    preprocessing = model.preprocessing
    if mode == "squash":
        settings = {"size": 32, "mean": preprocessing.mean, "std": preprocessing.std, "resize_mode": "squash"}
        preprocessing, told = open_clip_preprocessing(settings)
        assert told is None
    assert torch.allclose(preprocessing(as_batch(picture(*shape))), prepare(picture(*shape))[None], atol=1e-5)


def test_imagenet_by_default(weights: Path) -> None:
    """The names of ImageNet that we ship are open_clip's own, and so are the templates."""
    assert imagenet_names() == tuple(open_clip.IMAGENET_CLASSNAMES)
    assert read_templates("openai") == tuple(template("{}") for template in open_clip.OPENAI_IMAGENET_TEMPLATES)
    assert read_templates("simple") == tuple(template("{}") for template in open_clip.SIMPLE_IMAGENET_TEMPLATES)
    model = open_model("open_clip:blemish-tiny", weights=weights / "blemish-tiny.pth", device="cpu", templates=["a {}"])
    assert model(as_batch(picture())).shape == (1, 1000)


def test_names_that_it_does_not_know() -> None:
    with pytest.raises(InputError, match="open_clip knows no model 'ViT-B-23'; did you mean ViT-B-32"):
        open_model("open_clip:ViT-B-23/openai")
    with pytest.raises(InputError, match=r"open_clip:ViT-B-16 has no weights 'laion'; expected .*laion2b_s34b_b88k"):
        open_model("open_clip:ViT-B-16/laion")
    with pytest.raises(InputError, match="open_clip:ViT-B-16 has no weights ''"):
        open_model("open_clip:ViT-B-16")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("ViT-B-32/openai", "ViT-B-32-quickgelu/openai"), ("ViT-L-14/dfn2b", "ViT-L-14-quickgelu/dfn2b")],
)
def test_the_wrong_activation(asked: str, meant: str) -> None:
    """Open_clip only warns of it; it costs accuracy without an error."""
    with pytest.raises(InputError, match=f"trained with another activation.*expected open_clip:{meant}"):
        open_model(f"open_clip:{asked}")


def test_weights_of_another_model(weights: Path) -> None:
    with pytest.raises(InputError, match="weights that do not fit the model"):
        open_model("open_clip:blemish-tiny", weights=weights / "blemish-sigmoid.pth", device="cpu")


def test_the_log_of_the_program_is_left_alone(weights: Path) -> None:
    """Open_clip logs to the root logger, whose first message would set it up."""
    root = logging.getLogger()
    before = list(root.handlers)
    open_model("open_clip:blemish-tiny", weights=weights / "blemish-tiny.pth", device="cpu", class_names=["a"])
    assert root.handlers == before
