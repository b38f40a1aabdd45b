"""What a run has to say: trials put together, one forecast per question."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from foretell.forecasters.combine.aggregate import Aggregate, Rule
from foretell.forecasters.combine.asked import rows_of
from foretell.forecasters.combine.coherence.questions import coherent
from foretell.forecasters.combine.fitted import Fitted, TrainedOnIt, apply
from foretell.forecasters.combine.panel import PANEL
from foretell.forecasters.priors import Rates
from foretell.questions.forecast import Failure, Forecast, Usage
from foretell.questions.problems import InputError
from foretell.questions.question import Question


@dataclass(frozen=True, kw_only=True)
class Combining:
    """How trials become one probability: a rule, and after it what was learnt from the past, if anything."""

    rule: Rule = "logit-mean"
    fitted: Fitted | None = None
    """Applied to the trials in place of the rule; it refuses questions that it was trained on."""
    rates: Rates | None = None
    """Base rates for a fitted rule that leans on them."""
    judged: bool = False
    """Let the panel's answer stand where a panel read the trials' reasons; where none did, the rule answers."""


def combined(
    answers: Iterable[Forecast | Failure], questions: Iterable[Question], how: Combining | None = None
) -> list[Forecast]:
    """One forecast per question out of its trials; a question whose trials all failed is absent."""
    asked = {question.id: question for question in questions}
    groups: dict[tuple[str, str], list[Forecast]] = {}
    failed: dict[tuple[str, str], int] = {}
    for answer in answers:
        key = (answer.question_id, str(answer.as_of))
        if isinstance(answer, Forecast):
            groups.setdefault(key, []).append(answer)
        else:
            failed[key] = failed.get(key, 0) + 1
    how = how or Combining()
    return [_together(trials, how, failed.get(key, 0), asked.get(key[0])) for key, trials in groups.items()]


def _together(answers: Sequence[Forecast], how: Combining, failed: int, question: Question | None) -> Forecast:
    panel = next((answer for answer in answers if how.judged and answer.forecaster == PANEL), None)
    trials = [answer for answer in answers if answer.forecaster != PANEL] or answers
    plain = Aggregate(rule=how.rule).apply([trial.p for trial in trials], failed=failed)
    said = dict(panel.p) if panel else _calibrated(trials, how, question, plain)
    # The log distance never sends a long shot to exactly zero.
    p = coherent(question, said, distance="log").p if question is not None else said
    usage = Usage.side_by_side(answer.usage for answer in answers)
    # The trial nearest to the common answer speaks for all of them.
    nearest = min(trials, key=lambda t: sum(abs(t.p[target] - plain[target]) for target in plain))
    told = f"{panel.rationale}\n\n" if panel else _told(trials, how, plain, p)
    return replace(nearest, p=p, trial=0, usage=usage, rationale=told + nearest.rationale)


def _calibrated(
    trials: Sequence[Forecast], how: Combining, question: Question | None, plain: dict[str, float]
) -> dict[str, float]:
    if how.fitted is None or question is None:
        return plain
    rows = rows_of(question, [trial.p for trial in trials], trials[0].as_of, how.rates)
    try:
        found = apply(how.fitted, rows)
    except TrainedOnIt as error:
        raise InputError(f"the calibration cannot judge this question: {error}") from None
    return {target.id: float(value) for target, value in zip(question.targets, found, strict=True)}


def _told(trials: Sequence[Forecast], how: Combining, plain: Mapping[str, float], p: Mapping[str, float]) -> str:
    """What was done to the trials, before the words of one of them."""
    told = ""
    if how.fitted is not None:
        moved = ", ".join(f"{target} {plain[target]:.1%} → {p[target]:.1%}" for target in list(p)[:3])
        told += f"After calibration and blending with what else was known: {moved}.\n\n"
    if len(trials) > 1:
        told += f"{len(trials)} trials combined by {how.rule}; the one nearest to their answer says:\n\n"
    return told
