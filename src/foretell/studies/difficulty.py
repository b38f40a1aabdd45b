"""Rankings that are adjusted for the difficulty of the questions."""

from collections.abc import Mapping

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.comparison import compare_paired
from foretell.metrics.difficulty import adjusted_brier, difficulty_anchor, target_difficulty
from foretell.metrics.metric import METRICS
from foretell.metrics.scores import brier_index
from foretell.number_text import number, plural
from foretell.questions.errors import InputError
from foretell.report.numbers import CellValue
from foretell.report.study import column, count, forest_chart, share, table, words
from foretell.report.study_result import StudyResult
from foretell.scoring.baselines import OVERALL
from foretell.scoring.verdict import Verdict, corrected
from foretell.studies.configurations import UNLINKED, linked_configs, study_configs, with_scope
from foretell.studies.inputs import StudyData
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
    column("Δ best", "minus the best, on the targets both answered, so that their difficulty cancels out", 3),
    column("adjusted BI", "100·(1 − √adjusted Brier)"),
    column("Brier", "as it is, on what was answered", 3),
    count("n", "targets answered"),
)
QUESTIONS = (words("target"), column("difficulty", decimals=3), share("price"), count("outcome"))


def difficulty_section(data: StudyData) -> StudyResult:
    """Rank by difficulty-adjusted Brier scores as ForecastBench does, also where questions differ."""
    everybody = study_configs(data, two_for="difficulty")
    some = next(iter(everybody.values()))
    configs = linked_configs(everybody, known_effect=np.isfinite(some.rows.price) & (some.rows.kind != "dataset"))
    difficulty = _difficulty(configs, some)
    adjusted = {
        name: interval
        for name, examples in configs.items()
        if (interval := _adjusted(examples, difficulty, data.resampling)) is not None
    }
    if not adjusted:
        raise InputError("no difficulty is known", hint="give prices, or questions that several forecasters answered")
    ranked = dict(sorted(adjusted.items(), key=lambda item: item[1].estimate))
    best, *others = ranked
    verdicts = _against_best(best, {name: configs[name] for name in ranked}, difficulty, data.resampling)
    board: dict[str, tuple[CellValue, ...]] = {}
    for name, adjusted_score in ranked.items():
        score = raw_brier(data.tables[name])
        plain = float(weighted_means(score[None], some.weight)[0]), int(np.isfinite(score).sum())
        board[name] = (adjusted_score, verdicts.get(name), brier_index(max(0.0, adjusted_score.estimate)), *plain)
    beaten = sum(verdict.says == "worse" and verdict.survives for verdict in verdicts.values())
    label = "adjusted Brier score, lower is better"
    result = StudyResult(
        name="variance",
        title="Scores adjusted for the difficulty of the questions",
        sentences=(
            f"Adjusted for difficulty, {best} is best, adjusted Brier {number(ranked[best].estimate, 3)}; corrected "
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
    p = np.stack([config.rows.raw for config in configs.values()])
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
    scored = np.isfinite(score) & np.isfinite(difficulty) & (examples.weight > 0)
    if not scored.any():
        return None
    exists = np.isfinite(difficulty)
    constant = difficulty_anchor(difficulty[exists], examples.weight[exists])
    values = adjusted_brier(score[scored], difficulty[scored], constant)
    return known_mean(values, examples.rows.cluster[scored], how, examples.weight[scored])


def _against_best(
    best: str, configs: Mapping[str, Examples], difficulty: Floats, how: Resampling
) -> dict[str, Verdict]:
    """Return the verdicts on all others against the best, corrected for their number."""
    metric, some, mine = METRICS["adjusted_brier"], configs[best], raw_brier(configs[best]) - difficulty
    verdicts: list[Verdict] = []
    for name in (name for name in configs if name != best):
        score = raw_brier(configs[name]) - difficulty
        common = np.isfinite(score) & np.isfinite(mine)
        if common.any():
            design = study_design(some.take(common), OVERALL)
            compared = compare_paired(score[common], mine[common], design, resampling=how, bounds=metric.bounds)
            verdicts.append(Verdict.of(compared, (name, best), metric, level=how.level))
    return {verdict.first: verdict for verdict in corrected(verdicts)}


def _hardest(some: Examples, difficulty: Floats) -> list[tuple[str, tuple[CellValue, ...]]]:
    rows = some.rows
    order = np.argsort(-np.nan_to_num(difficulty, nan=-1.0), kind="stable")[:HARDEST]
    price = [float(rows.price[i]) if np.isfinite(rows.price[i]) else None for i in order]
    return [
        (str(rows.question[i]), (str(rows.target[i]), float(difficulty[i]), shown_price, float(some.outcome[i])))
        for i, shown_price in zip(order.tolist(), price, strict=True)
    ]
