"""Study: what does calibration bring, and how much of it survives when only the past may teach?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.combine.rules import SupportsLeaveOut
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Resampling
from foretell.metrics.calibration import ece
from foretell.metrics.comparison import Comparison
from foretell.report.charts.calibration import reliability_diagram
from foretell.report.numbers import bracket, plural, signed
from foretell.report.study import CellValue, RowStyle, StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import best_config, complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, StudyData, StudyProgress, TableOptions, ignore_progress
from foretell.studies.protocols import (
    BASELINES,
    FOLDS,
    METHODS,
    PROTOCOLS,
    REFITS,
    Protocol,
    ProtocolForecasts,
    baseline_forecasts,
    build_method,
    fit_under_protocol,
)
from foretell.studies.scores import (
    SPREAD,
    PairedGains,
    RuleScore,
    brier_of,
    describe_gains,
    gains_chart,
    groups_of,
    mean_gain,
    paired_gains,
    rule_score_table,
    rule_scores,
)

RAW_LINE = "raw (logit mean)"
SHORT: tuple[Protocol, ...] = ("past only", "question out", "in-sample")
CHARTED = ("default", "hierarchical")


@dataclass(frozen=True, kw_only=True)
class CalibrationReport:
    """Every method under several protocols on one set of examples, each against the logit mean."""

    examples: Examples
    methods: tuple[str, ...]
    protocols: tuple[Protocol, ...]
    judged: Mapping[tuple[str, Protocol], ProtocolForecasts]
    scores: Mapping[str, RuleScore]
    """By the name of the line: a yardstick, the logit mean, or "method · protocol"."""

    def score(self, method: str, protocol: Protocol) -> RuleScore:
        """One method under one protocol."""
        return self.scores[line_name(method, protocol)]


def line_name(method: str, protocol: Protocol) -> str:
    """The name of a method under a protocol."""
    return f"{method} · {protocol}"


def calibration_report(
    examples: Examples,
    *,
    methods: Sequence[str] = tuple(METHODS),
    protocols: Sequence[Protocol] = SHORT,
    resampling: Resampling | None = None,
    progress: StudyProgress = ignore_progress,
) -> CalibrationReport:
    """Judge every method under every protocol, and compare with the logit mean on the same resamples."""
    found: dict[tuple[str, Protocol], ProtocolForecasts] = {}
    for done, name in enumerate(methods):
        for step, protocol in enumerate(protocols):
            progress(done * len(protocols) + step, len(methods) * len(protocols))
            found[name, protocol] = fit_under_protocol(build_method(name), examples, protocol)
    scores = {RAW_LINE: brier_of(examples.rows.raw, examples)}
    scores |= {line_name(*key): brier_of(one.p, examples) for key, one in found.items()}
    scores |= {name: brier_of(p, examples) for name, p in baseline_forecasts(examples).items()}
    compared = rule_scores(scores, examples, RAW_LINE, resampling or Resampling())
    return CalibrationReport(
        examples=examples,
        methods=tuple(methods),
        protocols=tuple(protocols),
        judged=found,
        scores={one.name: one for one in compared},
    )


def protocols_table(found: CalibrationReport, title: str) -> StudyTable:
    """One line per method, the protocols beside each other; yardsticks and the logit mean above."""
    columns: list[StudyColumn] = []
    for protocol in found.protocols:
        meaning = PROTOCOLS[protocol]
        columns.append(StudyColumn(label=f"BI {protocol}", tip=meaning))
        columns.append(StudyColumn(label=f"Δ {protocol}", tip=f"minus the logit mean; {meaning}"))
        if protocol == "past only":
            columns.append(StudyColumn(label="ECE", decimals=3, tip="calibration error, past only"))
            columns.append(
                StudyColumn(label="learnt from", tip="examples behind a past-only number: mean over targets")
            )
    lone = [found.scores[RAW_LINE], *(one for one in found.scores.values() if one.name in BASELINES)]
    entries = [
        _entry(found, one.name, [one] * len(found.protocols), "anchor" if i else "reference")
        for i, one in enumerate(lone)
    ]
    entries += [_entry(found, m, [found.score(m, p) for p in found.protocols]) for m in found.methods]
    caption = "Δ is the paired difference to the logit mean. In-sample numbers are shown for contrast only."
    return StudyTable(title=title, row_header="Rule", columns=tuple(columns), rows=tuple(entries), caption=caption)


def _entry(found: CalibrationReport, name: str, under: Sequence[RuleScore], style: RowStyle = "") -> StudyRow:
    """A line of the table: the same standing under every protocol for what learns nothing."""
    values: list[CellValue] = []
    for protocol, one in zip(found.protocols, under, strict=True):
        score = one.index.get(OVERALL)
        values += [None if score is None else score.estimate, one.differences.get(OVERALL)]
        if protocol == "past only":
            values += _behind(found, name)
    return StudyRow(name=name, values=tuple(values), style=style)


def _behind(found: CalibrationReport, name: str) -> list[CellValue]:
    """Calibration error past only, and how many examples the rule had learnt from."""
    honest = found.judged.get((name, "past only"))
    if honest is not None:
        return [_ece(honest.p, found.examples), round(float(honest.past.mean()))]
    return [_ece(found.examples.rows.raw, found.examples) if name == RAW_LINE else None, None]


def _ece(p: Floats, examples: Examples) -> float:
    kept = np.isfinite(p)
    return ece(p[kept], examples.outcome[kept], examples.weight[kept])


def kind_table(found: CalibrationReport, protocol: Protocol, title: str) -> StudyTable:
    """One protocol with market and dataset apart (the layout of BLF 2026, Table 15)."""
    chosen = [found.scores[RAW_LINE], *(found.score(method, protocol) for method in found.methods)]
    chosen += [one for one in found.scores.values() if one.name in BASELINES]
    styles: dict[str, RowStyle] = {RAW_LINE: "reference", **dict.fromkeys(BASELINES, "anchor")}
    return rule_score_table(title, chosen, groups_of(found.examples), styles=styles)


def reliability_charts(
    found: CalibrationReport, *, name: str = "", methods: Sequence[str] = CHARTED
) -> list[StudyChart]:
    """Reliability diagrams before, and after by the rules that knew only the past."""
    examples = found.examples
    drawn = {f"{name} before": examples.rows.raw}
    for method in methods:
        if (method, "past only") in found.judged:
            drawn[f"{name} after {method}, past only"] = found.judged[method, "past only"].p
    return [
        StudyChart(
            name=f"reliability-{i}",
            title=title.strip(),
            chart=reliability_diagram(p, examples.outcome, examples.weight, name=title.strip()),
        )
        for i, (title, p) in enumerate(drawn.items(), 1)
    ]


def describe_report(found: CalibrationReport, name: str) -> str:
    """What the first method would have brought from the past alone, and which would have been best in hindsight."""
    honest = {m: found.score(m, "past only").differences.get(OVERALL) for m in found.methods}
    known = {method: gap for method, gap in honest.items() if gap is not None}
    if not known:
        return f"{name}: nothing to compare."
    first = next(iter(known))
    gain, learnt = known[first], found.judged[first, "past only"].past
    sure = "a gain beyond noise" if gain.low > 0 else "a loss beyond noise" if gain.high < 0 else "within noise"
    told = (
        f"{name}: from the past alone {first} changes the logit mean by {signed(gain.diff, 1)} BI "
        f"{bracket(gain.low, gain.high, 1)}, {sure}. On average it had learnt from "
        f"{plural(round(float(learnt.mean())), 'example')}."
    )
    best = max(known, key=lambda method: known[method].diff)
    if best == first:
        return told
    seen = found.scores.get(line_name(best, "in-sample"))
    flattered = (
        f", in-sample {signed(seen.differences[OVERALL].diff, 1)}" if seen and OVERALL in seen.differences else ""
    )
    return f"{told} Chosen in hindsight, {best} is best: {signed(known[best].diff, 1)}{flattered}."


def protocol_notes(protocols: Sequence[Protocol] = tuple(PROTOCOLS)) -> tuple[str, ...]:
    """What the protocols mean."""
    told = [f"{name}: {PROTOCOLS[name]}." for name in protocols]
    told.append(
        f"Methods without a shortcut leave questions out in {FOLDS} parts; over more than {REFITS} rounds each rule is "
        f"fitted {REFITS} times."
    )
    told.append("shrink, bayes-shrink, paper and default may use the price and the base rate, the others may not.")
    return tuple(told)


QUICK: tuple[Protocol, ...] = ("in-sample", "past only")
"""For methods that leave questions out by fitting again, where there are many configurations."""


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """What does calibration bring, from the past alone?

    Mean gain of every method over all complete configurations, and all protocols for the chosen ones.
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    overview, honest = _overview(tables, data)
    shown = data.chosen or (best_config(tables),)
    everything = tuple(PROTOCOLS)
    reports = {
        name: calibration_report(tables[name], protocols=everything, resampling=data.resampling, progress=data.progress)
        for name in shown
    }
    grids = [overview]
    for name, found in reports.items():
        grids.append(protocols_table(found, f"{name}: protocols side by side"))
        grids += [kind_table(found, protocol, f"{name}: {protocol}") for protocol in everything]
    return StudyResult(
        name="calibration",
        title="What calibration brings",
        sentences=(_sentence(honest, len(tables)),),
        tables=tuple(grids),
        charts=(
            StudyChart(
                name="gains", title="Mean gain over raw trials, past only", chart=gains_chart(honest, "gain in BI")
            ),
            *(one for name, found in reports.items() for one in reliability_charts(found, name=name)),
        ),
        notes=(*protocol_notes(), *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def _overview(tables: Mapping[str, Examples], data: StudyData) -> tuple[StudyTable, dict[str, PairedGains]]:
    """Mean over configurations of the gain over the logit mean, and how the honest gains are spread."""
    raw = {name: brier_of(examples.rows.raw, examples) for name, examples in tables.items()}
    some, before = next(iter(tables.values())), list(raw.values())
    entries: list[StudyRow] = []
    honest: dict[str, PairedGains] = {}
    for done, method in enumerate(METHODS):
        data.progress(done, len(METHODS))
        means: dict[Protocol, Comparison] = {}
        for protocol in PROTOCOLS if isinstance(build_method(method), SupportsLeaveOut) else QUICK:
            after = {n: brier_of(fit_under_protocol(build_method(method), e, protocol).p, e) for n, e in tables.items()}
            if protocol == "past only":
                honest[method] = paired_gains(after, raw, tables, data.resampling)
            else:
                means[protocol] = mean_gain(list(after.values()), before, some, data.resampling)
        means["past only"] = honest[method].mean
        values = (*(means.get(protocol) for protocol in PROTOCOLS), *honest[method].values())
        entries.append(StudyRow(name=method, values=values))
    columns = [StudyColumn(label=protocol, tip=PROTOCOLS[protocol], decimals=2) for protocol in PROTOCOLS]
    title = "Mean gain over the logit mean"
    caption = "worst, better and clearly worse are past only. A dash: left out here, being slow; see the tables below."
    return StudyTable(
        title=title, row_header="Method", columns=(*columns, *SPREAD), rows=tuple(entries), caption=caption
    ), honest


def _sentence(honest: Mapping[str, PairedGains], count: int) -> str:
    best = max(honest, key=lambda name: honest[name].mean.diff)
    shown = [name for name in dict.fromkeys(("default", "paper", best)) if name in honest]
    parts = [
        f"{name} {signed(honest[name].mean.diff, 2)} {bracket(honest[name].mean.low, honest[name].mean.high, 2)}"
        for name in shown
    ]
    safe = f" With {shown[0]} {describe_gains(honest[shown[0]])}." if shown else ""
    return (
        f"Past only, mean gain in BI over the logit mean of {plural(count, 'configuration')}: {', '.join(parts)}.{safe}"
    )
