"""Study: what does an ensemble of several forecasters bring over the best of them?"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from foretell.forecasters.combine.ensemble import EqualWeights, GreedySelection, SkillWeights
from foretell.forecasters.combine.rows import Examples
from foretell.questions.errors import InputError
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.numbers import bracket, plural, signed
from foretell.report.study import RowStyle, StudyChart, StudyColumn, StudyResult, StudyTable
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import best_config, complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.protocols import fit_under_protocol
from foretell.studies.scores import RuleScore, brier_of, groups_of, rule_score_table, rule_scores

NOTES = (
    "Equal: the logit mean of all forecasters. Skill: better ones count more, as far as the past shows more than "
    "noise. Greedy: starts with the best and adds whoever lowers the squared error of the mean most (Caruana et al. "
    "2004), with or without repetition; it has to beat equal weights on later rounds, or equal weights are used.",
    "Each round is answered with weights that were chosen on what was asked and known before it; before there is a "
    "past, weights are equal. The best single forecaster is known in hindsight only.",
)
Method = EqualWeights | SkillWeights | GreedySelection


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """What does an ensemble of forecasters bring?

    Ensembles over all complete configurations, with weights from the past alone, against the best single one.
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    if len(tables) < 2:
        raise InputError("an ensemble needs at least two forecasters", hint="name more of them with --config")
    members = _side_by_side(tables)
    methods = _methods(tuple(tables))
    best = best_config(tables)
    single = f"{best} (best in hindsight)"
    scores = {single: brier_of(tables[best].rows.raw, members)}
    for done, (name, method) in enumerate(methods.items()):
        data.progress(done, len(methods))
        scores[name] = brier_of(fit_under_protocol(method, members, "past only").p, members)
    found = rule_scores(scores, members, single, data.resampling)
    styles: dict[str, RowStyle] = {single: "reference"}
    board = rule_score_table("Ensembles, weights from the past alone", found, groups_of(members), styles=styles)
    weights, reasons = _weights(methods, members)
    return StudyResult(
        name="ensemble",
        title="What an ensemble brings",
        sentences=(_sentence(found, len(tables), best),),
        tables=(board, weights),
        charts=(_chart(found),),
        notes=(*NOTES, *reasons, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def _side_by_side(tables: Mapping[str, Examples]) -> Examples:
    """The logit means of all forecasters as the trials of one table."""
    first = next(iter(tables.values()))
    return replace(first, rows=first.rows.with_trials(np.stack([one.rows.raw for one in tables.values()])))


def _methods(names: tuple[str, ...]) -> dict[str, Method]:
    return {
        "equal weights": EqualWeights(names=names),
        "weights by skill": SkillWeights(names=names),
        "greedy": GreedySelection(names=names),
        "greedy without repetition": GreedySelection(names=names, replacement=False),
    }


def _weights(methods: Mapping[str, Method], members: Examples) -> tuple[StudyTable, list[str]]:
    """The weights that each method would use from now on, and why."""
    fitted = {name: method.fit(members) for name, method in methods.items()}
    columns = [StudyColumn(label=name, decimals=0, tip="weight in percent") for name in methods]
    rows = (
        (member, {name: 100 * ensemble.weights[place] for name, ensemble in fitted.items()})
        for place, member in enumerate(next(iter(fitted.values())).names)
    )
    table = StudyTable.build("Weights from now on, %", columns, rows, row_header="Forecaster")
    return table, [f"{name}: {ensemble.told}." for name, ensemble in fitted.items()]


def _chart(found: list[RuleScore]) -> StudyChart:
    rows = [ForestRow(name=one.name, interval=one.index[OVERALL]) for one in found if OVERALL in one.index]
    return StudyChart(name="ensembles", title="Brier index", chart=forest_plot(rows, label="Brier index"))


def _sentence(found: list[RuleScore], count: int, best: str) -> str:
    parts = [
        f"{one.name} {signed(gap.diff, 1)} {bracket(gap.low, gap.high, 1)}"
        for one in found
        if (gap := one.differences.get(OVERALL)) is not None
    ]
    return (
        f"Ensembles of {plural(count, 'forecaster')} against {best}, the best in hindsight, in BI: {'; '.join(parts)}."
    )
