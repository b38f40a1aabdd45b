"""Who stands where: every number of every entry with its interval, overall and by group of events."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from foretell.arena.standings.drawing import DRAWS, Drawn, draw, intervals_of, weighed
from foretell.arena.standings.lead_times import LEAD_TIMES, lead_time_of
from foretell.arena.standings.measures import MAIN, MEASURES
from foretell.arena.standings.moment_scores import MomentScores
from foretell.arena.standings.standings import Entry, Standings
from foretell.arena.standings.sums import AT, COLUMNS, Choice, EventSums, Weighing, chosen_moments, event_sums
from foretell.arena.standings.yardsticks import with_yardsticks
from foretell.evaluate.arrays import Bools
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.intervals import Interval
from foretell.questions.problems import InputError

GROUPINGS = ("category", "platform", "lead time")
BRIEF = ("brier", "ece", "return0", "net0")
"""What is told of every group."""
FEWEST = 5
"""Events of a category below which it is pooled with the others when categories are rebalanced."""
POOLED = "other categories"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One entry on one set of events."""

    entry: Entry
    events: int
    moments: int
    markets: int
    completion: float
    """Share of the moments that the entry answered."""
    scores: Mapping[str, Interval]
    """Every event counts once; a number that does not exist is absent."""
    by_market: Mapping[str, Interval] = field(default_factory=dict[str, Interval])
    """The same numbers with every market counting once."""
    rank: int | None = None
    """Among entries and yardsticks by Brier score; None without one."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The lines of one category, platform or lead time, best first."""

    by: str
    name: str
    events: int
    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Scored standings with their yardsticks and sums: what every table starts from."""

    standings: Standings
    sums: EventSums
    choice: Choice
    resampling: Resampling

    @classmethod
    def of(cls, standings: Standings, choice: Choice = "mean", resampling: Resampling = DRAWS) -> "Scored":
        """Yardsticks first: what had resolved before a moment is counted among all events, then open ones leave."""
        scored = with_yardsticks(standings).scored()
        if not len(scored.events):
            raise InputError(f"nothing in {standings.name!r} has resolved yet: there is nothing to score")
        return cls(standings=scored, sums=event_sums(scored, choice), choice=choice, resampling=resampling)

    @cached_property
    def moments(self) -> MomentScores:
        """Brier scores by moment."""
        return MomentScores(standings=self.standings, choice=self.choice)

    def drawn(
        self,
        events: Bools | None = None,
        *,
        weighing: Weighing = "event",
        columns: Sequence[str] = COLUMNS,
        stream: int = 0,
    ) -> Drawn:
        """Resamples of some of the events, or of all."""
        sums, cluster = self.sums.of(weighing), self.standings.events.cluster
        places = [AT[name] for name in columns]
        sums = sums if len(places) == len(COLUMNS) else sums[:, places]
        if events is not None:
            sums, cluster = sums[:, :, events], cluster[events]
        return draw(sums, cluster, self.resampling, columns=columns, stream=stream)


def leaderboard(scored: Scored) -> tuple[Line, ...]:
    """Every number of every entry on all events, best Brier score first."""
    by_event, by_market = scored.drawn(), scored.drawn(weighing="market")
    every = np.ones(len(scored.standings.events), np.bool_)
    return _ranked(_lines(scored, every, by_event, tuple(MEASURES), by_market))


def grouped(scored: Scored, by: str, measures: Sequence[str] = BRIEF) -> tuple[Group, ...]:
    """The board for every category, platform or lead time apart, the largest first (lead times in their order)."""
    if by == "lead time":
        return tuple(_by_lead_time(scored, measures))
    if by not in GROUPINGS:
        raise InputError(f"standings cannot be grouped by {by!r}", hint=f"one of {', '.join(GROUPINGS)}")
    labels = scored.standings.events.category if by == "category" else scored.standings.events.platform
    masks = {name: labels.mask(name) for name in labels.names}
    groups = [
        _group(scored, (by, name), mask, measures, stream=stream)
        for stream, (name, mask) in enumerate(masks.items())
        if mask.any()
    ]
    return tuple(sorted(groups, key=lambda group: -group.events))


def _group(scored: Scored, named: tuple[str, str], events: Bools, measures: Sequence[str], *, stream: int = 0) -> Group:
    columns = tuple(dict.fromkeys(column for name in measures for column in MEASURES[name].columns))
    drawn = scored.drawn(events, columns=columns, stream=stream)
    lines = _ranked(_lines(scored, events, drawn, measures))
    return Group(by=named[0], name=named[1], events=int(events.sum()), lines=lines)


def _by_lead_time(scored: Scored, measures: Sequence[str]) -> Iterator[Group]:
    """Every bin on its own: an event that was asked in several bins counts once in each."""
    standings = scored.standings
    of_moment = lead_time_of(standings.moments.hours)
    admitted = chosen_moments(standings, scored.choice)
    for code, lead_time in enumerate(LEAD_TIMES):
        mask = (of_moment == code) & admitted
        if mask.any():
            part = standings.only(mask[standings.markets.moment])
            inner: Choice = "every" if scored.choice == "every" else "mean"
            sums = event_sums(part, inner)
            one = Scored(standings=part, sums=sums, choice=inner, resampling=scored.resampling)
            every = np.ones(len(part.events), np.bool_)
            yield _group(one, ("lead time", lead_time.name), every, measures)


def _lines(
    scored: Scored, events: Bools, drawn: Drawn, measures: Sequence[str], by_market: Drawn | None = None
) -> list[Line]:
    standings = scored.standings
    asked = chosen_moments(standings, scored.choice) & events[standings.moments.event]
    answered = scored.sums.moments[:, events]
    markets = (scored.sums.markets[:, events] * answered).sum(axis=1)
    scores = _intervals(drawn, measures)
    other = _intervals(by_market, measures) if by_market else [{} for _ in scores]
    return [
        Line(
            entry=entry,
            events=int((answered[i] > 0).sum()),
            moments=int(answered[i].sum()),
            markets=round(float(markets[i])),
            completion=float(answered[i].sum() / asked.sum()),
            scores=scores[i],
            by_market=other[i],
        )
        for i, entry in enumerate(standings.entries)
    ]


def _intervals(drawn: Drawn, measures: Sequence[str]) -> list[dict[str, Interval]]:
    found = {name: drawn.intervals(MEASURES[name]) for name in measures}
    return [
        {name: interval for name, column in found.items() if (interval := column[i]) is not None}
        for i in range(len(drawn.total))
    ]


def _ranked(lines: Sequence[Line]) -> tuple[Line, ...]:
    there = sorted((line for line in lines if MAIN in line.scores), key=lambda line: line.scores[MAIN].estimate)
    ranked = [replace(line, rank=rank) for rank, line in enumerate(there, 1)]
    return (*ranked, *(line for line in lines if MAIN not in line.scores))


@dataclass(frozen=True, kw_only=True)
class Rebalanced:
    """The Brier score as it would be with other shares of the categories."""

    name: str
    shares: Mapping[str, float]
    scores: Mapping[str, Interval]
    """By entry; only those that answered something in every category."""


def rebalanced(scored: Scored, shares: Mapping[str, Mapping[str, float]] | None = None) -> tuple[Rebalanced, ...]:
    """Brier scores under given shares of categories, by name; by default half to the largest, and equal shares.

    Prophet Arena (C.8) draws subsets with those shares; here every event is kept and categories are weighed, which
    has the same expectation and less noise. Categories of fewer than five events are one.
    """
    groups = _pools(scored)
    if len(groups) < 2:
        return ()
    columns = MEASURES[MAIN].columns
    drawn = [scored.drawn(mask, columns=columns, stream=stream) for stream, mask in enumerate(groups.values())]
    wanted = shares or _default_shares(list(groups))
    return tuple(_rebalanced(scored, name, wanted[name], dict(zip(groups, drawn, strict=True))) for name in wanted)


def _pools(scored: Scored) -> dict[str, Bools]:
    """Events by category, the largest first, rare ones together."""
    category = scored.standings.events.category
    masks = {name: category.mask(name) for name in category.names}
    large = {name: mask for name, mask in masks.items() if mask.sum() >= FEWEST}
    rare = [mask for name, mask in masks.items() if name not in large and mask.any()]
    found = dict(sorted(large.items(), key=lambda item: -int(item[1].sum())))
    return found | ({POOLED: np.any(rare, axis=0)} if rare else {})


def _default_shares(names: Sequence[str]) -> dict[str, dict[str, float]]:
    rest = 0.5 / (len(names) - 1)
    return {
        "half to the largest": {name: 0.5 if i == 0 else rest for i, name in enumerate(names)},
        "equal shares": {name: 1 / len(names) for name in names},
    }


def _rebalanced(scored: Scored, name: str, shares: Mapping[str, float], drawn: Mapping[str, Drawn]) -> Rebalanced:
    unknown = [category for category in shares if category not in drawn]
    if unknown:
        hint = f"there are {', '.join(drawn)}"
        raise InputError(f"no category with at least {FEWEST} events is called {unknown[0]!r}", hint=hint)
    parts = [drawn[category] for category in shares]
    estimate, draws = weighed(parts, list(shares.values()), MEASURES[MAIN])
    clusters = np.sum([part.clusters for part in parts], axis=0)
    intervals = intervals_of(estimate, draws, clusters, scored.resampling)
    named = zip(scored.standings.names, intervals, strict=True)
    found = {entry: interval for entry, interval in named if interval is not None}
    return Rebalanced(name=name, shares=dict(shares), scores=found)
