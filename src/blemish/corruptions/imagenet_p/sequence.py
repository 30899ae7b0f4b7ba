"""What a perturbation sequence is: an image in many frames, each a small step from the last or from the clean one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng, image_ids
from blemish.core.types import Shape, Square
from blemish.corruptions.base import quantise
from blemish.corruptions.imagenet_c.published import SOURCE
from blemish.corruptions.imagenet_p.settings import Preset, Settings
from blemish.corruptions.inputs import MIN_SIDE, check_images
from blemish.corruptions.precision import full_precision
from blemish.corruptions.severity import Params, nearest_size
from blemish.ops.levels import as_levels, unit_range
from blemish.ops.pillow import resized, squared

DIFFICULTIES = (1, 2, 3)

Crop = int | tuple[int, int] | Square

# Values per part that is rendered at once: on the CPU it should stay in the cache, on a GPU it only has to fit.
_CPU_CHUNK = 2**20
_GPU_CHUNK = 2**28


def strides(frames: int, difficulty: int) -> list[list[int]]:
    """The frames that a temporal sequence is read at: every ``difficulty``-th, once from each offset.

    >>> strides(7, 2)
    [[0, 2, 4, 6], [1, 3, 5]]
    """
    _check_difficulty(difficulty)
    return [list(range(offset, frames, difficulty)) for offset in range(difficulty)]


class Window(NamedTuple):
    """The part of an image that is shown."""

    top: int
    left: int
    height: int
    width: int


@dataclass(frozen=True)
class Scene:
    """Whole images, uint8 (B, C, H, W), and the window that frames show of them."""

    levels: Tensor
    window: Window

    def cropped(self) -> Tensor:
        """The window's grey levels, uint8."""
        top, left, height, width = self.window
        return self.levels[..., top : top + height, left : left + width]

    def unit(self) -> Tensor:
        """The window as float32 in [0, 1], a copy that may be overwritten."""
        return unit_range(self.cropped()).contiguous()

    def params(self, values: Settings) -> Params:
        """Settings in the form that corruptions take, one value per image."""
        count = len(self.levels)
        return {name: torch.full((count,), value, dtype=torch.float64) for name, value in values.items()}


def _no_draw(shape: Shape, values: Settings, rng: CounterRng) -> Any:
    return None


@dataclass(frozen=True)
class PerturbationSequence:
    """A named sequence of frames of an image.

    ``draw(shape, settings, rng)`` makes the random part: anew for every frame of a ``noise`` sequence, once for the
    whole of any other. ``advance(scene, settings, state, index)`` turns the state of the last frame, at first the draw,
    into that of frame ``index``. ``render(scene, settings, state, index)`` makes the frame: uint8, or float to be
    quantised. All three treat each image on its own, and only the draw is random.

    The first frame of a noise sequence is the clean image, with which the others are compared; in a temporal sequence
    a frame is compared with its predecessor.

    Where frames are a `Square`, one that ``moves`` the image is rendered from all of it and made a square afterwards;
    any other is rendered from the square.
    """

    name: str
    description: str
    presets: Mapping[str, Preset]
    render: Callable[[Scene, Settings, Any, int], Tensor]
    draw: Callable[[Shape, Settings, CounterRng], Any] = _no_draw
    advance: Callable[[Scene, Settings, Any, int], Any] | None = None
    source: str = SOURCE
    noise: bool = False
    moves: bool = False
    extra: bool = False
    family: str = "p"
    version: int = 2

    def preset(self, height: int, width: int, crop: Crop | None = None) -> str:
        """The preset whose frames are nearest in size to the shorter side, or to that of a `Square`.

        Of two that are equally near, it is the smaller one.
        """
        if isinstance(crop, Square):
            height = width = crop.side
        return nearest_size({name: preset.side for name, preset in self.presets.items()}, height, width)

    def length(self, preset: str = "imagenet") -> int:
        """The number of frames."""
        return self._row(preset).length

    def pairs(self, difficulty: int = 1, *, preset: str = "imagenet") -> list[tuple[int, int]]:
        """Which two frames are compared, in order: with frame 0 in a noise sequence, else along `strides`."""
        length = self.length(preset)
        if self.noise:
            _check_difficulty(difficulty)
            return [(0, index) for index in range(1, length)]
        return [pair for stride in strides(length, difficulty) for pair in itertools.pairwise(stride)]

    def frames(
        self,
        images: Tensor,
        *,
        seed: int = 0,
        ids: Iterable[int] | Tensor | None = None,
        difficulty: int = 1,
        preset: str | None = None,
        crop: Crop | None = None,
    ) -> Iterator[Tensor]:
        """The frames of a (B, C, H, W) batch one after the other, each uint8 (B, C, h, w); none is kept.

        The images are the uncropped ones, of uint8 or of float in [0, 1]. Frames are cut from their centre at the very
        end: to the preset's side (299, 224, 64 or 32 pixels) in the directions in which the images are larger, or to
        ``crop``, a side, a (height, width) or a `Square`. A frame depends on the image, its id, the seed, the
        difficulty and its index alone.
        """
        plan = self._plan(images, seed, ids, difficulty, preset, crop)
        films = [self._film(scene, plan.settings, rng, plan.length) for scene, rng in plan.parts]
        return (_joined(frames, plan.square) for frames in zip(*films, strict=True))

    def frame(
        self,
        images: Tensor,
        index: int,
        *,
        seed: int = 0,
        ids: Iterable[int] | Tensor | None = None,
        difficulty: int = 1,
        preset: str | None = None,
        crop: Crop | None = None,
    ) -> Tensor:
        """Frame ``index`` alone, equal to that of `frames` bit for bit."""
        plan = self._plan(images, seed, ids, difficulty, preset, crop)
        if not 0 <= index < plan.length:
            raise InputError(f"frame {index} of {self.name}; expected 0 … {plan.length - 1}")
        return _joined([self._single(scene, plan.settings, rng, index) for scene, rng in plan.parts], plan.square)

    def _row(self, preset: str) -> Preset:
        if preset not in self.presets:
            raise InputError(f"unknown preset {preset!r} of {self.name}; expected one of {', '.join(self.presets)}")
        return self.presets[preset]

    def _plan(
        self,
        images: Tensor,
        seed: int,
        ids: Iterable[int] | Tensor | None,
        difficulty: int,
        preset: str | None,
        crop: Crop | None,
    ) -> _Plan:
        """Checks everything and cuts the batch into parts that suit the device."""
        check_images(images)
        _check_difficulty(difficulty)
        height, width = images.shape[-2:]
        row = self._row(preset or self.preset(height, width, crop))
        numbers = image_ids(ids, len(images))
        levels = as_levels(images)
        square = None
        if isinstance(crop, Square):
            crop.check(least=MIN_SIDE)
            if self.moves:
                square, crop = crop, crop.kept(height, width)
            else:
                levels, crop = squared(levels, crop), crop.side
                height = width = crop
        window = _window(height, width, crop, row.side)
        room = _CPU_CHUNK if images.device.type == "cpu" else _GPU_CHUNK
        size = max(1, room // images[0].numel())
        cuts = [slice(start, start + size) for start in range(0, len(images), size)]
        parts = [(Scene(levels[cut], window), CounterRng(seed, numbers[cut], self.name, images.device)) for cut in cuts]
        return _Plan(parts, row.rows[difficulty - 1], row.length, square)

    def _film(self, scene: Scene, values: Settings, rng: CounterRng, length: int) -> Iterator[Tensor]:
        state: Any = None
        for index in range(length):
            # Never around the yield: what the caller does between two frames is not ours to switch off.
            with full_precision(rng.device):
                state = self._state(scene, values, rng, index, state)
                frame = self._rendered(scene, values, state, index)
            yield frame

    def _single(self, scene: Scene, values: Settings, rng: CounterRng, index: int) -> Tensor:
        with full_precision(rng.device):
            state: Any = None
            for step in [index] if self.noise else range(index + 1):
                state = self._state(scene, values, rng, step, state)
            return self._rendered(scene, values, state, index)

    def _state(self, scene: Scene, values: Settings, rng: CounterRng, index: int, last: Any) -> Any:
        shape = Shape(scene.levels.shape[1], scene.window.height, scene.window.width)
        if self.noise:
            own = CounterRng(rng.seed, rng.ids, f"{rng.scope}/{index}", rng.device)
            return self.draw(shape, values, own) if index else None
        if index == 0:
            return self.draw(shape, values, rng)
        return last if self.advance is None else self.advance(scene, values, last, index)

    def _rendered(self, scene: Scene, values: Settings, state: Any, index: int) -> Tensor:
        if self.noise and index == 0:
            return scene.cropped()
        frame = self.render(scene, values, state, index)
        return frame if frame.dtype == torch.uint8 else quantise(frame)


class _Plan(NamedTuple):
    """What remains of a call after it was checked; ``square`` is what rendered frames still have to become."""

    parts: list[tuple[Scene, CounterRng]]
    settings: Settings
    length: int
    square: Square | None


def _joined(frames: Iterable[Tensor], square: Square | None) -> Tensor:
    parts = [frame if square is None else resized(frame, square.side, square.side, "bilinear") for frame in frames]
    # Always memory of its own: a frame that is only a crop may not change with the images it was cut from.
    return torch.cat(parts) if len(parts) > 1 else parts[0].clone(memory_format=torch.contiguous_format)


def _check_difficulty(difficulty: int) -> None:
    if difficulty not in DIFFICULTIES:
        raise InputError(f"difficulty {difficulty!r}; expected 1, 2 or 3")


def _window(height: int, width: int, crop: int | tuple[int, int] | None, side: int) -> Window:
    """The centre window, placed as torchvision's CenterCrop does."""
    if crop is None:
        tall, wide = min(height, side), min(width, side)
    else:
        tall, wide = crop if isinstance(crop, tuple) else (crop, crop)
    if min(tall, wide) < MIN_SIDE:
        raise InputError(f"a crop of {tall}×{wide} pixels; expected at least {MIN_SIDE}×{MIN_SIDE}")
    if tall > height or wide > width:
        raise InputError(f"a crop of {tall}×{wide} out of images of {height}×{width} pixels; expected a smaller one")
    return Window(round((height - tall) / 2), round((width - wide) / 2), tall, wide)
