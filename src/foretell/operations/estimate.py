"""What a run will cost and how long it takes: by what its like did on this machine, else by a rough guess."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from foretell.models.names import ModelName
from foretell.models.prices import PriceList, read_price
from foretell.questions.forecast import Forecast
from foretell.runs.runner import asks_models
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore

READ, WRITTEN, CALL_SECONDS = 5_000, 800, 15.0
"""Tokens and seconds of a typical call, for runs of whose like nothing was measured."""
MEASURED_ANSWERS = 200
"""Answers of a run that its time is measured by."""


@dataclass(frozen=True, kw_only=True)
class CellCost:
    """What one trial of a question costs, and where that is known from."""

    dollars: float | None
    """None where no price is known."""
    seconds: float
    basis: str
    """measured, rough, unknown, free model or no model."""
    cells: int = 0
    """How many were measured."""


CellCosts = Mapping[tuple[str, ...], CellCost]
"""By what decides the price of a cell."""


def measured_costs(store: RunStore) -> CellCosts:
    """What cells of stored runs cost and how long they took, by what decides it."""
    sums: dict[tuple[str, ...], tuple[float, int, float, int]] = {}
    for row in store.runs():
        if row.done and row.spec.get("models"):
            dollars, cells, seconds, timed = sums.get(likeness(row.spec), (0.0, 0, 0.0, 0))
            if timed < MEASURED_ANSWERS:
                some = islice(store.answers(row.id), MEASURED_ANSWERS)
                times = [one.usage.seconds for one in some if isinstance(one, Forecast)]
                seconds, timed = seconds + sum(times), timed + len(times)
            sums[likeness(row.spec)] = (
                dollars + store.spent(row.id), cells + row.done + row.failed, seconds, timed
            )  # fmt: skip
    return {
        like: CellCost(dollars=dollars / cells, seconds=seconds / max(timed, 1), basis="measured", cells=cells)
        for like, (dollars, cells, seconds, timed) in sums.items()
    }


def cell_cost(spec: RunSpec, measured: CellCosts, targets: float = 1.0) -> CellCost:
    """What a cell of a run costs.

    Args:
        spec: The run.
        measured: What cells have cost here.
        targets: Outcomes of a question, on average: a tree is grown for each.
    """
    if not asks_models(spec):
        return CellCost(dollars=0.0, seconds=0.0, basis="no model")
    if found := measured.get(likeness(spec)):
        return found
    model = spec.models.get("agent", "")
    calls = _calls(spec) * (targets if spec.forecaster in ("tree", "thoughts") else 1.0)
    seconds = CALL_SECONDS * calls
    if ModelName.read(model).free:
        return CellCost(dollars=0.0, seconds=seconds, basis="free model")
    price = PriceList({name: read_price(written) for name, written in spec.prices.items()}).of(model)
    if price is None:
        return CellCost(dollars=None, seconds=seconds, basis="unknown")
    dollars = calls * (READ * price.input + WRITTEN * price.output) / 1e6
    return CellCost(dollars=dollars, seconds=seconds, basis="rough")


def likeness(spec: RunSpec | Mapping[str, Any]) -> tuple[str, ...]:
    """What decides the price of a cell."""
    body: Mapping[str, Any] = vars(spec) if isinstance(spec, RunSpec) else spec
    options, models = (sorted(dict(body.get(name) or {}).items()) for name in ("options", "models"))
    return (str(body.get("forecaster", "agent")), str(models), str(options), str(list(body.get("search") or ())))


def _calls(spec: RunSpec) -> float:
    """Model calls of a cell, roughly: the agent's steps, a tree's leaves and what puts them together."""
    options = spec.options
    if spec.forecaster == "agent":
        return 1.0 if options.get("variant") == "zero-shot" else 0.7 * float(options.get("steps", 10))
    if spec.forecaster == "tree":
        return 2.0 + 1.7 * float(options.get("leaves", 10)) ** float(options.get("rounds", 1))
    return 12.0 if spec.forecaster == "thoughts" else 1.0
