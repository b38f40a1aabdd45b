"""Prophet Arena events in the published CSV format: several markets each, with quotes and articles of one time.

Two things in that file were known only afterwards and stay out of the question: `market_outcome`, and `close_time`,
which is when trading really ended. The question's close time is the one that the exchange stated at the snapshot.
"""

import io
import json
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from foretell.data.datasets.dataset import DatasetRequest, FileFormat
from foretell.data.datasets.question_set import ContextSource, QuestionSet, QuestionSetBuilder, asked_key
from foretell.data.datasets.rows import Row, csv_rows, jsonl_rows
from foretell.data.files import DownloadCache, home_folder
from foretell.data.markets.prophet_arena import ProphetArenaClient, outcomes_exclude
from foretell.data.untrusted import for_file_name
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.codec import parse_literal
from foretell.questions.errors import InputError
from foretell.questions.question import Exclusivity, Question, Snapshot, Target, with_some_left_out
from foretell.questions.resolution import Resolution

# Python literals in published CSV cells, read without running code.

_CALL = pattern(r"\b(?:UUID|Decimal)\(\s*('[^'\\]*'|\"[^\"\\]*\")\s*\)")
_QUOTED = pattern(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def literal(text: str) -> Any:
    r"""Evaluate a literal in which `UUID('…')` and `Decimal('…')` stand for their text.

    Quoted passages are left alone, so a summary that happens to mention UUID('x') is not changed. Anything that is not
    a plain literal (a name, a call, an operator) raises a `ValueError`.

    >>> literal("[{'id': UUID('040df6a5'), 'title': \"A's UUID('x')\", 'n': 1}]")
    [{'id': '040df6a5', 'title': "A's UUID('x')", 'n': 1}]
    >>> literal("__import__('os').getcwd()")
    Traceback (most recent call last):
    ...
    ValueError: not a plain Python literal
    """
    return parse_literal(_unwrapped(text.strip()))


def _unwrapped(text: str) -> str:
    """Replace each wrapping call outside quotes with its argument."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        if call := _CALL.match(text, at):
            parts.append(call.group(1))
            at = call.end()
        elif quoted := _QUOTED.match(text, at):
            parts.append(quoted.group())
            at = quoted.end()
        else:
            parts.append(text[at])
            at += 1
    return "".join(parts)


SOURCE = "prophet_arena"
CENTS = 100


@frozen
class _Event:
    """One parsed CSV row."""

    row: Row
    at: datetime
    markets: list[str]
    outcomes: Mapping[str, Any]
    quotes: Mapping[str, Row]


def read_events_csv(path: str | Path, *, exclusivity: Mapping[str, Exclusivity] | None = None) -> QuestionSet:
    """Read the published subset. It does not say which outcomes exclude each other: pass that by ticker if known.

    Only markets that are both listed and resolved become targets; the others are counted. Whether the outcomes of an
    event exclude each other is never guessed from its result; if some are left out, "exactly one" becomes "at most
    one".

    An event that cannot be read is left out, named and counted; if that is half of them or more, the file is refused.
    """
    set_builder, bad = QuestionSetBuilder(), list[InputError]()
    for row in csv_rows(Path(path)):
        counts = Counter[str]()
        try:
            event = _event(row)
            names = _matching(event, counts)
            snapshots = {name: _snapshot(event, name, counts) for name in names}
            exclusive = (exclusivity or {}).get(event.row.text("event_ticker"), "independent")
            whole = set(names) == {*event.markets, *event.outcomes}
            question = (
                _csv_question(event, snapshots, exclusive if whole else with_some_left_out(exclusive))
                if names
                else None
            )
            resolutions = _csv_resolutions(event, question) if question else []
            sources = context_sources(event.row, _parsed(event.row, "sources", list)) if question else ()
        except InputError as problem:
            bad.append(problem)
            continue
        set_builder.counts.update(counts)
        if question is None:
            continue
        if asked_key(question) in set_builder.questions:
            raise event.row.problem("event_ticker", "occurs twice for the same time")
        set_builder.questions[asked_key(question)] = question
        set_builder.resolutions += resolutions
        set_builder.contexts[asked_key(question)] = sources
    if len(bad) >= len(set_builder.questions) and bad:
        raise bad[0]
    set_builder.counts.update(f"event left out, because it cannot be read ({problem})" for problem in bad)
    return set_builder.build("prophet arena")


def context_sources(row: Row, items: list[Any]) -> tuple[ContextSource, ...]:
    """Return the articles of an event, in the given order."""
    articles = [row.part("sources", item) for item in items]
    return tuple(
        ContextSource(
            title=article.text("title"),
            url=article.text("url"),
            summary=article.text("summary"),
            rank=int(article.real("ranking") or article.real("rank") or 0),
        )
        for article in articles
    )


def _event(row: Row) -> _Event:
    row = row.named(f"event {row.need('event_ticker')}")
    at = row.need_datetime("snapshot_time")
    info = _parsed(row, "market_info", dict)
    return _Event(
        row=row,
        at=at,
        markets=[str(name) for name in _parsed(row, "markets", list)],
        outcomes={str(name): value for name, value in _parsed(row, "market_outcome", dict).items()},
        quotes={
            str(name): row.part("market_info", fields).named(f"{row.name}, {str(name)!r}")
            for name, fields in info.items()
        },
    )


def _matching(event: _Event, counts: Counter[str]) -> list[str]:
    names = [name for name in dict.fromkeys(event.markets) if name in event.outcomes]
    counts["listed markets without an outcome dropped"] += len(set(event.markets) - set(event.outcomes))
    counts["outcomes without a listed market dropped"] += len(set(event.outcomes) - set(event.markets))
    counts["events whose listed markets and outcomes differ"] += set(event.markets) != set(event.outcomes)
    counts["events without a resolved market dropped"] += not names
    counts["markets without a quote kept"] += len([name for name in names if name not in event.quotes])
    return names


def _csv_question(event: _Event, snapshots: Mapping[str, Snapshot | None], exclusivity: Exclusivity) -> Question:
    row, ticker, names = event.row, event.row.text("event_ticker"), list(snapshots)
    listed = [event.quotes[name] for name in names if name in event.quotes]
    return row.reading(
        "markets",
        lambda: Question(
            id=f"{SOURCE}/{ticker}",
            source=SOURCE,
            text=row.need_text("title"),
            due=event.at,
            targets=tuple(Target(id=name, label=name, snapshot=snapshots[name]) for name in names),
            category=row.text("category"),
            criteria=_criteria(names, event.quotes),
            exclusivity=exclusivity,
            opens_at=min((at for q in listed if (at := q.get_datetime("open_time"))), default=None),
            closes_at=max((at for q in listed if (at := _expected_close(q, event.at))), default=None),
        ),
    )


def _snapshot(event: _Event, name: str, counts: Counter[str]) -> Snapshot | None:
    """Return quotes in dollars. The last price is 0 before the first trade; the volume counts $1 contracts."""
    quote = event.quotes.get(name)
    if quote is None:
        return None
    prices = {field: _dollars(quote, field, counts) for field in ("yes_bid", "yes_ask", "no_ask", "last_price")}
    if not prices["last_price"]:
        prices["last_price"] = None
    volume = _number(quote, "volume", counts)
    return quote.reading("market_info", lambda: Snapshot(at=event.at, volume=volume, **prices))


def _dollars(quote: Row, field: str, counts: Counter[str]) -> float | None:
    """Return a price in dollars: the newer `<field>_dollars` if it is a number, else whole cents."""
    number = _number(quote, f"{field}_dollars", counts)
    if number is not None:
        return number
    cents = _number(quote, field, counts)
    return None if cents is None else cents / CENTS


def _number(quote: Row, field: str, counts: Counter[str]) -> float | None:
    """Return a number; None, which is counted, for a list or an object in its place, as in one published event."""
    if isinstance(quote.get(field), list | dict):
        counts[f"quotes that are lists or objects passed over in {quote.name.partition(', ')[0]}"] += 1
        return None
    return quote.real(field)


def _expected_close(quote: Row, at: datetime) -> datetime | None:
    """Return when the market was expected to end, as stated by the exchange at the snapshot, if still ahead."""
    dates = (quote.get_datetime("expected_expiration_time"), quote.get_datetime("close_time"))
    return min((date for date in dates if date is not None and date > at), default=None)


def _criteria(names: list[str], quotes: Mapping[str, Row]) -> str:
    """Return each market's rule on its own line, then the rules that apply to all."""
    rules = [f"{name}: {rule}" for name in names if name in quotes and (rule := quotes[name].text("rules_primary"))]
    shared = [text for name in names if name in quotes and (text := quotes[name].text("rules_secondary"))]
    return "\n".join([*rules, *dict.fromkeys(shared)])


def _csv_resolutions(event: _Event, question: Question) -> list[Resolution]:
    closed = event.row.get_datetime("close_time")
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


def _parsed(row: Row, field: str, shape: type) -> Any:
    value = row.reading(field, lambda: literal(str(row.need(field))))
    if not isinstance(value, shape):
        raise row.problem(field, f"expected a {shape.__name__}, found a {type(value).__name__}")
    return value


# Prophet Arena event sets as downloaded by its SDK: `events.jsonl`, one event with several windows per line.

ANSWERS_FILE: dict[Any, int | None] = {
    **{yes: 1 for yes in ("yes", "true", "1", "1.0")},
    **{no: 0 for no in ("no", "false", "0", "0.0")},
    **{none: None for none in ("void", "pending", "unresolved", "none", "")},
}


def read_events_jsonl(path: str | Path) -> QuestionSet:
    """Read an event set: each window of an event is one asking, at the time of its market prices and articles.

    Here the file itself says whether at most one outcome resolves to yes. Void outcomes have no outcome and are
    counted.
    """
    set_builder = QuestionSetBuilder()
    for line in jsonl_rows(Path(path)):
        row = line.named(f"event {line.need('slug')}")
        answers = _answers(row, set_builder.counts)
        windows = row.items("windows")
        set_builder.counts["events without a window dropped"] += not windows
        for item in windows:
            window = row.part("windows", item)
            question = _jsonl_question(row, window, tuple(answers))
            key = asked_key(question)
            if key in set_builder.questions:
                raise row.problem("windows", f"{question.due.isoformat()} is asked twice")
            set_builder.questions[key] = question
            set_builder.resolutions += [
                Resolution(
                    question_id=question.id,
                    target_id=name,
                    due=question.due,
                    outcome=answer,
                    provenance=row.path.name,
                )
                for name, answer in answers.items()
            ]
            set_builder.contexts[key] = context_sources(row, window.items("context"))
    return set_builder.build("prophet arena")


def _answers(row: Row, counts: Counter[str]) -> dict[str, int | None]:
    answers: dict[str, int | None] = {}
    for item in row.items("outcomes"):
        part = row.part("outcomes", item)
        name, lower = str(part.need("name")), part.text("resolution").lower()
        if lower not in ANSWERS_FILE:
            raise part.problem("outcomes", f"resolution {lower!r} of {name!r} is not yes, no or void")
        answers[name] = ANSWERS_FILE[lower]
        counts["outcomes void or unresolved"] += answers[name] is None
    if not answers:
        raise row.problem("outcomes", "is missing")
    return answers


def _jsonl_question(row: Row, window: Row, names: tuple[str, ...]) -> Question:
    at = window.get_datetime("taken_at")
    if at is None:
        raise window.problem("windows", "a window has no taken_at")
    prices = window.part("crowd", window.get("crowd") or {})
    market_prices = {name: price for name in prices.fields if (price := prices.real(name)) is not None}
    return row.reading(
        "windows",
        lambda: Question(
            id=f"{SOURCE}/{row.text('slug')}",
            source=SOURCE,
            text=row.need_text("title"),
            due=at,
            targets=tuple(
                Target(
                    id=name,
                    label=name,
                    snapshot=Snapshot(at=at, last_price=market_prices[name]) if name in market_prices else None,
                )
                for name in names
            ),
            category=row.text("category"),
            criteria=row.text("criteria"),
            exclusivity=outcomes_exclude(names, stated=bool(row.flag("mutually_exclusive"))),
            closes_at=row.get_datetime("close_at"),
        ),
    )


# Kinds of Prophet Arena files, recognised by the first line.

CSV_COLUMNS = ("event_ticker", "market_outcome", "market_info", "snapshot_time")
JSON_FIELDS = ("slug", "outcomes", "windows")


def read_arena_file(path: str | Path) -> QuestionSet | None:
    """Read the events of a published CSV file or of the SDK's JSONL file; None if the file is neither."""
    reader = _reader(Path(path))
    return None if reader is None else reader(path)


def _reader(path: Path) -> Callable[[str | Path], QuestionSet] | None:
    if path.suffix.lower() not in (".csv", ".jsonl"):
        return None
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = file.readline()
    columns = [column.strip().strip('"') for column in first.split(",")]
    if all(column in columns for column in CSV_COLUMNS):
        return read_events_csv
    try:
        fields = json.loads(first)
    except (ValueError, RecursionError):
        return None
    return read_events_jsonl if isinstance(fields, dict) and all(name in fields for name in JSON_FIELDS) else None


# Event sets downloaded from the arena.

DATASET = "dataset/"
"""Prefix of a name such as `prophet_arena:dataset/SLUG@VERSION`."""
EVENTS_FILE = "events.jsonl"
MAX_EVENTS_BYTES = 512 * 1024 * 1024
_NAME = pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def dataset_name(name: str) -> tuple[str, str]:
    """Return slug and version of a data set's name; an empty version means the newest.

    >>> dataset_name("cups@2026-01")
    ('cups', '2026-01')
    """
    slug, _, version = name.partition("@")
    if ".." in name or not _NAME.fullmatch(slug) or not (version == "" or _NAME.fullmatch(version)):
        raise InputError(f"{name!r} is not a name of a data set", hint="SLUG or SLUG@VERSION")
    return slug, version


def unpack_events(packed: bytes, checksum: str) -> bytes:
    """Return the events of a data set packed by the arena, verified against their checksum if there is one."""
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as tar:
            member = tar.getmember(EVENTS_FILE)
            file = tar.extractfile(member) if member.size <= MAX_EVENTS_BYTES else None
            lines = None if file is None else file.read()
    except (tarfile.TarError, KeyError, OSError, EOFError):
        lines = None
    if lines is None:
        raise InputError(f"the data set has no readable {EVENTS_FILE}", hint="download it again")
    if checksum and sha256(lines).hexdigest() != checksum.lower():
        raise InputError("the data set does not have the checksum that came with it", hint="download it again")
    return lines


async def download_events(client: ProphetArenaClient, name: str, folder: Path) -> Path:
    """Download a data set of the arena, given as `SLUG` or `SLUG@VERSION`, verify it and store it in a folder."""
    slug, version = dataset_name(name)
    version = version or await client.newest_version(slug)
    packed, checksum = await client.artifact(slug, version)
    file_name = f"{for_file_name(slug)}@{for_file_name(version)}.jsonl"
    return DownloadCache(folder).put(file_name, unpack_events(packed, checksum), url=f"{client.host}/datasets/{slug}")


def dataset_folder(folder: Path | None = None) -> Path:
    """Return the folder in which data sets of the arena are stored."""
    return folder or home_folder() / SOURCE


def _kept(name: str, folder: Path) -> Path:
    slug, version = dataset_name(name)
    file = f"{for_file_name(slug)}@{for_file_name(version) if version else '*'}.jsonl"
    glob = sorted(folder.glob(file))
    if not glob or not glob[-1].exists():
        raise InputError(f"the data set {name} is not here", hint=f"foretell data pull prophet-arena --dataset {name}")
    return glob[-1]


def _open(request: DatasetRequest) -> QuestionSet:
    if request.argument.startswith(DATASET):
        return read_events_jsonl(_kept(request.argument.removeprefix(DATASET), dataset_folder(request.folder)))
    arena_file = read_arena_file(request.path)
    if arena_file is None:
        raise InputError("is not a file of Prophet Arena's", path=request.path, hint="its CSV of events, or SDK JSONL")
    return arena_file


prophet_arena = FileFormat(
    read=_open,
    recognises=lambda path: _reader(path) is not None,
    known=lambda argument: argument.startswith(DATASET),
)
"""The data sets `prophet_arena:FILE` and `prophet_arena:dataset/SLUG@VERSION`, and any file that looks like one."""
