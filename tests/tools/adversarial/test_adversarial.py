"""The stored texts of `foretell audit --filter`, and the verdicts of the rules without a content filter."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from tests.tools.adversarial.measure import BEGIN, END, PAGE, STORED, table

from foretell import audit
from foretell.questions.as_of import AsOf
from foretell.studies.audit.leaks import ADDRESS, ASKED, LeakCase, leak_cases
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import Refusal, SourceItem


def test_rules_alone_stop_90_percent_of_leaks_and_few_clean_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most two percent of clean texts are stopped. The audit prints the shares by kind, as the docs do."""
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    mute = tmp_path / "mute.jsonl"
    mute.write_text('{"when": "", "text": "I cannot say."}\n', encoding="utf-8")
    result = audit(filter=(f"scripted:{mute}",), sample=400)
    assert "gave no clear verdict on" in result.sentences[-1]
    totals = result.table("Stopped, in all")
    judged = {name: str(value).split(" of ") for name, value in totals.column("judged").items()}
    tuned = {name: str(value).split(" of ") for name, value in totals.column("tuned").items()}
    for share in (judged["leaks with a date"], tuned["leaks with a date"]):
        assert int(share[0]) >= 0.9 * int(share[1])
    clean = [judged["clean texts"], tuned["clean texts"]]
    assert sum(int(counts[0]) for counts in clean) <= 0.02 * sum(int(counts[1]) for counts in clean)
    assert len(leak_cases()) > 3_000
    assert PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip() == table()


def test_handwritten_texts_are_judged_correctly() -> None:
    """Three sets that were written without knowledge of the rules, which were improved for them afterwards."""
    lines = (Path(__file__).parent / "by_hand.jsonl").read_text(encoding="utf-8").splitlines()
    wrong: dict[bool, list[str]] = {True: [], False: []}
    rows = [json.loads(line) for line in lines]
    for row in rows:
        words = {name: row[name] for name in ("text", "title", "url") if name in row}
        case = LeakCase(kind="by hand", wording="", part="tuned", leak=row["leak"], **words)
        if case.refused_by_rules() != case.leak:
            wrong[case.leak].append(case.text[-80:])
    leaks = sum(row["leak"] for row in rows)
    assert len(wrong[True]) <= 0.02 * leaks, wrong[True]
    assert len(wrong[False]) <= 0.005 * (len(rows) - leaks), wrong[False]


def test_lines_lists_tables_and_yearless_days_are_judged_by_layout() -> None:
    """Leaks and clean texts with the same layouts in 40 languages. The rules were tuned on them."""
    lines = (Path(__file__).parent / "layouts.jsonl").read_text(encoding="utf-8").splitlines()
    wrong: dict[bool, list[str]] = {True: [], False: []}
    rows = [json.loads(line) for line in lines]
    for row in rows:
        as_of = AsOf.day(row["cutoff"])
        item = SourceItem(
            title="",
            url=ADDRESS,
            text=row["text"],
            published=as_of.at - timedelta(days=20),
            dating="published",
        )
        refused = isinstance(LeakageRules(as_of=as_of, question=ASKED).admit(item, "web_search"), Refusal)
        if refused != row["leak"]:
            wrong[row["leak"]].append(row["text"])
    leaks = sum(row["leak"] for row in rows)
    assert len(wrong[True]) <= 0.1 * leaks, wrong[True]
    assert len(wrong[False]) <= 0.02 * (len(rows) - leaks), wrong[False]


def test_stored_texts_match_the_templates() -> None:
    pytest.importorskip("babel", reason="writes dates in many languages")
    from tests.tools.adversarial.cases import all_cases
    from tests.tools.adversarial.dates_written import PROSE
    from tests.tools.adversarial.measure import to_lines

    assert STORED.read_text(encoding="utf-8").splitlines() == list(to_lines(all_cases(), PROSE))
