"""Study: the gain from more trials, rules for combining them, and chance between them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Literal

import numpy as np

from foretell.forecasters.combine.aggregate import extremised, logit_mean, mean, median, trimmed
from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval
from foretell.number_text import plural, signed
from foretell.report.charts.groups import score_by_group
from foretell.report.numbers import CellValue, value_text
from foretell.report.study import StudyChart, StudyTable, column, table
from foretell.report.study_result import StudyResult
from foretell.scoring.baselines import OVERALL
from foretell.studies.configurations import (
    Protocol,
    build_method,
    fit_under_protocol,
    shown_configs,
    study_configs,
    with_scope,
)
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.scores import (
    PairedGains,
    RuleScore,
    brier_of,
    estimate,
    gains_chart,
    gains_table,
    groups_of,
    mean_gain,
    paired_gains,
    raw_brier,
    rule_score_table,
    rule_scores,
    step_scores,
)
from foretell.studies.sections import SECTION, run_sections
from foretell.studies.stability import stability_section

Pool = Callable[[Floats], Floats]
"""Combines K × n probabilities without gaps into n probabilities."""
RULES: Mapping[str, Pool] = {
    "logit mean": logit_mean,
    "mean": mean,
    "median": median,
    "trimmed mean": trimmed,
    "extremised": extremised,
}


def pooled(pool: Pool, trials: Floats) -> Floats:
    """Apply the rule to the trials that gave an answer; NaN if none did.

    >>> pooled(mean, np.array([[0.2, 0.4, np.nan], [0.4, np.nan, np.nan]])).round(2).tolist()
    [0.3, 0.4, nan]
    """
    out = np.full(trials.shape[1], np.nan)
    patterns, code = np.unique(~np.isnan(trials), axis=1, return_inverse=True)
    for i, pattern in enumerate(patterns.T):
        if pattern.any():
            here = np.flatnonzero(code.ravel() == i)
            out[here] = pool(trials[np.ix_(pattern, here)])
    return out


def expected_brier(pool: Pool, examples: Examples, k: int) -> Floats:
    """Return the Brier score of every target with k of its trials: the exact mean over all choices of k.

    Failed trials count as taken: the rest of a choice answers, and a choice without any answer is left out.
    """
    trials = examples.rows.trials
    total, count = np.zeros(len(examples)), np.zeros(len(examples))
    for choice in combinations(range(len(trials)), k):
        score = brier_of(pooled(pool, trials[list(choice)]), examples)
        count += np.isfinite(score)
        total += np.nan_to_num(score)
    return np.divide(total, count, out=np.full(len(examples), np.nan), where=count > 0)


def infinite_trials_brier(examples: Examples) -> Floats:
    """Estimate the Brier score of the mean of infinitely many trials, without bias, from the spread of the trials.

    The mean of k trials has the expected score (μ − o)² + σ²/k, so (p̄ − o)² − s²/K estimates its limit for large k.
    NaN if fewer than two trials answered. The estimate of a single target may be negative, and averages must be
    read with their interval.
    """
    trials = examples.rows.trials
    answered = ~np.isnan(trials)
    n = answered.sum(axis=0)
    average = np.where(answered, trials, 0.0).sum(axis=0) / np.maximum(n, 1)
    spread = np.where(answered, (trials - average) ** 2, 0.0).sum(axis=0) / np.maximum(n - 1, 1)
    return np.where(n > 1, (average - examples.outcome) ** 2 - spread / np.maximum(n, 1), np.nan)


# The gain from another trial.

CURVES = ("logit mean", "mean", "median")
INFINITE = "mean of ∞ trials"
TRIAL_NOTES = (
    "Every number for k trials is the exact mean over all choices of k of the trials: nothing is drawn at random.",
    "The arithmetic mean's expected Brier score is a line in 1/k, which gives its score with infinitely many trials; "
    "other rules have no such formula.",
)


class TrialsOptions(TableOptions):
    """Forecasts with several trials."""

    section: Literal["number", "rules", "stability"] | None = SECTION


def study(inputs: DataInputs, options: TrialsOptions) -> StudyResult:
    """How many trials are worth it, combined how?

    number: how much another trial improves the score. rules: how to combine trials. stability: how much of the error is
    bias, and how much is chance between trials.

      foretell study trials RUN

      foretell study trials -f forecasts.csv -o outcomes.csv --section stability
    """
    data = inputs.data(options)
    sections = {
        "number": partial(number_section, data),
        "rules": partial(rules_section, data),
        "stability": partial(stability_section, data),
    }
    return run_sections("trials", "The gain from several trials", sections, options.section)


def number_section(data: StudyData) -> StudyResult:
    """Score every number of trials: curves of all configurations, and every rule for those shown in detail."""
    configs = study_configs(data)
    curves: dict[str, list[Floats]] = {}
    for done, (name, examples) in enumerate(configs.items()):
        data.progress(done, len(configs))
        counts = range(1, len(examples.rows.trials) + 1)
        curves[name] = [expected_brier(logit_mean, examples, k) for k in counts]
    overview = _overview(configs, curves, data)
    details = {name: _all_rules(name, configs[name], data) for name in shown_configs(configs)}
    result = StudyResult(
        name="trials",
        title="The gain from another trial",
        sentences=(_sentence(configs, curves, overview, data),),
        tables=(overview, *(_rules_table(name, scores, configs[name]) for name, scores in details.items())),
        charts=tuple(_curves_chart(i, name, scores) for i, (name, scores) in enumerate(details.items(), 1)),
        notes=TRIAL_NOTES,
    )
    return with_scope(result, data, configs)


def _all_rules(name: str, examples: Examples, data: StudyData) -> list[RuleScore]:
    """Score every rule with every number of trials, against the logit mean of all trials."""
    most = len(examples.rows.trials)
    scores = {f"{rule} of {k}": expected_brier(RULES[rule], examples, k) for rule in CURVES for k in range(most, 0, -1)}
    if most > 1:
        scores[INFINITE] = infinite_trials_brier(examples)
    for rule in ("trimmed mean", "extremised"):
        scores[f"{rule} of {most}"] = brier_of(pooled(RULES[rule], examples.rows.trials), examples)
    return rule_scores(scores, examples, f"logit mean of {most}", data.resampling, forecaster=name)


def _rules_table(name: str, scores: Sequence[RuleScore], examples: Examples) -> StudyTable:
    title = f"{name}: rules and trials"
    return rule_score_table(
        title, scores, groups_of(examples), styles={scores[0].name: "reference", INFINITE: "baseline"}
    )


def _overview(configs: Mapping[str, Examples], curves: Mapping[str, Sequence[Floats]], data: StudyData) -> StudyTable:
    """Table with a row per configuration: the logit mean's index with 1, 2, … trials, and the gain of all over one."""
    most = max(len(curve) for curve in curves.values())
    rows: dict[str, tuple[CellValue, ...]] = {}
    for name, curve in curves.items():
        scores = {str(k): score for k, score in enumerate(curve, 1)}
        results = rule_scores(scores, configs[name], str(len(curve)), data.resampling, forecaster=name)
        index = [*(estimate(result, OVERALL) for result in results), *[None] * (most - len(results))]
        gap = results[0].verdicts.get(OVERALL)
        rows[name] = (*index, None if gap is None else gap.swapped(), results[-1].index.get(OVERALL))
    columns = [column(f"k={k}", f"Brier index of the logit mean of {k} trials") for k in range(1, most + 1)]
    columns += [
        column("all − one", "paired difference, questions and the days they share resampled"),
        column("all", "with its interval"),
    ]
    ranked = sorted(rows.items(), key=lambda row: -(row[1][-1].estimate if isinstance(row[1][-1], Interval) else 0.0))
    return table("Logit mean of k trials", "Configuration", columns, ranked)


def _curves_chart(place: int, name: str, scores: Sequence[RuleScore]) -> StudyChart:
    """Chart of paired differences to the logit mean of all trials.

    Intervals of the scores themselves would hide the curve.
    """
    none = Interval(estimate=0.0, low=0.0, high=0.0, se=0.0, n_clusters=0, draws=0)
    gaps = {score.name: gap.interval if (gap := score.verdicts.get(OVERALL)) else none for score in scores}
    counts = range(1, sum(rule.startswith("logit mean of ") for rule in gaps) + 1)
    lines = {rule: tuple(gaps[f"{rule} of {k}"] for k in counts) for rule in CURVES}
    steps = step_scores("trials", [str(k) for k in counts], lines, [scores[0].n] * len(counts))
    chart = score_by_group(steps, label=f"BI minus logit mean of {len(counts)}", decimals=2, zero=True)
    return StudyChart(name=f"trials-{place}", title=f"{name}: score against trials", chart=chart)


def _sentence(
    configs: Mapping[str, Examples], curves: Mapping[str, Sequence[Floats]], overview: StudyTable, data: StudyData
) -> str:
    most = max(len(curve) for curve in curves.values())
    if most == 1:
        return "There is only one trial, so the gain from more trials cannot be estimated."
    longest = [name for name, curve in curves.items() if len(curve) == most]
    last, first = ([curves[name][k] for name in longest] for k in (-1, 0))
    gain = mean_gain(last, first, configs[longest[0]], data.resampling)
    if gain is None:
        return "No target was answered by all configurations."
    by_k = [overview.numbers(f"k={k}") for k in range(1, most + 1)]
    means = np.mean([[numbers[name] for numbers in by_k] for name in by_k[-1]], axis=0)
    steps = ", ".join(f"trial {k} {signed(step, 2)}" for k, step in enumerate(np.diff(means).tolist(), 2))
    return (
        f"{most} trials instead of one are worth {value_text(gain, 1)} BI on average over "
        f"{plural(len(longest), 'configuration')} (logit mean): {steps}."
    )


# Rules that combine several trials into one probability (BLF 2026, Table 14).

SHRINKING: tuple[tuple[str, Protocol], ...] = (
    ("shrink", "in-sample"),
    ("shrink", "question out"),
    ("shrink", "past only"),
    ("bayes-shrink", "question out"),
    ("bayes-shrink", "past only"),
)
REFERENCE = "logit mean, all trials"
AGGREGATION_NOTES = (
    "shrink draws the logit mean to the price or the base rate where trials disagree (BLF 2026, C.9). The paper calls "
    "it leave-one-out, but its code tunes it on the questions it is scored on: that is the in-sample line.",
    "bayes-shrink takes its strength from the spread of the trials and of the baselines, and uses no outcome.",
    "Rules over fewer trials are exact means over all choices of trials.",
)


def rules_section(data: StudyData) -> StudyResult:
    """Compare rules with the logit mean: the mean gain of every rule over all configurations, and each in detail."""
    configs = study_configs(data)
    scores: dict[str, dict[str, Floats]] = {}
    for done, (name, examples) in enumerate(configs.items()):
        data.progress(done, len(configs))
        scores[name] = _aggregated(examples)
    before = {name: by_rule[REFERENCE] for name, by_rule in scores.items()}
    gains: dict[str, PairedGains] = {}
    for rule in dict.fromkeys(rule for by_rule in scores.values() for rule in by_rule if rule != REFERENCE):
        after = {name: by_rule[rule] for name, by_rule in scores.items() if rule in by_rule}
        paired = paired_gains(after, before, configs, data.resampling)
        gains |= {rule: paired} if paired else {}
    details = [
        rule_score_table(
            f"{name}: rules",
            rule_scores(scores[name], configs[name], REFERENCE, data.resampling, forecaster=name),
            groups_of(configs[name]),
            styles={REFERENCE: "reference"},
        )
        for name in shown_configs(configs)
    ]
    result = StudyResult(
        name="trials",
        title="How to combine trials",
        sentences=(_aggregation_sentence(gains, len(configs)),),
        tables=(gains_table("Mean gain over the logit mean of all trials", "Rule", gains, decimals=2), *details),
        charts=(gains_chart("rules", "Mean gain over the logit mean", gains, "gain in BI"),),
        notes=AGGREGATION_NOTES,
    )
    return with_scope(result, data, configs)


def _aggregated(examples: Examples) -> dict[str, Floats]:
    """Return the Brier score of every target under every rule."""
    trials = examples.rows.trials
    most = len(trials)
    scores = {REFERENCE: raw_brier(examples)}
    for rule, pool in RULES.items():
        if rule != "logit mean":
            scores[f"{rule}, all trials"] = brier_of(pooled(pool, trials), examples)
    for k in sorted({1, (most + 1) // 2} - {most}, reverse=True):
        # With one trial, all rules are the same.
        for rule in ("logit mean", "mean") if k > 1 else ("logit mean",):
            scores[f"{rule} of {k}"] = expected_brier(RULES[rule], examples, k)
    if np.isnan(trials).any():
        # 0.5 for every trial that failed, on targets that any trial answered (BLF 2026, C.8).
        filled = examples.rows.with_trials(np.nan_to_num(trials, nan=0.5)).raw
        scores["failed trial as 0.5"] = brier_of(np.where(np.isnan(examples.rows.raw), np.nan, filled), examples)
    for method, protocol in SHRINKING:
        p = fit_under_protocol(build_method(method), examples, protocol).p
        scores[f"{method} · {protocol}"] = brier_of(p, examples)
    return scores


def _aggregation_sentence(gains: Mapping[str, PairedGains], configs: int) -> str:
    best, gain = max(
        ((rule, gain) for rule, gain in gains.items() if "·" not in rule), key=lambda pair: pair[1].mean.diff
    )
    flattered, honest = gains["shrink · in-sample"].mean, gains["shrink · past only"]
    return (
        f"Of the rules that learn nothing, {best}, is best: {value_text(gain.mean, 2)} BI over the logit mean on "
        f"average over {plural(configs, 'configuration')}. Shrinkage to the price or base rate looks like "
        f"{signed(flattered.diff, 2)} in-sample and is {value_text(honest.mean, 2)} past only; {honest}."
    )
