"""Charts as PNG: the same picture, converted from the same SVG."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from foretell.metrics import Interval
from foretell.questions.errors import InputError
from foretell.report.charts import svg
from foretell.report.charts.calibration import conservatism_plot, correctness_histogram, reliability_diagram
from foretell.report.charts.ranking import ForestRow, FrontierPoint, TornadoRow, forest_plot, frontier, tornado_plot
from foretell.report.charts.svg import Chart, SeriesStyle, empty, figure, line, mark, rect, text
from foretell.report.theme import PALETTE

pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'foretell[plots]'")
pytest.importorskip("matplotlib", reason="matplotlib reads the pixels back")


def figures() -> dict[str, Chart]:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=80)
    outcome = (rng.uniform(size=80) < p).astype(int)
    whole = Interval(estimate=70, low=68, high=72, se=1, n_clusters=40, draws=100)
    return {
        "reliability": reliability_diagram(p, outcome, name="me $and$ you"),
        "histogram": correctness_histogram((p - outcome) ** 2, name="me"),
        "forest": forest_plot([ForestRow(name="me", interval=whole, baseline=True)], label="BI", reference=69.0),
        "tornado": tornado_plot([TornadoRow(name="It rains", at_low=0.2, at_high=0.6)], 0.4),
        "frontier": frontier([FrontierPoint(name="a", cost=1.0, interval=whole)], label="BI"),
        "empty": empty("nothing"),
        "conservatism": conservatism_plot(p, rng.uniform(size=80), name="me"),
    }


@pytest.fixture(scope="module")
def drawn() -> dict[str, Chart]:
    return figures()


@pytest.mark.parametrize("name", ["reliability", "histogram", "forest", "tornado", "frontier", "empty", "conservatism"])
def test_every_figure_can_be_saved_as_png(drawn: dict[str, Chart], name: str, tmp_path: Path):
    from matplotlib.image import imread

    path = drawn[name].save(tmp_path / f"{name}.png")
    pixels = imread(path)
    root = ET.fromstring(drawn[name].svg)
    assert pixels.shape[:2] == (2 * float(root.attrib["height"]), 2 * float(root.attrib["width"]))
    assert 0.5 < pixels[..., :3].mean() < 1, "something is drawn on white"
    assert path.read_bytes() == drawn[name].save(tmp_path / "again.png").read_bytes()


def test_png_has_shapes_at_the_positions_of_the_svg(tmp_path: Path):
    from matplotlib.image import imread

    chart = figure(
        100,
        50,
        "test",
        rect(10, 10, 20, 20, "f-a"),
        line(50, 0, 50, 50, "l-b bold"),
        mark(80, 25, SeriesStyle("c", 0)),
        text(2, 48, "x", "s"),
    )
    pixels = imread(chart.save(tmp_path / "x.png"))
    for at, name in (((40, 40), "a"), ((40, 100), "b"), ((50, 160), "c"), ((4, 4), "paper")):
        colour = [int(PALETTE[name][0][i : i + 2], 16) / 255 for i in (1, 3, 5)]
        assert pixels[at][:3] == pytest.approx(colour, abs=0.03), name


def test_other_suffixes_are_refused_and_svg_needs_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InputError, match=r"\.svg or \.png"):
        empty("x").save(tmp_path / "x.pdf")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(InputError, match=r"foretell\[plots\]"):
        empty("x").save(tmp_path / "x.png")
    assert empty("x").save(tmp_path / "x.svg").exists()


def test_colours_and_texts_survive_the_conversion(drawn: dict[str, Chart]):
    """Converters do not support CSS variables, so the converted SVG has literal colours."""
    for chart in drawn.values():
        text = svg.light_svg(chart.svg)
        assert "var(" not in text
        assert text == svg.light_svg('<?xml version="1.0"?>' + chart.standalone())
        ET.fromstring(text)
