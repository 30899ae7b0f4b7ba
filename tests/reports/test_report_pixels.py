"""The pictures of the report are what the model was given: shown to it again, they get the recorded answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from blemish.benchmarks.benchmark import only
from blemish.benchmarks.files import load_benchmark
from blemish.data.digits import digits_source
from blemish.evaluation.run import evaluate
from blemish.models.demo import demo_model
from blemish.reports.answers import gather, read_pictures
from blemish.reports.examples import Subject, condition_pixels, shown_conditions


@pytest.mark.parametrize("storage", ["raw", "jpeg85"])
def test_recorded_answers_are_given_again(tmp_path: Path, storage: str) -> None:
    benchmark = only(load_benchmark("digits-c"), ["gaussian_noise", "glass_blur", "frost_drawn", "jpeg_compression"])
    benchmark = replace(benchmark, protocol=replace(benchmark.protocol, storage=storage, seed=5))
    model = demo_model("plain")
    run = evaluate(model, digits_source(), benchmark, out=tmp_path, limit=20)
    answers, pictures = gather(run), read_pictures(run)
    assert answers is not None
    assert pictures is not None
    subject = Subject("m", run, answers, pictures, 0)
    conditions = shown_conditions(subject)
    assert [str(condition) for condition in conditions] == [
        "gaussian_noise@3",
        "glass_blur@3",
        "frost_drawn@3",
        "jpeg_compression@3",
    ]
    for condition in conditions:
        row = answers.conditions.index(condition)
        for place, name in enumerate(pictures.names):
            pixels = np.asarray(condition_pixels(subject, place, condition))
            found = model(torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None])[0]
            column = answers.column(name)
            assert column is not None
            # Batches of other sizes may differ in the last bits of a float32 softmax.
            assert float(found.max()) == pytest.approx(float(answers.confidence[row, column]), abs=1e-4)
            assert int(found.argmax()) == answers.top1[row, column]
