"""Study: which part deserves the better model? Analyzer, grounder and synthesizer, each in several qualities.

After Analytica (2026), D.4: the grid of all combinations, the mean effect of each model in each part, cost efficiency.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.questions.errors import InputError
from foretell.report.numbers import number, percent, plural
from foretell.report.study import CellValue, StudyResult, StudyTable
from foretell.studies.configurations import complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, RoleOptions, StudyProgress
from foretell.studies.layout import column, count, table
from foretell.studies.scores import run_accuracy
from foretell.studies.trees.frontier import single_accuracy, usual_size
from foretell.studies.trees.inputs import ROLES, CallPrices, ForecastCost, simulation_for
from foretell.studies.trees.simulation import (
    SimulatedGrounder,
    SimulatedMethod,
    SimulatedSynthesizer,
    Simulation,
    simulate,
)

SEEN = {"large": 0.95, "middle": 0.8, "small": 0.6}
"""Share of the leaves an analyzer thinks of."""
GROUNDS = {
    "large": SimulatedGrounder(bias=0.01, slant=0.08, sd=0.06),
    "middle": SimulatedGrounder(bias=0.03, slant=0.12, sd=0.12),
    "small": SimulatedGrounder(bias=0.06, slant=0.2, sd=0.2),
}
OFF = {"large": 0.2, "middle": 0.6, "small": 1.2}
"""How far a synthesizer's numbers are off."""
DOLLARS = {"large": 0.02, "middle": 0.006, "small": 0.002}
"""Of one call; a grounding takes four."""
GROUNDING_CALLS = 4
CORRELATIONS = {"independent leaves": 0.0, "leaves wrong together": 0.7}
"""Correlation of the errors of the leaves of one question."""
NOTES = (
    "Share is how much of the variance between combinations each part accounts for, by sums of squares of an additive "
    "fit; what is left is parts that matter together, and chance.",
)
SIMULATION_NOTES = (
    "Qualities are set: how many leaves an analyzer thinks of, how far grounders and link numbers are off. What the "
    "grid shows is how such errors travel, not which real model has them.",
)


@dataclass(frozen=True, kw_only=True)
class RoleCombination:
    """One combination."""

    name: str
    roles: Mapping[str, str]
    accuracy: Interval
    right: Floats
    """Share of right answers by target."""
    cluster: Sequence[str]
    dollars: float | None


def study(inputs: DataInputs, options: RoleOptions) -> StudyResult:
    """Which role in a tree deserves the better model?

    Real runs whose roles are known where tables are given, else all combinations in a simulated world.
    """
    data = inputs.data(options)
    simulation = simulation_for(data)
    how = data.resampling
    if simulation is not None:
        cells = {name: _simulated(simulation, how, rho, data.progress) for name, rho in CORRELATIONS.items()}
        return _study(cells, how, (*NOTES, *SIMULATION_NOTES), simulation.description)
    roles = data.roles
    tables = {name: one for name, one in complete_configs(data).items() if name in roles}
    if len(tables) < 2:
        hint = f"give --roles, a table with forecaster, {', '.join(ROLES)}, or several runs of trees with --run"
        raise InputError("fewer than two forecasters have known roles", hint=hint)
    costs = data.costs
    cells = {"": [_combination(name, roles[name], one, costs.get(name), how) for name, one in tables.items()]}
    return _study(cells, how, (*NOTES, *study_notes(data, tables)), study_settings(data, tables))


def _study(
    found: Mapping[str, Sequence[RoleCombination]], how: Resampling, notes: tuple[str, ...], settings: dict[str, object]
) -> StudyResult:
    shares = {scenario: shares_of(cells) for scenario, cells in found.items()}
    grids = [_marginal(scenario, cells, how) for scenario, cells in found.items()]
    first = next(iter(found.values()))
    return StudyResult(
        name="tree-roles",
        title="Which part deserves the better model",
        sentences=(_sentence(shares, first),),
        tables=(_shares(shares), *grids, _all(first)),
        notes=notes,
        settings=settings,
    )


def _combination(
    name: str, roles: Mapping[str, str], examples: Examples, cost: ForecastCost | None, how: Resampling
) -> RoleCombination:
    return RoleCombination(
        name=name,
        roles=roles,
        accuracy=single_accuracy(examples, how),
        right=run_accuracy(examples),
        cluster=examples.rows.cluster.tolist(),
        dollars=None if cost is None else cost.dollars,
    )


def _simulated(
    simulation: Simulation, how: Resampling, correlation: float, progress: StudyProgress
) -> list[RoleCombination]:
    leaves, parents, levels = usual_size(simulation)
    methods: list[SimulatedMethod] = []
    priced_roles: dict[str, tuple[dict[str, str], ForecastCost]] = {}
    for chosen in product(SEEN, GROUNDS, OFF):
        roles: dict[str, str] = dict(zip(ROLES, chosen, strict=True))
        name = " · ".join(chosen)
        analyzer, grounder, synthesizer = chosen
        method = SimulatedMethod(
            name=name,
            seen=SEEN[analyzer],
            grounder=replace(GROUNDS[grounder], correlation=correlation),
            synthesizer=SimulatedSynthesizer(noise=OFF[synthesizer]),
        )
        methods.append(method)
        priced = CallPrices(
            grounding=ForecastCost(dollars=GROUNDING_CALLS * DOLLARS[grounder]),
            analysis=ForecastCost(dollars=DOLLARS[analyzer]),
            synthesis=ForecastCost(dollars=DOLLARS[synthesizer]),
        )
        priced_roles[name] = roles, priced.cost(method, leaves=leaves, parents=parents, levels=levels)
    tables = simulate(simulation, methods, progress).tables
    return [_combination(name, priced_roles[name][0], one, priced_roles[name][1], how) for name, one in tables.items()]


def shares_of(cells: Sequence[RoleCombination]) -> dict[str, float]:
    """By role, its part of the variance of accuracy between combinations.

    Each role's sum of squares is what the additive fit loses without it; on a full grid these add up.
    """
    y = np.array([cell.accuracy.estimate for cell in cells])
    total = float(np.sum((y - y.mean()) ** 2))
    whole = _left_over(y, cells, ROLES)
    without = {role: _left_over(y, cells, [other for other in ROLES if other != role]) for role in ROLES}
    return {role: (left - whole) / total if total else float("nan") for role, left in without.items()}


def _left_over(y: Floats, cells: Sequence[RoleCombination], roles: Sequence[str]) -> float:
    """Sum of squares that an additive fit of these roles leaves."""
    columns = [np.ones(len(y))]
    for role in roles:
        models = list(dict.fromkeys(cell.roles[role] for cell in cells))
        columns += [np.array([float(cell.roles[role] == model) for cell in cells]) for model in models[1:]]
    matrix = np.column_stack(columns)
    fit = matrix @ np.linalg.lstsq(matrix, y, rcond=None)[0]
    return float(np.sum((y - fit) ** 2))


def _marginal(scenario: str, cells: Sequence[RoleCombination], how: Resampling) -> StudyTable:
    columns = (
        column("accuracy", "mean over all combinations with this model in this part, %"),
        column("dollars", "mean per forecast", 3),
        column("combinations"),
    )
    rows: dict[str, tuple[CellValue, ...]] = {}
    for role in ROLES:
        for model in dict.fromkeys(cell.roles[role] for cell in cells):
            mine = [cell for cell in cells if cell.roles[role] == model]
            right = np.mean([cell.right for cell in mine], axis=0)
            answered = np.isfinite(right)
            cluster = np.array(mine[0].cluster)[answered]
            dollars = [cell.dollars for cell in mine if cell.dollars is not None]
            score = bootstrap_score(right[answered], cluster, resampling=how)
            rows[f"{role}: {model}"] = (score, float(np.mean(dollars)) if dollars else None, len(mine))
    title = f"Each model in each part{f', {scenario}' if scenario else ''}"
    return table(title, "Part", columns, rows)


def _shares(shares: Mapping[str, Mapping[str, float]]) -> StudyTable:
    columns = [column(scenario or "share", "% of the variance between combinations") for scenario in shares]
    rows = {role: [100 * one[role] for one in shares.values()] for role in ROLES}
    return table("What the parts account for, %", "Part", columns, rows)


def _all(cells: Sequence[RoleCombination]) -> StudyTable:
    columns = (
        column("accuracy", "of a single run at one half, %"),
        column("dollars", "per forecast", 3),
        count("per dollar", "accuracy divided by dollars"),
    )
    best_first = sorted(cells, key=lambda cell: -cell.accuracy.estimate)
    rows = [
        (cell.name, (cell.accuracy, cell.dollars, cell.accuracy.estimate / cell.dollars if cell.dollars else None))
        for cell in best_first
    ]
    return table("All combinations", " · ".join(ROLES), columns, rows)


def _sentence(shares: Mapping[str, Mapping[str, float]], cells: Sequence[RoleCombination]) -> str:
    rankings: list[str] = []
    for name, parts in shares.items():
        order = sorted(parts, key=lambda role: -parts[role])
        ranked = ", ".join(f"{role} {percent(parts[role])}" for role in order)
        rankings.append(f"{ranked}{f' ({name})' if name else ''}")
    best = max(cells, key=lambda cell: cell.accuracy.estimate)
    right = number(best.accuracy.estimate, 1)
    return (
        f"Of the variance between {plural(len(cells), 'combination')}: {'; '.join(rankings)}. Best is {best.name} with "
        f"{right} %."
    )
