"""One event over time: what the market showed and what every entry said at each moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from foretell.arena.report.figures.history import MarketHistory, history_plot
from foretell.arena.standings.standings import Standings
from foretell.arena.study import Picture
from foretell.evaluate.arrays import Floats, Ints
from foretell.questions.problems import InputError


@dataclass(frozen=True, kw_only=True)
class TargetHistory:
    """One market of the event; None where nothing was shown or said."""

    target: str
    outcome: int | None
    price: tuple[float | None, ...]
    forecasts: Mapping[str, tuple[float | None, ...]]
    """By entry."""


@dataclass(frozen=True, kw_only=True)
class EventHistory:
    """The moments of an event in the order of time, and its markets."""

    event: str
    category: str
    platform: str
    at: tuple[str, ...]
    """UTC."""
    hours: tuple[float | None, ...]
    """To the close, as it was known then."""
    targets: tuple[TargetHistory, ...]


def event_history(standings: Standings, event: str) -> EventHistory:
    """The history of one event; an event that is not there is refused."""
    if event not in standings.events.ids:
        raise InputError(f"no event of {standings.name!r} is called {event!r}", hint="foretell arena status lists them")
    code = standings.events.ids.index(event)
    moments = np.flatnonzero(standings.moments.event == code)
    rows = np.flatnonzero(standings.market_event == code)
    names = tuple(dict.fromkeys(standings.markets.target[i] for i in rows.tolist()))
    category, platform = standings.events.category, standings.events.platform
    return EventHistory(
        event=event,
        category=category.names[category.codes[code]],
        platform=platform.names[platform.codes[code]],
        at=tuple(f"{np.datetime_as_string(at)}Z" for at in standings.moments.taken_at[moments]),
        hours=tuple(_known(value) for value in standings.moments.hours[moments].tolist()),
        targets=tuple(_target(standings, name, rows, moments.tolist()) for name in names),
    )


def history_pictures(
    history: EventHistory, quotes: Mapping[str, Sequence[tuple[datetime, float]]] | None = None
) -> tuple[Picture, ...]:
    """A picture for each market: by default prices as of the moments, or a longer path of them by target."""
    moments = [datetime.fromisoformat(at) for at in history.at]
    found: list[Picture] = []
    for i, one in enumerate(history.targets, 1):
        price = (quotes or {}).get(one.target) or _path(moments, one.price)
        forecasts = {name: _path(moments, said) for name, said in one.forecasts.items()}
        drawn = history_plot(MarketHistory(title=one.target, prices=price, forecasts=forecasts, outcome=one.outcome))
        found.append(Picture(name=f"history-{i}", title=one.target, figure=drawn))
    return tuple(found)


def _path(moments: Sequence[datetime], values: Sequence[float | None]) -> list[tuple[datetime, float]]:
    return [(at, value) for at, value in zip(moments, values, strict=True) if value is not None]


def _target(standings: Standings, name: str, rows: Ints, moments: list[int]) -> TargetHistory:
    mine = {int(standings.markets.moment[i]): i for i in rows.tolist() if standings.markets.target[i] == name}
    places = [mine.get(moment) for moment in moments]
    outcomes = [standings.markets.outcome[i] for i in mine.values() if np.isfinite(standings.markets.outcome[i])]
    return TargetHistory(
        target=name,
        outcome=int(outcomes[0]) if outcomes else None,
        price=_along(standings.markets.price, places),
        forecasts={entry: _along(standings.p[k], places) for k, entry in enumerate(standings.names)},
    )


def _along(values: Floats, places: list[int | None]) -> tuple[float | None, ...]:
    return tuple(None if place is None else _known(float(values[place])) for place in places)


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
