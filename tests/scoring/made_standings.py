"""Small arenas made up for tests."""

from datetime import UTC, datetime, timedelta

import numpy as np

from foretell.scoring.arena_rows import ArenaForecastRow, ArenaOutcomeRow, ArenaQuestionRow, arena_table_from_rows

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def arena(events=40, moments=2, entries=("good", "bad"), seed=0, *, drop=0.0, quoted=1.0):
    """Events of one to four markets in three categories; each closes three days after it was first asked."""
    rng = np.random.default_rng(seed)
    askings, outcomes, answers = [], {}, []
    for e in range(events):
        event, first = f"e{e}", START + e * DAY / 2
        targets = tuple(f"t{j}" for j in range(int(rng.integers(1, 5))))
        truth = rng.random(len(targets))
        for target, chance in zip(targets, truth, strict=True):
            outcomes[event, target] = ArenaOutcomeRow(outcome=int(rng.random() < chance), known_at=first + 4 * DAY)
        for m in range(moments):
            at = first + m * DAY
            price = np.clip(truth + rng.normal(0, 0.1, len(targets)), 0.03, 0.97).round(2)
            quotes = np.stack([price, price - 0.01, price + 0.01, 1.02 - price], axis=1)
            quotes[rng.random(len(targets)) >= quoted] = np.nan
            askings.append(
                ArenaQuestionRow(
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
                        ArenaForecastRow(
                            entry=entry, event=event, taken_at=at, p=said, dollars=0.01 * (k + 1), seconds=2.0
                        )
                    )
    return arena_table_from_rows("made up", askings, outcomes, answers)


def one_asking(event="e", at=START, p=(0.8,), outcome=(1,), **fields):
    """An event with one moment, and what the entry "a" said."""
    targets = tuple(f"t{j}" for j in range(len(p)))
    asking = ArenaQuestionRow(event=event, taken_at=at, targets=targets, closes_at=at + DAY, **fields)
    known = {(event, t): ArenaOutcomeRow(outcome=o, known_at=at + DAY) for t, o in zip(targets, outcome, strict=True)}
    return asking, known, ArenaForecastRow(entry="a", event=event, taken_at=at, p=dict(zip(targets, p, strict=True)))


def several(*parts):
    """One arena out of several askings."""
    askings, known, answers = zip(*parts, strict=True)
    outcomes = {key: value for one in known for key, value in one.items()}
    return arena_table_from_rows("made up", list(askings), outcomes, list(answers))
