"""What corruptions need besides images: photographs, or a program."""

from __future__ import annotations

from typing import Protocol


class Files(Protocol):
    """Files, or a program, that pixels are made of. ``kind`` is what protocols call them, and is known without them."""

    @property
    def kind(self) -> str:
        """What they are, in a word."""

    @property
    def note(self) -> str | None:
        """What is to be said of numbers that are measured with them; nothing of the reference's own files."""

    def check(self) -> None:
        """Refuse where they are missing, with how to get them."""
