import numpy as np
import pytest

from foretell.questions import LastValue, Question, Resolution, Snapshot, Target
from foretell.runs import past_of

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


def test_an_answer_without_a_date_or_of_another_round_teaches_nothing() -> None:
    undated = Resolution(question_id="polymarket/1", target_id="yes", due=DUE, outcome=1)
    other = Resolution(question_id="polymarket/1", target_id="yes", due="2025-11-09", outcome=1, resolved_at=DUE)
    for answer in (undated, other):
        assert np.isnan(past_of([MARKET], [answer]).table.outcome).all()


def test_nothing_asked_is_nothing_past() -> None:
    assert len(past_of([], []).table) == 0
    with pytest.raises(ValueError, match="0, 1 or None"):
        Resolution(question_id="q", target_id="yes", outcome=2)
