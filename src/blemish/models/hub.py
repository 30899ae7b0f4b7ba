"""Models of the Hugging Face hub as folders on this machine: fetched once, and only files that run no code."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blemish.core.errors import InputError, StorageError, first_line
from blemish.core.optional import optional_import
from blemish.core.reading import is_folder, read_text
from blemish.models.card import Claim
from blemish.models.code import needs_permission

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?\Z")
"""How models are named there: ORG/NAME, or ORG/NAME@REVISION."""

_SETTINGS = ("*config.json", "README.md", "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*")
_TEXT_MODELS = ("merges.txt", "spiece.model", "sentencepiece*")
_SAFE = ("model.safetensors", "model-*.safetensors", "model.safetensors.index.json")
_ACCURACIES = ("accuracy", "top1_accuracy", "top-1 accuracy", "top1", "acc@1")
_PICKLED = ("pytorch_model.bin", "pytorch_model-*.bin", "pytorch_model.bin.index.json")


@dataclass(frozen=True)
class Snapshot:
    """A model's folder, and the revision it is of, where it came from a hub."""

    name: str
    folder: Path
    revision: str | None
    pickled: bool

    def datasets(self) -> list[str]:
        """The data sets that its README lists as those it was trained with."""
        entries = self._settings().get("datasets", [])
        names = [entries] if isinstance(entries, str) else entries if isinstance(entries, list) else []
        return [name for name in names if isinstance(name, str)]

    def claims(self) -> tuple[Claim, ...]:
        """The accuracies that its README states (``model-index``), of one number in percent or as a rate for each."""
        return tuple(_claims(self._settings().get("model-index")))

    def _settings(self) -> dict[str, Any]:
        """The settings at the top of its README."""
        readme = self.folder / "README.md"
        if not readme.is_file():
            return {}
        match = re.match(r"---\s*\n(.*?)\n---", read_text(readme), re.DOTALL)
        try:
            settings = optional_import("yaml").safe_load(match[1]) if match else {}
        except Exception:  # written by people, and of no consequence
            return {}
        return settings if isinstance(settings, dict) else {}


def _claims(index: Any) -> Iterator[Claim]:
    """The accuracies in a ``model-index``; what is not in its form is passed over."""
    for model in _entries(index):
        for result in _entries(model.get("results")):
            data = result.get("dataset")
            name = (data.get("type") or data.get("name")) if isinstance(data, dict) else None
            for metric in _entries(result.get("metrics")):
                value = metric.get("value")
                if not isinstance(name, str) or metric.get("type") not in _ACCURACIES:
                    continue
                if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 100:
                    yield Claim(name, value if value <= 1 else value / 100, "its README")


def _entries(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def snapshot(name: str, *, weights: bool, allow_code: bool) -> Snapshot:
    """The folder of this name, or what a hub has under it; without ``weights`` only the settings are needed."""
    local = is_folder(name)
    folder = Path(name) if local else _fetched(name, allow_code=allow_code, weights=weights)
    if not (folder / "config.json").is_file():
        raise InputError(f"hf:{name}: no config.json in {folder}; expected a model that transformers has saved")
    pickled = weights and not any(folder.glob("*.safetensors"))
    if pickled and not any(folder.glob("pytorch_model*.bin")):
        raise InputError(
            f"hf:{name}: no weights in {folder}; expected model.safetensors" + ("" if local else _ONLY_PICKLED)
        )
    if pickled and not allow_code:
        why = "its weights are a pickle (pytorch_model.bin), and reading it can run code from it"
        raise needs_permission(f"hf:{name}", why, "save it as .safetensors (model.save_pretrained)")
    return Snapshot(
        name=folder.absolute().name if local else name.partition("@")[0],
        folder=folder,
        revision=None if local else folder.name,
        pickled=pickled,
    )


_ONLY_PICKLED = ". Pickled weights (pytorch_model.bin) are not fetched unless you allow them to run code (--allow-code)"


def _fetched(name: str, *, allow_code: bool, weights: bool) -> Path:
    if not REPOSITORY.match(name):
        raise InputError(f"model 'hf:{name}'; no such folder; expected hf:ORG/NAME, hf:ORG/NAME@REVISION or hf:FOLDER")
    hub: Any = optional_import("huggingface_hub")
    repository, _, revision = name.partition("@")
    files = (*_SETTINGS, *_TEXT_MODELS, *(_SAFE if weights else ()))
    try:
        folder = Path(hub.snapshot_download(repository, revision=revision or None, allow_patterns=list(files)))
        if weights and allow_code and not any(folder.glob("*.safetensors")):
            folder = Path(hub.snapshot_download(repository, revision=folder.name, allow_patterns=[*files, *_PICKLED]))
        return folder
    except Exception as error:  # of the hub, of the connection, of the disk
        explained = _explained(name, error)
        if isinstance(explained, StorageError):
            # Not all versions of the library look for what was fetched before when a commit is named.
            with contextlib.suppress(Exception):
                return Path(hub.snapshot_download(repository, revision=revision or None, local_files_only=True))
        raise explained from error


def _explained(name: str, error: Exception) -> Exception:
    kind, reason = type(error).__name__, first_line(error)
    if kind == "GatedRepoError":
        return InputError(
            f"hf:{name}: its owners give it only to those who ask; ask on its page, and log in (hf auth login)"
        )
    if kind == "RepositoryNotFoundError":
        return InputError(f"hf:{name}: no such model on the hub, or it is private; is the name right?")
    if kind == "RevisionNotFoundError":
        return InputError(f"hf:{name}: the model has no such revision; expected a branch, a tag or a commit")
    return StorageError(
        f"hf:{name}: could not be fetched ({kind}: {reason}). It is fetched once, into the hub's own cache; without a "
        "network, copy its folder to this machine and give that (hf:FOLDER)"
    )
