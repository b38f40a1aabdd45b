"""ForecastBench: question sets, resolution sets and submissions, exactly as they are published."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from foretell.data.datasets.question_set import OutcomeKey, QuestionSet, count_notes, outcome_key, union
from foretell.data.datasets.rows import Row, read_json, record
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import LastValue, Question, QuestionKind, SeriesRef, Snapshot, Target
from foretell.questions.resolution import Resolution

# The frame all ForecastBench files share: an object with a due date and one long list.


@dataclass(frozen=True, kw_only=True)
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
    """Read the frame of a file and check it; rows are checked by whoever reads them."""
    body: Any = read_json(path)
    if not isinstance(body, dict) or not isinstance(body.get(list_name), list):
        raise InputError(
            f"has no list named {list_name!r}", path=path, hint="is this the ForecastBench file you meant?"
        )
    head = Row(path=path, number=0, fields={k: v for k, v in body.items() if k != list_name})
    rows = tuple(record(path, number, value) for number, value in enumerate(body[list_name], start=1))
    return ForecastBenchFile(path=path, head=head, due=_due(head), rows=rows)


def _due(head: Row) -> datetime:
    """The due date, named outright or by the question set's file name."""
    told = head.text("forecast_due_date")
    named = head.text("question_set")[:10]
    field = "forecast_due_date" if told else "question_set"
    if told and named and told[:10] != named:
        problem = f"forecast_due_date {told} and question_set {named} name two rounds"
        raise InputError(problem, path=head.path, column="question_set")
    try:
        due = Row(path=head.path, number=0, fields={field: told or named}).moment(field)
    except InputError as error:
        raise InputError(error.problem, path=head.path, column=field) from None
    if due is None:
        raise InputError("names no forecast due date", path=head.path, column="forecast_due_date")
    return due


def question_identity(row: Row) -> tuple[str, Row] | None:
    """The question's id as '<source>/<id>' and the row that says so in its errors; None for a combination."""
    if isinstance(row.need("id"), list):
        return None
    question_id = f"{row.text('source') or row.need('source')}/{row.text('id')}"
    return question_id, Row(path=row.path, number=row.number, fields=row.fields, name=f"question {question_id}")


# The templates behind ForecastBench questions: which kind of thing is asked, told by the wording.

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
    """The question's template within its source; 'other' where the wording is new.

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


def series_of(source: str, question_id: str, url: str) -> SeriesRef | None:
    """The series whose rise since the due date decides the question, for the three sources that are series.

    DBnomics ids are published with '_' for '/', which cannot be undone in general, so the page's address is read.

    >>> series_of("dbnomics", "meteofrance_TEMPERATURE_celsius.07607.D",
    ...           "https://db.nomics.world/meteofrance/TEMPERATURE/celsius.07607.D").id
    'meteofrance/TEMPERATURE/celsius.07607.D'
    """
    if source not in SERIES:
        return None
    path = urlsplit(url).path.strip("/")
    known = source == "dbnomics" and path.replace("/", "_") == question_id
    return SeriesRef(provider=source, id=path if known else question_id, comparison="above")


def filled(text: str, *, due: str, resolution: str = "the resolution date") -> str:
    """A question's text with its two placeholders replaced.

    >>> filled("Up by {resolution_date} since {forecast_due_date}?", due="2025-10-26")
    'Up by the resolution date since 2025-10-26?'
    """
    return text.replace("{forecast_due_date}", due).replace("{resolution_date}", resolution)


# Question sets: what is asked in a round, with the crowd's price at the freeze, and no answer.

YES = "yes"
"""The only target of a market question."""


def read_question_set(path: str | Path) -> QuestionSet:
    """Read `<due>-llm.json`. Combination questions (a list as id) are dropped and counted, as the leaderboard does."""
    document = read_forecastbench_file(Path(path), "questions")
    counts: Counter[str] = Counter()
    found: dict[str, Question] = {}
    for row in document.rows:
        named = question_identity(row)
        if named is None:
            counts["combination questions dropped"] += 1
            continue
        question = _question(document, *named)
        if question.id not in found:
            found[question.id] = question
        elif found[question.id] == question:
            counts["repeated questions dropped"] += 1
        else:
            raise named[1].problem("id", "is asked twice in this file with different content")
    return QuestionSet(name=f"forecastbench {document.day}", questions=tuple(found.values()), notes=count_notes(counts))


def _question(document: ForecastBenchFile, question_id: str, row: Row) -> Question:
    kind: QuestionKind = "dataset" if isinstance(row.get("resolution_dates"), list) else "market"
    text = _text(row, "question") or row.need("question")
    source, url = row.text("source"), _text(row, "url")
    return row.reading(
        "question",
        lambda: Question(
            id=question_id,
            source=source,
            kind=kind,
            subtype=subtype_of(source, kind, text),
            text=filled(text, due=document.day),
            due=document.due,
            targets=_horizons(document, row, text) if kind == "dataset" else (_market(row),),
            criteria=_criteria(document, row),
            background=_background(document, row, kind),
            last_value=None if kind == "market" else _last_value(document, row),
            opens_at=_moment(row, "market_info_open_datetime"),
            closes_at=_moment(row, "market_info_close_datetime"),
            url=url,
            series=series_of(source, row.text("id"), url),
        ),
    )


def _horizons(document: ForecastBenchFile, row: Row, text: str) -> tuple[Target, ...]:
    """One target per resolution date; the label is the question's first paragraph with that date in it."""
    return tuple(_horizon(document, row, text.split("\n\n")[0], day) for day in row.items("resolution_dates"))


def _horizon(document: ForecastBenchFile, row: Row, text: str, day: Any) -> Target:
    moment = Row(path=row.path, number=row.number, fields={"resolution_dates": day}, name=row.name).moment(
        "resolution_dates"
    )
    if moment is None:
        raise row.problem("resolution_dates", "holds an empty date")
    iso = moment.date().isoformat()
    return Target(id=iso, label=filled(text, due=document.day, resolution=iso), resolves_at=moment)


def _market(row: Row) -> Target:
    """The one target of a market question with the crowd's price at the freeze; when it ends nobody knows."""
    price = None if _text(row, "freeze_datetime_value") == "" else row.real("freeze_datetime_value")
    at = _moment(row, "freeze_datetime")
    if price is None or at is None:
        return Target(id=YES)
    return Target(id=YES, snapshot=row.reading("freeze_datetime_value", lambda: Snapshot(at=at, last_price=price)))


def _criteria(document: ForecastBenchFile, row: Row) -> str:
    parts = (_text(row, "resolution_criteria"), _text(row, "market_info_resolution_criteria"))
    return filled("\n\n".join(filter(None, parts)), due=document.day)


def _background(document: ForecastBenchFile, row: Row, kind: QuestionKind) -> str:
    """The published background; for data-set questions also the last value known at the freeze, with its date."""
    background = filled(_text(row, "background"), due=document.day)
    value, at = _text(row, "freeze_datetime_value"), _moment(row, "freeze_datetime")
    if kind == "market" or not value or at is None:
        return background
    meaning = filled(_text(row, "freeze_datetime_value_explanation"), due=document.day)
    known = " ".join(filter(None, [f"Value known on {at.date().isoformat()}: {value}.", meaning]))
    return "\n\n".join(filter(None, [background, known]))


def _last_value(document: ForecastBenchFile, row: Row) -> LastValue | None:
    """The value at the freeze as a number; some sources freeze a word, which stays in the background alone."""
    at = _moment(row, "freeze_datetime")
    try:
        value = float(_text(row, "freeze_datetime_value"))
    except ValueError:
        return None
    if at is None or not isfinite(value):
        return None
    return LastValue(
        value=value, at=at, meaning=filled(_text(row, "freeze_datetime_value_explanation"), due=document.day)
    )


def _text(row: Row, field: str) -> str:
    text = row.text(field)
    return "" if text == NOT_APPLICABLE else text


def _moment(row: Row, field: str) -> Any:
    return None if _text(row, field) == "" else row.moment(field)


# Resolution sets: how a round came out so far. The files are rewritten in place, so versions are compared too.

UNRESOLVED = "rows not resolved yet: they hold a market price, not an outcome"
AMBIGUOUS = "rows resolved to neither 0 nor 1: no outcome"
CONTRADICTORY = "rows that contradict an earlier row of the file: no outcome"


@dataclass(frozen=True, kw_only=True)
class ResolutionRevision:
    """An outcome that a later version of a resolution set changed."""

    key: OutcomeKey
    before: int
    after: int | None


def read_resolution_set(path: str | Path) -> QuestionSet:
    """Read `<due>_resolution_set.json`: outcomes without their questions.

    A row that is not resolved becomes a `Resolution` without an outcome, whatever price it carries.
    """
    document = read_forecastbench_file(Path(path), "resolutions")
    counts: Counter[str] = Counter()
    found: dict[OutcomeKey, Resolution] = {}
    for row in document.rows:
        named = question_identity(row)
        if named is None:
            counts["combination rows dropped"] += 1
            continue
        _add(found, _resolution(document, *named, counts), counts)
    return QuestionSet(
        name=f"forecastbench {document.day}", resolutions=tuple(found.values()), notes=count_notes(counts)
    )


def resolution_revisions(old: Iterable[Resolution], new: Iterable[Resolution]) -> tuple[ResolutionRevision, ...]:
    """Targets that had an outcome in the old version and have another, or none, in the new one.

    A target resolved for the first time is news, not a revision; one that vanished from the file is not judged.
    """
    before = {outcome_key(r): r.outcome for r in old if r.outcome is not None}
    later = {outcome_key(r): r.outcome for r in new}
    return tuple(
        ResolutionRevision(key=key, before=outcome, after=later[key])
        for key, outcome in before.items()
        if key in later and later[key] != outcome
    )


def _resolution(document: ForecastBenchFile, question_id: str, row: Row, counts: Counter[str]) -> Resolution:
    moment = row.moment("resolution_date")
    if moment is None:
        raise row.problem("resolution_date", "is missing")
    outcome = _outcome(row, counts)
    return Resolution(
        question_id=question_id,
        target_id=YES if row.text("source") in MARKETS else moment.date().isoformat(),
        due=document.due,
        outcome=outcome,
        resolved_at=moment if row.flag("resolved") else None,
        provenance=document.path.name,
    )


def _outcome(row: Row, counts: Counter[str]) -> int | None:
    resolved = row.flag("resolved")
    if resolved is None:
        raise row.problem("resolved", "is missing")
    if not resolved:
        counts[UNRESOLVED] += 1
        return None
    value = row.real("resolved_to")
    if value not in (0.0, 1.0):
        counts[AMBIGUOUS] += 1
        return None
    return int(value)


def _add(found: dict[OutcomeKey, Resolution], resolution: Resolution, counts: Counter[str]) -> None:
    """Keep one row per key. Where a file contradicts itself nobody knows the outcome, so there is none."""
    earlier = found.setdefault(outcome_key(resolution), resolution)
    if earlier is resolution:
        return
    if earlier.outcome == resolution.outcome:
        counts["repeated rows dropped"] += 1
        return
    counts[CONTRADICTORY] += 1
    found[outcome_key(resolution)] = replace(earlier, outcome=None, resolved_at=None)


# Whole rounds: questions joined with what is known of their outcomes.


def question_file(day: str) -> str:
    """The published path of a round's questions, below the data sets' root."""
    return f"question_sets/{day}-llm.json"


def resolution_file(day: str) -> str:
    """The published path of a round's outcomes."""
    return f"resolution_sets/{day}_resolution_set.json"


def read_round(questions: str | Path, resolutions: str | Path | None = None) -> QuestionSet:
    """One round from its question file and, where there is one, its resolution file."""
    asked = read_question_set(questions)
    return asked if resolutions is None else join_round(asked, read_resolution_set(resolutions))


def read_rounds(directory: str | Path, days: Sequence[str] | None = None) -> QuestionSet:
    """All rounds, or the named ones, of a directory that holds `question_sets/` and `resolution_sets/`."""
    root = Path(directory)
    found = sorted(path.name.removesuffix("-llm.json") for path in root.glob("question_sets/????-??-??-llm.json"))
    wanted = found if days is None else list(days)
    missing = [day for day in wanted if day not in found]
    if missing or not wanted:
        problem = f"round {missing[0]} is not there" if missing else "holds no question sets"
        raise InputError(problem, path=root, hint=f"rounds here: {', '.join(found) or 'none'}; see foretell data pull")
    return union("forecastbench", [_round_in(root, day) for day in wanted])


def join_round(asked: QuestionSet, outcomes: QuestionSet) -> QuestionSet:
    """Questions with their outcomes; rows that answer nothing asked are dropped and counted."""
    if outcomes.resolutions and asked.questions and outcomes.resolutions[0].due != asked.questions[0].due:
        raise InputError(f"the outcomes are of {outcomes.name}, the questions of {asked.name}")
    targets = {q.id: {t.id for t in q.targets} for q in asked.questions}
    counts: Counter[str] = Counter()
    kept = [r for r in outcomes.resolutions if r.target_id in targets.get(r.question_id, ())]
    for resolution in outcomes.resolutions:
        if resolution.question_id not in targets:
            counts["outcomes without a question dropped"] += 1
        elif resolution.target_id not in targets[resolution.question_id]:
            counts["outcomes for a date that was not asked dropped"] += 1
    return replace(asked, resolutions=tuple(kept), notes=asked.notes + outcomes.notes + count_notes(counts))


def _round_in(root: Path, day: str) -> QuestionSet:
    outcomes = root / resolution_file(day)
    return read_round(root / question_file(day), outcomes if outcomes.exists() else None)


# Submissions: a method's published forecasts for one round.


@dataclass(frozen=True, kw_only=True)
class ForecastBenchSubmission:
    """One forecast per question, with one probability per target."""

    organization: str
    model: str
    due: datetime
    forecasts: tuple[Forecast, ...]
    notes: tuple[str, ...] = ()

    @property
    def forecaster(self) -> str:
        """As shown in tables."""
        return f"{self.organization}:{self.model}"


@dataclass(kw_only=True)
class _SubmissionRows:
    """The probabilities of one question while its rows are being collected."""

    p: dict[str, float]
    rationale: str = ""


def read_submission(path: str | Path) -> ForecastBenchSubmission:
    """Read a submission file. Missing forecasts are counted, never filled in."""
    document = read_forecastbench_file(Path(path), "forecasts")
    counts: Counter[str] = Counter()
    sheets: dict[str, _SubmissionRows] = {}
    for row in document.rows:
        named = question_identity(row)
        if named is None:
            counts["forecasts of combination questions dropped"] += 1
            continue
        _collect(sheets, *named, counts)
    organization, model = str(document.head.need("organization")), str(document.head.need("model"))
    return ForecastBenchSubmission(
        organization=organization,
        model=model,
        due=document.due,
        forecasts=_forecasts(document, sheets, f"{organization}:{model}"),
        notes=count_notes(counts),
    )


def _collect(sheets: dict[str, _SubmissionRows], question_id: str, row: Row, counts: Counter[str]) -> None:
    target = _target(row)
    p = row.real("forecast")
    if p is None:
        counts["rows without a forecast"] += 1
        return
    if not 0 <= p <= 1:
        raise row.problem("forecast", f"{p} is outside [0, 1]", "write 0.12 for 12 %")
    sheet = sheets.setdefault(question_id, _SubmissionRows(p={}))
    if sheet.p.setdefault(target, p) != p:
        raise row.problem("forecast", f"target {target} is forecast twice, {sheet.p[target]} and {p}")
    sheet.rationale = sheet.rationale or row.text("reasoning")


def _target(row: Row) -> str:
    """A market has one target whatever date a row carries; a data-set row must say for which date it is."""
    if row.text("source") in MARKETS:
        return YES
    moment = None if row.text("resolution_date") == NOT_APPLICABLE else row.moment("resolution_date")
    if moment is None:
        raise row.problem("resolution_date", "is missing", "only market questions go without a date")
    return moment.date().isoformat()


def _forecasts(
    document: ForecastBenchFile, sheets: dict[str, _SubmissionRows], forecaster: str
) -> tuple[Forecast, ...]:
    as_of = AsOf.day(document.due.date())
    return tuple(
        Forecast(question_id=key, forecaster=forecaster, as_of=as_of, p=sheet.p, rationale=sheet.rationale)
        for key, sheet in sheets.items()
    )
