"""Combine the trials of a run into one forecast per question, by a rule that may be fitted to earlier runs.

No forecaster and no tool may import this module.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date, datetime
from functools import cached_property, lru_cache
from hashlib import blake2b
from math import isnan, sqrt
from pathlib import Path
from typing import Any, get_args
from weakref import WeakKeyDictionary

import numpy as np

from foretell.forecasters.base_rates.rates import Rates
from foretell.forecasters.combine.aggregate import PANEL, Aggregate, Rule
from foretell.forecasters.combine.clamp import ANSWER_CLAMPS, Clamp
from foretell.forecasters.combine.coherence import coherent
from foretell.forecasters.combine.default import UNFITTED, DefaultMethod, FittedDefault, forecast_past
from foretell.forecasters.combine.distributions import combined_distribution, reconciled_distribution
from foretell.forecasters.combine.rows import Examples, TrialRows, rows_of_question, stacked
from foretell.forecasters.combine.rules import (
    ExplainsItself,
    FittedRule,
    Training,
    TrainingOverlap,
    WeighsTrials,
    apply,
)
from foretell.forecasters.combine.tree_weight import TreeExample, TreeRecord
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.transforms import logit, sigmoid
from foretell.models.database.interface import Database
from foretell.number_text import brief_percent
from foretell.questions.as_of import AsOfMode
from foretell.questions.codec import parse_options
from foretell.questions.errors import InputError
from foretell.questions.forecast import (
    NOT_TAKEN_APART,
    RECONCILED_EDGE,
    Categorical,
    Cost,
    Failure,
    Forecast,
    Numeric,
    Reconciliation,
    reconciled_logit,
)
from foretell.questions.question import Question, scaled
from foretell.questions.resolution import Resolution
from foretell.questions.thresholds import thresholds_of
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.past import StoredRates
from foretell.runs.spec import AUTO, COMBINE_HELP, DEFAULT, USUAL_FORECASTER, RunSpec, spec_from_json
from foretell.runs.store import RunRow, RunStore


@frozen
class CombinationSettings:
    """How trials become one probability: a rule, optionally fitted to the past."""

    rule: Rule = "logit-mean"
    fitted: FittedRule | None = None
    """Applied to the trials instead of the rule, which is used where this has no answer. It rejects questions that it
    was trained on."""
    rates: Rates | None = None
    """Estimates without a model for a fitted rule that uses them."""
    fallback: bool = False
    """Whether to use fallback forecasts; otherwise they count as failed."""
    clamp: Clamp | None = None
    """Bounds of the combined answer."""
    trees: TreeRecord | None = None
    """What became of earlier trees, from which the weight of a tree is learnt."""
    judged: bool = False
    """Whether a panel's answer replaces the rule for questions where a panel has read the trials' reasons."""


@frozen
class AnswerStep:
    """One step from the trials to the answer."""

    name: str
    """A word for the line that lists all steps."""
    heading: str
    text: str
    """What was done, for a reader."""
    p: Mapping[str, float]


@frozen
class QuestionEstimates:
    """The estimates that trials and trees made for a question, before anything else counts."""

    answers: Sequence[Forecast]
    question: Question | None
    panel: Forecast | None
    trials: tuple[Forecast, ...]
    """The trials that count."""
    direct: Mapping[str, float]
    """The trials combined, without their trees."""
    reconciliation: Reconciliation | None
    """The tree beside the mean of the direct estimates, if there is a tree."""
    each: Sequence[Mapping[str, float]]
    """The estimate of every trial. The tree enters each once, because every trial is combined with the same tree."""
    distribution: Numeric | None
    rows: TrialRows | None
    """The estimates as rows for a fitted rule; None if no rule applies."""


@frozen
class CombinedAnswer:
    """One forecast from all trials of a question, and how it came about."""

    forecast: Forecast
    estimates: QuestionEstimates
    how: CombinationSettings
    steps: tuple[AnswerStep, ...]
    """From the mean of the trials to the answer."""
    clamped_from: Mapping[str, float]
    """The estimates of the targets that were kept at a bound."""

    @property
    def trials(self) -> tuple[Forecast, ...]:
        """The trials that count."""
        return self.estimates.trials

    @property
    def reconciliation(self) -> Reconciliation | None:
        """The tree beside the mean of the direct estimates, if there is a tree."""
        return self.estimates.reconciliation

    @cached_property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """Target → 80 % interval; empty if there is a single estimate."""
        numeric = isinstance(self.forecast.distribution, Numeric)
        return {} if numeric else _ranges(self.estimates, self.how, self.forecast.p)

    @cached_property
    def weights(self) -> Mapping[str, Mapping[str, float]]:
        """Target → weight in log-odds of direct estimates, tree, and price or estimate without a model."""
        return _weights(self.estimates, self.how, self.forecast.p)

    @property
    def apart(self) -> bool:
        """Whether tree and direct estimate stayed apart, so that both head the answer."""
        return self.reconciliation is not None and self.reconciliation.apart

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON of an answer says about its parts."""
        both = self.reconciliation
        return {
            **(NO_PARTS | {"blind": dict(self.steps[0].p)} if both is None else both.to_dict()),
            "clamped_from": dict(self.clamped_from) or None,
            "weights": {target: dict(weights) for target, weights in self.weights.items()},
        }


NO_PARTS: dict[str, Any] = {
    "blind": None, "tree": None, "gap": None, "apart": False, "changes": [], "clamped_from": None, "weights": {}
}  # fmt: skip
"""The parts of an answer that no model gave."""


def combine_trials(
    answers: Iterable[Forecast | Failure], questions: Iterable[Question], how: CombinationSettings | None = None
) -> list[Forecast]:
    """Combine the trials of each question into one forecast.

    Questions whose trials all failed or are fallback forecasts are left out.

    Args:
        answers: The trials, such as the `answers` of a backtest.
        questions: The questions that they answer.
        how: How they are combined; by default as in runs.

    Returns:
        One forecast for each question.

    >>> question = Question(id="snow", source="own", text="Will it snow?", due="2026-01-10")
    >>> trials = [
    ...     Forecast(question_id="snow", forecaster="me", as_of=question.as_of, p={"yes": p}, trial=n)
    ...     for n, p in enumerate((0.2, 0.3, 0.7))
    ... ]
    >>> combine_trials(trials, [question], CombinationSettings(rule="median"))[0].p
    {'yes': 0.3}
    """
    return [answer.forecast for answer in combined_answers(answers, questions, how)]


def combined_answers(
    answers: Iterable[Forecast | Failure], questions: Iterable[Question], how: CombinationSettings | None = None
) -> list[CombinedAnswer]:
    """Return the same with the steps behind each forecast."""
    how = how or CombinationSettings()
    askings: dict[str, dict[datetime, Question]] = {}
    for question in questions:
        askings.setdefault(question.id, {}).setdefault(question.as_of.at, question)
    groups: dict[tuple[str, datetime], list[Forecast]] = {}
    for answer in answers:
        if isinstance(answer, Forecast) and (how.fallback or not answer.fallback):
            groups.setdefault((answer.question_id, answer.as_of.at), []).append(answer)
    estimates = [
        _estimates(trials, how, _asking(askings.get(question_id, {}), at))
        for (question_id, at), trials in groups.items()
    ]
    fitted = _calibrated([each.rows for each in estimates], how)
    return [_combined(each, how, p) for each, p in zip(estimates, fitted, strict=True)]


def _asking(askings: Mapping[datetime, Question], at: datetime) -> Question | None:
    """Return the question that a forecast answers, because the same market may be asked in several rounds."""
    return next(iter(askings.values())) if len(askings) == 1 else askings.get(at)


def _estimates(answers: Sequence[Forecast], how: CombinationSettings, question: Question | None) -> QuestionEstimates:
    panel = next((answer for answer in answers if how.judged and answer.forecaster == PANEL), None)
    trials = [answer for answer in answers if answer.forecaster != PANEL] or list(answers)
    direct = Aggregate(rule=how.rule).apply([_direct(trial) for trial in trials])
    if how.rule == "logit-mean" and (reconciled := _reconciled_with_all(trials)) is not None:
        direct = reconciled.direct
    both = _reconciliation(trials, direct)
    if both is not None and how.trees is not None:
        both = replace(both, weight=how.trees.weight(both.kind, both.weight, trials[0].as_of.at.date()))
    each = _with_tree(trials, both)
    distribution = _distribution(panel, trials, both)
    unruled = how.fitted is None or question is None or panel is not None or distribution is not None
    return QuestionEstimates(
        answers=answers,
        question=question,
        panel=panel,
        trials=tuple(trials),
        direct=direct,
        reconciliation=both,
        each=each,
        distribution=distribution,
        rows=None if unruled or question is None else rows_of_question(question, each, trials[0].as_of, how.rates),
    )


def _combined(estimates: QuestionEstimates, how: CombinationSettings, fitted: Mapping[str, float]) -> CombinedAnswer:
    """Return the answer; `fitted` are the probabilities of the fitted rule, for the targets where it has one."""
    question, trials, both = estimates.question, estimates.trials, estimates.reconciliation
    heading, text = RULE_WORDS[how.rule]
    steps = [AnswerStep(name="trials", heading=heading, text=text, p=estimates.direct)]
    if both is not None:
        steps = [replace(steps[0], name="direct")]
        steps.append(AnswerStep(name="tree", heading="Tree", text="the tree's own value", p=both.tree))
        text = f"{brief_percent(both.weight)} of the tree and the rest of the direct estimate, which {both.verdict}"
        steps.append(AnswerStep(name="together", heading="Tree and direct", text=text, p=both.combined()))
    distribution: Numeric | Categorical | None = estimates.distribution
    if estimates.distribution is not None and question is not None:
        p = _threshold_chances(estimates.distribution, question, steps[-1].p)
        if len(trials) > 1:
            text = "the distributions of the trials are combined, and every number follows from the result"
            steps.append(AnswerStep(name="distribution", heading="One distribution", text=text, p=p))
    else:
        steps += _further_steps(estimates, how, steps[-1].p, fitted)
        p = steps[-1].p
    clamped_from: dict[str, float] = {}
    if how.clamp is not None and distribution is None:
        p, clamped_from = _kept(p, how.clamp, question)
    if clamped_from:
        text = "; ".join(kept_in_words(p[target], was) for target, was in list(clamped_from.items())[:MOST_LISTED])
        steps.append(AnswerStep(name="kept", heading="Kept within bounds", text=text, p=p))
    shown, panel = nearest_trial(trials, p), estimates.panel
    text = f"{panel.rationale}\n\n" if panel else _summary(trials, how, steps, p, shown, question)
    # The combined answer has the worst ending of its trials.
    ending = next((trial for worst in ("fallback", "stopped") for trial in trials if trial.ending == worst), shown)
    if distribution is None and isinstance(shown.distribution, Categorical) and sum(p.values()) > 0:
        distribution = Categorical(p=p, normalise=True)
    forecast = replace(
        shown,
        p=p,
        distribution=distribution,
        trial=0,
        usage=Cost.side_by_side(answer.usage for answer in estimates.answers),
        rationale=text + shown.rationale,
        ending=ending.ending,
        problem=ending.problem,
        reconciliation=both,
    )
    return CombinedAnswer(
        forecast=forecast, estimates=estimates, how=how, steps=tuple(steps), clamped_from=clamped_from
    )


def with_probabilities(forecast: Forecast, p: Mapping[str, float]) -> Forecast:
    """Return a forecast with other probabilities, also in its distribution over options."""
    options = isinstance(forecast.distribution, Categorical) and sum(p.values()) > 0
    return replace(forecast, p=p, distribution=Categorical(p=p, normalise=True) if options else forecast.distribution)


def _further_steps(
    estimates: QuestionEstimates, how: CombinationSettings, plain: Mapping[str, float], fitted: Mapping[str, float]
) -> list[AnswerStep]:
    """Return the steps from the trials and the tree to consistent probabilities."""
    steps = list[AnswerStep]()
    rows, panel, question = estimates.rows, estimates.panel, estimates.question
    combined = {**plain, **fitted} if panel is None else dict(panel.p)
    if panel is not None:
        text = "a model read the trials' reasons and gave the answer"
        steps.append(AnswerStep(name="panel", heading="Panel", text=text, p=combined))
    elif rows is not None and (why := _reason(how, rows)):
        if (anchor := _anchor(rows)) and _differs(combined, plain):
            name, text = ANCHOR_WORDS[bool(rows.kind[0] == "market")]
            steps.append(AnswerStep(name=name, heading=name.capitalize(), text=text, p=anchor))
        steps.append(AnswerStep(name="combined", heading="Combined answer", text=why.rstrip("."), p=combined))
    # The log distance never makes a small probability exactly zero.
    p = _coherent(combined, question)
    if _differs(p, combined):
        text = "outcomes that exclude or imply each other now add up"
        steps.append(AnswerStep(name="made consistent", heading="Made consistent", text=text, p=p))
    return steps


def _coherent(p: Mapping[str, float], question: Question | None) -> Mapping[str, float]:
    """Return probabilities that are consistent: exclusive options scaled to a valid sum, others moved to the nearest.

    Options are scaled as in each trial, so that the answer of a single trial is that of the trial.
    """
    if question is None:
        return p
    if question.exclusivity != "independent" and len(p) == len(question.targets):
        return scaled(p, question.exclusivity)
    return coherent(question, p, distance="log").p


def _kept(p: Mapping[str, float], clamp: Clamp, question: Question | None) -> tuple[dict[str, float], dict[str, float]]:
    """Return the probabilities within their bounds, and the former ones of the targets that were moved."""
    bounded = clamp.bounded(p, "independent" if question is None else question.exclusivity)
    return bounded, {target: p[target] for target in p if abs(bounded[target] - p[target]) > SAME}


SAME = 1e-9
"""Largest difference of two equal probabilities."""


def _differs(p: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return any(abs(p[target] - other[target]) > SAME for target in p)


# The parts of an answer: direct estimates, tree, price, distribution.


def _direct(trial: Forecast) -> Mapping[str, float]:
    """Return what a trial estimated directly, without its tree."""
    both = trial.reconciliation
    return trial.p if both is None else both.own or both.direct


def _reconciled_with_all(trials: Sequence[Forecast]) -> Reconciliation | None:
    """Return the tree that was reconciled with the mean of these trials, which may have been restated there.

    None if there is no tree, or if other trials were known to it than these.
    """
    several = [trial.reconciliation for trial in trials if trial.reconciliation is not None]
    return several[0] if len(several) == 1 and several[0].trials == len(trials) else None


def _reconciliation(trials: Sequence[Forecast], direct: Mapping[str, float]) -> Reconciliation | None:
    """Return the tree beside the mean of the direct estimates; several trees count as their mean in log-odds."""
    several = [trial.reconciliation for trial in trials if trial.reconciliation is not None]
    if not several:
        return None
    if len(trials) == 1:
        return several[0]
    tree = Aggregate(rule="logit-mean").apply([both.tree for both in several])
    numeric = [both.tree_distribution for both in several if both.tree_distribution is not None]
    return replace(
        several[0],
        tree=tree,
        direct=direct,
        tree_distribution=combined_distribution(numeric) if numeric else None,
        direct_distribution=_direct_distribution(trials) if numeric else None,
        changes=tuple(dict.fromkeys(change for both in several for change in both.changes)),
    ).compared()


def _with_tree(trials: Sequence[Forecast], both: Reconciliation | None) -> list[Mapping[str, float]]:
    """Return the estimate of every trial, combined with the tree if there is one."""
    return [_direct(trial) if both is None else both.combined(_direct(trial)) for trial in trials]


def _distribution(panel: Forecast | None, trials: Sequence[Forecast], both: Reconciliation | None) -> Numeric | None:
    """Return the distribution over a number that all trials, or the panel, gave; None for other questions.

    The tree enters once.
    """
    direct = _direct_distribution([panel] if panel else trials)
    return direct if direct is None or both is None or panel else reconciled_distribution(both, direct)


def _direct_distribution(trials: Sequence[Forecast]) -> Numeric | None:
    """Return the combined distribution that trials stated directly, without a tree; None if one stated none."""
    if (reconciled := _reconciled_with_all(trials)) is not None and reconciled.direct_distribution is not None:
        return reconciled.direct_distribution
    given = [
        trial.distribution
        if (both := trial.reconciliation) is None or both.direct_distribution is None
        else both.own_distribution or both.direct_distribution
        for trial in trials
    ]
    numeric = [distribution for distribution in given if isinstance(distribution, Numeric)]
    return combined_distribution(numeric) if numeric and len(numeric) == len(given) else None


def _threshold_chances(distribution: Numeric, question: Question, plain: Mapping[str, float]) -> dict[str, float]:
    """Return the chance of every threshold of a question about a number by its one distribution."""
    thresholds = thresholds_of(question)
    return dict(plain) if thresholds is None else {id: each.chance(distribution) for id, each in thresholds.items()}


ANCHOR_WORDS = {
    True: ("price", "the price on the day of asking, before any research"),
    False: ("without a model", "the estimate from series and past outcomes, before any research"),
}
"""What a market question and another one start from: a name, and what it is."""


def _anchor(rows: TrialRows) -> dict[str, float]:
    """Return the price, or the estimate without a model, by target; empty if a target has none."""
    values = dict(zip(rows.target.tolist(), rows.anchor.tolist(), strict=True))
    return {} if any(isnan(value) for value in values.values()) else values


def _reason(how: CombinationSettings, rows: TrialRows) -> str:
    if isinstance(how.fitted, ExplainsItself):
        return how.fitted.reason(rows)
    return "Corrected by a rule fitted to past results."


def _calibrated(rows: Sequence[TrialRows | None], how: CombinationSettings) -> list[dict[str, float]]:
    """Apply the fitted rule to all questions at once, because calls for each of thousands take seconds.

    Returns a probability for every target where the rule has one.
    """
    known = [part for part in rows if part is not None]
    if how.fitted is None or not known:
        return [{} for _ in rows]
    try:
        values = apply(how.fitted, stacked(known))
    except TrainingOverlap as error:
        raise InputError(f"the fitted rule cannot be used for this question: {error}") from None
    parts = iter(np.split(values, np.cumsum([len(part) for part in known])[:-1]))
    return [{} if part is None else _by_target(part, next(parts)) for part in rows]


def _by_target(rows: TrialRows, values: Floats) -> dict[str, float]:
    """Return the values by target, without those that are not known."""
    return {id: value for id, value in zip(rows.target.tolist(), values.tolist(), strict=True) if not isnan(value)}


def _weights(
    estimates: QuestionEstimates, how: CombinationSettings, p: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Return the weights of direct estimates, tree and anchor in the answer to each target."""
    rows, both = estimates.rows, estimates.reconciliation
    of_trials = dict.fromkeys(p, 1.0)
    if rows is not None and isinstance(how.fitted, WeighsTrials):
        of_trials |= _by_target(rows, how.fitted.weight_of_trials(rows))
    tree = 0.0 if both is None else both.weight
    anchor = "price" if rows is not None and rows.kind[0] == "market" else "without_model"
    weights = {
        id: {"direct": w * (1 - tree), "tree": w * tree, anchor: 1 - w} for id, w in of_trials.items() if id in p
    }
    return {id: {name: round(w, 6) for name, w in parts.items() if w} for id, parts in weights.items()}


RANGE = 1.2816
"""Standard deviations to each side of a normal distribution that contain 80 % of it."""


def _ranges(
    estimates: QuestionEstimates, how: CombinationSettings, p: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """Return 80 % intervals from the spread of the trials and the tree's error bar, and at least from tree to direct.

    The ends pass through the same rule as the trials, so that a price narrows the range as it narrows the answer.
    """
    rows, both = estimates.rows, estimates.reconciliation
    if len(estimates.each) < 2 and both is None:
        return {}
    ends: list[dict[str, float]] = [{}, {}]
    for target in p:
        z = logit([estimate[target] for estimate in estimates.each])
        variance = float(z.var(ddof=1)) if len(z) > 1 else 0.0
        if both is not None and both.error:
            tree = min(max(both.tree[target], RECONCILED_EDGE), 1 - RECONCILED_EDGE)
            variance += (both.weight * both.error / (tree * (1 - tree))) ** 2
        reach = RANGE * sqrt(variance)
        for end, sign in zip(ends, (-1, 1), strict=True):
            end[target] = float(sigmoid(z.mean() + sign * reach))
    if rows is not None:
        moved = _calibrated([rows.with_trials([end[id] for id in rows.target.tolist()]) for end in ends], how)
        ends = [{**end, **fitted} for end, fitted in zip(ends, moved, strict=True)]
    values = {id: [p[id], *(end[id] for end in ends)] for id in p}
    if both is not None:
        values = {id: [*several, both.tree[id], both.direct[id]] for id, several in values.items()}
    return {id: (min(several), max(several)) for id, several in values.items()}


# The explanation: every step in one line, then the reasons of one trial.


def kept_in_words(p: float, was: float) -> str:
    """Return that an estimate was kept at a bound.

    >>> kept_in_words(0.02, 0.007)
    'kept at 2 %, the estimate was 0.7 %'
    """
    return f"kept at {brief_percent(p)}, the estimate was {brief_percent(was)}"


def nearest_trial(trials: Sequence[Forecast], p: Mapping[str, float]) -> Forecast:
    """Return the trial whose reasons explain an answer: of those that did not break down, the nearest to it."""

    def order(trial: Forecast) -> tuple[bool, bool, float]:
        unfounded = trial.ending != "submitted" and SOURCES not in trial.rationale
        return trial.fallback, unfounded, sum(abs(trial.p[target] - p[target]) for target in p)

    return min(trials, key=order)


SOURCES = "\nSources:\n"
"""Heading of the sources in the reasons of a trial."""


def argues_against(trial: Mapping[str, float], answer: Mapping[str, float]) -> bool:
    """Return whether a trial favours another outcome than the answer.

    >>> argues_against({"yes": 0.2}, {"yes": 0.75}), argues_against({"yes": 0.6}, {"yes": 0.75})
    (True, False)
    """
    if len(answer) == 1:
        (target,) = answer
        return (trial[target] - 0.5) * (answer[target] - 0.5) < 0
    return max(answer, key=lambda id: trial[id]) != max(answer, key=lambda id: answer[id])


MOST_LISTED = 3
"""Maximum number of targets whose steps are written out."""


def steps_in_words(steps: Sequence[AnswerStep], p: Mapping[str, float], labels: Mapping[str, str]) -> str:
    """Return every step from the trials to the answer in one line per target."""
    named = [step for step in steps if step.name not in ("combined", "kept", "made consistent", "distribution")]
    lines = [
        " → ".join([*(f"{step.name} {brief_percent(step.p[id])}" for step in named), f"answer {brief_percent(p[id])}"])
        for id in list(p)[:MOST_LISTED]
    ]
    if len(p) == 1:
        return lines[0]
    return "; ".join(f"{labels.get(id, id)}: {line}" for id, line in zip(p, lines, strict=False))


def _summary(
    trials: Sequence[Forecast],
    how: CombinationSettings,
    steps: Sequence[AnswerStep],
    p: Mapping[str, float],
    shown: Forecast,
    question: Question | None,
) -> str:
    """Return every step to the answer, and a heading for the reasons of one trial."""
    text, against = "", argues_against(shown.p, p)
    labels = {target.id: target.label or target.id for target in question.targets} if question else {}
    if any(brief_percent(step.p[id]) != brief_percent(p[id]) for step in steps for id in p):
        notes = [step.text for step in steps if step.name in ("combined", "kept")]
        notes = [f"{words[0].upper()}{words[1:]}." for words in notes if words]
        text = " ".join([f"From the trials to the answer: {steps_in_words(steps, p, labels)}.", *notes]) + "\n\n"
    if len(trials) > 1:
        text += next((f"{why}\n\n" for trial in trials if trial is not shown and (why := _not_taken_apart(trial))), "")
        whose = f"trial {shown.trial + 1}, the nearest to the answer,"
        wrote = "argues against the answer" if against else "wrote"
        return f"{text}{len(trials)} trials combined by {how.rule}; {whose} {wrote}:\n\n"
    return f"{text}The trial argues against the answer:\n\n" if against else text


def _not_taken_apart(trial: Forecast) -> str:
    """Return the sentence on why a trial did not take the question apart; empty if there is none."""
    first, _, _ = trial.rationale.partition("\n")
    return first if first.startswith(NOT_TAKEN_APART) else ""


def reach_of_trials(question: Question, how: CombinationSettings, mode: AsOfMode) -> tuple[float, float, float] | None:
    """Return the price of a question, and the lowest and highest answer that trials can lead to.

    None unless the question has one target with a price and the rule uses it.
    """
    if how.fitted is None or question.kind != "market" or len(question.targets) != 1:
        return None
    as_of = question.as_of_in(mode)
    rows = rows_of_question(question, [{question.targets[0].id: EXTREME}], as_of, how.rates)
    price = float(rows.price[0])
    if isnan(price):
        return None
    ends = [how.fitted.probabilities(rows.with_trials([p]))[0] for p in (EXTREME, 1 - EXTREME)]
    return None if any(isnan(end) for end in ends) else (price, float(min(ends)), float(max(ends)))


EXTREME = 0.01
"""Probability of trials that are as sure as trials usually get."""


def reach_in_words(reach: tuple[float, float, float]) -> str:
    """Return how far research can move a price.

    >>> reach_in_words((0.8, 0.75, 0.84))
    'The price is 80 %. Whatever the research finds, the answer will be between 75 % and 84 %.'
    """
    price, low, high = map(brief_percent, reach)
    return f"The price is {price}. Whatever the research finds, the answer will be between {low} and {high}."


# How the trials of a run are to be combined, as named on a command line.


RULE_WORDS: Mapping[Rule, tuple[str, str]] = {
    "logit-mean": ("Average of the trials", "the mean of their log-odds"),
    "mean": ("Average of the trials", "the mean of their probabilities"),
    "median": ("Median of the trials", "half are above it and half below"),
    "trimmed": ("Trimmed average", "the mean without the highest and the lowest"),
    "extremised": ("Sharpened average", "the mean of their log-odds, moved away from 50 %"),
}
"""A rule as a heading, and what it does."""


def chosen_rule(combine: str, models: Mapping[str, str]) -> str:
    """Return the rule that a run names; `auto` is the default rule if models are asked, and else the logit mean.

    >>> chosen_rule("auto", {"agent": "openai:a"}), chosen_rule("auto", {}), chosen_rule("median", {})
    ('default', 'logit-mean', 'median')
    """
    if combine != AUTO:
        return combine
    return DEFAULT if models else "logit-mean"


def rule_in_words(name: str) -> str:
    """Describe how a run's answers are made by a rule."""
    how = combining_by_name(name)
    if name == DEFAULT:
        return (
            "Answers are the trials combined with the price, or with an estimate without a model, by the default rule."
        )
    if how.judged:
        return "Answers come from a model that read the reasons of all trials."
    if how.fitted is not None:
        return f"Answers are the trials corrected by the fitted rule {Path(name).name}."
    heading, explanation = RULE_WORDS[how.rule]
    return f"Answers are the {heading.lower()} ({explanation})."


def combining_by_name(name: str, rates: Rates | None = None) -> CombinationSettings:
    """Return a rule by name, not fitted to anything, or a rule that `foretell calibrate fit` wrote.

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
        from foretell.forecasters.combine.default import UNFITTED

        return CombinationSettings(fitted=UNFITTED, rates=rates)
    if Path(name).suffix == ".json":
        from foretell.forecasters.combine.saving import load

        return CombinationSettings(fitted=load(Path(name)), rates=rates)
    raise InputError(f"there is no way to combine called {name!r}", column="combine", hint=COMBINE_HELP)


# The default rule, fitted to the outcomes of the forecaster's earlier runs.


@frozen(eq=False)
class DefaultByDay:
    """The default rule as of each day, fitted to what was known before each question was asked."""

    examples: Examples
    training: Training = field(default_factory=Training)
    """Empty, because the fit differs from day to day and never includes the day itself."""
    _fitted: dict[np.datetime64, FittedDefault] = field(default_factory=dict[np.datetime64, FittedDefault], repr=False)

    @cached_property
    def _past(self) -> Floats:
        return forecast_past(self.examples)

    def on(self, day: np.datetime64) -> FittedDefault:
        """Return the rule of a day, or the unfitted rule if there are no examples."""
        if day not in self._fitted:
            known = (self.examples.known_on < day) & (self.examples.rows.due < day)
            rule = DefaultMethod().fit(self.examples.take(known), self._past[known]) if known.any() else UNFITTED
            self._fitted[day] = rule
        return self._fitted[day]

    def probabilities(self, rows: TrialRows) -> Floats:
        """Return the probability of each row by the rule of its day."""
        p = np.full(len(rows), np.nan)
        for day in np.unique(rows.due):
            today = rows.due == day
            p[today] = self.on(day).probabilities(rows.take(today))
        return p

    def weight_of_trials(self, rows: TrialRows) -> Floats:
        """Return the weight of the trials in the answer to each target of one question."""
        return self.on(rows.due[0]).weight_of_trials(rows)

    def reason(self, rows: TrialRows) -> str:
        """How much the trials of one question count, and why."""
        return self.on(rows.due[0]).reason(rows)


def combining_of_run(store: RunStore, spec: RunSpec, combine: str | None = None) -> CombinationSettings:
    """Return how a run's trials are combined, by the rule that its spec names or by another, `combine`.

    The default rule is fitted to earlier runs of the same forecaster if there are any.
    """
    table, name = store.rates(spec.id), chosen_rule(combine or spec.combine, spec.models)
    how = combining_by_name(name, StoredRates(table=table) if table else None)
    rule = default_by_day(store, spec) if name == DEFAULT else None
    trees = tree_record(store, spec) if name == DEFAULT else None
    how = replace(how, clamp=answer_clamp(spec), trees=trees)
    return how if rule is None else replace(how, fitted=rule)


def answer_clamp(spec: RunSpec) -> Clamp | None:
    """Return the bounds of a run's combined answers; None if its forecaster bounds every trial instead, or none.

    The option `clamp` of the forecaster decides.
    """
    name, options = parse_options(spec.forecaster)
    chosen = {**options, **spec.options}.get("clamp", ANSWER_CLAMPS.get(name))
    try:
        clamp = None if chosen is None else Clamp.read(chosen)
    except (TypeError, ValueError):
        return None  # Of another version.
    return clamp if clamp is not None and clamp.once else None


def combining_of_row(store: RunStore, row: RunRow) -> CombinationSettings:
    """Return the same for a stored run. If this version cannot read its spec, only its rule is used."""
    spec = _spec(row)
    return combining_by_name(row.spec.get("combine") or AUTO) if spec is None else combining_of_run(store, spec)


def combining_trials_alone(row: RunRow) -> CombinationSettings:
    """Return how a stored run's trials are combined without anything else."""
    spec = _spec(row)
    return CombinationSettings(clamp=None if spec is None else answer_clamp(spec))


def learnt_from(store: RunStore, row: RunRow) -> str | None:
    """Return a mark of the earlier outcomes that `auto` learns from for a stored run.

    None if the run names another rule or asks no models, so that it is scored by its answers.
    """
    spec = _spec(row)
    if spec is None or spec.combine != AUTO or not spec.models:
        return None
    return blake2b(repr(_state_of(_runs_of(store, spec))).encode(), digest_size=16).hexdigest()


_RULES: OrderedDict[tuple[object, ...], DefaultByDay | None] = OrderedDict()
"""By forecaster and state of its earlier runs; None if none of them has a dated outcome."""
MOST_RULES = 8
"""Maximum number of cached rules, so that pages need not read all earlier runs again."""


def default_by_day(store: RunStore, spec: RunSpec) -> DefaultByDay | None:
    """Return the default rule fitted to the forecaster's earlier runs; None if none of them has an outcome."""
    runs = _runs_of(store, spec)
    key = (store.database.place, spec.forecaster, spec.models.get("agent"), _state_of(runs))
    if key not in _RULES:
        examples = past_trials(store, [row.id for row, _ in runs])
        _RULES[key] = None if examples is None else DefaultByDay(examples=examples)
        while len(_RULES) > MOST_RULES:
            _RULES.popitem(last=False)
    return _RULES[key]


def _state_of(runs: Iterable[tuple[RunRow, tuple[int, str]]]) -> tuple[tuple[object, ...], ...]:
    return tuple((row.id, row.done, *counts) for row, counts in runs)


_RECORDS: OrderedDict[tuple[object, ...], TreeRecord] = OrderedDict()


def tree_record(store: RunStore, spec: RunSpec) -> TreeRecord | None:
    """Return what became of the trees of the forecaster's earlier runs; None if it grows none or none is decided."""
    if parse_options(spec.forecaster)[0] != USUAL_FORECASTER:
        return None
    runs = _runs_of(store, spec)
    key = (store.database.place, spec.forecaster, spec.models.get("agent"), _state_of(runs))
    if key not in _RECORDS:
        _RECORDS[key] = TreeRecord(tuple(example for row, _ in runs for example in _decided_trees(store, row.id)))
        while len(_RECORDS) > MOST_RULES:
            _RECORDS.popitem(last=False)
    return _RECORDS[key] if _RECORDS[key].examples else None


def _decided_trees(store: RunStore, run: str) -> Iterator[TreeExample]:
    """Yield the trees of a run on questions that have a dated outcome, one example for each target."""
    known = {(row.question_id, row.due, row.target_id): row for row in RunOutcomes(store).of(run)}
    due = {(question.id, question.as_of.at.date()): question.due for question in store.questions(run)}
    for answer in store.answers(run):
        both = answer.reconciliation if isinstance(answer, Forecast) and not answer.fallback else None
        for target, tree in both.tree.items() if both is not None else ():
            row = known.get((answer.question_id, due.get((answer.question_id, answer.as_of.at.date())), target))
            if both is not None and row is not None and row.outcome is not None and row.resolved_at is not None:
                yield TreeExample(
                    kind=both.kind,
                    tree=reconciled_logit(tree),
                    direct=reconciled_logit(both.direct[target]),
                    outcome=float(row.outcome),
                    known_on=row.resolved_at.date(),
                )


def _spec(row: RunRow) -> RunSpec | None:
    try:
        return spec_from_json(row.spec)
    except InputError:
        return None


_Runs = tuple[tuple[RunRow, tuple[int, str]], ...]
_EARLIER: WeakKeyDictionary[Database, dict[tuple[object, ...], _Runs]] = WeakKeyDictionary()
"""Earlier runs by forecaster and model since the last write to a database: thousands of pages ask for the same."""


def _runs_of(store: RunStore, spec: RunSpec) -> _Runs:
    """Return runs of the same forecaster and model that have outcomes, with their number and the time of the last."""
    mark = store.database.change_mark()
    if mark is None:
        return tuple(_look_up_runs(store, spec))
    known, key = _EARLIER.setdefault(store.database, {}), (spec.forecaster, spec.models.get("agent"), mark)
    if key not in known:
        for old in [old for old in known if old[-1] != mark]:
            del known[old]
        known[key] = tuple(_look_up_runs(store, spec))
    return known[key]


def _look_up_runs(store: RunStore, spec: RunSpec) -> Iterator[tuple[RunRow, tuple[int, str]]]:
    """Yield runs of the same forecaster and model that have outcomes, with their number and the time of the last.

    A run without the leakage filter is never the same as another. All runs are read at once, and each spec is parsed
    once, because every run that is scored asks for this.
    """
    rows = {row.id: row for row in (*store.runs(), *store.deleted_runs())}
    for run, counts in RunOutcomes(store).count().items():
        row = rows.get(run)
        if row is not None and _made_by(json.dumps(row.spec)) == (spec.forecaster, spec.models.get("agent"), True):
            yield row, counts


MOST_SPECS = 10_000
"""Maximum number of specs whose forecaster and model are kept in memory."""


@lru_cache(MOST_SPECS)
def _made_by(text: str) -> tuple[str, str | None, bool] | None:
    """Return the forecaster, model and leakage filter of a stored spec; None if this version cannot read it."""
    try:
        spec = spec_from_json(json.loads(text))
    except InputError:
        return None
    return spec.forecaster, spec.models.get("agent"), spec.leakage_filter


def past_trials(store: RunStore, runs: Iterable[str]) -> Examples | None:
    """Return the trials of these runs that have known outcomes; None if there are none."""
    outcomes, resolved = RunOutcomes(store), list[tuple[TrialRows, list[tuple[float, date]]]]()
    for run in runs:
        rates = StoredRates(table=store.rates(run))
        known = {(row.question_id, row.due, row.target_id): row for row in outcomes.of(run)}
        resolved += _resolved(store.answers(run), store.questions(run), known, rates if rates.table else None)
    if not resolved:
        return None
    answers = [answer for _, targets in resolved for answer in targets]
    return Examples(
        rows=stacked([rows for rows, _ in resolved]),
        outcome=np.array([outcome for outcome, _ in answers], np.float64),
        known_on=np.array([day for _, day in answers], "M8[D]"),
        weight=np.ones(len(answers)),
    )


def _resolved(
    answers: Iterable[Forecast | Failure],
    questions: Iterable[Question],
    resolutions: Mapping[tuple[str, datetime | None, str], Resolution],
    rates: Rates | None,
) -> Iterator[tuple[TrialRows, list[tuple[float, date]]]]:
    """The trials on each question that has a dated outcome, and the outcomes of its targets."""
    trials: dict[tuple[str, object], list[Forecast]] = {}
    for answer in answers:
        if isinstance(answer, Forecast) and answer.forecaster != PANEL and not answer.fallback:
            trials.setdefault((answer.question_id, answer.as_of.at.date()), []).append(answer)
    for question in questions:
        own = trials.get((question.id, question.as_of.at.date()), [])
        known = [resolutions.get((question.id, question.due, target.id)) for target in question.targets]
        dated = [row is not None and row.outcome is not None and row.resolved_at is not None for row in known]
        if own and any(dated):
            direct = Aggregate(rule="logit-mean").apply([_direct(trial) for trial in own])
            each = _with_tree(own, _reconciliation(own, direct))
            rows = rows_of_question(question, each, own[0].as_of, rates)
            ends = [
                (float(row.outcome), row.resolved_at.date())
                for row in known
                if row is not None and row.outcome is not None and row.resolved_at is not None
            ]
            yield rows.take(np.array(dated, np.bool_)), ends
