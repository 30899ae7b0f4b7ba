"""The networks for CIFAR: their size as published, and pretrained weights where they lie beside the checkout."""

from __future__ import annotations

import pytest
import torch

from blemish import corrupt
from blemish.data.array_source import array_source
from blemish.models import resnet_cifar
from blemish.models.base import Preprocessing
from blemish.models.torch_module import from_module, load_weights
from blemish.studies.adaptation.base import Levels
from blemish.studies.adaptation.methods import make_method
from conftest import SHARED


@pytest.mark.parametrize(
    ("name", "millions"),
    [("resnet20", 0.27), ("resnet32", 0.46), ("resnet44", 0.66), ("resnet56", 0.85), ("resnet110", 1.7)],
)
def test_published_sizes(name: str, millions: float) -> None:
    """He et al., CVPR 2016, table 6."""
    net = getattr(resnet_cifar, name)()
    count = sum(value.numel() for value in net.parameters())
    assert count / 1e6 == pytest.approx(millions, abs=0.035 if millions > 1 else 0.006)


def test_shapes_and_shortcuts() -> None:
    net = resnet_cifar.resnet20(classes=7).eval()
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 7)
    block = net.layer2[0]
    for layer in (block.conv1, block.conv2):
        torch.nn.init.zeros_(layer.weight)
    x = torch.rand(1, 16, 8, 8)
    out = block.eval()(x)
    # Without its convolutions a block is its shortcut: every other pixel, eight channels of zeros on either side.
    assert torch.equal(out[:, 8:24], x[:, :, ::2, ::2])
    assert not out[:, :8].any()
    assert not out[:, 24:].any()


def test_pretrained_and_adapted() -> None:
    """The first 200 images of the lossy test copy: .81 to .83 on all of it, as the data's notes say."""
    data, weights = SHARED / "data" / "cifar10_jpeg_test.npz", SHARED / "data" / "cifar_resnets"
    if not data.is_file() or not weights.is_dir():
        pytest.skip("the CIFAR test copy and pretrained networks (../shared/data) are not beside this checkout")
    (path,) = weights.glob("resnet20*.th")
    net = load_weights(resnet_cifar.resnet20(), path)
    preprocessing = Preprocessing(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    classifier = from_module(net, preprocessing=preprocessing)
    source = array_source(data)
    images = torch.stack([torch.tensor(list(source.read(i).tobytes()), dtype=torch.uint8) for i in range(200)])
    images = images.view(200, 32, 32, 3).permute(0, 3, 1, 2).contiguous()
    labels = torch.from_numpy(source.labels[:200])
    clean = float((classifier(images).argmax(1) == labels).float().mean())
    assert 0.72 < clean < 0.9
    # Contrast at severity 4 takes most of it, and the statistics of the batch give much of that back.
    dull = corrupt(images, "contrast", severity=4, preset="cifar")
    model = Levels(net, preprocessing)
    none, bn = (
        float((make_method(name, model).adapt(dull).argmax(1) == labels).float().mean()) for name in ("none", "bn")
    )
    assert none < clean - 0.1
    assert bn > none + 0.1
