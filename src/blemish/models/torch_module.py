"""Torch modules as classifiers, and weights from files that cannot run code."""

from __future__ import annotations

import itertools
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from blemish.core.errors import InputError, first_line, last_line, refused
from blemish.core.memory import check_fits
from blemish.core.optional import optional_import
from blemish.core.printable import first_few
from blemish.core.reading import check_regular
from blemish.core.torch_archive import torch_kind
from blemish.models.base import Classifier, Output, Training, logits_of
from blemish.models.card import ModelCard, count_parameters
from blemish.models.code import ending_refused
from blemish.models.hashing import hash_state
from blemish.models.own_preprocessing import Preprocessed, as_preprocessing, own_preprocessing

# Where training scripts put the weights among other things they save.
_WEIGHT_KEYS = ("state_dict", "model_state_dict", "model", "net")
_SHOWN = 4

SAFETENSORS = ".safetensors"
"""The ending of files that hold tensors and nothing else."""


def from_module(
    module: nn.Module,
    *,
    name: str | None = None,
    preprocessing: Preprocessed | None = None,
    output: Output = "logits",
    skip_classes: int = 0,
    training: Training | None = None,
    device: str | torch.device | None = None,
    channels_last: bool = False,
) -> Classifier:
    """A torch module as a classifier, in evaluation mode and on the device; by default where it is.

    ``preprocessing`` may also be torchvision's weights, or what their ``transforms()`` gives. Without it, what the
    module says of itself is used (timm's ``pretrained_cfg``; torchvision's weights, attached to it as ``weights``);
    else RGB in 0 … 1 is assumed. Either is told by a `Notice` when the model is first shown labelled images.

    The module is not copied: switching it to evaluation mode and moving it is seen by whoever else holds it.
    One whose weights all have another type than float32, such as float16, is given its values in that.
    ``channels_last`` is a memory format in which many convolutional networks are faster; those that call ``view`` on
    feature maps cannot run in it.
    """
    if not isinstance(module, nn.Module):
        raise InputError(f"a model of type {type(module).__name__}; expected a torch module")
    called = name or type(module).__name__
    half = _one_type(module)
    target = _device_of(module) if device is None else device_named(device)
    with ending_refused(f"model {called}"):
        weights = hash_state(module.state_dict())
        module = module.eval().to(target)
    if channels_last:
        module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    own, assumed = own_preprocessing(module) if preprocessing is None else (as_preprocessing(preprocessing), None)
    return Classifier(
        name=called,
        kind="torch" if half is None else f"torch ({str(half).removeprefix('torch.')})",
        forward=_Forward(called, module, channels_last, half),
        weights=weights,
        preprocessing=own,
        output=output,
        skip_classes=skip_classes,
        training=training or Training(),
        device=target,
        module=module,
        assumed=assumed,
        card=ModelCard(parameters=count_parameters(module), input_size=own.size),
    )


def device_named(device: str | torch.device | None) -> torch.device:
    """The device of this name; ``auto``, like nothing, is a GPU where there is one."""
    if device is None or device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"device {device!r}; expected cpu, cuda or auto") from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device {str(device)!r}: no GPU that torch can use here; expected cpu or auto")
    try:
        torch.zeros(1, device=chosen).cpu()
    except Exception as error:  # torch raises another one for every kind of device
        raise InputError(
            f"device {str(device)!r} cannot be used here ({first_line(error)}); expected cpu, cuda or auto"
        ) from error
    return chosen


def load_weights(module: nn.Module, path: str | Path) -> nn.Module:
    """The module with the weights of a file; every name and shape must fit."""
    state = read_state(path)
    real = {key for key, value in module.state_dict().items() if isinstance(value, Tensor) and not value.is_complex()}
    halved = [key for key, value in state.items() if value.is_complex() and key in real]
    if halved:  # torch would drop their imaginary parts
        raise InputError(f"{path}: complex weights ({first_few(halved, _SHOWN)}) for a model with real ones")
    try:
        missing, unexpected = module.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise InputError(f"{path}: weights that do not fit the model ({last_line(error)})") from error
    wrong = [f"{len(missing)} missing from the file ({first_few(missing, _SHOWN)})"] * bool(missing)
    wrong += [f"{len(unexpected)} not in the model ({first_few(unexpected, _SHOWN)})"] * bool(unexpected)
    if wrong:
        raise InputError(f"{path}: weights that do not fit the model: {' and '.join(wrong)}")
    return module


def read_state(path: str | Path) -> dict[str, Tensor]:
    """The state dict in a file: what ``torch.save`` wrote, ``.safetensors`` or a ``.npz`` of arrays. No code is run."""
    file = Path(path)
    check_regular(file)
    read = {".npz": _read_arrays, SAFETENSORS: _read_safetensors}.get(file.suffix.lower())
    state = _unwrapped(read_safely(file)) if read is None else read(file)
    if not state or not all(isinstance(value, Tensor) for value in state.values()):
        raise InputError(f"{path}: no state dict in it; expected tensors by name")
    if all(key.startswith("module.") for key in state):
        state = {key.removeprefix("module."): value for key, value in state.items()}
    return state


class MoreThanTensorsError(InputError):
    """A file of torch that would run code if all of it was read."""


def read_safely(file: Path) -> Any:
    """What ``torch.save`` wrote, as long as it is tensors and plain data."""
    kind = torch_kind(file)
    if kind != "saved":  # some versions of torch.load would run TorchScript, whatever they are told
        held = "TorchScript" if kind == "torchscript" else "a program of torch.export"
        raise InputError(f"{file}: {held}; expected a state dict that torch.save wrote")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a pickle protocol that is refused in any case
            return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise MoreThanTensorsError(
            f"{file}: holds more than tensors, and reading it can run code from it; save the state dict alone "
            "(torch.save(model.state_dict(), …))"
        ) from error
    except Exception as error:  # damaged files fail in many ways inside torch
        raise InputError(f"{file}: not a readable torch file ({last_line(error)})") from error


# Not the input's fault: memory that is short, or a GPU that has failed.
_OUT_OF_MEMORY = torch.cuda.OutOfMemoryError
_OF_THE_DEVICE = (_OUT_OF_MEMORY, getattr(torch, "AcceleratorError", _OUT_OF_MEMORY))
# Libraries of the device fail with errors of no type of their own.
_SAID_BY_THE_DEVICE = ("CUDA error", "CUDNN_STATUS", "CUBLAS_STATUS", "CUFFT_", "DefaultCPUAllocator")


@dataclass(frozen=True)
class _Forward:
    """A module's scores. A class, and not a function in a function, so that it can travel to other processes."""

    name: str
    module: nn.Module
    channels_last: bool
    half: torch.dtype | None = None
    _taken: set[tuple[int, ...]] = field(default_factory=set, init=False, repr=False, compare=False)

    def __call__(self, values: Tensor) -> Tensor:
        if self.module.training:
            self.module.eval()  # someone else has gone on training it
        if self.channels_last and values.ndim == 4:
            values = values.contiguous(memory_format=torch.channels_last)
        if self.half is not None and values.is_floating_point():
            values = values.to(self.half)
        try:
            scores = self.module(values)
        except (InputError, *_OF_THE_DEVICE):
            raise
        except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as error:
            # What has taken such images before does not refuse their shape; it has failed.
            if tuple(values.shape[1:]) in self._taken or any(words in str(error) for words in _SAID_BY_THE_DEVICE):
                raise
            raise InputError(
                f"model {self.name}: refuses an input of shape {tuple(values.shape)} ({last_line(error)}); "
                "are its size and channels right (--size, --channels)?"
            ) from error
        self._taken.add(tuple(values.shape[1:]))
        return logits_of(scores)  # type: ignore[no-any-return]


def _one_type(module: nn.Module) -> torch.dtype | None:
    """The type of all its floating-point weights, if it has one and that is not float32."""
    types = {value.dtype for value in module.parameters() if value.is_floating_point()}
    return types.pop() if len(types) == 1 and torch.float32 not in types else None


def _device_of(module: nn.Module) -> torch.device:
    first = next(itertools.chain(module.parameters(), module.buffers()), None)
    return torch.device("cpu") if first is None else first.device


def _read_arrays(file: Path) -> dict[str, Tensor]:
    with refused(f"{file}: not a readable file of weights"):  # damaged archives fail in many ways
        with zipfile.ZipFile(file) as archive:  # a small compressed file can claim any size
            check_fits(str(file), sum(member.file_size for member in archive.infolist()))
        with np.load(file, allow_pickle=False) as arrays:
            return {key: torch.from_numpy(np.array(arrays[key], order="C")) for key in arrays.files}


def _read_safetensors(file: Path) -> dict[str, Tensor]:
    library = optional_import("safetensors.torch")
    with refused(f"{file}: not a readable .safetensors file"):  # its errors share no base of their own
        return dict(library.load_file(file))


def _unwrapped(saved: Any) -> dict[str, Any]:
    if not isinstance(saved, Mapping):
        return {}
    state = next((saved[key] for key in _WEIGHT_KEYS if isinstance(saved.get(key), Mapping)), saved)
    return {str(key): value for key, value in state.items()}
