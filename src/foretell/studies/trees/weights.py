"""Study: what are the weights worth? The linear rule against means, random weights, and weights that are off.

After Analytica (2026), D.8 and Table 13.
"""

from dataclasses import replace

import numpy as np

from foretell.metrics.bootstrap import Resampling, bootstrap_score
from foretell.metrics.comparison import Comparison, compare_paired
from foretell.report.numbers import bracket, number, signed
from foretell.report.study import StudyResult, StudyTable
from foretell.studies.inputs import DataInputs, TreeStudyOptions
from foretell.studies.layout import column, table
from foretell.studies.trees.inputs import require_simulation
from foretell.studies.trees.simulation import DIRECT, SimulatedMethod, SimulatedSynthesizer, SimulationResult, simulate
from foretell.studies.trees.world import LINK_KINDS

OFF = (0.0, 0.3, 0.6, 1.0, 1.5, 2.5)
"""How far weights are off: by factors exp(off·z)."""
AVERAGE = "average"
NOTES = (
    "True weights of a claim are equally likely to be any that add up to the same, which makes them rather unequal. "
    "Where true weights are nearly equal a mean has little to lose.",
    "Weights that are off by 0.3 are wrong by a third in either direction, by 1.0 by a factor of 2.7.",
    "Finished trees can be put to the same test without any model: `foretell backtest QUESTIONS -F "
    "tree-file:folder=TREES -F tree-file:folder=TREES,rule=average -F tree-file:folder=TREES,rule=random`.",
)


def study(inputs: DataInputs, options: TreeStudyOptions) -> StudyResult:
    """What are the weights of a tree worth?

    Worlds of both kinds; real trees where some are given.
    """
    data = inputs.data(options)
    if data.trees:
        from foretell.studies.trees.noise import weights_of_trees

        return weights_of_trees(data)
    simulation = require_simulation(data, "tree-weights", trees=True)
    methods = _methods()
    grids: list[StudyTable] = []
    for kind in LINK_KINDS:
        result = simulate(replace(simulation, kinds=(kind,)), methods, data.progress)
        grids.append(_grid(f"{kind.capitalize()} worlds", result, data.resampling))
    return StudyResult(
        name="tree-weights",
        title="What the weights of a linear rule are worth",
        sentences=(_sentence(grids[0]),),
        tables=tuple(grids),
        notes=NOTES,
        settings=simulation.description,
    )


def _methods() -> list[SimulatedMethod]:
    alone = SimulatedMethod(name="grounder alone", rule=DIRECT)
    off = [
        replace(alone, name=f"weights off by {noise:g}", rule="linear", synthesizer=SimulatedSynthesizer(noise=noise))
        for noise in OFF
    ]
    return [alone, replace(alone, name="random", rule="random"), replace(alone, name=AVERAGE, rule=AVERAGE), *off]


def _grid(title: str, result: SimulationResult, how: Resampling) -> StudyTable:
    off = {name: 100 * np.mean((p - result.truth) ** 2, axis=0) for name, p in result.forecasts.items()}
    right = {name: 100 * np.mean((p > 0.5) == result.outcome, axis=0) for name, p in result.forecasts.items()}
    columns = (
        column("accuracy", "at one half, %"),
        column("Δ", "accuracy minus that of the mean, worlds resampled"),
        column("MSE", "mean squared distance to the true chance, ×100", 2),
        column("gain", "MSE of the mean minus this MSE, worlds resampled", 2),
        column("r", "correlation with the true chance, mean over worlds", 3),
    )
    rows = {
        name: (
            bootstrap_score(right[name], result.world, resampling=how),
            None if name == AVERAGE else compare_paired(right[name], right[AVERAGE], result.world, resampling=how),
            bootstrap_score(off[name], result.world, resampling=how),
            None if name == AVERAGE else compare_paired(off[AVERAGE], off[name], result.world, resampling=how),
            _likeness(result, name),
        )
        for name in result.forecasts
    }
    return table(title, "Links", columns, rows, styles={AVERAGE: "reference"})


def _likeness(result: SimulationResult, name: str) -> float:
    p = result.forecasts[name][0]
    worlds = [result.world == place for place in np.unique(result.world)]
    found = [np.corrcoef(p[here], result.truth[here])[0, 1] for here in worlds if np.std(p[here]) > 0]
    return float(np.nanmean(found)) if found else float("nan")


def _sentence(grid: StudyTable) -> str:
    gains = grid.column("gain")
    best, drawn = gains[f"weights off by {OFF[0]:g}"], gains["random"]
    still = [off for off in OFF if isinstance(gain := gains[f"weights off by {off:g}"], Comparison) and gain.low > 0]
    assert isinstance(best, Comparison)
    assert isinstance(drawn, Comparison)
    return (
        f"In linear worlds true weights take {number(best.diff, 2)} {bracket(best.low, best.high, 2)} off the mean's "
        f"squared error (×100), random ones {signed(drawn.diff, 2)}; weights beat the mean clearly as long as they are "
        f"off by no more than {max(still, default=0.0):g}."
    )
