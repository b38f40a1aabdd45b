"""What factors bring: runs that differ in one level, levels in order, pairs of factors, and shares of the spread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.comparison import Comparison
from foretell.report.numbers import plural
from foretell.report.study import CellValue, StudyTable
from foretell.studies.configurations import ConfigName, parse_configs
from foretell.studies.inputs import StudyData
from foretell.studies.layout import column, count, table
from foretell.studies.scores import PairedGains, Scores, gains_table, index_of, mean_gain, paired_gains

Factors = Mapping[str, Mapping[str, str]]
"""By configuration, its level of every factor that concerns it."""
MOST_FACTORS = 8
"""Factors of which every pair is shown."""


def factors_of(data: StudyData, configs: Mapping[str, Examples]) -> dict[str, dict[str, str]]:
    """The factors of configurations: those they carry, else those that names in the published manner tell."""
    carried = {name: dict(data.factors[name]) for name in configs if name in data.factors}
    return carried or {name: config_factors(parts) for name, parts in parse_configs(configs).items()}


def config_factors(parts: ConfigName) -> dict[str, str]:
    """The parts of a published configuration as factors."""
    shown = {name: "yes" if getattr(parts, name) else "no" for name in ("crowd", "prior", "tools")}
    return {
        "model": parts.model,
        "effort": parts.effort,
        "search": parts.search,
        **shown,
        "variant": parts.variant or "full",
    }


def config_names(factors: Factors) -> dict[str, ConfigName]:
    """Configurations of the published kind, out of their factors; those that lack a part are left out."""
    return {
        name: ConfigName(
            model=levels["model"],
            effort=levels["effort"],
            search=levels["search"],
            crowd=levels["crowd"] == "yes",
            prior=levels["prior"] == "yes",
            tools=levels["tools"] == "yes",
            variant="" if levels["variant"] == "full" else levels["variant"],
        )
        for name, levels in factors.items()
        if {"model", "effort", "search", "crowd", "prior", "tools", "variant"} <= set(levels)
    }


def levels_of(factors: Factors) -> dict[str, tuple[str, ...]]:
    """The factors that vary, each with its levels in the order in which they come."""
    found: dict[str, dict[str, None]] = {}
    for levels in factors.values():
        for name, level in levels.items():
            found.setdefault(name, {})[level] = None
    return {name: tuple(levels) for name, levels in found.items() if len(levels) > 1}


@dataclass(frozen=True, kw_only=True)
class FactorStudy:
    """Configurations with their factors and the Brier score of every target."""

    factors: Factors
    configs: Mapping[str, Examples]
    raw: Scores
    data: StudyData

    def pairs(self, factor: str, before: str, after: str) -> list[tuple[str, str]]:
        """All pairs of configurations that differ in the level of one factor alone."""
        by_levels = {tuple(sorted(levels.items())): name for name, levels in self.factors.items()}
        found: list[tuple[str, str]] = []
        for name, levels in self.factors.items():
            if levels.get(factor) == before:
                other = by_levels.get(tuple(sorted({**levels, factor: after}.items())))
                if other is not None:
                    found.append((name, other))
        return found

    def change(self, factor: str, before: str, after: str) -> PairedGains | None:
        """What the step from one level to another brings, over all pairs that differ in it alone."""
        pairs = self.pairs(factor, before, after)
        if not pairs:
            return None
        gained, start = {b: self.raw[b] for _, b in pairs}, {b: self.raw[a] for a, b in pairs}
        return paired_gains(gained, start, self.configs, self.data.resampling)

    def single_changes(self) -> dict[str, PairedGains]:
        """Every level of every factor against its first level."""
        steps = {
            f"{factor}: {levels[0]} → {level}": self.change(factor, levels[0], level)
            for factor, levels in levels_of(self.factors).items()
            for level in levels[1:]
        }
        return {name: one for name, one in steps.items() if one is not None}

    def steps(self) -> dict[str, PairedGains]:
        """Every level against the one before it, for factors with more than two levels."""
        steps = {
            f"{factor}: {before} → {after}": self.change(factor, before, after)
            for factor, levels in levels_of(self.factors).items()
            if len(levels) > 2
            for before, after in pairwise(levels)
        }
        return {name: one for name, one in steps.items() if one is not None}

    def interaction(self, one: str, other: str) -> Comparison | None:
        """How much more one factor brings, first to last level, at the other's last level than at its first."""
        levels = levels_of(self.factors)
        (low, high), (off, on) = ((levels[name][0], levels[name][-1]) for name in (one, other))
        gained: list[str] = []
        lost: list[str] = []
        by_levels = {tuple(sorted(given.items())): name for name, given in self.factors.items()}
        for given in self.factors.values():
            if (given.get(one), given.get(other)) != (low, off):
                continue
            corner = [{**given, one: a, other: b} for a, b in ((high, on), (low, off), (high, off), (low, on))]
            names = [by_levels.get(tuple(sorted(levels.items()))) for levels in corner]
            if all(names):
                gained += [str(name) for name in names[:2]]
                lost += [str(name) for name in names[2:]]
        if not gained:
            return None
        some, how = self.configs[gained[0]], self.data.resampling
        return mean_gain([self.raw[name] for name in gained], [self.raw[name] for name in lost], some, how).times(2)

    def tables(self) -> list[StudyTable]:
        """Everything that the factors say."""
        found: list[StudyTable] = []
        if single := self.single_changes():
            found.append(gains_table("One factor at a time", "Change", single))
        if steps := self.steps():
            found.append(gains_table("Build-up: each level against the one before", "Step", steps))
        return [*found, *self.factorial(), *share_tables(self.factors, self.indices())]

    def indices(self) -> dict[str, float]:
        """The Brier index of every configuration."""
        return {name: index_of(self.raw[name], self.configs[name]) for name in self.factors}

    def factorial(self) -> list[StudyTable]:
        """Every pair of factors: two main effects, first to last level, and how far one depends on the other."""
        levels = levels_of(self.factors)
        rows: dict[str, tuple[CellValue, ...]] = {}
        for one, other in combinations(list(levels)[:MOST_FACTORS], 2):
            both = self.interaction(one, other)
            if both is not None:
                main = [self.change(name, levels[name][0], levels[name][-1]) for name in (one, other)]
                rows[f"{one} × {other}"] = (*(None if gain is None else gain.mean for gain in main), both)
        columns = (
            column("first", "main effect of the first factor, from its first to its last level"),
            column("second", "main effect of the second factor"),
            column("interaction", "effect of the first with the last level of the second, minus with its first level"),
        )
        return [table("Factorial: two factors at a time", "Factors", columns, rows)] if rows else []


def share_tables(factors: Factors, scores: Mapping[str, float]) -> list[StudyTable]:
    """How much of the spread between configurations each factor accounts for by itself: R² of its level means."""
    levels = levels_of(factors)
    names = [name for name in factors if np.isfinite(scores.get(name, np.nan)) and set(levels) <= set(factors[name])]
    y = np.array([scores[name] for name in names])
    total = float(np.sum((y - y.mean()) ** 2)) if len(y) else 0.0
    if len(y) < 3 or total == 0:
        return []
    rows: dict[str, Sequence[CellValue]] = {}
    for factor, values in levels.items():
        means = {value: y[[factors[name][factor] == value for name in names]] for value in values}
        between = sum(len(part) * (float(part.mean()) - float(y.mean())) ** 2 for part in means.values() if len(part))
        best = max((v for v in values if len(means[v])), key=lambda value: float(means[value].mean()))
        spread = max(float(p.mean()) for p in means.values() if len(p)) - min(
            float(p.mean()) for p in means.values() if len(p)
        )
        rows[factor] = (100 * between / total, spread, best, len(values))
    columns = (
        column("% of spread", "of the variance of the index between configurations, the factor by itself"),
        column("range", "best level's mean index minus the worst level's"),
        replace(column("best level", "by mean index"), numeric=False),
        count("levels"),
    )
    caption = f"{plural(len(names), 'configuration')} that have all factors."
    return [table("Where the spread between configurations comes from", "Factor", columns, rows, caption=caption)]
