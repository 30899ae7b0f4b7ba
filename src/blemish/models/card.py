"""What is known of a model besides its weights: how large it is, and which pictures it learnt from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from blemish.core.printable import as_text
from blemish.core.typed import optional_field

# Names of training sets as they stand in names of weights and in lists of data sets, what they are called, and whether
# they are web-scale: about a hundred million pictures from the web and more, among which every common corruption is.
# Of two that fit at the same place, the first counts.
_SETS: tuple[tuple[str, str, bool], ...] = (
    (r"laion[-_]?5b", "LAION-5B", True),
    (r"laion[-_]?2b", "LAION-2B", True),
    (r"laion[-_]?400m", "LAION-400M", True),
    (r"laiona", "LAION-aesthetic", True),
    (r"laion", "LAION", True),
    (r"datacomp[-_][sm](?=[-_])", "DataComp (small)", False),
    (r"datacomp[-_]?(1b|xl)?", "DataComp", True),
    (r"commonpool[-_]s(?=[-_])", "CommonPool (small)", False),
    (r"commonpool", "CommonPool", True),
    (r"dfn[-_]?[0-9]*b?", "DFN", True),
    (r"metaclip|fullcc", "MetaCLIP", True),
    (r"merged[-_]?2b", "Merged-2B", True),
    (r"coyo", "COYO-700M", True),
    (r"webli", "WebLI", True),
    (r"openai|wit[-_]?400m", "WIT-400M", True),
    (r"jft", "JFT-300M", True),
    (r"swag|ig[-_]?3[._]?6b", "IG-3.6B", True),
    (r"swsl|ig[-_]?1b|ig[-_]?940m", "IG-1B", True),
    (r"lvd[-_]?142m", "LVD-142M", True),
    (r"lvd[-_]?1689m", "LVD-1689M", True),
    (r"yfcc[-_]?100m", "YFCC-100M", True),
    (r"yfcc[-_]?15m", "YFCC-15M", False),
    (r"cc[-_]?12m", "CC-12M", False),
    (r"cc[-_]?3m", "CC-3M", False),
    (r"(imagenet[-_]?|in)(21|22)k", "ImageNet-21k", False),
    (r"(imagenet[-_]?|in)12k", "ImageNet-12k", False),
    (r"(imagenet[-_]?|in)1k|imagenet2012", "ImageNet-1k", False),
    (r"imagenet(?![-_]?[0-9a-z])", "ImageNet", False),
    (r"cifar[-_]?100", "CIFAR-100", False),
    (r"cifar[-_]?10(?!0)", "CIFAR-10", False),
)


@dataclass(frozen=True)
class Claim:
    """An accuracy, as a rate, that a model's source says it has on a data set, which it names in its own words."""

    data: str
    accuracy: float
    said_by: str

    def __post_init__(self) -> None:
        """Escape what result files cannot hold."""
        object.__setattr__(self, "data", as_text(self.data))

    @property
    def of_imagenet(self) -> bool:
        """Whether it is about ImageNet's thousand classes, whose validation images everybody means by it."""
        plain = re.sub(r"[^a-z0-9]", "", self.data.lower().rpartition("/")[2])
        return plain in ("imagenet", "imagenet1k", "ilsvrc2012", "imagenetilsvrc2012", "imagenet2012")


@dataclass(frozen=True)
class ModelCard:
    """What a model's source says of it, as far as it does.

    ``training_data`` are the sets of pictures it learnt from, with ``said_by`` for where that is said. ``web_scale`` is
    whether any of them is that large; None where nobody says. ``revision`` names the version on a hub. ``claims`` are
    accuracies that the source says it has.
    """

    parameters: int | None = None
    input_size: tuple[int, int] | None = None
    source: str = ""
    revision: str | None = None
    training_data: tuple[str, ...] = ()
    said_by: str = ""
    web_scale: bool | None = None
    claims: tuple[Claim, ...] = optional_field((), compare=False)

    def __post_init__(self) -> None:
        """Escape what result files cannot hold: folders may be called anything."""
        object.__setattr__(self, "source", as_text(self.source))

    @property
    def remark(self) -> str | None:
        """What a reader of numbers under corruptions has to know of the training."""
        if not self.web_scale:
            return None
        return (
            f"learnt from {', '.join(self.training_data)}, web-scale data with corrupted pictures among it: common "
            "corruptions are not out of distribution for it"
        )

    @property
    def lines(self) -> list[tuple[str, str]]:
        """What is known, by name, for people."""
        size = "" if self.input_size is None else "×".join(map(str, self.input_size))
        data = ", ".join(self.training_data) + (" (web-scale)" if self.web_scale else "")
        lines = {"parameters": _large(self.parameters), "input size": size, "training data": data}
        return [(name, text) for name, text in lines.items() if text]


def _large(count: int | None) -> str:
    """A number of parameters as people say it.

    >>> _large(25_557_032), _large(6141), _large(2_539_567_362)
    ('25.6 million', '6,141', '2.54 billion')
    """
    if count is None:
        return ""
    for unit, name in ((10**9, "billion"), (10**6, "million")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:,}"


def training_card(texts: Iterable[str], said_by: str, **known: object) -> ModelCard:
    """A card with the training sets that names speak of: of weights, or of data sets.

    >>> training_card(["augreg_in21k_ft_in1k"], "its tag").training_data
    ('ImageNet-21k', 'ImageNet-1k')
    >>> training_card(["laion2b_s34b_b88k"], "its tag").web_scale, training_card(["a1"], "its tag").web_scale
    (True, None)
    """
    sets = [entry for text in texts for entry in _named(text.lower().rpartition("/")[2])]  # without the owner
    return ModelCard(
        training_data=tuple(dict.fromkeys(name for name, _ in sets)),
        said_by=said_by if sets else "",
        web_scale=any(large for _, large in sets) if sets else None,
        **known,  # type: ignore[arg-type]
    )


def _named(text: str) -> list[tuple[str, bool]]:
    """The sets in a text, in its order; no part of it names two."""
    by_start: dict[int, tuple[str, bool]] = {}
    taken = [False] * len(text)
    for pattern, name, large in _SETS:
        for match in re.finditer(rf"(?<![a-z0-9])(?:{pattern})(?![a-z])", text):
            if not any(taken[match.start() : match.end()]):
                taken[match.start() : match.end()] = [True] * (match.end() - match.start())
                by_start[match.start()] = (name, large)
    return [by_start[start] for start in sorted(by_start)]


def count_parameters(module: nn.Module) -> int:
    """How many numbers a module has learnt; shared ones count once."""
    return sum(parameter.numel() for parameter in module.parameters())
