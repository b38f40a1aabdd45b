"""Standings out of plain lists: askings with their targets, outcomes, and who said what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from foretell.arena.standings.frame import Columns, Kinds, Outcomes, asked_of, frame_of
from foretell.arena.standings.standings import Entry, Standings, Times
from foretell.evaluate.arrays import Floats


@dataclass(frozen=True, kw_only=True)
class Asking:
    """One event at one moment."""

    event: str
    taken_at: datetime
    targets: tuple[str, ...]
    closes_at: datetime | None = None
    category: str = ""
    platform: str = ""
    cluster: str = ""
    """Empty: the event's own."""
    quotes: Sequence[float] = ()
    """Last, yes bid, yes ask and no ask of every target in turn; NaN or nothing where there is none."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one entry said at one moment: probabilities by target."""

    entry: str
    event: str
    taken_at: datetime
    p: Mapping[str, float]
    stated: Mapping[str, float] | None = None
    dollars: float = float("nan")
    seconds: float = float("nan")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a target of an event came out, and when that was known; None: it is void."""

    outcome: int | None
    known_at: datetime | None = None


def standings_of(
    name: str,
    askings: Sequence[Asking],
    outcomes: Mapping[tuple[str, str], Outcome],
    answers: Sequence[Answer],
    *,
    notes: tuple[str, ...] = (),
) -> Standings:
    """Standings of a few thousand forecasts; outcomes by event and target. Trials of one entry are averaged."""
    asked = asked_of(
        Columns(
            event=[one.event for one in askings],
            taken_at=seconds_of([one.taken_at for one in askings]),
            closes_at=seconds_of([one.closes_at for one in askings]),
            targets=[one.targets for one in askings],
            quotes=[np.asarray(one.quotes, "<f8").tobytes() for one in askings],
        )
    )
    frame = frame_of(name, asked, _kinds(askings), _known(outcomes))
    names = tuple(dict.fromkeys(answer.entry for answer in answers))
    at = {(one.event, one.taken_at): int(asked.place[i]) for i, one in enumerate(askings)}
    p, stated = _Pile(len(names), frame), _Pile(len(names), frame)
    for answer in answers:
        moment, code = at[answer.event, answer.taken_at], names.index(answer.entry)
        p.add(code, moment, answer.p)
        stated.add(code, moment, answer.stated or answer.p)
    return replace(
        frame,
        entries=tuple(_entry(one, [answer for answer in answers if answer.entry == one]) for one in names),
        p=p.mean(),
        stated=stated.mean() if any(answer.stated is not None for answer in answers) else None,
        notes=notes,
    )


def seconds_of(moments: Sequence[datetime | None]) -> Times:
    """Moments as an array, to the second; None is NaT."""
    found = [None if at is None else at.astimezone(UTC).replace(tzinfo=None) for at in moments]
    return np.array(found, "datetime64[s]")


def _kinds(askings: Sequence[Asking]) -> Kinds:
    return Kinds(
        category={one.event: one.category for one in askings},
        platform={one.event: one.platform for one in askings},
        cluster={one.event: one.cluster for one in askings},
    )


def _known(outcomes: Mapping[tuple[str, str], Outcome]) -> Outcomes:
    return Outcomes(
        place={key: i for i, key in enumerate(outcomes)},
        outcome=np.array([np.nan if one.outcome is None else one.outcome for one in outcomes.values()], np.float64),
        known_at=seconds_of([one.known_at for one in outcomes.values()]),
    )


class _Pile:
    """Sums and counts of trials, so that their mean is one division at the end."""

    def __init__(self, entries: int, frame: Standings) -> None:
        self._targets = frame.markets.target
        self._ends = np.append(frame.starts, len(frame.markets)).tolist()
        shape = (entries, len(frame.markets))
        self._sum, self._n = np.zeros(shape), np.zeros(shape, np.int64)

    def add(self, entry: int, moment: int, p: Mapping[str, float]) -> None:
        """One trial of one moment; a target without a probability was not answered."""
        rows = slice(self._ends[moment], self._ends[moment + 1])
        said = np.array([p.get(target, np.nan) for target in self._targets[rows]], np.float64)
        known = np.isfinite(said)
        self._sum[entry, rows] += np.where(known, said, 0.0)
        self._n[entry, rows] += known

    def mean(self) -> Floats:
        """NaN where nothing was said."""
        return np.divide(self._sum, self._n, out=np.full(self._sum.shape, np.nan), where=self._n > 0)


def _entry(name: str, answers: Sequence[Answer]) -> Entry:
    dollars, seconds = ([getattr(one, field) for one in answers] for field in ("dollars", "seconds"))
    return Entry(name=name, said=len(answers), dollars=_mean(dollars), seconds=_mean(seconds))


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")
