"""Configurations of forecasters, which of them a study uses, and the protocols under which rules are judged."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from foretell import plugins
from foretell.forecasters.combine.crossfit import groups_by, raw, rolling
from foretell.forecasters.combine.default import UNFITTED, DefaultMethod
from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.forecasters.combine.rules import CombinationMethod, SupportsLeaveOut, apply, left_out
from foretell.frozen import frozen
from foretell.metrics.agreement import divergence_matrix
from foretell.metrics.arrays import Bools, Floats
from foretell.number_text import percent, plural
from foretell.questions.errors import InputError
from foretell.questions.forecast import UNFILTERED_SUFFIX
from foretell.report.charts.groups import distance_heatmap
from foretell.report.study import StudyChart, StudyTable, column, count, draw_settings, table
from foretell.report.study_result import StudyResult
from foretell.scoring.baselines import ALWAYS_HALF, BASE_RATE, MARKET_PRICE
from foretell.scoring.table import Labels, Targets, base_rate
from foretell.studies.inputs import StudyData
from foretell.studies.scores import index_of, mean_of_runs, raw_brier, weighted_means

# Selection of configurations.

SEES_THE_FUTURE = (UNFILTERED_SUFFIX, "clairvoyant")
"""Marks in names of forecasters from which nothing was withheld. Earlier versions and the BLF paper use the second."""


def _sees_the_future(name: str) -> bool:
    return any(mark in name for mark in SEES_THE_FUTURE)


def study_configs(data: StudyData, *, two_for: str = "") -> dict[str, Examples]:
    """Return the configurations that answered something and did not see the future.

    A configuration that answered a part of the targets stays in, and is compared on what both answered. `two_for` names
    an analysis that needs at least two of them; with fewer, an `InputError` is raised.
    """
    configs = {
        name: examples
        for name, examples in data.tables.items()
        if not _sees_the_future(name) and completion(examples) > 0
    }
    if not configs:
        raise InputError("no configuration answered any target", hint="are the question ids the same in both tables?")
    if two_for and len(configs) < 2:
        hint = f"only {next(iter(configs))} answered any target"
        raise InputError(f"{two_for} needs at least two forecasters", hint=hint)
    return configs


UNLINKED = "shares no question with the others"


def linked_configs(configs: Mapping[str, Examples], known_effect: Bools | None = None) -> dict[str, Examples]:
    """Return the largest group of configurations whose effects can be told apart from those of the questions.

    Two of them are linked if they answered the same target, or others link them. Targets in `known_effect`
    have a known effect and link all configurations.
    """
    answered = np.stack([np.isfinite(examples.rows.raw) for examples in configs.values()])
    if known_effect is not None:
        answered = np.column_stack([answered[:, ~known_effect], answered[:, known_effect].any(axis=1)])
    linked = answered.astype(np.float64) @ answered.T.astype(np.float64) > 0
    for _ in configs:
        linked = linked.astype(np.float64) @ linked.astype(np.float64) > 0
    group = linked[int(linked.sum(axis=1).argmax())]
    if group.sum() < 2:
        raise InputError("no two forecasters answered the same question", hint="give questions that several answered")
    return {name: examples for (name, examples), inside in zip(configs.items(), group, strict=True) if inside}


MOST_SHOWN = 3
"""Maximum number of configurations that are all shown in detail."""


def shown_configs(configs: Mapping[str, Examples]) -> tuple[str, ...]:
    """Return the configurations to show in detail: all if they are few, else the best one."""
    return tuple(configs) if len(configs) <= MOST_SHOWN else (best_config(configs),)


def best_config(configs: Mapping[str, Examples]) -> str:
    """The configuration whose logit mean has the best index, as if it had answered everything.

    On a target that it did not answer, it counts as the mean of the others plus its own mean distance to the mean.
    """
    some = next(iter(configs.values()))
    scores = np.stack([raw_brier(examples) for examples in configs.values()])
    usual = mean_of_runs(scores)
    answered = np.isfinite(usual)
    for kind in np.unique(some.rows.kind):
        mine = answered & (some.rows.kind == kind)
        apart = np.nan_to_num(weighted_means((scores - usual)[:, mine], some.weight[mine]))
        scores[:, mine] = np.where(np.isnan(scores[:, mine]), usual[mine] + apart[:, None], scores[:, mine])
    index = {name: index_of(score, some) for name, score in zip(configs, scores, strict=True)}
    return max(index, key=lambda name: index[name])


def completion(examples: Examples) -> float:
    """Share of the targets that have an answer."""
    return float(np.mean(~np.isnan(examples.rows.raw)))


# Results over configurations.


NOT_USED = "is not part of these tables"


def with_scope(
    result: StudyResult,
    data: StudyData,
    configs: Mapping[str, Examples],
    *,
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> StudyResult:
    """The result with notes on the size of the data, failed trials and who was left out, and how to reproduce it.

    If a configuration did not answer everything, a table shows who answered how much. `left_out` gives the reason why
    a configuration was left out.
    """
    notes = [f"{describe_scope(next(iter(configs.values())))}. A question asked in several rounds is one cluster."]
    done = {name: _trials_done(examples.rows) for name, examples in configs.items()}
    if failed := [name for name, share in done.items() if share < 1]:
        worst = min(failed, key=lambda name: done[name])
        notes.append(
            f"Trials failed in {plural(len(failed), 'configuration')}, at worst {worst} with {percent(done[worst])} "
            "done; the other trials are used in place of a failed one."
        )
    absent = [name for name in data.tables if name not in configs or name in left_out]
    if absent:
        reasons = {name: left_out.get(name) or _reason(name, data.tables[name]) for name in absent}
        notes.append(f"Left out: {'; '.join(f'{name}, which {reason}' for name, reason in reasons.items())}.")
    settings = {
        **draw_settings(data.resampling),
        "clusters": "question, and the days that questions share",
        "configurations": list(configs),
    }
    tables = (*result.tables, *_completion_table(configs))
    return replace(result, tables=tables, notes=(*result.notes, *notes, *data.notes), settings=settings)


def _trials_done(rows: TrialRows) -> float:
    """Share of the trials that answered, on the targets that have an answer at all."""
    return float(np.mean(~np.isnan(rows.trials[:, np.isfinite(rows.raw)])))


def _reason(name: str, examples: Examples) -> str:
    if completion(examples) == 0:
        return "answered nothing"
    return "saw the future" if _sees_the_future(name) else NOT_USED


def _completion_table(configs: Mapping[str, Examples]) -> list[StudyTable]:
    """Return a table of who answered how much; none if all answered everything."""
    if all(completion(examples) == 1 for examples in configs.values()):
        return []
    columns = (count("answered", "targets with an answer"), count("of", "targets"), column("done", "share answered, %"))
    rows = {
        name: (int(np.isfinite(examples.rows.raw).sum()), len(examples), 100 * completion(examples))
        for name, examples in configs.items()
    }
    caption = "Forecasters are scored on the targets they answered, and compared on those that both answered."
    return [table("Completion", "Forecaster", columns, rows, caption=caption)]


def divergence_chart(configs: Mapping[str, Examples], title: str) -> tuple[StudyChart, Floats]:
    """The divergence between the logit means of configurations, as a chart and as a matrix."""
    matrix = divergence_matrix(np.column_stack([config.rows.raw for config in configs.values()])).mean
    chart = distance_heatmap(list(configs), matrix, label="mean Jensen–Shannon divergence in bits")
    return StudyChart(name="divergence", title=title, chart=chart), matrix


def describe_scope(examples: Examples) -> str:
    """The size of the data, e.g. "791 targets of 355 questions on 400 question dates"."""
    rows = examples.rows
    askings, questions = len(np.unique(rows.asking)), len(np.unique(rows.cluster))
    return f"{plural(len(examples), 'target')} of {plural(questions, 'question')} on {plural(askings, 'question date')}"


METHODS = tuple(plugins.names("combiners"))
"""Names of the methods that learn from the past how to combine and correct trials."""
Protocol = Literal["past only", "question out", "event out", "in-sample"]
PROTOCOLS: Mapping[Protocol, str] = {
    "past only": "each round by a rule fitted on what was asked and known before it: what a user would have had",
    "question out": "each question by a rule fitted on all other questions, later ones among them",
    "event out": "each target by a rule fitted on all others, its question's other dates among them (BLF 2026)",
    "in-sample": "fitted on the targets it is scored on: too optimistic, shown for contrast only",
}
"""The meaning of each protocol; the most honest comes first, because a narrow terminal drops the last columns."""
MODEL_FREE = "market price, else base rate"
FOLDS, REFITS = 10, 24
"""Number of folds for slow methods, and maximum number of refits of a rule over time."""
BASELINES = (MARKET_PRICE, BASE_RATE, MODEL_FREE, ALWAYS_HALF)


def build_method(name: str) -> CombinationMethod:
    """Return the method with that name.

    >>> build_method("hierarchical").name
    'platt by source'
    """
    return plugins.load("combiners", name)()


@frozen
class ProtocolForecasts:
    """The forecasts of a rule under a protocol."""

    p: Floats
    past: Floats
    """Number of examples that the rule for each target was fitted on."""


def fit_under_protocol(method: CombinationMethod, examples: Examples, protocol: Protocol) -> ProtocolForecasts:
    """Return the rule's probabilities under the protocol; NaN if no trial answered.

    Methods without a shortcut leave questions out in at most `FOLDS` parts: no question is judged by a rule that
    was fitted on it, but each rule was fitted on a few questions less.
    """
    if protocol == "in-sample":
        p = method.fit(examples).probabilities(examples.rows)
        return ProtocolForecasts(p=p, past=np.full(len(examples), float(len(examples))))
    if protocol == "past only":
        return _past_only(method, examples)
    return _left_out(method, examples, "event" if protocol == "event out" else "question")


def _past_only(method: CombinationMethod, examples: Examples) -> ProtocolForecasts:
    """Forecast round by round; with many rounds, refit the rule only every few of them."""
    if not examples.dated:
        problem, hint = "some outcomes have no due or resolved_on", "a rule may learn only from what was known before"
        raise InputError(problem, column="--outcomes", hint=hint)
    # Without a past, use the logit mean; only the default method has its own rule for that case.
    unfitted = UNFITTED.probabilities if isinstance(method, DefaultMethod) else raw
    days = np.unique(examples.rows.due)
    if len(days) <= REFITS:
        forecasts = rolling(method, examples, fallback=unfitted)
        return ProtocolForecasts(p=forecasts.p, past=forecasts.past.astype(np.float64))
    p, past = np.full(len(examples), np.nan), np.zeros(len(examples))
    for stretch in np.array_split(days, REFITS):
        now = np.isin(examples.rows.due, stretch)
        past_examples = examples.take((examples.known_on < stretch[0]) & (examples.rows.due < stretch[0]))
        rows = examples.rows.take(now)
        p[now], past[now] = (
            apply(method.fit(past_examples), rows) if len(past_examples) else unfitted(rows),
            len(past_examples),
        )
    return ProtocolForecasts(p=p, past=past)


def _left_out(method: CombinationMethod, examples: Examples, by: str) -> ProtocolForecasts:
    groups = groups_by(examples, by)
    if not isinstance(method, SupportsLeaveOut):
        groups = np.random.default_rng(0).permutation(int(groups.max(initial=0)) + 1)[groups] % FOLDS
    past = len(examples) - np.bincount(groups)[groups].astype(np.float64)
    return ProtocolForecasts(p=left_out(method, examples, groups), past=past)


def baseline_forecasts(examples: Examples) -> dict[str, Floats]:
    """Return baselines that need no forecaster: the market price, past-only base rates, both together, and 0.5."""
    rows, nothing = examples.rows, np.full(len(examples), np.nan)
    days = {"due": rows.due, "resolved_on": examples.known_on} if examples.dated else {}
    targets = Targets(
        outcome=examples.outcome,
        weight=examples.weight,
        question=_labels(rows.question),
        target=_labels(rows.target),
        price=rows.price,
        yes_ask=nothing,
        no_ask=nothing,
        groups={
            "source": _labels(rows.source),
            **{name: _labels(np.datetime_as_string(day, "D")) for name, day in days.items()},
        },
    )
    rate = np.where(np.isnan(rows.prior), base_rate(targets), rows.prior)
    columns = {MARKET_PRICE: rows.price, BASE_RATE: rate}
    priced = np.isfinite(rows.price)
    if priced.any() and not priced.all():
        columns[MODEL_FREE] = np.where(priced, rows.price, rate)
    columns[ALWAYS_HALF] = np.full(len(rows), 0.5)
    return {name: p for name, p in columns.items() if np.isfinite(p).any()}


def _labels(column: "np.ndarray") -> Labels:
    names, codes = np.unique(column.astype(str), return_inverse=True)
    return Labels(codes=codes.astype(np.int64), names=tuple(names.tolist()))
