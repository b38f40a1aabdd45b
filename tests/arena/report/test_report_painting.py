"""Figures as PNG and PDF: the same picture, painted from the same SVG."""

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics.bootstrap import Interval
from foretell.questions.errors import InputError
from foretell.report.charts import export
from foretell.report.charts.calibration import conservatism_plot, correctness_histogram, reliability_diagram
from foretell.report.charts.export import segments
from foretell.report.charts.ranking import ForestRow, FrontierPoint, TornadoRow, forest_plot, frontier, tornado_plot
from foretell.report.charts.svg import Chart, empty, figure, line, mark, rect, text
from foretell.report.theme import PALETTE

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'foretell[plots]'")


def figures() -> dict[str, Chart]:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=80)
    outcome = (rng.uniform(size=80) < p).astype(int)
    whole = Interval(estimate=70, low=68, high=72, se=1, n_clusters=40, draws=100)
    return {
        "reliability": reliability_diagram(p, outcome, name="me $and$ you"),
        "histogram": correctness_histogram((p - outcome) ** 2, name="me"),
        "forest": forest_plot([ForestRow(name="me", interval=whole, anchor=True)], label="BI", reference=69.0),
        "tornado": tornado_plot([TornadoRow(name="It rains", at_low=0.2, at_high=0.6)], 0.4),
        "frontier": frontier([FrontierPoint(name="a", cost=1.0, interval=whole)], label="BI"),
        "empty": empty("nothing"),
        "conservatism": conservatism_plot(p, rng.uniform(size=80), name="me"),
    }


@pytest.fixture(scope="module")
def drawn() -> dict[str, Chart]:
    return figures()


@pytest.mark.parametrize("name", ["reliability", "histogram", "forest", "tornado", "frontier", "empty", "conservatism"])
def test_every_figure_can_be_painted(drawn: dict[str, Chart], name: str, tmp_path: Path):
    from matplotlib.image import imread

    made = drawn[name].save(tmp_path / f"{name}.png")
    pixels = imread(made)
    root = ET.fromstring(drawn[name].svg)
    assert pixels.shape[:2] == (2 * float(root.attrib["height"]), 2 * float(root.attrib["width"]))
    assert 0.5 < pixels[..., :3].mean() < 1, "something is drawn on white"
    pdf = drawn[name].save(tmp_path / f"{name}.pdf")
    assert pdf.read_bytes().startswith(b"%PDF")
    assert pdf.read_bytes() == drawn[name].save(tmp_path / "again.pdf").read_bytes()


def test_shapes_stand_where_the_svg_has_them(tmp_path: Path):
    from matplotlib.image import imread

    made = figure(
        100,
        50,
        "test",
        rect(10, 10, 20, 20, "f-a"),
        line(50, 0, 50, 50, "l-b bold"),
        mark(80, 25, 0, colour="c"),
        text(2, 48, "x", "s"),
    )
    pixels = imread(made.save(tmp_path / "x.png"))
    for at, name in (((40, 40), "a"), ((40, 100), "b"), ((50, 160), "c"), ((4, 4), "paper")):
        colour = [int(PALETTE[name][0][i : i + 2], 16) / 255 for i in (1, 3, 5)]
        assert pixels[at][:3] == pytest.approx(colour, abs=0.03), name


def test_other_endings_are_refused_and_svg_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InputError, match=r"\.svg, \.png or \.pdf"):
        empty("x").save(tmp_path / "x.gif")
    monkeypatch.setattr(export, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"foretell\[plots\]"):
        empty("x").save(tmp_path / "x.png")
    assert empty("x").save(tmp_path / "x.svg").exists()


def test_an_element_nobody_can_paint_is_named(tmp_path: Path):
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><image/></svg>'
    with pytest.raises(ValueError, match="image"):
        export.export_figure(svg, tmp_path / "x.png")


@settings(deadline=None, max_examples=60)
@given(x=st.floats(-50, 50), y=st.floats(-50, 50), r=st.floats(0.5, 40), turn=st.floats(0.1, 6.2), sweep=st.booleans())
def test_arcs_keep_their_distance_from_the_middle(x: float, y: float, r: float, turn: float, sweep: bool):
    end = turn if sweep else -turn
    to = (x + r * math.cos(end), y + r * math.sin(end))
    d = f"M{x + r:.12f} {y:.12f}A{r:.12f} {r:.12f} 0 {int(turn > math.pi)} {int(sweep)} {to[0]:.12f} {to[1]:.12f}"
    found = segments(d)
    ends = [points[-1] for _, points in found]
    assert ends[-1] == pytest.approx(to, abs=1e-6)
    for px, py in ends:
        assert math.hypot(px - x, py - y) == pytest.approx(r, rel=1e-4, abs=1e-4)
    at = ends[0]
    for _, (one, two, three) in found[1:]:
        middle = [(at[i] + 3 * one[i] + 3 * two[i] + three[i]) / 8 for i in (0, 1)]
        assert math.hypot(middle[0] - x, middle[1] - y) == pytest.approx(r, rel=2e-3, abs=1e-3)
        at = three


def test_paths_in_short():
    assert segments("M0 0 1 1l1 1Q3 3 4 2c1 1 2 2 3 3H1V0") == [
        ("M", ((0.0, 0.0),)),
        ("L", ((1.0, 1.0),)),
        ("L", ((2.0, 2.0),)),
        ("C", (pytest.approx((2 + 2 / 3, 2 + 2 / 3)), pytest.approx((3 + 1 / 3, 2 + 2 / 3)), (4.0, 2.0))),
        ("C", ((5.0, 3.0), (6.0, 4.0), (7.0, 5.0))),
        ("L", ((1.0, 5.0),)),
        ("L", ((1.0, 0.0),)),
    ]
    with pytest.raises(ValueError, match="letter"):
        segments("1 2")
