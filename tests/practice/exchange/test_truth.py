"""The hidden truth of a simulated world: calibrated probabilities that are a martingale."""

from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.practice.exchange.events import SimulationSettings, above, first
from foretell.practice.exchange.world import SimulatedWorld

WORLD = SimulatedWorld(SimulationSettings(seed=11, days=20, events_per_day=20))


def at_share(share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ideal probabilities of all markets at a share of their event's life, and the outcomes."""
    p = [event.p[:, int(share * (len(event.hours) - 2))] for event in WORLD.events]
    return np.concatenate(p), np.concatenate([event.p[:, -1] for event in WORLD.events])


def test_a_world_has_every_kind_of_event_and_several_categories():
    assert {event.kind for event in WORLD.events} == {"yes-no", "race", "ladder", "weekly"}
    assert len({event.words.category for event in WORLD.events}) >= 6
    assert len(WORLD.by_ticker) == sum(1 + len(event.tickers) for event in WORLD.events)


def test_the_number_of_events_per_day_matches_the_settings():
    start = WORLD.settings.start.timestamp()
    opened = [event for event in WORLD.events if event.life.opens >= start]
    assert 17 <= len(opened) / WORLD.settings.days <= 23


@pytest.mark.parametrize("share", [0.0, 0.4, 0.8])
def test_the_truth_is_calibrated_throughout_the_life_of_events(share: float):
    p, outcome = at_share(share)
    for low in np.arange(0.0, 1.0, 0.2):
        within = (p >= low) & (p < low + 0.2)
        error = 4 * np.sqrt(p[within].mean() * (1 - p[within].mean()) / within.sum())
        assert abs(outcome[within].mean() - p[within].mean()) < error


def test_true_probabilities_become_sharper_over_time():
    scores = [np.mean((p - outcome) ** 2) for p, outcome in map(at_share, (0.0, 0.4, 0.8))]
    assert scores[0] > scores[1] > scores[2]


def test_changes_of_the_truth_have_mean_zero():
    """The truth is a martingale: the mean change is zero, also given the value before."""
    changes = np.concatenate([(e.p[:, len(e.hours) // 2] - e.p[:, 0]) for e in WORLD.events])
    before = np.concatenate([e.p[:, 0] for e in WORLD.events])
    for chosen in (before < 0.3, before >= 0.3, np.full(len(before), True)):
        assert abs(changes[chosen].mean()) < 4 * changes[chosen].std() / np.sqrt(chosen.sum())


def test_races_sum_to_one_and_ladders_are_nested():
    for event in WORLD.events:
        if event.kind == "race":
            np.testing.assert_allclose(event.p.sum(axis=0), 1.0, atol=1e-9)
            assert sum(event.outcomes) == 1
        elif event.kind != "yes-no":
            assert (np.diff(event.p, axis=0) <= 1e-12).all()
            assert list(event.outcomes) == sorted(event.outcomes, reverse=True)


def test_truth_and_outcome_are_looked_up_by_ticker():
    event = next(event for event in WORLD.events if not event.life.void)
    after = WORLD.settings.ends + timedelta(days=60)
    for row, ticker in enumerate(event.tickers):
        assert WORLD.truth(event.ticker, ticker, after) == event.outcomes[row] == WORLD.outcome(event.ticker, ticker)
        assert WORLD.truth(event.ticker, ticker, WORLD.settings.begins) == event.p[row, 0]


def test_some_events_are_cancelled_and_some_are_known_early():
    lives = [event.life for event in WORLD.events]
    assert 0.005 < np.mean([life.void for life in lives]) < 0.05
    assert 0.04 < np.mean([life.early for life in lives]) < 0.14
    for life in lives:
        assert life.announced <= life.opens < life.ends <= life.closes
        assert life.known < life.determined < life.finalized
    void = next(event for event in WORLD.events if event.life.void)
    assert WORLD.outcome(void.ticker, void.tickers[0]) is None


def test_a_weekly_series_continues_from_its_last_value():
    weekly = [event for event in WORLD.events if event.kind == "weekly"]
    events = [event for event in weekly if event.series == weekly[0].series]
    assert len(events) >= 3
    for before, after in pairwise(events):
        assert after.level == pytest.approx(before.quantity[-1])
        assert after.life.opens >= before.life.finalized


def test_equal_settings_produce_equal_worlds():
    one, other = (SimulatedWorld(SimulationSettings(seed=4, days=2, events_per_day=6)) for _ in range(2))
    assert [event.ticker for event in one.events] == [event.ticker for event in other.events]
    assert one.news == other.news
    assert one.news != SimulatedWorld(SimulationSettings(seed=5, days=2, events_per_day=6)).news


@settings(max_examples=50)
@given(
    walks=st.lists(st.floats(-4, 4), min_size=2, max_size=8),
    left=st.floats(0.001, 1.0),
)
def test_probabilities_of_a_race_are_ordered_like_its_walks(walks: list[float], left: float):
    p = first(np.array(walks)[:, None], np.array([left]))[:, 0]
    assert p.sum() == pytest.approx(1.0)
    order = np.argsort(walks)
    assert (np.diff(p[order]) >= -1e-9).all()


def test_a_race_of_two_equals_a_threshold_on_the_difference():
    """P(first ahead) = Φ((a − b)/√(2·left))."""
    two = first(np.array([[0.7], [0.2]]), np.array([0.4]))[0, 0]
    assert two == pytest.approx(above(np.array([0.5]), np.array([0.8]), np.array([0.0]))[0, 0], abs=1e-6)


def test_invalid_settings_are_rejected():
    with pytest.raises(ValueError, match="at least one day"):
        SimulationSettings(days=0)
    with pytest.raises(ValueError, match="shares from 0 to 1"):
        SimulationSettings(void=2.0)
