"""The default rule, taught by a forecaster's forecasts in earlier runs and their outcomes.

No forecaster and no tool may import this module.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime

import numpy as np

from foretell.forecasters.base_rates.rates import Rates
from foretell.forecasters.combine.default import UNTAUGHT, DefaultMethod, FittedDefault
from foretell.forecasters.combine.rows import Examples, TrialRows, rows_of_question, stacked
from foretell.forecasters.combine.rules import Training
from foretell.forecasters.combine.trials import PANEL
from foretell.metrics.arrays import Floats
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.runs.combine import CombinationSettings, combining_by_name
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.past import StoredRates
from foretell.runs.spec import RunSpec, spec_from_json
from foretell.runs.store import RunRow, RunStore

TAUGHT = "default"
"""The name of the combination that learns."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DefaultByDay:
    """The default rule as of each day: every question is combined by what was known before it was asked."""

    examples: Examples
    training: Training = field(default_factory=Training)
    """Empty: what is learnt differs from day to day and never includes the day itself."""
    _fitted: dict[np.datetime64, FittedDefault] = field(default_factory=dict[np.datetime64, FittedDefault], repr=False)

    def on(self, day: np.datetime64) -> FittedDefault:
        """The rule of a day; without any example, the rule before it has learnt anything."""
        if day not in self._fitted:
            known = self.examples.known_before(day)
            self._fitted[day] = DefaultMethod().fit(known) if len(known) else UNTAUGHT
        return self._fitted[day]

    def probabilities(self, rows: TrialRows) -> Floats:
        """Each row combined by the rule of its day."""
        p = np.full(len(rows), np.nan)
        for day in np.unique(rows.due):
            now = rows.due == day
            p[now] = self.on(day).probabilities(rows.take(now))
        return p


def combining_of_run(store: RunStore, spec: RunSpec, rates: Rates | None = None) -> CombinationSettings:
    """How to combine a run's trials according to its spec; the default rule learns from earlier runs."""
    how = combining_by_name(spec.combine, rates)
    if spec.combine != TAUGHT:
        return how
    examples = past_trials(store, spec)
    return how if examples is None else replace(how, fitted=DefaultByDay(examples=examples))


def combining_of_row(store: RunStore, row: RunRow, rates: Rates | None = None) -> CombinationSettings:
    """The same for a stored run. If this version cannot read the spec, only its combination is used."""
    spec = _spec(row)
    return combining_by_name(_aggregate(row), rates) if spec is None else combining_of_run(store, spec, rates)


def _aggregate(row: RunRow) -> str:
    return row.spec.get("aggregate") or "logit-mean"


def _spec(row: RunRow | None) -> RunSpec | None:
    try:
        return None if row is None else spec_from_json(row.spec)
    except InputError:
        return None


def past_trials(store: RunStore, spec: RunSpec) -> Examples | None:
    """Trials of the same forecaster and model in any run, with known outcomes; None if there are none."""
    outcomes, found = RunOutcomes(store), list[tuple[TrialRows, list[tuple[float, date]]]]()
    for run in outcomes.count():
        other = _spec(store.run(run))
        if other is not None and _same(other, spec):
            rates = StoredRates(table=store.rates(run))
            told = {(one.question_id, one.due, one.target_id): one for one in outcomes.of(run)}
            found += _resolved(store.answers(run), store.questions(run), told, rates if rates.table else None)
    if not found:
        return None
    answers = [answer for _, targets in found for answer in targets]
    return Examples(
        rows=stacked([rows for rows, _ in found]),
        outcome=np.array([outcome for outcome, _ in answers], np.float64),
        known_on=np.array([day for _, day in answers], "M8[D]"),
        weight=np.ones(len(answers)),
    )


def _same(one: RunSpec, other: RunSpec) -> bool:
    """Whether two runs show the skill of the same forecaster. A run that saw the future shows nobody's."""
    return (one.forecaster, one.models.get("agent"), one.clairvoyant) == (
        other.forecaster,
        other.models.get("agent"),
        False,
    )


def _resolved(
    answers: Iterable[Forecast | Failure],
    questions: Iterable[Question],
    told: Mapping[tuple[str, datetime | None, str], Resolution],
    rates: Rates | None,
) -> Iterator[tuple[TrialRows, list[tuple[float, date]]]]:
    """The trials on each question that has a dated outcome, and the outcomes of its targets."""
    trials: dict[tuple[str, object], list[Forecast]] = {}
    for answer in answers:
        if isinstance(answer, Forecast) and answer.forecaster != PANEL and not answer.degraded:
            trials.setdefault((answer.question_id, answer.as_of.at.date()), []).append(answer)
    for question in questions:
        said = trials.get((question.id, question.as_of.at.date()), [])
        known = [told.get((question.id, question.due, target.id)) for target in question.targets]
        dated = [one is not None and one.outcome is not None and one.resolved_at is not None for one in known]
        if said and any(dated):
            rows = rows_of_question(question, [one.p for one in said], said[0].as_of, rates)
            ends = [
                (float(one.outcome), one.resolved_at.date())
                for one in known
                if one is not None and one.outcome is not None and one.resolved_at is not None
            ]
            yield rows.take(np.array(dated, np.bool_)), ends
