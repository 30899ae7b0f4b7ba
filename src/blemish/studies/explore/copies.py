"""A view as text that makes it again: Python, a benchmark file, commands."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.benchmarks.files import benchmark_toml
from blemish.core.rng import hash_id
from blemish.corruptions.catalog import catalog
from blemish.corruptions.severity import MAX_SEVERITY, severity_text
from blemish.studies.explore.pictures import Picture
from blemish.studies.explore.views import View


@dataclass(frozen=True)
class Origin:
    """Where corruptions and their files come from, where that is not the library alone."""

    plugins: tuple[str, ...] = ()
    frost: Path | None = None
    tiles: Path | None = None

    @property
    def options(self) -> str:
        """The options of commands that name them."""
        named = [*(("--plugin", name) for name in self.plugins), ("--frost", self.frost), ("--tiles", self.tiles)]
        return "".join(f" {option} {shlex.quote(str(value))}" for option, value in named if value is not None)

    @property
    def catalog(self) -> str:
        """The expression of Python that is their catalog."""
        text = f"load_catalog({list(self.plugins)!r})"
        text += "" if self.frost is None else f".with_frost({str(self.frost)!r})"
        return text + ("" if self.tiles is None else f".with_tiles({str(self.tiles)!r})")


def texts_of(picture: Picture, view: View, origin: Origin) -> dict[str, str]:
    """A view as Python, as a benchmark and as commands."""
    return {
        "python": as_python(picture, view, origin),
        "toml": as_toml(picture, view, origin),
        "command": as_command(picture, view, origin),
    }


def as_python(picture: Picture, view: View, origin: Origin) -> str:
    """A script that writes the picture as it is seen."""
    steps = view.condition.steps
    lines = ["import blemish"]
    # Those of installed packages are in no other catalog, either.
    own = bool(steps) and (bool(origin.options) or any(step.name not in catalog for step in steps))
    where = "catalog" if own else "blemish.catalog"
    if own:
        lines.append("from blemish.corruptions.plugins import load_catalog")
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
    if own:
        lines.append(f"catalog = {origin.catalog}")
    if steps:
        number = f"blemish.hash_id({picture.name!r})" if _plain_id(picture) else str(picture.id)
        given = ", catalog=catalog" if own and len(steps) == 1 else ""
        what, level = repr(steps[0].name), severity_text(steps[0].low)
        if len(steps) > 1:
            links = ", ".join(f"({where}[{step.name!r}], {severity_text(step.low)})" for step in steps)
            what, level = "both", str(MAX_SEVERITY)
            lines.append(f"both = blemish.chain({links})  # at severity {MAX_SEVERITY}, each is as strong as said here")
        lines.append(f"picture = blemish.corrupt(picture, {what}, {level}, seed={view.seed}, ids={number}{given})")
    lines.append(f"picture.save({_file_name(picture, view.condition)!r})")
    return "\n".join(lines) + "\n"


def _plain_id(picture: Picture) -> bool:
    try:
        return hash_id(picture.name) == picture.id
    except UnicodeEncodeError:
        return False


def as_toml(picture: Picture, view: View, origin: Origin) -> str:
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
    run = f"blemish run {name}.toml --model MODEL --data IMAGES --out results{origin.options}"
    return f"# Save as {name}.toml, then: {run}\n{text}"


def as_command(picture: Picture, view: View, origin: Origin) -> str:
    """Commands: one that writes the corrupted picture, where one corruption is all, and one that opens this view."""
    steps = view.condition.steps
    lines = []
    picture_argument = "" if picture.path is None else f" {_argument(picture.path)}"
    seed = f" --seed {view.seed}"
    if len(steps) == 1 and picture.path is not None:
        sizes = {"--resize": picture.resize, "--crop": picture.crop}
        more = "".join(f" {option} {size}" for option, size in sizes.items() if size is not None) + origin.options
        if picture.turned:
            lines.append("# The file is stored turned; this command corrupts it as stored, so its pixels differ.")
        out = shlex.quote(_file_name(picture, view.condition))
        lines.append(f"blemish corrupt{picture_argument} -o {out} -c {steps[0].name} -s {steps[0].level}{seed}{more}")
    opened = f" --condition {view.condition}" if steps else ""
    lines.append(
        f"blemish explore{picture_argument}{opened}{seed if steps else ''} --side {picture.side}{origin.options}"
    )
    return "\n".join(lines) + "\n"


def _argument(path: str) -> str:
    """A path for a shell; one that looks like an option is told apart from them."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def _file_name(picture: Picture, condition: Condition) -> str:
    stem = re.sub(r"[^\w.-]", "_", picture.name.rpartition(".")[0] or picture.name)[:80]
    return f"{stem}-{condition.slug}.png"
