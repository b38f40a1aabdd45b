"""Every method under several protocols on one set of examples: what it would have brought, and what only seems so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretell.arena.report.figures.reliability import reliability_diagram
from foretell.arena.report.wording import bracket, plural, signed
from foretell.arena.scoreboard import OVERALL
from foretell.arena.studies.boards import board
from foretell.arena.studies.paired import Standing, brier_of, groups_of, standings
from foretell.arena.studies.protocols import (
    FOLDS,
    METHODS,
    PROTOCOLS,
    REFITS,
    YARDSTICKS,
    Judged,
    Protocol,
    build_method,
    judged,
    yardsticks,
)
from foretell.arena.studies.selection import scope
from foretell.arena.study import Column, Entry, Grid, Picture, Progress, Study, Style, Value, quietly
from foretell.evaluate.arrays import Floats
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.reliability import ece
from foretell.forecasters.combine.rows import Examples

RAW = "raw (logit mean)"
SHORT: tuple[Protocol, ...] = ("past only", "question out", "in-sample")
PICTURED = ("default", "hierarchical")


@dataclass(frozen=True, kw_only=True)
class Report:
    """Every method under several protocols on one set of examples, each against the logit mean."""

    examples: Examples
    methods: tuple[str, ...]
    protocols: tuple[Protocol, ...]
    judged: Mapping[tuple[str, Protocol], Judged]
    standings: Mapping[str, Standing]
    """By the name of the line: a yardstick, the logit mean, or "method · protocol"."""

    def standing(self, method: str, protocol: Protocol) -> Standing:
        """One method under one protocol."""
        return self.standings[line(method, protocol)]


def line(method: str, protocol: Protocol) -> str:
    """The name of a method under a protocol."""
    return f"{method} · {protocol}"


def report(
    examples: Examples,
    *,
    methods: Sequence[str] = tuple(METHODS),
    protocols: Sequence[Protocol] = SHORT,
    resampling: Resampling | None = None,
    progress: Progress = quietly,
) -> Report:
    """Judge every method under every protocol, and compare with the logit mean on the same resamples."""
    found: dict[tuple[str, Protocol], Judged] = {}
    for done, name in enumerate(methods):
        for step, protocol in enumerate(protocols):
            progress(done * len(protocols) + step, len(methods) * len(protocols))
            found[name, protocol] = judged(build_method(name), examples, protocol)
    scores = {RAW: brier_of(examples.rows.raw, examples)}
    scores |= {line(*key): brier_of(one.p, examples) for key, one in found.items()}
    scores |= {name: brier_of(p, examples) for name, p in yardsticks(examples).items()}
    compared = standings(scores, examples, RAW, resampling or Resampling())
    return Report(
        examples=examples,
        methods=tuple(methods),
        protocols=tuple(protocols),
        judged=found,
        standings={one.name: one for one in compared},
    )


def side_by_side(found: Report, title: str) -> Grid:
    """One line per method, the protocols beside each other; yardsticks and the logit mean above."""
    columns: list[Column] = []
    for protocol in found.protocols:
        meaning = PROTOCOLS[protocol]
        columns.append(Column(label=f"BI {protocol}", tip=meaning))
        columns.append(Column(label=f"Δ {protocol}", tip=f"minus the logit mean; {meaning}"))
        if protocol == "past only":
            columns.append(Column(label="ECE", decimals=3, tip="calibration error, past only"))
            columns.append(Column(label="learnt from", tip="examples behind a past-only number: mean over targets"))
    lone = [found.standings[RAW], *(one for one in found.standings.values() if one.name in YARDSTICKS)]
    entries = [
        _entry(found, one.name, [one] * len(found.protocols), "anchor" if i else "reference")
        for i, one in enumerate(lone)
    ]
    entries += [_entry(found, m, [found.standing(m, p) for p in found.protocols]) for m in found.methods]
    caption = "Δ is the paired difference to the logit mean. In-sample numbers are shown for contrast only."
    return Grid(title=title, head="Rule", columns=tuple(columns), entries=tuple(entries), caption=caption)


def _entry(found: Report, name: str, under: Sequence[Standing], style: Style = "") -> Entry:
    """A line of the table: the same standing under every protocol for what learns nothing."""
    values: list[Value] = []
    for protocol, one in zip(found.protocols, under, strict=True):
        score = one.index.get(OVERALL)
        values += [None if score is None else score.estimate, one.against.get(OVERALL)]
        if protocol == "past only":
            values += _behind(found, name)
    return Entry(name=name, values=tuple(values), style=style)


def _behind(found: Report, name: str) -> list[Value]:
    """Calibration error past only, and how many examples the rule had learnt from."""
    honest = found.judged.get((name, "past only"))
    if honest is not None:
        return [_ece(honest.p, found.examples), round(float(honest.past.mean()))]
    return [_ece(found.examples.rows.raw, found.examples) if name == RAW else None, None]


def _ece(p: Floats, examples: Examples) -> float:
    kept = np.isfinite(p)
    return ece(p[kept], examples.outcome[kept], examples.weight[kept])


def by_kind(found: Report, protocol: Protocol, title: str) -> Grid:
    """One protocol with market and dataset apart (the layout of BLF 2026, Table 15)."""
    chosen = [found.standings[RAW], *(found.standing(method, protocol) for method in found.methods)]
    chosen += [one for one in found.standings.values() if one.name in YARDSTICKS]
    styles: dict[str, Style] = {RAW: "reference", **dict.fromkeys(YARDSTICKS, "anchor")}
    return board(title, chosen, groups_of(found.examples), styles=styles)


def reliability(found: Report, *, name: str = "", methods: Sequence[str] = PICTURED) -> list[Picture]:
    """Reliability diagrams before, and after by the rules that knew only the past."""
    examples = found.examples
    drawn = {f"{name} before": examples.rows.raw}
    for method in methods:
        if (method, "past only") in found.judged:
            drawn[f"{name} after {method}, past only"] = found.judged[method, "past only"].p
    return [
        Picture(
            name=f"reliability-{i}",
            title=title.strip(),
            figure=reliability_diagram(p, examples.outcome, examples.weight, name=title.strip()),
        )
        for i, (title, p) in enumerate(drawn.items(), 1)
    ]


def verdict(found: Report, name: str) -> str:
    """What the first method would have brought from the past alone, and which would have been best in hindsight."""
    honest = {m: found.standing(m, "past only").against.get(OVERALL) for m in found.methods}
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
    seen = found.standings.get(line(best, "in-sample"))
    flattered = f", in-sample {signed(seen.against[OVERALL].diff, 1)}" if seen and OVERALL in seen.against else ""
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


def report_study(name: str, found: Report, how: Resampling) -> Study:
    """The report on one forecaster, ready to print and to write as a page."""
    grids = [side_by_side(found, f"{name}: protocols side by side")]
    if len(groups_of(found.examples)) > 1:
        grids.append(by_kind(found, "past only", f"{name}: past only, by kind"))
    return Study(
        name="calibration-report",
        title=f"Calibration of {name}",
        finding=verdict(found, name),
        grids=tuple(grids),
        pictures=tuple(reliability(found, methods=found.methods[:2])),
        notes=(*protocol_notes(found.protocols), f"{scope(found.examples)}."),
        settings={"forecaster": name, "draws": how.draws, "level": how.level, "seed": how.seed},
    )
