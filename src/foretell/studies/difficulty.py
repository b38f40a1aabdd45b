"""Study: how good are forecasters when it is taken into account how hard their questions were?"""

from collections.abc import Mapping

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.difficulty import adjusted_brier, difficulty_anchor, market_difficulty, question_difficulty
from foretell.metrics.scores import brier_index
from foretell.metrics.shares import mean_interval
from foretell.questions.errors import InputError
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.numbers import number, plural
from foretell.report.study import CellValue, StudyChart, StudyColumn, StudyResult, StudyTable
from foretell.studies.configurations import SEES_THE_FUTURE, complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.scores import brier_of

HARDEST = 15
NOTES = (
    "A question on a market is as hard as its price was wrong, (price − outcome)²; another one is as hard as its fixed "
    "effect over all complete forecasters. The adjusted Brier score subtracts difficulty and adds a constant that puts "
    "always-0.5 at 0.25 (Bastani et al. 2025), so that forecasters who answered different questions can be compared.",
    "Difficulty is treated as known: intervals resample questions, not the forecasters it was estimated from.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Who is best with the difficulty of questions taken out?

    Difficulty-adjusted Brier scores as ForecastBench has them, for forecasters who answered different questions.
    """
    data = inputs.data(options)
    complete = complete_configs(data)
    if len(complete) < 2:
        raise InputError("difficulty needs at least two complete forecasters", hint="name more of them with --config")
    some = next(iter(complete.values()))
    gamma = _difficulty(complete, some)
    constant = difficulty_anchor(gamma[np.isfinite(gamma)])
    shown = {
        name: table
        for name, table in data.tables.items()
        if name in complete or (not data.chosen and SEES_THE_FUTURE not in name)
    }
    adjusted = {name: _adjusted(table, gamma, constant, data.resampling) for name, table in shown.items()}
    ranked = {name: one for name, one in sorted(adjusted.items(), key=lambda item: item[1].estimate)}
    rows = [ForestRow(name=name, interval=one) for name, one in ranked.items()]
    chart = forest_plot(rows, label="adjusted Brier score, lower is better", decimals=3)
    return StudyResult(
        name="difficulty",
        title="Scores without the difficulty of the questions",
        sentences=(_sentence(ranked),),
        tables=(_board(shown, ranked), _hardest(some, gamma)),
        charts=(StudyChart(name="adjusted", title="Adjusted Brier score", chart=chart),),
        notes=(*NOTES, *study_notes(data, complete, left_out="Difficulty was not estimated from")),
        settings=study_settings(data, complete),
    )


def _difficulty(complete: Mapping[str, Examples], some: Examples) -> Floats:
    """The difficulty of every target."""
    rows = some.rows
    scores = np.stack([brier_of(one.rows.raw, one) for one in complete.values()])
    method, target = (grid.ravel() for grid in np.meshgrid(np.arange(len(scores)), np.arange(len(rows)), indexing="ij"))
    answered = np.isfinite(scores.ravel())
    fitted = question_difficulty(scores.ravel()[answered], method[answered], target[answered])
    effect = fitted.of(np.arange(len(rows)))
    priced = np.isfinite(rows.price)
    gamma = effect - np.nanmean(effect) + np.nanmean(scores)  # On the scale of Brier scores, as prices are.
    gamma[priced] = market_difficulty(rows.price[priced], some.outcome[priced])
    return gamma


def _adjusted(table: Examples, gamma: Floats, constant: float, how: Resampling) -> Interval:
    score = brier_of(table.rows.raw, table)
    known = np.isfinite(score) & np.isfinite(gamma)
    values = adjusted_brier(score[known], gamma[known], constant)
    found = mean_interval(values.tolist(), table.rows.cluster[known].tolist(), how)
    if found is None:
        raise InputError("a forecaster answered none of the questions whose difficulty is known")
    return found


def _board(tables: Mapping[str, Examples], adjusted: Mapping[str, Interval]) -> StudyTable:
    columns = (
        StudyColumn(label="adjusted Brier", decimals=3, tip="Brier score minus difficulty plus a constant"),
        StudyColumn(label="adjusted BI", tip="100·(1 − √adjusted Brier)"),
        StudyColumn(label="Brier", decimals=3, tip="as it is, on what was answered"),
        StudyColumn(label="n", decimals=0, tip="targets answered"),
    )
    return StudyTable.build(
        "Adjusted for difficulty",
        columns,
        ((name, _values(tables[name], one)) for name, one in adjusted.items()),
        row_header="Forecaster",
    )


def _values(table: Examples, adjusted: Interval) -> dict[str, CellValue]:
    score = brier_of(table.rows.raw, table)
    return {
        "adjusted Brier": adjusted,
        "adjusted BI": brier_index(max(0.0, adjusted.estimate)),
        "Brier": float(np.nanmean(score)),
        "n": int(np.isfinite(score).sum()),
    }


def _hardest(some: Examples, gamma: Floats) -> StudyTable:
    rows = some.rows
    columns = (
        StudyColumn(label="target", numeric=False),
        StudyColumn(label="difficulty", decimals=3),
        StudyColumn(label="price", decimals=2),
        StudyColumn(label="outcome", decimals=0),
    )
    order = np.argsort(-np.nan_to_num(gamma, nan=-1.0), kind="stable")[:HARDEST]
    listed = (
        (
            str(rows.question[i]),
            {
                "target": str(rows.target[i]),
                "difficulty": float(gamma[i]),
                "price": float(rows.price[i]) if np.isfinite(rows.price[i]) else None,
                "outcome": float(some.outcome[i]),
            },
        )
        for i in order.tolist()
    )
    return StudyTable.build("The hardest questions", columns, listed, row_header="Question")


def _sentence(ranked: Mapping[str, Interval]) -> str:
    (best, first), *others = ranked.items()
    apart = sum(one.low > first.high for _, one in others)
    return (
        f"With difficulty taken out {best} is best, adjusted Brier {number(first.estimate, 3)}; the intervals of "
        f"{apart} of {plural(len(others), 'other')} lie wholly above its own."
    )
