"""Study: where does the spread of scores come from? Variance components and effects of methods."""

from collections.abc import Mapping
from functools import partial
from typing import Literal

import numpy as np

from foretell.forecasters.combine.rows import Examples, Strings
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.metrics.effects import alternating_effects, mixed_effects_check, two_way_anova, two_way_effects
from foretell.number_text import number, percent, plural
from foretell.report.numbers import CellValue, value_text
from foretell.report.study import StudyTable, column, forest_chart, table
from foretell.report.study_result import StudyResult
from foretell.studies.ablation import share_tables
from foretell.studies.configurations import UNLINKED, linked_configs, study_configs, with_scope
from foretell.studies.difficulty import difficulty_section
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.sections import SECTION, run_sections


@frozen
class TrialScores:
    """One row per trial that answered: its score from 0 to 1, its method and its question, as codes."""

    y: Floats
    method: Ints
    question: Ints
    methods: tuple[str, ...]
    cluster: Strings
    """Cluster of each question, by its code; a question that is asked again is resampled together with it."""

    def __len__(self) -> int:
        return len(self.y)

    def cells(self) -> Floats:
        """Mean score of every method (row) on every question (column); NaN if no trial answered."""
        shape = (len(self.methods), len(self.cluster))
        cell, size = self.method * shape[1] + self.question, shape[0] * shape[1]
        total, n = np.bincount(cell, self.y, size), np.bincount(cell, minlength=size)
        return np.divide(total, n, out=np.full(size, np.nan), where=n > 0).reshape(shape)


def trial_scores(configs: Mapping[str, Examples], *, first_only: bool) -> TrialScores:
    """Return the score 1 − |p − o| of every trial that answered.

    With `first_only`, of the first resolution date of every dated question, otherwise of all targets. Methods without
    an answer there are left out.
    """
    some = next(iter(configs.values()))
    at = np.arange(len(some))
    if first_only:
        order = np.lexsort((some.known_on, some.rows.asking))
        at = order[np.unique(some.rows.asking[order], return_index=True)[1]]
    trial_values = {
        name: 1 - np.abs(examples.rows.trials[:, at] - examples.outcome[at]) for name, examples in configs.items()
    }
    methods = tuple(name for name, score in trial_values.items() if np.isfinite(score).any())
    scores = [trial_values[name] for name in methods]
    answered = [np.isfinite(score) for score in scores]
    return TrialScores(
        y=np.concatenate([score[done] for score, done in zip(scores, answered, strict=True)]),
        method=np.repeat(np.arange(len(scores)), [int(done.sum()) for done in answered]),
        question=np.concatenate([np.nonzero(done)[1] for done in answered]).astype(np.int64),
        methods=methods,
        cluster=some.rows.cluster[at],
    )


@frozen
class VarianceComponents:
    """Variance components of one trial's score."""

    question: float
    method: float
    both: float
    """Interaction of question and method: some methods do better on some questions, trial after trial."""
    trial: float
    """Differences between trials of one method on one question."""

    @property
    def total(self) -> float:
        """Variance of one trial of a random method on a random question."""
        return self.question + self.method + self.both + self.trial

    def share(self, name: str) -> float:
        """Return a component's share of the total."""
        return getattr(self, name) / self.total if self.total else float("nan")


def variance_components(scores: TrialScores) -> VarianceComponents:
    """Estimate components from mean squares (Searle, Casella & McCulloch 1992, ch. 4); negative ones become zero.

    With K trials in each of M × Q cells: σ²(trial) = MS(within cells), σ²(both) = (MS(interaction) − MS(within)) / K,
    σ²(method) = (MS(method) − MS(interaction)) / QK, and the same for questions. On a table with gaps K, QK and MK are
    the mean numbers of trials and the sums of squares are adjusted for each other.
    """
    rows = {row.source: row for row in two_way_anova(scores.y, scores.method, scores.question, kind="adjusted")}
    cells = scores.cells()
    filled = int(np.isfinite(cells).sum())
    within = float(np.sum((scores.y - cells[scores.method, scores.question]) ** 2))
    spare = len(scores) - filled
    trial = within / spare if spare > 0 else 0.0
    together = max(0.0, rows["residual"].ss - within) / max(1, rows["residual"].df - spare)

    def beyond(source: str, groups: int) -> float:
        return max(0.0, rows[source].ss / max(1, rows[source].df) - together) * groups / len(scores)

    return VarianceComponents(
        question=beyond("question", cells.shape[1]),
        method=beyond("method", cells.shape[0]),
        both=max(0.0, together - trial) * filled / len(scores),
        trial=trial,
    )


FIRST, EVERY = "first date of every question", "every target"
PARTS = {
    "question": "the question",
    "method": "the method",
    "both": "question × method",
    "trial": "chance between trials",
}
SCORE_NOTE = "Score of a trial: 1 − |p − o|, the index of a single answer as a share; higher is better."
ANOVA_NOTES = (
    SCORE_NOTE,
    "The first table follows BLF 2026, Table 20: the first resolution date of every dated question, and sums of "
    "squares of each factor by itself. The paper does not say which twelve configurations it pooled.",
    "Its residual has two parts: the interaction of method and question (question × method), and the differences "
    "between trials of one method on one question. Components separate them.",
)
EFFECTS_NOTES = (
    SCORE_NOTE,
    "The exact fit eliminates the questions, the alternating one is the paper's iteration, and REML takes questions as "
    "random: on a balanced table all agree.",
)
ANOVA = (
    column("SS", "sum of squares"),
    column("% of total"),
    column("df", "degrees of freedom"),
    column("F", "mean square over residual mean square"),
)
EFFECTS = (
    column("effect", "distance to the mean of all methods, questions resampled", 2),
    column("exact", "least squares, questions eliminated", 2),
    column("alternating", "least squares by the paper's iteration", 2),
    column("REML", "questions random", 2),
    column("trials"),
)


class VarianceOptions(TableOptions):
    """Forecasts of several forecasters."""

    section: Literal["anova", "effects", "difficulty"] | None = SECTION


def study(inputs: DataInputs, options: VarianceOptions) -> StudyResult:
    """Where does the spread of scores come from?

    anova: analysis of variance and variance components. effects: method effects by three estimators, and each factor's
    share of the spread between methods. difficulty: ranks adjusted for the difficulty of the questions.

      foretell study variance --grid grid.yaml
    """
    data = inputs.data(options)
    sections = {
        "anova": partial(anova_section, data),
        "effects": partial(effects_section, data),
        "difficulty": partial(difficulty_section, data),
    }
    return run_sections("variance", "Where the spread of scores comes from", sections, options.section)


def anova_section(data: StudyData) -> StudyResult:
    """Show the analysis of variance and the variance components."""
    configs, left_out = _linked(data)
    scores = {scope: trial_scores(configs, first_only=scope == FIRST) for scope in (FIRST, EVERY)}
    parts: dict[str, VarianceComponents] = {}
    for scope, values in scores.items():
        parts[scope] = variance_components(values)
        data.progress(len(parts), len(scores))
    shares = ", ".join(f"{name} {percent(parts[FIRST].share(key))}" for key, name in PARTS.items())
    result = StudyResult(
        name="variance",
        title="Variance components",
        sentences=(f"Of the variance of one trial's score ({plural(len(configs), 'method')}): {shares}.",),
        tables=(*(_anova_table(values, scope) for scope, values in scores.items()), _components_table(parts)),
        notes=ANOVA_NOTES,
    )
    return with_scope(result, data, configs, left_out=left_out)


def effects_section(data: StudyData) -> StudyResult:
    """Show the effects of the methods by three estimators, and each factor's share of the spread between them."""
    configs, left_out = _linked(data)
    scores = trial_scores(configs, first_only=True)
    effects = _effects(scores, data.resampling)
    ranked = dict(sorted(effects.items(), key=lambda item: -item[1].estimate))
    label = "effect on the score of one trial, in points"
    best = next(iter(ranked))
    factors = {name: data.factors[name] for name in configs if name in data.factors}
    result = StudyResult(
        name="variance",
        title="Effects of the methods",
        sentences=(f"{best} has the largest effect: {value_text(ranked[best], 1)} points above the mean method.",),
        tables=(
            _effects_table(scores, effects),
            *share_tables(factors, {name: effect.estimate for name, effect in effects.items()}),
        ),
        charts=(forest_chart("effects", "Effects of the methods", ranked, label, decimals=2, reference=0.0),),
        notes=EFFECTS_NOTES,
    )
    return with_scope(result, data, configs, left_out=left_out)


def _linked(data: StudyData) -> tuple[dict[str, Examples], dict[str, str]]:
    """Return the configurations that questions link with each other, and why the others were left out."""
    everybody = study_configs(data, two_for="variance")
    configs = linked_configs(everybody)
    return configs, dict.fromkeys(everybody.keys() - configs.keys(), UNLINKED)


def _anova_table(scores: TrialScores, scope: str) -> StudyTable:
    rows: dict[str, tuple[CellValue, ...]] = {
        row.source: (row.ss, 100 * row.share, row.df, None if np.isnan(row.f) else row.f)
        for row in two_way_anova(scores.y, scores.method, scores.question)
    }
    caption = f"{plural(len(scores), 'trial')} of {plural(len(scores.methods), 'method')}."
    return table(f"Analysis of variance, {scope}", "Source", ANOVA, rows, caption=caption)


def _components_table(parts: Mapping[str, VarianceComponents]) -> StudyTable:
    columns = [
        heading
        for scope in parts
        for heading in (column(f"σ, {scope}", "in points of the index"), column(f"% of variance, {scope}"))
    ]
    rows = {
        name: [
            value
            for components in parts.values()
            for value in (100 * getattr(components, key) ** 0.5, 100 * components.share(key))
        ]
        for key, name in PARTS.items()
    }
    return table("Variance components", "Component", columns, rows)


def _effects(scores: TrialScores, how: Resampling) -> dict[str, Interval]:
    """Return each method's mean distance to all methods' mean on the same question, in points, questions resampled."""
    cells = 100 * scores.cells()
    answered = np.isfinite(cells)
    mean = np.where(answered, cells, 0.0).sum(axis=0) / np.maximum(answered.sum(axis=0), 1)
    return {
        name: bootstrap_score((cells[i] - mean)[answered[i]], scores.cluster[answered[i]], resampling=how)
        for i, name in enumerate(scores.methods)
    }


def _effects_table(scores: TrialScores, effects: Mapping[str, Interval]) -> StudyTable:
    """Table of method effects with question-clustered intervals, beside three ways to fit the additive model."""
    y = 100 * scores.y
    exact = two_way_effects(y, scores.method, scores.question)
    iterated = alternating_effects(y, scores.method, scores.question)
    reml = mixed_effects_check(y, scores.method, scores.question)
    mixed, count = reml.mean - reml.mean.mean(), np.bincount(scores.method)
    rows = {
        (name := scores.methods[i]): (
            effects[name],
            *(float(fit[i]) for fit in (exact.method, iterated.method, mixed)),
            int(count[i]),
        )
        for i in np.argsort(-exact.method).tolist()
    }
    apart, off = (float(np.max(np.abs(fit - exact.method))) for fit in (iterated.method, mixed))
    caption = (
        f"Alternating fit: {plural(iterated.sweeps, 'sweep')}, at most {apart:.0e} from the exact one; REML at most "
        f"{number(off, 3)} from it. Share of the variance between questions by REML: {percent(reml.intraclass)}."
    )
    return table(f"Effects of the methods, {FIRST}", "Method", EFFECTS, rows, caption=caption)
