"""Corrupting images of any kind: torch tensors, NumPy arrays and PIL pictures in, the same kind out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError, about
from blemish.core.rng import as_ids, check_seed
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.kinds import Unpacked, unpack
from blemish.corruptions.labels import Corrupted, LabelSet
from blemish.corruptions.precision import eagerly
from blemish.corruptions.running import Ids, as_numbers, content_id, geometries_of, numbers_of, run
from blemish.corruptions.sample_labels import with_moved_labels
from blemish.corruptions.samples import IdFrom, is_sample, open_sample, sample_id
from blemish.corruptions.severity import SeverityTable, check_severity, severity_text

__all__ = ["Corrupt", "content_id", "corrupt", "preset_rule"]

Images = TypeVar("Images", Tensor, NDArray[Any], Image.Image, list[Image.Image], tuple[Image.Image, ...])


@overload
def corrupt(
    images: Images,
    name: str | Corruption,
    severity: float | Sequence[float] | Tensor,
    *,
    seed: int = 0,
    ids: Ids | None = None,
    preset: str | None = None,
    catalog: Catalog = catalog,
    boxes: None = None,
    masks: None = None,
    keypoints: None = None,
    fill: float = 0,
) -> Images: ...


@overload
def corrupt(
    images: Any,
    name: str | Corruption,
    severity: float | Sequence[float] | Tensor,
    *,
    seed: int = 0,
    ids: Ids | None = None,
    preset: str | None = None,
    catalog: Catalog = catalog,
    boxes: Any = None,
    masks: Any = None,
    keypoints: Any = None,
    fill: float = 0,
) -> Corrupted: ...


@eagerly
def corrupt(
    images: Any,
    name: str | Corruption,
    severity: float | Sequence[float] | Tensor,
    *,
    seed: int = 0,
    ids: Ids | None = None,
    preset: str | None = None,
    catalog: Catalog = catalog,
    boxes: Any = None,
    masks: Any = None,
    keypoints: Any = None,
    fill: float = 0,
) -> Any:
    """Corrupt one image or a batch, and return the same kind, shape, type and device.

    Accepted are torch tensors (CHW or BCHW), NumPy arrays (HW, HWC or NHWC) of uint8 or of float in [0, 1], and PIL
    pictures in mode RGB or L, one or a list whose members may differ in size. Other PIL modes are refused rather than
    converted silently: the result could not have the mode of the input. A stack of gray NumPy images needs its channel
    axis, because (N, H, W) and a mistaken (C, H, W) look alike. Of torchvision's tensors images are taken, and videos,
    whose frames share one draw.

    ``severity`` is any number in 0 … 5, or one per image; 0 returns the input unchanged. The pixels are a pure function
    of the image, the corruption, the severity, ``seed`` and the image's id. ``ids`` (64-bit integers; one number will
    do for a single image) default to the positions 0, 1, 2 …, so name them when you corrupt images one by one.
    ``preset`` names the severity table; by default the one whose image size is nearest to the shorter side is used.

    With ``boxes``, ``masks`` or ``keypoints`` the result is a `Corrupted` with the images and their labels. Labels move
    with the pixels where the corruption knows a map of them, by the same draw; else they stay, and the result says so.
    Boxes are (N, 4): left, top, right and bottom in pixels (xyxy). Masks are (H, W) or (N, H, W) of any type; where
    nothing of the image is shown they become ``fill``. Keypoints are (…, 2), x and y in pixels, or (…, 3) with COCO's
    visibility. For a batch each is a list, or a stack, with an entry for every image.
    """
    unpacked = unpack(images)
    corruption = _find(name, catalog)
    numbers = None if ids is None else as_numbers(ids, unpacked.single)
    if ids is None and unpacked.single:
        numbers = as_ids([0])
    made = run(unpacked, corruption, severity, seed, numbers, preset)
    if boxes is None and masks is None and keypoints is None:
        return made
    labels = LabelSet(boxes, masks, keypoints, fill)
    geometries = geometries_of(unpacked, corruption, severity, seed, numbers, preset)
    return labels.moved(made, corruption.moves, geometries, alone=unpacked.single and unpacked.total == 1)


class Corrupt:
    """A corruption as a transform for datasets, DataLoader workers and torchvision-style pipelines.

    ``Corrupt("fog", severity=3)(image, id=7)`` depends on nothing but the image, the settings and the id, so any number
    of workers gives the same pixels. Called with the image alone, as a pipeline does, it takes the image's
    ``content_id``: still a pure function, and equal images get equal corruptions.

    A tuple or a dictionary is one sample, and so are several arguments. Images in it are found by the rule of
    torchvision's transforms (v2): all PIL pictures and torchvision images, or else the first plain tensor. They get one
    draw, by the id of the sample or the content of the first of them. Everything else is handed on as it is, boxes and
    masks too, whether or not a corruption moves pixels. With ``move_labels`` torchvision's boxes, masks and keypoints
    move where the corruption knows a map: see `blemish.corruptions.sample_labels`. A list of pictures is a batch.

    ``id_from`` says where samples have their id: a key of the dictionary, or of the dictionary in the tuple; a position
    in the tuple; or a function of the sample. Texts, such as names of files, are hashed to numbers by `hash_id`.
    """

    def __init__(
        self,
        name: str | Corruption,
        severity: float,
        *,
        seed: int = 0,
        preset: str | None = None,
        id_from: IdFrom | None = None,
        move_labels: bool = False,
        catalog: Catalog = catalog,
    ) -> None:
        """Check the settings once, here, rather than in a worker."""
        self.corruption = _find(name, catalog)
        self.severity = check_severity(severity)
        self.corruption.require(self.severity)
        self.corruption.check_files()
        self.seed = check_seed(seed)
        self.preset = preset
        self.id_from = id_from
        self.move_labels = move_labels
        if not (id_from is None or isinstance(id_from, str | int) or callable(id_from)) or isinstance(id_from, bool):
            raise InputError(f"id_from {id_from!r}; expected a key, a position or a function of the sample")
        if preset is not None:
            with about(self.corruption.name):
                self.corruption.table.at([0], preset)  # refuses an unknown preset, and names the known ones

    @overload
    def __call__(self, images: Images, /, *, id: Ids | None = None) -> Images: ...

    @overload
    def __call__(self, *inputs: Any, id: Ids | None = None) -> Any: ...

    @eagerly
    def __call__(self, *inputs: Any, id: Ids | None = None) -> Any:  # noqa: A002
        """Corrupt an image or a batch of any kind that ``corrupt`` takes, or the images of a sample.

        ``id`` is one number, or one per image of a batch; it goes before ``id_from``.
        """
        if not inputs:
            raise InputError("nothing to corrupt; expected an image or a sample")
        images = inputs[0] if len(inputs) == 1 else inputs
        if id is None and self.id_from is not None:
            id = sample_id(images, self.id_from)  # noqa: A001
        if is_sample(images):
            return self._sample(images, id)
        unpacked = unpack(images)
        return self._run(unpacked, numbers_of(unpacked, id))

    def _sample(self, whole: Any, ids: Ids | None) -> Any:
        sample = open_sample(whole)
        results = []
        numbers = None
        for row, leaf_path in zip(sample.images, sample.places, strict=True):
            with about(f"the sample's {leaf_path}"):
                images = unpack(sample.leaves[row])
                if numbers is None:
                    numbers = numbers_of(images, ids)
                results.append(self._run(images, numbers))
        made = sample.with_images(results)
        if not self.move_labels or self.corruption.moves is None or self.corruption.moves.maps is None:
            return made
        images = unpack(sample.leaves[sample.images[0]])
        assert numbers is not None
        return with_moved_labels(
            made, geometries_of(images, self.corruption, self.severity, self.seed, numbers, self.preset)
        )

    def _run(self, images: Unpacked, numbers: Tensor) -> Any:
        return run(images, self.corruption, self.severity, self.seed, numbers, self.preset)

    def __repr__(self) -> str:
        """The settings, and how the preset is chosen if none was named."""
        preset = repr(self.preset) if self.preset else f"<{preset_rule(self.corruption.table)}>"
        severity = severity_text(self.severity)
        where = "" if self.id_from is None else f", id_from={self.id_from!r}"
        where += ", move_labels=True" if self.move_labels else ""
        return f"Corrupt({self.corruption.name!r}, severity={severity}, seed={self.seed}, preset={preset}{where})"


def preset_rule(table: SeverityTable) -> str:
    """How a preset is chosen when none is named, in words."""
    if table.by_data_set:
        return f"the first data set: {', '.join(table.rows)}"
    sizes = sorted((table.sizes[name], name) for name in table.rows)
    return "nearest to the shorter side: " + ", ".join(f"{name} {size}" for size, name in sizes)


def _find(name: str | Corruption, catalog: Catalog) -> Corruption:
    return name if isinstance(name, Corruption) else catalog[name]
