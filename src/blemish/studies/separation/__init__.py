"""How far apart classes lie, and how well classifiers use that room: exact class separation and MSCR."""

from blemish.studies.separation.contradictions import without_contradictions
from blemish.studies.separation.exact import Pair, Separation, nearest_other_class, separation
from blemish.studies.separation.experiment import Protocol, experiment, forest, from_estimator, nearest_neighbour
from blemish.studies.separation.noise import Noise
from blemish.studies.separation.sample_size import effect_of_k, effect_of_runs, runs_for
from blemish.studies.separation.scores import Matrix, ModelScore, mscr

__all__ = [
    "Matrix",
    "ModelScore",
    "Noise",
    "Pair",
    "Protocol",
    "Separation",
    "effect_of_k",
    "effect_of_runs",
    "experiment",
    "forest",
    "from_estimator",
    "mscr",
    "nearest_neighbour",
    "nearest_other_class",
    "runs_for",
    "separation",
    "without_contradictions",
]
