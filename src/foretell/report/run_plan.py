"""What a run would do: how many trials and calls, what they cost, how long they take and what the models would read."""

import math
from collections.abc import Mapping, Sequence
from contextlib import closing

from foretell.frozen import frozen
from foretell.models.ledger import Money
from foretell.number_text import dollars, duration, plural
from foretell.report.result import Result
from foretell.runs.combine import combining_of_run, reach_in_words, reach_of_trials
from foretell.runs.costs import money_of
from foretell.runs.runner import PreparedRun, asks_models
from foretell.runs.settings import Settings
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore
from foretell.runs.trial_costs import SpecPrompt, TrialCost, measured_costs, prepared_trial_cost


@frozen
class RunPlan(Result):
    """What a run would do and cost. Nothing was started."""

    run: str
    """Its id; empty if no model is used."""
    questions: int
    trials: int
    """Trials of each question."""
    open: int
    """Trials that are still to be answered."""
    models: Mapping[str, str]
    """Model by role."""
    search: tuple[str, ...] = ()
    calls: float = 0.0
    """Usual number of model calls."""
    dollars: float | None
    """Usual cost; None if no price is known."""
    nine_in_ten: float | None = None
    """90th percentile of the cost in dollars; None if too little was measured."""
    most: float | None = None
    """The most that the budget allows; None if none is set."""
    seconds: float = 0.0
    """Usual duration."""
    basis: str
    """Where the figures come from."""
    prompts: tuple[SpecPrompt, ...] = ()
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def money(self) -> str:
        """The usual cost and the most, in words."""
        if self.dollars is None:
            usual = "price not known"
        elif not self.dollars:
            return "costs nothing"
        else:
            usual = f"about {dollars(self.dollars)}"
            usual += f" (9 in 10 under {dollars(self.nine_in_ten)})" if self.nine_in_ten else ""
        return f"{usual}, " + ("no budget is set" if self.most is None else f"at most {dollars(self.most)}")

    def __str__(self) -> str:
        done = self.questions * self.trials - self.open
        before = f", {done} done before" if done > 0 else ""
        size = f"{plural(self.questions, 'question')} × {plural(self.trials, 'trial')}"
        lines = [f"{f'run {self.run}: ' if self.run else ''}{size}, {self.open} to do{before}"]
        if self.models:
            others = "".join(f", {role} {name}" for role, name in self.models.items() if role != "agent")
            search = f"; search {', '.join(self.search)}" if self.search else ""
            lines.append(f"model {self.models.get('agent', '–')}{others}{search}")
        calls = f"about {self.calls:,.0f} model calls, " if self.calls else ""
        lines.append(f"{calls}{self.money}, about {duration(self.seconds)} ({self.basis})")
        return "\n".join([*lines, *(f"\n{prompt}" for prompt in self.prompts)])


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
    """Return the most that a run may still cost; None if it has no budget.

    Args:
        spec: The run.
        money: What it has cost so far.
        questions: How many questions are open.
    """
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
