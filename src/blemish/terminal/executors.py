"""Where long work is done: options that all commands share."""

from __future__ import annotations

import re
from typing import Annotated

import torch
import typer

from blemish.core.errors import InputError
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.executors.processes import Processes
from blemish.evaluation.executors.ray_cluster import RayExecutor
from blemish.terminal.startup import stop_on_sigterm

_WORKERS = "Workers (results do not depend on them)"

Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, rich_help_panel=_WORKERS, help="Worker processes. Default: none.")
]
Gpus = Annotated[
    str | None, typer.Option(rich_help_panel=_WORKERS, help="A process for each GPU: all, or how many GPUs.")
]
Ray = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_WORKERS,
        metavar="ADDRESS",
        help="Work on a Ray cluster: its address, auto for this machine's, or local to start one.",
    ),
]


def chosen_executor(
    jobs: int | None, gpus: str | None = None, ray: str | None = None, device: str = "cpu"
) -> Executor | None:
    """The executor that the options ask for; None for this process."""
    if gpus is not None and device == "cpu":
        raise InputError(f"--gpus {gpus} with --device cpu; expected one of them")
    if ray is not None:
        if gpus not in (None, "all") and jobs is not None:
            raise InputError(f"--gpus {gpus} and --jobs {jobs} with --ray; expected one of them")
        count = jobs if gpus in (None, "all") else _number(gpus)
        on_gpu = True if gpus is not None or device.startswith("cuda") else None if device == "auto" else False
        executor = RayExecutor(ray, count, on_gpu)
        stop_on_sigterm()
        return executor
    if gpus is not None:
        return Processes(jobs, _gpus(gpus))
    if jobs is None or jobs == 1:
        return None
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda, but torch sees no GPU here; leave it out to work on the CPU")
    several = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    return Processes(jobs, _gpus("all") if several else ("cpu" if device == "auto" else device,))


def own_device(device: str, ray: str | None) -> str:
    """The device of this process; that of the option is the workers' where they are on other machines."""
    return device if ray is None else "auto"


def _gpus(text: str) -> tuple[str, ...]:
    count = torch.cuda.device_count()
    wanted = count if text == "all" else _number(text)
    if count == 0 or wanted > count:
        raise InputError(f"--gpus {text}, but torch sees {count} here")
    return tuple(f"cuda:{number}" for number in range(wanted))


def _number(text: str | None) -> int:
    if text is None or not re.fullmatch("0*[1-9][0-9]{0,5}", text):
        raise InputError(f"--gpus {text}; expected all, or a number from 1")
    return int(text)
