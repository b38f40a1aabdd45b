"""Parts that all figures share: series styles, date axes, labels and CSV data."""

import csv
import io
import itertools
import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import Floats
from foretell.questions.errors import InputError
from foretell.report.charts.svg import (
    Chart,
    date_ticks,
    figure,
    mark,
    responsive,
    series_style,
    series_styles,
    spread_labels,
)
from foretell.report.charts.timelines import DatedLines, MarketHistory, dated_plot, history_plot
from foretell.report.theme import PALETTE, SERIES
from foretell.scoring.baselines import MARKET_PRICE

# Machado, Oliveira and Fernandes (2009), severity 1.
EYES = {
    name: np.array(numbers).reshape(3, 3)
    for name, numbers in {
        "normal": (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
        "protan": (0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998),
        "deutan": (0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881),
        "tritan": (1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900),
    }.items()
}


def in_lab(colour: str, eye: str) -> Floats:
    """A colour in Lab as seen with this kind of colour vision."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(EYES[eye] @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(np.maximum(xyz / np.array([0.9505, 1.0, 1.089]), 1e-4))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_twelve_series_differ_in_shape_and_colour() -> None:
    styles = [series_style(i) for i in range(12)]
    assert len({style.shape for style in styles}) == len({style.colour for style in styles}) == 12
    shapes = {mark(0, 0, style).partition('class="')[0] + str(style.shape in (6, 7, 8, 9)) for style in styles}
    assert len(shapes) == 12, "no two of them are drawn alike"
    assert series_style(12) != series_style(0), "a second round has other dashes"
    by_name = series_styles([MARKET_PRICE, "a", "b"], {"b": series_style(0)})
    assert by_name[MARKET_PRICE].colour == "e", "the market is ochre everywhere"
    assert len({by_name["a"], by_name["b"], by_name[MARKET_PRICE]}) == 3


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("eye", list(EYES))
def test_colours_of_one_chart_differ_for_all_kinds_of_colour_vision(eye: str, theme: int) -> None:
    """Six lines and the market by colour; all twelve by colour, shape and dash together."""
    for a, b in itertools.combinations((*SERIES[:6], "e"), 2):
        apart = float(np.linalg.norm(in_lab(PALETTE[a][theme], eye) - in_lab(PALETTE[b][theme], eye)))
        assert apart > 8, (a, b, apart)


@settings(max_examples=150)
@given(st.floats(0, 4e9), st.floats(3600, 3e9), st.integers(2, 10))
def test_date_ticks_are_period_starts_within_the_axis(low: float, span: float, count: int) -> None:
    ticks = date_ticks(low, low + span, count)
    assert all(low <= at <= low + span for at, _ in ticks)
    assert 1 <= len(ticks) <= count + 3
    names = [name for _, name in ticks]
    assert str(datetime.fromtimestamp(ticks[0][0], UTC).year) in names[0]
    for at, _ in ticks if len(ticks) > 1 else []:
        start = datetime.fromtimestamp(at, UTC)
        assert (start.minute, start.second) == (0, 0)


def test_weeks_begin_on_monday_and_years_are_named_once() -> None:
    start = datetime(2026, 11, 20, tzinfo=UTC).timestamp()
    weeks = date_ticks(start, start + 70 * 86400, 11)
    assert all(datetime.fromtimestamp(at, UTC).weekday() == 0 for at, _ in weeks)
    assert [name for _, name in weeks if "20" in name and len(name) > 6] == ["23 Nov 2026", "4 Jan 2027"]


@settings(max_examples=100)
@given(st.lists(st.floats(0, 200), max_size=12))
def test_labels_never_cover_each_other_and_keep_their_order(wanted: list[float]) -> None:
    places = spread_labels(wanted, 13, 0, 200)
    assert all(b - a >= 13 - 1e-6 for a, b in itertools.pairwise(sorted(places)))
    assert all(-1e-6 <= place <= 200 + 1e-6 for place in places)
    assert all(
        (places[i] - places[j]) * (wanted[i] - wanted[j]) >= 0 for i, j in itertools.combinations(range(len(wanted)), 2)
    )


def test_csv_of_a_chart_contains_its_numbers_and_is_escaped(tmp_path: Path) -> None:
    rows = [{"name": '=1+1,"x"\n<b>', "p": 0.25}, {"name": "plain", "p": math.nan, "n": 3}]
    chart = figure(100, 50, "t", rows=rows)
    read = list(csv.DictReader(io.StringIO(chart.csv)))
    assert read == [{"name": '\'=1+1,"x" <b>', "p": "0.25", "n": ""}, {"name": "plain", "p": "", "n": "3"}]
    assert "<b>" not in chart.svg
    assert chart.save(tmp_path / "t.csv").read_text(encoding="utf-8") == chart.csv
    assert responsive(chart, chart).to_html().count("<metadata>") == 1
    with pytest.raises(InputError):
        figure(100, 50, "t").save(tmp_path / "t.csv")


def history(forecasters: int, *, resolved: bool = False) -> Chart:
    start = datetime(2026, 9, 14, tzinfo=UTC)
    prices = [(start + timedelta(days=n), 0.3 + n / 200) for n in range(50)]
    forecasts = {
        f"entry {i}": [(start + timedelta(days=40 + n), 0.2 + i / 50) for n in range(3)] for i in range(forecasters)
    }
    ended = prices[-1][0]
    market = MarketHistory(
        title="Will it?",
        prices=prices,
        forecasts=forecasts,
        outcome=1.0,
        closes=ended,
        resolved=ended + timedelta(days=2) if resolved else None,
    )
    return history_plot(market)


def test_market_history_labels_lines_and_days() -> None:
    chart = history(11)
    for part in ("Sep 2026", "entry 10 40 %", "market 54 %", "came true", "entry 3, 24 Oct 2026: 26 %"):
        assert part in chart.svg, part
    assert "more" not in chart.svg
    assert "grey: 4 more" in history(15).svg
    assert len(chart.csv.splitlines()) == 1 + 50 + 33


def test_lines_of_marked_times_do_not_cross_their_labels() -> None:
    svg = history(1, resolved=True).svg
    names = {name: float(y) for y, name in re.findall(r'y="([\d.]+)" class="s r">(closes|resolved)', svg)}
    marked = [(float(x), float(y)) for x, y in re.findall(r'<path d="M([\d.]+) ([\d.]+)L[^"]+" class="l-c thin"', svg)]
    (_, closes), (_, resolved) = sorted(marked)
    assert resolved < names["resolved"] < closes < names["closes"], "the later name is above the earlier line"
    across = [float(y) for y in re.findall(r'<path d="M[\d.]+ ([\d.]+)L[^"]+" class="l-grid thin"', svg)]
    assert names["closes"] < min(across), "both are above the plot"


def test_an_empty_history_has_a_message() -> None:
    assert "Nothing to show" in dated_plot(DatedLines(title="x", lines={"a": []})).svg
    assert "No price" in history_plot(MarketHistory(title="x", prices=[])).svg
