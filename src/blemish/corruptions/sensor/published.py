"""Where the corruptions of cameras come from: three follow a publication, the others are of this library."""

from __future__ import annotations

PUBLISHED = "Kar, Yeo, Atanov and Zamir, 3D Common Corruptions, CVPR 2022: the published formula and settings"

OURS = "of this library, after no publication; severities as docs/sensors.md says"
