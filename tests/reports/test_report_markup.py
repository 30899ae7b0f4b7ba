"""Names from data are text and stay text, in HTML, in scripts, in charts, in Markdown and in LaTeX."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from blemish.reports.page import _raw as raw
from blemish.reports.page import page_environment
from blemish.reports.svg import element, mark
from blemish.reports.tables import Cell, Table, latex, markdown
from blemish.reports.visible import soft, visible

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


def rendered(source: str, **data: object) -> str:
    return page_environment().from_string(source).render(**data)


def paragraph(text: object) -> str:
    return rendered('<p title="{{ text }}">{{ text }}</p>', text=text)


class TestTemplates:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_text_makes_no_tags(self, text: str) -> None:
        found = parsed(paragraph(text))
        assert [tag for tag, _ in found.tags] == ["p"]
        assert list(found.tags[0][1]) == ["title"]
        paragraph(text).encode("utf-8")

    @pytest.mark.parametrize("text", HOSTILE)
    @pytest.mark.parametrize(
        "source",
        [
            "<p>{{ text }}</p>",
            "<p>{{ [text, text]|join(', ') }}</p>",
            "<p>{{ 'of ' ~ text }}</p>",
            "{% macro m(x) %}<p>{{ caller() }}{{ x }}</p>{% endmacro %}{% call m(text) %}{{ text }}{% endcall %}",
            "{% set inner %}{{ text }}{% endset %}<p>{{ inner }}</p>",
        ],
    )
    def test_whatever_way_it_takes(self, source: str, text: str) -> None:
        found = rendered(source, text=text)
        assert [tag for tag, _ in parsed(found).tags] == ["p"]
        assert not set("\u202e\x00\x1b\udcff") & set(found)

    @given(st.text())
    def test_text_comes_back(self, text: str) -> None:
        found = parsed(paragraph(text))
        assert [tag for tag, _ in found.tags] == ["p"]
        if text.isprintable():
            assert found.text == text

    def test_what_is_not_text_is_shown_as_text(self) -> None:
        assert paragraph(Cell("<1>", interval="0, 2")) == '<p title="&lt;1&gt; [0, 2]">&lt;1&gt; [0, 2]</p>'

    def test_direction_marks_are_shown(self) -> None:
        assert rendered("{{ text }}", text="\u202egnp.exe") == "\\u202egnp.exe"
        assert visible("a\x00\u200fb\udcff") == "a\ufffd\\u200fb?"

    def test_what_is_missing_is_an_error(self) -> None:
        for source in ("{{ gone }}", "{{ cell.gone }}", "{% if gone %}{% endif %}", "{% for x in gone %}{% endfor %}"):
            with pytest.raises(UndefinedError, match="gone"):
                rendered(source, cell=Cell("x"))

    def test_every_template_escapes(self) -> None:
        """None of them calls a value safe, or puts one where escaping does not help."""
        names = [name for name in page_environment().list_templates() if name.endswith(".j2")]
        assert len(names) > 15
        for name in names:
            source = resources.files("blemish").joinpath(name).read_text(encoding="utf-8")
            assert not re.search(r"\|\s*(safe|xmlattr)\b|autoescape|=\{\{|\bon\w+=", source), name

    def test_scripts_cannot_be_ended(self) -> None:
        assert raw("script", "1 < 2") == "1 < 2"
        with pytest.raises(ValueError, match="its own end"):
            raw("script", "x</SCRIPT>")


class TestTables:
    def test_headings_that_say_what_the_one_above_says(self) -> None:
        rows = tuple((Cell(name), Cell(str(place))) for place, name in enumerate("aabca"))
        again = [again for _, again in Table("T", ("x", "y"), rows, text_columns=2).headed_rows()]
        assert again == [False, True, False, False, False]
        assert not any(again for _, again in Table("T", ("x", "y"), rows).headed_rows())


class TestCharts:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_labels_are_text(self, text: str) -> None:
        drawn = f"<svg>{mark(1, 2, 0, 3, text)}{element('text', text, aria_label=text)}</svg>"
        found = parsed(drawn)
        assert [tag for tag, _ in found.tags] == ["svg", "path", "title", "text"]
        assert not set("\u202e\x00\x1b\udcff") & set(drawn)

    @pytest.mark.parametrize("text", HOSTILE)
    def test_places_to_break_are_the_only_tags(self, text: str) -> None:
        assert {tag for tag, _ in parsed(str(soft(text))).tags} <= {"wbr"}


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
