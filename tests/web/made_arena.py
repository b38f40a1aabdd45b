"""A small arena in the store: events with prices, forecast times, forecasts and results."""

import json
import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from foretell.arena.store import ArenaStore
from foretell.forecasters.prompt.prediction_context import PredictionContext, RankedSource
from foretell.questions.codec import to_json
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Snapshot, Target
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.runs.store import RunStore, TrialKey

START = datetime(2026, 3, 1, tzinfo=UTC)
ENTRIES = {"sharp": 0.15, "shy": 0.35, "<b>hostile</b>": 0.45}
"""Distance of each entry's forecasts from the outcome."""


def fill(store: RunStore, arena: str = "made", events: int = 12, dollars: float = 0.01) -> None:
    """Add events with two forecast times each; outcomes alternate, and the last two events are open.

    Each forecast was billed `dollars`.
    """
    book = ArenaStore(store.database, arena)
    book.begin("{}", START)
    runs: dict[str, tuple[int, str]] = {}
    for name in ENTRIES:
        spec = RunSpec(questions=QuestionsSpec(dataset=f"arena:{arena}"), options={"who": name}, mode="live")
        store.begin(spec.id, spec.to_json(), START.isoformat())
        runs[name] = (book.enter(name, spec.id, spec.to_json(), START).id, spec.id)
    for n in range(events):
        _event(store, book, n, runs, settled=n < events - 2, dollars=dollars)


def _context(store: ArenaStore, question: Question) -> str:
    """Store the shared context; return its digest."""
    source = RankedSource(
        url="https://news.example/one", title="A poll <i>of</i> polls", summary="It is close.", published=START
    )
    shown = PredictionContext(question=question, as_of=question.as_of_in("live"), sources=(source,))
    row = (shown.digest, START.isoformat(), 0.0, "{}", shown.to_json())
    store.db.write("insert into context values (?, ?, ?, ?, ?) on conflict do nothing", row)
    return shown.digest


def _event(
    store: RunStore, book: ArenaStore, n: int, runs: dict[str, tuple[int, str]], *, settled: bool, dollars: float
) -> None:
    db, id, at = store.database, f"kalshi/KX-{n}", START + timedelta(days=n)
    closes, outcome = at + timedelta(days=4), n % 2
    price = 0.7 if outcome else 0.3
    shot = Snapshot(at=at, last_price=price, yes_ask=price, no_ask=1 - price)
    question = Question(
        id=id, source="kalshi", text=f"Event {n}?", due=at, closes_at=closes, targets=(Target(id="yes", snapshot=shot),)
    )
    listed = (book.arena, id, "kalshi", "Politics" if n % 3 else "Sports", "f", at.isoformat(), at.isoformat())
    db.write(
        "insert into listed values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*listed, "open", closes.isoformat(), 10.0, "selected", "", at.isoformat(), int(settled), to_json(question)),
    )
    book.add_quotes(question)
    if settled:
        done = closes.isoformat()
        row = (book.arena, id, "yes", outcome, None, done, "http://x", done)
        db.write("insert into outcome values (?, ?, ?, ?, ?, ?, ?, ?)", row)
    for number in range(2):
        taken = at + timedelta(days=2 * number)
        time_id = 2 * n + number + 1
        quotes = struct.pack("<4d", price, price, price, 1 - price)
        db.write(
            """insert into moment
            (id, arena, event, number, planned_at, taken_at, closes_at, state, targets, quotes, context)
            values (?, ?, ?, ?, ?, ?, ?, 'ready', ?, ?, ?)""",
            (
                *(time_id, book.arena, id, number, *[taken.isoformat()] * 2, closes.isoformat()),
                *(json.dumps(["yes"]), quotes, _context(book, question)),
            ),
        )
        for name, (entry, run) in runs.items():
            p = 1 - ENTRIES[name] if outcome else ENTRIES[name]
            db.write(
                "insert into said (entry, moment, trial, p, at, dollars, seconds) values (?, ?, 0, ?, ?, ?, 2.0)",
                (entry, time_id, struct.pack("<d", p), taken.isoformat(), dollars),
            )
            key = TrialKey(run=run, question=id, due=taken.isoformat(), trial=0)
            forecast = Forecast(
                question_id=id,
                forecaster=name,
                as_of=question.as_of_in("live"),
                p={"yes": p},
                rationale=f"**{name}** holds the first source to be right.",
            )
            store.keep_questions(run, [replace(question, due=taken)])
            store.finish_trial(key, forecast)
