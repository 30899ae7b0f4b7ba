"""Where work is done: in this process, in others of this machine (one per GPU), or on a Ray cluster.

A `Job` is opened once by every worker and then does one unit after the other; workers keep what is heavy (model,
images), and a unit only names it. An `Executor` runs the units of a job and yields an outcome for each. A worker
(`worker.Worker`) is a process somewhere that bytes are sent to and heard from; one coordinator (`pool`) gives units to
all of them, hears what they tell, and replaces those that are lost. Whatever is done side by side in processes goes
through here. Within a process, threads decode or copy ahead where they are needed (`data.cache`, `evaluation.feed`,
`separation.search`), and `streams.run` makes the batches of a stream ahead with torch's DataLoader, which keeps order.

Why not the standard library's pools, or Ray's own retries? Both were measured (perf/executors.py). They recover as fast
and start as fast. But a call to a `ProcessPoolExecutor` cannot tell how far it is, nor can the next begin before its
result is there, which takes twice as long where results take as long as work; and when a worker is killed while it
sends more than a pipe takes, the pool waits for ever. Ray repeats the calls of a lost actor as they were first sent, so
that training begins again instead of going on from the last epoch that was told; and with two calls at an actor it has
been seen to give up on both for what one of them did.
"""

from blemish.evaluation.executors.base import Calls, Done, Executor, Failed, Job, Outcome, PendingResult, wait_for
from blemish.evaluation.executors.in_process import InProcess
from blemish.evaluation.executors.processes import Processes
from blemish.evaluation.executors.ray_cluster import RayExecutor

__all__ = [
    "Calls",
    "Done",
    "Executor",
    "Failed",
    "InProcess",
    "Job",
    "Outcome",
    "PendingResult",
    "Processes",
    "RayExecutor",
    "wait_for",
]
