"""A small arena in the store: events with prices, moments, forecasts and results."""

import json
import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from foretell.arena import ArenaStore
from foretell.forecasters.prompt import PredictionContext, RankedSource
from foretell.questions import Forecast, Question, Snapshot, Target, to_json
from foretell.runs import CellKey, QuestionsSpec, RunSpec, RunStore

START = datetime(2026, 3, 1, tzinfo=UTC)
ENTRIES = {"sharp": 0.15, "shy": 0.35, "<b>hostile</b>": 0.45}
"""How far from the outcome each of them stays."""


def fill(store: RunStore, arena: str = "made", events: int = 12) -> None:
    """Two moments each; outcomes alternate, and the last two events are open."""
    book = ArenaStore(store.database, arena)
    book.begin("{}", START)
    runs: dict[str, tuple[int, str]] = {}
    for name in ENTRIES:
        spec = RunSpec(questions=QuestionsSpec(dataset=f"arena:{arena}"), options={"who": name}, mode="live")
        store.begin(spec.id, spec.to_json(), START.isoformat())
        runs[name] = (book.enter(name, spec.id, spec.to_json(), START).id, spec.id)
    for n in range(events):
        _event(store, book, n, runs, settled=n < events - 2)


def _context(book: ArenaStore, asked: Question) -> str:
    """What everybody was shown, kept under its digest."""
    source = RankedSource(
        url="https://news.example/one", title="A poll <i>of</i> polls", summary="It is close.", published=START
    )
    shown = PredictionContext(question=asked, as_of=asked.as_of_in("live"), sources=(source,))
    row = (shown.digest, START.isoformat(), 0.0, "{}", shown.to_json())
    book.db.write("insert into context values (?, ?, ?, ?, ?) on conflict do nothing", row)
    return shown.digest


def _event(store: RunStore, book: ArenaStore, n: int, runs: dict[str, tuple[int, str]], *, settled: bool) -> None:
    db, id, at = store.database, f"kalshi/KX-{n}", START + timedelta(days=n)
    closes, outcome = at + timedelta(days=4), n % 2
    price = 0.7 if outcome else 0.3
    shot = Snapshot(at=at, last_price=price, yes_ask=price, no_ask=1 - price)
    asked = Question(
        id=id, source="kalshi", text=f"Event {n}?", due=at, closes_at=closes, targets=(Target(id="yes", snapshot=shot),)
    )
    listed = (book.arena, id, "kalshi", "Politics" if n % 3 else "Sports", "f", at.isoformat(), at.isoformat())
    db.write(
        "insert into listed values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*listed, "open", closes.isoformat(), 10.0, "selected", "", at.isoformat(), int(settled), to_json(asked)),
    )
    book.add_quotes(asked)
    if settled:
        done = closes.isoformat()
        row = (book.arena, id, "yes", outcome, None, done, "http://x", done)
        db.write("insert into outcome values (?, ?, ?, ?, ?, ?, ?, ?)", row)
    for number in range(2):
        taken = at + timedelta(days=2 * number)
        moment = 2 * n + number + 1
        quotes = struct.pack("<4d", price, price, price, 1 - price)
        db.write(
            """insert into moment
            (id, arena, event, number, planned_at, taken_at, closes_at, state, targets, quotes, context)
            values (?, ?, ?, ?, ?, ?, ?, 'ready', ?, ?, ?)""",
            (
                *(moment, book.arena, id, number, *[taken.isoformat()] * 2, closes.isoformat()),
                *(json.dumps(["yes"]), quotes, _context(book, asked)),
            ),
        )
        for name, (entry, run) in runs.items():
            p = 1 - ENTRIES[name] if outcome else ENTRIES[name]
            db.write(
                "insert into said (entry, moment, trial, p, at, dollars, seconds) values (?, ?, 0, ?, ?, 0.01, 2.0)",
                (entry, moment, struct.pack("<d", p), taken.isoformat()),
            )
            key = CellKey(run=run, question=id, due=taken.isoformat(), trial=0)
            said = Forecast(
                question_id=id,
                forecaster=name,
                as_of=asked.as_of_in("live"),
                p={"yes": p},
                rationale=f"**{name}** holds the first source to be right.",
            )
            store.keep_questions(run, [replace(asked, due=taken)])
            store.finish_cell(key, said)
