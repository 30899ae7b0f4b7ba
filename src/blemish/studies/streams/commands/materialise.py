"""``blemish ccc materialise``: a stream as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blemish.export.outcome import Outcome
from blemish.studies.streams.commands.options import (
    Length,
    ShownOptions,
    WalkFile,
    protocol_text,
    read_chosen_walk,
    share_of,
    warn,
)
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.webdataset import SHARD_IMAGES, materialise
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Seed
from blemish.terminal.executors import Jobs, Ray, chosen_executor
from blemish.terminal.images import ImageOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.printing import say
from blemish.terminal.progress import Report, with_progress


@exit_on_input_error
@spread_options
def materialise_command(
    file: WalkFile,
    images: ImageOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the shards.")],
    shown: ShownOptions,
    length: Length = None,
    shard_images: Annotated[int, typer.Option(min=1, help="Images per shard.")] = SHARD_IMAGES,
    part: Annotated[str, typer.Option(help="Do a share of the work: 0/4 … 3/4 in four processes.")] = "0/1",
    seed: Seed = 0,
    jobs: Jobs = None,
    ray: Ray = None,
) -> None:
    """Write the stream of a walk as WebDataset shards, with the release's names and fields.

    Stop whenever you like: the same command continues where it stopped.

    Examples:

      blemish ccc materialise easy.json -d imagenet/val --random-crop 224 -o baseline_40_transition+speed_1000_seed_43
    """
    number, parts = share_of(part)
    executor = chosen_executor(jobs, ray=ray)
    catalog = shown.catalog()
    walk = read_chosen_walk(file, catalog)
    image_set = shown.image_set(images, subset=walk.protocol.subset, named=str(walk.protocol.set))
    stream = Stream(image_set, walk, seed=seed, length=length, preset=shown.preset, catalog=catalog)
    warn(protocol_text(stream, allow_mismatch=shown.allow_mismatch, jpeg=True))  # shards hold JPEG pictures

    def work(report: Report) -> Outcome:
        return materialise(
            stream,
            out,
            shard_images=shard_images,
            part=number,
            parts=parts,
            progress=report,
            executor=executor,
        )

    outcome = with_progress("ccc materialise", work, first="writing shards")
    say(f"wrote {outcome.written:,} images to {out}, {outcome.skipped:,} were there already")
