"""Study: which part brings what? Components added one at a time, single axes, and a factorial of two of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.questions.errors import InputError
from foretell.report.numbers import bracket, plural, signed
from foretell.report.study import CellValue, StudyResult, StudyTable
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import (
    ConfigFamily,
    ConfigName,
    complete_configs,
    config_families,
    single_changes,
    with_scope,
)
from foretell.studies.factors import Factors, FactorStudy, config_names, factors_of, levels_of
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.layout import column, table
from foretell.studies.protocols import build_method, fit_under_protocol
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
