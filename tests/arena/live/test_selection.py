import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from foretell.arena.select import PastSelection, SelectionRules, format_of, select
from foretell.data.markets.listing import ListedEvent
from foretell.questions.as_of import instant
from foretell.questions.question import Question, Target

NOW = instant("2026-11-01T12:00:00Z")


def listed(name: str, days: float = 10, **more: Any) -> ListedEvent:
    targets = tuple(Target(id=f"{name}-{n}", label=f"Outcome {n}") for n in range(more.pop("outcomes", 2)))
    question = Question(
        id=f"kalshi/{name}",
        source="kalshi",
        text=more.pop("title", f"Who wins {name}?"),
        due=NOW,
        targets=targets,
        category=more.pop("category", "Sports"),
        closes_at=None if days == 0 else NOW + timedelta(days=days),
    )
    volume = more.pop("volume", 100.0)
    recurrence = more.pop("recurrence", name)
    return ListedEvent(
        question=question, status=more.pop("status", "open"), recurrence=recurrence, volume=volume, **more
    )


def names(events: Sequence[ListedEvent]) -> list[str]:
    return [event.question.id.removeprefix("kalshi/") for event in events]


@pytest.mark.parametrize(
    ("event", "rules", "reason"),
    [
        (listed("a", status="closed"), {}, "it is closed"),
        (listed("a", days=0), {}, "no close date is stated"),
        (listed("a", days=0.5), {}, "it closes too soon"),
        (listed("a", days=90), {}, "it closes too late"),
        (listed("a", outcomes=21), {}, "too many outcomes"),
        (listed("a", volume=9.0), {"volume": 10}, "volume below the minimum"),
        (listed("a", volume=None), {"volume": 10}, "no volume is stated"),
        (listed("a", volume_24h=3.0), {"volume_24h": 4}, "volume 24h below the minimum"),
        (listed("a", liquidity=3.0), {"liquidity": 4}, "liquidity below the minimum"),
        (listed("a"), {"open_interest": 4}, "no open interest is stated"),
        (listed("a", traders=3), {"traders": 4}, "traders below the minimum"),
        (listed("a", title="Will Bitcoin rise?"), {"exclude": ("bitcoin",)}, "excluded by the word 'bitcoin'"),
        (listed("a", tags=("Crypto",)), {"exclude": ("crypto",)}, "excluded by the word 'crypto'"),
        (listed("a"), {"exclude": ("outcome 1",)}, "excluded by the word 'outcome 1'"),
        (listed("a"), {"only": ("Politics",)}, "another category"),
        (listed("a"), {"volatility": 0.01}, "it has no price history"),
        (listed("a"), {"categories": {"sports": 0}}, "enough events of Sports were selected today"),
        (listed("a"), {"categories": {"other": 0}}, "enough events of Sports were selected today"),
    ],
)
def test_every_rejection_has_its_reason(event: ListedEvent, rules: dict[str, Any], reason: str):
    selection = select([event], SelectionRules(**rules), [], NOW)
    assert (selection.chosen, selection.counts) == ((), {reason: 1})


def test_exclude_matches_whole_words():
    events = [listed("a", title="Who wins the Warsaw derby?"), listed("b", title="Does the war end?")]
    selection = select(events, SelectionRules(exclude=("war",)), [], NOW)
    assert names(selection.chosen) == ["a"]


def test_events_with_the_highest_volume_come_first_in_any_order():
    events = [listed(f"e{n}", volume=float(n)) for n in range(30)]
    random.Random(1).shuffle(events)
    selection = select(events, SelectionRules(per_day=3), [], NOW)
    assert names(selection.chosen) == ["e29", "e28", "e27"]
    assert selection.counts == {"enough events were selected today": 27}
    assert select(reversed(events), SelectionRules(per_day=3), [], NOW) == selection


def test_places_per_day_are_limited_and_renewed_daily():
    events = [listed(f"e{n}") for n in range(4)]
    first = select(events, SelectionRules(per_day=2), [], NOW)
    past = [PastSelection(event=e.question.id, category="Sports", format=format_of(e), at=NOW) for e in first.chosen]
    assert select(events, SelectionRules(per_day=2), past, NOW + timedelta(hours=3)).chosen == ()
    tomorrow = select(events, SelectionRules(per_day=2), past, NOW + timedelta(days=1))
    assert names(tomorrow.chosen) == ["e2", "e3"]


def test_categories_have_their_own_limits():
    events = [listed(f"s{n}") for n in range(5)] + [listed(f"p{n}", category="Politics") for n in range(5)]
    selection = select(events, SelectionRules(categories={"Sports": 1, "other": 2}), [], NOW)
    assert sorted(names(selection.chosen)) == ["p0", "p1", "s0"]


def test_only_one_event_of_a_recurring_format_is_selected():
    events = [listed("monday", recurrence="KXHIGHNY"), listed("tuesday", recurrence="KXHIGHNY")]
    selection = select(events, SelectionRules(same_format_days=7), [], NOW)
    assert names(selection.chosen) == ["monday"]
    assert selection.counts == {"an event of the same format was selected recently": 1}
    before = PastSelection(
        event="kalshi/monday", category="Sports", format="kalshi:KXHIGHNY", at=NOW - timedelta(days=8)
    )
    assert names(select(events, SelectionRules(same_format_days=7), [before], NOW).chosen) == ["tuesday"]
    assert len(select(events, SelectionRules(same_format_days=0), [], NOW).chosen) == 2


def test_minimum_volatility_is_applied():
    events = [listed("calm"), listed("lively")]
    selection = select(
        events, SelectionRules(volatility=0.02), [], NOW, volatility={"kalshi/calm": 0.01, "kalshi/lively": 0.05}
    )
    assert names(selection.chosen) == ["lively"]
    assert selection.counts == {"volatility below the minimum": 1}


def test_every_event_is_chosen_or_rejected():
    events = [listed(f"e{n}", days=n, volume=float(n)) for n in range(1, 40)]
    selection = select(events, SelectionRules(volume=10, per_day=5, closes_within_days=30), [], NOW)
    assert len(selection.chosen) + sum(selection.counts.values()) == len(events)
    twice = replace(events[0])
    assert (
        select(
            [twice], SelectionRules(), [PastSelection(event=twice.question.id, category="", format="", at=NOW)], NOW
        ).counts
        == {}
    )


@pytest.mark.parametrize(
    "wrong",
    [{"volume": -1}, {"per_day": 0}, {"most_outcomes": 0}, {"closes_after_hours": 48, "closes_within_days": 2}],
)
def test_invalid_rules_are_rejected(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match="|".join(wrong)):
        SelectionRules(**wrong)
