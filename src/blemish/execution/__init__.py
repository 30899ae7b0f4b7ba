"""Where work is done: in this process, in others of this machine (one per GPU), or on a Ray cluster.

The design, in three words. A `Job` is opened once by every worker, and then does one unit after the other; it keeps
what is heavy (model, images) and a unit only names it. An `Executor` runs the units of a job and yields an outcome for
each. A worker (`pool.Worker`) is a process somewhere, to which bytes are sent and from which bytes come; in the
coordinator each has a thread of its own, which gives it a unit, reports what it says, and replaces it when it is lost.

Why not pools of the standard library, or Ray's own retries? Both were tried (`perf/executors.py`). A
`ProcessPoolExecutor` of one worker each recovers as fast, but waits for ever when a worker is killed while it sends
more than a pipe takes; nor can a call of it tell how far it is, or begin before the last result is there. Ray repeats
the calls of a lost actor as they were sent, and all of them: training would begin again instead of going on from the
last epoch that was told, and with two units at a worker both are blamed for what one did.
"""

from blemish.execution.base import Calls, Done, Executor, Failed, Job, Outcome, PendingResult, wait_for
from blemish.execution.in_process import InProcess
from blemish.execution.processes import Processes
from blemish.execution.ray_cluster import RayExecutor

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
