"""What H.265 costs without anything else: python perf/h265.py [--clips 128].

Clips of eight, four and two frames of 224 × 224 pixels, encoded by ffmpeg as one stream and decoded as one, with the
settings of `sensor:h265_bit_error`. CPU time of ffmpeg for each clip, without what one clip alone takes: starting.
The corruption decodes clips one by one, so that this is what it could reach at best. Then the corruption itself, one
image at a time and 32, and what starting ffmpeg takes.
"""

from __future__ import annotations

import argparse
import resource
import subprocess

import numpy as np
import torch
from numpy.typing import NDArray

import blemish
from blemish.ops import codecs
from catalog import rate
from cpu_settings import settle
from images import scenes

SIDE = 224


def timed(program: str, options: list[str], data: bytes) -> tuple[bytes, float]:
    """What ffmpeg makes of data, and the CPU time it takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, "-v", "error", "-nostdin", *options], input=data, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def each(program: str, options: list[str], whole: bytes, one: bytes, clips: int) -> tuple[bytes, float]:
    """What ffmpeg makes of all clips, and milliseconds for each of them but the first: the least of three runs."""
    made, times = b"", []
    for _ in range(3):
        made, long = timed(program, options, whole)
        times.append(long - timed(program, options, one)[1])
    return made, 1000 * min(times) / (clips - 1)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=128)
    options = parser.parse_args()
    codecs.FFMPEG.check()
    program = codecs._program()
    pictures = scenes(options.clips, SIDE).transpose(0, 3, 1, 2)
    clips = [codecs.h265_clip(planes, 1.0, 1.5) for planes in pictures]
    print(f"{codecs.FFMPEG.kind}\n")
    print("| frames of a clip | encoding, ms | decoding, ms | clips per CPU-second |\n|---:|---:|---:|---:|")
    for frames in (codecs.H265_FRAMES, 4, 2):
        shown: list[NDArray[np.uint8]] = [clip[-frames:] for clip in clips]
        settings = codecs._ENCODER.replace(f"keyint={codecs.H265_FRAMES}", f"keyint={frames}")
        raw = ["-threads", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{SIDE}x{SIDE}", "-r", "25", "-i", "-"]
        codec = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", settings, "-pix_fmt", "yuv420p"]
        whole, one = b"".join(clip.tobytes() for clip in shown), shown[0].tobytes()
        stream, encoding = each(program, [*raw, *codec, "-f", "hevc", "-"], whole, one, len(clips))
        first, _ = timed(program, [*raw, *codec, "-f", "hevc", "-"], one)
        _, decoding = each(program, [*codecs._READ, "-i", "-", *codecs._WRITE, "-"], stream, first, len(clips))
        print(f"| {frames} | {encoding:.1f} | {decoding:.1f} | {1000 / (encoding + decoding):.0f} |", flush=True)
    settle()
    corruption = blemish.catalog["sensor:h265_bit_error"]
    for count in (1, 32):
        images = torch.from_numpy(np.ascontiguousarray(pictures[:count]))
        taken = 1000 / rate(lambda images=images: len(corruption(images, severity=3)))
        print(f"{corruption.name}, {count} at a time: {taken:.1f} ms an image")
    print(f"starting ffmpeg: {1000 * min(timed(program, ['-version'], b'')[1] for _ in range(5)):.0f} ms")


if __name__ == "__main__":
    main()
