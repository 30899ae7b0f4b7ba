"""``blemish leaderboard verify``: does an entry hold what it claims?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from blemish.core.errors import InputError
from blemish.data.open import open_source
from blemish.data.stored import open_stored
from blemish.reports.tables import Cell, Table
from blemish.studies.leaderboard.entry import Entry, ModelEntry, find_entries, read_entry
from blemish.studies.leaderboard.verify import TOLERANCE, Check, failed, rerun, verify
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Frost, Plugins, Tiles, chosen_catalog
from blemish.terminal.images import Columns, Labels, Mapping
from blemish.terminal.lists import listed
from blemish.terminal.models import BatchSize, OptionalModelOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.progress import Report, with_progress
from blemish.terminal.results import deliver

FAILED = 1
_PANEL = "Asking the model again"


@dataclass(frozen=True, kw_only=True)
class RerunOptions:
    """What is needed to ask a model about some images again."""

    images: Annotated[
        int | None,
        typer.Option(
            "--rerun", min=1, metavar="IMAGES", rich_help_panel=_PANEL, help="Ask about so many images at random."
        ),
    ] = None
    data: Annotated[
        str | None, typer.Option("--data", "-d", rich_help_panel=_PANEL, help="The clean images of the entry.")
    ] = None
    labels: Labels = None
    mapping: Mapping = None
    columns: Columns = None
    stored: Annotated[
        Path | None, typer.Option(rich_help_panel=_PANEL, help="The corrupted set, where the entry is of one on disk.")
    ] = None
    tolerance: Annotated[
        float,
        typer.Option(
            rich_help_panel=_PANEL, help="The share of answers that may differ: processors round differently."
        ),
    ] = TOLERANCE
    seed: Annotated[int, typer.Option(rich_help_panel=_PANEL, help="Which images.")] = 0
    batch_size: BatchSize = None
    plugins: Plugins = None
    frost: Frost = None
    tiles: Tiles = None

    def check(self, entry: ModelEntry, options: OptionalModelOptions) -> Check:
        """Ask, and say how many answers differ."""
        catalog = chosen_catalog(self.plugins, self.frost, self.tiles)
        model = options.open(catalog=catalog)
        if model is None or self.data is None:
            raise InputError("--rerun without --model and --data; expected the model and the images of the entry")
        images = self.images or 1
        if not 0 <= self.tolerance < 1:
            raise InputError(f"--tolerance {self.tolerance:g}; expected a share from 0 to 1")
        source = open_source(
            self.data, labels=self.labels, mapping=self.mapping, columns=listed(self.columns) if self.columns else None
        )
        stored = None if self.stored is None else open_stored(self.stored, mapping=self.mapping)

        def work(report: Report) -> Check:
            return rerun(
                entry,
                model,
                source,
                images=images,
                seed=self.seed,
                stored=stored,
                catalog=catalog,
                batch_size=self.batch_size,
                report=report,
            ).check(self.tolerance)

        return with_progress("rerun", work, first="reading images", kept="nothing is changed.")


@exit_on_input_error
@spread_options
def verify_command(
    places: Annotated[list[Path], typer.Argument(metavar="ENTRY", help="Entries, or folders of them.")],
    model: OptionalModelOptions,
    again: RerunOptions,
) -> None:
    """Compute again what entries claim, from their bits; with --rerun, some of the bits from the model.

    Exit code 0 if all holds, 1 if something does not, 2 where an entry was changed after it was sealed, or is none.

    Examples:

      blemish leaderboard verify board

      blemish leaderboard verify board/resnet50 --rerun 200 -m timm:resnet50 -d imagenet/val
    """
    entries = [entry for path in places for entry in (find_entries(path) if path.is_dir() else [read_entry(path)])]
    if again.images is None and (again.data is not None or model.model is not None or again.stored is not None):
        raise InputError("--model, --data or --stored without --rerun; expected how many images to ask about again")
    if again.images is not None and (len(entries) != 1 or not isinstance(entries[0], ModelEntry)):
        raise InputError(f"--rerun for {len(entries)} entries; expected the folder of one model's entry")
    checks: list[tuple[Entry, list[Check]]] = []
    for entry in entries:
        own = verify(entry)
        if again.images is not None and isinstance(entry, ModelEntry):
            own.append(again.check(entry, model))
        checks.append((entry, own))
    deliver([_table(entry, own) for entry, own in checks], None)
    if any(failed(own) for _, own in checks):
        raise typer.Exit(FAILED)


def _table(entry: Entry, checks: list[Check]) -> Table:
    rows = [(Cell(check.name), Cell("holds" if check.holds else "DOES NOT HOLD"), Cell(check.seen)) for check in checks]
    return Table(f"{entry.path}, {entry.header.seal}", ("what", "verdict", "seen"), tuple(rows), text_columns=3)
