"""Small models of transformers with random weights, saved as anyone saves theirs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from blemish.models.base import Classifier
from foreign import foreign, let_torchvision_be_imported

_WORDS = ("a", "an", "the", "photo", "of", "red", "green", "blue", "big", "small", "animal")
NAMES = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu")


def processor(name: str, *, with_torchvision: bool = False, **settings: Any) -> Any:
    """An image processor by the name it has in files, that works with Pillow or with torchvision.

    Version 5 of transformers has a class for each; before it, those for torchvision were called fast.
    """
    transformers = foreign("transformers")
    if int(transformers.__version__.split(".")[0]) >= 5:
        return getattr(transformers, name if with_torchvision else f"{name}Pil")(**settings)
    return getattr(transformers, f"{name}Fast" if with_torchvision else name)(**settings)


def in_a_worker(reopen: Callable[[torch.device], Classifier], device: torch.device) -> Classifier:
    """Open a model in a process that the stand-ins for torchvision's operators have not reached yet."""
    let_torchvision_be_imported()
    return reopen(device)


def save_quietly(made: Any, folder: Path) -> None:
    logging = foreign("transformers").utils.logging
    logging.disable_progress_bar()
    made.save_pretrained(folder)


def save_resnet(folder: Path, *, names: tuple[str, ...] = NAMES, seed: int = 0, **more: Any) -> Any:
    """A residual network of a few thousand parameters for pictures of 32×32, with ConvNeXt's processor as usual."""
    transformers = foreign("transformers")
    torch.manual_seed(seed)
    config = transformers.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16],
        depths=[1, 1],
        layer_type="basic",
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
        **more,
    )
    network = transformers.ResNetForImageClassification(config).eval()
    save_quietly(network, folder)
    save_quietly(processor("ConvNextImageProcessor", size={"shortest_edge": 32}), folder)
    return network


def save_tokeniser(folder: Path, *, ends: bool) -> None:
    """A tokeniser of whole words for a few sentences; with ``ends`` they begin and end with marks, as CLIP's do."""
    transformers, tokenizers = foreign("transformers"), foreign("tokenizers")
    words = ["[PAD]", "[UNK]", "[BOS]", *_WORDS, *NAMES, "[EOS]"]
    numbers = {word: number for number, word in enumerate(words)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if ends:
        marks = [(mark, numbers[mark]) for mark in ("[BOS]", "[EOS]")]
        made.post_processor = tokenizers.processors.TemplateProcessing(single="[BOS] $A [EOS]", special_tokens=marks)
    kept = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", bos_token="[BOS]", eos_token="[EOS]"
    )
    kept.save_pretrained(folder)


def save_clip(folder: Path, kind: str, *, seed: int = 0) -> Any:
    """A CLIP or SigLIP for pictures of 32×32 and sentences of twelve words, with random weights."""
    transformers = foreign("transformers")
    torch.manual_seed(seed)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = {**sizes, "vocab_size": 25, "max_position_embeddings": 12, "pad_token_id": 0, "bos_token_id": 2}
    text |= {"eos_token_id": 21, "projection_size": 16}
    picture = {**sizes, "image_size": 32, "patch_size": 16}
    if kind == "clip":
        config = transformers.CLIPConfig(text_config=text, vision_config=picture, projection_dim=12)
        network = transformers.CLIPModel(config)
        square = {"height": 32, "width": 32}
        save_quietly(processor("CLIPImageProcessor", size={"shortest_edge": 32}, crop_size=square), folder)
    else:
        network = transformers.SiglipModel(transformers.SiglipConfig(text_config=text, vision_config=picture))
        with torch.no_grad():
            network.logit_scale.fill_(4.7)  # about what SigLIP's training ends with: 110 and −13
            network.logit_bias.fill_(-13.0)
        save_quietly(processor("SiglipImageProcessor", size={"height": 32, "width": 32}), folder)
    save_quietly(network.eval(), folder)
    save_tokeniser(folder, ends=kind == "clip")
    return network.eval()
