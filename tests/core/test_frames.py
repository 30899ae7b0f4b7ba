"""Tables of results for notebooks."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import pytest

from blemish.core.errors import InputError
from blemish.core.frames import Columns, Curve, Plotted, html_table, text_table

mpl.use("agg")


class Weather(Plotted):
    def caption(self) -> str:
        return "weather <b>"

    def table(self) -> Columns:
        return {"name": ["fog", "<i>"], "error": [12.34567, None], "images": [1000, 20]}

    def curves(self) -> Mapping[str, Curve]:
        return {"fog": Curve([1, 2], [10.0, 20.0], [9.0, 18.0], [11.0, 23.0]), "snow": Curve([1, 2], [5.0, 6.0])}

    def axis(self) -> str:
        return "error [%]"


def test_printing() -> None:
    assert str(Weather()).splitlines() == ["weather <b>", "name  error  images", "fog   12.35  1000", "<i>          20"]


def test_a_cell_shows_names_and_runs_none_of_them() -> None:
    shown = Weather()._repr_html_()
    assert shown.startswith("<table><caption>weather &lt;b&gt;</caption><tr><th>name</th>")
    assert "<td>&lt;i&gt;</td><td></td><td>20</td>" in shown


def test_long_tables_say_how_much_is_left_out() -> None:
    columns = {"n": list(range(75))}
    assert text_table("many", columns).splitlines()[-1] == "… and 15 more rows; to_pandas() has all"
    assert html_table("many", columns).count("<td>") == 60
    assert "15 more rows" in html_table("many", columns)
    assert text_table("none", {"n": []}) == "none\nn"


def test_curves_are_drawn_with_their_intervals() -> None:
    axes = Weather().plot()
    assert [line.get_label() for line in axes.lines] == ["fog", "snow"]
    assert list(axes.lines[0].get_ydata()) == [10.0, 20.0]
    assert len(axes.collections) == 1  # the interval of fog
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("severity (0: clean)", "error [%]")
    assert Weather().plot(axes) is axes
    assert len(axes.lines) == 4


def test_titles_are_no_wider_than_their_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside each other they ran into one another, and out of the figure."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    caption = "resnet50 on gaussian_noise, motion_blur and 3 more, 200 images: mean error 22.37 [19.62, 25.15] %"
    monkeypatch.setattr(Weather, "caption", lambda _: caption)
    figure, both = pyplot.subplots(1, 2, figsize=(9, 3.6))
    for axes in both:
        title = Weather().plot(axes).title
        assert title.get_text().split() == caption.replace(":", "").split()
        assert title.get_window_extent().width < axes.bbox.width
    pyplot.close(figure)


@pytest.mark.parametrize(("method", "library"), [("to_pandas", "pandas"), ("to_polars", "polars")])
def test_a_missing_library_is_named(method: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(InputError, match=f"this needs {library}; install it with: pip install {library}"):
        getattr(Weather(), method)()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "library"), [("to_pandas", "pandas"), ("to_polars", "polars")])
def test_data_frames(method: str, library: str) -> None:
    pytest.importorskip(library)
    frame = getattr(Weather(), method)()
    assert list(frame.columns) == ["name", "error", "images"]
    assert frame.shape == (2, 3)
    assert frame["images"].to_numpy().tolist() == [1000, 20]
