"""What results mean: the metrics of the literature, with intervals and paired tests."""

from blemish.core.resampling import Bootstrap
from blemish.core.statistics import Estimate
from blemish.evaluation.chance import Chance, against_chance
from blemish.metrics.baselines import Baseline, baseline_from_run, published_baseline
from blemish.metrics.beside import Beside, Fall, falls_below
from blemish.metrics.calibration import Reliability, calibration_error, pooled, reliability
from blemish.metrics.compare import Comparison, Difference, compare, protocol_differences
from blemish.metrics.consistency import Agreement, Consistency, cohen_kappa, error_consistency
from blemish.metrics.formulas import (
    corruption_error,
    mean_corruption_error,
    mean_flip_rate,
    mean_relative_corruption_error,
    relative_corruption_error,
    residual_robustness,
    robustness_score,
)
from blemish.metrics.looks import look_levels
from blemish.metrics.maker import Missing
from blemish.metrics.references import Reference, reference_named
from blemish.metrics.scored import Score, Scores
from blemish.metrics.scores import score
from blemish.metrics.sequential import precise_enough
from blemish.metrics.titles import TITLES, Title

__all__ = [
    "TITLES",
    "Agreement",
    "Baseline",
    "Beside",
    "Bootstrap",
    "Chance",
    "Comparison",
    "Consistency",
    "Difference",
    "Estimate",
    "Fall",
    "Missing",
    "Reference",
    "Reliability",
    "Score",
    "Scores",
    "Title",
    "against_chance",
    "baseline_from_run",
    "calibration_error",
    "cohen_kappa",
    "compare",
    "corruption_error",
    "error_consistency",
    "falls_below",
    "look_levels",
    "mean_corruption_error",
    "mean_flip_rate",
    "mean_relative_corruption_error",
    "pooled",
    "precise_enough",
    "protocol_differences",
    "published_baseline",
    "reference_named",
    "relative_corruption_error",
    "reliability",
    "residual_robustness",
    "robustness_score",
    "score",
]
