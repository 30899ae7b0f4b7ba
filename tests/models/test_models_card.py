"""What the names of weights and of data sets say of a model's training."""

from __future__ import annotations

import pytest
from torch import nn

from blemish.models.card import Claim, ModelCard, count_parameters, training_card
from blemish.models.torch_module import from_module


@pytest.mark.parametrize(
    ("text", "sets", "web_scale"),
    [
        # Weights of open_clip, timm and torchvision, and data sets of the hub, as they are called there.
        ("openai", ("WIT-400M",), True),
        ("laion2b_s34b_b88k", ("LAION-2B",), True),
        ("laion400m_e32", ("LAION-400M",), True),
        ("laion5b_s13b_b90k", ("LAION-5B",), True),
        ("datacomp_xl_s13b_b90k", ("DataComp",), True),
        ("datacomp_m_s128m_b4k", ("DataComp (small)",), False),
        ("datacompxl", ("DataComp",), True),
        ("commonpool_l_clip_s1b_b8k", ("CommonPool",), True),
        ("commonpool_s_clip_s13m_b4k", ("CommonPool (small)",), False),
        ("dfn5b", ("DFN",), True),
        ("metaclip_fullcc", ("MetaCLIP",), True),
        ("webli", ("WebLI",), True),
        ("merged2b_s8b_b131k", ("Merged-2B",), True),
        ("yfcc15m", ("YFCC-15M",), False),
        ("cc12m", ("CC-12M",), False),
        ("a1_in1k", ("ImageNet-1k",), False),
        ("augreg_in21k_ft_in1k", ("ImageNet-21k", "ImageNet-1k"), False),
        ("laion2b_ft_in12k_in1k", ("LAION-2B", "ImageNet-12k", "ImageNet-1k"), True),
        ("fb_swsl_ig1b_ft_in1k", ("IG-1B", "ImageNet-1k"), True),
        ("ns_jft_in1k", ("JFT-300M", "ImageNet-1k"), True),
        ("lvd142m", ("LVD-142M",), True),
        ("IMAGENET1K_V2", ("ImageNet-1k",), False),
        ("IMAGENET1K_SWAG_E2E_V1", ("ImageNet-1k", "IG-3.6B"), True),
        ("ILSVRC/imagenet-1k", ("ImageNet-1k",), False),
        ("laion/laion2B-en", ("LAION-2B",), True),
        ("uoft-cs/cifar10", ("CIFAR-10",), False),
        ("a2", (), None),
        ("", (), None),
    ],
)
def test_training_sets(text: str, sets: tuple[str, ...], web_scale: bool | None) -> None:
    card = training_card([text], "its name", parameters=3)
    assert (card.training_data, card.web_scale, card.parameters) == (sets, web_scale, 3)
    assert card.said_by == ("its name" if sets else "")


def test_several_texts() -> None:
    assert training_card(["imagenet-1k", "laion400m", "imagenet-1k"], "").training_data == ("ImageNet-1k", "LAION-400M")


def test_every_torch_module_has_one() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    assert count_parameters(net) == 12 * 3 + 3
    assert from_module(net).card == ModelCard(parameters=39)


@pytest.mark.parametrize(
    ("data", "of_imagenet"),
    [
        # As the README files of the hub and torchvision's weights call it; and other sets.
        ("imagenet-1k", True),
        ("ImageNet-1K", True),
        ("ILSVRC/imagenet-1k", True),
        ("imagenet", True),
        ("imagenet-a", False),
        ("tiny-imagenet", False),
        ("cifar10", False),
    ],
)
def test_claims_about_imagenet(data: str, of_imagenet: bool) -> None:
    assert Claim(data, 0.8, "its README").of_imagenet is of_imagenet
