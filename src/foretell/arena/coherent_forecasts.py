"""Makes forecasts of nested outcomes of one event coherent on the leaderboard; the stored answers stay as they are."""

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from foretell.forecasters.combine.claims import Order
from foretell.forecasters.combine.coherence import ROUNDING, order_gap, ordered, question_orders
from foretell.metrics.arrays import Floats
from foretell.models.database.interface import Database
from foretell.questions.codec import from_json
from foretell.questions.question import Question
from foretell.scoring.arena_table import ArenaTable

_ASKED = """
select m.event, a.question from moment m join asked a on a.moment = m.id where m.arena = ? and m.state = 'ready'"""


def with_coherent_forecasts(table: ArenaTable, database: Database) -> ArenaTable:
    """Return the table with every forecast of thresholds or deadlines of one event moved to the nearest coherent one.

    The squared distance is used, so that no forecast gets a worse Brier score, whatever happens. A note says how many
    were changed.
    """
    p, moved, total = table.p.copy(), 0, 0
    targets, ends = np.array(table.markets.target, object), [*table.starts[1:], len(table.markets)]
    found: dict[tuple[str, frozenset[str]], list[Order]] = {}
    events = _asked_of(database, table.name)
    for time, (start, end) in enumerate(zip(table.starts, ends, strict=True)):
        event, names = table.events.ids[table.forecast_times.event[time]], targets[start:end].tolist()
        key = (event, frozenset(names))
        if key not in found:
            question = events.get(key)
            found[key] = [] if question is None else question_orders(question, names)
        if not found[key]:
            continue
        for row in p[:, start:end]:
            if not np.isnan(row).any():
                total += 1
                moved += _make_coherent(row, names, found[key])
    note = (
        f"coherent: of {total} forecasts of nested thresholds or deadlines, {moved} contradicted themselves and were "
        "moved to the nearest coherent probabilities; the stored answers are unchanged"
    )
    return replace(table, p=p, notes=(*table.notes, note))


def _make_coherent(row: Floats, names: list[str], orders: list[Order]) -> bool:
    """Change a forecast in place if it is not coherent, and return whether it was changed."""
    before = dict(zip(names, row.tolist(), strict=True))
    changed = False
    for order in orders:
        if order_gap(order, before) > ROUNDING:
            where = [names.index(name) for name in order.names]
            row[where] = ordered(order, row[where])
            changed = True
    return changed


def _asked_of(database: Database, arena: str) -> Mapping[tuple[str, frozenset[str]], Question]:
    """Return a question as it was asked, for each event and set of targets that is independent and has several."""
    questions: dict[tuple[str, frozenset[str]], Question] = {}
    for event, text in database.read(_ASKED, (arena,)):
        # Parsing all fields of every question would take longer.
        plain = json.loads(text)
        key = (event, frozenset(target["id"] for target in plain["targets"]))
        if key not in questions and len(key[1]) > 1:
            questions[key] = from_json(text, Question)
    return questions
