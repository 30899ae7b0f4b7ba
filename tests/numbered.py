"""A dataset in a module of its own, which spawned workers can import."""

from __future__ import annotations

from torch import Tensor
from torch.utils.data import Dataset

from blemish import Corrupt
from pictures import pictures


class Numbered(Dataset[Tensor]):
    """Images that know their id, as a user's dataset would."""

    def __init__(self, with_ids: bool) -> None:
        self.transform = Corrupt("fog", severity=3, seed=1)
        self.with_ids = with_ids

    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> Tensor:
        image = pictures(1, 3, 16, 16, first=index)[0]
        return self.transform(image, id=index) if self.with_ids else self.transform(image)
