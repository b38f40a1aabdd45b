"""Studies of questions: rankings adjusted for their difficulty, and how the score falls with lead time."""

from collections.abc import Mapping

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Bools, Floats
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score, brier_index_from_sums
from foretell.metrics.clusters import ResamplingDesign
from foretell.metrics.comparison import compare_paired
from foretell.metrics.difficulty import adjusted_brier, difficulty_anchor, target_difficulty
from foretell.metrics.metric import METRICS
from foretell.metrics.scores import brier_index
from foretell.questions.errors import InputError
from foretell.report.numbers import number, plural
from foretell.report.study import CellValue, StudyResult, column, count, forest_chart, table, words
from foretell.scoring.scoreboard import OVERALL
from foretell.scoring.verdict import Verdict, corrected
from foretell.studies.configurations import UNLINKED, linked_configs, shown_configs, study_configs, with_scope
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.scores import known_mean, raw_brier, study_design, weighted_means

HARDEST = 15
NOTES = (
    "A question on a market is as hard as its price was wrong, (price − outcome)²; another one is as hard as its fixed "
    "effect over all forecasters. The adjusted Brier score subtracts difficulty and adds a constant that puts "
    "always-0.5 at 0.25 (Bastani et al. 2025), so that forecasters who answered different questions can be compared.",
    "Difficulty is treated as known: intervals resample questions, not the forecasters it was estimated from.",
)
BOARD = (
    column("adjusted Brier", "Brier score minus difficulty plus a constant", 3),
    column("Δ best", "minus the best, on the targets both answered: how difficult they are cancels out", 3),
    column("adjusted BI", "100·(1 − √adjusted Brier)"),
    column("Brier", "as it is, on what was answered", 3),
    count("n", "targets answered"),
)
QUESTIONS = (words("target"), column("difficulty", decimals=3), column("price", decimals=2), count("outcome"))


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Who is best after adjusting for question difficulty?

    Computes difficulty-adjusted Brier scores as ForecastBench does, for forecasters who answered different questions.
    """
    data = inputs.data(options)
    everybody = study_configs(data, two_for="difficulty")
    some = next(iter(everybody.values()))
    configs = linked_configs(everybody, known=np.isfinite(some.rows.price) & (some.rows.kind != "dataset"))
    difficulty = _difficulty(configs, some)
    adjusted = {
        name: interval
        for name, examples in configs.items()
        if (interval := _adjusted(examples, difficulty, data.resampling)) is not None
    }
    if not adjusted:
        raise InputError(
            "no difficulty is known", hint="it takes prices, or questions that several forecasters answered"
        )
    ranked = dict(sorted(adjusted.items(), key=lambda item: item[1].estimate))
    best, *others = ranked
    verdicts = _against_best(best, {name: configs[name] for name in ranked}, difficulty, data.resampling)
    board: dict[str, tuple[CellValue, ...]] = {}
    for name, one in ranked.items():
        score = raw_brier(data.tables[name])
        plain = float(weighted_means(score[None], some.weight)[0]), int(np.isfinite(score).sum())
        board[name] = (one, verdicts.get(name), brier_index(max(0.0, one.estimate)), *plain)
    beaten = sum(one.says == "worse" and one.survives for one in verdicts.values())
    label = "adjusted Brier score, lower is better"
    result = StudyResult(
        name="difficulty",
        title="Scores without the difficulty of the questions",
        sentences=(
            f"With difficulty taken out {best} is best, adjusted Brier {number(ranked[best].estimate, 3)}; corrected "
            f"for their number, {beaten} of {plural(len(others), 'other')} are worse by more than chance.",
        ),
        tables=(
            table("Adjusted for difficulty", "Forecaster", BOARD, board),
            table("The hardest questions", "Question", QUESTIONS, _hardest(some, difficulty)),
        ),
        charts=(forest_chart("adjusted", "Adjusted Brier score", ranked, label, decimals=3),),
        notes=NOTES,
    )
    return with_scope(result, data, configs, left_out=dict.fromkeys(everybody.keys() - adjusted.keys(), UNLINKED))


def _difficulty(configs: Mapping[str, Examples], some: Examples) -> Floats:
    """Return the difficulty of every target."""
    p = np.stack([one.rows.raw for one in configs.values()])
    method, target = np.nonzero(np.isfinite(p))
    return target_difficulty(
        p[method, target],
        method,
        target,
        price=some.rows.price,
        outcome=some.outcome,
        dataset=some.rows.kind == "dataset",
    )


def _adjusted(examples: Examples, difficulty: Floats, how: Resampling) -> Interval | None:
    score = raw_brier(examples)
    known = np.isfinite(score) & np.isfinite(difficulty) & (examples.weight > 0)
    if not known.any():
        return None
    exists = np.isfinite(difficulty)
    constant = difficulty_anchor(difficulty[exists], examples.weight[exists])
    values = adjusted_brier(score[known], difficulty[known], constant)
    return known_mean(values, examples.rows.cluster[known], how, examples.weight[known])


def _against_best(
    best: str, configs: Mapping[str, Examples], difficulty: Floats, how: Resampling
) -> dict[str, Verdict]:
    """Return the verdicts on all others against the best, corrected for their number."""
    metric, some, mine = METRICS["adjusted_brier"], configs[best], raw_brier(configs[best]) - difficulty
    found: list[Verdict] = []
    for name in (name for name in configs if name != best):
        score = raw_brier(configs[name]) - difficulty
        common = np.isfinite(score) & np.isfinite(mine)
        if common.any():
            design = study_design(some.take(common), OVERALL)
            compared = compare_paired(score[common], mine[common], design, resampling=how, bounds=metric.bounds)
            found.append(Verdict.of(compared, (name, best), metric, level=how.level))
    return {one.first: one for one in corrected(found)}


def _hardest(some: Examples, difficulty: Floats) -> list[tuple[str, tuple[CellValue, ...]]]:
    rows = some.rows
    order = np.argsort(-np.nan_to_num(difficulty, nan=-1.0), kind="stable")[:HARDEST]
    price = [float(rows.price[i]) if np.isfinite(rows.price[i]) else None for i in order]
    return [
        (str(rows.question[i]), (str(rows.target[i]), float(difficulty[i]), shown, float(some.outcome[i])))
        for i, shown in zip(order.tolist(), price, strict=True)
    ]


# How long before the outcome a question was asked.

BOUNDS = {"up to a week": 7.0, "up to a month": 31.0, "up to three months": 92.0, "up to a year": 366.0}
"""Upper bounds of the groups in days from asking to resolution, inclusive."""
LEAD_TIME_NOTES = (
    "Days from asking to resolution: the horizon where the table has one, else the time until the outcome was known. "
    "Questions of different lead times are different questions: a slope here is no proof that time is the reason.",
)


def lead_time_study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """How does the score fall with the time to resolution?

    Shows the Brier index by days from asking to resolution, by forecaster.
    """
    data = inputs.data(options)
    configs = study_configs(data)
    groups = _by_lead_time(next(iter(configs.values())))
    index = {
        name: {label: _index_within(examples, member, data.resampling) for label, member in groups.items()}
        for name, examples in configs.items()
    }
    rows: dict[str, list[CellValue]] = {name: [*by_group.values()] for name, by_group in index.items()}
    rows["targets"] = [int(member.sum()) for member in groups.values()]
    means = {label: [one.estimate for by in index.values() if (one := by[label]) is not None] for label in groups}
    parts = [f"{label} {number(float(np.mean(scores)), 1)}" for label, scores in means.items() if scores]
    columns = [column(label, f"Brier index of {int(member.sum())} targets") for label, member in groups.items()]
    result = StudyResult(
        name="lead-time",
        title="Score by lead time",
        sentences=(f"Brier index by time to resolution, mean over forecasters: {'; '.join(parts)}.",),
        tables=(table("Brier index by lead time", "Forecaster", columns, rows, styles={"targets": "anchor"}),),
        charts=tuple(
            forest_chart(f"lead-time-{place}", f"{name} by lead time", index[name], "Brier index")
            for place, name in enumerate(shown_configs(data, configs), start=1)
        ),
        notes=LEAD_TIME_NOTES,
    )
    return with_scope(result, data, configs)


def _by_lead_time(examples: Examples) -> dict[str, Bools]:
    """Group targets by the days from asking to resolution; empty groups are left out."""
    waited = (examples.known_on - examples.rows.due).astype("m8[D]").astype(np.float64)
    days = np.where(np.isfinite(examples.rows.horizon), examples.rows.horizon, waited)
    if not (examples.dated or np.isfinite(examples.rows.horizon).all()):
        hint = "add a column horizon, in days, or due and resolved_on"
        raise InputError("the outcomes do not say how long before them questions were asked", hint=hint)
    group = np.searchsorted(list(BOUNDS.values()), days)
    members = {label: group == place for place, label in enumerate((*BOUNDS, "longer"))}
    return {label: member for label, member in members.items() if member.any()}


def _index_within(examples: Examples, member: Bools, how: Resampling) -> Interval | None:
    score = raw_brier(examples)
    known = member & np.isfinite(score)
    if not known.any():
        return None
    design = ResamplingDesign(cluster=examples.rows.cluster[known], weight=examples.weight[known])
    return bootstrap_score(score[known], design, statistic=brier_index_from_sums, resampling=how)
