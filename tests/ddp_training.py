"""A training by two processes with the callback, as a script: Lightning starts it once more for the second process."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import parse_condition
from blemish.models.base import Preprocessing
from foreign import let_torchvision_be_imported
from toy_runs import CLASSES, source


def main(folder: str) -> None:
    """Train, measure every epoch, and leave a file for each process that came to the end."""
    let_torchvision_be_imported()  # as Lightning does, by way of torchmetrics
    import lightning.pytorch as lightning  # here, since pytest imports this file also where Lightning is missing

    from blemish.integrations.lightning import RobustnessCallback

    class Net(lightning.LightningModule):
        """A linear network."""

        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, CLASSES))

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            scores: torch.Tensor = self.net(images)
            return scores

        def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
            return torch.nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    lightning.seed_everything(0)
    fogs = Benchmark("fogs", "", "error", (parse_condition("fog@1"),))
    callback = RobustnessCallback(fogs, 1, data=source(), preprocessing=Preprocessing())
    trainer = lightning.Trainer(
        default_root_dir=folder,
        max_epochs=2,
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        logger=False,
        callbacks=[callback],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = TensorDataset(torch.rand(8, 3, 32, 32), torch.arange(8) % CLASSES)
    trainer.fit(Net(), DataLoader(data, batch_size=2))
    (Path(folder) / f"rank-{trainer.global_rank}.txt").write_text(" ".join(map(str, sorted(callback.runs))))


if __name__ == "__main__":
    main(sys.argv[1])
