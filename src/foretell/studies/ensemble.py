"""Study: what does an ensemble of several forecasters bring over the best of them?"""

from dataclasses import replace

import numpy as np

from foretell.forecasters.combine.ensemble import BestSoFar, EqualWeights, GreedySelection, PooledWeights, SkillWeights
from foretell.report.numbers import bracket, plural, signed
from foretell.report.study import StudyResult
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import best_config, complete_configs, with_scope
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.layout import count, forest_chart, table
from foretell.studies.protocols import CROWD, MODEL_FREE, baseline_forecasts, fit_under_protocol
from foretell.studies.scores import brier_of, groups_of, raw_brier, rule_score_table, rule_scores

BESIDE = "price, else base rate"
BEST = "the best so far"
NOTES = (
    f"Members are all complete configurations and, as one more, the {BESIDE}; forecasters without a model, such as the "
    "stack, are members where the tables hold their forecasts. Equal: the logit mean of all. Skill: better ones count "
    "more, as far as the past shows more than noise. Pooled: log-odds stacked by logistic regression, shrunk to equal "
    "shares. Greedy: starts with the best and adds whoever lowers the squared error of the mean most (Caruana et al. "
    "2004), with or without repetition; it has to beat equal weights on later rounds, or equal weights are used.",
    "Each round is answered with weights that were chosen on what was asked and known before it; before there is a "
    f"past, weights are equal. Differences are to {BEST}, the single member chosen in the same way; the best in "
    "hindsight is nobody's choice and stands there for comparison.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """What does an ensemble of forecasters bring?

    Ensembles over all complete configurations and the price, with weights from the past alone, against the best single
    one of the past.
    """
    data = inputs.data(options)
    configs = complete_configs(data, two_for="an ensemble")
    names, best = tuple(configs), best_config(configs)
    # The logit means of all forecasters are the trials of one table.
    said = [one.rows.raw for one in configs.values()]
    free = baseline_forecasts(configs[best])
    if (beside := free.get(MODEL_FREE, free.get(CROWD))) is not None:
        names, said = (*names, BESIDE), [*said, beside]
    members = replace(configs[best], rows=configs[best].rows.with_trials(np.stack(said)))
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
    found = rule_scores(scores, members, BEST, data.resampling)
    board = "Ensembles, weights from the past alone"
    fitted = {name: method.fit(members) for name, method in methods.items()}
    weights = {member: [100 * one.weights[i] for one in fitted.values()] for i, member in enumerate(names)}
    gains = [
        f"{one.name} {signed(gap.diff, 1)} {bracket(gap.low, gap.high, 1)}"
        for one in found
        if one.name in methods and (gap := one.differences.get(OVERALL)) is not None
    ]
    result = StudyResult(
        name="ensemble",
        title="What an ensemble brings",
        sentences=(
            f"Ensembles of {plural(len(names), 'forecaster')} against {BEST}, in BI: {'; '.join(gains)}.",
            f"{len(methods)} ensembles were tried on the same rounds: one that just clears zero proves nothing.",
        ),
        tables=(
            rule_score_table(board, found, groups_of(members), styles={BEST: "reference"}),
            table("Weights from now on, %", "Forecaster", [count(m, "weight in percent") for m in methods], weights),
        ),
        charts=(
            forest_chart("ensembles", "Brier index", {o.name: o.index.get(OVERALL) for o in found}, "Brier index"),
        ),
        notes=(*NOTES, *(f"{name}: {one.told}." for name, one in fitted.items())),
    )
    return with_scope(result, data, configs)
