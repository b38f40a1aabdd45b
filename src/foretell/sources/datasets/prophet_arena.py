"""Prophet Arena events in the published CSV shape: several markets each, quotes and articles of one moment.

Two things in that file were known only afterwards and stay out of the question: `market_outcome`, and `close_time`,
which is when trading really ended. The question closes when the exchange's own record at the snapshot said it would.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.questions.snapshot import Snapshot
from foretell.sources.datasets.literal import literal
from foretell.sources.datasets.question_set import Asked, ContextSource, QuestionSet, asked, tally
from foretell.sources.datasets.row import Row, csv_rows

SOURCE = "prophet_arena"
CENTS = 100


@dataclass(frozen=True, kw_only=True)
class _Event:
    """One parsed CSV row."""

    row: Row
    at: datetime
    markets: list[str]
    outcomes: Mapping[str, Any]
    quotes: Mapping[str, Row]


def read_events_csv(path: str | Path, *, exclusive: frozenset[str] = frozenset()) -> QuestionSet:
    """Read the published subset. The file does not say which events are exclusive: name their tickers where you know.

    Only markets that are both listed and resolved become targets; the others are counted. Whether an event is
    exclusive is never guessed from how it came out.
    """
    counts: Counter[str] = Counter()
    questions: list[Question] = []
    resolutions: list[Resolution] = []
    contexts: dict[Asked, tuple[ContextSource, ...]] = {}
    for row in csv_rows(Path(path)):
        event = _event(row)
        names = _matching(event, counts)
        if not names:
            continue
        question = _question(event, names, exclusive)
        if asked(question) in contexts:
            raise event.row.problem("event_ticker", "is there twice for the same moment")
        questions.append(question)
        resolutions += _resolutions(event, question)
        contexts[asked(question)] = context_sources(event.row, _parsed(event.row, "sources", list))
    return QuestionSet(
        name="prophet arena",
        questions=tuple(questions),
        resolutions=tuple(resolutions),
        notes=tally(counts),
        contexts=contexts,
    )


def context_sources(row: Row, items: list[Any]) -> tuple[ContextSource, ...]:
    """The articles of an event, in the order given."""
    return tuple(_context_source(row, item) for item in items)


def _event(row: Row) -> _Event:
    row = Row(path=row.path, number=row.number, fields=row.fields, name=f"event {row.need('event_ticker')}")
    at = row.moment("snapshot_time")
    if at is None:
        raise row.problem("snapshot_time", "is missing")
    info = _parsed(row, "market_info", dict)
    quotes = {str(name): _quote_row(row, str(name), fields) for name, fields in info.items()}
    return _Event(
        row=row,
        at=at,
        markets=[str(name) for name in _parsed(row, "markets", list)],
        outcomes={str(name): value for name, value in _parsed(row, "market_outcome", dict).items()},
        quotes=quotes,
    )


def _matching(event: _Event, counts: Counter[str]) -> list[str]:
    names = [name for name in dict.fromkeys(event.markets) if name in event.outcomes]
    counts["listed markets without an outcome dropped"] += len(set(event.markets) - set(event.outcomes))
    counts["outcomes without a listed market dropped"] += len(set(event.outcomes) - set(event.markets))
    counts["events whose listed markets and outcomes differ"] += set(event.markets) != set(event.outcomes)
    counts["events without a resolved market dropped"] += not names
    counts["markets without a quote kept"] += len([name for name in names if name not in event.quotes])
    return names


def _question(event: _Event, names: list[str], exclusive: frozenset[str]) -> Question:
    row, ticker = event.row, event.row.text("event_ticker")
    listed = [event.quotes[name] for name in names if name in event.quotes]
    return row.reading(
        "markets",
        lambda: Question(
            id=f"{SOURCE}/{ticker}",
            source=SOURCE,
            text=row.text("title") or row.need("title"),
            due=event.at,
            targets=tuple(_target(event, name) for name in names),
            category=row.text("category"),
            criteria=_criteria(names, event.quotes),
            exclusive=ticker in exclusive,
            opens_at=min((at for q in listed if (at := q.moment("open_time"))), default=None),
            closes_at=max((at for q in listed if (at := _expected_close(q, event.at))), default=None),
        ),
    )


def _target(event: _Event, name: str) -> Target:
    quote = event.quotes.get(name)
    return Target(id=name, label=name, snapshot=None if quote is None else _snapshot(quote, event.at))


def _snapshot(quote: Row, at: datetime) -> Snapshot:
    """Quotes in dollars. The exchange shows 0 as last price before the first trade; volume counts $1 contracts."""
    prices = {field: _dollars(quote, field) for field in ("yes_bid", "yes_ask", "no_ask", "last_price")}
    if not prices["last_price"]:
        prices["last_price"] = None
    return quote.reading("market_info", lambda: Snapshot(at=at, volume=quote.real("volume"), **prices))


def _dollars(quote: Row, field: str) -> float | None:
    """A price in dollars: the newer `<field>_dollars` where present, else whole cents."""
    told = quote.real(f"{field}_dollars")
    if told is not None:
        return told
    cents = quote.real(field)
    return None if cents is None else cents / CENTS


def _expected_close(quote: Row, at: datetime) -> datetime | None:
    """When the market was expected to end, as the exchange had it at the snapshot, if that still lay ahead."""
    dates = (quote.moment("expected_expiration_time"), quote.moment("close_time"))
    return min((date for date in dates if date is not None and date > at), default=None)


def _criteria(names: list[str], quotes: Mapping[str, Row]) -> str:
    """Each market's rule on its own line, then what applies to all."""
    rules = [f"{name}: {rule}" for name in names if name in quotes and (rule := quotes[name].text("rules_primary"))]
    shared = [text for name in names if name in quotes and (text := quotes[name].text("rules_secondary"))]
    return "\n".join([*rules, *dict.fromkeys(shared)])


def _resolutions(event: _Event, question: Question) -> list[Resolution]:
    closed = event.row.moment("close_time")
    return [
        Resolution(
            question_id=question.id,
            target_id=target.id,
            due=question.due,
            outcome=_outcome(event.row, event.outcomes[target.id]),
            resolved_at=closed,
            provenance=event.row.path.name,
        )
        for target in question.targets
    ]


def _outcome(row: Row, value: Any) -> int | None:
    if value is None or value in (0, 1):
        return None if value is None else int(value)
    raise row.problem("market_outcome", f"{value!r} is neither 0 nor 1")


def _quote_row(row: Row, market: str, fields: Any) -> Row:
    if not isinstance(fields, dict):
        raise row.problem("market_info", f"market {market!r} has no fields")
    return Row(path=row.path, number=row.number, fields=cast(dict[str, Any], fields), name=f"{row.name}, {market!r}")


def _parsed(row: Row, field: str, shape: type) -> Any:
    value = row.reading(field, lambda: literal(str(row.need(field))))
    if not isinstance(value, shape):
        raise row.problem(field, f"expected a {shape.__name__}, found a {type(value).__name__}")
    return value


def _context_source(row: Row, item: Any) -> ContextSource:
    if not isinstance(item, dict):
        raise row.problem("sources", f"expected an article with fields, found {str(item)[:40]!r}")
    article = Row(path=row.path, number=row.number, fields=cast(dict[str, Any], item), name=row.name)
    return ContextSource(
        title=article.text("title"),
        url=article.text("url"),
        summary=article.text("summary"),
        rank=int(article.real("ranking") or article.real("rank") or 0),
    )
