"""What a run would do and cost, by similar runs on this machine or a rough guess."""

import math
from collections.abc import Sequence
from contextlib import closing

from foretell.models.ledger import Money
from foretell.number_text import plural
from foretell.report.run_plan import RunPlan
from foretell.runs.combine import combining_of_run, reach_in_words, reach_of_trials
from foretell.runs.costs import money_of
from foretell.runs.runner import PreparedRun, asks_models
from foretell.runs.settings import Settings
from foretell.runs.spec import RunSpec, SpecPrompt
from foretell.runs.store import RunStore
from foretell.runs.trial_costs import TrialCost, measured_costs, prepared_trial_cost


def plan_run(prepared: PreparedRun, settings: Settings, prompts: Sequence[SpecPrompt] = ()) -> RunPlan:
    """Return what a run would do and cost, by similar runs on this machine or a rough guess."""
    spec = prepared.spec
    with closing(RunStore(settings.store)) as store:
        cost = prepared_trial_cost(prepared, measured_costs(store))
        finished = store.finished(spec.id)
        reach = reach_notes(prepared, store)
        money = money_of(store, settings, [spec.id])[spec.id]
    trials = [
        trial for trial in prepared.run_trials() if (trial.key.question, trial.key.due, trial.key.trial) not in finished
    ]
    questions = len({(trial.key.question, trial.key.due) for trial in trials})
    return RunPlan(
        run=spec.id,
        questions=len(prepared.questions),
        trials=spec.trials,
        open=len(trials),
        models=dict(spec.models) if asks_models(spec) else {},
        search=spec.search,
        calls=cost.calls * len(trials),
        dollars=None if cost.dollars is None else round(cost.dollars * len(trials), 9),
        nine_in_ten=cost.nine_in_ten(len(trials)) if trials else None,
        most=most_dollars(spec, money, questions),
        seconds=cost.seconds * math.ceil(len(trials) / spec.concurrency),
        basis=basis_text(cost),
        prompts=tuple(prompts),
        cautions=prepared.warnings,
        notes=(*prepared.notes, *prepared.notices, *reach),
    )


MOST_PRICES = 500
"""Maximum number of questions whose prices a plan looks at."""


def reach_notes(prepared: PreparedRun, store: RunStore) -> list[str]:
    """Return how far research can move the prices of the questions, before it is paid for."""
    spec = prepared.spec
    how = combining_of_run(store, spec)
    asked = [reach_of_trials(question, how, spec.mode) for question in prepared.questions[:MOST_PRICES]]
    reaches = [reach for reach in asked if reach is not None]
    if not reaches:
        return []
    if len(prepared.questions) == 1:
        return [f"{reach_in_words(reaches[0])} --set combine=logit-mean leaves the price out."]
    most = max(max(high - price, price - low) for price, low, high in reaches)
    return [f"Where a question has a market price, the answer differs from it by at most {100 * most:.0f} points."]


def most_dollars(spec: RunSpec, money: Money, questions: int) -> float | None:
    """Return the most that a run may still cost, by its cost so far and its open questions; None without budget."""
    limits: list[float] = []
    if spec.budget.run is not None:
        limits.append(max(0.0, round(spec.budget.run - money.used, 9)))
    if spec.budget.question is not None:
        limits.append(spec.budget.question * questions)
    return min(limits, default=None)


def basis_text(cost: TrialCost) -> str:
    """Return where the cost of a trial comes from, in words."""
    return {
        "measured": f"measured on {plural(cost.trials, 'trial')} like this on this machine",
        "rough": "a rough guess: nothing like this has run on this machine yet",
        "unknown": "a rough guess: nothing like this has run on this machine yet",
        "free model": "the model is free",
    }.get(cost.basis, "no model is used")
