"""Do "more categories", "balance" and "size" help ImageNet-C predict natural robustness, over 194 real models?

    python perf/natural_correlation.py

The models are those of the ImageNet testbed (Taori et al. 2020), whose table comes with the library
(blemish build table testbed). Prints the tables of docs/research/natural-robustness.md.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from blemish.studies.construction.categories import Categories, check_categories, find_categories
from blemish.studies.construction.generation import DRAWS, count_benchmarks, generate_benchmarks
from blemish.studies.construction.natural import (
    compare_groups,
    correlate_with_natural,
    mean_residuals,
    natural_residuals,
)
from blemish.studies.construction.overlap import overlap_matrix
from blemish.studies.construction.published import published_table
from blemish.studies.construction.substitution import group_by_std, unbalanced
from blemish.studies.construction.tables import AccuracyTable

NATURAL = {
    "natural:imagenet-a": "clean:imagenet-a",
    "natural:imagenet-r": "clean:imagenet-r",
    "natural:imagenet-v2": "clean",
    "natural:objectnet": "clean:objectnet",
    "natural:imagenet-sketch": "clean",
}
SHORT = ("A", "R", "V2", "ObjectNet", "Sketch")

# The Syn2Nat paper names its categories 2 to 6 and shows their members in a picture only. ImageNet-C's corruptions are
# put where these names, and the members that its text and its released list of ImageNet-Syn2Nat mention, place them;
# weather goes with the mixed category 1, in which that list has sun flare and shadow.
BY_NAME = Categories(
    {
        "mixed": ("snow", "frost", "fog", "spatter"),
        "spatial": ("elastic_transform",),
        "blurs": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
        "lighting": ("brightness", "contrast"),
        "fine-grain": (
            "gaussian_noise",
            "shot_noise",
            "impulse_noise",
            "speckle_noise",
            "pixelate",
            "jpeg_compression",
        ),
        "colour": ("saturate",),
    }
)


Group = list[tuple[str, ...]]


def row(table: AccuracyTable, label: str, benchmarks: Group, first: Group | None, *, partial: bool, full: bool) -> str:
    """One line of a table: Algorithm 2 for a group of benchmarks, and how it differs from the first of its block."""
    natural = dict.fromkeys(NATURAL, "clean") if full else NATURAL
    control = table.columns(["clean"])[:, 0] if partial else None
    found = correlate_with_natural(
        mean_residuals(table, benchmarks),
        natural_residuals(table, natural),
        names=SHORT,
        control=control,
        resamples=1000,
    )
    cells = [f"{g.mean:.3f}" for g in found.group]
    mean = np.mean([g.mean for g in found.group])
    difference = "–"
    if first is not None:
        scores = [mean_residuals(table, group) for group in (first, benchmarks)]
        change = compare_groups(*scores, natural_residuals(table, natural), control=control, resamples=2000)
        difference = f"{change.value:+.3f} ({change.low:+.3f} … {change.high:+.3f})".replace("-", "−")
    return f"| {label} | {len(benchmarks)} | {' | '.join(cells)} | **{mean:.3f}** | {difference} |"


def some(categories: Categories, n: int, k: int, draw: str) -> list[tuple[str, ...]]:
    """A thousand benchmarks, or all if there are fewer."""
    return generate_benchmarks(categories, n=n, k=k, count=min(1000, count_benchmarks(categories, n=n, k=k)), draw=draw)


def uneven(label: str, categories: Categories, n: int, k: int, draw: str) -> dict[str, Group]:
    """Benchmarks after substitutions, by the standard deviation of the numbers of representatives."""
    even = some(categories, n, k, draw)
    found = group_by_std([*even, *unbalanced(even, categories)], categories)
    return {f"{label}, n = {n}, {n * k} corruptions, std {group.std:.2f}": list(group.benchmarks) for group in found}


def blocks(by_overlap: Categories, draw: str) -> list[tuple[str, dict[str, Group]]]:
    """What is compared: a heading, and labelled groups of benchmarks of which the first is the reference."""
    name, overlap = "by name", "by overlap"

    def both(label: str, categories: Categories, *pairs: tuple[int, int]) -> dict[str, Group]:
        return {f"{label}, n = {n}, k = {k}": some(categories, n, k, draw) for n, k in pairs}

    extra = ("spatter", "gaussian_blur", "speckle_noise", "saturate")
    published = tuple(corruption for corruption in BY_NAME.corruptions if corruption not in extra)
    return [
        ("more categories, same size", both(name, BY_NAME, (2, 3), (3, 2), (6, 1))),
        ("more categories, same size", both(overlap, by_overlap, (1, 4), (2, 2))),
        ("more categories, same size", both(overlap, by_overlap, (2, 3), (3, 2))),
        ("less balance, same size and number of categories", uneven(name, BY_NAME, 3, 2, draw)),
        ("less balance, same size and number of categories", uneven(overlap, by_overlap, 3, 3, draw)),
        ("larger, same number of categories", both(name, BY_NAME, (4, 1), (4, 2))),
        (
            "larger, same number of categories",
            {**both(overlap, by_overlap, (3, 1), (3, 2), (3, 3), (3, 4)), "ImageNet-C, all 15": [published]},
        ),
    ]


def main() -> None:
    """Print everything as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="one clean accuracy, on all classes, for every natural set")
    parser.add_argument("--draw", choices=DRAWS, default="uniform", help="how benchmarks are drawn from categories")
    arguments = parser.parse_args()
    table = published_table("testbed")
    by_overlap, _ = find_categories(overlap_matrix(published_table("imagenet-c")))
    print(f"{len(table.models)} models", file=sys.stderr)
    for label, categories in (("by name", BY_NAME), ("by overlap", by_overlap)):
        check = check_categories(table, categories)
        print(f"{label}: same category {check.same:.3f}, different {check.different:.3f}")
        for name, found in categories.members.items():
            print(f"  {name}: {', '.join(found)}")
    for partial in (False, True):
        print(f"\n{'Partial correlations, clean accuracy held fixed' if partial else 'Plain correlations'}\n")
        print(f"| group | benchmarks | {' | '.join(SHORT)} | mean | mean, less the first group's |")
        print(f"|---|---:|{'---:|' * (len(SHORT) + 2)}")
        for heading, found in blocks(by_overlap, arguments.draw):
            print(f"| *{heading}* |{' |' * (len(SHORT) + 3)}")
            reference = None
            for label, benchmarks in found.items():
                print(row(table, label, benchmarks, reference, partial=partial, full=arguments.full))
                reference = reference or benchmarks


if __name__ == "__main__":
    main()
