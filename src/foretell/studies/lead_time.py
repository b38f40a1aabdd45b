"""Study: how does the score depend on how long before the outcome a question was asked?"""

from collections.abc import Mapping

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Bools, Floats
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score, brier_index_from_sums
from foretell.metrics.clusters import ResamplingDesign
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.numbers import number
from foretell.report.study import CellValue, StudyChart, StudyColumn, StudyResult, StudyTable
from foretell.studies.configurations import best_config, complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.scores import brier_of

BOUNDS = {"a week": 7.0, "a month": 31.0, "three months": 92.0, "a year": 366.0, "longer": np.inf}
"""Days from asking to resolution, up to and including."""
NOTES = (
    "Days from asking to resolution: the horizon where the table has one, else the time until the outcome was known. "
    "Questions of different lead times are different questions: a slope here is no proof that time is the reason.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """How does the score fall with the time to resolution?

    Brier index by days from asking to resolution, by forecaster.
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    some = next(iter(tables.values()))
    groups = _groups(lead_days(some))
    shown = data.chosen or (best_config(tables),)
    charts: list[StudyChart] = []
    for place, name in enumerate(shown, start=1):
        scores = {label: _index(tables[name], member, data.resampling) for label, member in groups.items()}
        rows = [ForestRow(name=label, interval=one) for label, one in scores.items() if one is not None]
        drawn = forest_plot(rows, label="Brier index")
        charts.append(StudyChart(name=f"lead-time-{place}", title=f"{name} by lead time", chart=drawn))
    board = _table(tables, groups, data.resampling)
    return StudyResult(
        name="lead-time",
        title="Score by lead time",
        sentences=(_sentence(board, groups),),
        tables=(board,),
        charts=tuple(charts),
        notes=(*NOTES, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def lead_days(examples: Examples) -> Floats:
    """Days from asking to resolution of every target."""
    waited = (examples.known_on - examples.rows.due).astype("m8[D]").astype(np.float64)
    return np.where(np.isfinite(examples.rows.horizon), examples.rows.horizon, waited)


def _groups(days: Floats) -> dict[str, Bools]:
    """Targets by lead time, the empty groups left out."""
    found: dict[str, Bools] = {}
    low = -np.inf
    for label, high in BOUNDS.items():
        member = (days > low) & (days <= high)
        if member.any():
            found["longer" if label == "longer" else f"up to {label}"] = member
        low = high
    return found


def _index(table: Examples, member: Bools, how: Resampling) -> Interval | None:
    score = brier_of(table.rows.raw, table)
    known = member & np.isfinite(score)
    if not known.any():
        return None
    return bootstrap_score(
        score[known],
        ResamplingDesign(cluster=table.rows.cluster[known], weight=table.weight[known]),
        statistic=brier_index_from_sums,
        resampling=how,
    )


def _table(tables: Mapping[str, Examples], groups: Mapping[str, Bools], how: Resampling) -> StudyTable:
    columns = [
        StudyColumn(label=label, tip=f"Brier index of {int(member.sum())} targets") for label, member in groups.items()
    ]
    rows: list[tuple[str, dict[str, CellValue]]] = [
        (name, {label: _index(table, member, how) for label, member in groups.items()})
        for name, table in tables.items()
    ]
    counts: dict[str, CellValue] = {label: int(member.sum()) for label, member in groups.items()}
    return StudyTable.build(
        "Brier index by lead time",
        columns,
        [*rows, ("targets", counts)],
        row_header="Forecaster",
        styles={"targets": "anchor"},
    )


def _sentence(board: StudyTable, groups: Mapping[str, Bools]) -> str:
    parts: list[str] = []
    for label in groups:
        scores = [value.estimate for value in board.column(label).values() if isinstance(value, Interval)]
        if scores:
            parts.append(f"{label} {number(float(np.mean(scores)), 1)}")
    return f"Brier index by time to resolution, mean over forecasters: {'; '.join(parts)}."
