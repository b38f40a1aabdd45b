"""Study: do forecasters go as far from one half as the market does, and how far are they from each other?"""

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.shares import mean_interval
from foretell.report.charts.calibration import conservatism_plot
from foretell.report.numbers import number, plural
from foretell.report.study import CellValue, StudyChart, StudyResult, StudyTable
from foretell.studies.configurations import complete_configs, divergence_chart, shown_configs, with_scope
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.layout import column, count, table, words

MOST_CHARTS = 4
NOTES = (
    "Farther is the mean of |p − 0.5| minus that of the crowd's price, on questions with a price: below 0 the "
    "forecaster hedges. Hedged is the share of targets on which it is closer to 0.5 than the crowd; ties count half.",
    "Divergence is the mean Jensen–Shannon divergence between two forecasters in bits: 0 where they agree, 1 for "
    "opposite certainties. Averaging helps where forecasters are good and different; this is the second half of that.",
)
HEDGING = (
    column("farther", "mean |p − 0.5| minus that of the price; below 0 is hedging", 3),
    column("hedged", "share of targets closer to 0.5 than the price", 2),
    count("n", "targets with a forecast and a price"),
)
DIVERGENCE = (
    column("mean", decimals=3),
    words("nearest"),
    column("to the nearest", decimals=3),
    words("farthest"),
    column("to the farthest", decimals=3),
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Do forecasters hedge, and how far apart are they?

    Distance from one half beside the crowd's price, and the divergence between all forecasters.
    """
    data = inputs.data(options)
    configs = complete_configs(data)
    hedging = {name: values for name, one in configs.items() if (values := _hedging(one, data.resampling))}
    heatmap, matrix = divergence_chart(configs, "How far forecasters are apart")
    charts = [heatmap]
    for place, name in enumerate(shown_configs(data, configs)[:MOST_CHARTS] if hedging else (), start=1):
        drawn = conservatism_plot(configs[name].rows.raw, configs[name].rows.price, name=name)
        charts.append(StudyChart(name=f"market-{place}", title=f"{name} against the market", chart=drawn))
    board = table("Distance from one half beside the market", "Forecaster", HEDGING, hedging)
    result = StudyResult(
        name="conservatism",
        title="Hedging and divergence",
        sentences=(_sentence(board, matrix),),
        tables=(
            board,
            _divergence_table(list(configs), matrix),
        ),
        charts=tuple(charts),
        notes=NOTES,
    )
    return with_scope(result, data, configs)


def _hedging(examples: Examples, how: Resampling) -> tuple[CellValue, ...]:
    p, price = examples.rows.raw, examples.rows.price
    both = np.isfinite(p) & np.isfinite(price)
    if not both.any():
        return ()
    gap = np.abs(p[both] - 0.5) - np.abs(price[both] - 0.5)
    hedged = np.where(gap == 0, 0.5, gap < 0)
    cluster = examples.rows.cluster[both].tolist()
    return (*(mean_interval(values.tolist(), cluster, how) for values in (gap, hedged)), int(both.sum()))


def _divergence_table(names: list[str], matrix: Floats) -> StudyTable:
    """From each forecaster to its nearest, to the farthest, and to all others on average."""
    rows: dict[str, tuple[CellValue, ...]] = {}
    for i, name in enumerate(names):
        others = [(float(matrix[i, j]), other) for j, other in enumerate(names) if j != i]
        known = sorted(pair for pair in others if np.isfinite(pair[0]))
        if known:
            (least, near), (most, far) = known[0], known[-1]
            rows[name] = (float(np.mean([value for value, _ in known])), near, least, far, most)
    return table("Divergence in bits", "Forecaster", DIVERGENCE, rows)


def _sentence(board: StudyTable, matrix: Floats) -> str:
    upper = matrix[np.triu_indices(len(matrix), k=1)]
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
