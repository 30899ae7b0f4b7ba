"""Zero-shot classifiers: a picture belongs to the class whose name, in many sentences, lies nearest to it.

For each class all sentences are encoded and brought to length one; their mean, brought to length one again, is the
vector of the class. A picture's logits are the cosines with these, times the scale that the model has learnt, plus its
bias if it has one.
"""

from __future__ import annotations

import hashlib
import io
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from blemish.core.errors import BlemishError, InputError, refused
from blemish.core.files import write_bytes
from blemish.core.user_folders import cache_folder
from blemish.models.base import Classifier, Preprocessing
from blemish.models.card import ModelCard
from blemish.models.hashing import DIGEST_SIZE, hash_state
from blemish.models.prompts import Prompts
from blemish.models.torch_module import from_module

_log = logging.getLogger(__name__)

# Sentences that are encoded together.
_TOGETHER = 512


@dataclass(frozen=True)
class Towers:
    """A model of pictures and texts, as its library made it.

    ``network`` holds all weights. ``tokens`` turns sentences into numbers, ``encode_text`` those into features;
    ``pictures`` is a module from prepared pictures to features. ``scale`` and ``bias`` make logits of cosines.
    """

    network: nn.Module
    tokens: Callable[[Sequence[str]], Tensor]
    encode_text: Callable[[Tensor], Tensor]
    pictures: nn.Module
    scale: float
    bias: float


class ZeroShot(nn.Module):
    """Logits of classes that are given as vectors. Classes of the same name have the same logits, bit for bit."""

    def __init__(self, pictures: nn.Module, vectors: Tensor, classes: Sequence[int], scale: float, bias: float) -> None:
        super().__init__()
        self.pictures, self.scale, self.bias = pictures, scale, bias
        self.register_buffer("vectors", vectors, persistent=False)
        self.register_buffer("classes", torch.tensor(classes), persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        """(B, classes)."""
        features = self.pictures(values)
        # Cosines of many classes lie within a few hundredths, which half a float cannot tell apart.
        with torch.autocast(values.device.type, enabled=False):
            cosines = functional.linear(functional.normalize(features.float(), dim=-1), self.vectors)  # type: ignore[arg-type]
            return (cosines * self.scale + self.bias)[:, self.classes]  # type: ignore[index]


def learnt_number(network: nn.Module, name: str, *, logarithm: bool = False) -> float:
    """A number that a model has learnt, such as its bias, 0 without one; the exponential of a ``logarithm``."""
    value = getattr(network, name, None)
    number = float(value.detach()) if isinstance(value, Tensor) else 0.0
    return math.exp(number) if logarithm else number


def zero_shot_classifier(
    towers: Towers,
    prompts: Prompts,
    *,
    name: str,
    kind: str,
    preprocessing: Preprocessing,
    card: ModelCard,
    device: torch.device,
) -> Classifier:
    """The classifier of the classes that are asked for.

    What its header calls weights is a digest of the model's own, of the prompts and of what the tokeniser makes of
    them. The vectors are none of it: they follow from these, but for the rounding of the device that computed them.
    """
    network = towers.network.eval().to(device)
    names = prompts.different_names
    probe = towers.tokens([prompts.templates[0].replace("{}", name) for name in names])
    said = prompts.describe(towers.scale, towers.bias)
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    for part in (hash_state(network.state_dict()), said.templates_digest, said.class_names_digest, kind):
        digest.update(part.encode())
    digest.update(probe.cpu().to(torch.int64).numpy().tobytes())
    weights = digest.hexdigest()
    vectors = _kept(f"model {name}", weights, len(names), lambda: _class_vectors(towers, prompts, device))
    number_of = {name: number for number, name in enumerate(names)}
    classes = [number_of[name] for name in prompts.names]
    module = ZeroShot(towers.pictures, vectors.to(device), classes, towers.scale, towers.bias)
    model = from_module(module, name=name, preprocessing=preprocessing, device=device)
    return replace(model, kind=kind, weights=weights, classes=prompts.names, card=card, prompts=said)


@torch.no_grad()  # not inference mode, whose tensors no gradient could ever pass
def _class_vectors(towers: Towers, prompts: Prompts, device: torch.device) -> Tensor:
    """(different names, features), float32 on the CPU."""
    names, count = prompts.different_names, len(prompts.templates)
    together = max(1, _TOGETHER // count)
    parts: list[Tensor] = []
    _log.info("encoding %d sentences about %d classes", len(names) * count, len(names))
    start = time.perf_counter()
    for first in range(0, len(names), together):
        texts = [text for name in names[first : first + together] for text in prompts.texts(name)]
        parted = (texts[at : at + _TOGETHER] for at in range(0, len(texts), _TOGETHER))
        encoded = [towers.encode_text(towers.tokens(part).to(device)) for part in parted]
        features = functional.normalize(torch.cat(encoded).float(), dim=-1)
        means = features.view(-1, count, features.shape[-1]).mean(1)
        parts.append(functional.normalize(means, dim=-1).cpu())
    _log.info("the sentences were encoded in %.1f s", time.perf_counter() - start)
    return torch.cat(parts)


def _kept(model: str, key: str, count: int, make: Callable[[], Tensor]) -> Tensor:
    """Class vectors from an earlier time, or new ones, kept for the next; where nothing can be written, without."""
    path = cache_folder() / "class-vectors" / f"{key}.npy"
    try:
        if path.is_file():
            kept = torch.from_numpy(np.load(io.BytesIO(path.read_bytes()), allow_pickle=False))
            if kept.ndim == 2 and len(kept) == count and kept.dtype == torch.float32 and bool(kept.isfinite().all()):
                _log.debug("class vectors of %s come from %s", model, path)
                return kept
    except (OSError, ValueError, EOFError) as error:
        _log.info("%s cannot be read (%s); the vectors are computed again", path, error)
    with refused(f"{model}: its sentences cannot be encoded"):
        vectors = make()
    if not bool(vectors.isfinite().all()):
        raise InputError(f"{model}: sentences whose features are not numbers; are its weights right?")
    buffer = io.BytesIO()
    np.save(buffer, vectors.numpy())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, buffer.getvalue())
    except (OSError, BlemishError) as error:
        _log.info("class vectors of %s are not kept (%s)", model, error)
    return vectors
