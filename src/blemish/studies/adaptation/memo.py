"""MEMO: one image at a time, made to agree with itself under many views, and forgotten again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.augmix import augmixed
from blemish.studies.adaptation.base import Changing, Optimiser
from blemish.studies.adaptation.norm import UnsuitedError, with_batch_statistics


class MEMO(Changing):
    """Marginal entropy minimisation with one test point. Zhang et al., NeurIPS 2022.

    Each image by itself: from the weights as given, ``views`` views of it are drawn (`augmixed`), and one step is taken
    on L = H(mean p over the views), on all parameters; then the plain image is predicted, and the step forgotten.
    Batch norm mixes the statistics of training with those of what it is given, for views and image alike: a share α of
    the latter, 1/17 in the authors' code (their prior N = 16), 0.1 in Döbler et al.'s repository.

    Settings of the authors: CIFAR, 32 views, SGD without momentum, rate 0.005; ImageNet, 64 views, rate 0.00025 for a
    ResNet-50. Döbler et al.'s repository has the same numbers and SGD with Nesterov's momentum 0.9, whose first step is
    1.9 times as large, and every step here is a first one: that is ``nesterov``. ``crop`` says how views are cropped
    first: padded by 4 and cropped (cifar), or a random resized crop of 8 to 100 % of the area (imagenet). Needs
    parameters. A step for each image: it is slow.
    """

    name = "memo"
    memory: ClassVar[Mapping[str, Any]] = {"images": 0}
    images: int

    def __init__(
        self,
        model: nn.Module,
        *,
        views: int = 64,
        rate: float = 0.00025,
        nesterov: bool = False,
        alpha: float = 1 / 17,
        crop: str = "imagenet",
        seed: int = 0,
    ) -> None:
        if views < 1 or not 0 <= alpha <= 1:
            raise InputError(f"{views} views and alpha {alpha:g} for MEMO; expected at least 1, and a share in 0 … 1")
        if crop not in ("cifar", "imagenet"):
            raise InputError(f"crop {crop!r} for MEMO; expected cifar or imagenet")
        self.views, self.crop, self.seed = views, crop, seed
        self.model = with_batch_statistics(model, alpha=alpha)
        self.adapted = dict(self.model.named_parameters())
        if not self.adapted:
            raise UnsuitedError(self.name, "adapts all", "parameters", model)
        self._how = Optimiser(rate=rate, momentum=0.9 if nesterov else 0.0, nesterov=nesterov)
        self._how.make(list(self.adapted.values()))  # refuses rates that are none
        self._source = {name: value.detach().clone() for name, value in self.adapted.items()}
        self._begin()

    def adapt(self, batch: Tensor) -> Tensor:
        """Each image's logits after its own step."""
        with torch.inference_mode(False):
            return torch.cat([self._alone(image[None]) for image in batch])

    def _alone(self, image: Tensor) -> Tensor:
        numbers = self.images * self.views + torch.arange(self.views)
        rng = CounterRng(self.seed, numbers, self.name, image.device)
        self.images += 1
        optimiser = self._how.make(list(self.adapted.values()))
        try:
            with torch.enable_grad():
                loss = marginal_entropy(self.model(augmixed(image.expand(self.views, -1, -1, -1), rng, crop=self.crop)))
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
            return self.predict(image)
        finally:
            with torch.no_grad():
                for name, value in self.adapted.items():
                    value.copy_(self._source[name])

    def scale_rate(self, factor: float) -> None:
        """Multiply the learning rate, for good."""
        self._how = Optimiser(rate=self._how.rate * factor, momentum=self._how.momentum, nesterov=self._how.nesterov)


def marginal_entropy(logits: Tensor) -> Tensor:
    """The entropy of the mean prediction over the rows of logits, by log-sum-exp.

    >>> round(float(marginal_entropy(torch.tensor([[50.0, 0.0], [0.0, 50.0]]))), 4) == round(math.log(2), 4)
    True
    """
    log_mean = logits.log_softmax(1).logsumexp(0) - math.log(len(logits))
    return -(log_mean.exp() * log_mean).sum()
