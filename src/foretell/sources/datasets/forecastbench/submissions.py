"""Submissions: a method's published forecasts for one round."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from foretell.questions.clock import AsOf
from foretell.questions.forecast import Forecast
from foretell.sources.datasets.forecastbench.document import Document, identity, read_document
from foretell.sources.datasets.forecastbench.questions import YES
from foretell.sources.datasets.forecastbench.templates import MARKETS, NOT_APPLICABLE
from foretell.sources.datasets.question_set import tally
from foretell.sources.datasets.row import Row


@dataclass(frozen=True, kw_only=True)
class Submission:
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
class _Sheet:
    """The probabilities of one question while its rows are being collected."""

    p: dict[str, float]
    rationale: str = ""


def read_submission(path: str | Path) -> Submission:
    """Read a submission file. Missing forecasts are counted, never filled in."""
    document = read_document(Path(path), "forecasts")
    counts: Counter[str] = Counter()
    sheets: dict[str, _Sheet] = {}
    for row in document.rows:
        named = identity(row)
        if named is None:
            counts["forecasts of combination questions dropped"] += 1
            continue
        _collect(sheets, *named, counts)
    organization, model = str(document.head.need("organization")), str(document.head.need("model"))
    return Submission(
        organization=organization,
        model=model,
        due=document.due,
        forecasts=_forecasts(document, sheets, f"{organization}:{model}"),
        notes=tally(counts),
    )


def _collect(sheets: dict[str, _Sheet], question_id: str, row: Row, counts: Counter[str]) -> None:
    target = _target(row)
    p = row.real("forecast")
    if p is None:
        counts["rows without a forecast"] += 1
        return
    if not 0 <= p <= 1:
        raise row.problem("forecast", f"{p} is outside [0, 1]", "write 0.12 for 12 %")
    sheet = sheets.setdefault(question_id, _Sheet(p={}))
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


def _forecasts(document: Document, sheets: dict[str, _Sheet], forecaster: str) -> tuple[Forecast, ...]:
    as_of = AsOf.day(document.due.date())
    return tuple(
        Forecast(question_id=key, forecaster=forecaster, as_of=as_of, p=sheet.p, rationale=sheet.rationale)
        for key, sheet in sheets.items()
    )
