"""A question in plain fields, as a person writes one."""

import re
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, cast, get_args

from foretell.questions.question import Kind, Question, SeriesRef, Target
from foretell.questions.snapshot import Snapshot
from foretell.sources.datasets.row import Row, hint_for

FIELDS = (
    "text",
    "id",
    "due",
    "by",
    "resolves",
    "dates",
    "options",
    "exclusive",
    "price",
    "price_at",
    "source",
    "kind",
    "subtype",
    "category",
    "criteria",
    "background",
    "cluster",
    "url",
    "opens",
    "closes",
    "series",
    "above",
    "below",
)
YES = "yes"


def plain_question(row: Row, asked_at: datetime | None = None) -> Question:
    """A question out of plain fields; only `text` is always needed."""
    text = row.text("text") or row.need("text")
    due = row.moment("due") or asked_at
    if due is None:
        raise row.problem("due", "is missing", "the day as of which the question is asked, e.g. 2026-01-18")
    return row.reading(
        None,
        lambda: Question(
            id=row.text("id") or default_id(text),
            source=row.text("source") or "own",
            text=text,
            due=due,
            targets=_targets(row, due),
            kind=_kind(row),
            subtype=row.text("subtype"),
            category=row.text("category"),
            criteria=row.text("criteria"),
            background=row.text("background"),
            exclusive=_exclusive(row),
            opens_at=row.moment("opens"),
            closes_at=row.moment("closes"),
            cluster=row.text("cluster"),
            url=row.text("url"),
            series=_series(row),
        ),
    )


def default_id(text: str) -> str:
    """A readable id that stays the same as long as the text does.

    >>> default_id("Will it rain in Oslo on 1 May?")
    'will-it-rain-in-oslo-on-1-may-...'
    """
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    return f"{words or 'question'}-{sha256(text.encode()).hexdigest()[:6]}"


def _targets(row: Row, due: datetime) -> tuple[Target, ...]:
    """One target; or one per option, or one per date, of which a question may have only one kind."""
    options, dates = row.items("options"), row.items("dates")
    resolves = _resolves(row)
    if options and dates:
        raise row.problem("dates", "a question has options or dates, not both")
    if dates and resolves is not None:
        raise row.problem("dates", "already says when the question resolves; leave out by and resolves")
    if dates:
        return tuple(_dated(row, day, due) for day in dates)
    if resolves is not None and resolves < due:
        raise row.problem(
            "by" if row.get("by") else "resolves", f"{resolves.date()} is before {due.date()}, its due day"
        )
    if len(options) == 1:
        raise row.problem("options", "needs two or more options", "leave it out for a yes/no question")
    labels = [str(option) for option in options] or [YES]
    prices = _prices(row, due, labels)
    return tuple(
        Target(id=label, label=label if options else "", resolves_at=resolves, snapshot=prices.get(label))
        for label in labels
    )


def _resolves(row: Row) -> datetime | None:
    by, resolves = row.moment("by"), row.moment("resolves")
    if by is not None and resolves is not None:
        raise row.problem("resolves", "by and resolves mean the same; give one")
    return by or resolves


def _dated(row: Row, day: Any, due: datetime) -> Target:
    moment = Row(path=row.path, number=row.number, fields={"dates": day}, name=row.name).moment("dates")
    if moment is None or moment < due:
        raise row.problem("dates", f"{day} is not a date after the due day {due.date()}")
    return Target(id=moment.date().isoformat(), resolves_at=moment)


def _prices(row: Row, due: datetime, labels: list[str]) -> dict[str, Snapshot]:
    """The crowd's price: one number for a yes/no question, a number per option otherwise."""
    given = row.get("price")
    if given is None:
        return {}
    prices = cast(Mapping[str, Any], given) if isinstance(given, dict) else {YES: given}
    unknown = [label for label in prices if label not in labels]
    if unknown and not isinstance(given, dict):
        raise row.problem("price", "one price does not say which option it belongs to", "write option: price pairs")
    if unknown:
        raise row.problem("price", f"{unknown[0]!r} is not an option", hint_for([], tuple(labels)))
    at = row.moment("price_at") or due
    if at > due:
        raise row.problem("price_at", "the price is from after the due moment: it would give away the future")
    return {label: _snapshot(row, at, value) for label, value in prices.items()}


def _snapshot(row: Row, at: datetime, value: Any) -> Snapshot:
    price = Row(path=row.path, number=row.number, fields={"price": value}, name=row.name).real("price")
    return row.reading("price", lambda: Snapshot(at=at, last_price=price))


def _kind(row: Row) -> Kind:
    told = row.text("kind") or ("dataset" if row.get("series") or row.get("dates") else "market")
    if told not in get_args(Kind):
        raise row.problem("kind", f"{told!r} is not a kind", hint_for([], get_args(Kind)))
    return cast(Kind, told)


def _exclusive(row: Row) -> bool:
    """Options exclude each other unless the row says otherwise."""
    told = row.flag("exclusive")
    return bool(row.items("options")) if told is None else told


def _series(row: Row) -> SeriesRef | None:
    above, below = row.real("above"), row.real("below")
    told = row.text("series")
    if not told:
        if above is not None or below is not None:
            raise row.problem("series", "is missing", "above and below are levels of a series")
        return None
    provider, _, series_id = told.partition("/")
    if not provider or not series_id:
        raise row.problem("series", f"{told!r} does not name a series", "write provider/id, e.g. fred/DGS10")
    if above is not None and below is not None:
        raise row.problem("below", "give above or below, not both")
    threshold = below if above is None else above
    return SeriesRef(
        provider=provider,
        id=series_id,
        comparison="below" if below is not None else "above",
        threshold=threshold,
    )
