"""Study: what does a right answer cost? Accuracy against dollars and against time, and who is not beaten on both.

After Analytica (2026), section 5.4 and D.4.2.
"""

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.questions.errors import InputError
from foretell.report.charts.ranking import FrontierPoint, frontier, pareto
from foretell.report.numbers import number
from foretell.report.study import StudyChart, StudyResult
from foretell.studies.configurations import complete_configs, study_notes, study_settings
from foretell.studies.inputs import CostOptions, DataInputs
from foretell.studies.layout import column, count, table
from foretell.studies.scores import run_accuracy

NOTES = (
    "On the frontier is who is not beaten in accuracy by anybody who costs no more. Accuracy per dollar favours "
    "whatever is nearly free, and is given because the paper gives it.",
    "Accuracy is that of single runs, at one half.",
)


def study(inputs: DataInputs, options: CostOptions) -> StudyResult:
    """What does a right answer cost, in dollars and in time?

    Forecasters whose cost is known, from their runs or from a table.
    """
    data = inputs.data(options)
    costs = data.costs
    tables = {name: one for name, one in complete_configs(data).items() if name in costs}
    if not tables:
        raise InputError(
            "no forecaster has a cost", hint="give --costs, a table with forecaster, dollars and seconds, or --run"
        )
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
        notes=(*NOTES, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def single_accuracy(examples: Examples, how: Resampling) -> Interval:
    """Share of right answers of single runs in per cent, clusters resampled."""
    right = run_accuracy(examples)
    answered = np.isfinite(right)
    return bootstrap_score(right[answered], examples.rows.cluster[answered], resampling=how)
