import asyncio
import json
import struct
from datetime import timedelta

import pytest
from tests.arena.live.site import START, Site

from foretell.arena import ArenaStore, SelectionRules, event_history, make_contexts, make_forecasts
from foretell.arena.stages import collect
from foretell.questions import InputError
from foretell.runs import RunStore


async def _played(site: Site) -> ArenaStore:
    arena = site.arena()
    await collect(arena, site.now)
    await make_contexts(arena, site.now)
    await make_forecasts(arena, site.now)
    return arena.book


def test_forecasts_as_bare_numbers(anywhere: Site):

    site = anywhere
    site.exchange.offer("CUP", closes=START + timedelta(days=2), exclusivity="exactly one", price=0.4)
    site.answers["always"] = lambda cell: [0.9, 0.3]
    book = asyncio.run(_played(site))
    ((targets, quotes, closes),) = book.db.read("select targets, quotes, closes_at from moment where state = 'ready'")
    assert json.loads(targets) == ["CUP-A", "CUP-B"]
    numbers = struct.unpack("<8d", quotes)
    assert numbers[0] == 0.4
    assert numbers[1] != numbers[1]  # no bid
    assert numbers[2:4] == pytest.approx((0.41, 0.63))
    assert closes == (START + timedelta(days=2)).isoformat()
    rows = book.db.read(
        "select e.name, s.trial, s.p, s.stated from said s join entry e on e.id = s.entry order by 1, 2"
    )
    assert [(name, trial) for name, trial, _, _ in rows] == [("one", 0), ("two", 0), ("two", 1)]
    assert struct.unpack("<2d", rows[0][2]) == pytest.approx((0.8, 0.2))
    assert struct.unpack("<2d", rows[0][3]) == pytest.approx((0.9, 0.3))
    assert rows[1][3] is None


def test_two_arenas_in_one_place_do_not_meet(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    events = list(site.exchange.events_.values())
    cup, other = (ArenaStore(site.store.database, name) for name in ("cup", "other"))
    cup.decide(events, SelectionRules(), START, volatility={})
    assert (len(cup.selected()), len(other.selected())) == (1, 0)
    assert len(other.decide(events, SelectionRules(), START, volatility={}).chosen) == 1


def test_a_rejected_event_may_be_taken_up_later_and_never_the_other_way_round(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2), volume=5.0)
    book, rules = ArenaStore(site.store.database, "cup"), SelectionRules(volume=10)
    thin = list(site.exchange.events_.values())
    assert book.decide(thin, rules, START, volatility={}).chosen == ()
    site.exchange.offer("CUP", closes=START + timedelta(days=2), volume=50.0)
    thick = list(site.exchange.events_.values())
    assert len(book.decide(thick, rules, START + timedelta(hours=1), volatility={}).chosen) == 1
    book.decide(thin, rules, START + timedelta(hours=2), volatility={})
    assert list(book.selected()) == ["kalshi/CUP"]
    assert [m.planned_at for m in book.moments.of_event("kalshi/CUP")] == [START + timedelta(hours=1)]


def test_a_context_that_was_changed_is_noticed(site: Site):

    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    book = asyncio.run(_played(site))
    digest = book.moments.ready()[0].context
    assert digest is not None
    book.db.write("update context set body = replace(body, 'It says so', 'It says no')")
    with pytest.raises(InputError, match="digest"):
        book.context(digest)


def test_the_story_of_an_event(site: Site):

    site.exchange.offer("CUP", closes=START + timedelta(days=2), price=0.4)
    asyncio.run(_played(site))
    arena = site.arena()
    story = event_history(arena.book, "CUP")
    assert story.to_dict()["moments"][0]["said"]["one"] == {"CUP-A": 0.5, "CUP-B": 0.5}
    assert set(story.moments[0].said) == {"one", "two", "two 2"}
    assert (story.moments[1].state, story.moments[1].to_close) == ("planned", "24.0 h")
    assert [price for _, price in story.prices["CUP-A"]] == [pytest.approx(0.41 / 1.04)]
    with pytest.raises(InputError, match="no event 'CU_'"):
        event_history(arena.book, "CU_")


def test_tables_come_to_a_store_that_was_there_before(place: str):
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
