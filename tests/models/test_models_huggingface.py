"""Models of transformers, by the library itself: small ones with random weights, and nothing is downloaded."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from blemish.core.errors import InputError, StorageError
from blemish.evaluation.executors import Processes
from blemish.models.hf_processor import processor_preprocessing
from blemish.models.open import open_model
from blemish.models.torch_module import from_module
from execution_jobs import pictures as pictures_of_workers
from foreign import foreign
from hf_folders import NAMES, in_a_worker, processor, save_resnet
from toy_runs import benchmark, evaluate, source

pytestmark = pytest.mark.slow

transformers = foreign("transformers")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "small"
    save_resnet(folder)
    return folder


def pictures(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.Generator(np.random.PCG64(1)).integers(0, 256, (*shape, 3), dtype=np.uint8)


def as_batch(levels: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.from_numpy(levels).permute(2, 0, 1)[None].contiguous()


# Settings of models that many people use, made smaller: ResNet and ConvNeXt, ConvNeXt of 384, ViT and Swin, DINOv2,
# BEiT, DeiT, EfficientNet, LeViT, MobileNet, MobileViT (blue first), CLIP, SigLIP.
PROCESSORS: list[tuple[str, dict[str, Any]]] = [
    ("ConvNextImageProcessor", {"size": {"shortest_edge": 32}, "crop_pct": 0.875, "resample": 3}),
    ("ConvNextImageProcessor", {"size": {"shortest_edge": 384}, "crop_pct": 0.875, "resample": 3}),
    ("ViTImageProcessor", {"size": {"height": 32, "width": 24}, "image_mean": [0.485, 0.456, 0.406], "resample": 3}),
    ("ViTImageProcessor", {"size": {"height": 32, "width": 24}, "do_normalize": False, "do_rescale": False}),
    ("BitImageProcessor", {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}),
    ("BeitImageProcessor", {"size": {"height": 36, "width": 36}, "crop_size": 32, "do_center_crop": True}),
    ("DeiTImageProcessor", {"size": {"height": 37, "width": 37}, "crop_size": {"height": 32, "width": 32}}),
    ("EfficientNetImageProcessor", {"size": {"height": 33, "width": 33}, "resample": 0}),
    ("EfficientNetImageProcessor", {"rescale_factor": 1 / 127.5, "rescale_offset": True, "resample": 3}),
    ("LevitImageProcessor", {"size": {"shortest_edge": 28}, "crop_size": {"height": 28, "width": 28}}),
    ("MobileNetV2ImageProcessor", {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}),
    ("MobileViTImageProcessor", {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}),
    ("CLIPImageProcessor", {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}),
    ("SiglipImageProcessor", {"size": {"height": 32, "width": 32}}),
]


class TestProcessors:
    @pytest.mark.parametrize("shape", [(53, 71), (300, 420), (60, 41)])
    @pytest.mark.parametrize(("name", "settings"), PROCESSORS)
    def test_pixel_for_pixel(self, name: str, settings: dict[str, Any], shape: tuple[int, int]) -> None:
        """With Pillow, as processors were when most models were published: every value is the processor's own.

        But for upright pictures, which newer versions of Pillow resize row by row first where that is quicker: one
        level, and more where bicubic overshoot is cut off in between, which noise from black to white provokes.
        """
        theirs = processor(name, **settings)
        ours = processor_preprocessing("m", theirs)
        levels = pictures(*shape)
        expected = theirs(images=levels, return_tensors="pt")["pixel_values"]
        made = ours(as_batch(levels))
        assert made.shape == expected.shape
        spread = torch.tensor(ours.std).view(1, -1, 1, 1) * 255
        difference = ((made - expected) * spread).abs()
        if shape[0] < shape[1]:
            assert float(difference.max()) < 1e-3  # of a level
        else:
            assert float(difference.mean()) < 0.5

    @pytest.mark.parametrize(("name", "settings"), [entry for entry in PROCESSORS if entry[1].get("resample") != 0])
    def test_with_torchvision(self, name: str, settings: dict[str, Any]) -> None:
        """The fast processors resize by torchvision, which rounds otherwise: by two levels at most.

        The nearest pixel is not among them: where a centre lies on an edge, torchvision takes the other neighbour.
        """
        foreign("torchvision")
        ours = processor_preprocessing("m", processor(name, **settings))
        theirs = processor(name, with_torchvision=True, **settings)
        levels = pictures(300, 420)
        expected = theirs(images=levels, return_tensors="pt")["pixel_values"]
        difference = (ours(as_batch(levels)) - expected) * torch.tensor(ours.std).view(1, -1, 1, 1) * 255
        assert float(difference.abs().max()) < 2.1
        assert float(difference.abs().mean()) < 0.5

    def test_what_does_something_else_is_refused(self) -> None:
        """PoolFormer's crop_pct is not ConvNeXt's."""
        with pytest.raises(
            InputError, match=r"m: its PoolFormerImageProcessor.* prepares pictures in a way .* python:"
        ):
            processor_preprocessing("m", processor("PoolFormerImageProcessor"))
        with pytest.raises(InputError, match=r"\(Pillow's filter 1, which is none of nearest \(0\), bilinear \(2\)"):
            processor_preprocessing("m", processor("ViTImageProcessor", resample=1))


class TestFolders:
    def test_the_same_as_transformers(self, saved: Path) -> None:
        model = open_model(saved, device="cpu")
        network = transformers.AutoModelForImageClassification.from_pretrained(saved).eval()
        levels = pictures(50, 64)
        values = processor("ConvNextImageProcessor", size={"shortest_edge": 32})(images=levels, return_tensors="pt")
        with torch.inference_mode():
            expected = network(**values).logits.softmax(1)
        assert torch.allclose(model(as_batch(levels)), expected, atol=1e-5)
        assert (model.name, model.kind, model.classes) == ("small", "transformers", NAMES)
        assert model.preprocessing.size == (32, 32)
        assert model.assumed is None
        assert model.card is not None
        assert model.card.parameters == sum(p.numel() for p in network.parameters())
        assert (model.card.input_size, model.card.revision, model.card.web_scale) == ((32, 32), None, None)

    def test_other_ways_to_name_it(self, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shutil.copytree(saved, tmp_path / "here")
        (tmp_path / "m.toml").write_text('model = "here"\nname = "mine"\nsize = 48\n')
        weights = open_model(saved, device="cpu").weights
        described = open_model(tmp_path / "m.toml", device="cpu")
        monkeypatch.chdir(tmp_path)
        assert [described.weights, open_model("hf:here", device="cpu").weights] == [weights, weights]
        assert (described.name, described.preprocessing.size) == ("mine", (48, 48))
        assert described.preprocessing.resizing is not None
        assert described.preprocessing.resizing.to == 48

    def test_numbered_classes_have_no_names(self, tmp_path: Path) -> None:
        save_resnet(tmp_path, names=("LABEL_0", "LABEL_1"))
        assert open_model(tmp_path, device="cpu").classes is None

    def test_training_data_of_the_readme(self, saved: Path, tmp_path: Path) -> None:
        shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
        (tmp_path / "README.md").write_text("---\ndatasets:\n- imagenet-21k\n- laion/laion2B-en\n---\n# A model\n")
        card = open_model(tmp_path, device="cpu").card
        assert card is not None
        assert (card.training_data, card.said_by, card.web_scale) == (("ImageNet-21k", "LAION-2B"), "its README", True)
        (tmp_path / "README.md").write_text("---\ndatasets: [\n---\n")
        assert open_model(tmp_path, device="cpu").card == replace(card, training_data=(), said_by="", web_scale=None)

    def test_accuracies_of_the_readme(self, saved: Path, tmp_path: Path) -> None:
        shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
        result = "- dataset: {type: imagenet-1k, name: ImageNet}\n    metrics:\n"
        lines = [f"    - {{type: {kind}, value: {value}}}" for kind, value in (("accuracy", 80.5), ("f1", 0.7))]
        index = "---\nmodel-index:\n- name: x\n  results:\n  " + result + "\n".join(lines) + "\n---\n"
        (tmp_path / "README.md").write_text(index)
        card = open_model(tmp_path, device="cpu").card
        assert card is not None
        (claim,) = card.claims
        assert (claim.data, claim.accuracy, claim.said_by) == ("imagenet-1k", 0.805, "its README")
        (tmp_path / "README.md").write_text("---\nmodel-index: 3\n---\n")
        assert open_model(tmp_path, device="cpu").card == replace(card, claims=())
        (tmp_path / "README.md").write_text(index)
        other = save_resnet(tmp_path / "other", seed=5)
        torch.save(other.state_dict(), tmp_path / "other.pth")
        with_others = open_model(tmp_path, weights=tmp_path / "other.pth", device="cpu").card
        assert with_others is not None
        assert with_others.claims == ()

    @pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
    def test_weights_of_a_file(self, saved: Path, tmp_path: Path, suffix: str) -> None:
        other = save_resnet(tmp_path / "other", seed=5)
        file = tmp_path / f"other{suffix}"
        if suffix == ".pth":
            torch.save(other.state_dict(), file)
        else:
            foreign("safetensors.torch").save_file(dict(other.state_dict()), file)
        model = open_model(saved, weights=file, device="cpu")
        assert model.weights == open_model(tmp_path / "other", device="cpu").weights
        assert model.weights != open_model(saved, device="cpu").weights


def test_timm_s_models_on_the_hub(tmp_path: Path) -> None:
    """They have settings of their own, which transformers hands to timm; class names are ImageNet's."""
    timm = foreign("timm")
    foreign("torchvision")
    folder = tmp_path / "resnet18.a1_in1k"
    folder.mkdir()
    network = timm.create_model(folder.name, pretrained=False)
    foreign("safetensors.torch").save_file(
        dict(network.state_dict()), folder / "model.safetensors", metadata={"format": "pt"}
    )
    plain = {name: value for name, value in network.pretrained_cfg.items() if isinstance(value, str | float | tuple)}
    said = {"architecture": "resnet18", "num_classes": 1000, "num_features": 512, "pretrained_cfg": plain}
    (folder / "config.json").write_text(json.dumps(said))
    model = open_model(folder, device="cpu")
    assert model.preprocessing == replace(from_module(network).preprocessing, channels="rgb")
    assert model.classes is not None
    assert (len(model.classes), model.classes[0].split(",")[0]) == (1000, "tench")
    assert model.card is not None
    assert model.card.training_data == ("ImageNet-1k",)
    levels = as_batch(pictures(224, 224))
    assert torch.allclose(model(levels), from_module(network)(levels), atol=1e-5)


class TestRefusals:
    def test_pickled_weights(self, saved: Path, tmp_path: Path) -> None:
        shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
        (tmp_path / "model.safetensors").unlink()
        with pytest.raises(InputError, match=r"no weights in .*; expected model.safetensors"):
            open_model(tmp_path, device="cpu")
        network = transformers.AutoModelForImageClassification.from_pretrained(saved)
        torch.save(network.state_dict(), tmp_path / "pytorch_model.bin")
        with pytest.raises(InputError, match=r"weights are a pickle \(pytorch_model.bin\).*--allow-code"):
            open_model(tmp_path, device="cpu")
        allowed = open_model(tmp_path, device="cpu", allow_code=True)
        assert allowed.weights == open_model(saved, device="cpu").weights

    def test_code_of_the_model_is_never_run(self, saved: Path, tmp_path: Path) -> None:
        shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
        (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
        config = json.loads((tmp_path / "config.json").read_text())
        names = {"AutoConfig": "own.Config", "AutoModelForImageClassification": "own.Net"}
        (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "own", "auto_map": names}))
        for allow_code in (False, True):
            with pytest.raises(InputError, match="it needs code of its own, which is never run"):
                open_model(tmp_path, device="cpu", allow_code=allow_code)
        assert not (tmp_path / "ran").exists()

    def test_a_head_that_nobody_trained(self, saved: Path, tmp_path: Path) -> None:
        """Transformers would give it random weights, and chance would pass for a result."""
        shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
        library = foreign("safetensors.torch")
        state = library.load_file(tmp_path / "model.safetensors")
        kept = {name: values for name, values in state.items() if not name.startswith("classifier")}
        library.save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(InputError, match=r"no weights for 2 of its parameters \(classifier.1.bias.*random"):
            open_model(tmp_path, device="cpu")

    def test_a_network_without_classes(self, saved: Path, tmp_path: Path) -> None:
        shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
        config = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["ResNetModel"]}))
        with pytest.raises(InputError, match="a ResNetModel, which tells no classes apart"):
            open_model(tmp_path, device="cpu")

    def test_folders_and_files_that_are_none(self, saved: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"no config.json in .*; expected a model that transformers has saved"):
            open_model(tmp_path, device="cpu")
        with pytest.raises(InputError, match=r"weights alone, .* its folder .* can be given"):
            open_model(saved / "model.safetensors", device="cpu")
        shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
        (tmp_path / "preprocessor_config.json").unlink()
        with pytest.raises(InputError, match="its image processor cannot be read"):
            open_model(tmp_path, device="cpu")
        (tmp_path / "model.safetensors").write_bytes(b"\x05\0\0\0\0\0\0\0{}")
        with pytest.raises(InputError, match="its weights cannot be read"):
            open_model(tmp_path, device="cpu")
        with pytest.raises(InputError, match=r"not a readable .safetensors file"):
            open_model(saved, weights=tmp_path / "model.safetensors", device="cpu")
        (tmp_path / "config.json").write_text("{")
        with pytest.raises(InputError, match="its settings cannot be read"):
            open_model(tmp_path, device="cpu")


class TestHub:
    COMMIT = "0123456789abcdef0123456789abcdef01234567"

    @pytest.fixture
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A cache of the hub's as the library keeps it, and no way to the hub."""
        constants = foreign("huggingface_hub.constants")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        return tmp_path

    def test_what_was_fetched_before(self, saved: Path, cache: Path) -> None:
        folder = cache / "models--someone--small"
        shutil.copytree(saved, folder / "snapshots" / self.COMMIT)
        (folder / "refs").mkdir()
        (folder / "refs" / "main").write_text(self.COMMIT)
        for name in ("hf:someone/small", f"hf:someone/small@{self.COMMIT}"):
            model = open_model(name, device="cpu")
            assert model.name == "someone/small"
            assert model.weights == open_model(saved, device="cpu").weights
            assert model.card is not None
            assert (model.card.source, model.card.revision) == ("hf:someone/small", self.COMMIT)

    @pytest.mark.usefixtures("cache")
    def test_without_a_network(self) -> None:
        with pytest.raises(StorageError, match=r"hf:someone/small: could not be fetched .*copy its folder"):
            open_model("hf:someone/small", device="cpu")


def test_on_a_gpu(saved: Path, device: torch.device) -> None:
    levels = as_batch(pictures(50, 64))
    here, there = open_model(saved, device="cpu"), open_model(saved, device=device)
    assert here.weights == there.weights
    assert torch.allclose(here(levels), there(levels).cpu(), atol=1e-3)


class TestRuns:
    def test_workers_and_changed_weights(self, saved: Path, tmp_path: Path) -> None:
        shutil.copytree(saved, tmp_path / "net")
        wanted = benchmark("contrast@1", "brightness@2")
        data = replace(pictures_of_workers(12), classes=NAMES)
        alone = evaluate(open_model(tmp_path / "net", device="cpu"), data, wanted, out=tmp_path / "a")
        model = open_model(tmp_path / "net", device="cpu")
        assert model.reopen is not None
        model = replace(model, reopen=partial(in_a_worker, model.reopen))
        shared = evaluate(model, data, wanted, out=tmp_path / "b", executor=Processes(1, threads=1))
        for condition in wanted.conditions:
            assert np.array_equal(alone.records(condition).top5, shared.records(condition).top5)
        save_resnet(tmp_path / "net", seed=9)
        with pytest.raises(InputError, match=r"model\.weights was"):
            evaluate(open_model(tmp_path / "net", device="cpu"), data, wanted, out=tmp_path / "a")

    def test_classes_by_name(self, saved: Path, tmp_path: Path) -> None:
        """Data that numbers the model's classes in another order is refused."""
        data = replace(source(12), classes=NAMES[::-1])
        with pytest.raises(InputError, match=r"6 have other numbers \('gnu' is 0 here and 6 there"):
            evaluate(open_model(saved, device="cpu"), data, benchmark("contrast@1"), out=tmp_path)
