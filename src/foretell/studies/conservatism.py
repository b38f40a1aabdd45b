"""Study: do forecasters go as far from one half as the market does, and how far are they from each other?"""

from collections.abc import Mapping

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.agreement import divergence_matrix
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.shares import mean_interval
from foretell.report.charts.calibration import conservatism_plot
from foretell.report.charts.heatmap import distance_heatmap
from foretell.report.numbers import number, plural
from foretell.report.study import CellValue, StudyChart, StudyColumn, StudyResult, StudyTable
from foretell.studies.configurations import best_config, complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, TableOptions

MOST_CHARTS = 4
NOTES = (
    "Farther is the mean of |p − 0.5| minus that of the crowd's price, on questions with a price: below 0 the "
    "forecaster hedges. Hedged is the share of targets on which it is closer to 0.5 than the crowd; ties count half.",
    "Divergence is the mean Jensen–Shannon divergence between two forecasters in bits: 0 where they agree, 1 for "
    "opposite certainties. Averaging helps where forecasters are good and different; this is the second half of that.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Do forecasters hedge, and how far apart are they?

    Distance from one half beside the crowd's price, and the divergence between all forecasters.
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    board = _hedging_table(tables, data.resampling)
    names = list(tables)
    matrix = divergence_matrix(np.column_stack([one.rows.raw for one in tables.values()])).mean
    heatmap = distance_heatmap(names, matrix, label="mean Jensen–Shannon divergence in bits")
    charts = [StudyChart(name="divergence", title="How far forecasters are apart", chart=heatmap)]
    if board.rows:
        for place, name in enumerate((data.chosen or (best_config(tables),))[:MOST_CHARTS], start=1):
            drawn = conservatism_plot(tables[name].rows.raw, tables[name].rows.price, name=name)
            charts.append(StudyChart(name=f"market-{place}", title=f"{name} against the market", chart=drawn))
    return StudyResult(
        name="conservatism",
        title="Hedging and divergence",
        sentences=(_sentence(board, names, matrix),),
        tables=(board, _divergence_table(names, matrix)),
        charts=tuple(charts),
        notes=(*NOTES, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def _hedging_table(tables: Mapping[str, Examples], how: Resampling) -> StudyTable:
    columns = (
        StudyColumn(label="farther", decimals=3, tip="mean |p − 0.5| minus that of the price; below 0 is hedging"),
        StudyColumn(label="hedged", decimals=2, tip="share of targets closer to 0.5 than the price"),
        StudyColumn(label="n", decimals=0, tip="targets with a forecast and a price"),
    )
    rows = ((name, values) for name, table in tables.items() if (values := _hedging(table, how)))
    return StudyTable.build("Distance from one half beside the market", columns, rows, row_header="Forecaster")


def _hedging(table: Examples, how: Resampling) -> dict[str, CellValue]:
    p, price = table.rows.raw, table.rows.price
    both = np.isfinite(p) & np.isfinite(price)
    if not both.any():
        return {}
    gap = np.abs(p[both] - 0.5) - np.abs(price[both] - 0.5)
    hedged = np.where(gap == 0, 0.5, (gap < 0).astype(np.float64))
    cluster = table.rows.cluster[both].tolist()
    return {
        "farther": mean_interval(gap.tolist(), cluster, how),
        "hedged": mean_interval(hedged.tolist(), cluster, how),
        "n": int(both.sum()),
    }


def _divergence_table(names: list[str], matrix: np.ndarray) -> StudyTable:
    """From each forecaster to its nearest, to the farthest, and to all others on average."""
    labels = ("mean", "nearest", "to the nearest", "farthest", "to the farthest")
    columns = [StudyColumn(label=one, decimals=3, numeric=one not in ("nearest", "farthest")) for one in labels]
    rows: list[tuple[str, dict[str, CellValue]]] = []
    for i, name in enumerate(names):
        others = [(float(matrix[i, j]), other) for j, other in enumerate(names) if j != i]
        known = sorted(pair for pair in others if np.isfinite(pair[0]))
        if known:
            (least, near), (most, far) = known[0], known[-1]
            values = (float(np.mean([value for value, _ in known])), near, least, far, most)
            rows.append((name, dict(zip(labels, values, strict=True))))
    return StudyTable.build("Divergence in bits", columns, rows, row_header="Forecaster")


def _sentence(board: StudyTable, names: list[str], matrix: np.ndarray) -> str:
    upper = matrix[np.triu_indices(len(names), k=1)]
    mean = float(np.nanmean(upper)) if np.isfinite(upper).any() else 0.0
    apart = f"two forecasters are {number(mean, 3)} bits apart on average"
    gaps = [value for value in board.column("farther").values() if isinstance(value, Interval)]
    if not gaps:
        return f"No question has a price; {apart}."
    hedge, bold = sum(one.high < 0 for one in gaps), sum(one.low > 0 for one in gaps)
    return (
        f"Of {plural(len(gaps), 'forecaster')}, {hedge} stay clearly closer to 0.5 than the market and {bold} go "
        f"clearly farther; {apart}."
    )
