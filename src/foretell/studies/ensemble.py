"""Study: does an ensemble of several forecasters beat the best of them, and how far are forecasters apart?"""

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from foretell.forecasters.combine.ensemble import BestSoFar, EqualWeights, GreedySelection, PooledWeights, SkillWeights
from foretell.metrics.arrays import Floats
from foretell.number_text import number, plural
from foretell.report.numbers import CellValue, value_text
from foretell.report.study import StudyTable, column, count, forest_chart, table, words
from foretell.report.study_result import StudyResult
from foretell.scoring.baselines import MARKET_PRICE, OVERALL
from foretell.scoring.verdict import corrected
from foretell.studies.configurations import (
    MODEL_FREE,
    baseline_forecasts,
    best_config,
    divergence_chart,
    fit_under_protocol,
    study_configs,
    with_scope,
)
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.scores import brier_of, groups_of, raw_brier, rule_score_table, rule_scores
from foretell.studies.sections import SECTION, run_sections

EXTRA_MEMBER = "price, else base rate"
BEST = "the best so far"
ENSEMBLE_NOTES = (
    f"Members are all configurations and, as one more, the {EXTRA_MEMBER}; forecasters without a model, such as "
    "model_free, are members if the tables contain their forecasts. Equal: the logit mean of all. Skill: better ones "
    "count more, as far as the past shows more than noise. Pooled: log-odds stacked by logistic regression, shrunk to "
    "equal shares. Greedy: starts with the best and adds the one that lowers the squared error of the mean most "
    "(Caruana et al. 2004), with or without repetition; it has to beat equal weights on later rounds, or equal weights "
    "are used.",
    "Each round is answered with weights that were chosen on what was asked and known before it; before there is a "
    f"past, weights are equal. Differences are to {BEST}, the single member chosen in the same way; the best in "
    "hindsight could not have been chosen and is shown for comparison only.",
)


class EnsembleOptions(TableOptions):
    """Forecasts of several forecasters."""

    section: Literal["ensembles", "divergence"] | None = SECTION


def study(inputs: DataInputs, options: EnsembleOptions) -> StudyResult:
    """Does an ensemble beat the best single forecaster?

    ensembles: ensembles over all forecasters and the price, with weights from the past alone, against the single
    forecaster that was best in the past. divergence: how far forecasters are apart, in pairs.

      foretell study ensemble RUN1 RUN2 RUN3
    """
    data = inputs.data(options)
    sections = {"ensembles": partial(ensembles_section, data), "divergence": partial(divergence_section, data)}
    return run_sections("ensemble", "What an ensemble brings", sections, options.section)


def ensembles_section(data: StudyData) -> StudyResult:
    """Score ensembles whose weights come from the past alone, against the best single forecaster of the past."""
    configs = study_configs(data, two_for="an ensemble")
    names, best = tuple(configs), best_config(configs)
    # Use the logit means of all forecasters as the trials of one table.
    forecasts = [config.rows.raw for config in configs.values()]
    free = baseline_forecasts(configs[best])
    if (extra := free.get(MODEL_FREE, free.get(MARKET_PRICE))) is not None:
        names, forecasts = (*names, EXTRA_MEMBER), [*forecasts, extra]
    members = replace(configs[best], rows=configs[best].rows.with_trials(np.stack(forecasts)))
    methods = {
        "equal weights": EqualWeights(names=names),
        "weights by skill": SkillWeights(names=names),
        "pooled": PooledWeights(names=names),
        "greedy": GreedySelection(names=names),
        "greedy without repetition": GreedySelection(names=names, replacement=False),
    }
    single = f"{best} (best in hindsight)"
    scores = {single: raw_brier(configs[best])}
    for done, (name, method) in enumerate({BEST: BestSoFar(names=names), **methods}.items()):
        data.progress(done, len(methods) + 1)
        scores[name] = brier_of(fit_under_protocol(method, members, "past only").p, members)
    rule_results = rule_scores(scores, members, BEST, data.resampling)
    board = "Ensembles, weights from the past alone"
    fitted = {name: method.fit(members) for name, method in methods.items()}
    weights = {member: [100 * rule.weights[i] for rule in fitted.values()] for i, member in enumerate(names)}
    gains = corrected(
        [gap for result in rule_results if result.name in methods and (gap := result.verdicts.get(OVERALL)) is not None]
    )
    better = sum(gap.says == "better" and gap.survives for gap in gains)
    each = "; ".join(f"{gap.first} {value_text(gap, 1)}" for gap in gains)
    result = StudyResult(
        name="ensemble",
        title="What an ensemble brings",
        sentences=(
            f"Ensembles of {plural(len(names), 'forecaster')} against {BEST}, in BI: {each}.",
            f"Better by more than chance, corrected for the number of ensembles tried: {better} of {len(gains)}.",
        ),
        tables=(
            rule_score_table(board, rule_results, groups_of(members), styles={BEST: "reference"}),
            table("Weights from now on, %", "Forecaster", [count(m, "weight in percent") for m in methods], weights),
        ),
        charts=(
            forest_chart(
                "ensembles", "Brier index", {o.name: o.index.get(OVERALL) for o in rule_results}, "Brier index"
            ),
        ),
        notes=(*ENSEMBLE_NOTES, *(f"{name}: {rule.reason}." for name, rule in fitted.items())),
    )
    return with_scope(result, data, configs)


# How far forecasters are apart.

DIVERGENCE_NOTES = (
    "Divergence is the mean Jensen–Shannon divergence between two forecasters in bits: 0 where they agree, 1 for "
    "opposite certainties. Averaging helps where forecasters are good and different.",
)
DIVERGENCE = (
    column("mean", decimals=3),
    words("nearest"),
    column("to the nearest", decimals=3),
    words("farthest"),
    column("to the farthest", decimals=3),
)


def divergence_section(data: StudyData) -> StudyResult:
    """Show the divergence between all pairs of forecasters."""
    configs = study_configs(data, two_for="divergence")
    chart, matrix = divergence_chart(configs, "How far forecasters are apart")
    upper = matrix[np.triu_indices(len(matrix), k=1)]
    sentence = "No two forecasters answered the same question."
    if np.isfinite(upper).any():
        sentence = f"Two forecasters are {number(float(np.nanmean(upper)), 3)} bits apart on average."
    result = StudyResult(
        name="ensemble",
        title="How far forecasters are apart",
        sentences=(sentence,),
        tables=(_divergence_table(list(configs), matrix),),
        charts=(chart,),
        notes=DIVERGENCE_NOTES,
    )
    return with_scope(result, data, configs)


def _divergence_table(names: list[str], matrix: Floats) -> StudyTable:
    """Table of each forecaster's divergence from the nearest, from the farthest, and on average from all others."""
    rows: dict[str, tuple[CellValue, ...]] = {}
    for i, name in enumerate(names):
        others = [(float(matrix[i, j]), other) for j, other in enumerate(names) if j != i]
        distances = sorted(pair for pair in others if np.isfinite(pair[0]))
        if distances:
            (least, near), (most, far) = distances[0], distances[-1]
            rows[name] = (float(np.mean([value for value, _ in distances])), near, least, far, most)
    return table("Divergence in bits", "Forecaster", DIVERGENCE, rows)
