"""Where work is done: in this process, in others of this machine, or on a Ray cluster."""

from blemish.execution.base import Done, Executor, Failed, Job, Outcome
from blemish.execution.in_process import InProcess
from blemish.execution.processes import Processes
from blemish.execution.ray_cluster import RayExecutor

__all__ = ["Done", "Executor", "Failed", "InProcess", "Job", "Outcome", "Processes", "RayExecutor"]
