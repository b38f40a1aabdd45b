"""Study: where to cut a probability into True and False? Chosen on some rows, judged on others.

After Analytica (2026), D.5.
"""

from collections.abc import Mapping
from math import nan

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.bootstrap import Resampling
from foretell.metrics.comparison import Comparison
from foretell.metrics.decisions import Criterion, best_threshold, cross_fit_threshold
from foretell.questions.errors import InputError
from foretell.report.numbers import bracket, number, plural, signed
from foretell.report.study import CellValue, StudyResult, StudyTable
from foretell.studies.configurations import complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.layout import column, table

CRITERIA: Mapping[Criterion, str] = {"accuracy": "Accuracy", "balanced": "Balanced accuracy"}
FOLDS = 10
NOTES = (
    "A claim is called True where p is above the threshold. Chosen is the threshold that is best on all rows; what it "
    "reaches there (in-sample) flatters it. Held out is what thresholds reach on questions they were not chosen on, in "
    f"{FOLDS} folds of whole clusters.",
    "Balanced accuracy is the mean of the share of true claims called True and of false claims called False: it does "
    "not reward calling everything what most claims are.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Where to cut a probability into True and False?

    Every configuration by every criterion; the trials' logit mean answers.
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    grids = tuple(_grid(criterion, tables, data.resampling) for criterion in CRITERIA)
    return StudyResult(
        name="threshold",
        title="Where to cut a probability",
        sentences=(_sentence(grids[0]),),
        tables=grids,
        notes=(*NOTES, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def _grid(criterion: Criterion, tables: Mapping[str, Examples], how: Resampling) -> StudyTable:
    columns = (
        column("chosen", "the best threshold on all rows", 3),
        column("at 0.5", "score at one half"),
        column("held out", "score of thresholds chosen on other questions"),
        column("gain", "held out minus at 0.5, clusters resampled"),
        column("in-sample", "score of the best threshold on the rows it was chosen on"),
        column("n", "targets answered"),
    )
    rows = {name: _values(one, criterion, how) for name, one in tables.items()}
    return table(f"{CRITERIA[criterion]}, %", "Method", columns, rows)


def _values(examples: Examples, criterion: Criterion, how: Resampling) -> tuple[CellValue, ...]:
    kept = examples.take(np.isfinite(examples.rows.raw))
    p, outcome, cluster = kept.rows.raw, kept.outcome, kept.rows.cluster
    if len(np.unique(outcome)) < 2:
        raise InputError("all outcomes are the same: there is nothing to tell apart", hint="give more questions")
    chosen = best_threshold(p, outcome, criterion=criterion)
    held = cross_fit_threshold(p, outcome, cluster, criterion=criterion, folds=FOLDS, resampling=how)
    scores = (100 * held.score_at_half, 100 * held.score, held.gain.times(100), 100 * held.in_sample)
    return (chosen.value, *scores, len(kept))


def _sentence(grid: StudyTable) -> str:
    gains = {name: gain for name, gain in grid.column("gain").items() if isinstance(gain, Comparison)}
    clear = sum(gain.low > 0 for gain in gains.values())
    harmed = sum(gain.high < 0 for gain in gains.values())
    best = max(gains, key=lambda name: gains[name].diff)
    apart = f", and harms {plural(harmed, 'method')}" if harmed else ""
    gap, at_half = gains[best], grid.numbers("at 0.5").get(best, nan)
    return (
        f"A tuned threshold helps {clear} of {plural(len(gains), 'method')} clearly{apart}; at best it is worth "
        f"{signed(gap.diff, 1)} {bracket(gap.low, gap.high, 1)} for {best} (accuracy in points, {number(at_half, 1)} "
        "at one half)."
    )
