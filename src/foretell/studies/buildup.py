"""Study: which part brings what? By the factors of configurations, singly and in pairs, and by chains of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.comparison import Comparison
from foretell.questions.errors import InputError
from foretell.report.numbers import bracket, plural, signed
from foretell.report.study import CellValue, StudyResult, StudyTable, column, count, table
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import (
    ConfigFamily,
    ConfigName,
    build_method,
    complete_configs,
    config_families,
    fit_under_protocol,
    parse_configs,
    single_changes,
    with_scope,
)
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.scores import (
    PairedGains,
    Scores,
    brier_of,
    estimate,
    gains_chart,
    gains_table,
    groups_of,
    index_of,
    mean_gain,
    paired_gains,
    paired_gap,
    raw_brier,
    rule_score_table,
    rule_scores,
)

# What factors bring: runs that differ in one level, levels in order, pairs of factors, and shares of the spread.


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


ZERO, BARE, FULL, SHOWN = "zero-shot", "+ search, tools, loop", "+ belief state", "+ price and base rate shown"
INSTEAD = "default instead, past only"
FITTED = {"+ shrink, past only": "shrink", "+ calibrate, past only": "paper", INSTEAD: "default"}
NOTES = (
    "Chains: the logit mean of all trials of four configurations of one model, then what fitting on earlier rounds "
    "adds: shrinkage to price or base rate, Platt scaling with an offset per source, or the default rule instead.",
    "Each step is the paired difference to the line above it; the default's is to the last line that fits nothing.",
)
FACTOR_NOTES = (
    "A change is the mean over all pairs of configurations that differ in that factor alone, recomputed on the same "
    "resamples of questions; trials are joined by their logit mean.",
    "An interaction is how much more one factor brings with the other at its last level than at its first.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Which component brings what?

    By the factors of a grid, of runs or of a table: one factor at a time, levels in order, and every two factors
    crossed. Of configurations of the published kind: chains by model and regime, single axes, and belief × crowd.
    """
    data = inputs.data(options)
    configs = complete_configs(data)
    factors = factors_of(data, configs)
    if not levels_of(factors):
        hint = "give --grid FILE, several --run that differ, or --factors beside --forecasts"
        raise InputError("no factor and no configuration's name says what it is made of", hint=hint)
    names = config_names(factors)
    if not names or not config_families(names):
        return _by_factor(factors, configs, data)
    raw = {name: raw_brier(configs[name]) for name in names}
    families = config_families(names)
    chains = _chains(families, configs, raw, data)
    steps, single = _steps(chains, data), _single_changes(names, configs, raw, data)
    tables = [gains_table("Build-up: mean over chains of each step", "Step", steps)] if steps else []
    tables += [gains_table("One axis at a time", "Change", single)] if single else []
    tables += _factorial(families, configs, raw, data)
    shown = [
        f"{name.lstrip('+ ')} {signed(one.mean.diff, 1)} {bracket(one.mean.low, one.mean.high, 1)}"
        for name, one in (steps or single).items()
    ]
    over = f"mean over {plural(len(chains), 'model')}" if steps else "mean over pairs of configurations"
    drawn = (("steps", "Mean difference of each step", steps), ("axes", "One axis at a time", single))
    result = StudyResult(
        name="buildup",
        title="Which part brings what",
        sentences=(f"Difference in BI, {over}: {'; '.join(shown)}.",),
        tables=(*tables, *(_chain_table(chain, data) for chain in chains)),
        charts=tuple(gains_chart(name, title, gains, "difference in BI") for name, title, gains in drawn if gains),
        notes=NOTES,
    )
    return with_scope(result, data, configs)


def _by_factor(factors: Factors, configs: Mapping[str, Examples], data: StudyData) -> StudyResult:
    """What every factor brings, where configurations are no chain of the published kind."""
    known = {name: configs[name] for name in factors}
    raw = {name: raw_brier(one) for name, one in known.items()}
    found = FactorStudy(factors=factors, configs=known, raw=raw, data=data)
    single = found.single_changes()
    scores = rule_scores(raw, next(iter(known.values())), next(iter(known)), data.resampling)
    board = rule_score_table("Configurations", scores, groups_of(next(iter(known.values()))))
    best = max(single.items(), key=lambda item: item[1].mean.diff, default=None)
    told = "No two configurations differ in one factor alone."
    if best is not None:
        mean = best[1].mean
        told = f"The largest single change: {best[0]}, {signed(mean.diff, 1)} {bracket(mean.low, mean.high, 1)} BI."
    result = StudyResult(
        name="buildup",
        title="Which part brings what",
        sentences=(f"{plural(len(known), 'configuration')}, {plural(len(levels_of(factors)), 'factor')}. {told}",),
        tables=(board, *found.tables()),
        charts=(gains_chart("factors", "One factor at a time", single, "difference in BI"),) if single else (),
        notes=FACTOR_NOTES,
    )
    return with_scope(result, data, configs)


@dataclass(frozen=True, kw_only=True)
class BuildupChain:
    """The stages of one model, in order, with the Brier score of every target."""

    name: str
    examples: Examples
    stages: Mapping[str, Floats]

    def before(self, stage: str) -> str | None:
        """The stage that a stage builds on."""
        order = [name for name in self.stages if stage != INSTEAD or name not in FITTED]
        place = order.index(stage) if stage in order else len(order)
        return order[place - 1] if place else None


def _chains(
    families: Sequence[ConfigFamily], configs: Mapping[str, Examples], raw: Scores, data: StudyData
) -> list[BuildupChain]:
    chains: list[BuildupChain] = []
    models = dict.fromkeys(family.model for family in families)
    for done, model in enumerate(models):
        data.progress(done, len(models))
        mine = {family.regime: family for family in families if family.model == model}
        hidden, shown = mine.get("c=0"), mine.get("c=1")
        parts = [(ZERO, hidden.zero_shot), (BARE, hidden.no_belief), (FULL, hidden.belief)] if hidden else []
        parts += [(SHOWN, shown.belief)] if shown else []
        used = {stage: name for stage, name in parts if name is not None}
        if len(used) > 1:
            last = configs[list(used.values())[-1]]
            fitted = {
                stage: brier_of(fit_under_protocol(build_method(method), last, "past only").p, last)
                for stage, method in FITTED.items()
            }
            stages = {stage: raw[name] for stage, name in used.items()} | fitted
            chains.append(BuildupChain(name=model, examples=last, stages=stages))
    return chains


def _steps(chains: Sequence[BuildupChain], data: StudyData) -> dict[str, PairedGains]:
    """Every step over all chains that have it, by the stage it leads to."""
    found: dict[str, PairedGains] = {}
    for stage in (BARE, FULL, SHOWN, *FITTED):
        mine = [(chain, before) for chain in chains if stage in chain.stages and (before := chain.before(stage))]
        if mine:
            after = {chain.name: chain.stages[stage] for chain, _ in mine}
            start = {chain.name: chain.stages[before] for chain, before in mine}
            found[stage] = paired_gains(after, start, {c.name: c.examples for c, _ in mine}, data.resampling)
    return found


def _single_changes(
    names: Mapping[str, ConfigName], configs: Mapping[str, Examples], raw: Scores, data: StudyData
) -> dict[str, PairedGains]:
    found: dict[str, PairedGains] = {}
    engines = {parts.search for parts in names.values()} - {"none"}
    for engine in sorted(engines):
        for change, pairs in single_changes(names, engine).items():
            label = change if len(engines) == 1 else f"{change} ({engine})"
            after, before = {b: raw[b] for _, b in pairs}, {b: raw[a] for a, b in pairs}
            found[label] = paired_gains(after, before, configs, data.resampling)
    return found


def _chain_table(chain: BuildupChain, data: StudyData) -> StudyTable:
    """One chain: index by kind and overall, the step, and the way since the start."""
    start, stages, examples = next(iter(chain.stages)), chain.stages, chain.examples
    kinds = [group for group in groups_of(examples) if group != OVERALL]
    rows: dict[str, tuple[CellValue, ...]] = {}
    for one in rule_scores(stages, examples, start, data.resampling):
        before = chain.before(one.name)
        step = paired_gap(stages[one.name], stages[before], examples, OVERALL, data.resampling) if before else None
        index = (*(estimate(one, kind) for kind in kinds), one.index.get(OVERALL))
        rows[one.name] = (*index, step, one.differences.get(OVERALL), one.two_way, one.n)
    columns = [
        *(column(kind, f"Brier index on {kind} questions") for kind in kinds),
        column("BI", "overall"),
        column("step", "minus the stage it builds on"),
        column("since start", "minus the first stage, questions resampled"),
        column("two-way", "the same, resolution days resampled too"),
        column("n", "targets answered"),
    ]
    return table(f"Build-up of {chain.name}", "Stage", columns, rows, styles={start: "reference"})


def _factorial(
    families: Sequence[ConfigFamily], configs: Mapping[str, Examples], raw: Scores, data: StudyData
) -> list[StudyTable]:
    """Belief × what is shown, by model: four cells, two main effects, and how far one depends on the other."""
    rows: dict[str, tuple[CellValue, ...]] = {}
    for model in dict.fromkeys(family.model for family in families):
        mine = [family for family in families if family.model == model]
        order = [name for family in mine for name in (family.no_belief, family.belief) if name is not None]
        if len(order) == 4:
            some, how = configs[order[0]], data.resampling
            bare, full, bare_shown, full_shown = (raw[name] for name in order)
            both = mean_gain([full_shown, bare], [full, bare_shown], some, how)
            rows[model] = (
                *(index_of(raw[name], configs[name]) for name in order),
                mean_gain([full, full_shown], [bare, bare_shown], some, how),
                mean_gain([bare_shown, full_shown], [bare, full], some, how),
                both.times(2),
            )
    cells = [f"{agent}, {regime}" for regime in ("c=0", "c=1") for agent in ("no belief", "belief")]
    columns = [
        *(column(cell, "Brier index of the logit mean") for cell in cells),
        column("belief", "main effect: mean over both regimes"),
        column("shown", "main effect of price and base rate in the prompt: mean over both agents"),
        column("interaction", "effect of belief with price shown minus without"),
    ]
    title = "Factorial: belief state × price and base rate shown"
    return [table(title, "Model", columns, rows)] if rows else []
