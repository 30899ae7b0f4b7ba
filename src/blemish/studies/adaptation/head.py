"""Methods that look at the features before the last linear layer, and change no weight before it: T3A and LAME."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from blemish.core.errors import InputError
from blemish.studies.adaptation.base import entropy
from blemish.studies.adaptation.features import is_end
from blemish.studies.adaptation.gradient_free import Unadapted
from blemish.studies.adaptation.norm import UnsuitedError

Affinity = Literal["rbf", "knn", "linear"]


class Headed(Unadapted):
    """A method that needs a linear head: a layer whose outputs are the network's scores, and whose inputs are features.

    Which layer that is shows when the network is run: on ``sample``, one or more images, or else on the first batch.
    The network has its statistics of training, and is in evaluation mode.
    """

    name = "headed"

    def __init__(self, model: nn.Module, *, sample: Tensor | None = None) -> None:
        super().__init__(model)
        self._head: nn.Linear | None = None
        self._linear = [layer for layer in self.model.modules() if isinstance(layer, nn.Linear)]
        if not self._linear:
            raise self._unsuited()
        if sample is not None:
            self._split(sample)

    def _unsuited(self) -> UnsuitedError:
        return UnsuitedError(self.name, "needs a", "linear layer at its end", self.model)

    def _split(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """Features (B, width) and logits (B, classes)."""
        seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        layers = self._linear if self._head is None else [self._head]
        hooks = [layer.register_forward_hook(lambda of, x, y: seen.update({of: (x[0], y)})) for layer in layers]
        try:
            logits = self._plain(batch)
        finally:
            for hook in hooks:
                hook.remove()
        if self._head is None:
            ends = [layer for layer in layers if layer in seen and is_end(seen[layer][1], logits)]
            if not ends:
                raise self._unsuited()
            self._head = ends[-1]
        return seen[self._head][0].to(torch.float32), logits


class T3A(Headed):
    """Classify by prototypes that are made of the stream. Iwasawa and Matsuo, NeurIPS 2021.

    Each class has a set of features, its supports; the network's class of a feature z decides whose it is. At first
    they are the rows of the head's weights, classified by the head like features. Every batch is added before it
    is predicted, and of each class the ``keep`` supports S of lowest entropy stay. With z̄ = z / ‖z‖ a class has the
    weights w = Σ_S z̄ / ‖Σ_S z̄‖, and the score z · w; one that has no support has the score 0.

    ``keep``: the paper chooses among 1, 5, 20, 50, 100 and ``all``; 20 for ImageNet and CIFAR-100 and 100 for CIFAR-10
    are the best of Yu et al.'s comparison (Benchmark-TTA). With ``all-released`` the support of highest entropy of
    every class is dropped at every batch, as happens in the released code where all are asked for. With ``all`` the
    state grows without end. Needs a linear head.
    """

    name = "t3a"
    memory: ClassVar[Mapping[str, Any]] = {"supports": None}
    supports: dict[str, Tensor] | None

    def __init__(self, model: nn.Module, *, keep: int | str = 20, sample: Tensor | None = None) -> None:
        if keep not in ("all", "all-released") and (isinstance(keep, str) or keep < 1):
            raise InputError(f"keep {keep!r} for T3A; expected a number of 1 or more, all or all-released")
        self.keep = keep
        super().__init__(model, sample=sample)

    def adapt(self, batch: Tensor) -> Tensor:
        """Add the batch to the supports, then predict."""
        with torch.inference_mode(False), torch.no_grad():
            features, logits = self._split(batch)
            classes = logits.shape[1]
            supports = self._first(classes) if self.supports is None else self.supports
            new = _described(features, logits)
            self.supports = self._kept({key: torch.cat([value, new[key]]) for key, value in supports.items()})
            return _scores(features, self.supports, classes)

    def predict(self, batch: Tensor) -> Tensor:
        """By the supports there are; the network's own scores before there are any."""
        with torch.inference_mode(False), torch.no_grad():
            features, logits = self._split(batch)
            return logits if self.supports is None else _scores(features, self.supports, logits.shape[1])

    def _first(self, classes: int) -> dict[str, Tensor]:
        assert self._head is not None
        rows = self._head.weight.detach()[-classes:].to(torch.float32)
        bias = 0.0 if self._head.bias is None else self._head.bias.detach()[-classes:].to(torch.float32)
        return _described(rows, rows @ rows.T + bias)

    def _kept(self, supports: dict[str, Tensor]) -> dict[str, Tensor]:
        """The supports that stay: by class, and in a class by entropy."""
        order = supports["entropy"].argsort(stable=True)
        order = order[supports["label"][order].argsort(stable=True)]
        label = supports["label"][order]
        counts = torch.bincount(label)
        order_in_class = torch.arange(len(label), device=label.device) - (counts.cumsum(0) - counts)[label]
        if self.keep == "all-released":
            order = order[order_in_class < counts[label] - 1]
        elif isinstance(self.keep, int):
            order = order[order_in_class < self.keep]
        return {key: value[order] for key, value in supports.items()}


def _scores(features: Tensor, supports: dict[str, Tensor], classes: int) -> Tensor:
    # The supports are in the order of their classes.
    counts = torch.bincount(supports["label"], minlength=classes)
    sums = torch.segment_reduce(supports["feature"], "sum", lengths=counts, initial=0.0)
    return features @ F.normalize(sums, dim=1).T


def _described(features: Tensor, logits: Tensor) -> dict[str, Tensor]:
    return {"feature": F.normalize(features, dim=1), "label": logits.argmax(1), "entropy": entropy(logits)}


class LAME(Headed):
    """Correct the predictions of a batch towards those of its like. Boudiaf et al., CVPR 2022.

    With p the network's probabilities, u = ln(p + 1e-10) and W the affinities of the batch, start from Y = softmax(u)
    and repeat Y ← softmax(u + W Y), which lowers the bound E = Σ (−u Y − (W Y_before) Y + Y ln Y), until E changes by
    at most 1e-8 of itself, and at most ``rounds`` (100) times. The logits given are ln Y. No parameter changes, and
    nothing is kept between batches. W is made of the features, each of length 1; see `affinity`.

    ``kind`` rbf and ``neighbours`` 5 are those of Döbler et al.'s repository for every data set. The authors choose
    among rbf, knn and linear with 1, 3 and 5, on batches of 64 whose labels are correlated, which is what it is for; on
    batches that are not, Yu et al. (Benchmark-TTA) found knn with 1 best. Needs the features before a linear head.
    """

    name = "lame"

    def __init__(
        self,
        model: nn.Module,
        *,
        kind: Affinity = "rbf",
        neighbours: int = 5,
        rounds: int = 100,
        sample: Tensor | None = None,
    ) -> None:
        if kind not in get_args(Affinity):
            raise InputError(f"affinity {kind!r} for LAME; expected one of {', '.join(get_args(Affinity))}")
        if neighbours < 1 or rounds < 1:
            raise InputError(f"{neighbours} neighbours and {rounds} rounds for LAME; expected at least 1 of each")
        self.kind, self.neighbours, self.rounds = kind, neighbours, rounds
        super().__init__(model, sample=sample)

    def adapt(self, batch: Tensor) -> Tensor:
        """Predict, then correct."""
        with torch.no_grad():
            features, logits = self._split(batch)
            weights = affinity(F.normalize(features, dim=1), self.kind, self.neighbours)
            unary = (logits.softmax(1) + 1e-10).log()
            log, before = unary.log_softmax(1), 0.0
            for done in range(self.rounds):
                pull = weights @ log.exp()
                log = (unary + pull).log_softmax(1)
                energy = float((log.exp() * (log - unary - pull)).sum())
                if done > 1 and abs(energy - before) <= 1e-8 * abs(before):
                    break
                before = energy
            return log


def affinity(features: Tensor, kind: Affinity, neighbours: int) -> Tensor:
    """How alike the rows of ``features`` are to each other, (B, B).

    ``rbf``: exp(−d² / 2σ²), where σ is the mean distance to the k-th nearest row; each row is its own first one.
    ``knn``: 1 for the k nearest other rows, which need not be mutual. ``linear``: the products of the rows.
    """
    if kind == "linear":
        return features @ features.T
    distances = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist")
    if kind == "rbf":
        sigma = distances.kthvalue(min(neighbours, len(features)), 1).values.mean()
        # Equal rows are alike even where σ is 0, as in a batch of one image.
        return torch.where(distances == 0, 1.0, torch.exp(-(distances**2) / (2 * sigma**2)))
    near = distances.fill_diagonal_(torch.inf).topk(min(neighbours, len(features) - 1), largest=False).indices
    return torch.zeros_like(distances).scatter_(1, near, 1.0)
