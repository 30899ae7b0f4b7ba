"""Does MSCR predict corruption errors? python perf/mscr_predicts_mce.py RECORDS.npz … [--figure FILE.png]

RECORDS are of perf/mscr_cifar.py (networks trained with noise) and perf/overlap_all.py (networks fine-tuned on one
corruption each, or from scratch), in any number of files. For every kind of network, correlates MSCR with the error
under the fifteen corruptions of ImageNet-C over the networks: mCE relative to networks trained without any corruption,
over all fifteen and over the families of corruptions, plain and with clean accuracy held fixed. Intervals resample what
networks were trained on, with all runs and seeds of it, since runs of the same training are not independent.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.core.statistics import Estimate, percentile_interval, ranks
from blemish.reports.figure_files import save_figure
from blemish.studies.overlap.plan import STANDARD
from blemish.studies.separation.scores import mscr_of
from network_records import Records

FAMILIES = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
}
FIFTEEN = tuple(name for names in FAMILIES.values() for name in names)
RADII = {
    "L∞, ε_min of the copy": "linf:0.1",
    "L∞, the paper's ε_min": "linf:0.105882",
    "L2, ε_min of the copy": "l2:1.34225",
}
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Network:
    """What a network was trained on, its clean accuracy, MSCR by radius, and its mean error by corruption."""

    kind: str
    trained_on: str
    round: int
    clean: float
    mscr: dict[str, float]
    errors: dict[str, float]

    @property
    def plain(self) -> bool:
        """Trained without noise or corruption: what others are compared with."""
        return self.trained_on == STANDARD


def networks(records: Records) -> list[Network]:
    """All networks of a file of either experiment."""
    overlap = records.protocol["experiment"] == "overlap_all"
    found = []
    for name, facts in records.facts.items():
        noise, corrupted = (records.accuracies(name, key) for key in ("noise", "corrupted"))
        clean = corrupted["clean"] if overlap else noise["linf:0"]
        errors: defaultdict[str, list[float]] = defaultdict(list)
        for condition, value in corrupted.items():
            group = condition.partition("@")[0].replace("frost_drawn", "frost")
            if group in FIFTEEN:
                errors[group].append(1 - value)
        if overlap:
            way = {"tuned": "fine-tuned on one corruption", "scratch": "trained on one corruption"}
            kind, trained, number = way[records.protocol["way"]], name, int(records.protocol["seed"])
        else:
            kind, number = "trained with noise", int(facts["run"])
            trained = STANDARD if facts["eps"] == 0 else f"{facts['norm']} {facts['eps']:g}"
        scores = {title: mscr_of(clean, noise[key]) for title, key in RADII.items() if key in noise}
        means = {group: float(np.mean(values)) for group, values in errors.items()}
        found.append(Network(kind, trained, number, clean, scores, means))
    return found


def relative_errors(group: Sequence[Network]) -> dict[str, Floats]:
    """CE of every network and corruption: its error over that of plain networks, in percent."""
    plain = [network for network in group if network.plain]
    if not plain:
        raise InputError(
            f"no network that was {group[0].kind} has no noise or corruption; expected one to compare with"
        )
    base = {name: np.mean([network.errors[name] for network in plain]) for name in group[0].errors}
    return {name: np.array([100 * n.errors[name] / base[name] for n in group]) for name in base}


def pearson(first: Floats, second: Floats) -> float:
    """NaN where one of them does not vary."""
    if first.std() == 0 or second.std() == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def spearman(first: Floats, second: Floats) -> float:
    """The correlation of ranks."""
    return pearson(ranks(first), ranks(second))


def partial(first: Floats, second: Floats, control: Floats) -> float:
    """The correlation of what is left of both after a linear fit on a third."""
    if control.std() == 0:
        return pearson(first, second)
    left = [values - np.polyval(np.polyfit(control, values, 1), control) for values in (first, second)]
    return pearson(*left)


def with_interval(
    measure: Callable[..., float], values: Sequence[Floats], clusters: Sequence[str], resamples: int
) -> Estimate:
    """A correlation and its 95 % interval over resampled clusters."""
    rows = defaultdict(list)
    for row, cluster in enumerate(clusters):
        rows[cluster].append(row)
    groups = [np.array(part) for part in rows.values()]
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(resamples):
        chosen = np.concatenate([groups[k] for k in rng.integers(0, len(groups), len(groups))])
        drawn.append(measure(*(column[chosen] for column in values)))
    known = np.array([value for value in drawn if not np.isnan(value)])
    return percentile_interval(measure(*values), known if len(known) else np.array([np.nan]))


def shown(found: Estimate) -> str:
    """A correlation with its interval."""
    return f"{found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def table(group: Sequence[Network], resamples: int) -> None:
    """Correlations of MSCR with errors over the networks of a kind."""
    errors = relative_errors(group)
    clusters = [network.trained_on for network in group]
    clean = np.array([network.clean for network in group])
    columns = {"all fifteen (mCE)": FIFTEEN, "without the three noises": FIFTEEN[3:], **FAMILIES}
    print(f"{group[0].kind}: {len(group)} networks of {len(set(clusters))} kinds of training\n")
    print("| MSCR at | error under | Pearson | Spearman | Pearson, clean accuracy held fixed |\n|---|---|---|---|---|")
    for radius in group[0].mscr:
        scores = np.array([network.mscr[radius] for network in group])
        for title, names in columns.items():
            mean = np.mean([errors[name] for name in names], axis=0)
            plain = [with_interval(way, (scores, mean), clusters, resamples) for way in (pearson, spearman)]
            held = with_interval(partial, (scores, mean, clean), clusters, resamples)
            print(f"| {radius} | {title} | " + " | ".join(map(shown, (*plain, held))) + " |")
    print()
    best = np.array([network.mscr[next(iter(group[0].mscr))] for network in group])
    print("| corruption | Pearson | Spearman |\n|---|---|---|")
    for name in FIFTEEN:
        both = [with_interval(way, (best, errors[name]), clusters, resamples) for way in (pearson, spearman)]
        print(f"| {name} | " + " | ".join(map(shown, both)) + " |")
    print()


def draw(groups: dict[str, list[Network]], path: Path) -> None:
    """MSCR against mCE, a panel per kind of network."""
    figure: Any = optional_import("matplotlib.figure").Figure(figsize=(5.2 * len(groups), 4.2), layout="constrained")
    for number, (kind, group) in enumerate(groups.items(), start=1):
        axes = figure.add_subplot(1, len(groups), number)
        radius = next(iter(group[0].mscr))
        errors = relative_errors(group)
        mean = np.mean([errors[name] for name in FIFTEEN], axis=0)
        scores = 100 * np.array([network.mscr[radius] for network in group])
        dots = axes.scatter(scores, mean, c=[100 * network.clean for network in group], s=18, cmap="viridis")
        axes.axhline(100, color="#999999", linewidth=0.8)
        axes.set_xlabel(f"MSCR [%] ({radius})")
        axes.set_ylabel("mCE [%], plain networks = 100")
        axes.set_title(f"{kind}: Pearson {pearson(scores, mean):+.2f}", fontsize=10)
        figure.colorbar(dots, ax=axes, label="clean accuracy [%]")
    save_figure(figure, path)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    groups: defaultdict[str, list[Network]] = defaultdict(list)
    seen: set[tuple[str, str, int]] = set()
    for path in options.records:
        for network in networks(Records.read(path)):
            key = (network.kind, network.trained_on, network.round)
            if key not in seen:  # a later file may hold an earlier one's networks again
                seen.add(key)
                groups[network.kind].append(network)
    for group in groups.values():
        table(group, options.resamples)
    if options.figure:
        draw(dict(groups), options.figure)
        print(f"drew {options.figure}")


if __name__ == "__main__":
    main()
