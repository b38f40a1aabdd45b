"""Small arenas made up for tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from foretell.scoring import (
    ArenaEntry,
    ArenaOutcomes,
    arena_frame,
    moment_arrays,
    seconds_of,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One event at one moment, with last, yes bid, yes ask and no ask of every target in turn."""

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
    """The forecast of one entry at one moment."""

    entry: str
    event: str
    taken_at: datetime
    p: Mapping[str, float]
    dollars: float = float("nan")
    seconds: float = float("nan")


@dataclass(frozen=True, kw_only=True)
class Known:
    """How a target came out (None: void), and when that was known."""

    outcome: int | None
    known_at: datetime | None = None


def table_of(name, asked, outcomes, answers):
    """The table of an arena; outcomes by event and target, trials of one entry averaged."""
    moments = moment_arrays(
        events=[one.event for one in asked],
        taken_at=seconds_of([one.taken_at for one in asked]),
        closes_at=seconds_of([one.closes_at for one in asked]),
        targets=[one.targets for one in asked],
        quotes=[np.asarray(one.quotes, "<f8").tobytes() for one in asked],
    )
    labels = {field: {one.event: getattr(one, field) for one in asked} for field in ("category", "platform", "cluster")}
    known = ArenaOutcomes(
        place={key: i for i, key in enumerate(outcomes)},
        outcome=np.array([one.outcome for one in outcomes.values()], np.float64),
        known_at=seconds_of([one.known_at for one in outcomes.values()]),
    )
    frame = arena_frame(name, moments, labels, known)
    at = {(one.event, one.taken_at): int(moments.place[i]) for i, one in enumerate(asked)}
    names = tuple(dict.fromkeys(answer.entry for answer in answers))
    trials = [[[] for _ in frame.markets.target] for _ in names]
    for answer in answers:
        for i in np.flatnonzero(frame.markets.moment == at[answer.event, answer.taken_at]):
            if (p := answer.p.get(frame.markets.target[i])) is not None:
                trials[names.index(answer.entry)][i].append(p)
    entries = [
        ArenaEntry(
            name=entry,
            forecasts=len(mine),
            dollars=float(np.mean([one.dollars for one in mine])),
            seconds=float(np.mean([one.seconds for one in mine])),
        )
        for entry in names
        for mine in [[one for one in answers if one.entry == entry]]
    ]
    p = np.array([[np.mean(said) if said else np.nan for said in row] for row in trials]).reshape(len(names), -1)
    return replace(frame, entries=tuple(entries), p=p)


def arena(events=40, moments=2, entries=("good", "bad"), seed=0, *, drop=0.0, quoted=1.0):
    """Events of one to four markets in three categories; each closes three days after it was first asked."""
    rng = np.random.default_rng(seed)
    askings, outcomes, answers = [], {}, []
    for e in range(events):
        event, first = f"e{e}", START + e * DAY / 2
        targets = tuple(f"t{j}" for j in range(int(rng.integers(1, 5))))
        truth = rng.random(len(targets))
        for target, chance in zip(targets, truth, strict=True):
            outcomes[event, target] = Known(outcome=int(rng.random() < chance), known_at=first + 4 * DAY)
        for m in range(moments):
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
                    said = dict(zip(targets, p.tolist(), strict=True))
                    answers.append(
                        Answer(entry=entry, event=event, taken_at=at, p=said, dollars=0.01 * (k + 1), seconds=2.0)
                    )
    return table_of("made up", askings, outcomes, answers)


def one_asking(event="e", at=START, p=(0.8,), outcome=(1,), **fields):
    """An event with one moment, and what the entry "a" said."""
    targets = tuple(f"t{j}" for j in range(len(p)))
    asking = Asked(event=event, taken_at=at, targets=targets, closes_at=at + DAY, **fields)
    known = {(event, t): Known(outcome=o, known_at=at + DAY) for t, o in zip(targets, outcome, strict=True)}
    return asking, known, Answer(entry="a", event=event, taken_at=at, p=dict(zip(targets, p, strict=True)))


def several(*parts):
    """One arena out of several askings."""
    askings, known, answers = zip(*parts, strict=True)
    outcomes = {key: value for one in known for key, value in one.items()}
    return table_of("made up", list(askings), outcomes, list(answers))
