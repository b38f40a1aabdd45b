"""How much of a score could be leakage: the fenced run beside one without tools and one without a fence.

The bound. Let C, F, U be the losses (Brier) without tools, fenced and unfenced, and P that of a fence without any hole.
Only questions that saw a leak can have profited from one: their share is τ. On those, if seeing more of the future does
not hurt (U ≤ F) and honest research does not hurt (P ≤ C), what leaks were worth is P − F ≤ P − U ≤ C − U. If a leak is
worth no more on them than the whole lifted fence on the average question, the run owes to leaks at most

    τ · mean(C − U),

and both factors enter at the upper ends of their 95 % intervals, everything undecided counted as a leak. Should the
unfenced run have come out worse than the fenced one, C − F takes the place of C − U: P − F ≤ C − F needs only P ≤ C.
What the model remembers is in C as much as in F and drops out of the lead C − F. What auditor and filter overlook
together is not in the bound: that is why the auditor must be another model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from typing import Literal

import numpy as np

from foretell.metrics.bootstrap import Resampling
from foretell.metrics.comparison import Comparison
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.report.numbers import signed
from foretell.scoring.join import ReadOptions, read_table
from foretell.scoring.long_tables import Row, forecast_rows, outcome_rows
from foretell.scoring.score import ScoringOptions, compare_pair
from foretell.scoring.table import ForecastTable
from foretell.scoring.table_input import TableSource
from foretell.studies.audit.material import MaterialAudit
from foretell.studies.audit.passages import QuestionKey

AuditArm = Literal["fenced", "closed-book", "unfenced"]
PAIRS = (("fenced", "closed-book"), ("unfenced", "fenced"), ("unfenced", "closed-book"))


@dataclass(frozen=True, kw_only=True)
class ArmDifference:
    """One arm against another on the targets that every arm answered."""

    first: str
    second: str
    brier: Comparison
    """first − second; negative is better for the first."""
    index: Comparison
    """The same in points of the Brier index; positive is better for the first."""


@dataclass(frozen=True, kw_only=True)
class LeakExposure:
    """How many questions may have profited from a leak."""

    share: float
    at_most: float
    """Upper end of its 95 % interval."""
    touched: frozenset[QuestionKey] = frozenset()
    whole: bool = True
    """Whether every text was judged, so that `touched` is complete."""


@dataclass(frozen=True, kw_only=True)
class LeakBound:
    """What leaks can have been worth at most, as a mean over all questions."""

    brier: float
    index: float
    """The same in points of the Brier index, at the fenced run's level."""
    share_of_lead: float | None
    """None where there is no lead over closed-book to explain."""


@dataclass(frozen=True, kw_only=True)
class LeakageEstimate:
    """The arms beside each other, and what follows."""

    n: int
    """Targets that every arm answered."""
    exposure: LeakExposure
    lead: ArmDifference | None = None
    """fenced against closed-book: what research is worth."""
    gain: ArmDifference | None = None
    """unfenced against fenced: what the fence keeps out."""
    future: ArmDifference | None = None
    """unfenced against closed-book: what research and the future are worth together."""
    untouched: ArmDifference | None = None
    """The lead on the questions that saw no leak: free of search leakage, but a choice of questions."""
    bound: LeakBound | None = None
    fenced_brier: float = field(default=float("nan"))

    def __str__(self) -> str:
        """What it means, in a few sentences."""
        sentences: list[str] = []
        if self.lead is not None:
            lead = _better(self.lead.brier)
            sentences.append(f"On {self.n} targets the fenced run is better than closed-book by {lead} of Brier score.")
        if self.lead is not None and self.future is not None and self.bound is not None:
            sentences += self._bound_sentences(self.lead, self.future, self.bound)
        if self.untouched is not None and self.exposure.touched:
            gap = self.untouched.brier
            sentences.append(f"On the {gap.n} targets whose questions saw none, the lead is {_better(gap)}.")
        return " ".join(sentences)

    def _bound_sentences(self, lead: ArmDifference, future: ArmDifference, bound: LeakBound) -> list[str]:
        most = (
            f"Undetected leaks can account for at most {bound.brier:.4f} of the score (about {bound.index:.1f} points "
            f"of the Brier index): at most {self.exposure.at_most:.1%} of the questions saw one, and on an average "
            f"question tools and the whole future were worth at most {_worth(lead, future):.4f}."
        )
        if bound.share_of_lead is None:
            return ["There is no lead that leaks would have to explain.", most]
        if -lead.brier.high > bound.brier:
            return [most, "The lead is larger than that, even at the low end of its interval."]
        return [most, f"That could be {min(1.0, bound.share_of_lead):.0%} of the lead: this audit does not clear it."]


def _better(gap: Comparison) -> str:
    """A difference of losses as a lead, with its interval."""
    lead = signed(-gap.diff, 4)
    return f"{lead} [{signed(-gap.high, 4)}, {signed(-gap.low, 4)}]" if isfinite(gap.low) else f"{lead} (no interval)"


def _worth(lead: ArmDifference, future: ArmDifference) -> float:
    """What seeing everything was worth over no tools at most; no less than what the fenced run itself got."""
    ends = (-future.brier.low, -lead.brier.low)
    # Without an interval, as on a single question, anything is possible up to the greatest Brier score.
    return max(0.0, *ends) if all(map(isfinite, ends)) else 1.0


def leak_exposure(audit: MaterialAudit) -> LeakExposure:
    """Which questions a leak may have reached. From a sample only a bound: τ ≤ rate of leaks × texts per question."""
    if not audit.sampled:
        exposed = audit.exposed
        return LeakExposure(share=exposed.share, at_most=exposed.cluster_high, touched=audit.touched)
    texts = audit.shown / max(1, audit.exposed.n)
    open_share = audit.whole.kept.undecided / max(1, audit.whole.kept.n)
    high = open_share + (1 - open_share) * audit.whole.undetected.cluster_high
    # What was found in the sample, and in numbers, which are always checked, counts on top.
    return LeakExposure(
        share=min(1.0, audit.whole.undetected_at_most * texts),
        at_most=min(1.0, high * texts + audit.exposed.share),
        touched=audit.touched,
        whole=False,
    )


def estimate_leakage(
    arms: Mapping[AuditArm, Sequence[Forecast]],
    asked: Sequence[Question],
    outcomes: TableSource,
    exposure: LeakExposure,
    resampling: Resampling | None = None,
) -> LeakageEstimate:
    """Paired differences of the arms that are there, and with all three of them the bound.

    Every arm has one forecast per question; `outcomes` is a table as `foretell score` reads it.
    """
    scoring = ScoringOptions(anchors=False, resampling=resampling or Resampling(draws=2000))
    named = [replace(one, forecaster=arm) for arm, forecasts in arms.items() for one in forecasts]
    rows = forecast_rows(named, asked)
    table = _common(rows, outcomes)
    gaps = {pair: _gap(table, pair, scoring) for pair in PAIRS if set(pair) <= set(table.forecasters)}
    lead, gain, future = (gaps.get(pair) for pair in PAIRS)
    p = table.p_of("fenced")
    there = np.isfinite(p)
    loss = float(np.average((p - table.targets.outcome)[there] ** 2, weights=table.targets.weight[there]))
    untouched = bound = None
    if lead is not None and exposure.whole:
        untouched = _clean_lead(_spared(rows, asked, exposure), outcomes, scoring)
    if lead is not None and future is not None:
        # A leak cannot have taken the run below a loss of zero, nor can the clean loss exceed one.
        most, ahead = min(exposure.at_most * _worth(lead, future), 1.0 - loss), -lead.brier.diff
        index = 100 * (sqrt(loss + most) - sqrt(loss))
        bound = LeakBound(brier=most, index=index, share_of_lead=most / ahead if ahead > 0 else None)
    return LeakageEstimate(
        n=int(there.sum()),
        exposure=exposure,
        lead=lead,
        gain=gain,
        future=future,
        untouched=untouched,
        bound=bound,
        fenced_brier=loss,
    )


def _common(rows: Sequence[Row], outcomes: TableSource) -> ForecastTable:
    """The arms on the targets that all of them answered and that have resolved."""
    table = read_table(list(rows), outcomes, ReadOptions(drop_unknown=True))
    shared = np.all([np.isfinite(table.p_of(name)) for name in table.forecasters], axis=0)
    if not shared.any():
        raise InputError("the runs share no resolved target", hint="compare runs over the same questions")
    kept = shared[table.target]
    return replace(table, forecaster=table.forecaster[kept], target=table.target[kept], p=table.p[kept])


def _gap(table: ForecastTable, pair: tuple[str, str], scoring: ScoringOptions) -> ArmDifference:
    brier, index = (
        compare_pair(table, *pair, replace(scoring, metric=metric)).differences[0].comparison
        for metric in ("brier", "bi")
    )
    return ArmDifference(first=pair[0], second=pair[1], brier=brier, index=index)


def _spared(rows: Sequence[Row], asked: Sequence[Question], exposure: LeakExposure) -> list[Row]:
    """The rows of questions that saw no leak; the unfenced arm saw them all and has no say here."""
    touched = [question for question in asked if (question.id, question.due.isoformat()) in exposure.touched]
    hit = {(row["question"], row["due"]) for row in outcome_rows(touched, ())}
    return [row for row in rows if (row["question"], row["due"]) not in hit and row["forecaster"] != "unfenced"]


def _clean_lead(rows: Sequence[Row], outcomes: TableSource, scoring: ScoringOptions) -> ArmDifference | None:
    if {row["forecaster"] for row in rows} != {"fenced", "closed-book"}:
        return None
    try:
        return _gap(_common(rows, outcomes), ("fenced", "closed-book"), scoring)
    except InputError:
        return None
