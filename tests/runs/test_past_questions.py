from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from foretell.forecasters.base_rates.past import Past, PastQuestions
from foretell.questions.question import LastValue, Question, Snapshot, Target
from foretell.questions.resolution import Resolution
from foretell.runs.past import keep_past, past_of, stored_past
from foretell.runs.store import RunStore

DUE = "2025-10-26"
MARKET = Question(
    id="polymarket/1",
    source="polymarket",
    text="Will it rain by 1 March 2026?",
    due=DUE,
    closes_at="2026-03-02",
    url="https://example.org/1",
    targets=(Target(id="yes", snapshot=Snapshot(at="2025-10-16", last_price=0.2)),),
)
SERIES = Question(
    id="fred/X",
    source="fred",
    subtype="all",
    kind="dataset",
    text="Will X rise?\n\nLong story.",
    due=DUE,
    last_value=LastValue(value=3.5, at="2025-10-20"),
    targets=tuple(Target(id=day, label=f"Up on {day}?", resolves_at=day) for day in ("2025-11-02", "2025-11-25")),
)


def test_one_row_for_each_target_resolved_or_not() -> None:
    answers = [
        Resolution(question_id="fred/X", target_id="2025-11-02", due=DUE, outcome=1, resolved_at="2025-11-02"),
        Resolution(question_id="polymarket/1", target_id="yes", due=DUE, outcome=None),
        Resolution(question_id="elsewhere", target_id="yes", due=DUE, outcome=1, resolved_at="2025-11-02"),
    ]
    past = past_of([MARKET, SERIES], answers).table
    assert past.id.tolist() == ["polymarket/1", "fred/X", "fred/X"]
    assert past.text.tolist() == ["Will it rain by 1 March 2026?", "Up on 2025-11-02?", "Up on 2025-11-25?"]
    assert np.isnan(past.outcome).tolist() == [True, False, True]
    assert past.price[0] == 0.2
    assert str(past.price_on[0]) == "2025-10-16"
    assert past.resolves.astype(str).tolist() == ["2026-03-02", "2025-11-02", "2025-11-25"]
    assert past.size[1] == 3.5
    assert past.url[0] == "https://example.org/1"


def test_outcomes_without_a_date_or_of_another_round_are_not_used() -> None:
    undated = Resolution(question_id="polymarket/1", target_id="yes", due=DUE, outcome=1)
    other = Resolution(question_id="polymarket/1", target_id="yes", due="2025-11-09", outcome=1, resolved_at=DUE)
    for answer in (undated, other):
        assert np.isnan(past_of([MARKET], [answer]).table.outcome).all()


def test_no_questions_have_no_past() -> None:
    assert len(past_of([], []).table) == 0
    with pytest.raises(ValueError, match="0, 1 or None"):
        Resolution(question_id="q", target_id="yes", outcome=2)


def _rows(past: Past) -> list[list[object]]:
    table = past.table
    return [np.asarray(getattr(table, name)).astype(str).tolist() for name in PastQuestions.__dataclass_fields__]


def test_run_keeps_the_past_with_which_it_began(place: Path | str) -> None:
    """A resumed run, a worker on another machine and a replay show models the same base rates."""
    answer = Resolution(question_id="fred/X", target_id="2025-11-02", due=DUE, outcome=1, resolved_at="2025-11-02")
    began, later = past_of([MARKET, SERIES], []), past_of([MARKET, SERIES], [answer])
    asked = SERIES.as_of_in("live")
    with closing(RunStore(place)) as store:
        assert stored_past(store, "r") is None
        assert keep_past(store, "r", began) is began
        assert _rows(keep_past(store, "r", later)) == _rows(began)
        assert keep_past(store, "other", later) is later
        stored = stored_past(store, "other")
        assert stored is not None
        assert _rows(stored) == _rows(later)
        assert stored.rates is not None
        assert later.rates is not None
        targets = SERIES.targets
        assert [stored.rate(SERIES, target, asked) for target in targets] == [
            later.rate(SERIES, target, asked) for target in targets
        ]
        assert stored.cases(SERIES, asked) == later.cases(SERIES, asked)
        store.remove("r")
        assert stored_past(store, "r") is None
        assert stored_past(store, "other") is not None
