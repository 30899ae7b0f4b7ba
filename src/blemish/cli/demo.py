"""``blemish demo``: the whole job on embedded data, in a minute or two."""

from __future__ import annotations

import shlex
import webbrowser
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blemish.benchmarks.files import load_benchmark
from blemish.cli.run import run_with_progress
from blemish.core.errors import InputError
from blemish.core.marks import is_ours
from blemish.core.progress import ProgressReport
from blemish.corruptions.catalog import catalog
from blemish.data.digits import digits_source
from blemish.evaluation.run import evaluate
from blemish.models.demo import DEMO_NETS, demo_model
from blemish.reports.html import check_report_path, write_report
from blemish.reports.reading import Reading, read_all
from blemish.reports.score_tables import corruption_table, summary_table
from blemish.studies.explore.photos import answers_table, lite0, photographs
from blemish.studies.explore.show import explore, has_desktop, write_page
from blemish.studies.explore.subject import Subject, beginning
from blemish.studies.explore.views import Witness
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.printing import say
from blemish.terminal.progress import with_progress
from blemish.terminal.results import deliver

_BENCHMARK = "digits-c"


@exit_on_input_error
def demo_command(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results and the report.")] = Path("demo"),
    show: Annotated[bool, typer.Option("--open", help="Open the report, or the page, in a browser.")] = False,
    photos: Annotated[
        bool,
        typer.Option(
            "--photos",
            help="Instead, show a pretrained network photographs that install from PyPI, and open the explorer.",
        ),
    ] = False,
) -> None:
    """Measure two small networks on drawn digits under fifteen corruptions, and write a report to look at.

    One network was trained on clean digits, the other with Gaussian noise: the tables mark what it has seen. Everything
    comes with the library, and the same commands work on your own model and images.

    With --photos, EfficientNet-Lite0 looks at five photographs in the public domain, clean and corrupted. They have no
    labels, so there is no error to measure: you see answers change and confidence fall. Then the explorer opens on
    them; without a desktop it is written to the folder photos in --out.
    """
    if photos:
        _show_photographs(out, show)
        return
    page = check_report_path(out / "report.html")
    if page.is_file() and not is_ours(page):
        raise InputError(f"{page} is there already, and blemish did not make it; choose another --out")
    benchmark = load_benchmark(_BENCHMARK)
    source = digits_source()
    runs = []
    for which in DEMO_NETS:
        say(f"measuring the {which} network on {len(source)} digits, {len(benchmark.conditions)} conditions", "bold")
        work = partial(evaluate, demo_model(which), source, benchmark, out=out, zipf=True)
        runs.append(run_with_progress(which, lambda report, work=work: work(report=report)))  # type: ignore[misc]
    baseline = runs[0]

    def conclude(report: ProgressReport) -> list[Reading]:
        readings_of_both = read_all(runs, baseline=baseline, report=report)
        write_report(runs, page, baseline=baseline, report=report)
        return readings_of_both

    readings = with_progress("report", conclude, first="reading records", unit=None)
    tables = [summary_table(readings), *filter(None, (corruption_table(reading) for reading in readings))]
    deliver(tables, None)
    say(f"report: {page}", style="bold")
    if show:
        webbrowser.open(page.resolve().as_uri())
    for line in _NEXT.format(out=shlex.quote(str(out)), baseline=shlex.quote(str(baseline.folder))).splitlines():
        say(line, style="dim")


def _show_photographs(out: Path, show: bool) -> None:
    pictures = photographs()
    say(f"showing {len(pictures)} photographs of scikit-image (CC0 or public domain) to EfficientNet-Lite0", "bold")
    witness = Witness(lite0())
    work = partial(answers_table, pictures, witness)
    table = with_progress("demo", lambda report: work(report=report), first="asking", unit="photographs")
    deliver([table], None)
    subject = Subject(pictures, [witness], catalog, beginning(catalog))
    if show or has_desktop():
        explore(subject, show=True)
        return
    write_page(out / "photos", subject)
    network = "python:blemish.studies.explore.photos:lite0"
    say(f"live, with every severity: blemish explore {shlex.quote(str(pictures[0].path))} -m {network}", "dim")


_NEXT = """
The same, step by step, and then on a model and images of your own:
  blemish run digits-c --model demo:plain --data demo:digits --out {out} --zipf
  blemish run digits-c --model demo:noisy --data demo:digits --out {out} --zipf
  blemish score {out} --baseline {baseline}
  blemish report {out} --baseline {baseline} -o report.html
  blemish fetch-frost
  blemish run cifar10-c --model python:my_package:my_net --weights net.pt --data cifar10_test.npz --out results
  blemish run imagenet-c --model timm:resnet50 --data imagenet/val --out results --limit 1000"""
