"""The corruptions of cameras: published ones against their formulas, ours against what they claim to do."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import blemish
from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.draws import Field
from blemish.corruptions.plugins import OwnVersion, stated_version
from blemish.corruptions.sensor import SENSOR, defects, light, streams
from blemish.ops import codecs
from blemish.ops.jpeg import jpeg_pillow
from codec_units import by_codec
from frost_files import skip_without_files
from pictures import pictures

UNITS = {corruption.name.removeprefix("sensor:"): corruption for corruption in SENSOR}

# 3D Common Corruptions (Kar et al., CVPR 2022), its generator's settings of severities 1 … 5.
PUBLISHED: dict[str, tuple[str, tuple[float, ...]]] = {
    "low_light": ("gain", (0.6, 0.5, 0.4, 0.3, 0.2)),
    "iso_noise": ("sigma", (0.056, 0.084, 0.126, 0.182, 0.266)),
    "color_quant": ("step", (8, 16, 32, 64, 128)),  # 2 ** (8 - bits) for 5, 4, 3, 2, 1 bits
}
SEVERITIES = [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_settings(name: str) -> None:
    parameter, values = PUBLISHED[name]
    found = UNITS[name].table.at(SEVERITIES, "any")
    assert found[parameter].tolist() == list(values)
    photons = {"low_light": 120, "iso_noise": 25}.get(name)
    if photons is not None:
        assert found["photons"].tolist() == [photons] * 5
    if name == "low_light":
        assert found["sigma"].tolist() == [0.018] * 5
        assert found["bend"].tolist() == found["stretch"].tolist() == [1] * 5


def test_which_are_published_is_stated() -> None:
    published = {name for name, corruption in UNITS.items() if "3D Common Corruptions" in corruption.source}
    assert published == set(PUBLISHED)
    assert all("of this library" in UNITS[name].source for name in set(UNITS) - published)


def steps(low: int, high: int) -> Tensor:
    """A gray image of two halves, 224 pixels wide and high."""
    image = torch.full((1, 1, 224, 224), low, dtype=torch.uint8)
    image[..., 112:] = high
    return image


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_low_light_has_the_formulas_mean_and_variance(severity: int) -> None:
    """y = ((x − min)/(max − min))²·c; Poisson(120 y)/120 + N(0, .018) has mean y and variance y/120 + .018²."""
    image = torch.cat([steps(40, 200), steps(120, 120)[..., :10]], dim=3)  # in 40 … 200, and the middle of it
    gain = PUBLISHED["low_light"][1][severity - 1]
    out = blemish.corrupt(image, "sensor:low_light", severity=severity).double() / 255
    for part, light_there in ((out[..., 112:224], gain), (out[..., 224:], gain / 4)):
        assert float(part.mean()) == pytest.approx(light_there - 0.5 / 255, abs=0.003)
        assert float(part.std()) == pytest.approx(math.sqrt(light_there / 120 + 0.018**2), rel=0.08)
    # Where there is no light, half of the noise lies below zero and is cut.
    assert float((out[..., :112] == 0).double().mean()) > 0.5


def test_an_even_image_is_black_in_low_light() -> None:
    image = torch.full((1, 3, 64, 64), 180, dtype=torch.uint8)
    out = blemish.corrupt(image, "sensor:low_light", severity=1).double() / 255
    assert float(out.mean()) < 0.018
    assert float(out.max()) < 6 * 0.018


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_iso_noise_has_the_formulas_mean_and_variance(severity: int) -> None:
    """Poisson(25 x)/25 + N(0, σ) has mean x and variance x/25 + σ²; x is small enough for little to be cut."""
    sigma = PUBLISHED["iso_noise"][1][severity - 1]
    draw = light._draw_exposure
    corruption = UNITS["iso_noise"]
    assert corruption.draw is draw
    images = torch.full((4, 1, 100, 100), 0.4)
    params = corruption.table.at([float(severity)] * 4, "any")
    rng = CounterRng(0, torch.arange(4), "test")
    out = corruption.apply(images, params, draw(Shape(1, 100, 100), params, rng)).double()
    assert float(out.mean()) == pytest.approx(0.4, abs=0.005)
    assert float(out.std()) == pytest.approx(math.sqrt(0.4 / 25 + sigma**2), rel=0.02)


@pytest.mark.parametrize("bits", [5, 4, 3, 2, 1])
def test_color_quant_keeps_the_first_bits(bits: int) -> None:
    levels = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    out = blemish.corrupt(levels, "sensor:color_quant", severity=6 - bits)
    assert torch.equal(out, levels & ~torch.tensor(2 ** (8 - bits) - 1, dtype=torch.uint8))
    between = blemish.corrupt(levels, "sensor:color_quant", severity=5.5 - bits if bits > 1 else 4.5)
    assert (between <= levels).all()


def test_a_dead_pixel_spreads_as_a_colour_filter_does() -> None:
    """By hand, on level 100: a red place stuck at 255 gives its neighbours half of the error, and a quarter across."""
    images = torch.full((1, 3, 8, 8), 100, dtype=torch.uint8)
    field = torch.ones(1, 1, 8, 8)
    field[0, 0, 2, 4] = 0.001  # even row, even column: red; stuck at white
    params = {"share": torch.tensor([0.05], dtype=torch.float64)}
    out = UNITS["dead_pixels"].render(images, params, Field(field))
    assert out[0, 0, 1:4, 3:6].tolist() == [[138, 177, 138], [177, 255, 177], [138, 177, 138]]
    rest = out.clone()
    rest[0, 0, 1:4, 3:6] = 100
    assert (rest == 100).all()
    field[0, 0, 2, 4], field[0, 0, 2, 3] = 1, 0.04  # odd column: green; stuck at black
    out = UNITS["dead_pixels"].render(images, params, Field(field))
    assert out[0, 1, 1:4, 2:5].tolist() == [[100, 75, 100], [75, 0, 75], [100, 75, 100]]
    assert (out[0, [0, 2]] == 100).all()


def test_dead_pixels_of_a_gray_sensor_stand_alone() -> None:
    images = torch.full((1, 1, 224, 224), 100, dtype=torch.uint8)
    untouched = []
    for severity, share in zip(SEVERITIES, UNITS["dead_pixels"].table.at(SEVERITIES, "any")["share"], strict=True):
        out = blemish.corrupt(images, "sensor:dead_pixels", severity=severity)
        assert set(out.unique().tolist()) == {0, 100, 255}
        assert float((out != 100).double().mean()) == pytest.approx(float(share), rel=0.2)
        untouched.append(out == 100)
    assert all((weaker | ~stronger).all() for weaker, stronger in itertools.pairwise(untouched))


def test_a_pan_slants() -> None:
    """On a ramp, a row's level says by how many pixels it was moved: linearly from the first row to the last."""
    ramp = (torch.arange(100.0) / 255).expand(1, 1, 100, 100).contiguous()
    params = {"pan": torch.tensor([22.4], dtype=torch.float64), "shake": torch.zeros(1, dtype=torch.float64)}
    draw = defects.Motion(torch.tensor([[0.9, 0.5, 1.0, 0.5, 0.5, 0.5]], dtype=torch.float64))
    out = UNITS["rolling_shutter"].apply(ramp.clone(), params, draw) * 255
    moved = out[0, 0, :, 30:70] - torch.arange(30.0, 70.0)
    expected = 10 * ((torch.arange(100) + 0.5) / 100 - 0.5)  # 22.4 pixels of 224 are 10 of 100
    assert (moved - expected[:, None]).abs().max() < 0.01


def test_shaking_waves() -> None:
    ramp = (torch.arange(224.0) / 255).expand(1, 1, 224, 224).contiguous()
    params = {"pan": torch.zeros(1, dtype=torch.float64), "shake": torch.tensor([8.0], dtype=torch.float64)}
    draw = defects.Motion(torch.tensor([[0.1, 1.0, 1.0, 1.0, 0.25, 0.5]], dtype=torch.float64))
    moved = (UNITS["rolling_shutter"].apply(ramp.clone(), params, draw) * 255)[0, 0, :, 50:170]
    moved = moved.double() - torch.arange(50.0, 170.0)
    time = (torch.arange(224, dtype=torch.float64) + 0.5) / 224
    expected = 8 * torch.sin(2 * math.pi * 2.5 * time + math.pi / 2)  # two and a half shakes
    assert (moved - expected[:, None]).abs().max() < 0.01


def test_more_dirt_adds_to_less() -> None:
    white = torch.full((2, 1, 96, 130), 255, dtype=torch.uint8)
    corruption = UNITS["lens_dirt"]
    rng = CounterRng(0, torch.arange(2), "test")
    draw = defects._draw_dirt(Shape(1, 96, 130), {}, rng)
    seen = []
    for count in (0, 5, 5.5, 40, 90):
        params = {"specks": torch.full((2,), float(count)), "smear": torch.zeros(2)}
        seen.append(corruption.apply(torch.ones(white.shape), params, draw))
    assert torch.equal(seen[0], torch.ones(white.shape))
    assert all((more <= less + 1e-6).all() for less, more in itertools.pairwise(seen))
    assert (seen[2] != seen[1]).any()
    assert float(seen[-1].min()) >= 0.25  # what is scattered
    assert float(seen[-1].mean()) < 0.9


class TestJpeg:
    """Bit errors in a JPEG stream."""

    @pytest.mark.parametrize("channels", [1, 3])
    def test_without_errors_it_is_a_round_trip(self, channels: int) -> None:
        images = pictures(2, channels, 45, 70)
        expected = jpeg_pillow(images, torch.tensor([90, 90])).numpy()
        for image, wanted in zip(images.numpy(), expected, strict=True):
            assert np.array_equal(codecs.damaged_jpeg(image, 90, np.array([], np.int64)), wanted)

    def test_damage_ends_with_its_row_of_blocks(self) -> None:
        image = pictures(1, 3, 160, 160)[0].numpy()
        whole = codecs.damaged_jpeg(image, 90, np.array([], np.int64))
        hit = 0
        for place in range(2**26, 2**31, 2**27):
            rows = (codecs.damaged_jpeg(image, 90, np.array([place])) != whole).any((0, 2)).nonzero()[0]
            if len(rows):
                hit += 1
                row = int(np.median(rows)) // 16
                # Colour is enlarged across the border of blocks, by one pixel.
                assert row * 16 - 1 <= rows.min()
                assert rows.max() <= row * 16 + 16
        assert hit > 10

    @pytest.mark.parametrize("channels", [1, 3])
    def test_every_damaged_stream_can_be_decoded(self, channels: int) -> None:
        images = pictures(200, channels, 33, 41)
        out = UNITS["jpeg_bit_error"](images, severity=5, seed=4)
        assert out.shape == images.shape
        assert ((out != images).float().mean((1, 2, 3)) > 0.05).all()

    def test_stronger_ones_have_more_errors(self) -> None:
        images = pictures(12, 3, 96, 96)
        clean = UNITS["jpeg_bit_error"](images, severity=1e-5).int()
        changed = [
            float((UNITS["jpeg_bit_error"](images, severity=s).int() != clean).double().mean()) for s in SEVERITIES
        ]
        assert changed == sorted(changed)
        assert changed[-1] > 0.2


class TestH265:
    """Bit errors in an H.265 stream, where ffmpeg is there."""

    def test_a_clip_ends_with_the_image(self) -> None:
        image = pictures(1, 3, 70, 90)[0].numpy()
        frames = codecs.h265_clip(image, 2.0, -1.0)
        assert frames.shape == (codecs.H265_FRAMES, 72, 96, 3)
        assert np.array_equal(frames[-1, :70, :90].transpose(2, 0, 1), image)
        # The frame before is two pixels further right and one further up.
        assert np.array_equal(frames[-2, 1:70, :88], frames[-1, :69, 2:90])

    def test_zeros_are_escaped(self) -> None:
        """Two zeros and a number up to 3 would begin a unit, or be taken for an escape (ITU-T H.265, 7.4.2.1)."""
        for unit in (b"\0\0\0\0\1", b"\0\0\3", b"\0\0\1\0\0\2", b"a\0\0\4"):
            escaped = codecs._escaped(unit)
            assert b"\0\0\1" not in escaped
            assert b"\0\0\0" not in escaped
            assert codecs._unescaped(escaped) == unit

    @pytest.mark.slow
    def test_any_size_gray_or_colour(self) -> None:
        corruption = skip_without_files(UNITS["h265_bit_error"])
        for channels, size in ((3, (8, 8)), (1, (31, 57)), (3, (100, 70))):
            images = pictures(2, channels, *size)
            out = corruption(images, severity=5)
            assert out.shape == images.shape
            assert torch.equal(corruption(images, severity=5), out)
            assert (out != images).any()

    @pytest.mark.slow
    def test_many_clips_of_one_process_are_those_of_one_each(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also where there is no folder for files, through which one process gets them."""
        corruption = skip_without_files(UNITS["h265_bit_error"])
        images = pictures(5, 3, 70, 90)
        together = corruption(images, severity=[5, 5, 4, 0.2, 5], ids=list(range(5)))

        def refuse(**_: str) -> None:
            raise PermissionError

        monkeypatch.setattr(codecs, "TemporaryDirectory", refuse)
        assert torch.equal(corruption(images, severity=[5, 5, 4, 0.2, 5], ids=list(range(5))), together)

    @pytest.mark.slow
    def test_a_clip_that_cannot_be_read_is_named_among_others(self) -> None:
        skip_without_files(UNITS["h265_bit_error"])
        clips = [codecs.h265_clip(image.numpy(), 2.0, 1.0) for image in pictures(2, 3, 64, 64)]
        program = codecs._program()
        streams = codecs._encoded(clips, program)
        assert [len(pixels) for pixels in codecs._decoded(streams, program)] == [clip.nbytes for clip in clips]
        with pytest.raises(blemish.InputError, match="ffmpeg ended with"):
            codecs._decoded([*streams, b"no stream"], program)

    @pytest.mark.slow
    def test_the_stream_of_a_clip_does_not_depend_on_those_before(self) -> None:
        skip_without_files(UNITS["h265_bit_error"])
        noise = torch.randint(0, 256, (1, 3, 70, 90), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        images = torch.cat([noise, pictures(6, 3, 70, 90), noise // 8])
        clips = [codecs.h265_clip(image.numpy(), 2.0, -1.5) for image in images]
        program = codecs._program()
        together = codecs._encoded(clips, program)
        for clip, stream in zip(clips, together, strict=True):
            assert codecs._encoded([clip], program) == [stream]

    def test_without_ffmpeg_there_is_a_clear_word(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(codecs.shutil, "which", lambda _: None)
        corruption = UNITS["h265_bit_error"]
        with pytest.raises(blemish.InputError, match="install it"):
            corruption.check_files()
        with pytest.raises(blemish.InputError, match="no ffmpeg on this machine"):
            corruption(pictures(1, 3, 32, 32), severity=3)
        assert corruption.files is not None
        assert corruption.files.kind == "ffmpeg, missing"

    def test_an_ffmpeg_without_the_encoder_is_refused(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        program = tmp_path / "ffmpeg"
        program.write_text("#!/bin/sh\necho 'Unknown encoder libx265' >&2\nexit 1\n")
        program.chmod(0o755)
        monkeypatch.setattr(codecs.shutil, "which", lambda _: str(program))
        with pytest.raises(blemish.InputError, match=r"cannot encode .*Unknown encoder libx265"):
            UNITS["h265_bit_error"].check_files()


def test_protocols_state_the_codec() -> None:
    assert {name for name, corruption in UNITS.items() if by_codec(corruption)} == {"jpeg_bit_error", "h265_bit_error"}
    stated = stated_version(UNITS["jpeg_bit_error"])
    assert isinstance(stated, OwnVersion)
    assert (stated.files or "").startswith("pillow ")
    assert streams.jpeg_bit_error.files == codecs.PILLOW
