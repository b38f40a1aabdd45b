import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from foretell.metrics import Resampling
from foretell.questions.errors import InputError
from foretell.report.html import HtmlBlock, page, render_blocks
from foretell.report.leaderboard import error_analysis_page, headline, leaderboard_page
from foretell.report.study import column
from foretell.report.study import table as made_table
from foretell.scoring.breakdown import error_analysis
from foretell.scoring.score import ScoringOptions, score_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ForecastCost, ForecastTable

EVIL = '<script>alert("x")</script>'
QUICK = ScoringOptions(by=("source",), resampling=Resampling(draws=200))


def parsed(document: str) -> ElementTree.Element:
    """Pages are well-formed XML as well as HTML."""
    assert document.startswith("<!DOCTYPE html>\n")
    return ElementTree.fromstring(document.partition("\n")[2])


def text_of(document: str) -> str:
    root = parsed(document)
    body = next(root.iter("main"))
    return " ".join(" ".join([root.findtext("head/title") or "", *body.itertext()]).split())


def with_costs(table: ForecastTable) -> ForecastTable:
    return replace(table, costs={"good": ForecastCost(dollars=0.1, seconds=3), "fair": ForecastCost(dollars=2.0)})


def test_page_loads_nothing_from_the_network(board: Scoreboard, table: ForecastTable) -> None:
    document = leaderboard_page(board, with_costs(table), "T")
    links = re.findall(r'(?:src|href|action|data|poster)\s*=\s*"([^"]*)"', document)
    assert links
    assert all(link.startswith("#") for link in links)
    outside = set(re.findall(r"https?://[^\s\"'<)]+", document)) - {"http://www.w3.org/2000/svg"}
    assert not outside
    assert not re.search(r"url\(|@import|<link|<iframe|<img", document)


def test_links_lead_to_sections_that_exist(board: Scoreboard, table: ForecastTable) -> None:
    root = parsed(leaderboard_page(board, table, "T"))
    ids = {e.attrib["id"] for e in root.iter() if "id" in e.attrib}
    assert {e.attrib["href"][1:] for e in root.iter("a")} <= ids


def test_policy_names_the_hashes_of_its_own_style_and_script(board: Scoreboard, table: ForecastTable) -> None:
    document = leaderboard_page(board, table, "T")
    policy = next(e for e in parsed(document).iter("meta") if e.attrib.get("http-equiv")).attrib["content"]
    for tag in ("style", "script"):
        bodies = re.findall(f"<{tag}>(.*?)</{tag}>", document, re.S)
        assert len(bodies) == 1
        digest = base64.b64encode(hashlib.sha256(bodies[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert " style=" not in document
    assert not re.search(r"\son\w+=", document)


def test_leaderboard_page_shows_the_numbers_of_the_board(board: Scoreboard, table: ForecastTable) -> None:
    text = text_of(leaderboard_page(board, table, "Autumn round"))
    for part in (headline(board), "Autumn round", "72.4 [70.4, 74.4]", "−2.1* [−3.9, −0.4]", "baseline", "reference"):
        assert part in text
    for part in ("draws 2000", "seed 0", "cluster question", "have not resolved", "BI by source", "Row minus column"):
        assert part in text, part


def test_frontier_appears_only_with_costs(board: Scoreboard, table: ForecastTable) -> None:
    assert "Score and cost" not in leaderboard_page(board, table, "T")
    assert "Score and cost" in leaderboard_page(board, with_costs(table), "T")


def test_hostile_names_are_escaped(build_table: Callable[..., ForecastTable]) -> None:
    outcome = np.array([0, 1, 0, 1, 1, 0])
    table = build_table(
        {EVIL: outcome * 0.5 + 0.2, '"><svg onload=x>': outcome * 0.2 + 0.4},
        outcome,
        source=["</style>", "</style>", "b", "b", "b", "b"],
        title=["</title><script>1</script>"] * 6,
    )
    board = score_table(table, QUICK)
    analysis = error_analysis(table, EVIL, '"><svg onload=x>')
    for document in (leaderboard_page(board, table, EVIL), error_analysis_page(analysis)):
        root = parsed(document)
        assert len(list(root.iter("script"))) == 1
        assert len(list(root.iter("style"))) == 1
        assert not [e for e in root.iter() if "onload" in e.attrib]
        assert EVIL in text_of(document)


@pytest.mark.usefixtures("fixed_clock")
def test_a_scored_table_has_a_complete_page(table: ForecastTable) -> None:
    board = score_table(table, QUICK)
    document = leaderboard_page(board, table, "T")
    assert document == leaderboard_page(board, table, "T")
    text = text_of(document)
    assert "market price" in text
    assert "base rate" in text
    assert "alpha: 40 targets" in text
    assert "nan" not in text.lower().replace("finan", "")


def test_filled_in_forecasts_are_on_the_page(table: ForecastTable) -> None:
    board = score_table(table, replace(QUICK, missing=0.5))
    text = text_of(leaderboard_page(board, table, "T"))
    assert "missing 0.5" in text
    assert board.group(kind="overall")[0].n == 120


def test_page_with_two_kinds_and_crossed_clusters(table: ForecastTable) -> None:
    kinds = ["market" if i % 3 == 0 else "dataset" for i in range(120)]
    names = ("market", "dataset")
    labels = type(table.targets.question)(codes=np.array([names.index(k) for k in kinds]), names=names)
    targets = replace(table.targets, groups={**table.targets.groups, "kind": labels})
    both = replace(table, targets=targets)
    board = score_table(both, ScoringOptions(cluster=("question", "due"), resampling=Resampling(draws=200)))
    text = text_of(leaderboard_page(board, both, "T"))
    assert "question × due" in text
    assert "mean over kinds" in text


@pytest.mark.parametrize("names", [[], ["solo"], [f"forecaster {i:02d}" for i in range(40)]], ids=["0", "1", "40"])
def test_page_of_none_one_and_forty_forecasters(
    names: list[str], build_board: Callable[..., Scoreboard], build_table: Callable[..., ForecastTable]
) -> None:
    outcome = np.tile([0, 1], 30)
    rng = np.random.default_rng(3)
    table = build_table({n: np.clip(outcome * 0.4 + 0.3 + rng.normal(0, 0.1, 60), 0, 1) for n in names}, outcome)
    board = build_board({n: 80.0 - i for i, n in enumerate(names)})
    document = leaderboard_page(board, table, "T")
    assert headline(board) in text_of(document)
    assert all(name in text_of(document) for name in names)
    assert ("first 30 of 40" in document) == (len(names) == 40)


def test_a_board_without_scores_has_a_page(board: Scoreboard, table: ForecastTable) -> None:
    bare = replace(board, scores=tuple(replace(s, metrics={}) for s in board.scores), verdicts=())
    assert "No forecaster has a score yet." in text_of(leaderboard_page(bare, table, "T"))


def test_tables_sort_by_value_and_can_be_reached_by_keyboard() -> None:
    table = made_table("cap", "", [column("V")], {"a": [-1200.0], "b": [None], "c": [12]})
    root = ElementTree.fromstring(render_blocks([HtmlBlock(table=table)]).strip())
    assert root.attrib["tabindex"] == "0"
    assert root.attrib["aria-label"] == "cap"
    assert [cell.attrib.get("data-v") for cell in root.iter("td")] == [None, "-1200", None, "", None, None]
    assert all(head.attrib["scope"] == "col" for head in root.iter("th"))


def test_page_is_small_and_fits_a_phone() -> None:
    document = page("T")
    assert len(document) < 12_000
    assert 'name="viewport"' in document
    assert "prefers-color-scheme:dark" in document
    assert "@media print" in document


def test_error_page_shows_cases_bins_and_shares(table: ForecastTable) -> None:
    analysis = error_analysis(table, "half", "good")
    text = text_of(error_analysis_page(analysis))
    for part in ("Error analysis of half", "Hardest", "Easiest", "Worst calibrated ranges first", "Minus good"):
        assert part in text
    for part in (
        "BI by source",
        "BI by volume",
        "Questions by due date",
        "Standardised difference",
        "against the market",
    ):
        assert part in text, part


def test_error_page_of_a_forecaster_without_answers(build_table: Callable[..., ForecastTable]) -> None:
    table = build_table({"a": np.array([0.2, 0.7]), "mute": np.array([np.nan, np.nan])}, np.array([0, 1]))
    text = text_of(error_analysis_page(error_analysis(table, "mute")))
    assert "mute answered no resolved target." in text


def test_an_unknown_forecaster_is_an_error(table: ForecastTable) -> None:
    with pytest.raises(InputError, match="nobody"):
        error_analysis(table, "nobody")
