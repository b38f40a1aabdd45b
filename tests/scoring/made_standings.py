"""Small arenas made up for tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from foretell.scoring.arena_table import ArenaEntry, ArenaOutcomes, arena_frame, forecast_time_arrays, seconds_of

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One event at one forecast time, with last, yes bid, yes ask and no ask of every target in turn."""

    event: str
    taken_at: datetime
    targets: tuple[str, ...]
    closes_at: datetime | None = None
    category: str = ""
    platform: str = ""
    cluster: str = ""
    quotes: Sequence[float] = ()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The forecast of one entry at one forecast time."""

    entry: str
    event: str
    taken_at: datetime
    p: Mapping[str, float]
    dollars: float = float("nan")
    seconds: float = float("nan")


@dataclass(frozen=True, kw_only=True)
class Known:
    """The outcome of a target (None if void), and when it was known."""

    outcome: int | None
    known_at: datetime | None = None


def table_of(name, askings, outcomes, answers):
    """The table of an arena; outcomes by event and target, trials of one entry averaged."""
    times = forecast_time_arrays(
        events=[asking.event for asking in askings],
        taken_at=seconds_of([asking.taken_at for asking in askings]),
        closes_at=seconds_of([asking.closes_at for asking in askings]),
        targets=[asking.targets for asking in askings],
        quotes=[np.asarray(asking.quotes, "<f8").tobytes() for asking in askings],
    )
    labels = {
        field: {asking.event: getattr(asking, field) for asking in askings}
        for field in ("category", "platform", "cluster")
    }
    known = ArenaOutcomes(
        place={key: i for i, key in enumerate(outcomes)},
        outcome=np.array([outcome.outcome for outcome in outcomes.values()], np.float64),
        known_at=seconds_of([outcome.known_at for outcome in outcomes.values()]),
    )
    frame = arena_frame(name, times, labels, known)
    at = {(asking.event, asking.taken_at): int(times.place[i]) for i, asking in enumerate(askings)}
    names = tuple(dict.fromkeys(answer.entry for answer in answers))
    trials = [[[] for _ in frame.markets.target] for _ in names]
    for answer in answers:
        for i in np.flatnonzero(frame.markets.forecast_time == at[answer.event, answer.taken_at]):
            if (p := answer.p.get(frame.markets.target[i])) is not None:
                trials[names.index(answer.entry)][i].append(p)
    entries = [
        ArenaEntry(
            name=entry,
            forecasts=len(mine),
            dollars=float(np.mean([answer.dollars for answer in mine])),
            seconds=float(np.mean([answer.seconds for answer in mine])),
        )
        for entry in names
        for mine in [[answer for answer in answers if answer.entry == entry]]
    ]
    p = np.array([[np.mean(values) if values else np.nan for values in row] for row in trials]).reshape(len(names), -1)
    return replace(frame, entries=tuple(entries), p=p)


def arena(events=40, forecast_times=2, entries=("good", "bad"), seed=0, *, drop=0.0, quoted=1.0):
    """Events of one to four markets in three categories; each closes three days after it was first asked."""
    rng = np.random.default_rng(seed)
    askings, outcomes, answers = [], {}, []
    for e in range(events):
        event, first = f"e{e}", START + e * DAY / 2
        targets = tuple(f"t{j}" for j in range(int(rng.integers(1, 5))))
        truth = rng.random(len(targets))
        for target, chance in zip(targets, truth, strict=True):
            outcomes[event, target] = Known(outcome=int(rng.random() < chance), known_at=first + 4 * DAY)
        for m in range(forecast_times):
            at = first + m * DAY
            price = np.clip(truth + rng.normal(0, 0.1, len(targets)), 0.03, 0.97).round(2)
            quotes = np.stack([price, price - 0.01, price + 0.01, 1.02 - price], axis=1)
            quotes[rng.random(len(targets)) >= quoted] = np.nan
            askings.append(
                Asked(
                    event=event,
                    taken_at=at,
                    targets=targets,
                    closes_at=first + 3 * DAY,
                    category=("Sports", "Politics", "Crypto")[e % 3],
                    platform=("kalshi", "polymarket")[e % 2],
                    quotes=quotes.ravel().tolist(),
                )
            )
            for k, entry in enumerate(entries):
                p = np.clip(truth + rng.normal(0, 0.05 + 0.2 * k, len(targets)), 0, 1)
                if rng.random() >= drop:
                    probabilities = dict(zip(targets, p.tolist(), strict=True))
                    answers.append(
                        Answer(
                            entry=entry, event=event, taken_at=at, p=probabilities, dollars=0.01 * (k + 1), seconds=2.0
                        )
                    )
    return table_of("made up", askings, outcomes, answers)


def one_asking(event="e", at=START, p=(0.8,), outcome=(1,), **fields):
    """An event with one forecast time, and the forecast of the entry "a"."""
    targets = tuple(f"t{j}" for j in range(len(p)))
    asking = Asked(event=event, taken_at=at, targets=targets, closes_at=at + DAY, **fields)
    known = {(event, t): Known(outcome=o, known_at=at + DAY) for t, o in zip(targets, outcome, strict=True)}
    return asking, known, Answer(entry="a", event=event, taken_at=at, p=dict(zip(targets, p, strict=True)))


def several(*parts):
    """One arena with several events of `one_asking`."""
    askings, known, answers = zip(*parts, strict=True)
    outcomes = {key: value for part in known for key, value in part.items()}
    return table_of("made up", list(askings), outcomes, list(answers))
