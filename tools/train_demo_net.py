"""Trains the two networks of the demo and writes their weights into the package.

    python tools/train_demo_net.py            # both, two minutes on one core; prints their accuracies
    python tools/train_demo_net.py --out DIR  # elsewhere

Seeded, and on one thread: the same machine gives the same weights. Others may differ in the last digits of a float,
and after training by a few test pictures.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

import blemish.models.demo
from blemish.corruptions.catalog import catalog
from blemish.corruptions.compose import random_severity
from blemish.corruptions.severity import MAX_SEVERITY
from blemish.data.digits import Split, digits_source
from blemish.models.demo import DEMO_NETS, PREPROCESSING, DigitNet, demo_model

SEED = 0
NOISE_SEED = 1000  # far from the seeds that benchmarks use: their very noise must not be seen in training
EPOCHS = 30
BATCH = 64
SHIFT = 2
SHOWN = ("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "motion_blur", "fog", "contrast", "pixelate")


def images_and_labels(split: Split, palette: int = 0) -> tuple[Tensor, Tensor]:
    """All pictures of a split as uint8 (N, 3, 32, 32), and their labels."""
    source = digits_source(split, palette=palette)
    pictures = np.stack([np.asarray(source.read(row)) for row in range(len(source))])
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(source.labels)


def shifted(images: Tensor, generator: torch.Generator) -> Tensor:
    """The batch moved by up to two pixels each way, all pictures of it alike; the paper goes on at the edges."""
    down, right = torch.randint(-SHIFT, SHIFT + 1, (2,), generator=generator).tolist()
    padded = nn.functional.pad(images.float(), (SHIFT,) * 4, mode="replicate").to(torch.uint8)
    height, width = images.shape[-2:]
    return padded[:, :, SHIFT + down : SHIFT + down + height, SHIFT + right : SHIFT + right + width]


def with_batch_norm(net: DigitNet) -> nn.Sequential:
    """The layers of a network with batch normalisation after each convolution: it learns much faster so."""
    layers: list[nn.Module] = []
    for layer in net.layers:
        layers += [layer, nn.BatchNorm2d(layer.out_channels)] if isinstance(layer, nn.Conv2d) else [layer]
    return nn.Sequential(*layers)


def folded(layers: nn.Sequential) -> DigitNet:
    """The plain network that computes the same in evaluation mode."""
    net, parts = DigitNet().eval(), list(layers.eval())
    pairs = zip(parts, [*parts[1:], None], strict=True)
    plain = [
        fuse_conv_bn_eval(part, after) if isinstance(part, nn.Conv2d) and isinstance(after, nn.BatchNorm2d) else part
        for part, after in pairs
        if not isinstance(part, nn.BatchNorm2d)
    ]
    net.layers = nn.Sequential(*plain)
    return net


def train(noisy: bool) -> DigitNet:
    """A network trained on the train split, on new colours in every epoch."""
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    images, labels = images_and_labels("train")
    noise = random_severity(catalog["gaussian_noise"], 0, MAX_SEVERITY)
    net = with_batch_norm(DigitNet())
    steps = EPOCHS * (len(images) // BATCH)
    optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=3e-3, total_steps=steps)
    for epoch in range(EPOCHS):
        images, labels = images_and_labels("train", palette=epoch)
        order = torch.randperm(len(images), generator=generator)
        for start in range(0, len(images) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            batch = shifted(images[rows], generator)
            if noisy:
                batch = noise(batch, severity=MAX_SEVERITY, seed=NOISE_SEED + epoch, ids=rows)
            loss = nn.functional.cross_entropy(net(PREPROCESSING(batch)), labels[rows])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
    return folded(net)


def report(which: str) -> None:
    """Print the accuracy of a written network on the test split, clean and corrupted."""
    images, labels = images_and_labels("test")
    model = demo_model(which)

    def accuracy(batch: Tensor) -> float:
        return float((model(batch).argmax(1) == labels).float().mean())

    print(f"{which}: clean {accuracy(images):.3f}")
    for name in SHOWN:
        corrupted = [catalog[name](images, severity=severity, seed=0) for severity in (1, 2, 3, 4, 5)]
        print(f"  {name:16s}", *(f"{accuracy(batch):.3f}" for batch in corrupted))


def main() -> None:
    """Train and write both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(blemish.models.demo.__file__).parent)
    out: Path = parser.parse_args().out
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for which, (file, _) in DEMO_NETS.items():
        start = time.perf_counter()
        net = train(noisy=which == "noisy")
        arrays = {key: value.numpy().astype(np.float16) for key, value in net.state_dict().items()}
        np.savez_compressed(out / file, allow_pickle=False, **arrays)
        print(f"{out / file}: trained in {time.perf_counter() - start:.0f} s, {(out / file).stat().st_size:,} bytes")
        if out == Path(blemish.models.demo.__file__).parent:
            report(which)


if __name__ == "__main__":
    main()
