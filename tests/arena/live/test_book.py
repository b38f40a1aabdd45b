import asyncio
import json
import struct
from datetime import timedelta

import pytest
from tests.arena.live.site import START, Site

from foretell.arena.forecast import make_forecasts
from foretell.arena.select import SelectionRules
from foretell.arena.stages import collect, make_contexts
from foretell.arena.status import event_history
from foretell.arena.store import ArenaStore
from foretell.questions.errors import InputError
from foretell.runs.store import RunStore


async def _played(site: Site) -> ArenaStore:
    arena = site.arena()
    await collect(arena, site.now)
    await make_contexts(arena, site.now)
    await make_forecasts(arena, site.now)
    return arena.records


def test_forecasts_are_stored_as_packed_floats(anywhere: Site):

    site = anywhere
    site.exchange.offer("CUP", closes=START + timedelta(days=2), exclusivity="exactly one", price=0.4)
    site.answers["constant"] = lambda trial: [0.9, 0.3]
    store = asyncio.run(_played(site))
    ((targets, quotes, closes),) = store.db.read("select targets, quotes, closes_at from moment where state = 'ready'")
    assert json.loads(targets) == ["CUP-A", "CUP-B"]
    numbers = struct.unpack("<8d", quotes)
    assert numbers[0] == 0.4
    assert numbers[1] != numbers[1]  # no bid
    assert numbers[2:4] == pytest.approx((0.41, 0.63))
    assert closes == (START + timedelta(days=2)).isoformat()
    rows = store.db.read(
        "select e.name, s.trial, s.p, s.stated from said s join entry e on e.id = s.entry order by 1, 2"
    )
    assert [(name, trial) for name, trial, _, _ in rows] == [("one", 0), ("two", 0), ("two", 1)]
    assert struct.unpack("<2d", rows[0][2]) == pytest.approx((0.8, 0.2))
    assert struct.unpack("<2d", rows[0][3]) == pytest.approx((0.9, 0.3))
    assert rows[1][3] is None


def test_two_arenas_in_one_database_are_separate(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    events = list(site.exchange.events_.values())
    cup, other = (ArenaStore(site.store.database, name) for name in ("cup", "other"))
    cup.decide(events, SelectionRules(), START, volatility={})
    assert (len(cup.selected()), len(other.selected())) == (1, 0)
    assert len(other.decide(events, SelectionRules(), START, volatility={}).chosen) == 1


def test_rejected_event_may_be_selected_later_and_selected_event_stays(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2), volume=5.0)
    store, rules = ArenaStore(site.store.database, "cup"), SelectionRules(volume=10)
    thin = list(site.exchange.events_.values())
    assert store.decide(thin, rules, START, volatility={}).chosen == ()
    site.exchange.offer("CUP", closes=START + timedelta(days=2), volume=50.0)
    thick = list(site.exchange.events_.values())
    assert len(store.decide(thick, rules, START + timedelta(hours=1), volatility={}).chosen) == 1
    store.decide(thin, rules, START + timedelta(hours=2), volatility={})
    assert list(store.selected()) == ["kalshi/CUP"]
    assert [m.planned_at for m in store.forecast_times.of_event("kalshi/CUP")] == [START + timedelta(hours=1)]


def test_changed_context_is_detected(site: Site):

    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    store = asyncio.run(_played(site))
    digest = store.forecast_times.ready()[0].context
    assert digest is not None
    store.db.write("update context set body = replace(body, 'It says so', 'It says no')")
    with pytest.raises(InputError, match="digest"):
        store.context(digest)


def test_event_history_has_prices_forecasts_and_outcomes(site: Site):

    site.exchange.offer("CUP", closes=START + timedelta(days=2), price=0.4)
    asyncio.run(_played(site))
    arena = site.arena()
    story = event_history(arena.records, "CUP")
    assert story.to_dict()["forecast_times"][0]["said"]["one"] == {"CUP-A": 0.5, "CUP-B": 0.5}
    assert set(story.forecast_times[0].said) == {"one", "two", "two 2"}
    assert (story.forecast_times[1].state, story.forecast_times[1].to_close) == ("planned", "24.0 h")
    assert [price for _, price in story.prices["CUP-A"]] == [pytest.approx(0.41 / 1.04)]
    with pytest.raises(InputError, match="no event 'CU_'"):
        event_history(arena.records, "CU_")


def test_arena_tables_are_added_to_an_existing_store(place: str):
    first = RunStore(place)
    first.begin("r", "{}", "2026-01-01")
    first.close()
    again = RunStore(place)
    ArenaStore(again.database, "cup")
    ArenaStore(again.database, "cup")
    assert again.run("r") is not None
    again.close()
    third = RunStore(place)
    assert ArenaStore(third.database, "cup").selected() == {}
    third.close()
