"""The threshold between True and False: chosen on some rows, judged on others (Analytica 2026, D.5)."""

from collections.abc import Mapping
from math import nan

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.bootstrap import Resampling
from foretell.metrics.decisions import Criterion, best_threshold, cross_fit_threshold
from foretell.number_text import number, plural
from foretell.questions.errors import InputError
from foretell.report.numbers import CellValue, value_text
from foretell.report.study import StudyTable, column, share, table
from foretell.report.study_result import StudyResult
from foretell.scoring.verdict import Verdict
from foretell.studies.configurations import study_configs, with_scope
from foretell.studies.inputs import StudyData

CRITERIA: Mapping[Criterion, str] = {"accuracy": "Accuracy", "balanced": "Balanced accuracy"}
FOLDS = 10
THRESHOLD_NOTES = (
    "A claim is called True if p is above the threshold; a p at the threshold counts half. Chosen is the threshold "
    "that is best on all rows; its score there (in-sample) is too optimistic. Held out is the score of thresholds on "
    f"questions they were not chosen on, in {FOLDS} folds of whole clusters.",
    "Balanced accuracy is the mean of the share of true claims called True and of false claims called False: it does "
    "not reward always giving the more frequent answer.",
)


def threshold_section(data: StudyData) -> StudyResult:
    """Try every criterion on every configuration; the forecast is the logit mean of the trials."""
    configs = study_configs(data)
    tables = {name: examples for name, examples in configs.items() if _has_both_outcomes(examples)}
    if not tables:
        raise InputError("all outcomes are the same", hint="give more questions")
    grids = tuple(_grid(criterion, tables, data.resampling) for criterion in CRITERIA)
    result = StudyResult(
        name="calibration",
        title="Where to cut a probability",
        sentences=(_threshold_sentence(grids[0]),),
        tables=grids,
        notes=THRESHOLD_NOTES,
    )
    alone = "answered too little: one outcome only, or a single cluster"
    return with_scope(result, data, configs, left_out=dict.fromkeys(configs.keys() - tables.keys(), alone))


def _has_both_outcomes(examples: Examples) -> bool:
    answered = np.isfinite(examples.rows.raw)
    return len(np.unique(examples.outcome[answered])) > 1 and len(np.unique(examples.rows.cluster[answered])) > 1


def _grid(criterion: Criterion, tables: Mapping[str, Examples], how: Resampling) -> StudyTable:
    columns = (
        share("chosen", "the best threshold on all rows"),
        column("at 0.5", "score at one half"),
        column("held out", "score of thresholds chosen on other questions"),
        column("gain", "held out minus at 0.5, clusters resampled"),
        column("in-sample", "score of the best threshold on the rows it was chosen on"),
        column("n", "targets answered"),
    )
    rows = {name: _values(examples, criterion, how) for name, examples in tables.items()}
    return table(f"{CRITERIA[criterion]}, %", "Method", columns, rows)


def _values(examples: Examples, criterion: Criterion, how: Resampling) -> tuple[CellValue, ...]:
    answered = examples.take(np.isfinite(examples.rows.raw))
    p, outcome, cluster = answered.rows.raw, answered.outcome, answered.rows.cluster
    chosen = best_threshold(p, outcome, criterion=criterion, weight=answered.weight)
    held_out = cross_fit_threshold(
        p, outcome, cluster, criterion=criterion, weight=answered.weight, folds=FOLDS, resampling=how
    )
    names = ("tuned threshold", "one half")
    gain = Verdict.of(held_out.gain.times(100), names, "accuracy in points", level=how.level, matters=1.0)
    scores = (100 * held_out.score_at_half, 100 * held_out.score, gain, 100 * held_out.in_sample)
    return (chosen.value, *scores, len(answered))


def _threshold_sentence(grid: StudyTable) -> str:
    gains = {name: gain for name, gain in grid.column("gain").items() if isinstance(gain, Verdict)}
    clear = sum(gain.says == "better" for gain in gains.values())
    harmed = sum(gain.says == "worse" for gain in gains.values())
    best = max(gains, key=lambda name: gains[name].diff)
    apart = f", and harms {plural(harmed, 'method')}" if harmed else ""
    at_half = grid.numbers("at 0.5").get(best, nan)
    return (
        f"A tuned threshold helps {clear} of {plural(len(gains), 'method')} by more than chance{apart}; at best it is "
        f"worth {value_text(gains[best], 1)} for {best} (accuracy in points, {number(at_half, 1)} at one half)."
    )
