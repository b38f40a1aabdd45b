"""The planted-leak suite: all cases with the whole leakage filter, and three content filters.

One content filter judges, one keeps everything, and one fails.
"""

from collections import Counter

from tests.tools.doubles import Broken, keeps_all
from tests.tools.planted.measure import BEGIN, END, PAGE, all_cases, outcome, table
from tests.tools.planted.stand_in import stand_in

CASES = all_cases()
BY_RULE = [case for case in CASES if case.must == "drop" and case.by != "content"]
CLEAN = [case for case in CASES if case.must == "keep" and not case.misread_by]
MISREAD = [case for case in CASES if case.misread_by]
KINDS = (
    "dated after the cutoff",
    "undated",
    "updated page",
    "live blog",
    "relative age",
    "revised series",
    "market status, volume, close time",
    "resolution address in the text",
    "redirect",
    "template transclusion",
    "scheduled event",
    "outcome with its date",
)


def test_suite_is_large_complete_and_without_duplicates() -> None:
    assert len(CASES) >= 200
    assert set(KINDS) <= {case.kind for case in CASES}
    assert [name for name, n in Counter(case.id for case in CASES).items() if n > 1] == []


def test_rules_drop_leaks_even_if_the_content_filter_keeps_everything() -> None:
    assert [case.id for case in BY_RULE if outcome(case, keeps_all).admitted] == []
    assert [case.id for case in BY_RULE if case.by not in outcome(case, keeps_all).layers] == []


def test_clean_material_reaches_the_model() -> None:
    assert [case.id for case in CLEAN if not outcome(case, stand_in).admitted] == []


def test_only_listed_cases_are_misjudged() -> None:
    assert [case.id for case in MISREAD if outcome(case, stand_in).admitted] == []
    by_the_stand_in = [case for case in MISREAD if case.misread_by == "stand-in"]
    assert [case for case in MISREAD if outcome(case, keeps_all).admitted] == by_the_stand_in


def test_failing_content_filter_admits_only_numbers() -> None:
    admitted = [case for case in CASES if outcome(case, Broken).admitted]
    assert {case.tool.spec.name for case in admitted} <= {"fetch_series", "fetch_prices"}
    assert all(case.must == "keep" for case in admitted)


def test_stand_in_drops_dated_outcomes_and_keeps_plans() -> None:
    dated = [case for case in CASES if case.kind in ("outcome with its date", "text that gives orders")]
    missed = [case for case in dated if outcome(case, stand_in).admitted]
    assert len(missed) <= 0.1 * len(dated)
    plans = [case for case in CASES if case.kind == "scheduled event"]
    assert all(outcome(case, stand_in).admitted for case in plans)


def test_table_in_the_docs_matches_the_measurement() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0].strip() == table(CASES)
