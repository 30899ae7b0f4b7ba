"""ASR: when and where to reset, around ETA or ROID."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.studies.adaptation.base import Changing, Gradient, Optimiser, entropy
from blemish.studies.adaptation.eata import ETA
from blemish.studies.adaptation.roid import ROID

Base = Literal["eta", "roid"]

_KEPT = 0.9


class _Watched(Gradient):
    """A method whose steps also keep near weights of earlier times, and tell the gradients of its own loss."""

    keep: Any = None
    seen: Any = None

    def _step(self, loss: Tensor | None) -> None:
        if loss is not None:
            loss.backward()  # type: ignore[no-untyped-call]
            self.seen({name: value.grad for name, value in self.adapted.items()})
            penalty = self.keep()
            if penalty is not None:
                penalty.backward()
            self.optimiser.step()
        else:
            self.seen({})
        self.optimiser.zero_grad(set_to_none=True)


class _ETA(_Watched, ETA):
    name = "asr"


class _ROID(_Watched, ROID):
    name = "asr"


class ASR(Changing):
    """Adaptive and selective resets around a ``base`` method, eta or roid. Lim et al., ICLR 2026.

    After each step with logits z (before it, uncorrected): h = H(softmax(mean z)) over the batch, and φ is the share of
    images that the model as given classifies otherwise. Where h falls below its baseline ē, which starts at
    ln(``first`` C), the model is reset in part; else ē ← m ē + (1 − m) h with m = ``momentum`` φ + 1 − ``momentum``.

    A reset keeps the share max(``least`` − ``steep`` (ē − h), 0) of the adapted tensors, counted from the input: the
    others return to the source, the optimiser and the base's mean prediction start anew, and so does ē.

    What was learnt is not lost: at every step the squared gradients of the base's loss and the weights are summed up,
    and at a reset their means F and θ since the last one are folded into F̄ and θ̄ by 0.9 and 0.1 (the first as they
    are). From then on the loss has + λ Σ F̄ (θ − θ̄)², λ = ``recovery`` φ² of the batch before.

    Settings, as notes on the paper and the authors' code have them, for a ResNet-50 on CCC and ImageNet-C: momentum
    0.15, first 0.5, least 0.5, steep 20, recovery 5. ViT-B has others for each level of CCC, chosen on a part of it.
    For ``least`` 0.5 these shares are those of the paper, r = least + steep (ē − h) being reset. A batch of one image
    has no mean to speak of. Needs any normalisation layers.
    """

    name = "asr"
    parts = ("base",)
    memory: ClassVar[Mapping[str, Any]] = {
        "baseline": None,
        "weight": 0.0,
        "resets": 0,
        "steps": 0,
        "sums": {},
        "kept": {},
    }
    baseline: float | None
    weight: float
    resets: int
    steps: int
    sums: dict[str, dict[str, Tensor]]
    kept: dict[str, dict[str, Tensor]]

    def __init__(
        self,
        model: nn.Module,
        *,
        base: Base = "eta",
        momentum: float = 0.15,
        first: float = 0.5,
        least: float = 0.5,
        steep: float = 20.0,
        recovery: float = 5.0,
        optimiser: Optimiser | None = None,
        **settings: Any,
    ) -> None:
        if base not in get_args(Base):
            raise InputError(f"base {base!r} for ASR; expected one of {', '.join(get_args(Base))}")
        if not (0 <= momentum <= 1 and 0 < first <= 1 and 0 <= least <= 1 and steep >= 0 and recovery >= 0):
            given = f"momentum {momentum:g}, first {first:g}, least {least:g}, steep {steep:g}, recovery {recovery:g}"
            raise InputError(f"{given} for ASR; expected shares in 0 … 1, first above 0, and 0 or more for the others")
        kinds: dict[str, type[_Watched]] = {"eta": _ETA, "roid": _ROID}
        optimiser = optimiser or Optimiser(nesterov=True)  # of Döbler et al.'s repository, on which the code is built
        self.base = kinds[base](model, optimiser=optimiser, **settings)
        self.base.seen, self.base.keep = self._seen, self._penalty
        self.momentum, self.first, self.least, self.steep, self.recovery = momentum, first, least, steep, recovery
        self.model = self.base.model
        self.source = copy.deepcopy(self.model).requires_grad_(False)
        self._begin()

    def adapt(self, batch: Tensor) -> Tensor:
        """A step of the base; then a reset, if it is time."""
        logits = self.base.adapt(batch)
        with torch.inference_mode(False), torch.no_grad():
            z = self.base.logits
            h = float(entropy(z.mean(0, keepdim=True))[0])
            differs = float((self.source(batch).argmax(1) != z.argmax(1)).float().mean())
            if self.baseline is None:
                self.baseline = math.log(self.first * z.shape[1])
            share = self.momentum * differs + 1 - self.momentum
            self.weight = self.recovery * differs**2
            if h < self.baseline:
                self._reset_some(self.baseline - h)
                self.baseline = math.log(self.first * z.shape[1])
            else:
                self.baseline = share * self.baseline + (1 - share) * h
        return logits

    def predict(self, batch: Tensor) -> Tensor:
        """As the base predicts."""
        return self.base.predict(batch)

    def scale_rate(self, factor: float) -> None:
        """Multiply the learning rate, for good."""
        self.base.scale_rate(factor)

    def _seen(self, gradients: Mapping[str, Tensor | None]) -> None:
        """Sum up the squared gradients and the weights of this step."""
        self.steps += 1
        self.sums = self.sums or {
            what: {name: torch.zeros_like(value) for name, value in self.base.adapted.items()}
            for what in ("fisher", "weights")
        }
        for name, value in self.base.adapted.items():
            gradient = gradients.get(name)
            if gradient is not None:
                self.sums["fisher"][name] += gradient.detach() ** 2
            self.sums["weights"][name] += value.detach()

    def _penalty(self) -> Tensor | None:
        if not self.kept or self.weight == 0:
            return None
        fisher, before = self.kept["fisher"], self.kept["weights"]
        parts = [(fisher[n] * (value - before[n]) ** 2).sum() for n, value in self.base.adapted.items()]
        return self.weight * torch.stack(parts).sum()

    def _reset_some(self, fall: float) -> None:
        if self.steps:
            means = {what: {n: v / self.steps for n, v in sums.items()} for what, sums in self.sums.items()}
            if self.kept:
                for what, old in self.kept.items():
                    self.kept[what] = {n: _KEPT * v + (1 - _KEPT) * means[what][n] for n, v in old.items()}
            else:
                self.kept = means
        self.sums, self.steps = {}, 0
        names = list(self.base.adapted)
        stay = int(max(self.least - self.steep * fall, 0.0) * len(names))
        values = {name: self.base.adapted[name].detach().clone() for name in names[:stay]}
        self.base.reset()
        for name, value in values.items():
            self.base.adapted[name].copy_(value)
        self.resets += 1
