"""How a tournament is forecast, what a visit will cost, and how long it takes: the same for every platform."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from foretell.data.datasets.rows import read_text
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.operations.ask import stated_prices
from foretell.operations.grid import cell_price
from foretell.operations.requests import TournamentFields
from foretell.operations.result import Result
from foretell.operations.runs import likeness, measured_costs
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.runs.runner import PreparedRun, asks_models
from foretell.runs.settings import Settings
from foretell.runs.spec import BudgetSpec, RunSpec, parse_yaml, spec_from_mapping
from foretell.runs.store import RunStore

Row = dict[str, Any]


def tournament_spec(request: TournamentFields, settings: Settings, questions: str) -> RunSpec:
    """How to forecast: the file of a spec, if there is one, and what the request says beside it."""
    written: Any = {} if request.spec is None else parse_yaml(read_text(request.spec))
    if not isinstance(written, dict):
        raise InputError("is not a run's spec", path=request.spec)
    try:
        spec = spec_from_mapping(cast("Row", written) | {"questions": questions, "mode": "live"})
    except InputError as error:
        raise error.at(path=request.spec) from None
    if spec.clairvoyant:
        raise InputError("a clairvoyant run is no forecast", path=request.spec, column="clairvoyant")
    model = request.model or spec.models.get("agent") or settings.keys.get("FORETELL_MODEL")
    engines = tuple(filter(None, settings.keys.get("FORETELL_SEARCH", "").split(",")))
    spec = replace(
        spec,
        models={**spec.models, "agent": model} if model else spec.models,
        search=request.search or spec.search or engines,
        trials=request.trials or spec.trials,
        prices={**spec.prices, **stated_prices(request.model_price, {"agent": model or ""})},
        budget=BudgetSpec(
            run=request.budget or spec.budget.run, question=request.question_budget or spec.budget.question
        ),
    )
    if asks_models(spec) and "agent" not in spec.models:
        raise InputError(
            "no model is named", column="--model", hint="e.g. openai:NAME; FORETELL_MODEL stands in for it"
        )
    return spec


# What a visit will cost, and how long it takes.

SECONDS_OF_A_CALL = 15.0
"""Where nothing like it was ever run here."""
CELLS_LOOKED_AT = 200


@dataclass(frozen=True, kw_only=True)
class VisitPlan(Result):
    """What would be asked now, what that costs and how long it takes."""

    tournament: str
    questions: int
    cells: int
    """Trials that are still to be made."""
    dollars: float | None
    """What they will cost; None where no price is known."""
    basis: str
    """Where that comes from: measured, rough, unknown, free or no model."""
    seconds: float
    """How long they take, roughly."""
    limit: float | None = None
    """The most that may be spent now."""
    notes: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What else one should know."""
        return self.notes

    def __str__(self) -> str:
        if self.basis in ("no model", "free model"):
            told = f"{self.tournament}: {self.questions} questions, {self.cells} trials to make, nothing to pay"
            return f"{told}; {minutes_text(self.seconds)}" if self.seconds else told
        price = "a price nobody knows" if self.dollars is None else f"about ${self.dollars:.2f} ({self.basis})"
        limit = "no budget is set" if self.limit is None else f"never more than ${self.limit:.2f}"
        told = f"{self.tournament}: {self.questions} questions, {self.cells} trials to make, {price}; {limit}"
        return f"{told}; {minutes_text(self.seconds)}"


def minutes_text(seconds: float) -> str:
    """How long something takes, roughly.

    >>> minutes_text(20), minutes_text(300), minutes_text(3 * 3600 + 1200)
    ('under a minute', 'about 5 min', 'about 3 h 20 min')
    """
    minutes = round(seconds / 60)
    if minutes < 1:
        return "under a minute"
    return f"about {minutes} min" if minutes < 60 else f"about {minutes // 60} h {minutes % 60} min"


def plan_of(
    prepared: PreparedRun, settings: Settings, tournament: str, *, concurrency: int, limit: float | None
) -> VisitPlan:
    """The plan of a run: price and pace as its like had them here, else a rough guess."""
    spec = prepared.spec
    with closing(RunStore(settings.store)) as store:
        known = store.run(spec.id) is not None
        cells = len(prepared.questions) * spec.trials - (len(store.finished(spec.id)) if known else 0)
        per_cell, basis = cell_price(prepared, measured_costs(store))
        pace = _seconds_of_a_cell(store, spec)
    seconds = 0.0 if basis == "no model" else cells * pace / max(1, min(concurrency, cells or 1))
    return VisitPlan(
        tournament=tournament,
        questions=len(prepared.questions),
        cells=cells,
        dollars=None if per_cell is None and cells else cells * (per_cell or 0.0),
        basis=basis,
        seconds=seconds,
        limit=limit,
    )


def _seconds_of_a_cell(store: RunStore, spec: RunSpec) -> float:
    """How long one trial took in the newest run of its like, else a guess from its steps."""
    for row in store.runs():
        if row.done and likeness(row.spec) == likeness(spec):
            taken = [one.usage.seconds for one in store.answers(row.id) if isinstance(one, Forecast)]
            if taken := [seconds for seconds in taken[:CELLS_LOOKED_AT] if seconds > 0]:
                return sum(taken) / len(taken)
    return SECONDS_OF_A_CALL * 0.7 * float(spec.options.get("steps", 10))


def spent_on(settings: Settings, runs: Sequence[str]) -> float:
    """Dollars of all runs, lost replies at their estimate, also where a visit was killed."""
    if not runs or not (settings.database or Path(settings.journal).is_file()):
        return 0.0
    with closing(Journal(settings.journal)) as journal:
        return sum(journal.paid(run) + journal.unsettled(run).at_risk for run in runs)


def budget_for(request: TournamentFields, spec: RunSpec, settings: Settings, before: float) -> Budget | None:
    """Around the runs of this visit: what is left for the tournament, and within it what the visit may cost."""
    limit, around = request.tournament_budget, settings.budget
    if limit is not None:
        around = Budget("tournament", dollars=max(0.0, limit - before), within=around)
    return around if spec.budget.run is None else Budget("visit", dollars=spec.budget.run, within=around)


def most_spent_now(request: TournamentFields, spec: RunSpec, before: float) -> float | None:
    """The most that may be spent this time; None without a limit."""
    limits = [] if request.tournament_budget is None else [max(0.0, request.tournament_budget - before)]
    return min([*limits, *([] if spec.budget.run is None else [spec.budget.run])], default=None)
