"""Study: what does calibration bring, and how much of it survives when only the past may teach?"""

from collections.abc import Mapping

from foretell.arena.report.wording import bracket, plural, signed
from foretell.arena.studies.calibration_report import by_kind, protocol_notes, reliability, report, side_by_side
from foretell.arena.studies.many import SPREAD, Gains, forest, gains, told
from foretell.arena.studies.paired import brier_of, mean_gain
from foretell.arena.studies.protocols import METHODS, PROTOCOLS, Protocol, build_method, judged
from foretell.arena.studies.selection import best, complete, notes_of, settings_of
from foretell.arena.study import Column, Entry, Grid, Material, Picture, Study
from foretell.evaluate.significance import Comparison
from foretell.forecasters.combine.left_out import LeavesOut
from foretell.forecasters.combine.rows import Examples

QUICK: tuple[Protocol, ...] = ("in-sample", "past only")
"""For methods that leave questions out by fitting again, where there are many configurations."""


def study(material: Material) -> Study:
    """Mean gain of every method over all complete configurations, and all protocols for the chosen ones."""
    tables = complete(material)
    overview, honest = _overview(tables, material)
    shown = material.chosen or (best(tables),)
    everything = tuple(PROTOCOLS)
    reports = {
        name: report(tables[name], protocols=everything, resampling=material.resampling, progress=material.progress)
        for name in shown
    }
    grids = [overview]
    for name, found in reports.items():
        grids.append(side_by_side(found, f"{name}: protocols side by side"))
        grids += [by_kind(found, protocol, f"{name}: {protocol}") for protocol in everything]
    return Study(
        name="calibration",
        title="What calibration brings",
        finding=_finding(honest, len(tables)),
        grids=tuple(grids),
        pictures=(
            Picture(name="gains", title="Mean gain over raw trials, past only", figure=forest(honest, "gain in BI")),
            *(one for name, found in reports.items() for one in reliability(found, name=name)),
        ),
        notes=(*protocol_notes(), *notes_of(material, tables)),
        settings=settings_of(material, tables),
    )


def _overview(tables: Mapping[str, Examples], material: Material) -> tuple[Grid, dict[str, Gains]]:
    """Mean over configurations of the gain over the logit mean, and how the honest gains are spread."""
    raw = {name: brier_of(examples.rows.raw, examples) for name, examples in tables.items()}
    some, before = next(iter(tables.values())), list(raw.values())
    entries: list[Entry] = []
    honest: dict[str, Gains] = {}
    for done, method in enumerate(METHODS):
        material.progress(done, len(METHODS))
        means: dict[Protocol, Comparison] = {}
        for protocol in PROTOCOLS if isinstance(build_method(method), LeavesOut) else QUICK:
            after = {n: brier_of(judged(build_method(method), e, protocol).p, e) for n, e in tables.items()}
            if protocol == "past only":
                honest[method] = gains(after, raw, tables, material.resampling)
            else:
                means[protocol] = mean_gain(list(after.values()), before, some, material.resampling)
        means["past only"] = honest[method].mean
        values = (*(means.get(protocol) for protocol in PROTOCOLS), *honest[method].values())
        entries.append(Entry(name=method, values=values))
    columns = [Column(label=protocol, tip=PROTOCOLS[protocol], decimals=2) for protocol in PROTOCOLS]
    title = "Mean gain over the logit mean"
    caption = "worst, better and clearly worse are past only. A dash: left out here, being slow; see the tables below."
    return Grid(
        title=title, head="Method", columns=(*columns, *SPREAD), entries=tuple(entries), caption=caption
    ), honest


def _finding(honest: Mapping[str, Gains], count: int) -> str:
    best = max(honest, key=lambda name: honest[name].mean.diff)
    shown = [name for name in dict.fromkeys(("default", "paper", best)) if name in honest]
    parts = [
        f"{name} {signed(honest[name].mean.diff, 2)} {bracket(honest[name].mean.low, honest[name].mean.high, 2)}"
        for name in shown
    ]
    safe = f" With {shown[0]} {told(honest[shown[0]])}." if shown else ""
    return (
        f"Past only, mean gain in BI over the logit mean of {plural(count, 'configuration')}: {', '.join(parts)}.{safe}"
    )
