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
from blemish.data.digits import digits_source
from blemish.evaluation.run import evaluate
from blemish.models.demo import DEMO_NETS, demo_model
from blemish.reports.html import check_report_path, write_report
from blemish.reports.reading import Reading, read_all
from blemish.reports.score_tables import corruption_table, summary_table
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.printing import say
from blemish.terminal.progress import with_progress
from blemish.terminal.results import deliver

_BENCHMARK = "digits-c"


@exit_on_input_error
def demo_command(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results and the report.")] = Path("demo"),
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
) -> None:
    """Measure two small networks on drawn digits under fifteen corruptions, and write a report to look at.

    One network was trained on clean digits, the other with Gaussian noise: the tables mark what it has seen. Everything
    comes with the library, and the same commands work on your own model and images.
    """
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


_NEXT = """
The same, step by step, and then on a model and images of your own:
  blemish run digits-c --model demo:plain --data demo:digits --out {out} --zipf
  blemish run digits-c --model demo:noisy --data demo:digits --out {out} --zipf
  blemish score {out} --baseline {baseline}
  blemish report {out} --baseline {baseline} -o report.html
  blemish fetch-frost
  blemish run cifar10-c --model python:my_package:my_net --weights net.pt --data cifar10_test.npz --out results
  blemish run imagenet-c --model timm:resnet50 --data imagenet/val --out results --limit 1000"""
