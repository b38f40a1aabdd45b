"""Lists of what is in arenas: the arenas themselves, their events with titles and results, and how many there are."""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from foretell.arena.store import ArenaStore
from foretell.frozen import frozen
from foretell.models.database.interface import Database
from foretell.questions.errors import InputError

_COUNTS = """
select count(*), coalesce(sum(case when settled = 0 and status = 'open' then 1 else 0 end), 0),
    coalesce(sum(settled), 0) from listed where arena = ? and decision = 'selected'"""
_EVENTS = """
select event, category, case when settled <> 0 then 'settled' else status end, closes_at from listed where {where}
order by coalesce(closes_at, '') desc, event limit ? offset ?"""
_OUTCOMES = """
select event, target, outcome from outcome where arena = ? and event in ({these}) and outcome is not null
order by event, target"""


class EventCounts(NamedTuple):
    """The number of events of an arena."""

    selected: int
    open: int
    settled: int


@frozen
class ArenaRow:
    """An arena in a list."""

    name: str
    created: str
    events: int
    settled: int
    """Number of events that are settled."""


class EventRow(NamedTuple):
    """A selected event in a list."""

    id: str
    category: str
    status: str
    closes_at: str | None
    title: str = ""
    result: str = ""
    """What came true, by the labels of the outcomes; empty if nothing has resolved."""


def arena_rows(database: Database) -> list[ArenaRow]:
    """Return every arena in a database, newest first, with its numbers of events."""
    ArenaStore(database, "")  # Creates the tables if there is no arena yet.
    rows: list[ArenaRow] = []
    for name, created in database.read("select name, created from arena order by created desc, name"):
        counts = event_counts(ArenaStore(database, name))
        rows.append(ArenaRow(name=name, created=created, events=counts.selected, settled=counts.settled))
    return rows


def check_arena(database: Database, arena: str, column: str | None = None) -> None:
    """Raise InputError if there is no such arena; `column` names the option that gave its name."""
    ArenaStore(database, arena)  # Creates the tables if there is no arena yet.
    names = [name for (name,) in database.read("select name from arena order by name")]
    if arena not in names:
        hint = f"there are: {', '.join(names) or 'none'}"
        raise InputError(f"there is no arena {arena[:80]!r} in {database.place}", column=column, hint=hint)


def event_counts(store: ArenaStore) -> EventCounts:
    """Return the number of selected events, of those that are open, and of those that are settled."""
    return EventCounts(*map(int, store.db.read(_COUNTS, (store.arena,))[0]))


def rejections(store: ArenaStore) -> dict[str, int]:
    """Return the number of rejected events by reason, as last decided, the most frequent first."""
    query = """
    select reason, count(*) from listed where arena = ? and decision = 'rejected' group by reason order by 2 desc, 1"""
    return dict(store.db.read(query, (store.arena,)))


def events_by(store: ArenaStore, label: str) -> dict[str, int]:
    """Return the number of selected events by category or by platform."""
    assert label in ("category", "platform")
    query = f"select {label}, count(*) from listed where arena = ? and decision = 'selected' group by 1 order by 1"
    return dict(store.db.read(query, (store.arena,)))


def event_rows(
    store: ArenaStore, *, category: str = "", state: str = "", limit: int | None = None, offset: int = 0
) -> tuple[list[EventRow], int]:
    """Return selected events, the last to close first, and the number of events that match.

    `state` is "settled" for settled events; any other text stands for those that are not.
    """
    where, values = "arena = ? and decision = 'selected'", [store.arena]
    if category:
        where, values = f"{where} and category = ?", [*values, category]
    if state:
        where += f" and {'' if state == 'settled' else 'not '}(settled <> 0 or status = 'settled')"
    ((total,),) = store.db.read(f"select count(*) from listed where {where}", values)
    part = (total if limit is None else limit, offset)
    return [EventRow(*row) for row in store.db.read(_EVENTS.format(where=where), [*values, *part])], total


def event_titles(store: ArenaStore, ids: Sequence[str] | None = None) -> dict[str, str]:
    """Return the titles of the given selected events by id, or of all selected events."""
    if ids is not None and not ids:
        return {}
    # Titles are inside the stored events; the database extracts them.
    these = f" and event in ({', '.join('?' * len(ids))})" if ids else ""
    title = store.db.json_field("body", "text")
    query = f"select event, {title} from listed where arena = ? and decision = 'selected'{these}"
    return dict(store.db.read(query, [store.arena, *(ids or ())]))


def event_labels(store: ArenaStore, ids: Iterable[str]) -> dict[str, str]:
    """Return the titles of events and the labels of their outcomes, by id."""
    labels: dict[str, str] = {}
    for id in dict.fromkeys(ids):
        for (body,) in store.db.read("select body from listed where arena = ? and event = ?", (store.arena, id)):
            event = json.loads(body)
            labels |= {id: event["text"]} | {
                target["id"]: target["label"] for target in event["targets"] if target.get("label")
            }
    return labels


def event_results(store: ArenaStore, ids: Sequence[str]) -> dict[str, str]:
    """Return what came true in each of the events with outcomes: labels, or Yes or No if there is only one."""
    outcomes_of: dict[str, dict[str, float]] = {}
    query = _OUTCOMES.format(these=", ".join("?" * len(ids)))
    for event, target, outcome in store.db.read(query, (store.arena, *ids)) if ids else ():
        outcomes_of.setdefault(event, {})[target] = outcome
    labels = event_labels(store, outcomes_of)
    results: dict[str, str] = {}
    for event, outcomes in outcomes_of.items():
        true = [labels.get(target, target) for target, outcome in outcomes.items() if outcome == 1.0]
        only = {0.0: "No", 1.0: "Yes"}.get(next(iter(outcomes.values())), "")
        results[event] = only if len(outcomes) == 1 else ", ".join(true) or "none"
    return results
