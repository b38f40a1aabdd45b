"""The answer of a run: its trials combined into one forecast per question."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isnan
from pathlib import Path
from typing import get_args

from foretell.forecasters.base_rates.rates import Rates
from foretell.forecasters.combine.aggregate import PANEL, Aggregate, Rule
from foretell.forecasters.combine.coherence import coherent
from foretell.forecasters.combine.rows import TrialRows, rows_of_question
from foretell.forecasters.combine.rules import ExplainsItself, FittedRule, TrainingOverlap, apply
from foretell.questions.errors import InputError
from foretell.questions.forecast import Categorical, Cost, Failure, Forecast, Numeric
from foretell.questions.question import Question
from foretell.runs.spec import AUTO, COMBINE_HELP, DEFAULT


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
    raise InputError(f"there is no way to combine called {name!r}", column="--combine", hint=COMBINE_HELP)


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
