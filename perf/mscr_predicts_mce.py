"""Does MSCR predict corruption errors? python perf/mscr_predicts_mce.py RECORDS … [--figure FILE.png]

RECORDS are of perf/mscr_cifar.py (networks trained with noise) and perf/overlap_all.py (networks fine-tuned on one
corruption each, or from scratch), in any number of files (.npz), or the lists of them (.json). For every kind of
network, correlates MSCR with the error under the fifteen corruptions of ImageNet-C over the networks: mCE relative to
networks trained without any corruption, over all fifteen and over the families of corruptions, plain and with clean
accuracy held fixed. Intervals resample what networks were trained on, with all runs and seeds of it, since runs of the
same training are not independent.
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
COLUMNS = {"all fifteen (mCE)": FIFTEEN, "without the three noises": FIFTEEN[3:], **FAMILIES}
NOISY, TUNED, SCRATCH = "trained with noise", "fine-tuned on one corruption", "from scratch on one corruption"
FEWEST = 10
"""Of fewer kinds of training, nothing but the summary is shown."""

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
            way = {"tuned": TUNED, "scratch": SCRATCH}
            kind, trained, number = way[records.protocol["way"]], name, int(records.protocol["seed"])
        else:
            kind, number = NOISY, int(facts["run"])
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


def scored(group: Sequence[Network]) -> tuple[Floats, list[str]]:
    """MSCR of networks at the first radius, and what they were trained on."""
    radius = next(iter(RADII))
    return np.array([network.mscr[radius] for network in group]), [network.trained_on for network in group]


def mean_error(errors: dict[str, Floats], names: Sequence[str]) -> Floats:
    """The mean of CE over some corruptions: mCE, if they are all."""
    return np.asarray(np.mean([errors[name] for name in names], axis=0))


def parts_of(group: Sequence[Network]) -> dict[str, list[Network]]:
    """The networks of a kind, and of those that were fine-tuned also some: is it one seed, or what is trained on?"""
    kind = group[0].kind
    parts = {kind: list(group)}
    if kind == TUNED:
        seeds = sorted({network.round for network in group})
        parts |= {f"… seed {seed}": [n for n in group if n.round == seed] for seed in seeds}
        parts["… on none of the fifteen"] = [n for n in group if n.trained_on not in FIFTEEN]
        parts["… on nothing called noise"] = [n for n in group if "noise" not in n.trained_on]
    return parts


def summary(groups: Sequence[Sequence[Network]], resamples: int) -> None:
    """Pearson's correlation of MSCR with errors, a row for each kind of network and for parts of it."""
    columns = list(COLUMNS)[:3]
    print(f"| networks ({next(iter(RADII))}) | how many | {' | '.join(columns)} |\n|---|---|---|---|---|")
    for title, part in (item for group in groups for item in parts_of(group).items()):
        errors, (scores, clusters) = relative_errors(part), scored(part)
        found = [
            with_interval(pearson, (scores, mean_error(errors, COLUMNS[name])), clusters, resamples) for name in columns
        ]
        kinds = f"{len(part)} of {len(set(clusters))} kinds"
        print(f"| {title} | {kinds} | " + " | ".join(map(shown, found)) + " |")
    print()


def ranges(groups: Sequence[Sequence[Network]]) -> None:
    """How far the networks of a kind differ."""
    columns = list(COLUMNS)[:3]
    print(f"| from … to, in % | clean, plain networks | clean | MSCR | {' | '.join(columns)} |")
    print("|---|---|---|---|" + "---|" * len(columns))
    for group in groups:
        errors, (scores, _) = relative_errors(group), scored(group)
        plain = np.mean([network.clean for network in group if network.plain])
        values = [100 * np.array([network.clean for network in group]), 100 * scores]
        values += [mean_error(errors, COLUMNS[name]) for name in columns]
        ends = " | ".join(f"{one.min():.1f} … {one.max():.1f}" for one in values)
        print(f"| {group[0].kind} | {100 * plain:.2f} | {ends} |")
    print()


def by_corruption(groups: Sequence[Sequence[Network]], resamples: int) -> None:
    """Pearson's correlation of MSCR with the error under each corruption, a column for each kind of network."""
    print(f"| corruption | {' | '.join(group[0].kind for group in groups)} |\n|---|" + "---|" * len(groups))
    errors = [relative_errors(group) for group in groups]
    for name in FIFTEEN:
        found = []
        for group, own in zip(groups, errors, strict=True):
            scores, clusters = scored(group)
            found.append(with_interval(pearson, (scores, own[name]), clusters, resamples))
        print(f"| {name} | " + " | ".join(map(shown, found)) + " |")
    print()


def table(group: Sequence[Network], resamples: int) -> None:
    """Correlations of MSCR with errors over the networks of a kind, by radius and family."""
    errors = relative_errors(group)
    clusters = [network.trained_on for network in group]
    clean = np.array([network.clean for network in group])
    print(f"{group[0].kind}: {len(group)} networks of {len(set(clusters))} kinds of training\n")
    print("| MSCR at | error under | Pearson | Spearman | Pearson, clean accuracy held fixed |\n|---|---|---|---|---|")
    for radius in group[0].mscr:
        scores = np.array([network.mscr[radius] for network in group])
        for title, names in COLUMNS.items():
            mean = mean_error(errors, names)
            plain = [with_interval(way, (scores, mean), clusters, resamples) for way in (pearson, spearman)]
            held = with_interval(partial, (scores, mean, clean), clusters, resamples)
            print(f"| {radius} | {title} | " + " | ".join(map(shown, (*plain, held))) + " |")
    print()


def draw(groups: Sequence[Sequence[Network]], path: Path) -> None:
    """MSCR against errors: a column of panels per kind of network, a row for all, the noises, and the others."""
    titles = {"all fifteen (mCE)": FIFTEEN, "the three noises": FIFTEEN[:3], "the other twelve": FIFTEEN[3:]}
    size = (3.6 * len(groups), 2.5 * len(titles) + 0.3)
    figure: Any = optional_import("matplotlib.figure").Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(titles), len(groups), sharex=True, sharey="row", squeeze=False)
    for column, group in zip(panels.T, groups, strict=True):
        errors, (scores, _) = relative_errors(group), scored(group)
        plain = np.array([network.plain for network in group])
        for axes, (title, names) in zip(column, titles.items(), strict=True):
            mean = mean_error(errors, names)
            axes.scatter(100 * scores[~plain], mean[~plain], s=11, color="#3b6ea5", alpha=0.6, linewidth=0)
            axes.scatter(100 * scores[plain], mean[plain], s=26, color="#d1495b", label="no noise, no corruption")
            axes.axhline(100, color="#999999", linewidth=0.8, zorder=0)
            axes.set_title(f"{title}: {pearson(scores, mean):+.2f}".replace("-", "−"), fontsize=9)
        column[0].set_title(f"{group[0].kind}\n\n{column[0].get_title()}", fontsize=9)
        column[-1].set_xlabel("MSCR [%]")
    for axes in panels[:, 0]:
        axes.set_ylabel("error, plain networks = 100", fontsize=8)
    panels[0, 0].legend(fontsize=7, loc="upper left")
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
    ordered = [groups[kind] for kind in (NOISY, TUNED, SCRATCH) if kind in groups]
    summary(ordered, options.resamples)
    ranges(ordered)
    by_corruption(ordered, options.resamples)
    for group in ordered:
        if len({network.trained_on for network in group}) >= FEWEST:
            table(group, options.resamples)
    if options.figure:
        draw(ordered, options.figure)
        print(f"drew {options.figure}")


if __name__ == "__main__":
    main()
