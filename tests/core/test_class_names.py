"""What people call classes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blemish.core.class_names import imagenet_names, read_class_names
from blemish.core.errors import InputError


def test_imagenets_names() -> None:
    """The list of OpenAI's CLIP, in the usual order: two names occur twice, and the two cranes differ."""
    names = imagenet_names()
    assert len(names) == 1000
    assert (names[0], names[134], names[517], names[999]) == (
        "tench",
        "crane bird",
        "construction crane",
        "toilet paper",
    )
    twice = {name for name in names if names.count(name) > 1}
    assert twice == {"missile", "sunglasses"}
    assert read_class_names("imagenet") == names


@pytest.mark.parametrize(
    "text",
    [
        "cat\ndog\n",
        "\ufeffcat\r\n dog \r\n\r\n",
        '["cat", "dog"]',
        '{"1": "dog", "0": "cat"}',
        '{"0": ["n02121808", "cat"], "1": ["n02084071", "dog"]}',
    ],
    ids=["lines", "from Windows", "list", "by index", "by index, with ids"],
)
def test_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "names"
    path.write_text(text, encoding="utf-8")
    assert read_class_names(path) == ("cat", "dog")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat\n\ndog", "class 1 is called ''; expected a name for every class"),
        ("", "no names in it"),
        ("[]", "no names in it"),
        ('["cat", 5]', "class 1 is called 5"),
        ('{"0": "cat", "2": "dog"}', "no name for class 1 of 2"),
        ('["cat"', "not readable as JSON"),
    ],
)
def test_refused_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "names"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_class_names(path)
    assert str(path) in str(caught.value)


def test_a_file_called_imagenet_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("imagenet").write_text(json.dumps(["one"]))
    assert read_class_names("imagenet") == ("one",)


def test_no_such_file() -> None:
    with pytest.raises(InputError, match=r"nowhere\.txt: no such file of class names; expected a text"):
        read_class_names("nowhere.txt")
