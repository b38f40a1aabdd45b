"""Propose the outcome of a standing question.

The source that decides comes first: a market's own result, then the series by arithmetic, then texts. Texts are read
twice, and a proposal needs two readings that pass every check and agree. Otherwise the user is asked.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import date, datetime, timedelta

import numpy as np

from foretell.data.http import SourceError
from foretell.data.markets.market import market_ref
from foretell.data.pages import PageSource, PageUnavailable
from foretell.data.search.engine import CannotSearch, DocumentSource, SearchEngine, SearchHit
from foretell.data.series.series import Series, SeriesSource, SeriesUnavailable
from foretell.data.settlements.settlement import SettlementSource
from foretell.forecasters.series.typed_question import PriceQuestion, asked_span, price_question
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf, end_of_day
from foretell.questions.question import Question, SeriesRef, Target
from foretell.questions.resolution import Resolution
from foretell.questions.thresholds import thresholds_of
from foretell.standing.confirm import last_day, passed_thresholds
from foretell.standing.readings import (
    LONGEST_DOCUMENT,
    OutcomeDocument,
    OutcomeReader,
    QuestionTimes,
    SourceReading,
    as_record,
    fault_of,
    read_documents,
    support_fault,
)
from foretell.standing.record import NoOutcome, OutcomeProposal, OutcomeReading, QuestionRecord

ARITHMETIC = "arithmetic"
SEARCHED, MOST_DOCUMENTS = 8, 8
"""Number of search results, and of texts that are read."""
MOST_NEWS = 5
"""Number of texts found by looks at the question that are read again."""
CLOSE = 0.01
"""How close to its level, as a share, a price is left to the user: it may have passed it between two closes."""
STOPPED = timedelta(days=60)
"""Age of the newest value from which a series is no longer expected to go on."""
_ADDRESS = pattern(r"https?://[^\s<>()\[\]\"']+[^\s<>()\[\]\"'.,;:!?]")
_SENTENCE = pattern(r"(?<=[.!?])\s+(?=[A-Z])|\n+")
_ABOUT_SOURCE = pattern(
    r"\b(?:according to|sources?|as (?:reported|published|listed|shown|recorded)|resolves? (?:by|on|from|using|based)"
    r"|determined by|official (?:results?|website|data|figures?)|decides?)\b",
    re.IGNORECASE,
)
_HOST = pattern(r"\b(?:[a-z0-9-]+\.)+(?:com|org|net|gov|edu|int|info|eu|io|[a-z]{2})\b", re.IGNORECASE)


@frozen
class OutcomeSources:
    """What the resolver may consult. Whatever is missing is not consulted."""

    settlements: Mapping[str, SettlementSource] = field(default_factory=dict[str, SettlementSource])
    """By platform: the results that markets publish."""
    series: SeriesSource | None = None
    pages: PageSource | None = None
    engine: SearchEngine | None = None
    documents: Sequence[OutcomeDocument] = ()
    """Texts that are at hand already."""
    readers: Sequence[OutcomeReader] = ()
    """Two models; one alone reads twice, with different instructions. Without any, texts decide nothing."""


async def propose_outcome(record: QuestionRecord, sources: OutcomeSources, now: datetime) -> OutcomeProposal:
    """Return the outcome of a question, or why none can be proposed. Nothing is stored or scored."""
    question = record.standing.question
    times = question_times(record, now)
    market = await _market(question, sources, now)
    if market is not None:
        return market
    if question.series is not None:
        return await _series(question, sources, now)
    price = None if _decided_elsewhere(record) else await _price(question, sources, times)
    return price if price is not None else await _texts(record, sources, times)


def question_times(record: QuestionRecord, now: datetime) -> QuestionTimes:
    """Return when a question was opened and the last time that counts, by its text and by its closing day."""
    question = record.standing.question
    closes = last_day(question)
    given = None if closes is None else _whole_day(closes)
    span = asked_span(question.text, question.due.date(), None)
    stated = None if span is None else end_of_day(span.last)
    deadline = stated or given
    ends = [end for end in (stated, given) if end is not None]
    return QuestionTimes(
        opened=question.opens_at or question.due, deadline=deadline, closes=max(ends, default=None), now=now
    )


def _whole_day(at: datetime) -> datetime:
    """Return the end of a day that was given without a time."""
    return end_of_day(at.date()) if at == at.replace(hour=0, minute=0, second=0, microsecond=0) else at


def _proposal(
    now: datetime, outcome: Mapping[str, int], why: str, readings: Sequence[OutcomeReading], billed: float = 0.0
) -> OutcomeProposal:
    return OutcomeProposal(at=now, outcome=outcome, status="proposed", readings=tuple(readings), why=why, billed=billed)


def _nothing(
    now: datetime, status: NoOutcome, why: str, readings: Sequence[OutcomeReading] = (), billed: float = 0.0
) -> OutcomeProposal:
    return OutcomeProposal(at=now, outcome=None, status=status, readings=tuple(readings), why=why, billed=billed)


def in_words(question: Question, outcome: Mapping[str, int]) -> str:
    """Return the targets that came true, or "no"."""
    return ", ".join(target.id for target in question.targets if outcome[target.id]) or "no"


# Markets.


async def _market(question: Question, sources: OutcomeSources, now: datetime) -> OutcomeProposal | None:
    """Return what the market says that asks this question; None if there is none or it cannot be read."""
    refs = [market_ref(question, target) for target in question.targets]
    source = next(
        (sources.settlements[ref.platform] for ref in refs if ref and ref.platform in sources.settlements), None
    )
    if source is None:
        return None
    try:
        settled = await source.settlements([question])
    except SourceError as error:
        return _nothing(now, "cannot tell", f"{source.platform} could not be read: {error}")
    return market_proposal(question, settled, source.platform, now)


def market_proposal(question: Question, settled: Sequence[Resolution], platform: str, now: datetime) -> OutcomeProposal:
    """Return the proposal that follows from the results of a market."""
    by_target = {resolution.target_id: resolution for resolution in settled}
    missing = [target for target in question.targets if target.id not in by_target]
    if missing:
        return _nothing(now, "not yet", f"{platform} has no final result of {missing[0].short_label!r}")
    outcomes = {id: resolution.outcome for id, resolution in by_target.items()}
    where = settled[0].provenance

    def read(word: str) -> list[OutcomeReading]:
        return [OutcomeReading(reader=ARITHMETIC, outcome=word, url=where, published=settled[0].resolved_at)]

    if all(outcome is None for outcome in outcomes.values()):
        paid = any(resolution.payoff not in (None, 0.0, 1.0) for resolution in settled)
        status: NoOutcome = "ambiguous" if paid else "cancelled"
        why = "settled in part" if paid else "settled without an outcome: cancelled, annulled or ambiguous"
        return _nothing(now, status, f"{platform} {why}", read(status))
    if any(outcome is None for outcome in outcomes.values()):
        return _nothing(now, "ambiguous", f"{platform} settled only some of the outcomes", read("ambiguous"))
    outcome = {id: int(value or 0) for id, value in outcomes.items()}
    if fault := _exclusivity_fault(question, outcome):
        return _nothing(now, "cannot tell", f"{platform}: {fault}", read("cannot tell"))
    return _proposal(now, outcome, f"the result that {platform} published", read(in_words(question, outcome)))


def _exclusivity_fault(question: Question, outcome: Mapping[str, int]) -> str:
    came_true = sum(outcome.values())
    if len(question.targets) > 1 and question.exclusivity == "exactly one" and came_true != 1:
        return f"{came_true} outcomes came true instead of one"
    if question.exclusivity == "at most one" and came_true > 1:
        return f"{came_true} outcomes came true instead of at most one"
    return ""


# Series.


async def _series(question: Question, sources: OutcomeSources, now: datetime) -> OutcomeProposal:
    assert question.series is not None
    ref = question.series
    if sources.series is None:
        return _nothing(now, "cannot tell", f"{ref.provider}/{ref.id} decides, and no source supplies it")
    try:
        series = await sources.series.fetch(ref, AsOf(at=now, mode="live"))
    except (SeriesUnavailable, SourceError) as error:
        return _nothing(now, "cannot tell", f"{ref.provider}/{ref.id} could not be read: {error}")
    return series_proposal(question, ref, series, now)


def series_proposal(question: Question, ref: SeriesRef, series: Series, now: datetime) -> OutcomeProposal:
    """Return the outcome that follows from the series that decides a question, on the dates of its targets.

    A value counts once the series has one of that day or of a later one, so that what is still to be published is not
    taken for missing. The comparison is strict: a value that did not change is neither above nor below.
    """
    due = question.due.date()
    threshold = ref.threshold if ref.threshold is not None else series.at(due)
    name = f"{ref.provider}/{ref.id}"
    if threshold is None:
        return _nothing(now, "cannot tell", f"{name} has no value on or before {due}, to compare with")
    outcome: dict[str, int] = {}
    lines: list[str] = []
    for target in question.targets:
        day = _day_of(question, target)
        if day is None:
            return _nothing(now, "cannot tell", f"the question does not say on which day {name} counts")
        if not _published(series, day, now):
            status: NoOutcome = "cannot tell" if _stopped(series, day, now) else "not yet"
            return _nothing(now, status, f"{name} has no value of {day}; the newest is of {_newest(series)}")
        value = series.at(day)
        if value is None:
            return _nothing(now, "cannot tell", f"{name} has no value on or before {day}")
        outcome[target.id] = int(value > threshold if ref.comparison == "above" else value < threshold)
        lines.append(f"{value:.10g} on {day}")
    if fault := _exclusivity_fault(question, outcome):
        return _nothing(now, "cannot tell", f"{name}: {fault}")
    why = f"{name} was {', '.join(lines)}, compared with {threshold:.10g}"
    reading = OutcomeReading(reader=ARITHMETIC, outcome=in_words(question, outcome), url=question.url, why=why)
    return _proposal(now, outcome, why, [reading])


def _day_of(question: Question, target: Target) -> date | None:
    at = target.resolves_at or question.closes_at
    return None if at is None else at.date()


def _newest(series: Series) -> str:
    return str(series.days[-1].astype("M8[D]")) if len(series) else "never"


def _published(series: Series, day: date, now: datetime) -> bool:
    """Whether the value that holds on a day is final: it is of that day or no other can come before the next period."""
    if not len(series) or day >= now.date():
        return False
    newest: date = series.days[-1].astype("M8[D]").item()
    # The value of a month or a week holds until the next one.
    periodic = series.interval >= WEEK and newest + timedelta(days=PERIOD_SHARE * series.interval) > day
    return newest >= day or periodic


def _stopped(series: Series, day: date, now: datetime) -> bool:
    """Whether the series is not expected to reach a day any more."""
    newest = series.days[-1].astype("M8[D]").item() if len(series) else day
    return day < now.date() and now.date() - newest > STOPPED + timedelta(days=2 * series.interval)


WEEK, PERIOD_SHARE = 6.0, 0.9
"""Days between values from which a series is periodic, and the part of a period in which no next value is expected."""


# Prices, for questions that people type.


def _decided_elsewhere(record: QuestionRecord) -> bool:
    """Whether the question names a source of its own, so that public prices do not decide it."""
    question, sharpening = record.standing.question, record.standing.sharpening
    named = f"{question.criteria} {sharpening.decides if sharpening is not None else ''}".strip()
    return bool(named) and "yahoo" not in named.lower()


async def _price(question: Question, sources: OutcomeSources, times: QuestionTimes) -> OutcomeProposal | None:
    """Return what the closing prices say; None if the question is not about one, or the prices do not settle it."""
    closes = None if times.deadline is None else times.deadline.date()
    asked = price_question(question.text, question.due.date(), closes)
    if asked is None or asked.threshold is None or len(question.targets) > 1 or sources.series is None:
        return None
    try:
        series = await sources.series.fetch(
            SeriesRef(provider="yahoo", id=asked.symbol), AsOf(at=times.now, mode="live")
        )
    except (SeriesUnavailable, SourceError):
        return None
    return price_proposal(question, asked, series, times.now)


def price_proposal(question: Question, asked: PriceQuestion, series: Series, now: datetime) -> OutcomeProposal:
    """Return the outcome that follows from closing prices; a price too close to its level is left to the user."""
    assert asked.threshold is not None
    (target,) = question.targets
    first, last = asked.span.first + timedelta(days=1 if asked.touch else 0), asked.span.last
    inside = (series.days >= np.datetime64(first, "D")) & (series.days <= np.datetime64(last, "D"))
    values = series.values[inside] if asked.touch else np.array([v for v in [series.at(last)] if v is not None])
    over = len(series) and series.days[-1] > np.datetime64(last, "D")
    best = None if not len(values) else float(values.max() if asked.above else values.min())
    url = f"https://finance.yahoo.com/quote/{asked.symbol}"

    def propose(passed: bool, why: str) -> OutcomeProposal:
        reading = OutcomeReading(reader=ARITHMETIC, outcome=target.id if passed else "no", url=url, why=why)
        return _proposal(now, {target.id: int(passed)}, why, [reading])

    if best is None:
        return _nothing(now, "cannot tell" if over else "not yet", f"there is no close of {asked.name} to compare")
    beyond = (best - asked.threshold) * (1 if asked.above else -1) / abs(asked.threshold or 1.0)
    word = "highest" if asked.above else "lowest"
    said = f"the {word} close of {asked.name}" if asked.touch else f"the close of {asked.name}"
    why = f"{said} was {best:,.10g}, and the level is {asked.threshold:,.10g}"
    if not asked.touch and not over:
        return _nothing(now, "not yet", f"{asked.name} has no close after {last} yet")
    if beyond > CLOSE:
        return propose(True, why)
    if not over:
        return _nothing(now, "not yet", why)
    return propose(False, why) if beyond < -CLOSE else _nothing(now, "cannot tell", f"{why}: too close to tell")


# Texts.


async def _texts(record: QuestionRecord, sources: OutcomeSources, times: QuestionTimes) -> OutcomeProposal:
    if not sources.readers:
        status: NoOutcome = "cannot tell" if times.over else "not yet"
        return _nothing(times.now, status, "no series or market decides it, and no model is named to read texts")
    documents, problems = await find_documents(record, sources, times)
    deciding = [document for document in documents if document.deciding]
    proposal = None
    billed = 0.0
    # The source that decides is read alone first.
    for part in (deciding, documents) if deciding and len(deciding) < len(documents) else (documents,):
        proposal = await _read_twice(record, part, sources.readers, times, problems)
        billed += proposal.billed
        if proposal.status not in ("not yet", "cannot tell"):
            break
    assert proposal is not None
    return replace(proposal, billed=billed)


async def _read_twice(
    record: QuestionRecord,
    documents: Sequence[OutcomeDocument],
    readers: Sequence[OutcomeReader],
    times: QuestionTimes,
    problems: Sequence[str],
) -> OutcomeProposal:
    question, sharpening = record.standing.question, record.standing.sharpening
    if not documents:
        status: NoOutcome = "cannot tell" if times.over else "not yet"
        return _nothing(times.now, status, "; ".join(["no text was found", *problems]))
    rules = "" if sharpening is None else "\n".join([*sharpening.edge_cases, sharpening.no_means]).strip()
    two = list(readers[:2]) if len(readers) > 1 else [readers[0], readers[0]]
    results = await asyncio.gather(
        *(read_documents(question, rules, documents, times, reader, number) for number, reader in enumerate(two))
    )
    proposal = agreed(question, [reading for reading, _ in results], times)
    return replace(proposal, billed=sum(billed for _, billed in results))


def agreed(question: Question, readings: Sequence[SourceReading], times: QuestionTimes) -> OutcomeProposal:
    """Return what follows from two readings: what both say, if it passes the checks of each; otherwise nothing."""
    faults = [fault_of(reading, question, times) for reading in readings]
    stored = [as_record(reading, question, fault) for reading, fault in zip(readings, faults, strict=True)]
    for reading, fault in zip(readings, faults, strict=True):
        if fault:
            return _nothing(times.now, "cannot tell", f"{reading.reader}: {fault}", stored)
    first = readings[0]
    if any(reading.verdict != first.verdict for reading in readings):
        said = " and ".join(
            f"{reading.reader} says {row.outcome}" for reading, row in zip(readings, stored, strict=True)
        )
        return _nothing(times.now, "cannot tell", f"the readings differ: {said}", stored)
    if first.status in ("not yet", "cannot tell"):
        return _nothing(times.now, first.status, first.why, stored)
    if fault := support_fault(readings):
        return _nothing(times.now, "cannot tell", fault, stored)
    if first.status != "decided":
        return _nothing(times.now, first.status, first.why, stored)
    return _proposal(times.now, _outcome(question, first), "two readings agree", stored)


def _outcome(question: Question, reading: SourceReading) -> dict[str, int]:
    thresholds = thresholds_of(question)
    if thresholds is None or reading.value is None:
        return {target.id: int(target.id in reading.true) for target in question.targets}
    return passed_thresholds(thresholds, reading.value)


async def find_documents(
    record: QuestionRecord, sources: OutcomeSources, times: QuestionTimes
) -> tuple[list[OutcomeDocument], list[str]]:
    """Return the texts that may decide a question, the deciding source first, and what could not be read."""
    deciding, hosts = _deciding(record)
    found = {document.url: _judged(document, deciding, hosts) for document in sources.documents}
    problems: list[str] = []
    live = AsOf(at=times.now, mode="live")

    async def add(url: str, title: str = "", published: datetime | None = None) -> None:
        if url in found or sources.pages is None:
            return
        try:
            page = await sources.pages.fetch(url, live)
        except (PageUnavailable, SourceError) as error:
            problems.append(str(error)[:200])
            return
        document = OutcomeDocument(
            url=url,
            title=page.title or title,
            text=page.text[:LONGEST_DOCUMENT],
            read_at=times.now,
            published=page.published or published,
        )
        found[url] = _judged(document, deciding, hosts)

    for url in deciding:
        await add(url)
    for hit in await _search(record.standing.question, sources.engine, live, problems):
        if (text := await _whole_text(hit, sources.engine, live)) and hit.url not in found:
            document = OutcomeDocument(
                url=hit.url, title=hit.title, text=text, read_at=times.now, published=hit.published
            )
            found[hit.url] = _judged(document, deciding, hosts)
        elif len(found) < MOST_DOCUMENTS:
            await add(hit.url, hit.title, hit.published)
    news = [piece for look in reversed(record.looks) if look.bears for piece in look.news if piece.url]
    for piece in news[:MOST_NEWS]:
        await add(piece.url, published=piece.published)
    # What is older than the question cannot report its outcome; the source that decides is read anyway.
    fresh = [
        document
        for document in found.values()
        if document.deciding or document.published is None or document.published >= times.opened
    ]
    return sorted(fresh, key=lambda document: not document.deciding)[:MOST_DOCUMENTS], problems


def _deciding(record: QuestionRecord) -> tuple[list[str], set[str]]:
    """Return the addresses of the source that decides a question, and the sites that it names."""
    question, sharpening = record.standing.question, record.standing.sharpening
    named = sharpening.decides if sharpening is not None else ""
    # Criteria also link to examples and definitions: only a sentence about the source names it.
    named = named or " ".join(part for part in _SENTENCE.split(question.criteria) if _ABOUT_SOURCE.search(part))
    urls = list(dict.fromkeys(_ADDRESS.findall(named)))[:3]
    hosts = {host.lower().removeprefix("www.") for host in _HOST.findall(_ADDRESS.sub(" ", named))}
    return urls, hosts


def _judged(document: OutcomeDocument, urls: Sequence[str], hosts: set[str]) -> OutcomeDocument:
    """Return a document marked as deciding if the question names its address or its site."""
    site = document.site
    named = document.url in urls or any(site == host or site.endswith(f".{host}") for host in hosts)
    return replace(document, deciding=document.deciding or (named and bool(site)))


async def _search(
    question: Question, engine: SearchEngine | None, live: AsOf, problems: list[str]
) -> Sequence[SearchHit]:
    if engine is None:
        return ()
    try:
        return await engine.search(" ".join(question.text.split())[:200], live, SEARCHED)
    except (CannotSearch, SourceError) as error:
        problems.append(f"{engine.name}: {error}"[:200])
        return ()


async def _whole_text(hit: SearchHit, engine: SearchEngine | None, live: AsOf) -> str:
    """Return the text of a result, if the engine has it."""
    if not hit.text and isinstance(engine, DocumentSource):
        document = await engine.document(hit.url, live)
        return "" if document is None else (document.text or "")[:LONGEST_DOCUMENT]
    return (hit.text or "")[:LONGEST_DOCUMENT]
