"""On a device without kernels of ours, of whatever maker: the plain operations run there from beginning to end."""

from __future__ import annotations

import pytest
import torch

import blemish
from codec_units import skip_by_codec
from frost_files import skip_without_files
from pictures import pictures
from pretended_device import DEVICE, PretendedDevice, pretended


def test_the_device_refuses_what_devices_refuse() -> None:
    """Else nothing here could fail."""
    there, here = pretended(torch.ones(3)), torch.ones(3)
    with PretendedDevice():
        assert there.device == (there * 2).device == torch.zeros(3, device=there.device).device == DEVICE
        assert here.device == there.cpu().device == (here * 2).device == torch.device("cpu")
        assert not there.is_cpu
        with pytest.raises(RuntimeError, match="found xpu and cpu"):
            there + here
        with pytest.raises(RuntimeError, match="found xpu and cpu"):
            there.mul_(here)
        with pytest.raises(RuntimeError, match="found xpu and cpu"):
            here * there.sum()
        with pytest.raises(TypeError, match="NumPy cannot read"):
            there.numpy()
        assert (there * here.sum()).device == there[torch.tensor([0, 2])].device == DEVICE
        assert there.to("cpu").numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", list(blemish.catalog))
def test_all_of_the_work_is_done_there(name: str) -> None:
    """Severities are mixed where there are several; the pixels are those of the CPU, but for rounding."""
    corruption = skip_by_codec(skip_without_files(blemish.catalog[name]), "which works on the CPU")
    images = pictures(3, 3, 40, 48)
    several = torch.tensor([1.0, 2.5, 4.2])
    severity = several if corruption.only_severity is None else corruption.only_severity
    if corruption.family == "human":  # few levels, none between
        severity = max(corruption.severities)
    expected = corruption(images, severity=severity, seed=1, ids=torch.arange(3))
    with PretendedDevice():
        there = corruption(images.to(DEVICE), severity=severity, seed=1, ids=torch.arange(3))
        assert there.device == DEVICE
        found = there.cpu()
    assert (found.int() - expected.int()).abs().max() <= 1
    assert (found == expected).float().mean() > 0.999


@pytest.mark.parametrize("name", list(blemish.sequences))
def test_frames_are_made_there(name: str) -> None:
    sequence, images = blemish.sequences[name], pictures(2, 3, 40, 48)
    expected = sequence.frame(images, 5, seed=1, ids=torch.arange(2))
    with PretendedDevice():
        there = sequence.frame(images.to(DEVICE), 5, seed=1, ids=torch.arange(2))
        assert there.device == DEVICE
        found = there.cpu()
    assert (found == expected).float().mean() > 0.999
