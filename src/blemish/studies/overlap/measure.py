"""Measuring trained networks: each on the clean test images and on every corruption, kept as records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.data.source import Source
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.run import evaluate
from blemish.evaluation.runs import Run
from blemish.models.base import Preprocessing, Training
from blemish.models.torch_module import from_module
from blemish.studies.overlap.harness import ALL, STANDARD, Plan, Trained, build_net, conditions
from blemish.studies.overlap.trainees import read_weights
from blemish.studies.overlap.training import MEAN, STD


def measure_all(
    plan: Plan,
    trained: Sequence[Trained],
    source: Source,
    folder: Path,
    *,
    device: torch.device,
    batch_size: int = 256,
    resize: int | None = None,
    crop: int | None = None,
    report: ProgressReport = tell_nobody,
    executor: Executor | None = None,
) -> list[Run]:
    """A run for each network, on the conditions that `harness.conditions` names; finished ones are kept."""
    benchmark = Benchmark(
        "overlap",
        "Networks trained on one corruption each, on every corruption",
        "robustness",
        tuple(conditions(plan)),
        Protocol(preset=plan.preset, seed=plan.seed, resize=resize, crop=crop),
    )
    runs = []
    for model in trained:
        net = build_net(plan.architecture, plan.classes)
        net.load_state_dict(read_weights(model.weights)["weights"])
        seen = plan.corruptions if model.name == ALL else () if model.name == STANDARD else (model.name,)
        classifier = from_module(
            net,
            name=model.name,
            preprocessing=Preprocessing(mean=MEAN, std=STD),
            training=Training(corruptions=seen),
            device=device,
        )

        def tell(done: int, total: int | None, what: str = "", name: str = model.name) -> None:
            report(done, total, f"measuring {name}: {what}")

        runs.append(
            evaluate(
                classifier,
                source,
                benchmark,
                out=folder,
                batch_size=batch_size,
                report=tell,
                executor=executor,
                allow_chance=True,  # labels and normalisation are ours; what has learnt nothing is told at the end
            )
        )
    return runs
