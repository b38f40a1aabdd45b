import json
from xml.etree import ElementTree

import numpy as np
from tests.scoring.made_standings import DAY, START, Answer, arena, one_asking, several, table_of

from foretell.report.arena_report import arena_report
from foretell.scoring import CROWD
from foretell.scoring.arena_view import arena_view


def test_the_terminal_shows_the_board_with_its_yardsticks():
    text = arena_report(arena(events=60)).text(width=220)
    for word in ("Leaderboard", "good", "bad", CROWD, "base rate", "always 0.5", "Brier", "ECE", "100 %", "$"):
        assert word in text
    assert "by category" not in text
    assert "Brier by category" in arena_report(arena(events=60), by=("category",)).text(by=("category",), width=220)


def test_a_narrow_terminal_loses_columns_and_not_rows():
    text = arena_report(arena(events=30)).text(width=60)
    assert all(len(line) <= 60 for line in text.splitlines())
    assert "always 0.5" in text


def test_the_finding_names_the_leader_and_the_market():
    told = arena_report(arena(events=100)).study().text
    assert told.startswith("good is the best entry")
    assert "the market's" in told
    lonely = several(one_asking(quotes=[0.4, np.nan, np.nan, np.nan]), one_asking("f", at=START + DAY))
    assert "there is no market" not in arena_report(lonely).study().text


def test_page_data_holds_everything_and_no_nan():
    view = arena_view(arena(events=60, moments=3, drop=0.2, quoted=0.7), by=("lead time",))
    data = json.loads(json.dumps(view.to_dict(), allow_nan=False))
    assert {"lines", "versus_crowd", "pairs", "groups", "rebalanced", "lead_times", "settings", "counts"} <= data.keys()
    assert set(data["groups"]) == {"category", "platform", "lead time"}
    assert data["counts"]["resolved"] == 60
    names = [line["entry"]["name"] for line in data["lines"]]
    assert data["pairs"]["names"] == names
    assert np.array(data["pairs"]["matrix"]["diff"]).shape == (len(names), len(names))
    ranks = [line["rank"] for line in data["lines"] if not line["entry"]["anchor"]]
    assert ranks == [*range(1, len(ranks) + 1)]
    assert not any(line["rank"] for line in data["lines"] if line["entry"]["anchor"])
    briers = [line["scores"]["brier"]["estimate"] for line in data["lines"]]
    assert briers == sorted(briers)


def test_the_page_is_one_well_formed_file():
    page = arena_report(arena(events=60, moments=3, drop=0.1), by=("category",)).page()
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


def test_an_arena_with_one_event_still_makes_a_report():
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
    assert {line.entry.name: line.completion for line in lines[-2:]} == {"late": 0, CROWD: 0}
    assert {line.entry.name: line.rank for line in lines if line.rank} == {"a": 1}
