"""The option `coherent`: the leaderboard shows coherent forecasts of nested outcomes, the store the answers."""

import asyncio
import struct
from datetime import timedelta

import numpy as np
import pytest
from tests.arena.live.site import START, Site

from foretell.arena.forecast import make_forecasts
from foretell.arena.score_data import read_arena_table
from foretell.arena.spec import arena_from_json
from foretell.arena.stages import collect, make_contexts


def played(site: Site, *, coherent: bool) -> None:
    site.spec = {**site.spec, "coherent": coherent}
    closes = START + timedelta(days=2)
    levels = ("Above 3", "Above 4", "Above 5")
    site.exchange.offer("CPI", closes=closes, targets=levels, title="How high is inflation?")
    site.exchange.offer("WHO", closes=closes, targets=("Ann", "Bob", "Eva"), title="Who speaks?")
    site.answers["constant"] = lambda trial: [0.5, 0.7, 0.1]
    site.answers["market-price"] = lambda trial: [0.6, 0.5, 0.4] if trial.trial else [0.5, 0.6, 0.1]
    arena = site.arena()

    async def main() -> None:
        for stage in (collect, make_contexts, make_forecasts):
            await stage(arena, site.now)

    asyncio.run(main())


@pytest.mark.parametrize("coherent", [False, True])
def test_the_board_shows_coherent_forecasts_only_where_it_is_set(anywhere: Site, coherent: bool):
    site = anywhere
    played(site, coherent=coherent)
    table = read_arena_table(site.store.database, "cup")
    shown = {
        (entry, target.split("-")[1]): float(value)
        for entry, row in zip(table.names, table.p, strict=True)
        for target, value in zip(table.markets.target, row, strict=True)
    }
    one = [shown["one", name] for name in ("Above 3", "Above 4", "Above 5")]
    assert one == pytest.approx([0.6, 0.6, 0.1] if coherent else [0.5, 0.7, 0.1])
    # The trials of the other entry contradict themselves, their mean does not.
    assert [shown["two", name] for name in ("Above 3", "Above 4", "Above 5")] == pytest.approx([0.55, 0.55, 0.25])
    assert [shown["one", name] for name in ("Ann", "Bob", "Eva")] == [0.5, 0.7, 0.1]
    stored = {struct.unpack("<3d", p) for (p,) in site.store.database.read("select p from said")}
    assert stored == {(0.5, 0.7, 0.1), (0.6, 0.5, 0.4), (0.5, 0.6, 0.1)}
    notes = [note for note in table.notes if "coherent" in note]
    assert [note.partition(",")[0] for note in notes] == (
        ["coherent: of 2 forecasts of nested thresholds or deadlines"] if coherent else []
    )


def test_no_event_scores_worse_for_being_coherent(site: Site):
    played(site, coherent=False)
    outcomes = {"CPI": (1, 1, 0), "WHO": (0, 1, 0)}
    for name, values in outcomes.items():
        site.exchange.settle(name, *values)
    raw = read_arena_table(site.store.database, "cup")
    site.spec = {**site.spec, "coherent": True}
    site.arena()
    made = read_arena_table(site.store.database, "cup")
    known = {
        f"{name}-{target}": value
        for name, values in outcomes.items()
        for target, value in zip(
            ("Above 3", "Above 4", "Above 5") if name == "CPI" else ("Ann", "Bob", "Eva"), values, strict=True
        )
    }
    truth = np.array([known[target] for target in raw.markets.target])
    errors = [((table.p - truth) ** 2).sum(axis=1) for table in (raw, made)]
    assert (errors[1] <= errors[0] + 1e-12).all()
    assert errors[1].sum() < errors[0].sum()


def test_the_option_is_off_and_changes_no_stored_spec(site: Site):
    spec = arena_from_json(site.spec)
    assert not spec.coherent
    assert "coherent" not in spec.to_json()
    assert '"coherent": true' in arena_from_json({**site.spec, "coherent": True}).to_json()
    assert arena_from_json({**site.spec, "coherent": True}).runs == spec.runs
