"""Study: where does the spread of scores come from? Questions, methods, both together, and chance between trials."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from foretell.forecasters.combine.rows import Examples, Strings
from foretell.metrics.arrays import Floats, Ints
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.metrics.effects import (
    MixedEffects,
    TwoWayEffects,
    alternating_effects,
    mixed_effects_check,
    two_way_anova,
    two_way_effects,
)
from foretell.questions.errors import InputError
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.numbers import number, percent, plural
from foretell.report.study import CellValue, StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.studies.configurations import complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, TableOptions


@dataclass(frozen=True, kw_only=True)
class TrialScores:
    """One row per trial that answered: its score from 0 to 1, its method and its question, as codes."""

    y: Floats
    method: Ints
    question: Ints
    methods: tuple[str, ...]
    cluster: Strings
    """By the code of a question, what is resampled with it: the same question asked again."""

    def __len__(self) -> int:
        return len(self.y)

    def cells(self) -> Floats:
        """Mean score of every method (row) on every question (column); NaN where no trial answered."""
        shape = (len(self.methods), len(self.cluster))
        cell, size = self.method * shape[1] + self.question, shape[0] * shape[1]
        total, n = np.bincount(cell, self.y, size), np.bincount(cell, minlength=size)
        return np.divide(total, n, out=np.full(size, np.nan), where=n > 0).reshape(shape)


def trial_scores(tables: Mapping[str, Examples], *, first_only: bool) -> TrialScores:
    """Every trial that answered, 1 − |p − o|, over all targets or over the first date of every asking."""
    some = next(iter(tables.values()))
    kept = _firsts(some) if first_only else np.arange(len(some))
    parts = [_answers(examples, kept) for examples in tables.values()]
    return TrialScores(
        y=np.concatenate([score for score, _ in parts]),
        method=np.repeat(np.arange(len(parts)), [len(score) for score, _ in parts]),
        question=np.concatenate([at for _, at in parts]),
        methods=tuple(tables),
        cluster=some.rows.cluster[kept],
    )


def _answers(examples: Examples, kept: Ints) -> tuple[Floats, Ints]:
    score = 1 - np.abs(examples.rows.trials[:, kept] - examples.outcome[kept])
    trial, at = np.nonzero(np.isfinite(score))
    return score[trial, at], at.astype(np.int64)


def _firsts(examples: Examples) -> Ints:
    """The target of every asking that resolved first."""
    order = np.lexsort((examples.known_on, examples.rows.asking))
    return order[np.unique(examples.rows.asking[order], return_index=True)[1]].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class VarianceComponents:
    """Variance components of one trial's score."""

    question: float
    method: float
    both: float
    """Question × method: some methods do better on some questions, trial after trial."""
    trial: float
    """What differs between trials of one method on one question."""

    @property
    def total(self) -> float:
        """Variance of one trial of a random method on a random question."""
        return self.question + self.method + self.both + self.trial

    def share(self, name: str) -> float:
        """A component's share of the total."""
        return getattr(self, name) / self.total if self.total else float("nan")


def variance_components(found: TrialScores) -> VarianceComponents:
    """Moment estimates from mean squares (Searle, Casella & McCulloch 1992, ch. 4); what comes out negative is zero.

    With K trials in each of M × Q cells: σ²(trial) = MS(within cells), σ²(both) = (MS(interaction) − MS(within)) / K,
    σ²(method) = (MS(method) − MS(interaction)) / QK, and the same for questions. On a table with gaps K, QK and MK are
    the mean numbers of trials and the sums of squares are adjusted for each other.
    """
    rows = {row.source: row for row in two_way_anova(found.y, found.method, found.question, kind="adjusted")}
    cells = found.cells()
    filled = int(np.isfinite(cells).sum())
    within = float(np.sum((found.y - cells[found.method, found.question]) ** 2))
    spare = len(found) - filled
    trial = within / spare if spare > 0 else 0.0
    together = max(0.0, rows["residual"].ss - within) / max(1, rows["residual"].df - spare)

    def beyond(source: str, groups: int) -> float:
        return max(0.0, rows[source].ss / max(1, rows[source].df) - together) * groups / len(found)

    return VarianceComponents(
        question=beyond("question", cells.shape[1]),
        method=beyond("method", cells.shape[0]),
        both=max(0.0, together - trial) * filled / len(found),
        trial=trial,
    )


FIRST, EVERY = "first date of every asking", "every target"
PARTS = {
    "question": "the question",
    "method": "the method",
    "both": "question × method",
    "trial": "chance between trials",
}
NOTES = (
    "Score of a trial: 1 − |p − o|, the index of a single answer as a share; higher is better.",
    "The first table follows BLF 2026, Table 20: the first date of every asking, and sums of squares of each factor by "
    "itself. The paper does not say which twelve configurations it pooled.",
    "Its residual holds two things: what a method makes of a question trial after trial (question × method), and what "
    "differs between trials of one method on one question. Components tell them apart.",
    "The exact fit eliminates the questions, the alternating one is the paper's iteration, and REML takes questions as "
    "random: on a balanced table all agree.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Where does the spread of scores come from?

    Analysis of variance, components, and method effects by three estimators.
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    if len(tables) < 2:
        raise InputError("variance needs at least two configurations", hint="name more of them with --config")
    first, every = trial_scores(tables, first_only=True), trial_scores(tables, first_only=False)
    parts: dict[str, VarianceComponents] = {}
    for done, (title, found) in enumerate({FIRST: first, EVERY: every}.items(), 1):
        parts[title] = variance_components(found)
        data.progress(done, 3)
    effects = _apart(first, data.resampling)
    grids = (_anova(first, FIRST), _anova(every, EVERY), _components(parts), _effects(first, effects))
    order = sorted(effects, key=lambda name: -effects[name].estimate)
    rows = [ForestRow(name=name, interval=effects[name]) for name in order]
    figure = forest_plot(rows, label="effect on the score of one trial, in points", decimals=2, reference=0.0)
    return StudyResult(
        name="variance",
        title="Where the spread of scores comes from",
        sentences=(_sentence(parts[FIRST], first),),
        tables=grids,
        charts=(StudyChart(name="effects", title="Effects of the methods", chart=figure),),
        notes=(*NOTES, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def _anova(found: TrialScores, scope: str) -> StudyTable:
    entries: list[StudyRow] = []
    for row in two_way_anova(found.y, found.method, found.question):
        f: CellValue = None if np.isnan(row.f) else row.f
        entries.append(StudyRow(name=row.source, values=(row.ss, 100 * row.share, row.df, f)))
    columns = (
        StudyColumn(label="SS", tip="sum of squares"),
        StudyColumn(label="% of total"),
        StudyColumn(label="df", tip="degrees of freedom"),
        StudyColumn(label="F", tip="mean square over residual mean square"),
    )
    caption = f"{plural(len(found), 'trial')} of {plural(len(found.methods), 'method')}."
    title = f"Analysis of variance, {scope}"
    return StudyTable(title=title, row_header="Source", columns=columns, rows=tuple(entries), caption=caption)


def _components(parts: Mapping[str, VarianceComponents]) -> StudyTable:
    columns: list[StudyColumn] = []
    for title in parts:
        columns += [
            StudyColumn(label=f"σ, {title}", tip="in points of the index"),
            StudyColumn(label=f"% of variance, {title}"),
        ]
    entries: list[StudyRow] = []
    for key, name in PARTS.items():
        values = [value for one in parts.values() for value in (100 * getattr(one, key) ** 0.5, 100 * one.share(key))]
        entries.append(StudyRow(name=name, values=tuple(values)))
    return StudyTable(title="Variance components", row_header="Component", columns=tuple(columns), rows=tuple(entries))


def _apart(found: TrialScores, how: Resampling) -> dict[str, Interval]:
    """Each method's mean distance to the mean of all methods on the same question, questions resampled, in points."""
    cells = 100 * found.cells()
    said = np.isfinite(cells)
    mean = np.where(said, cells, 0.0).sum(axis=0) / np.maximum(said.sum(axis=0), 1)
    return {
        name: bootstrap_score((cells[i] - mean)[said[i]], found.cluster[said[i]], resampling=how)
        for i, name in enumerate(found.methods)
    }


def _effects(found: TrialScores, effects: Mapping[str, Interval]) -> StudyTable:
    """Method effects with question-clustered intervals, beside three ways to fit the additive model."""
    y = 100 * found.y
    exact = two_way_effects(y, found.method, found.question)
    iterated = alternating_effects(y, found.method, found.question)
    reml = mixed_effects_check(y, found.method, found.question)
    mixed, count = reml.mean - reml.mean.mean(), np.bincount(found.method)
    entries = [
        StudyRow(
            name=found.methods[i],
            values=(
                effects[found.methods[i]],
                *(float(fit[i]) for fit in (exact.method, iterated.method, mixed)),
                int(count[i]),
            ),
        )
        for i in np.argsort(-exact.method).tolist()
    ]
    columns = (
        StudyColumn(label="effect", decimals=2, tip="distance to the mean of all methods, questions resampled"),
        StudyColumn(label="exact", decimals=2, tip="least squares, questions eliminated"),
        StudyColumn(label="alternating", decimals=2, tip="least squares by the paper's iteration"),
        StudyColumn(label="REML", decimals=2, tip="questions random"),
        StudyColumn(label="trials"),
    )
    caption = _check(exact, iterated, reml)
    title = f"Effects of the methods, {FIRST}"
    return StudyTable(title=title, row_header="Method", columns=columns, rows=tuple(entries), caption=caption)


def _check(exact: TwoWayEffects, iterated: TwoWayEffects, reml: MixedEffects) -> str:
    apart = float(np.max(np.abs(iterated.method - exact.method)))
    off = float(np.max(np.abs(reml.mean - reml.mean.mean() - exact.method)))
    return (
        f"Alternating fit: {plural(iterated.sweeps, 'sweep')}, at most {apart:.0e} from the exact one; REML at most "
        f"{number(off, 3)} from it. Share of the variance between questions by REML: {percent(reml.intraclass)}."
    )


def _sentence(parts: VarianceComponents, found: TrialScores) -> str:
    told = ", ".join(f"{name} {percent(parts.share(key))}" for key, name in PARTS.items())
    return f"Of the variance of one trial's score ({plural(len(found.methods), 'method')}): {told}."
