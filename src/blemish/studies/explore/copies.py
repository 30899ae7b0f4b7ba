"""A view as text that makes it again: Python, a benchmark file, commands."""

from __future__ import annotations

import re
import shlex

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.benchmarks.files import benchmark_toml
from blemish.core.rng import hash_id
from blemish.corruptions.severity import MAX_SEVERITY, severity_text
from blemish.studies.explore.pictures import Picture
from blemish.studies.explore.views import View


def as_python(picture: Picture, view: View) -> str:
    """A script that writes the picture as it is seen."""
    steps = view.condition.steps
    lines = ["import blemish"]
    if picture.path is None:
        lines += ["from blemish.data.demo import demo_picture", "", f"picture = demo_picture({picture.image.width})"]
    else:
        prepared = f"read_picture({picture.path!r})"
        if picture.turned:
            lines.append("from PIL import ImageOps")
            prepared = f"ImageOps.exif_transpose({prepared})"
        sizes = {"resize": picture.resize, "crop": picture.crop}
        settings = ", ".join(f"{name}={size}" for name, size in sizes.items() if size is not None)
        if settings:
            prepared = f"resize_and_crop({prepared}, {settings})"
        needed = "read_picture, resize_and_crop" if settings else "read_picture"
        lines += [f"from blemish.data.pictures import {needed}", "", f"picture = {prepared}"]
    if steps:
        number = f"blemish.hash_id({picture.name!r})" if _plain_id(picture) else str(picture.id)
        what, level = repr(steps[0].name), severity_text(steps[0].low)
        if len(steps) > 1:
            links = ", ".join(f"(blemish.catalog[{step.name!r}], {severity_text(step.low)})" for step in steps)
            what, level = "both", str(MAX_SEVERITY)
            lines.append(f"both = blemish.chain({links})  # at severity {MAX_SEVERITY}, each is as strong as said here")
        lines.append(f"picture = blemish.corrupt(picture, {what}, {level}, seed={view.seed}, ids={number})")
    lines.append(f"picture.save({_file_name(picture, view.condition)!r})")
    return "\n".join(lines) + "\n"


def _plain_id(picture: Picture) -> bool:
    try:
        return hash_id(picture.name) == picture.id
    except UnicodeEncodeError:
        return False


def as_toml(picture: Picture, view: View) -> str:
    """A benchmark of this condition, for ``blemish run``; images are prepared as this one was."""
    condition = view.condition
    if not condition.steps:
        return "# A benchmark needs a corruption; every run measures the clean images as well.\n"
    name = condition.slug
    text = benchmark_toml(
        Benchmark(
            name=name,
            metric="error",
            title=" + ".join(f"{step.name} at severity {step.level}" for step in condition.steps),
            protocol=Protocol(seed=view.seed, resize=picture.resize, crop=picture.crop),
            conditions=(CLEAN, condition),
        )
    )
    return f"# Save as {name}.toml, then: blemish run {name}.toml --model MODEL --data IMAGES --out results\n{text}"


def as_command(picture: Picture, view: View) -> str:
    """Commands: one that writes the corrupted picture, where one corruption is all, and one that opens this view."""
    steps = view.condition.steps
    lines = []
    place = "" if picture.path is None else f" {_argument(picture.path)}"
    seed = f" --seed {view.seed}"
    if len(steps) == 1 and picture.path is not None:
        sizes = {"--resize": picture.resize, "--crop": picture.crop}
        settings = "".join(f" {option} {size}" for option, size in sizes.items() if size is not None)
        if picture.turned:
            lines.append("# The file is stored turned; this command corrupts it as stored, so its pixels differ.")
        out = shlex.quote(_file_name(picture, view.condition))
        lines.append(f"blemish corrupt{place} -o {out} -c {steps[0].name} -s {steps[0].level}{seed}{settings}")
    opened = f" --condition {view.condition}" if steps else ""
    side = picture.image.width
    lines.append(f"blemish explore{place}{opened}{seed if steps else ''} --side {side}")
    return "\n".join(lines) + "\n"


def _argument(path: str) -> str:
    """A path for a shell; one that looks like an option is told apart from them."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def _file_name(picture: Picture, condition: Condition) -> str:
    stem = re.sub(r"[^\w.-]", "_", picture.name.rpartition(".")[0] or picture.name)[:80]
    return f"{stem}-{condition.slug}.png"
