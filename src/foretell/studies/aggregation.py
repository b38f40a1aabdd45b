"""Study: how to make one probability of several trials. Rules against the logit mean (BLF 2026, Table 14)."""

from collections.abc import Mapping

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.report.numbers import bracket, plural, signed
from foretell.report.study import RowStyle, StudyChart, StudyResult, StudyTable
from foretell.studies.configurations import best_config, complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.protocols import Protocol, build_method, fit_under_protocol
from foretell.studies.scores import (
    PairedGains,
    brier_of,
    describe_gains,
    gains_chart,
    gains_table,
    groups_of,
    paired_gains,
    rule_score_table,
    rule_scores,
)
from foretell.studies.trials import RULES, expected_brier, pooled, trial_rule_label

SHRINKING: tuple[tuple[str, Protocol], ...] = (
    ("shrink", "in-sample"),
    ("shrink", "question out"),
    ("shrink", "past only"),
    ("bayes-shrink", "question out"),
    ("bayes-shrink", "past only"),
)
REFERENCE = "logit mean, all trials"
NOTES = (
    "shrink draws the logit mean to the price or the base rate where trials disagree (BLF 2026, C.9). The paper calls "
    "it leave-one-out, but its code tunes it on the questions it is scored on: that is the in-sample line.",
    "bayes-shrink takes its strength from the spread of the trials and of the anchors, and uses no outcome.",
    "Rules over fewer trials are exact means over all choices of trials.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """How to combine trials: rules against the logit mean.

    Mean gain of every rule over all complete configurations, and the paper's table for the chosen ones.
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    scores: dict[str, dict[str, Floats]] = {}
    for done, (name, examples) in enumerate(tables.items()):
        data.progress(done, len(tables))
        scores[name] = scores_of(examples)
    found = _gains(scores, tables, data)
    shown = data.chosen or (best_config(tables),)
    details = [_detail(name, scores[name], tables[name], data) for name in shown]
    return StudyResult(
        name="aggregation",
        title="How to combine trials",
        sentences=(_sentence(found, len(tables)),),
        tables=(gains_table("Mean gain over the logit mean of all trials", "Rule", found, decimals=2), *details),
        charts=(
            StudyChart(name="rules", title="Mean gain over the logit mean", chart=gains_chart(found, "gain in BI")),
        ),
        notes=(*NOTES, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def scores_of(examples: Examples) -> dict[str, Floats]:
    """The Brier score of every target under every rule."""
    trials = examples.rows.trials
    most = len(trials)
    scores = {REFERENCE: brier_of(examples.rows.raw, examples)}
    for rule, pool in RULES.items():
        if rule != "logit mean":
            scores[f"{rule}, all trials"] = brier_of(pooled(pool, trials), examples)
    for k in sorted({1, (most + 1) // 2} - {most}, reverse=True):
        # One trial is itself under every rule.
        rules = ("logit mean", "mean") if k > 1 else ("logit mean",)
        scores |= {trial_rule_label(rule, k): expected_brier(RULES[rule], examples, k) for rule in rules}
    if np.isnan(trials).any():
        scores["failed trial as 0.5"] = brier_of(_failed_as_half(examples), examples)
    for method, protocol in SHRINKING:
        scores[f"{method} · {protocol}"] = brier_of(
            fit_under_protocol(build_method(method), examples, protocol).p, examples
        )
    return scores


def _failed_as_half(examples: Examples) -> Floats:
    """The logit mean with 0.5 for every trial that failed, on targets that any trial answered (BLF 2026, C.8)."""
    rows = examples.rows
    return np.where(np.isnan(rows.raw), np.nan, rows.with_trials(np.nan_to_num(rows.trials, nan=0.5)).raw)


def _gains(
    scores: Mapping[str, Mapping[str, Floats]], tables: Mapping[str, Examples], data: StudyData
) -> dict[str, PairedGains]:
    rules = dict.fromkeys(rule for table in scores.values() for rule in table if rule != REFERENCE)
    before = {name: table[REFERENCE] for name, table in scores.items()}
    found: dict[str, PairedGains] = {}
    for rule in rules:
        after = {name: table[rule] for name, table in scores.items() if rule in table}
        found[rule] = paired_gains(after, before, tables, data.resampling)
    return found


def _detail(name: str, scores: Mapping[str, Floats], examples: Examples, data: StudyData) -> StudyTable:
    styles: dict[str, RowStyle] = {REFERENCE: "reference"}
    found = rule_scores(scores, examples, REFERENCE, data.resampling)
    return rule_score_table(f"{name}: rules", found, groups_of(examples), styles=styles)


def _sentence(found: Mapping[str, PairedGains], count: int) -> str:
    free = {rule: one for rule, one in found.items() if "·" not in rule}
    first = max(free, key=lambda rule: free[rule].mean.diff)
    gain = free[first].mean
    parts = [
        f"Of the rules that learn nothing, {first}, is best: {signed(gain.diff, 2)} BI "
        f"{bracket(gain.low, gain.high, 2)} over the logit mean on average over {plural(count, 'configuration')}."
    ]
    if {"shrink · in-sample", "shrink · past only"} <= set(found):
        flattered, honest = found["shrink · in-sample"].mean, found["shrink · past only"]
        parts.append(
            f"Shrinkage to the price or base rate looks like {signed(flattered.diff, 2)} in-sample and is "
            f"{signed(honest.mean.diff, 2)} {bracket(honest.mean.low, honest.mean.high, 2)} past only; "
            f"{describe_gains(honest)}."
        )
    return " ".join(parts)
