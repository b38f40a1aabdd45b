"""Study: how much of the error is bias, how much is chance between runs? Confidence, hard-score variance, histograms.

After Analytica (2026), sections 3 and 5.1. A run is a trial; a yes-no target is a task with two options, of which the
one that comes true is worth 1 and the other 0.
"""

from collections.abc import Mapping

import numpy as np

from foretell.arena.report.wording import bracket, number, plural
from foretell.arena.studies.selection import complete, notes_of, settings_of
from foretell.arena.studies.tree.material import made_up
from foretell.arena.studies.tree.methods import usual
from foretell.arena.studies.tree.play import Played, play
from foretell.arena.studies.tree.runs import Stable, mean_of_runs, runs_histogram, variance_of_runs
from foretell.arena.study import Column, Entry, Grid, Material, Picture, Study, Value
from foretell.evaluate.arrays import Floats
from foretell.evaluate.bootstrap import Resampling, bootstrap_score
from foretell.evaluate.intervals import Interval
from foretell.forecasters.combine.rows import Examples

NOTES = (
    "Hard is the worth of the option that is held likelier, soft the worth expected under the forecast. With two "
    "options worth 1 and 0, hard is accuracy (an undecided 0.5 counts as wrong) and soft is the chance given to what "
    "happened. Confidence is the chance of the likelier option.",
    "Variance is that of the hard score between runs of one question, as in the paper; spread is the standard "
    "deviation of the probability itself. A tree that always answers 0.49 has neither, and is no better for it: read "
    "both beside accuracy.",
    "Against outcomes, the squared error of one run is that of the mean of endlessly many runs plus the variance "
    "between runs. Against true chances, which only a made-up world has, the first part is bias² alone.",
)


def study(material: Material) -> Study:
    """Real runs where tables are given, else those of a made-up world."""
    scene = made_up(material)
    played = None if scene is None else play(scene, usual(), material.progress)
    tables = complete(material) if played is None else played.tables
    found = {name: Stable.of(examples) for name, examples in tables.items()}
    grids = [_board(found, tables, material.resampling)]
    if played is not None:
        grids.append(_decomposed(played, material.resampling))
    shown = _widest(found)
    return Study(
        name="stability",
        title="Bias and chance between runs",
        finding=_finding(grids[0]),
        grids=tuple(grids),
        pictures=tuple(
            Picture(name=f"runs-{i}", title=f"{name}: single runs", figure=runs_histogram(tables[name], name))
            for i, name in enumerate(shown, 1)
        ),
        notes=NOTES if played is not None else (*NOTES, *notes_of(material, tables)),
        settings=scene.told if scene is not None else settings_of(material, tables),
    )


def _board(found: Mapping[str, Stable], tables: Mapping[str, Examples], how: Resampling) -> Grid:
    entries = [
        Entry(
            name=name,
            values=(
                _mean_of(one.accuracy, tables[name], how),
                _estimate(one.soft),
                _estimate(one.brier),
                _mean_of(one.confidence, tables[name], how),
                _mean_of(one.variance, tables[name], how),
                _root(_mean_of(one.spread, tables[name], how)),
                _estimate(one.undecided),
                len(tables[name].rows.trials),
            ),
        )
        for name, one in found.items()
    ]
    columns = (
        Column(label="accuracy", tip="of a single run, % (the hard score)"),
        Column(label="soft", tip="chance given to what happened, %"),
        Column(label="Brier", tip="of a single run, ×100"),
        Column(label="confidence", tip="chance of the likelier option, %"),
        Column(label="variance", tip="of the hard score between runs, ×100"),
        Column(label="spread", tip="standard deviation of the probability between runs, in points"),
        Column(label="undecided", tip="% of runs that said exactly one half, which no outcome makes right"),
        Column(label="runs"),
    )
    return Grid(title="Stability", head="Method", columns=columns, entries=tuple(entries))


def _decomposed(played: Played, how: Resampling) -> Grid:
    """Against the true chance: MSE = bias² + variance, by question."""
    entries: list[Entry] = []
    for name, p in played.said.items():
        variance = variance_of_runs(p)
        bias = (mean_of_runs(p) - played.truth) ** 2 - variance / len(p)
        parts = [100 * part for part in (bias + variance, bias, variance)]
        values = [bootstrap_score(part, played.world, resampling=how) for part in parts]
        signed_bias = bootstrap_score(100 * (mean_of_runs(p) - played.truth), played.world, resampling=how)
        entries.append(Entry(name=name, values=(*values, signed_bias)))
    columns = (
        Column(label="MSE", decimals=2, tip="mean squared distance to the true chance, ×100"),
        Column(label="bias²", decimals=2, tip="of the mean of endlessly many runs, ×100, estimated without bias"),
        Column(label="variance", decimals=2, tip="between runs, ×100"),
        Column(label="mean bias", decimals=1, tip="mean of answer minus true chance, in points"),
    )
    return Grid(title="Against the true chance", head="Method", columns=columns, entries=tuple(entries))


def _mean_of(values: Floats, examples: Examples, how: Resampling) -> Value:
    kept = np.isfinite(values)
    if not kept.any():
        return None
    return bootstrap_score(values[kept], examples.rows.cluster[kept], resampling=how)


def _estimate(values: Floats) -> Value:
    kept = np.isfinite(values)
    return float(np.mean(values[kept])) if kept.any() else None


def _root(value: Value) -> Value:
    """From a variance in per cent to a standard deviation in points."""
    return 10 * value.estimate**0.5 if isinstance(value, Interval) else None


def _widest(found: Mapping[str, Stable]) -> list[str]:
    """The first, and those whose runs differ least and most."""
    order = sorted(found, key=lambda name: float(np.nan_to_num(found[name].spread).mean()))
    return list(dict.fromkeys([next(iter(found)), order[0], order[-1]]))


def _finding(board: Grid) -> str:
    ranked = [entry for entry in board.entries if isinstance(entry.values[4], Interval)]
    if not ranked:
        return "There is one run only: nothing to say about chance between runs."
    least = min(ranked, key=_variance_of)
    most = max(ranked, key=_variance_of)
    if _variance_of(least) == _variance_of(most):
        return f"The hard score varies equally between runs for {plural(len(ranked), 'method')}: {_told(least)}."
    return f"The hard score varies least between runs for {_told(least)} and most for {_told(most)}."


def _variance_of(entry: Entry) -> float:
    value = entry.values[4]
    assert isinstance(value, Interval)
    return value.estimate


def _told(entry: Entry) -> str:
    value, right = entry.values[4], entry.values[0]
    assert isinstance(value, Interval)
    accuracy = f", accuracy {number(right.estimate, 1)} %" if isinstance(right, Interval) else ""
    return f"{entry.name} ({number(value.estimate, 1)} {bracket(value.low, value.high, 1)}{accuracy})"
