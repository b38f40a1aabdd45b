"""Study: where does the spread of scores come from? Questions, methods, both together, and chance between trials."""

from collections.abc import Mapping

import numpy as np

from foretell.arena.report.figures.forest import ForestRow, forest_plot
from foretell.arena.report.wording import number, percent, plural
from foretell.arena.studies.components import Components, Scored, components, scored
from foretell.arena.studies.selection import complete, notes_of, settings_of
from foretell.arena.study import Column, Entry, Grid, Material, Picture, Study, Value
from foretell.evaluate.anova import two_way_anova
from foretell.evaluate.bootstrap import Resampling, bootstrap_score
from foretell.evaluate.effects import TwoWayEffects, alternating_effects, two_way_effects
from foretell.evaluate.intervals import Interval
from foretell.evaluate.mixed import MixedEffects, mixed_effects_check
from foretell.questions.problems import InputError

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


def study(material: Material) -> Study:
    """Analysis of variance, components, and method effects by three estimators."""
    tables = complete(material)
    if len(tables) < 2:
        raise InputError("variance needs at least two configurations", hint="name more of them with --config")
    first, every = scored(tables, first_only=True), scored(tables, first_only=False)
    parts: dict[str, Components] = {}
    for done, (title, found) in enumerate({FIRST: first, EVERY: every}.items(), 1):
        parts[title] = components(found)
        material.progress(done, 3)
    effects = _apart(first, material.resampling)
    grids = (_anova(first, FIRST), _anova(every, EVERY), _components(parts), _effects(first, effects))
    order = sorted(effects, key=lambda name: -effects[name].estimate)
    rows = [ForestRow(name=name, interval=effects[name]) for name in order]
    figure = forest_plot(rows, label="effect on the score of one trial, in points", decimals=2, reference=0.0)
    return Study(
        name="variance",
        title="Where the spread of scores comes from",
        finding=_finding(parts[FIRST], first),
        grids=grids,
        pictures=(Picture(name="effects", title="Effects of the methods", figure=figure),),
        notes=(*NOTES, *notes_of(material, tables)),
        settings=settings_of(material, tables),
    )


def _anova(found: Scored, scope: str) -> Grid:
    entries: list[Entry] = []
    for row in two_way_anova(found.y, found.method, found.question):
        f: Value = None if np.isnan(row.f) else row.f
        entries.append(Entry(name=row.source, values=(row.ss, 100 * row.share, row.df, f)))
    columns = (
        Column(label="SS", tip="sum of squares"),
        Column(label="% of total"),
        Column(label="df", tip="degrees of freedom"),
        Column(label="F", tip="mean square over residual mean square"),
    )
    caption = f"{plural(len(found), 'trial')} of {plural(len(found.methods), 'method')}."
    title = f"Analysis of variance, {scope}"
    return Grid(title=title, head="Source", columns=columns, entries=tuple(entries), caption=caption)


def _components(parts: Mapping[str, Components]) -> Grid:
    columns: list[Column] = []
    for title in parts:
        columns += [Column(label=f"σ, {title}", tip="in points of the index"), Column(label=f"% of variance, {title}")]
    entries: list[Entry] = []
    for key, name in PARTS.items():
        values = [value for one in parts.values() for value in (100 * getattr(one, key) ** 0.5, 100 * one.share(key))]
        entries.append(Entry(name=name, values=tuple(values)))
    return Grid(title="Variance components", head="Component", columns=tuple(columns), entries=tuple(entries))


def _apart(found: Scored, how: Resampling) -> dict[str, Interval]:
    """Each method's mean distance to the mean of all methods on the same question, questions resampled, in points."""
    cells = 100 * found.cells()
    said = np.isfinite(cells)
    mean = np.where(said, cells, 0.0).sum(axis=0) / np.maximum(said.sum(axis=0), 1)
    return {
        name: bootstrap_score((cells[i] - mean)[said[i]], found.cluster[said[i]], resampling=how)
        for i, name in enumerate(found.methods)
    }


def _effects(found: Scored, effects: Mapping[str, Interval]) -> Grid:
    """Method effects with question-clustered intervals, beside three ways to fit the additive model."""
    y = 100 * found.y
    exact = two_way_effects(y, found.method, found.question)
    iterated = alternating_effects(y, found.method, found.question)
    reml = mixed_effects_check(y, found.method, found.question)
    mixed, count = reml.mean - reml.mean.mean(), np.bincount(found.method)
    entries = [
        Entry(
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
        Column(label="effect", decimals=2, tip="distance to the mean of all methods, questions resampled"),
        Column(label="exact", decimals=2, tip="least squares, questions eliminated"),
        Column(label="alternating", decimals=2, tip="least squares by the paper's iteration"),
        Column(label="REML", decimals=2, tip="questions random"),
        Column(label="trials"),
    )
    caption = _check(exact, iterated, reml)
    title = f"Effects of the methods, {FIRST}"
    return Grid(title=title, head="Method", columns=columns, entries=tuple(entries), caption=caption)


def _check(exact: TwoWayEffects, iterated: TwoWayEffects, reml: MixedEffects) -> str:
    apart = float(np.max(np.abs(iterated.method - exact.method)))
    off = float(np.max(np.abs(reml.mean - reml.mean.mean() - exact.method)))
    return (
        f"Alternating fit: {plural(iterated.sweeps, 'sweep')}, at most {apart:.0e} from the exact one; REML at most "
        f"{number(off, 3)} from it. Share of the variance between questions by REML: {percent(reml.intraclass)}."
    )


def _finding(parts: Components, found: Scored) -> str:
    told = ", ".join(f"{name} {percent(parts.share(key))}" for key, name in PARTS.items())
    return f"Of the variance of one trial's score ({plural(len(found.methods), 'method')}): {told}."
