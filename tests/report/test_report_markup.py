import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.number_text import bracket, number, percent, signed
from foretell.report.charts.svg import ChartScale, covering, empty, figure, log_ticks, nice_ticks, text
from foretell.report.markup import clean, element, escaped, shorten
from foretell.report.theme import DIVERGING, ON_DIVERGING, PALETTE, SERIES

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    'a & b\' "c"',
    "\x1b[31mred\x1b[0m",
    "\u202egnp.exe",
    "nul\x00byte",
    "\ud800 lone surrogate",
    "]]>",
    "",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_escaped_and_the_svg_is_well_formed(name: str) -> None:
    chart = figure(10, 10, name, text(1, 1, name, tip=name))
    root = ElementTree.fromstring(chart.standalone())
    assert [child.tag.split("}")[1] for child in root] == ["style", "text"]
    assert "onerror=alert" not in "".join(str(v) for e in root.iter() for k, v in e.attrib.items() if k == "onerror")
    assert "\x1b" not in chart.svg


@settings(max_examples=100)
@given(st.text(max_size=40))
def test_any_text_round_trips_through_an_element(value: str) -> None:
    root = ElementTree.fromstring(element("td", value, title=value))
    assert clean(root.text or "") == clean(value)
    assert root.attrib["title"] == clean(value)


@settings(max_examples=100)
@given(st.text(max_size=60), st.integers(3, 30))
def test_shorten_keeps_within_its_width(value: str, width: int) -> None:
    assert len(shorten(value, width)) <= width


def test_escaping_happens_once() -> None:
    assert escaped(escaped("<")) == "&lt;"


def test_figure_saves_a_file_that_parses(tmp_path: Path) -> None:
    path = empty("nothing here").save(tmp_path / "x.svg")
    root = ElementTree.parse(path).getroot()
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == "nothing here"
    assert "prefers-color-scheme:dark" in path.read_text(encoding="utf-8")


def test_notebooks_get_the_figure_with_its_style_and_script() -> None:
    html = empty("x")._repr_html_()
    assert empty("x").to_html() in html
    assert ":root" not in html, "the notebook around it keeps its own colours"
    assert "<style>" in html
    assert "<script>" in html


@settings(max_examples=200)
@given(
    st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-6),
    st.floats(1e-3, 1e6),
    st.integers(2, 10),
)
def test_ticks_lie_within_and_are_few(low: float, width: float, count: int) -> None:
    ticks = nice_ticks(low, low + width, count)
    slack = 1e-6 * (abs(low) + width)
    assert all(low - slack <= t <= low + width + slack for t in ticks)
    assert len(ticks) <= 2 * count + 1


@settings(max_examples=100)
@given(st.floats(1e-6, 1e3), st.floats(1.2, 1e6))
def test_log_ticks_lie_within(low: float, factor: float) -> None:
    assert all(low * (1 - 1e-9) <= t <= low * factor * (1 + 1e-9) for t in log_ticks(low, low * factor))


@settings(max_examples=100)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=8), st.booleans())
def test_covering_always_gives_a_usable_scale(values: list[float], log: bool) -> None:
    scale = covering(values, 0, 100, log=log)
    assert scale.low < scale.high
    shown = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    assert all(0 <= scale(v) <= 100 for v in shown)


def test_values_outside_a_scale_are_put_on_its_edge() -> None:
    assert ChartScale(low=0, high=1, start=10, stop=20)(5) == 20


def test_numbers_have_one_format() -> None:
    assert number(-2.04, 1) == "−2.0"
    assert number(float("inf"), 1) == "∞"
    assert signed(0.04, 1) == "0.0"
    assert bracket(float("nan"), 1, 1) == ""
    assert percent(0.5) == "50 %"


def test_percentages_never_round_to_certainty() -> None:
    shown = ["0 %", "<0.01 %", "0.1 %", "50 %", "99.9 %", ">99.99 %", "100 %"]
    assert [percent(p) for p in (0.0, 1e-9, 0.001, 0.5, 0.999, 1 - 1e-9, 1.0)] == shown


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    bright, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_is_readable_in_both_themes(theme: int) -> None:
    for ground in ("paper", "panel", "highlight"):
        for ink in ("ink", "muted", *SERIES[:2]):
            assert contrast(PALETTE[ink][theme], PALETTE[ground][theme]) >= 4.5, (ink, ground)
    for step, on in zip(DIVERGING, ON_DIVERGING, strict=True):
        assert contrast(step[theme], on[theme]) >= 4.5, step
    for series in SERIES:
        assert contrast(PALETTE[series][theme], PALETTE["paper"][theme]) >= 3, series
