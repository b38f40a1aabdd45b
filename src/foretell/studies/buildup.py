"""Study: which part brings what? Components added one at a time, single axes, and a factorial of two of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Resampling
from foretell.metrics.comparison import Comparison
from foretell.questions.errors import InputError
from foretell.report.numbers import bracket, plural, signed
from foretell.report.study import CellValue, StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import (
    ConfigFamily,
    ConfigName,
    complete_configs,
    config_axes,
    config_families,
    parse_configs,
    study_notes,
    study_settings,
)
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.protocols import build_method, fit_under_protocol
from foretell.studies.scores import (
    PairedGains,
    brier_of,
    gains_chart,
    gains_table,
    groups_of,
    index_of,
    mean_gain,
    paired_gains,
    paired_gap,
    rule_scores,
)

ZERO, BARE, FULL, SHOWN = "zero-shot", "+ search, tools, loop", "+ belief state", "+ price and base rate shown"
SHRINK, CALIBRATE = "+ shrink, past only", "+ calibrate, past only"
INSTEAD = "default instead, past only"
FITTED = {SHRINK: "shrink", CALIBRATE: "paper", INSTEAD: "default"}
NOTES = (
    "Chains: the logit mean of all trials of four configurations of one model, then what fitting on earlier rounds "
    "adds: shrinkage to price or base rate, Platt scaling with an offset per source, or the default rule instead.",
    "Each step is the paired difference to the line above it; the default's is to the last line that fits nothing.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Which component brings what?

    Chains by model and regime with their mean over all of them, single axes, and belief × crowd.
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    names = parse_configs(tables)
    if not names:
        hint = "names like pro-high-brave-c1-p1-t1-nobelief: model, effort, search, what is shown, tools, variant"
        raise InputError("no configuration's name says what it is made of", hint=hint)
    raw = {name: brier_of(tables[name].rows.raw, tables[name]) for name in names}
    chains = _chains(config_families(names), tables, raw, data)
    steps, single = _steps(chains, data), _single_axes(names, tables, raw, data)
    grids = [gains_table("Build-up: mean over chains of each step", "Step", steps)] if steps else []
    grids += [gains_table("One axis at a time", "Change", single)] if single else []
    factorial = _factorial(config_families(names), tables, raw, data)
    grids += [factorial] if factorial.rows else []
    grids += [_chain_grid(chain, data) for chain in chains]
    return StudyResult(
        name="buildup",
        title="Which part brings what",
        sentences=(_sentence(steps, single, len(chains)),),
        tables=tuple(grids),
        charts=tuple(_charts(steps, single)),
        notes=(*NOTES, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


@dataclass(frozen=True, kw_only=True)
class BuildupChain:
    """The stages of one model, in order, with the Brier score of every target."""

    name: str
    examples: Examples
    stages: Mapping[str, Floats]

    def before(self, stage: str) -> str | None:
        """The stage that a stage builds on."""
        order = [name for name in self.stages if name not in FITTED] if stage == INSTEAD else list(self.stages)
        place = order.index(stage) if stage in order else len(order)
        return order[place - 1] if place else None


def _chains(
    found: Sequence[ConfigFamily], tables: Mapping[str, Examples], raw: Mapping[str, Floats], data: StudyData
) -> list[BuildupChain]:
    chains: list[BuildupChain] = []
    models = dict.fromkeys(family.model for family in found)
    for done, model in enumerate(models):
        data.progress(done, len(models))
        mine = {family.regime: family for family in found if family.model == model}
        hidden, shown = mine.get("c=0"), mine.get("c=1")
        parts = [(ZERO, hidden.zero_shot), (BARE, hidden.no_belief), (FULL, hidden.belief)] if hidden else []
        parts += [(SHOWN, shown.belief)] if shown else []
        used = {stage: name for stage, name in parts if name is not None}
        if len(used) > 1:
            last = tables[list(used.values())[-1]]
            stages = {stage: raw[name] for stage, name in used.items()}
            stages |= {
                s: brier_of(fit_under_protocol(build_method(m), last, "past only").p, last) for s, m in FITTED.items()
            }
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


def _single_axes(
    names: Mapping[str, ConfigName], tables: Mapping[str, Examples], raw: Mapping[str, Floats], data: StudyData
) -> dict[str, PairedGains]:
    found: dict[str, PairedGains] = {}
    engines = {parts.search for parts in names.values()} - {"none"}
    for engine in sorted(engines):
        for axis in config_axes(engine):
            pairs = axis.pairs(names)
            if pairs:
                label = axis.name if len(engines) == 1 else f"{axis.name} ({engine})"
                after, before = {b: raw[b] for _, b in pairs}, {b: raw[a] for a, b in pairs}
                found[label] = paired_gains(after, before, tables, data.resampling)
    return found


def _chain_grid(chain: BuildupChain, data: StudyData) -> StudyTable:
    """One chain: index by kind and overall, the step, and the way since the start."""
    how, start = data.resampling, next(iter(chain.stages))
    found = rule_scores(chain.stages, chain.examples, start, how)
    kinds = [group for group in groups_of(chain.examples) if group != OVERALL]
    entries: list[StudyRow] = []
    for one in found:
        index: list[CellValue] = [one.index[kind].estimate if kind in one.index else None for kind in kinds]
        before = chain.before(one.name)
        step = (
            paired_gap(chain.stages[one.name], chain.stages[before], chain.examples, OVERALL, how) if before else None
        )
        values = (*index, one.index.get(OVERALL), step, one.differences.get(OVERALL), one.two_way, one.n)
        entries.append(StudyRow(name=one.name, values=values, style="" if before else "reference"))
    columns = [StudyColumn(label=kind, tip=f"Brier index on {kind} questions") for kind in kinds]
    columns += [
        StudyColumn(label="BI", tip="overall"),
        StudyColumn(label="step", tip="minus the stage it builds on"),
        StudyColumn(label="since start", tip="minus the first stage, questions resampled"),
        StudyColumn(label="two-way", tip="the same, resolution days resampled too"),
        StudyColumn(label="n", tip="targets answered"),
    ]
    return StudyTable(
        title=f"Build-up of {chain.name}", row_header="Stage", columns=tuple(columns), rows=tuple(entries)
    )


def _factorial(
    found: Sequence[ConfigFamily], tables: Mapping[str, Examples], raw: Mapping[str, Floats], data: StudyData
) -> StudyTable:
    """Belief × what is shown, by model: four cells, two main effects, and how far one depends on the other."""
    cells: dict[str, dict[tuple[bool, str], str]] = {}
    for family in found:
        for belief, name in ((False, family.no_belief), (True, family.belief)):
            if name is not None:
                cells.setdefault(family.model, {})[belief, family.regime] = name
    entries: list[StudyRow] = []
    for model, cell in cells.items():
        if len(cell) == 4:
            order = [cell[belief, regime] for regime in ("c=0", "c=1") for belief in (False, True)]
            effects = _effects([raw[name] for name in order], tables[order[0]], data.resampling)
            entries.append(StudyRow(name=model, values=(*(index_of(raw[n], tables[n]) for n in order), *effects)))
    heads = [f"{agent}, {regime}" for regime in ("c=0", "c=1") for agent in ("no belief", "belief")]
    columns = [StudyColumn(label=head, tip="Brier index of the logit mean") for head in heads]
    columns += [
        StudyColumn(label="belief", tip="main effect: mean over both regimes"),
        StudyColumn(label="shown", tip="main effect of price and base rate in the prompt: mean over both agents"),
        StudyColumn(label="interaction", tip="effect of belief with price shown minus without"),
    ]
    title = "Factorial: belief state × price and base rate shown"
    return StudyTable(title=title, row_header="Model", columns=tuple(columns), rows=tuple(entries))


def _effects(scores: Sequence[Floats], examples: Examples, how: Resampling) -> tuple[Comparison, ...]:
    bare, full, bare_shown, full_shown = scores
    both = mean_gain([full_shown, bare], [full, bare_shown], examples, how)
    doubled = replace(both, diff=2 * both.diff, low=2 * both.low, high=2 * both.high, se=2 * both.se)
    return (
        mean_gain([full, full_shown], [bare, bare_shown], examples, how),
        mean_gain([bare_shown, full_shown], [bare, full], examples, how),
        doubled,
    )


def _charts(steps: Mapping[str, PairedGains], single: Mapping[str, PairedGains]) -> list[StudyChart]:
    drawn = [("steps", "Mean difference of each step", steps), ("axes", "One axis at a time", single)]
    return [StudyChart(name=n, title=t, chart=gains_chart(found, "difference in BI")) for n, t, found in drawn if found]


def _sentence(steps: Mapping[str, PairedGains], single: Mapping[str, PairedGains], chains: int) -> str:
    shown = steps or single
    parts = [
        f"{name.lstrip('+ ')} {signed(one.mean.diff, 1)} {bracket(one.mean.low, one.mean.high, 1)}"
        for name, one in shown.items()
    ]
    over = f"mean over {plural(chains, 'model')}" if steps else "mean over pairs of configurations"
    return f"Difference in BI, {over}: {'; '.join(parts)}."
