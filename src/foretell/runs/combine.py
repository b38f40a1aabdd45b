"""The answer of a run: its trials combined into one forecast per question, by a rule that earlier runs may teach.

No forecaster and no tool may import this module.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import get_args

import numpy as np

from foretell.forecasters.base_rates.rates import Rates
from foretell.forecasters.combine.aggregate import PANEL, Aggregate, Rule
from foretell.forecasters.combine.coherence import coherent
from foretell.forecasters.combine.default import UNTAUGHT, DefaultMethod, FittedDefault, forecast_past
from foretell.forecasters.combine.rows import Examples, TrialRows, rows_of_question, stacked
from foretell.forecasters.combine.rules import ExplainsItself, FittedRule, Training, TrainingOverlap, apply
from foretell.metrics.arrays import Floats
from foretell.questions.errors import InputError
from foretell.questions.forecast import Categorical, Cost, Failure, Forecast, Numeric
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.runs.outcomes import RunOutcomes, StoredRates
from foretell.runs.spec import AUTO, COMBINE_HELP, DEFAULT, RunSpec, spec_from_json
from foretell.runs.store import RunRow, RunStore


@dataclass(frozen=True, kw_only=True)
class CombinationSettings:
    """How trials become one probability: a rule, optionally fitted to the past."""

    rule: Rule = "logit-mean"
    fitted: FittedRule | None = None
    """Applied to the trials in place of the rule, which answers where this has no answer; it refuses questions that it
    was trained on."""
    rates: Rates | None = None
    """Base rates for a fitted rule that uses them."""
    degraded: bool = False
    """Whether to use trials that rest on a failure; otherwise they count as failed."""
    judged: bool = False
    """Whether a panel's answer replaces the rule for questions where a panel has read the trials' reasons."""


def combine_trials(
    answers: Iterable[Forecast | Failure], questions: Iterable[Question], how: CombinationSettings | None = None
) -> list[Forecast]:
    """One forecast per question. Questions whose trials all failed or are degraded are left out."""
    how = how or CombinationSettings()
    askings: dict[str, list[Question]] = {}
    for question in questions:
        askings.setdefault(question.id, []).append(question)
    groups: dict[tuple[str, datetime], list[Forecast]] = {}
    failed: dict[tuple[str, datetime], int] = {}
    for answer in answers:
        key = (answer.question_id, answer.as_of.at)
        if isinstance(answer, Forecast) and (how.degraded or not answer.degraded):
            groups.setdefault(key, []).append(answer)
        else:
            failed[key] = failed.get(key, 0) + 1
    return [
        _together(trials, how, failed.get(key, 0), _asking(askings.get(key[0], []), key[1]))
        for key, trials in groups.items()
    ]


def _asking(askings: Sequence[Question], at: datetime) -> Question | None:
    """The question and date that a forecast answers: the same market may be asked in several rounds."""
    if len(askings) == 1:
        return askings[0]
    return next((question for question in askings if question.as_of.at == at), None)


def _together(
    answers: Sequence[Forecast], how: CombinationSettings, failed: int, question: Question | None
) -> Forecast:
    panel = next((answer for answer in answers if how.judged and answer.forecaster == PANEL), None)
    trials = [answer for answer in answers if answer.forecaster != PANEL] or answers
    plain = Aggregate(rule=how.rule).apply([trial.p for trial in trials], failed=failed)
    rows = None if panel else _rows(trials, how, question)
    said = dict(panel.p) if panel else _calibrated(rows, how, plain)
    # The log distance never sends a long shot to exactly zero.
    p = coherent(question, said, distance="log").p if question is not None else said
    usage = Cost.side_by_side(answer.usage for answer in answers)
    # The trial nearest to the common answer speaks for all of them.
    nearest = min(trials, key=lambda t: sum(abs(t.p[target] - plain[target]) for target in plain))
    text = f"{panel.rationale}\n\n" if panel else _summary(trials, how, plain, p, rows)
    # What one trial rests on, the answer of all rests on.
    ending = next((one for worst in ("degraded", "stopped") for one in trials if one.ending == worst), nearest)
    options = isinstance(nearest.distribution, Categorical) and sum(p.values()) > 0
    return replace(
        nearest,
        p=p,
        distribution=Categorical(p=p, normalise=True) if options else nearest.distribution,
        trial=0,
        usage=usage,
        rationale=text + nearest.rationale,
        ending=ending.ending,
        problem=ending.problem,
    )


def reason_for(trials: Sequence[Forecast], question: Question, how: CombinationSettings) -> str:
    """What a fitted rule did with the trials of a question, and why; empty where the trials stand alone."""
    rows = _rows(trials, how, question)
    return "" if rows is None else _reason(how, rows)


def _rows(trials: Sequence[Forecast], how: CombinationSettings, question: Question | None) -> TrialRows | None:
    """The trials as a fitted rule reads them; None where there is no rule or no question."""
    if how.fitted is None or question is None:
        return None
    return rows_of_question(question, [trial.p for trial in trials], trials[0].as_of, how.rates)


def _reason(how: CombinationSettings, rows: TrialRows) -> str:
    if isinstance(how.fitted, ExplainsItself):
        return how.fitted.reason(rows)
    return "Corrected by a rule fitted to past results."


def _calibrated(rows: TrialRows | None, how: CombinationSettings, plain: dict[str, float]) -> dict[str, float]:
    """What the fitted rule makes of the trials."""
    if how.fitted is None or rows is None:
        return plain
    try:
        found = apply(how.fitted, rows)
    except TrainingOverlap as error:
        raise InputError(f"the calibration cannot judge this question: {error}") from None
    said = dict(zip(rows.target.tolist(), found.tolist(), strict=True))
    return {id: plain[id] if isnan(value) else value for id, value in said.items()}


def _summary(
    trials: Sequence[Forecast],
    how: CombinationSettings,
    plain: Mapping[str, float],
    p: Mapping[str, float],
    rows: TrialRows | None,
) -> str:
    """A summary of the combination, followed by the reasons of one trial."""
    text = ""
    if rows is not None and any(f"{plain[target]:.1%}" != f"{p[target]:.1%}" for target in p):
        moved = ", ".join(f"{target} {plain[target]:.1%} → {p[target]:.1%}" for target in list(p)[:3])
        text += f"From the trials to the answer: {moved}. {_reason(how, rows)}\n\n"
    if len(trials) > 1:
        text += f"{len(trials)} trials combined by {how.rule}; the one nearest to their answer says:\n\n"
    return text


# How the trials of a run are to be combined, as named on a command line.


RULE_WORDS: Mapping[Rule, tuple[str, str]] = {
    "logit-mean": ("Average of the trials", "the mean of their log-odds"),
    "mean": ("Average of the trials", "the mean of their probabilities"),
    "median": ("Median of the trials", "as many say more as say less"),
    "trimmed": ("Trimmed average", "the mean without the highest and the lowest"),
    "extremised": ("Sharpened average", "the mean of their log-odds, moved away from 50 %"),
}
"""A rule as a heading, and what it does."""


def rule_in_words(name: str, how: CombinationSettings, *, tested: bool) -> str:
    """How a run's answers are made, in a sentence; `tested` where earlier outcomes decide under the rule `auto`."""
    if name == DEFAULT or (name == AUTO and tested):
        asked = ", where earlier outcomes have tested it" if name == AUTO else ""
        return f"Answers are the trials combined with price or base rate by the default rule{asked}."
    if how.judged:
        return "Answers come from a model that read the reasons of all trials."
    if how.fitted is not None and name != AUTO:
        return f"Answers are the trials corrected by the fitted rule {Path(name).name}."
    heading, told = RULE_WORDS[how.rule]
    later = " Price and base rate count too once earlier outcomes have tested how far to trust this forecaster."
    return f"Answers are the {heading.lower()} ({told}).{later if name == AUTO else ''}"


def combining_by_name(name: str, rates: Rates | None = None) -> CombinationSettings:
    """A rule by its name before it has learnt anything, or a rule that `foretell calibrate fit` wrote.

    >>> combining_by_name("median").rule
    'median'
    """
    if name in get_args(Rule):
        return CombinationSettings(rule=name)  # pyright: ignore[reportArgumentType]
    if name == AUTO:
        return CombinationSettings(rates=rates)
    if name == "judged":
        return CombinationSettings(judged=True)
    if name == DEFAULT:
        from foretell.forecasters.combine.default import UNTAUGHT

        return CombinationSettings(fitted=UNTAUGHT, rates=rates)
    if Path(name).suffix == ".json":
        from foretell.forecasters.combine.saving import load

        return CombinationSettings(fitted=load(Path(name)), rates=rates)
    raise InputError(f"there is no way to combine called {name!r}", column="combine", hint=COMBINE_HELP)


# One forecast a question out of a run's trials, for questions about a number too.


def one_forecast_per_question(
    answers: Sequence[Forecast | Failure], questions: Iterable[Question], how: CombinationSettings | None = None
) -> list[Forecast]:
    """One forecast per question. Distributions over a number are averaged level by level."""
    numeric: dict[tuple[str, str], list[Numeric]] = {}
    for answer in answers:
        if not isinstance(answer, Forecast) or (answer.degraded and not (how and how.degraded)):
            continue
        if isinstance(answer.distribution, Numeric):
            numeric.setdefault((answer.question_id, str(answer.as_of)), []).append(answer.distribution)
    found = combine_trials(answers, questions, how)
    return [
        replace(forecast, distribution=average_distributions(several)) if len(several) > 1 else forecast
        for forecast in found
        for several in [numeric.get((forecast.question_id, str(forecast.as_of)), [])]
    ]


def average_distributions(distributions: Sequence[Numeric]) -> Numeric:
    """The mean of the quantiles at every level that one distribution states and all of them reach.

    Averaging quantiles keeps the shape: the mean of two bells is a bell between them, not two bumps (Vincent 1912).

    >>> d = average_distributions([Numeric(x=(0, 10), cdf=(0, 1)), Numeric(x=(10, 30), cdf=(0, 1))])
    >>> d.x, d.cdf
    ((5.0, 20.0), (0.0, 1.0))
    """
    low, high = max(d.cdf[0] for d in distributions), min(d.cdf[-1] for d in distributions)
    levels = sorted({level for d in distributions for level in d.cdf if low <= level <= high})
    points: dict[float, float] = {}
    for level in levels:
        # Where all of them jump, the highest level stands.
        points[sum(d.quantile(level) for d in distributions) / len(distributions)] = level
    if len(points) < 2:
        return distributions[0]
    return Numeric(x=tuple(points), cdf=tuple(points.values()))


# The default rule, taught by the outcomes of the forecaster's earlier runs.


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
