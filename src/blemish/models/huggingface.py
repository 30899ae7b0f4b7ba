"""``hf:ORG/NAME`` and folders that transformers has saved: classifiers, and zero-shot models (CLIP, SigLIP)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.core.printable import first_few
from blemish.models.base import Classifier, Preprocessing
from blemish.models.by_name import import_library
from blemish.models.card import ModelCard, count_parameters, training_card
from blemish.models.hf_files import explained, read_config, read_network, read_processor
from blemish.models.hf_processor import processor_preprocessing
from blemish.models.hub import Snapshot, snapshot
from blemish.models.prompts import Prompts
from blemish.models.torch_module import from_module
from blemish.models.zero_shot import Towers, learnt_number, zero_shot_classifier

_SHOWN = 3

_OF_TIMM = "timm_wrapper"

KIND = "transformers"


def load_hf(
    name: str, *, weights: Path | None, device: torch.device, prompts: Prompts, allow_code: bool = False
) -> Classifier:
    """``hf:NAME``, a folder or a model of the hub, with its own weights or those of a file; code in it is never run."""
    import_library("transformers")
    saved = snapshot(name, weights=weights is None, allow_code=allow_code)
    config = read_config(saved)
    kinds = list(config.architectures or ())
    # timm's models on the hub do not say so, and all have classes.
    classifies = config.model_type == _OF_TIMM or any(kind.endswith("ForImageClassification") for kind in kinds)
    if not classifies and not hasattr(config, "text_config"):
        named = first_few(kinds or [config.model_type], _SHOWN)
        raise InputError(
            f"hf:{name}: a {named}, which tells no classes apart; expected a …ForImageClassification, or a model of "
            "pictures and texts such as CLIP"
        )
    network = read_network(saved, config, "AutoModelForImageClassification" if classifies else "AutoModel", weights)
    preprocessing = processor_preprocessing(f"hf:{name}", read_processor(saved))
    card = _card(saved, network, preprocessing)
    if weights is not None:
        card = replace(card, claims=())  # they are about other weights
    if not classifies:
        towers = _towers(saved, config, network)
        return zero_shot_classifier(
            towers, prompts, name=saved.name, kind=KIND, preprocessing=preprocessing, card=card, device=device
        )
    model = from_module(Scores(network), name=saved.name, preprocessing=preprocessing, device=device)
    return replace(model, kind=KIND, classes=_class_names(config), card=card)


def _card(saved: Snapshot, network: nn.Module, preprocessing: Preprocessing) -> ModelCard:
    """What the README says; else the name, which many zero-shot models have their training set in."""
    known = {
        "parameters": count_parameters(network),
        "input_size": preprocessing.size,
        "source": f"hf:{saved.name}",
        "revision": saved.revision,
        "claims": saved.claims(),
    }
    said = training_card(saved.datasets(), "its README", **known)
    return said if said.training_data else training_card([saved.name], "its name", **known)


class Scores(nn.Module):
    """The scores of a network of transformers, which gives more than them and takes pictures by a name."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, values: Tensor) -> Tensor:
        """Logits (B, classes)."""
        return self.network(pixel_values=values).logits  # type: ignore[no-any-return]


class PictureFeatures(nn.Module):
    """The features of pictures, by a network of transformers."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, values: Tensor) -> Tensor:
        """(B, features)."""
        return _features(self.network.get_image_features(pixel_values=values))  # type: ignore[operator]


def _features(given: Any) -> Tensor:
    """Features, which newer versions of transformers give among other things."""
    return given if isinstance(given, Tensor) else given.pooler_output


def _towers(saved: Snapshot, config: Any, network: Any) -> Towers:
    wanted = ("get_text_features", "get_image_features", "logit_scale")
    if missing := [name for name in wanted if not hasattr(network, name)]:
        raise InputError(
            f"hf:{saved.name}: a {type(network).__name__}, which has no {missing[0]}; expected a zero-shot model such "
            "as CLIP or SigLIP"
        )
    # SigLIP was trained with sentences that are filled up to full length, and looks at all of it.
    whole = str(config.model_type).startswith("siglip")

    def encode_text(tokens: Tensor) -> Tensor:
        numbers, mask = tokens.unbind(1)
        more = {} if whole else {"attention_mask": mask}
        return _features(network.get_text_features(input_ids=numbers, **more))

    return Towers(
        network=network,
        tokens=_tokeniser(saved, config, whole=whole),
        encode_text=encode_text,
        pictures=PictureFeatures(network),
        scale=learnt_number(network, "logit_scale", logarithm=True),
        bias=learnt_number(network, "logit_bias"),
    )


def _tokeniser(saved: Snapshot, config: Any, *, whole: bool) -> Callable[[Sequence[str]], Tensor]:
    """From sentences to (B, 2, length): numbers of words, and which of them count; ``whole`` fills up the length."""
    transformers = import_library("transformers")
    with explained(saved, "its tokeniser cannot be read"):
        tokeniser = transformers.AutoTokenizer.from_pretrained(saved.folder, trust_remote_code=False)
    longest = int(config.text_config.max_position_embeddings)

    def tokens(texts: Sequence[str]) -> Tensor:
        made = tokeniser(
            list(texts),
            padding="max_length" if whole else True,
            truncation=True,
            max_length=min(longest, int(tokeniser.model_max_length)),
            return_attention_mask=True,
            return_tensors="pt",
        )
        return torch.stack([made["input_ids"], made["attention_mask"]], dim=1)

    return tokens


def _class_names(config: Any) -> tuple[str, ...] | None:
    """The names of the outputs; none where transformers has numbered them itself."""
    names = dict(getattr(config, "id2label", None) or {})
    listed = [names.get(number) for number in range(len(names))]
    if not listed or any(not isinstance(name, str) or re.fullmatch(r"LABEL_\d+", name) for name in listed):
        return None
    return tuple(str(name) for name in listed)
