"""Names from data are text and stay text, in HTML, in scripts, in charts, in Markdown and in LaTeX."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blemish.reports.markup import chart_text, element, embedded_json, joined, raw_element
from blemish.reports.tables import Cell, Table, latex, markdown

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!--",
    "]]>",
    "a & b",
    "javascript:alert(1)",
    "\u202egnp.exe",
    "\x00\x1b[31m",
    "\udcff.png",
    "{{7*7}} ${7*7}",
]


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


class TestElement:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_text_makes_no_tags(self, text: str) -> None:
        found = parsed(element("p", text, title=text))
        assert [tag for tag, _ in found.tags] == ["p"]
        assert list(found.tags[0][1]) == ["title"]
        element("p", text, title=text).encode("utf-8")

    @given(st.text())
    def test_text_comes_back(self, text: str) -> None:
        found = parsed(element("p", text))
        assert [tag for tag, _ in found.tags] == ["p"]
        if text.isprintable():
            assert found.text == text

    def test_markup_stays_markup(self) -> None:
        assert element("p", [element("b", "x"), None, "&"], 3) == "<p><b>x</b>&amp;3</p>"
        assert joined(["<", element("br")]) == "&lt;<br>"

    def test_direction_marks_are_shown(self) -> None:
        assert element("p", "\u202egnp.exe") == "<p>\\u202egnp.exe</p>"

    def test_attributes(self) -> None:
        assert element("a", class_="x", data_name='"', hidden=True, id=None, open=False) == (
            '<a class="x" data-name="&quot;" hidden></a>'
        )

    def test_scripts_cannot_be_ended(self) -> None:
        assert raw_element("script", "1 < 2", id="a") == '<script id="a">1 < 2</script>'
        with pytest.raises(ValueError, match="its own end"):
            raw_element("script", "x</SCRIPT>")


class TestJson:
    @pytest.mark.parametrize("text", [*HOSTILE[:-2], "\u2028"])
    def test_nothing_leaves_the_script(self, text: str) -> None:
        content = embedded_json({"name": text})
        assert not set("<>&") & set(content)
        assert json.loads(content) == {"name": text}

    def test_no_numbers_that_json_lacks(self) -> None:
        with pytest.raises(ValueError, match="JSON compliant"):
            embedded_json([float("nan")])


def test_charts_read_labels_as_text() -> None:
    assert chart_text('<a href="https://x">y</a>') == '&lt;a href="https://x"&gt;y&lt;/a&gt;'


class TestTexts:
    @staticmethod
    def table(name: str) -> Table:
        return Table("T", ("model", "error"), ((Cell(name), Cell("1.0", marked=True)),))

    @pytest.mark.parametrize("text", [*HOSTILE, "a|b", "x\ny"])
    def test_markdown(self, text: str) -> None:
        lines = markdown([self.table(text)]).splitlines()
        row = lines[4]
        assert len(lines) == 7
        assert row.replace(r"\|", "").count("|") == 3
        assert "<" not in row.replace(r"\<", "")
        assert "1.0†" in row
        assert lines[6].startswith("† The model was trained on a corruption")

    def test_latex(self) -> None:
        text = latex([self.table(r"a_b & 100% \input{x} $^~#<>|")])
        assert r"a\_b \& 100\% \textbackslash{}input\{x\} \$\textasciicircum{}\textasciitilde{}\#" in text
        assert r"1.0$^\dagger$ \\" in text
        assert r"\footnotesize $^\dagger$ The model was trained" in text

    def test_no_footnote_without_a_mark(self) -> None:
        plain = Table("T", ("a",), ((Cell("x"),),), notes=("a note",))
        assert plain.footnotes == ("a note",)
