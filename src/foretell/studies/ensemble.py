"""Study: what does an ensemble of several forecasters bring over the best of them?"""

from dataclasses import replace

import numpy as np

from foretell.forecasters.combine.ensemble import EqualWeights, GreedySelection, SkillWeights
from foretell.report.numbers import bracket, plural, signed
from foretell.report.study import StudyResult
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import best_config, complete_configs, with_scope
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.layout import count, forest_chart, table
from foretell.studies.protocols import fit_under_protocol
from foretell.studies.scores import brier_of, groups_of, raw_brier, rule_score_table, rule_scores

NOTES = (
    "Equal: the logit mean of all forecasters. Skill: better ones count more, as far as the past shows more than "
    "noise. Greedy: starts with the best and adds whoever lowers the squared error of the mean most (Caruana et al. "
    "2004), with or without repetition; it has to beat equal weights on later rounds, or equal weights are used.",
    "Each round is answered with weights that were chosen on what was asked and known before it; before there is a "
    "past, weights are equal. The best single forecaster is known in hindsight only.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """What does an ensemble of forecasters bring?

    Ensembles over all complete configurations, with weights from the past alone, against the best single one.
    """
    data = inputs.data(options)
    configs = complete_configs(data, two_for="an ensemble")
    names, best = tuple(configs), best_config(configs)
    # The logit means of all forecasters are the trials of one table.
    members = replace(
        configs[best], rows=configs[best].rows.with_trials(np.stack([one.rows.raw for one in configs.values()]))
    )
    methods = {
        "equal weights": EqualWeights(names=names),
        "weights by skill": SkillWeights(names=names),
        "greedy": GreedySelection(names=names),
        "greedy without repetition": GreedySelection(names=names, replacement=False),
    }
    single = f"{best} (best in hindsight)"
    scores = {single: raw_brier(configs[best])}
    for done, (name, method) in enumerate(methods.items()):
        data.progress(done, len(methods))
        scores[name] = brier_of(fit_under_protocol(method, members, "past only").p, members)
    found = rule_scores(scores, members, single, data.resampling)
    board = "Ensembles, weights from the past alone"
    fitted = {name: method.fit(members) for name, method in methods.items()}
    weights = {member: [100 * one.weights[i] for one in fitted.values()] for i, member in enumerate(names)}
    gains = [
        f"{one.name} {signed(gap.diff, 1)} {bracket(gap.low, gap.high, 1)}"
        for one in found
        if (gap := one.differences.get(OVERALL)) is not None
    ]
    result = StudyResult(
        name="ensemble",
        title="What an ensemble brings",
        sentences=(
            f"Ensembles of {plural(len(configs), 'forecaster')} against {best}, the best in hindsight, in BI: "
            f"{'; '.join(gains)}.",
        ),
        tables=(
            rule_score_table(board, found, groups_of(members), styles={single: "reference"}),
            table("Weights from now on, %", "Forecaster", [count(m, "weight in percent") for m in methods], weights),
        ),
        charts=(
            forest_chart("ensembles", "Brier index", {o.name: o.index.get(OVERALL) for o in found}, "Brier index"),
        ),
        notes=(*NOTES, *(f"{name}: {one.told}." for name, one in fitted.items())),
    )
    return with_scope(result, data, configs)
