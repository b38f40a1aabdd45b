"""Study: what does a right answer cost? Accuracy against dollars and against time, and who is not beaten on both.

After Analytica (2026), section 5.4 and D.4.2.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.tree.grow.analyze import depth_of
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.questions.errors import InputError
from foretell.report.charts.ranking import FrontierPoint, frontier, pareto
from foretell.report.numbers import number
from foretell.report.study import StudyChart, StudyResult
from foretell.studies.configurations import complete_configs, study_notes, study_settings
from foretell.studies.inputs import CostOptions, DataInputs, StudyData, StudyProgress
from foretell.studies.layout import column, count, table
from foretell.studies.scores import run_accuracy
from foretell.studies.trees.inputs import CallPrices, ForecastCost, simulation_for
from foretell.studies.trees.simulation import DIRECT, SimulatedGrounder, SimulatedMethod, Simulation, simulate
from foretell.studies.trees.world import draw_shape

GROUNDERS: Mapping[str, tuple[SimulatedGrounder, ForecastCost]] = {
    "quick": (SimulatedGrounder(bias=0.06, slant=0.2, sd=0.2), ForecastCost(dollars=0.02, seconds=32)),
    "careful": (SimulatedGrounder(bias=0.03, slant=0.12, sd=0.12), ForecastCost(dollars=0.07, seconds=157)),
    "thorough": (SimulatedGrounder(bias=0.01, slant=0.08, sd=0.06), ForecastCost(dollars=4.02, seconds=456)),
}
"""Errors are set; dollars and seconds are those of search, notebook and deep research in Analytica's Tables 2 and 3."""
CALL = ForecastCost(dollars=0.005, seconds=30)
"""Of one call to take apart or to put together, set."""
NOTES = (
    "On the frontier is who is not beaten in accuracy by anybody who costs no more. Accuracy per dollar favours "
    "whatever is nearly free, and is given because the paper gives it.",
    "Accuracy is that of single runs, at one half.",
)
SIMULATION_NOTES = (
    "Errors of the simulated grounders are set; their dollars and seconds are published ones of search, notebook and "
    "deep research. Which of them lies on the frontier says nothing about real ones; how trees and repeats move a "
    "grounder along it does: asking again averages out what is new each time, a tree also what is wrong every time.",
)


def study(inputs: DataInputs, options: CostOptions) -> StudyResult:
    """What does a right answer cost, in dollars and in time?

    Real forecasters with what they cost where tables are given, else those of a simulated world.
    """
    data = inputs.data(options)
    simulation = simulation_for(data)
    if simulation is not None:
        tables, costs = _simulated(simulation, data.progress)
        return _study(tables, costs, data, (*NOTES, *SIMULATION_NOTES), simulation.description)
    costs = data.costs
    tables = {name: one for name, one in complete_configs(data).items() if name in costs}
    if not tables:
        raise InputError(
            "no forecaster has a cost", hint="give --costs, a table with forecaster, dollars and seconds, or --run"
        )
    return _study(tables, costs, data, (*NOTES, *study_notes(data, tables)), study_settings(data, tables))


def _study(
    tables: Mapping[str, Examples],
    costs: Mapping[str, ForecastCost],
    data: StudyData,
    notes: tuple[str, ...],
    settings: dict[str, object],
) -> StudyResult:
    right = {name: single_accuracy(one, data.resampling) for name, one in tables.items()}
    by = {
        unit: [FrontierPoint(name=n, cost=getattr(costs[n], unit), interval=i) for n, i in right.items()]
        for unit in ("dollars", "seconds")
    }
    best = {unit: {one.name for one in pareto(points)} for unit, points in by.items()}
    columns = (
        column("accuracy", "of a single run at one half, %"),
        column("dollars", "per forecast", 3),
        count("seconds", "per forecast, on the clock"),
        count("per dollar", "accuracy divided by dollars: the paper's cost efficiency"),
        column("best for its dollars"),
        column("best for its time"),
    )
    rows = {
        name: (
            interval,
            costs[name].dollars,
            costs[name].seconds,
            interval.estimate / costs[name].dollars if costs[name].dollars > 0 else None,
            *("yes" if name in names else "" for names in best.values()),
        )
        for name, interval in right.items()
    }
    charts = tuple(
        StudyChart(
            name=unit,
            title=f"Accuracy against {unit}",
            chart=frontier(points, label="accuracy, %", cost_label=f"{unit} per forecast"),
        )
        for unit, points in by.items()
    )
    leaders = [
        f"{one.name} ({number(one.interval.estimate, 1)} % for ${one.cost:.3g})" for one in pareto(by["dollars"])
    ]
    return StudyResult(
        name="frontier",
        title="What a right answer costs",
        sentences=(f"Best for their dollars: {', '.join(leaders)}.",),
        tables=(table("Accuracy and cost", "Method", columns, rows),),
        charts=charts,
        notes=notes,
        settings=settings,
    )


def single_accuracy(examples: Examples, how: Resampling) -> Interval:
    """Share of right answers of single runs in per cent, clusters resampled."""
    right = run_accuracy(examples)
    answered = np.isfinite(right)
    return bootstrap_score(right[answered], examples.rows.cluster[answered], resampling=how)


def _simulated(simulation: Simulation, progress: StudyProgress) -> tuple[dict[str, Examples], dict[str, ForecastCost]]:
    methods: list[SimulatedMethod] = []
    costs: dict[str, ForecastCost] = {}
    leaves, parents, levels = usual_size(simulation)
    for name, (grounder, price) in GROUNDERS.items():
        alone = SimulatedMethod(name=f"{name} alone", rule=DIRECT, grounder=grounder)
        mine = [
            alone,
            replace(alone, name=f"{name}, mean of 10", repeats=10),
            *(replace(alone, name=f"{name}, tree {rule}", rule=rule) for rule in ("linear", "logic", "average")),
        ]
        priced = CallPrices(grounding=price, analysis=CALL, synthesis=CALL)
        costs |= {one.name: priced.cost(one, leaves=leaves, parents=parents, levels=levels) for one in mine}
        methods += mine
    return simulate(simulation, methods, progress).tables, costs


def usual_size(simulation: Simulation) -> tuple[float, float, float]:
    """Mean leaves, parents and levels of the simulation's trees."""
    sizes: list[tuple[int, int, int]] = []
    for place in range(min(simulation.worlds, 50)):
        rng = np.random.default_rng([simulation.seed, place])
        shape = draw_shape(simulation.settings.leaves, rng, children=simulation.settings.children)
        ends = sum(not children for children in shape.values())
        sizes.append((ends, len(shape) - ends, max(map(depth_of, shape))))
    leaves, parents, levels = np.mean(sizes, axis=0).tolist()
    return leaves, parents, levels
