"""From the trials of a question to its one number, stage by stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from foretell.app.combining import combining_of
from foretell.arena.results import Combining, combined
from foretell.forecasters.combine.aggregate import Aggregate, Rule
from foretell.forecasters.combine.panel import PANEL
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where the number stands after something was done to it."""

    name: str
    told: str
    p: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Combination:
    """Raw trials, what was done to them, and what came out."""

    trials: tuple[Stage, ...]
    stages: tuple[Stage, ...]
    """In order; the last one is the answer."""
    p: dict[str, float]
    rationale: str
    """Of the trial nearest to the answer, after a word on how trials were combined."""
    spread: dict[str, float]
    """By target, the highest trial minus the lowest."""


def combination_of(
    answers: Sequence[Forecast | Failure], question: Question, aggregate: str = ""
) -> Combination | None:
    """As `foretell ask` does it: the run's rule, then the blend with price and base rate; a panel's word stands."""
    made = [answer for answer in answers if isinstance(answer, Forecast)]
    trials = [answer for answer in made if answer.forecaster != PANEL]
    if not made or not trials:
        return None
    rule: Rule = aggregate if aggregate in get_args(Rule) else "logit-mean"  # pyright: ignore[reportAssignmentType]
    judged = any(answer.forecaster == PANEL for answer in made)
    plain = Aggregate(rule=rule).apply([trial.p for trial in trials])
    fitting = combined(made, [question], Combining(rule=rule))[0]
    final = combined(made, [question], Combining(rule=rule, judged=True) if judged else combining_of("default"))[0]
    return Combination(
        trials=tuple(Stage(name=f"Trial {trial.trial + 1}", told="", p=dict(trial.p)) for trial in trials),
        stages=tuple(_stages(rule, plain, fitting, final, judged=judged)),
        p=dict(final.p),
        rationale=final.rationale,
        spread={t: max(trial.p[t] for trial in trials) - min(trial.p[t] for trial in trials) for t in plain},
    )


def _stages(rule: str, plain: Mapping[str, float], fitting: Forecast, final: Forecast, *, judged: bool) -> list[Stage]:
    found = [Stage(name=rule, told="the trials put together by the run's rule", p=dict(plain))]
    if _differ(plain, fitting.p):
        found.append(
            Stage(name="made coherent", told="so that exclusive or ordered outcomes fit together", p=dict(fitting.p))
        )
    if judged:
        found.append(
            Stage(name="panel", told="a model read the trials' reasons and answered in their place", p=dict(final.p))
        )
    else:
        told = "blended with the market's price or the base rate, where the question has one"
        found.append(Stage(name="calibrated", told=told, p=dict(final.p)))
    return found


def _differ(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    return any(abs(a[target] - b[target]) > 1e-9 for target in a if target in b)
