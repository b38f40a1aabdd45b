"""Study: how much does each component contribute? Factors one at a time, level by level, and in pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Literal

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.frozen import frozen
from foretell.number_text import number, plural
from foretell.questions.errors import InputError
from foretell.report.numbers import CellValue, value_text
from foretell.report.study import StudyChart, StudyTable, column, count, table, words
from foretell.report.study_result import StudyResult
from foretell.scoring.verdict import Verdict
from foretell.studies.configurations import study_configs, with_scope
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.scores import (
    PairedGains,
    Scores,
    gains_chart,
    gains_table,
    groups_of,
    index_of,
    mean_gain,
    paired_gains,
    raw_brier,
    rule_score_table,
    rule_scores,
)
from foretell.studies.sections import SECTION, run_sections

Factors = Mapping[str, Mapping[str, str]]
"""Level of every applicable factor, by configuration."""
UNNAMED = "has no factors"
MOST_FACTORS = 8
"""Maximum number of factors that are crossed in pairs."""
NOTES = (
    "A change is the mean over all pairs of configurations that differ in that factor alone, recomputed on the same "
    "resamples of questions; trials are joined by their logit mean.",
    "An interaction is how much larger the effect of one factor is with the other at its last level than at its first.",
)


class AblationOptions(TableOptions):
    """Forecasters that differ in factors."""

    section: Literal["changes", "factorial", "shares"] | None = SECTION


def study(inputs: DataInputs, options: AblationOptions) -> StudyResult:
    """How much does each component contribute?

    Forecasters are compared by the factors of a grid, of runs that differ, or of the columns of a table. changes: one
    factor at a time, and level by level. factorial: every two factors crossed. shares: how much of the spread between
    forecasters each factor explains.

      foretell study ablation --grid grid.yaml
    """
    data = inputs.data(options)
    configs = study_configs(data)
    factors = {name: data.factors[name] for name in configs if name in data.factors}
    if not levels_of(factors):
        hint = "give --grid FILE, several runs that differ, or columns beside forecaster in the forecasts"
        raise InputError("the forecasters do not differ in any factor", hint=hint)
    described = {name: configs[name] for name in factors}
    raw = {name: raw_brier(examples) for name, examples in described.items()}
    effects = FactorEffects(factors=factors, configs=described, raw=raw, data=data)
    sections = {"changes": effects.changes, "factorial": effects.factorial, "shares": effects.shares}
    result = run_sections("ablation", "What each component contributes", sections, options.section)
    left_out = dict.fromkeys(configs.keys() - described.keys(), UNNAMED)
    return with_scope(replace(result, notes=(*NOTES, *result.notes)), data, described, left_out=left_out)


def levels_of(factors: Factors) -> dict[str, tuple[str, ...]]:
    """Return the factors that vary, each with its levels in order of appearance."""
    levels_by_factor: dict[str, dict[str, None]] = {}
    for levels in factors.values():
        for name, level in levels.items():
            levels_by_factor.setdefault(name, {})[level] = None
    return {name: tuple(levels) for name, levels in levels_by_factor.items() if len(levels) > 1}


@frozen
class FactorEffects:
    """Configurations with their factors and the Brier score of every target."""

    factors: Factors
    configs: Mapping[str, Examples]
    raw: Scores
    data: StudyData

    @cached_property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The factors that vary, with their levels."""
        return levels_of(self.factors)

    @cached_property
    def _by_levels(self) -> dict[frozenset[tuple[str, str]], str]:
        return {frozenset(levels.items()): name for name, levels in self.factors.items()}

    def _with(self, levels: Mapping[str, str], **other: str) -> str | None:
        """Return the configuration that has these levels with some of them replaced, or None."""
        return self._by_levels.get(frozenset({**levels, **other}.items()))

    def change(self, factor: str, before: str, after: str) -> PairedGains | None:
        """Return the effect of moving a factor from one level to another, over all pairs that differ only in it."""
        gained: dict[str, str] = {}
        for name, levels in self.factors.items():
            other = self._with(levels, **{factor: after}) if levels.get(factor) == before else None
            if other is not None:
                gained[other] = name
        if not gained:
            return None
        after_scores, start = {b: self.raw[b] for b in gained}, {b: self.raw[a] for b, a in gained.items()}
        return paired_gains(after_scores, start, self.configs, self.data.resampling)

    def _changes(self, steps: Sequence[tuple[str, str, str]]) -> dict[str, PairedGains]:
        changes = {
            f"{factor}: {before} → {after}": self.change(factor, before, after) for factor, before, after in steps
        }
        return {name: gain for name, gain in changes.items() if gain is not None}

    def single_changes(self) -> dict[str, PairedGains]:
        """Every level of every factor against its first level."""
        return self._changes([(f, levels[0], level) for f, levels in self.levels.items() for level in levels[1:]])

    def steps(self) -> dict[str, PairedGains]:
        """Every level against the one before it, for factors with more than two levels."""
        return self._changes(
            [(f, *step) for f, levels in self.levels.items() if len(levels) > 2 for step in pairwise(levels)]
        )

    def interaction(self, first: str, second: str) -> Verdict | None:
        """Interaction: the effect of one factor at the other's last level minus that at its first."""
        (low, high), (off, on) = ((self.levels[name][0], self.levels[name][-1]) for name in (first, second))
        gained: list[str] = []
        lost: list[str] = []
        for levels in self.factors.values():
            if (levels.get(first), levels.get(second)) == (low, off):
                corners = ((high, on), (low, off), (high, off), (low, on))
                names = [name for a, b in corners if (name := self._with(levels, **{first: a, second: b})) is not None]
                if len(names) == len(corners):
                    gained += names[:2]
                    lost += names[2:]
        if not gained:
            return None
        some, how = self.configs[gained[0]], self.data.resampling
        return mean_gain([self.raw[name] for name in gained], [self.raw[name] for name in lost], some, how, times=2)

    def changes(self) -> StudyResult:
        """One factor at a time, and factors with more than two levels level by level."""
        single, some = self.single_changes(), next(iter(self.configs.values()))
        scores = rule_scores(self.raw, some, next(iter(self.configs)), self.data.resampling)
        tables = [rule_score_table("Configurations", scores, groups_of(some))]
        sentence = "No two configurations differ in one factor alone."
        if single:
            name, best = max(single.items(), key=lambda item: item[1].mean.diff)
            sentence = f"The largest single change: {name}, {value_text(best.mean, 1)} BI."
            tables.append(gains_table("One factor at a time", "Change", single))
        if steps := self.steps():
            tables.append(gains_table("Build-up: each level against the one before", "Step", steps))
        size = f"{plural(len(self.configs), 'configuration')}, {plural(len(self.levels), 'factor')}."
        charts = (gains_chart("factors", "One factor at a time", single, "difference in BI"),) if single else ()
        return _section(f"{size} {sentence}", tables, charts)

    def shares(self) -> StudyResult:
        """How much of the spread between configurations each factor explains alone."""
        tables = share_tables(
            self.factors, {name: index_of(self.raw[name], self.configs[name]) for name in self.factors}
        )
        if not tables:
            raise InputError("fewer than three configurations have all factors", hint="give more of them")
        (board,) = tables
        share = board.numbers("% of spread")
        most = max(share, key=lambda name: share[name])
        return _section(f"{most} explains most of the spread, {number(share[most], 0)} %.", [board])

    def factorial(self) -> StudyResult:
        """Every pair of factors: two main effects, first to last level, and how far one depends on the other."""
        rows: dict[str, tuple[CellValue, ...]] = {}
        for first, second in combinations(list(self.levels)[:MOST_FACTORS], 2):
            both = self.interaction(first, second)
            if both is not None:
                main = [self.change(name, self.levels[name][0], self.levels[name][-1]) for name in (first, second)]
                rows[f"{first} × {second}"] = (*(None if gain is None else gain.mean for gain in main), both)
        columns = (
            column("first", "main effect of the first factor, from its first to its last level"),
            column("second", "main effect of the second factor"),
            column("interaction", "effect of the first with the last level of the second, minus with its first level"),
        )
        if not rows:
            raise InputError("no two factors are crossed", hint="give configurations with all four combinations")
        interaction = {name: value for name, (*_, value) in rows.items() if isinstance(value, Verdict)}
        largest = max(interaction, key=lambda name: abs(interaction[name].diff))
        sentence = f"The largest interaction: {largest}, {value_text(interaction[largest], 1)} BI."
        return _section(sentence, [table("Factorial: two factors at a time", "Factors", columns, rows)])


def _section(sentence: str, tables: Sequence[StudyTable], charts: Sequence[StudyChart] = ()) -> StudyResult:
    return StudyResult(name="ablation", title="", sentences=(sentence,), tables=tuple(tables), charts=tuple(charts))


def share_tables(factors: Factors, scores: Mapping[str, float]) -> list[StudyTable]:
    """Table of the share of the spread between configurations that each factor explains alone (R² of level means)."""
    levels = levels_of(factors)
    names = [name for name in factors if np.isfinite(scores.get(name, np.nan)) and set(levels) <= set(factors[name])]
    y = np.array([scores[name] for name in names])
    total = float(np.sum((y - y.mean()) ** 2)) if len(y) else 0.0
    if len(y) < 3 or total == 0:
        return []
    rows: dict[str, Sequence[CellValue]] = {}
    for factor, values in levels.items():
        parts = {value: y[[factors[name][factor] == value for name in names]] for value in values}
        means = {value: float(part.mean()) for value, part in parts.items() if len(part)}
        between = sum(len(parts[value]) * (mean - float(y.mean())) ** 2 for value, mean in means.items())
        best = max(means, key=lambda value: means[value])
        rows[factor] = (100 * between / total, max(means.values()) - min(means.values()), best, len(values))
    columns = (
        column("% of spread", "of the variance of the index between configurations, the factor by itself"),
        column("range", "best level's mean index minus the worst level's"),
        words("best level", "by mean index"),
        count("levels"),
    )
    caption = f"{plural(len(names), 'configuration')} that have all factors."
    return [table("Where the spread between configurations comes from", "Factor", columns, rows, caption=caption)]
