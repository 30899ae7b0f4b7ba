"""Two small networks for drawn digits that come with the library: one trained plainly, one on noisy pictures.

``tools/train_demo_net.py`` has trained them and written their weights.
"""

from __future__ import annotations

from importlib import resources

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.models.base import Classifier, Preprocessing, Training
from blemish.models.torch_module import from_module, load_weights

PREPROCESSING = Preprocessing(size=(32, 32), mean=(0.5,), std=(0.5,))

_AUGMENTATIONS = ("shifts by up to 2 pixels", "other colours of paper and ink")

# The file of the weights and what the network has seen in training.
DEMO_NETS = {
    "plain": ("demo_net.npz", Training(augmentations=_AUGMENTATIONS)),
    "noisy": ("demo_net_noisy.npz", Training(corruptions=("gaussian_noise",), augmentations=_AUGMENTATIONS)),
}


class DigitNet(nn.Module):
    """Four convolutions, the mean over the picture, and a linear layer: 76,378 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(48, 64, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, 10),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Logits of the digits 0 … 9."""
        return self.layers(images)  # type: ignore[no-any-return]


def demo_model(which: str = "plain", *, device: str | torch.device = "cpu") -> Classifier:
    """The network ``plain``, or ``noisy``, which was trained with Gaussian noise of random severity."""
    if which not in DEMO_NETS:
        raise InputError(f"demo network {which!r}; expected {' or '.join(DEMO_NETS)}")
    file, training = DEMO_NETS[which]
    with resources.as_file(resources.files("blemish.models").joinpath(file)) as path:
        module = load_weights(DigitNet(), path)
    return from_module(module, name=f"demo-{which}", preprocessing=PREPROCESSING, training=training, device=device)
