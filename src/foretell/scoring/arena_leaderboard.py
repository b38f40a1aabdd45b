"""The leaderboard of an arena: every metric of every entry with its interval, overall and by group of events.

The same engine (`scoring.engine`) resamples the sums by event (`scoring.event_sums`) and tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import combinations, count

import numpy as np

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import DEFAULT_RESAMPLING, Interval, Resampling, brier_index_from_sums
from foretell.metrics.clusters import ResamplingDesign
from foretell.metrics.comparison import compare_means
from foretell.metrics.metric import GAMMAS, METRICS, Metric, return_metric
from foretell.metrics.returns import Bettor
from foretell.questions.errors import InputError
from foretell.scoring.arena_table import ArenaEntry, ArenaTable
from foretell.scoring.baselines import ALWAYS_HALF, BASE_RATE, MARKET_PRICE
from foretell.scoring.engine import ClusterBundles, MetricDraws, ResampledSums, mean_of_draws, resample_sums
from foretell.scoring.event_sums import (
    COLUMN_INDEX,
    SUM_COLUMNS,
    EventSums,
    EventWeighing,
    event_sums,
)
from foretell.scoring.score import PairComparison, with_correction
from foretell.scoring.verdict import Verdict, corrected


@frozen
class LeadTime:
    """A range of time before the close, including its longer end."""

    name: str
    hours: float
    """The longer end, in hours."""


LEAD_TIMES = (
    LeadTime(name="0–3 h", hours=3),
    LeadTime(name="3–6 h", hours=6),
    LeadTime(name="6–12 h", hours=12),
    LeadTime(name="12–24 h", hours=24),
    LeadTime(name="1–3 d", hours=72),
    LeadTime(name="3–7 d", hours=168),
    LeadTime(name="7–30 d", hours=720),
    LeadTime(name="over 30 d", hours=float("inf")),
)


def lead_time_of(hours: Floats) -> Ints:
    """Return the index of each lead time in `LEAD_TIMES`; −1 if the close was unknown.

    >>> lead_time_of(np.array([0.5, 3.0, 30.0, np.nan])).tolist()
    [0, 0, 4, -1]
    """
    edges = np.array([lead_time.hours for lead_time in LEAD_TIMES])
    codes = np.searchsorted(edges, np.maximum(np.nan_to_num(hours), 0.0), side="left")
    return np.where(np.isnan(hours), -1, codes)


@frozen
class ForecastTimeScores:
    """Brier scores of resolved events by forecast time, for pairs and lead times. Computed on first access."""

    arena: ArenaTable

    @cached_property
    def answered(self) -> Bools:
        """Entries × markets: whether the entry answered the market."""
        return np.isfinite(self.arena.p)

    @cached_property
    def counts(self) -> Floats:
        """Entries × forecast times: number of markets answered."""
        return self._summed(self.answered.astype(np.float64))

    @cached_property
    def squares(self) -> Floats:
        """Entries × markets: squared errors, 0 if unanswered."""
        return np.where(self.answered, (self.arena.p - self.arena.markets.outcome) ** 2, 0.0)

    @cached_property
    def brier(self) -> Floats:
        """Entries × forecast times: Brier scores, NaN if unanswered."""
        known = self.counts > 0
        return np.divide(self._summed(self.squares), self.counts, out=np.full(known.shape, np.nan), where=known)

    @cached_property
    def whole(self) -> Bools:
        """Per entry: whether it answered either all markets or none at each forecast time."""
        sizes = np.bincount(self.arena.markets.forecast_time, minlength=len(self.arena.forecast_times))
        return ((self.counts == 0) | (self.counts == sizes)).all(axis=1)

    def pair(self, i: int, j: int) -> tuple[Floats, Floats]:
        """Per event: the weighted Brier scores of two entries on what both answered (2 × events), and the weight."""
        if self.whole[i] and self.whole[j]:
            scores = np.where(np.isfinite(self.brier[i]) & np.isfinite(self.brier[j]), self.brier[[i, j]], np.nan)
        else:
            both = self.answered[i] & self.answered[j]
            times = np.add.reduceat(both, self.arena.starts, dtype=np.float64)
            total = np.add.reduceat(np.where(both, self.squares[[i, j]], 0.0), self.arena.starts, axis=1)
            scores = np.divide(total, times, out=np.full(total.shape, np.nan), where=times > 0)
        sums, weights = self.by_event(scores)
        return sums, weights[0]

    def by_event(self, values: Floats) -> tuple[Floats, Floats]:
        """Weighted event sums and weights, from numbers by forecast time (NaN if missing) of one or more entries."""
        known, starts = np.isfinite(values), self.arena.event_starts
        times = np.add.reduceat(known.astype(np.float64), starts, axis=-1)
        total = np.add.reduceat(np.where(known, values, 0.0), starts, axis=-1)
        return total / np.maximum(times, 1.0), np.minimum(times, 1.0)

    def unlike(self, baseline: int) -> Ints:
        """Return the entries that answered something, but not just what a baseline answered."""
        return np.flatnonzero((self.answered != self.answered[baseline]).any(axis=1) & self.answered.any(axis=1))

    def completion(self) -> Floats:
        """Per entry: the share of the forecast times it was asked at that it answered."""
        answered = self.counts > 0
        asked = self.arena.asked() | answered
        return answered.sum(axis=1) / np.maximum(asked.sum(axis=1), 1)

    def _summed(self, table: Floats) -> Floats:
        return np.add.reduceat(table, self.arena.starts, axis=1)


BASE_RATE_PRIOR = 2.0
"""Pseudo-events at one half, so that the base rate is 0.5 before anything has resolved."""


def with_arena_baselines(arena: ArenaTable) -> ArenaTable:
    """Add three baselines to the arena: the market price, the base rate and 0.5.

    An entry with the name of a baseline is treated as that baseline.
    """
    half = np.full(len(arena.markets), 0.5)
    rows = {MARKET_PRICE: arena.markets.price, BASE_RATE: past_rate(arena), ALWAYS_HALF: half}
    entries = [ArenaEntry(name=name, baseline=True, dollars=0.0, seconds=0.0) for name in rows]
    named = tuple(replace(entry, baseline=entry.baseline or entry.name in rows) for entry in arena.entries)
    return replace(arena, entries=named).with_entries(entries, np.stack(list(rows.values())))


def resolved_with_baselines(arena: ArenaTable) -> ArenaTable:
    """Return the resolved part of an arena, with the baselines.

    Baselines are added first because the base rate counts all events that had resolved before a forecast time.
    """
    scored = with_arena_baselines(arena).scored()
    if not len(scored.events):
        raise InputError(f"nothing in {arena.name!r} has resolved yet: there is nothing to score")
    return scored


def past_rate(arena: ArenaTable) -> Floats:
    """How often markets of the same category came true among events resolved before the forecast time.

    Every event has a weight of one, however many markets it has and however often it was asked: (Σ w·o + 1) / (Σ w + 2)
    with w = 1 / markets of the event. Only outcomes known strictly before a forecast time count for it, so nothing
    leaks from the future. An event that is still open never counts for itself. The rate is 0.5 until something has
    resolved.
    """
    once = _each_market_once(arena)
    known = once[~np.isnat(arena.markets.known_at[once]) & np.isfinite(arena.markets.outcome[once])]
    event = arena.market_event
    weight = 1 / np.bincount(event[once], minlength=len(arena.events))
    category = arena.events.category.codes
    out = np.full(len(arena.forecast_times), 0.5)
    for code in np.unique(category):
        past = known[category[event[known]] == code]
        past = past[np.argsort(arena.markets.known_at[past], kind="stable")]
        w = weight[event[past]]
        yes = np.concatenate([[0.0], np.cumsum(w * arena.markets.outcome[past])])
        n = np.concatenate([[0.0], np.cumsum(w)])
        times = np.flatnonzero(category[arena.forecast_times.event] == code)
        before = np.searchsorted(arena.markets.known_at[past], arena.forecast_times.taken_at[times], side="left")
        out[times] = (yes[before] + BASE_RATE_PRIOR / 2) / (n[before] + BASE_RATE_PRIOR)
    return out[arena.markets.forecast_time]


def _each_market_once(arena: ArenaTable) -> Ints:
    """Return the markets of the first forecast time of every event."""
    first = np.zeros(len(arena.forecast_times), np.bool_)
    first[np.unique(arena.forecast_times.event, return_index=True)[1]] = True
    return np.flatnonzero(first[arena.markets.forecast_time])


_RISK_AVERSE = {
    kind: [return_metric(Bettor(gamma=gamma), f"{kind}_gamma{gamma:g}", net=kind == "net") for gamma in GAMMAS[1:]]
    for kind in ("return", "net")
}
ARENA_METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        *(METRICS[name] for name in ("brier", "brier_index", "log", "ece")),
        *(metric for kind, others in _RISK_AVERSE.items() for metric in (METRICS[kind], *others)),
        *(METRICS[name] for name in ("sharpe", "yes_side", "no_side")),
    )
}
"""The metrics shown on an arena's board by name, in the order of its tables. Returns are those of three bettors."""
MAIN_METRIC = "brier"
RANK_METRIC = "adjusted_brier"
"""Ranks the board: the market's Brier score on everything, less what the entry gained on it where both answered."""
INDEX = "brier_index"
RANK_INDEX = "adjusted_brier_index"
"""The Brier index of the score that ranks the board."""
LEAST_ANSWERED = 0.5
"""Share of the forecast times it was asked at that an entry must answer to be ranked."""
GROUPINGS = ("category", "platform", "lead time")
GROUP_METRICS = ("brier", "ece", "return", "net")
"""Metrics shown for every group."""
FEWEST_EVENTS = 5
"""A category with fewer events than this is pooled with other small ones when categories are rebalanced."""
POOLED_CATEGORY = "other categories"


@frozen
class ArenaLeaderboardRow:
    """One entry on one set of events."""

    entry: ArenaEntry
    events: int
    forecast_times: int
    """Number of forecast times that it answered."""
    markets: int
    completion: float
    """Share of the forecast times while the entry took part that it answered."""
    scores: Mapping[str, Interval]
    """Scores with every event counting once; a metric that cannot be computed is absent."""
    by_market: Mapping[str, Interval] = field(default_factory=dict[str, Interval])
    """The same metrics with every market counting once."""
    rank: int | None = None
    """Rank among entries by `fair`; None for baselines, and for entries that answered too little to be ranked."""

    @property
    def fair(self) -> Interval | None:
        """The Brier score used for ranking, adjusted for unanswered events so that picking easy ones gains nothing."""
        return self.scores.get(RANK_METRIC) or self.scores.get(MAIN_METRIC)

    @property
    def fair_index(self) -> Interval | None:
        """The Brier index of `fair`."""
        return self.scores.get(RANK_INDEX) or self.scores.get(INDEX)


@frozen
class ArenaLeaderboardGroup:
    """The rows of one category, platform or lead time, best first."""

    by: str
    name: str
    events: int
    lines: tuple[ArenaLeaderboardRow, ...]


@frozen
class ScoredArena:
    """The resolved part of an arena with its baselines and its sums by event; every table is computed from it."""

    arena: ArenaTable
    sums: EventSums
    resampling: Resampling

    @classmethod
    def of(cls, arena: ArenaTable, resampling: Resampling = DEFAULT_RESAMPLING) -> "ScoredArena":
        """Score the resolved part of an arena."""
        scored = resolved_with_baselines(arena)
        return cls(arena=scored, sums=event_sums(scored), resampling=resampling)

    @cached_property
    def time_scores(self) -> ForecastTimeScores:
        """Brier scores by forecast time."""
        return ForecastTimeScores(arena=self.arena)

    def resample(
        self,
        events: Bools | None = None,
        *,
        weighing: EventWeighing = "event",
        columns: Sequence[str] = SUM_COLUMNS,
        stream: int = 0,
    ) -> ResampledSums:
        """Resample all events, or only the selected ones, with the engine that scores tables."""
        sums, cluster = self.sums.of(weighing), self.arena.events.cluster
        if tuple(columns) != SUM_COLUMNS:
            sums = sums[:, [COLUMN_INDEX[name] for name in columns]]
        if events is not None:
            sums, cluster = sums[:, :, events], cluster[events]
        return resample_sums(self.arena.names, columns, sums, cluster, resampling=self.resampling, stream=stream)


def arena_leaderboard(scored: ScoredArena) -> tuple[ArenaLeaderboardRow, ...]:
    """Return every metric of every entry on all events, best Brier score first."""
    by_event, by_market = scored.resample(), scored.resample(weighing="market")
    all_events = np.ones(len(scored.arena.events), np.bool_)
    adjusted = adjusted_scores(scored)
    rows = _board_rows(scored, all_events, by_event, tuple(ARENA_METRICS), by_market)
    return _ranked([_with_adjusted(row, adjusted.get(row.entry.name, {})) for row in rows])


def adjusted_scores(scored: ScoredArena) -> dict[str, dict[str, Interval]]:
    """Brier scores and indices of entries that did not answer just the markets with a price, as if they had.

    Adds the difference between the market's Brier score on everything and on what both answered to the entry's score
    there: on easy events, the market does better too. So two scores beside each other differ by what the board shows
    as their difference. All parts use the same resamples of events.
    """
    arena, time_scores = scored.arena, scored.time_scores
    if MARKET_PRICE not in arena.names:
        return {}
    market = arena.names.index(MARKET_PRICE)
    if not len(chosen := time_scores.unlike(market)):
        return {}
    names = [arena.names[i] for i in chosen]
    whole = time_scores.by_event(time_scores.brier[market])
    pairs = [time_scores.pair(int(i), market) for i in chosen]
    own, on_both = (np.stack([sums[side] for sums, _ in pairs]) for side in (0, 1))
    common = np.stack([weights for _, weights in pairs])
    bundles = ClusterBundles.of(arena.events.cluster)
    answered, everything, part = (
        bundles.means(names, sums, weights, scored.resampling)
        for sums, weights in (
            (own, common),
            (np.broadcast_to(whole[0], own.shape), np.broadcast_to(whole[1], own.shape)),
            (on_both, common),
        )
    )
    estimate = answered.estimate + everything.estimate - part.estimate
    replicates = answered.replicates + everything.replicates - part.replicates
    adjusted = {
        RANK_METRIC: (estimate, replicates, METRICS[MAIN_METRIC].bounds),
        RANK_INDEX: (*(_index(values) for values in (estimate, replicates)), METRICS[INDEX].bounds),
    }
    rows = {name: dict[str, Interval]() for name in names}
    for metric, (estimate, replicates, (least, most)) in adjusted.items():
        # The estimate of a score that was not observed may lie outside; only then does its interval.
        bounds = (float(np.nanmin(estimate, initial=least)), float(np.nanmax(estimate, initial=most)))
        drawn = MetricDraws(
            names=answered.names, estimate=estimate, replicates=replicates, support=answered.support, bounds=bounds
        )
        for name, interval in drawn.intervals(scored.resampling).items():
            rows[name][metric] = interval
    return rows


def _index(brier: Floats) -> Floats:
    return brier_index_from_sums(np.stack([brier, np.ones_like(brier)], axis=-1))


def _with_adjusted(row: ArenaLeaderboardRow, adjusted: Mapping[str, Interval]) -> ArenaLeaderboardRow:
    """Return the row with the scores used for ranking; an entry that answered what has a price needs no adjustment."""
    if MAIN_METRIC not in row.scores:
        return row
    own = {RANK_METRIC: row.scores[MAIN_METRIC], RANK_INDEX: row.scores[INDEX]}
    return replace(row, scores={**row.scores, **own, **adjusted})


def point_scores(scored: ArenaTable) -> tuple[ArenaLeaderboardRow, ...]:
    """Brier scores of a resolved arena with its baselines, best first, without intervals.

    The scores are the same as on the full board, but computed in a fraction of the time.
    """
    time_scores = ForecastTimeScores(arena=scored)
    total, weight = time_scores.by_event(time_scores.brier)
    answered = np.isfinite(time_scores.brier)
    rounds, markets = answered.sum(axis=1), np.where(answered, time_scores.counts, 0.0).sum(axis=1)
    completion = time_scores.completion()
    brier = np.divide(total.sum(axis=1), weight.sum(axis=1), out=np.full(len(rounds), np.nan), where=rounds > 0)
    fair = _adjusted(time_scores, brier)
    return _ranked(
        [
            ArenaLeaderboardRow(
                entry=entry,
                events=int((weight[i] > 0).sum()),
                forecast_times=int(rounds[i]),
                markets=round(float(markets[i])),
                completion=float(completion[i]),
                scores={MAIN_METRIC: _point(brier[i]), RANK_METRIC: _point(fair[i])} if rounds[i] else {},
            )
            for i, entry in enumerate(scored.entries)
        ]
    )


def _adjusted(time_scores: ForecastTimeScores, brier: Floats) -> Floats:
    """Return the scores of `adjusted_scores` without intervals, and the given score of every other entry."""
    names, adjusted = time_scores.arena.names, brier.copy()
    if MARKET_PRICE in names:
        market = names.index(MARKET_PRICE)
        for i in time_scores.unlike(market):
            (own, on_both), common = time_scores.pair(int(i), market)
            if common.any():
                adjusted[i] = brier[market] + (own.sum() - on_both.sum()) / common.sum()
    return adjusted


def _point(value: float) -> Interval:
    return Interval(estimate=float(value), low=np.nan, high=np.nan, se=np.nan, n_clusters=0, draws=0)


def arena_leaderboard_groups(
    scored: ScoredArena, by: str, measures: Sequence[str] = GROUP_METRICS
) -> tuple[ArenaLeaderboardGroup, ...]:
    """Return a board for every category, platform or lead time, largest first (lead times in their order)."""
    if by == "lead time":
        return tuple(_by_lead_time(scored, measures))
    if by not in GROUPINGS:
        raise InputError(f"an arena cannot be grouped by {by!r}", hint=f"one of {', '.join(GROUPINGS)}")
    labels = scored.arena.events.category if by == "category" else scored.arena.events.platform
    masks = {name: labels.mask(name) for name in labels.names}
    groups = [
        _group(scored, (by, name), mask, measures, stream=stream)
        for stream, (name, mask) in enumerate(masks.items())
        if mask.any()
    ]
    return tuple(sorted(groups, key=lambda group: -group.events))


def _group(
    scored: ScoredArena, named: tuple[str, str], events: Bools, measures: Sequence[str], *, stream: int = 0
) -> ArenaLeaderboardGroup:
    columns = dict.fromkeys(("weight", *(column for name in measures for column in ARENA_METRICS[name].column_names)))
    drawn = scored.resample(events, columns=tuple(columns), stream=stream)
    lines = _ranked(_board_rows(scored, events, drawn, measures))
    return ArenaLeaderboardGroup(by=named[0], name=named[1], events=int(events.sum()), lines=lines)


def _by_lead_time(scored: ScoredArena, measures: Sequence[str]) -> Iterator[ArenaLeaderboardGroup]:
    """Yield a group per lead time; an event that was asked at several lead times counts once in each."""
    arena = scored.arena
    lead_times = lead_time_of(arena.forecast_times.hours)
    for code, lead_time in enumerate(LEAD_TIMES):
        mask = lead_times == code
        if mask.any():
            part = arena.only(mask[arena.markets.forecast_time])
            scored_arena = ScoredArena(arena=part, sums=event_sums(part), resampling=scored.resampling)
            all_events = np.ones(len(part.events), np.bool_)
            yield _group(scored_arena, ("lead time", lead_time.name), all_events, measures)


def _board_rows(
    scored: ScoredArena,
    events: Bools,
    drawn: ResampledSums,
    measures: Sequence[str],
    by_market: ResampledSums | None = None,
) -> list[ArenaLeaderboardRow]:
    arena = scored.arena
    asked = (arena.asked() | (scored.time_scores.counts > 0))[:, events[arena.forecast_times.event]].sum(axis=1)
    answered = scored.sums.forecast_times[:, events]
    markets = (scored.sums.markets[:, events] * answered).sum(axis=1)
    scores, other = _intervals(scored, drawn, measures), _intervals(scored, by_market, measures)
    return [
        ArenaLeaderboardRow(
            entry=entry,
            events=int((answered[i] > 0).sum()),
            forecast_times=int(answered[i].sum()),
            markets=round(float(markets[i])),
            completion=float(answered[i].sum() / max(int(asked[i]), 1)),
            scores=scores[i],
            by_market=other[i],
        )
        for i, entry in enumerate(arena.entries)
    ]


def _intervals(scored: ScoredArena, drawn: ResampledSums | None, metrics: Sequence[str]) -> list[dict[str, Interval]]:
    """Per entry, the metrics that can be computed."""
    columns = (
        {} if drawn is None else {m: drawn.draws_of(ARENA_METRICS[m]).intervals(scored.resampling) for m in metrics}
    )
    return [
        {metric: column[entry] for metric, column in columns.items() if entry in column} for entry in scored.arena.names
    ]


def _ranked(lines: Sequence[ArenaLeaderboardRow]) -> tuple[ArenaLeaderboardRow, ...]:
    scored = [(fair.estimate, line) for line in lines if (fair := line.fair) is not None]
    by_score = [line for _, line in sorted(scored, key=lambda pair: pair[0])]
    places = count(1)  # Baselines and entries that answered too little are listed by score, but have no rank.
    ranked = [replace(line, rank=next(places)) if _is_ranked(line) else line for line in by_score]
    return (*ranked, *(line for line in lines if line.fair is None))


def _is_ranked(line: ArenaLeaderboardRow) -> bool:
    return not line.entry.baseline and line.completion >= LEAST_ANSWERED


@frozen
class RebalancedScores:
    """Brier scores recomputed with other shares of the categories."""

    name: str
    shares: Mapping[str, float]
    scores: Mapping[str, Interval]
    """Scores by entry, only for entries that answered something in every category."""


CategoryShares = Mapping[str, float]
"""The share of each category; `OTHERS` stands for all categories that are not named."""
OTHERS = "other"


def read_shares(text: str) -> CategoryShares:
    """Parse shares of categories that sum to one.

    >>> read_shares("Sports=0.5, Politics=0.3, other=0.2")
    {'Sports': 0.5, 'Politics': 0.3, 'other': 0.2}
    """
    hint = "e.g. Sports=0.5,Politics=0.3,other=0.2"
    pairs = [part.rpartition("=") for part in text.split(",")]
    try:
        shares = {name.strip(): float(share) for name, _, share in pairs}
    except ValueError:
        raise InputError(f"{text!r} does not give each category a number", column="--shares", hint=hint) from None
    if len(shares) < len(pairs) or "" in shares:
        raise InputError(f"{text!r} does not name each category once", column="--shares", hint=hint)
    if not all(0 < share <= 1 for share in shares.values()) or abs(sum(shares.values()) - 1) > 1e-6:
        raise InputError(f"the shares {text!r} are not positive numbers that sum to 1", column="--shares", hint=hint)
    return shares


def rebalanced_scores(
    scored: ScoredArena, shares: Mapping[str, CategoryShares] | None = None
) -> tuple[RebalancedScores, ...]:
    """Brier scores under named shares of categories; by default half to the largest, and equal shares.

    Prophet Arena (C.8) draws subsets with those shares. Here every event is kept and categories are weighted, which has
    the same expectation and less noise. By default, categories with fewer than five events are pooled into one.
    """
    if shares:
        boards = {name: (wanted, _named_pools(scored, wanted)) for name, wanted in shares.items()}
    else:
        pools = _pools(scored)
        if len(pools) < 2:
            return ()
        boards = {name: (wanted, pools) for name, wanted in _default_shares(list(pools)).items()}
    return tuple(_rebalanced(scored, name, wanted, pools) for name, (wanted, pools) in boards.items())


def _pools(scored: ScoredArena) -> dict[str, Bools]:
    """Events by category, largest first, with rare categories pooled."""
    category = scored.arena.events.category
    masks = {name: category.mask(name) for name in category.names}
    large = {name: mask for name, mask in masks.items() if mask.sum() >= FEWEST_EVENTS}
    rare = [mask for name, mask in masks.items() if name not in large and mask.any()]
    by_size = dict(sorted(large.items(), key=lambda item: -int(item[1].sum())))
    return by_size | ({POOLED_CATEGORY: np.any(rare, axis=0)} if rare else {})


def _named_pools(scored: ScoredArena, shares: CategoryShares) -> dict[str, Bools]:
    """Events by the categories of some shares. Raises InputError if one has too few."""
    category = scored.arena.events.category
    by_word = {name.casefold(): category.mask(name) for name in category.names}
    named = [by_word[name.casefold()] for name in shares if name.casefold() in by_word]
    by_word.setdefault(OTHERS, ~np.any(named, axis=0) if named else np.ones(len(category.codes), np.bool_))
    pools = {name: by_word.get(name.casefold()) for name in shares}
    for name, mask in pools.items():
        if mask is None or mask.sum() < FEWEST_EVENTS:
            hint = f"there are {', '.join(category.names)}, and {OTHERS} for all that are not named"
            problem = f"no category with at least {FEWEST_EVENTS} resolved events is called {name!r}"
            raise InputError(problem, column="--shares", hint=hint)
    return {name: mask for name, mask in pools.items() if mask is not None}


def _default_shares(names: Sequence[str]) -> dict[str, dict[str, float]]:
    rest = 0.5 / (len(names) - 1)
    return {
        "half to the largest": {name: 0.5 if i == 0 else rest for i, name in enumerate(names)},
        "equal shares": {name: 1 / len(names) for name in names},
    }


def _rebalanced(scored: ScoredArena, name: str, shares: CategoryShares, pools: Mapping[str, Bools]) -> RebalancedScores:
    metric = METRICS[MAIN_METRIC]
    drawn = {
        category: scored.resample(mask, columns=metric.column_names, stream=stream).draws_of(metric)
        for stream, (category, mask) in enumerate(pools.items())
    }
    mean = mean_of_draws([drawn[category] for category in shares], list(shares.values()))
    return RebalancedScores(name=name, shares=dict(shares), scores=mean.intervals(scored.resampling))


# Every entry against every other on what both answered, in the same resamples of events.

EntryPair = tuple[int, int]


def entry_verdicts(
    scored: ScoredArena, pairs: Sequence[EntryPair], events: Bools | None = None
) -> dict[EntryPair, Verdict]:
    """The verdict on pairs of entries by Brier score, on the markets both answered in all or in the selected events.

    Events are resampled, and each counts once; pairs that share no event are absent.
    """
    arena, chosen = scored.arena, np.ones(len(scored.arena.events), np.bool_) if events is None else events
    # Pairs that share the same events share their resamples.
    groups: dict[bytes, tuple[Bools, list[EntryPair], list[Floats]]] = {}
    for pair in pairs:
        sums, weight = scored.time_scores.pair(*pair)
        shared = chosen & (weight > 0)
        if shared.any():
            _, members, columns = groups.setdefault(shared.tobytes(), (shared, [], []))
            members.append(pair)
            columns.append(np.stack([*sums[:, shared], weight[shared]], axis=1))
    verdicts = {
        pair: verdict
        for shared, members, columns in groups.values()
        for pair, verdict in zip(
            members,
            brier_verdicts(
                [(arena.names[i], arena.names[j]) for i, j in members],
                np.stack(columns, axis=1),
                arena.events.cluster[shared],
                scored.resampling,
            ),
            strict=True,
        )
    }
    return {pair: verdicts[pair] for pair in pairs if pair in verdicts}


def brier_verdicts(
    names: Sequence[tuple[str, str]], columns: Floats, cluster: Ints, resampling: Resampling
) -> list[Verdict]:
    """The verdicts on pairs from their weighted Brier scores by event and the weights, events × pairs × 3."""
    metric = METRICS[MAIN_METRIC]
    design = ResamplingDesign(cluster=cluster, in_order=True)
    compared = compare_means(columns, design, resampling=resampling, bounds=metric.bounds)
    return [
        Verdict.of(comparison, pair, metric, level=resampling.level, unit="event")
        for comparison, pair in zip(compared, names, strict=True)
    ]


def verdicts_against_market(scored: ScoredArena) -> dict[str, Verdict]:
    """The verdict on every other entry against the market, corrected for the number of entries; empty without one."""
    names = scored.arena.names
    if MARKET_PRICE not in names:
        return {}
    at = names.index(MARKET_PRICE)
    verdicts = entry_verdicts(scored, [(i, at) for i in range(len(names)) if i != at])
    return {verdict.first: verdict for verdict in with_correction(list(verdicts.values()))}


def compare_entries(scored: ScoredArena, first: str, second: str) -> PairComparison:
    """Compare two entries on the markets both answered, overall and by category."""
    pair = (scored.arena.names.index(first), scored.arena.names.index(second))
    category = scored.arena.events.category
    whole = list(entry_verdicts(scored, [pair]).values())
    parts = [
        replace(verdict, group={"category": name})
        for name in category.names
        for verdict in entry_verdicts(scored, [pair], category.mask(name)).values()
    ]
    return PairComparison(
        first=first,
        second=second,
        verdicts=(*whole, *corrected(parts)),
        resampling=scored.resampling,
        pilot=None,
    )


def leading_verdicts(scored: ScoredArena, names: Sequence[str]) -> tuple[Verdict, ...]:
    """The verdict on every pair of these entries, in their order, corrected for the number of pairs."""
    places = [scored.arena.names.index(name) for name in names]
    return corrected(list(entry_verdicts(scored, list(combinations(places, 2))).values()))


# How far entries are apart on the same events: the mean L2 distance of their forecasts (Prophet Arena D.5).


@frozen
class EntryDistances:
    """Symmetric distances between all entries."""

    names: tuple[str, ...]
    distance: Floats
    """Mean over events of √Σ(p − q)² over an event's markets; 0 on the diagonal, NaN if two share no event."""
    n: Ints
    """Number of events both answered."""


def divergence(scored: ScoredArena, of: Sequence[str] | None = None) -> EntryDistances:
    """Distances on the markets that both answered; an event asked several times counts once, as the mean.

    Covers all entries, or those named, in that order.
    """
    arena = scored.arena
    names = tuple(arena.names if of is None else of)
    places = [arena.names.index(name) for name in names]
    size = len(names)
    time_scores = scored.time_scores
    distance, n = np.zeros((size, size)), np.zeros((size, size), np.int64)
    answered = time_scores.answered[places]
    p = np.where(answered, arena.p[places], 0.0)
    for i in range(size):
        n[i, i] = int((scored.sums.forecast_times[places[i]] > 0).sum())
        for j in range(i + 1, size):
            both = answered[i] & answered[j]
            squares = np.where(both, (p[i] - p[j]) ** 2, 0.0)
            apart = np.sqrt(np.add.reduceat(squares, arena.starts))
            shared = np.add.reduceat(both, arena.starts, dtype=np.int64) > 0
            total, weight = time_scores.by_event(np.where(shared, apart, np.nan))
            distance[i, j] = distance[j, i] = total.sum() / weight.sum() if weight.any() else np.nan
            n[i, j] = n[j, i] = int((weight > 0).sum())
    return EntryDistances(names=names, distance=distance, n=n)
