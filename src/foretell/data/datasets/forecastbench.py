"""ForecastBench question sets, resolution sets and submissions, exactly as published."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from foretell.data.datasets.question_set import OutcomeKey, QuestionSet, count_notes, outcome_key
from foretell.data.datasets.rows import Row, read_json, record
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import LastValue, Question, QuestionKind, SeriesRef, Snapshot, Target
from foretell.questions.resolution import Resolution

# The structure of all ForecastBench files: an object with a due date and one long list.


@frozen
class ForecastBenchFile:
    """A published file: the round it belongs to, and its rows."""

    path: Path
    head: Row
    due: datetime
    rows: tuple[Row, ...]

    @property
    def day(self) -> str:
        """The round's due date as published."""
        return self.due.date().isoformat()


def read_forecastbench_file(path: Path, list_name: str) -> ForecastBenchFile:
    """Read the outer structure of a file and check it; rows are checked when they are read."""
    body: Any = read_json(path)
    if not isinstance(body, dict) or not isinstance(body.get(list_name), list):
        raise InputError(
            f"has no list named {list_name!r}", path=path, hint="is this the ForecastBench file you meant?"
        )
    head = Row(path=path, number=0, fields={k: v for k, v in body.items() if k != list_name})
    rows = tuple(record(path, number, value) for number, value in enumerate(body[list_name], start=1))
    return ForecastBenchFile(path=path, head=head, due=_due(head), rows=rows)


def _due(head: Row) -> datetime:
    """Return the due date, stated directly or as part of the question set's file name."""
    stated, named = head.text("forecast_due_date"), head.text("question_set")[:10]
    if stated and named and stated[:10] != named:
        problem = f"forecast_due_date {stated} and question_set {named} name two rounds"
        raise InputError(problem, path=head.path, column="question_set")
    field = "forecast_due_date" if stated or not named else "question_set"
    due = replace(head, fields={field: stated or named}).get_datetime(field)
    if due is None:
        raise InputError("has no forecast due date", path=head.path, column="forecast_due_date")
    return due


def question_identity(row: Row) -> tuple[str, Row] | None:
    """Return the id '<source>/<id>' and the row with that name for its errors; None for a combination question."""
    if isinstance(row.need("id"), list):
        return None
    question_id = f"{row.need_text('source')}/{row.text('id')}"
    return question_id, row.named(f"question {question_id}")


# The templates of ForecastBench questions, recognised by their wording.

MARKETS = ("infer", "manifold", "metaculus", "polymarket")
SERIES = ("dbnomics", "fred", "yfinance")
NOT_APPLICABLE = "N/A"

WORDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "acled": (("more than ten times as many", "10x_spike"), ("will there be more ", "increase")),
    "wikipedia": (
        ("vaccine have been developed", "vaccine"),
        ("elo rating", "fide_elo"),
        ("fide ranking", "fide_rank"),
        ("world record", "swimming"),
    ),
}


def subtype_of(source: str, kind: QuestionKind, text: str) -> str:
    """Return the question's template within its source; 'other' for an unknown wording.

    >>> subtype_of("acled", "dataset", "Will there be more 'Riots' in Monaco for the 30 days before …")
    'increase'
    >>> subtype_of("fred", "dataset", "Will … have increased by …?"), subtype_of("infer", "market", "…")
    ('all', 'market')
    """
    if kind == "market":
        return "market"
    wordings = WORDINGS.get(source)
    if wordings is None:
        return "all"
    lowered = text.lower()
    return next((subtype for words, subtype in wordings if words in lowered), "other")


def series_of(source: str, question_id: str, url: str, text: str, frozen: float | None) -> SeriesRef | None:
    """Return the series that decides the question, and the comparison, if there is one that can be looked up.

    Args:
        source: For the three sources that are series, the question is whether the value rises after the due date.
        question_id: As published. DBnomics ids have '_' for '/', which cannot be undone in general, so the page's
            address is read instead.
        url: The page of the series.
        text: The wording, which says what is counted for ACLED and for Wikipedia's tables.
        frozen: The value at the freeze, from which the threshold for ACLED and Wikipedia is computed.

    >>> series_of("dbnomics", "meteofrance_TEMPERATURE_celsius.07607.D",
    ...           "https://db.nomics.world/meteofrance/TEMPERATURE/celsius.07607.D", "", None).id
    'meteofrance/TEMPERATURE/celsius.07607.D'
    >>> series_of("acled", "9d48", "", "Will there be more 'Riots' in Monaco for the 30 days before …", 1.5)
    SeriesRef(provider='acled', id='Monaco/Riots/30 days', comparison='above', threshold=1.5)
    """
    if source in SERIES:
        path = urlsplit(url).path.strip("/")
        known = source == "dbnomics" and path.replace("/", "_") == question_id
        return SeriesRef(provider=source, id=path if known else question_id, comparison="above")
    for wording in LOOKED_UP.get(source, ()):
        match = wording.words.search(text[:LONGEST_WORDING])
        level = wording.level if wording.level is not None or frozen is None else wording.scale * frozen + wording.plus
        if match is not None and level is not None:
            id = wording.id.format(**{name: part.strip("'") for name, part in match.groupdict().items()})
            return SeriesRef(provider=source, id=id, comparison=wording.comparison, threshold=level)
    return None


@frozen
class LookedUp:
    """A wording of questions whose value is found in a series, and the threshold it is compared with."""

    words: re.Pattern[str]
    id: str
    """Id of the series, with placeholders for the named groups of the wording."""
    comparison: Literal["above", "below"] = "above"
    scale: float = 1.0
    plus: float = 0.0
    """The threshold is `scale` times the frozen value plus this."""
    level: float | None = None
    """Fixed threshold, used instead of one computed from the frozen value."""


LONGEST_WORDING = 1_000
_CONFLICTS = r"(?P<what>'[^']{1,60}'|fatalities) in (?P<country>.{1,80}?) for the (?P<days>\d{1,3}) days before"
LOOKED_UP: dict[str, tuple[LookedUp, ...]] = {
    "acled": (
        # The frozen value of these already is one plus the average.
        LookedUp(
            words=pattern(f"more than ten times as many {_CONFLICTS}"), id="{country}/{what}/{days} days", scale=10.0
        ),
        LookedUp(words=pattern(f"[Ww]ill there be more {_CONFLICTS}"), id="{country}/{what}/{days} days"),
    ),
    "wikipedia": (
        LookedUp(
            words=pattern(r"will (?P<player>.{1,80}?) have an Elo rating on .{1,80}? at least 1% higher"),
            id="FIDE rankings/{player}/Rating",
            scale=1.01,
        ),
        # An unchanged rank counts, and a better one is a smaller number.
        LookedUp(
            words=pattern(r"will (?P<player>.{1,80}?) have a FIDE ranking on .{1,80}? as high or higher"),
            id="FIDE rankings/{player}/Rank",
            comparison="below",
            plus=0.5,
        ),
        LookedUp(
            words=pattern(r"will a vaccine have been developed for (?P<disease>.{1,80}?) by "),
            id="List of infectious diseases/{disease}/Vaccine",
            level=0.5,
        ),
    ),
}


def filled(text: str, *, due: str, resolution: str = "the resolution date") -> str:
    """Replace the two placeholders of a question's text.

    >>> filled("Up by {resolution_date} since {forecast_due_date}?", due="2025-10-26")
    'Up by the resolution date since 2025-10-26?'
    """
    return text.replace("{forecast_due_date}", due).replace("{resolution_date}", resolution)


# Question sets: the questions of a round, with the market price at the freeze, and no outcomes.

YES = "yes"
"""The only target of a market question."""


def read_question_set(path: str | Path) -> QuestionSet:
    """Read `<due>-llm.json`. Combination questions (a list as id) are dropped and counted, as on the leaderboard."""
    document = read_forecastbench_file(Path(path), "questions")
    counts: Counter[str] = Counter()
    questions: dict[str, Question] = {}
    for row in document.rows:
        named = question_identity(row)
        if named is None:
            counts["combination questions dropped"] += 1
            continue
        question = _question(document, *named)
        if question.id not in questions:
            questions[question.id] = question
        elif questions[question.id] == question:
            counts["repeated questions dropped"] += 1
        else:
            raise named[1].problem("id", "is asked twice in this file with different content")
    return QuestionSet(
        name=f"forecastbench {document.day}", questions=tuple(questions.values()), notes=count_notes(counts)
    )


def _question(document: ForecastBenchFile, question_id: str, row: Row) -> Question:
    kind: QuestionKind = "dataset" if isinstance(row.get("resolution_dates"), list) else "market"
    text = stated(row, "question") or row.need("question")
    source, url, due = row.text("source"), stated(row, "url"), document.day
    value, at = stated(row, "freeze_datetime_value"), _stated_datetime(row, "freeze_datetime")
    meaning = filled(stated(row, "freeze_datetime_value_explanation"), due=due)
    known = "" if kind == "market" or not value or at is None else f"Value known on {at.date().isoformat()}: {value}."
    criteria = (stated(row, "resolution_criteria"), stated(row, "market_info_resolution_criteria"))
    background = filled(stated(row, "background"), due=due)
    return row.reading(
        "question",
        lambda: Question(
            id=question_id,
            source=source,
            kind=kind,
            subtype=subtype_of(source, kind, text),
            text=filled(text, due=due),
            due=document.due,
            targets=dated_targets(row.need_datetimes("resolution_dates"), text, due)
            if kind == "dataset"
            else (market_target(row, "freeze_datetime_value", at),),
            criteria=filled(paragraphs(*criteria), due=due),
            # For data-set questions also the last value known at the freeze, with its date.
            background=paragraphs(background, f"{known} {meaning}".strip() if known else ""),
            last_value=None if kind == "market" else _last_value(value, at, meaning),
            opens_at=_stated_datetime(row, "market_info_open_datetime"),
            closes_at=_stated_datetime(row, "market_info_close_datetime"),
            url=url,
            series=None if kind == "market" else series_of(source, row.text("id"), url, text, _real(value)),
        ),
    )


def dated_targets(dates: Iterable[datetime], text: str, due: str) -> tuple[Target, ...]:
    """Return one target per resolution date; the label is the question's first paragraph with that date in it."""
    first = text.split("\n\n")[0]
    days = [(resolves_at, resolves_at.date().isoformat()) for resolves_at in dates]
    return tuple(
        Target(id=day, label=filled(first, due=due, resolution=day), resolves_at=resolves_at)
        for resolves_at, day in days
    )


def market_target(row: Row, column: str, at: datetime | None) -> Target:
    """Return the only target of a market question with the market price, if any; when it ends is unknown."""
    price = None if stated(row, column) == "" else row.real(column)
    if price is None or at is None:
        return Target(id=YES)
    return Target(id=YES, snapshot=row.reading(column, lambda: Snapshot(at=at, last_price=price)))


def _last_value(text: str, at: datetime | None, meaning: str) -> LastValue | None:
    """Return the value at the freeze as a number; some sources freeze a word, which is only in the background."""
    value = _real(text)
    return LastValue(value=value, at=at, meaning=meaning) if at is not None and value is not None else None


def _real(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def stated(row: Row, field: str) -> str:
    """Return the text of a field; empty if it is "not applicable"."""
    text = row.text(field)
    return "" if text == NOT_APPLICABLE else text


def paragraphs(*parts: str) -> str:
    """Join the non-empty parts with blank lines."""
    return "\n\n".join(filter(None, parts))


def _stated_datetime(row: Row, field: str) -> datetime | None:
    return None if stated(row, field) == "" else row.get_datetime(field)


# Resolution sets: the outcomes of a round so far. The files are rewritten in place, so versions are compared too.

UNRESOLVED = "rows not resolved yet: they have a market price, not an outcome"
AMBIGUOUS = "rows resolved to neither 0 nor 1: no outcome"
CONTRADICTORY = "rows that contradict an earlier row of the file: no outcome"


@frozen
class ResolutionRevision:
    """An outcome that a later version of a resolution set changed."""

    key: OutcomeKey
    before: int
    after: int | None


def read_resolution_set(path: str | Path) -> QuestionSet:
    """Read `<due>_resolution_set.json`: outcomes without their questions.

    A row that is not resolved becomes a `Resolution` without an outcome, whatever price it has.
    """
    document = read_forecastbench_file(Path(path), "resolutions")
    counts: Counter[str] = Counter()
    resolutions: dict[OutcomeKey, Resolution] = {}
    for row in document.rows:
        named = question_identity(row)
        if named is None:
            counts["combination rows dropped"] += 1
            continue
        _add(resolutions, _resolution(document, *named, counts), counts)
    return QuestionSet(
        name=f"forecastbench {document.day}", resolutions=tuple(resolutions.values()), notes=count_notes(counts)
    )


def resolution_revisions(old: Iterable[Resolution], new: Iterable[Resolution]) -> tuple[ResolutionRevision, ...]:
    """Return the targets whose outcome in the old version is different or missing in the new one.

    A target resolved for the first time is not a revision; one that is no longer in the file is ignored.
    """
    before = {outcome_key(r): r.outcome for r in old if r.outcome is not None}
    later = {outcome_key(r): r.outcome for r in new}
    return tuple(
        ResolutionRevision(key=key, before=outcome, after=later[key])
        for key, outcome in before.items()
        if key in later and later[key] != outcome
    )


def _resolution(document: ForecastBenchFile, question_id: str, row: Row, counts: Counter[str]) -> Resolution:
    resolves_at = row.need_datetime("resolution_date")
    return Resolution(
        question_id=question_id,
        target_id=YES if row.text("source") in MARKETS else resolves_at.date().isoformat(),
        due=document.due,
        outcome=read_outcome(row, "resolved_to", counts),
        resolved_at=resolves_at if row.flag("resolved") else None,
        provenance=document.path.name,
    )


def read_outcome(row: Row, column: str, counts: Counter[str]) -> int | None:
    """Return 0 or 1; None, which is counted, for a row that is open or resolved to neither."""
    if not row.need_flag("resolved"):
        counts[UNRESOLVED] += 1
        return None
    value = row.real(column)
    if value not in (0.0, 1.0):
        counts[AMBIGUOUS] += 1
        return None
    return int(value)


def _add(resolutions: dict[OutcomeKey, Resolution], resolution: Resolution, counts: Counter[str]) -> None:
    """Keep one row per key. If a file contradicts itself, the outcome is unknown, so there is none."""
    earlier = resolutions.setdefault(outcome_key(resolution), resolution)
    if earlier is resolution:
        return
    if earlier.outcome == resolution.outcome:
        counts["repeated rows dropped"] += 1
        return
    counts[CONTRADICTORY] += 1
    resolutions[outcome_key(resolution)] = replace(earlier, outcome=None, resolved_at=None)


# Whole rounds: questions joined with their known outcomes.


def question_file(day: str) -> str:
    """Return the published path of a round's questions, below the root of the data sets."""
    return f"question_sets/{day}-llm.json"


def resolution_file(day: str) -> str:
    """Return the published path of a round's outcomes."""
    return f"resolution_sets/{day}_resolution_set.json"


def read_round(questions: str | Path, resolutions: str | Path | None = None) -> QuestionSet:
    """Read one round from its question file and, if given, its resolution file."""
    question_set = read_question_set(questions)
    return question_set if resolutions is None else join_round(question_set, read_resolution_set(resolutions))


def join_round(question_set: QuestionSet, outcomes: QuestionSet) -> QuestionSet:
    """Join questions with their outcomes; rows that belong to no question are dropped and counted."""
    if outcomes.resolutions and question_set.questions and outcomes.resolutions[0].due != question_set.questions[0].due:
        raise InputError(f"the outcomes are of {outcomes.name}, the questions of {question_set.name}")
    targets = {q.id: {t.id for t in q.targets} for q in question_set.questions}
    counts: Counter[str] = Counter()
    known = [r for r in outcomes.resolutions if r.target_id in targets.get(r.question_id, ())]
    for resolution in outcomes.resolutions:
        if resolution.question_id not in targets:
            counts["outcomes without a question dropped"] += 1
        elif resolution.target_id not in targets[resolution.question_id]:
            counts["outcomes for a date that was not asked dropped"] += 1
    return replace(
        question_set, resolutions=tuple(known), notes=question_set.notes + outcomes.notes + count_notes(counts)
    )


# Submissions: a method's published forecasts for one round.


@frozen
class ForecastBenchSubmission:
    """One forecast per question, with one probability per target."""

    organization: str
    model: str
    due: datetime
    forecasts: tuple[Forecast, ...]
    notes: tuple[str, ...] = ()

    @property
    def forecaster(self) -> str:
        """Name as shown in tables."""
        return f"{self.organization}:{self.model}"


def read_submission(path: str | Path) -> ForecastBenchSubmission:
    """Read a submission file. Missing forecasts are counted, never filled in."""
    document = read_forecastbench_file(Path(path), "forecasts")
    counts: Counter[str] = Counter()
    probabilities: dict[str, dict[str, float]] = {}
    rationales: dict[str, str] = {}
    for line in document.rows:
        named = question_identity(line)
        if named is None:
            counts["forecasts of combination questions dropped"] += 1
            continue
        id, row = named
        target, p = _target(row), row.real("forecast")
        if p is None:
            counts["rows without a forecast"] += 1
            continue
        if not 0 <= p <= 1:
            raise row.problem("forecast", f"{p} is outside [0, 1]", "write 0.12 for 12 %")
        forecasts = probabilities.setdefault(id, {})
        if forecasts.setdefault(target, p) != p:
            raise row.problem("forecast", f"target {target} is forecast twice, {forecasts[target]} and {p}")
        rationales[id] = rationales.get(id) or row.text("reasoning")
    organization, model = str(document.head.need("organization")), str(document.head.need("model"))
    as_of = AsOf.day(document.due.date())
    forecasts = tuple(
        Forecast(question_id=id, forecaster=f"{organization}:{model}", as_of=as_of, p=p, rationale=rationales[id])
        for id, p in probabilities.items()
    )
    return ForecastBenchSubmission(
        organization=organization, model=model, due=document.due, forecasts=forecasts, notes=count_notes(counts)
    )


def _target(row: Row) -> str:
    """Return the target of a row. A market has one target whatever the date; a data-set row must state its date."""
    if row.text("source") in MARKETS:
        return YES
    resolves_at = _stated_datetime(row, "resolution_date")
    if resolves_at is None:
        raise row.problem("resolution_date", "is missing", "only market questions have no date")
    return resolves_at.date().isoformat()
