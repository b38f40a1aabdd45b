"""Study: who decides best? Options with values, and claims that are true or false, in the shape of Analytica's tables.

After Analytica (2026): Tables 2 and 3 (performance, stability, efficiency), 13 (two factors crossed) and 7 (claims).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Literal

import numpy as np

from foretell.forecasters.combine.rows import Examples, Strings
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import Interval
from foretell.metrics.clusters import ResamplingDesign
from foretell.metrics.comparison import compare_paired, holm, mcnemar
from foretell.metrics.decisions import (
    DEFAULT_THRESHOLD,
    best_threshold,
    clear_answers,
    decide_tasks,
    hard_score_variance,
)
from foretell.metrics.scores import right_side
from foretell.number_text import number, plural
from foretell.questions.errors import InputError, known_names
from foretell.report.numbers import CellValue
from foretell.report.study import RowStyle, StudyTable, column, count, forest_chart, share, table
from foretell.report.study_result import StudyResult
from foretell.request import setting
from foretell.scoring.table import ForecastCost, options_of_tasks
from foretell.scoring.verdict import Verdict
from foretell.studies.ablation import levels_of
from foretell.studies.configurations import study_configs, with_scope
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.scores import known_mean, mean_of_runs, weighted_means
from foretell.studies.sections import SECTION, run_sections

ROW_FACTOR, COLUMN_FACTOR = "rule", "grounder"
VALIDATION, TEST = "validation", "test"
CHANCE = "chance"
NOTES = (
    "Accu.: share of tasks whose most probable option was worth most; equally probable ones share the choice. Soft "
    "and Hard: value of the options weighed by their probabilities, and of the most probable one; 0 is the worst and "
    "100 the best option of a task. BS: mean squared error over options. Conf.: highest probability. All × 100, the "
    "mean over single trials, tasks resampled.",
    "Var: variance of the hard score between trials of a task, × 100, averaged over tasks. Imp.: accuracy above that "
    "of the base, in per cent of it. p: McNemar's exact test against the base, trials joined by their logit mean, ties "
    "left out.",
)
CLAIM_NOTES = (
    "A claim is called True if p is above the forecaster's threshold (at the threshold it counts half), which is "
    "chosen on the validation split alone and judged on the test split; without splits it is one half. True and "
    "False: accuracy on true and on false claims.",
)


class DecisionOptions(TableOptions):
    """Forecasts, the reference configuration, and the factors for rows and columns."""

    section: Literal["methods", "factors"] | None = SECTION
    reference: str | None = setting(
        None, "Measure improvement from this configuration (default: the one without a rule).", metavar="NAME"
    )
    cross: str = setting(
        f"{ROW_FACTOR},{COLUMN_FACTOR}",
        "Two factors: the levels of the first are the rows of the crossed table, those of the second its columns.",
        metavar="ROWS,COLUMNS",
    )

    @property
    def crossed(self) -> tuple[str, str]:
        """The factors of the rows and of the columns."""
        rows, _, columns = self.cross.partition(",")
        if not rows.strip() or not columns.strip():
            raise InputError(f"{self.cross!r} does not name two factors", column="--cross", hint="write rule,grounder")
        return rows.strip(), columns.strip()


def study(inputs: DataInputs, options: DecisionOptions) -> StudyResult:
    """Who decides best, and at what cost (Analytica's tables)?

    methods: accuracy, soft and hard score, confidence, variance, cost and time of options with payoffs; accuracy by
    category of true/false claims and any other targets, with thresholds from the validation split. factors: accuracy by
    the levels of two factors.

      foretell study decisions --grid grid.yaml --cross rule,grounder
    """
    data = inputs.data(options)
    configs = study_configs(data)
    factors = {name: data.factors[name] for name in configs if name in data.factors}
    some = next(iter(configs.values()))
    tasks = TaskRows.of(some)
    judged = {name: examples for name, examples in configs.items() if _can_be_judged(examples, tasks)}
    if not judged:
        raise InputError(f"no configuration answered {'a whole task' if tasks else 'a claim of the test split'}")
    layout = TableLayout(names=tuple(judged), factors=factors, options=options)
    layout.check()
    claims = _claims(judged, layout, data) if tasks is None else _choices(judged, tasks, layout, data)
    sections = {"methods": claims.methods, "factors": partial(claims.crossed, layout)}
    result = run_sections("decisions", "Who decides best", sections, options.section)
    reason = "answered no claim of the test split" if tasks is None else "answered no task completely"
    return with_scope(result, data, configs, left_out=dict.fromkeys(configs.keys() - judged.keys(), reason))


def _can_be_judged(examples: Examples, tasks: "TaskRows | None") -> bool:
    if tasks is None:
        return bool((np.isfinite(examples.rows.raw) & _splits(examples)[1] & (examples.weight > 0)).any())
    return any(bool(np.isfinite(tasks.scores(p)["right"]).any()) for p in examples.rows.trials)


# Groups of configurations and their bases.


@frozen
class TableLayout:
    """The configurations in groups, each with the base it is compared with."""

    names: tuple[str, ...]
    factors: Mapping[str, Mapping[str, str]]
    options: DecisionOptions

    def level(self, name: str, factor: str) -> str:
        """Return the level of a configuration; empty if the factor does not apply to it."""
        return self.factors.get(name, {}).get(factor, "")

    @cached_property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Configurations by level of the column factor; all in one group unless every level has more than one."""
        by_level: dict[str, list[str]] = {}
        for name in self.names:
            by_level.setdefault(self.level(name, self.options.crossed[1]), []).append(name)
        if len(by_level) < 2 or min(map(len, by_level.values())) < 2:
            return {"": self.names}
        return {level: tuple(names) for level, names in by_level.items()}

    def check(self) -> None:
        """Raise an `InputError` if the reference is not one of the configurations."""
        reference = self.options.reference
        if reference is not None and reference not in self.names:
            hint = known_names(reference, self.names)
            raise InputError(f"no configuration is called {reference!r}", column="--reference", hint=hint)

    def base(self, group: Sequence[str]) -> str:
        """Return a group's base: the reference option, else a configuration without the row factor, else the first."""
        if self.options.reference is not None:
            return self.options.reference
        ruled = [name for name in group if self.level(name, self.options.crossed[0])]
        plain = [name for name in group if name not in ruled]
        return plain[0] if plain and ruled else group[0]

    def ordered(self) -> list[tuple[str, str]]:
        """Every configuration with its base, group by group, the base first."""
        pairs: list[tuple[str, str]] = []
        for group in self.groups.values():
            base = self.base(group)
            pairs += [(name, base) for name in sorted(group, key=lambda name: name != base)]
        return pairs

    @property
    def styles(self) -> dict[str, RowStyle]:
        """How bases are highlighted."""
        return {base: "reference" for _, base in self.ordered()}

    def crossed(self, accuracy: Mapping[str, Interval]) -> StudyTable:
        """Accuracy by the levels of two factors (the shape of Table 13); raises `InputError` if they do not vary."""
        rows, columns = self.options.crossed
        levels = levels_of(self.factors)
        if columns not in levels or (rows not in levels and not any(self.level(n, rows) for n in self.names)):
            hint = f"the factors that vary are {', '.join(levels)}; name two of them with --cross" if levels else None
            raise InputError(f"the forecasters do not differ in both {rows} and {columns}", hint=hint)
        across = levels[columns]
        down = dict.fromkeys(self.level(name, rows) for name in self.names)
        cells: dict[str, Sequence[CellValue]] = {}
        for level in sorted(down, key=lambda level: bool(level)):
            mine = [name for name in self.names if self.level(name, rows) == level]
            cells[level or f"without {rows}"] = [
                _mean_accuracy([accuracy[name] for name in mine if self.level(name, columns) == level])
                for level in across
            ]
        heads = [column(level, f"{columns}: {level}") for level in across]
        caption = f"Accuracy × 100 by {rows} and {columns}; if several configurations share a cell, their mean."
        return table(f"{rows} × {columns}", rows, heads, cells, caption=caption)


def _mean_accuracy(intervals: Sequence[Interval]) -> CellValue:
    if len(intervals) == 1:
        return intervals[0]
    return float(np.mean([interval.estimate for interval in intervals])) if intervals else None


# Options with values.


@frozen
class TaskRows:
    """Targets that are options of tasks: every option of an asking has a value, and the values differ."""

    rows: Ints
    """Indices of the options among all targets."""
    task: Ints
    """Code of the task of each option."""
    value: Floats
    outcome: Floats
    cluster: Strings
    """Cluster of each task."""

    @classmethod
    def of(cls, examples: Examples) -> "TaskRows | None":
        """Return the tasks of a table, or None if there are none."""
        _, code = np.unique(examples.rows.asking, return_inverse=True)
        rows = np.flatnonzero(options_of_tasks(code, examples.payoff))
        if not len(rows):
            return None
        _, first, task = np.unique(code[rows], return_index=True, return_inverse=True)
        return cls(
            rows=rows,
            task=task,
            value=examples.payoff[rows],
            outcome=examples.outcome[rows],
            cluster=examples.rows.cluster[rows][first],
        )

    def __len__(self) -> int:
        return len(self.cluster)

    def scores(self, p: Floats) -> dict[str, Floats]:
        """Return the scores of every task, × 100; NaN if an option has no forecast."""
        p = p[self.rows]
        missing = np.bincount(self.task, np.isnan(p)) > 0
        complete = ~missing[self.task]
        scores = {name: np.full(len(self), np.nan) for name in ("right", "soft", "hard", "confidence", "brier")}
        if complete.any():
            at = np.unique(self.task[complete])
            decided = decide_tasks(p[complete], self.value[complete], self.task[complete])
            for name in ("right", "soft", "hard", "confidence"):
                scores[name][at] = 100 * getattr(decided, name)
            error = np.bincount(self.task[complete], (p[complete] - self.outcome[complete]) ** 2, len(self))
            scores["brier"][at] = (
                100 * (error / np.maximum(np.bincount(self.task[complete], minlength=len(self)), 1))[at]
            )
        return scores


SCORES = ("right", "soft", "hard", "brier", "confidence")


def _choices(
    configs: Mapping[str, Examples], tasks: TaskRows, layout: TableLayout, data: StudyData
) -> "DecisionScores":
    trials = {name: [tasks.scores(p) for p in examples.rows.trials] for name, examples in configs.items()}
    values = {
        name: {key: mean_of_runs(np.stack([run[key] for run in runs])) for key in SCORES}
        for name, runs in trials.items()
    }
    means = {
        name: {key: _mean(by_task, tasks.cluster, data) for key, by_task in scores.items()}
        for name, scores in values.items()
    }
    joined = {name: tasks.scores(examples.rows.raw)["right"] / 100 for name, examples in configs.items()}
    p = _against_bases(joined, layout)
    rows: dict[str, tuple[CellValue, ...]] = {CHANCE: _chance_row(tasks)}
    for name, base in layout.ordered():
        mine = means[name]
        rows[name] = (
            mine["right"],
            _improvement(values[name]["right"], values[base]["right"]) if name != base else None,
            *(mine[key] for key in SCORES[1:]),
            _variance([run["hard"] for run in trials[name]]),
            *_cost_cells(data.costs.get(name)),
            p[name],
            int(np.isfinite(joined[name]).sum()),
        )
    columns = (
        column("Accu.", "share of tasks whose most probable option was worth most"),
        replace(column("Imp.", "accuracy above that of the base on common tasks, in per cent of it"), brief=True),
        replace(column("Soft", "value of the options weighed by their probabilities"), brief=True),
        replace(column("Hard", "value of the most probable option"), brief=True),
        replace(column("BS", "Brier score over options × 100"), brief=True),
        replace(column("Conf.", "highest probability"), brief=True),
        column("Var", "variance of the hard score between trials of a task × 100", 2),
        column("Cost", "dollars per task and trial", 3),
        column("Time", "minutes per task and trial", 2),
        column("p", "McNemar's exact test against the base, two-sided, corrected for the rows (Holm)", 3),
        count("n", "tasks answered"),
    )
    styles: dict[str, RowStyle] = {CHANCE: "baseline", **layout.styles}
    board = table("Performance, stability and efficiency", "Method", columns, rows, styles=styles)
    accuracy = {name: scores["right"] for name, scores in means.items()}
    return DecisionScores(
        board=board,
        accuracy=accuracy,
        verdict=_lead(accuracy, {name: scores["right"] for name, scores in values.items()}, tasks.cluster, data),
        of=plural(len(tasks), "task"),
        notes=NOTES,
    )


def _mean(values: Floats, cluster: Strings, data: StudyData, weight: Floats | None = None) -> Interval:
    interval = known_mean(values, cluster, data.resampling, weight)
    assert interval is not None
    return interval


def _improvement(mine: Floats, base: Floats) -> float | None:
    """Accuracy above that of the base on the tasks that both answered, in per cent of it."""
    both = np.isfinite(mine + base)
    reference = float(base[both].mean()) if both.any() else 0.0
    return 100 * (float(mine[both].mean()) / reference - 1) if reference > 0 else None


def _chance_row(tasks: TaskRows) -> tuple[CellValue, ...]:
    """The scores of choosing an option at random."""
    options = np.bincount(tasks.task)
    even = (1.0 / options)[tasks.task]
    decided = decide_tasks(even, tasks.value, tasks.task)
    error = np.bincount(tasks.task, (even - tasks.outcome) ** 2) / options
    means = [
        100 * float(each.mean()) for each in (decided.right, decided.soft, decided.hard, error, decided.confidence)
    ]
    return (means[0], None, *means[1:], None, None, None, None, len(tasks))


def _variance(runs: Sequence[Floats]) -> CellValue:
    hard = np.stack(runs) / 100
    several = np.isfinite(hard).sum(axis=0) > 1
    if not several.any():
        return None
    run, task = np.nonzero(np.isfinite(hard) & several)
    return 100 * hard_score_variance(hard[run, task], task)


def _cost_cells(cost: ForecastCost | None) -> tuple[CellValue, CellValue]:
    if cost is None:
        return None, None
    return cost.dollars, None if np.isnan(cost.seconds) else cost.seconds / 60


def _against_bases(right: Mapping[str, Floats], layout: TableLayout) -> dict[str, CellValue]:
    """p-values of all methods against their bases, corrected for their number; None for a base."""
    clear = {name: clear_answers(answers) for name, answers in right.items()}
    pairs = [(name, clear[name], clear[base]) for name, base in layout.ordered() if name != base]
    p_values = {name: mcnemar(own, base).p for name, own, base in pairs if np.isfinite(own + base).any()}
    corrected = dict(zip(p_values, holm(list(p_values.values())).tolist(), strict=True))
    return {name: corrected.get(name) for name, _ in layout.ordered()}


# Claims.


def _claims(configs: Mapping[str, Examples], layout: TableLayout, data: StudyData) -> "DecisionScores":
    some = next(iter(configs.values()))
    chosen_on, judged_on = _splits(some)
    tuned = bool(chosen_on.any())
    named = {category.strip() for text in some.category.tolist() for category in text.split(";") if category.strip()}
    categories = {
        name: np.array([name in [p.strip() for p in t.split(";")] for t in some.category]) for name in sorted(named)
    }
    parts = {"True": some.outcome == 1, "False": some.outcome == 0, **categories}
    cuts = {name: _cut(examples, chosen_on) if tuned else DEFAULT_THRESHOLD for name, examples in configs.items()}
    right = {name: right_side(examples.rows.raw, examples.outcome, cuts[name]) for name, examples in configs.items()}
    judged = {name: np.where(judged_on, values, np.nan) for name, values in right.items()}
    accuracy = {name: _mean(100 * values, some.rows.cluster, data, some.weight) for name, values in judged.items()}
    p = _against_bases(judged, layout)
    rows: dict[str, tuple[CellValue, ...]] = {}
    for name, _ in layout.ordered():
        cost = data.costs.get(name)
        rows[name] = (
            cuts[name],
            accuracy[name],
            *(_share(right[name], some.weight * (judged_on & part)) for part in parts.values()),
            None if cost is None else 1000 * cost.dollars,
            p[name],
            int(np.isfinite(right[name][judged_on]).sum()),
        )
    columns = (
        share("threshold", "above it a claim is called True"),
        column("Accu.", "share of claims called rightly, %"),
        *(column(name, f"accuracy on {name} claims, %") for name in parts),
        column("Cost ×1k", "dollars per thousand claims", 2),
        column("p", "McNemar's exact test against the base, two-sided, corrected for the rows (Holm)", 3),
        count("n", "claims judged"),
    )
    board = table("Claims", "Method", columns, rows, styles=layout.styles)
    apart = () if tuned else ("The claims have no validation and test split: the threshold is one half for all.",)
    return DecisionScores(
        board=board,
        accuracy=accuracy,
        verdict=_lead(
            accuracy, {name: 100 * values for name, values in judged.items()}, some.rows.cluster, data, some.weight
        ),
        of=plural(int(judged_on.sum()), "claim"),
        notes=(*CLAIM_NOTES, *apart),
    )


def _splits(examples: Examples) -> tuple[Bools, Bools]:
    """The claims on which thresholds are chosen, and those on which they are judged: all if there is no split."""
    chosen_on, judged_on = (examples.rows.subtype == name for name in (VALIDATION, TEST))
    if chosen_on.any() and judged_on.any():
        return chosen_on, judged_on
    return np.zeros(len(examples), bool), np.ones(len(examples), bool)


def _cut(examples: Examples, rows: Bools) -> float:
    p = examples.rows.raw
    used = rows & np.isfinite(p)
    if not used.any() or np.ptp(examples.outcome[used]) == 0:
        return DEFAULT_THRESHOLD
    return best_threshold(p[used], examples.outcome[used], weight=examples.weight[used]).value


def _share(right: Floats, weight: Floats) -> float | None:
    share = float(weighted_means(right[None], weight)[0])
    return None if np.isnan(share) else 100 * share


# Shared by tasks and claims.


def _lead(
    accuracy: Mapping[str, Interval],
    right: Mapping[str, Floats],
    cluster: Strings,
    data: StudyData,
    weight: Floats | None = None,
) -> Verdict | None:
    """Return the verdict on the most accurate method against the next one; None if there is none to compare with."""
    if len(accuracy) < 2:
        return None
    best, other = sorted(accuracy, key=lambda name: -accuracy[name].estimate)[:2]
    common = np.isfinite(right[best]) & np.isfinite(right[other])
    if not common.any():
        return None
    design = ResamplingDesign(cluster=cluster[common], weight=None if weight is None else weight[common])
    how, bounds = data.resampling, (0.0, 100.0)
    comparison = compare_paired(right[best][common], right[other][common], design, resampling=how, bounds=bounds)
    return Verdict.of(comparison, (best, other), "accuracy in points", level=how.level, matters=1.0)


@frozen
class DecisionScores:
    """The accuracy of every method, and what the sections show of it."""

    board: StudyTable
    accuracy: Mapping[str, Interval]
    verdict: Verdict | None
    """The most accurate method against the next one."""
    of: str
    """What was decided, such as "3 tasks"."""
    notes: tuple[str, ...]

    def methods(self) -> StudyResult:
        """Return the table of all methods."""
        ranked = dict(sorted(self.accuracy.items(), key=lambda item: -item[1].estimate))
        best, share = next(iter(ranked.items()))
        among = plural(len(ranked), "method")
        return StudyResult(
            name="decisions",
            title="Who decides best",
            sentences=(
                f"{best} is right most often of {among}: on {number(share.estimate, 1)} % of {self.of}.",
                *([self.verdict.sentence] if self.verdict else []),
            ),
            tables=(self.board,),
            charts=(forest_chart("accuracy", "Accuracy", ranked, "share decided rightly, %"),),
            notes=self.notes,
        )

    def crossed(self, layout: TableLayout) -> StudyResult:
        """Return accuracy by the levels of two factors."""
        crossed = layout.crossed(self.accuracy)
        sentence = f"Accuracy by {' and '.join(layout.options.crossed)}: {plural(len(self.accuracy), 'method')}."
        return StudyResult(name="decisions", title="Two factors crossed", sentences=(sentence,), tables=(crossed,))
