import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.scoring.made_standings import DAY, START, Answer, arena, one_asking, several, table_of

from foretell.questions.errors import InputError
from foretell.report.arena_report import arena_finding, arena_headline, arena_report
from foretell.scoring.arena_leaderboard import ScoredArena
from foretell.scoring.arena_view import arena_view, event_gaps, first_view, scores_over_time
from foretell.scoring.baselines import MARKET_PRICE


def test_the_terminal_shows_entries_and_baselines():
    text = arena_report(arena(events=60)).text(width=220)
    for word in ("Leaderboard", "good", "bad", MARKET_PRICE, "base rate", "always 0.5", "Brier", "ECE", "100 %", "$"):
        assert word in text
    assert "by category" not in text
    assert "Brier by category" in arena_report(arena(events=60), by=("category",)).text(by=("category",), width=220)


def test_shares_of_categories_are_an_option():
    shares = "Sports=0.5,other=0.5"
    report = arena_report(arena(events=60), shares=[shares])
    assert [board.shares for board in report.view.rebalanced] == [{"Sports": 0.5, "other": 0.5}]
    text = report.text(width=220)
    assert "Brier score with other shares of the categories" in text
    assert shares in text
    assert "other shares" not in arena_report(arena(events=60)).text(width=220)


def test_the_level_and_the_interval_of_the_bootstrap_are_used():
    usual, wide = (
        arena_report(arena(events=60)),
        arena_report(arena(events=60), bootstrap="level=0.99,interval=symmetric"),
    )
    assert "99 % intervals" in wide.text(width=220)
    assert "95 % intervals" in usual.text(width=220)
    spans = [{row.entry.name: row.fair.high - row.fair.low for row in report.view.lines} for report in (usual, wide)]
    assert spans[1]["good"] > spans[0]["good"]
    with pytest.raises(InputError, match="whole events are resampled"):
        arena_report(arena(events=60), bootstrap={"cluster": "question"})


def test_a_narrow_terminal_drops_columns_but_no_rows():
    text = arena_report(arena(events=30)).text(width=60)
    assert all(len(line) <= 60 for line in text.splitlines())
    assert "always 0.5" in text


def test_the_finding_names_the_leader_and_the_market():
    text = arena_report(arena(events=100)).study().text
    assert text.startswith("good is the best entry")
    assert "the market's" in text
    lonely = several(one_asking(quotes=[0.4, np.nan, np.nan, np.nan]), one_asking("f", at=START + DAY))
    assert "there is no market" not in arena_report(lonely).study().text


def test_page_data_has_all_parts_and_no_nan():
    view = arena_view(arena(events=60, forecast_times=3, drop=0.2, quoted=0.7), by=("lead time",))
    data = json.loads(json.dumps(view.to_dict(), allow_nan=False))
    assert {
        "lines",
        "versus_market",
        "pairs",
        "groups",
        "rebalanced",
        "lead_times",
        "settings",
        "counts",
    } <= data.keys()
    assert set(data["groups"]) == {"category", "platform", "lead time"}
    assert data["counts"]["resolved"] == 60
    names = [line["entry"]["name"] for line in data["lines"]]
    assert data["pairs"]["names"] == names
    assert len(data["pairs"]["verdicts"]) == len(names) * (len(names) - 1) / 2
    ranks = [line["rank"] for line in data["lines"] if not line["entry"]["baseline"]]
    assert ranks == [*range(1, len(ranks) + 1)]
    assert not any(line["rank"] for line in data["lines"] if line["entry"]["baseline"])
    briers = [line["scores"]["adjusted_brier"]["estimate"] for line in data["lines"]]
    assert briers == sorted(briers)


def _leaving_out(table, entry, left):
    p = table.p.copy()
    p[table.names.index(entry), left] = np.nan
    return replace(table, p=p)


def test_answering_only_easy_events_gains_nothing():
    whole = arena(events=120, forecast_times=1)
    hard = (whole.markets.price > 0.05) & (whole.markets.price < 0.95)
    easy = arena_view(_leaving_out(whole, "bad", hard))
    lines, before = ({line.entry.name: line for line in view.lines} for view in (easy, arena_view(whole)))
    picky = lines["bad"]
    assert picky.scores["brier"].estimate < lines["good"].scores["brier"].estimate  # On what each answered.
    assert picky.fair.estimate > lines["good"].fair.estimate
    assert picky.completion < 0.5
    assert picky.rank is None
    assert (lines["good"].rank, easy.lines[0].entry.name) == (1, "good")
    # An entry that answered everything needs no adjustment, and the ranking without intervals is the same.
    assert lines["good"].fair == lines["good"].scores["brier"] == before["good"].scores["brier"]
    for line in first_view(_leaving_out(whole, "bad", hard)).lines:
        assert line.fair.estimate == pytest.approx(lines[line.entry.name].fair.estimate)
        assert line.rank == lines[line.entry.name].rank
    assert arena_headline(easy).startswith(("good beats", "No entry beats the market: good"))
    assert "good is the best entry" in arena_finding(easy)


def test_calibration_chart_shows_the_error_of_the_leaderboard():
    report = arena_report(arena(events=80, forecast_times=3, drop=0.2))
    charts = {chart.title: chart.chart for chart in report.study(pictures=True).charts}
    for line in report.view.lines[:2]:
        error = f"calibration error {100 * line.scores['ece'].estimate:.1f} points"
        assert error in str(charts[f"Reliability of {line.entry.name}"].svg)


def test_events_before_an_entry_joined_do_not_count_as_missed():
    whole = arena(events=60)
    day = START + 15 * DAY
    before = whole.forecast_times.taken_at[whole.markets.forecast_time] < np.datetime64(day.replace(tzinfo=None))
    late = _leaving_out(whole, "bad", before)
    joined = replace(late.entries[1], since=day.isoformat()[:19])
    views = [arena_view(replace(late, entries=(late.entries[0], entry))) for entry in (late.entries[1], joined)]
    rows = [next(line for line in view.lines if line.entry.name == "bad") for view in views]
    assert 0.4 < rows[0].completion < 0.6
    assert rows[1].completion == 1.0
    assert rows[1].rank == 2
    left = arena_view(
        replace(whole, entries=(replace(whole.entries[0], until="2026-01-16T00:00:00"), whole.entries[1]))
    )
    assert next(line for line in left.lines if line.entry.name == "good").completion == 1.0


def test_the_page_is_one_well_formed_file():
    page = arena_report(arena(events=60, forecast_times=3, drop=0.1), by=("category",)).page()
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    assert len(root.findall(".//svg")) + len(root.findall(".//{http://www.w3.org/2000/svg}svg")) >= 8
    for word in ("Leaderboard", "Betting against the market", "by time to close", "How to read this", "Settings"):
        assert word in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_names_of_entries_cannot_break_the_page():
    evil = '<script>alert("x")</script>'
    page = arena_report(arena(events=20, entries=(evil,))).page()
    assert evil not in page
    ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


def test_markdown_has_every_table():
    text = arena_report(arena(events=40)).study().to_markdown()
    assert text.count("| --- |") + text.count("|---|") >= 3 or text.count("---:") > 10


def test_an_arena_with_one_event_has_a_report():
    report = arena_report(several(one_asking(quotes=[0.4, 0.39, 0.41, 0.61])))
    assert "1 resolved" in report.study().text
    ElementTree.fromstring(report.page().removeprefix("<!DOCTYPE html>\n"))
    assert "only 1 cluster" in str(report.to_dict())


def test_entries_without_forecasts_on_resolved_events_are_listed_last():
    parts = [one_asking("x", outcome=(1,)), one_asking("y", outcome=(None,))]
    askings, known, answers = zip(*parts, strict=True)
    late = Answer(entry="late", event="y", taken_at=START, p={"t0": 0.5})
    standings = table_of("x", list(askings), {**known[0], **known[1]}, [answers[0], late])
    lines = arena_view(standings).lines
    assert {line.entry.name: line.completion for line in lines[-2:]} == {"late": 0, MARKET_PRICE: 0}
    assert {line.entry.name: line.rank for line in lines if line.rank} == {"a": 1}


def test_scores_over_time_are_means_over_the_events_of_four_weeks():
    scored = ScoredArena.of(arena(events=160))
    course, gaps = scores_over_time(scored, ["bad"])["bad"], event_gaps(scored, "bad")
    assert len(course) > 5
    for time, value in course:
        ages = [((time.date() - gap.settled_at.date()).days, gap.gap) for gap in gaps]
        assert value == pytest.approx(np.mean([gap for age, gap in ages if 0 <= age < 28]))
