"""How a run's trials become its answer, and the default rule taught by the forecaster's earlier runs.

No forecaster and no tool may import this module.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property

import numpy as np

from foretell.forecasters.base_rates.rates import Rates
from foretell.forecasters.combine.aggregate import PANEL
from foretell.forecasters.combine.default import UNTAUGHT, DefaultMethod, FittedDefault, forecast_past
from foretell.forecasters.combine.rows import Examples, TrialRows, rows_of_question, stacked
from foretell.forecasters.combine.rules import Training
from foretell.metrics.arrays import Floats
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.runs.combine import CombinationSettings, combining_by_name
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.past import StoredRates
from foretell.runs.spec import AUTO, DEFAULT, RunSpec, spec_from_json
from foretell.runs.store import RunRow, RunStore


@dataclass(frozen=True, kw_only=True, eq=False)
class DefaultByDay:
    """The default rule as of each day: every question is combined by what was known before it was asked."""

    examples: Examples
    only_tested: bool = False
    """Answer only questions of a kind on which earlier outcomes have tested the rule."""
    training: Training = field(default_factory=Training)
    """Empty: what is learnt differs from day to day and never includes the day itself."""
    _fitted: dict[np.datetime64, FittedDefault] = field(default_factory=dict[np.datetime64, FittedDefault], repr=False)

    @cached_property
    def _past(self) -> Floats:
        return forecast_past(self.examples)

    def on(self, day: np.datetime64) -> FittedDefault:
        """The rule of a day; without any example, the rule before it has learnt anything."""
        if day not in self._fitted:
            known = (self.examples.known_on < day) & (self.examples.rows.due < day)
            found = DefaultMethod().fit(self.examples.take(known), self._past[known]) if known.any() else UNTAUGHT
            self._fitted[day] = found
        return self._fitted[day]

    def probabilities(self, rows: TrialRows) -> Floats:
        """Each row by the rule of its day; NaN also where it is not tested and only tested rules are to answer."""
        p = np.full(len(rows), np.nan)
        for day in np.unique(rows.due):
            now, rule = rows.due == day, self.on(day)
            found = rule.probabilities(rows.take(now))
            p[now] = np.where(rule.tested(rows.take(now)), found, np.nan) if self.only_tested else found
        return p

    def reason(self, rows: TrialRows) -> str:
        """How much the trials of one question count, and why."""
        rule = self.on(rows.due[0])
        return "" if self.only_tested and not rule.tested(rows).any() else rule.reason(rows)


def combining_of_run(store: RunStore, spec: RunSpec) -> CombinationSettings:
    """How a run's trials become its answer: by the rule its spec names.

    `default` is taught by earlier runs of the same forecaster where there are any. `auto` is the logit mean of the
    trials until earlier outcomes have tested the default rule, and the default rule from then on; a forecaster without
    a model stands as it is.
    """
    table = store.rates(spec.id)
    how = combining_by_name(spec.combine, StoredRates(table=table) if table else None)
    learns = spec.combine == DEFAULT or (spec.combine == AUTO and bool(spec.models))
    rule = default_by_day(store, spec) if learns else None
    return how if rule is None else replace(how, fitted=rule)


def combining_of_row(store: RunStore, row: RunRow) -> CombinationSettings:
    """The same for a stored run; of a spec that this version cannot read only the way of combining is taken."""
    spec = _spec(row)
    return combining_by_name(row.spec.get("aggregate") or AUTO) if spec is None else combining_of_run(store, spec)


def scored_by(row: RunRow, how: CombinationSettings) -> CombinationSettings:
    """How a run's trials are combined where the forecaster itself is judged: under `auto` without price or base rate.

    A forecaster whose answers were mixed with the price would only be compared with what it was mixed with.
    """
    return replace(how, fitted=None) if (row.spec.get("aggregate") or AUTO) == AUTO else how


_RULES: OrderedDict[tuple[object, ...], DefaultByDay] = OrderedDict()
MOST_RULES = 8
"""Forecasters whose rule is kept, so that pages need not read all earlier runs again."""


def default_by_day(store: RunStore, spec: RunSpec) -> DefaultByDay | None:
    """The default rule taught by the forecaster's earlier runs; None where none of their questions has an outcome.

    For a spec that says `auto` it answers only once it is tested.
    """
    runs = list(_runs_of(store, spec))
    state = tuple((row.id, row.done, *told) for row, told in runs)
    key = (store.database.place, spec.forecaster, spec.models.get("agent"), spec.combine, state)
    if key not in _RULES:
        examples = past_trials(store, [row.id for row, _ in runs])
        if examples is None:
            return None
        _RULES[key] = DefaultByDay(examples=examples, only_tested=spec.combine == AUTO)
        while len(_RULES) > MOST_RULES:
            _RULES.popitem(last=False)
    return _RULES[key]


def _spec(row: RunRow | None) -> RunSpec | None:
    try:
        return None if row is None else spec_from_json(row.spec)
    except InputError:
        return None


def _runs_of(store: RunStore, spec: RunSpec) -> Iterator[tuple[RunRow, tuple[int, str]]]:
    """Runs of the same forecaster with the same model that have outcomes, with how many and when the last came."""
    for run, told in RunOutcomes(store).count().items():
        row = store.run(run)
        other = _spec(row)
        if row is not None and other is not None and _same(other, spec):
            yield row, told


def past_trials(store: RunStore, runs: Iterable[str]) -> Examples | None:
    """What these runs said, with the outcomes that are known; None where none is."""
    outcomes, found = RunOutcomes(store), list[tuple[TrialRows, list[tuple[float, date]]]]()
    for run in runs:
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
