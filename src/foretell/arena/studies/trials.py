"""Study: what does another trial bring? Score against the number of trials, exactly over all choices of trials."""

from collections.abc import Mapping, Sequence

import numpy as np

from foretell.arena.report.breakdown import Breakdown
from foretell.arena.report.figures.groups import score_by_group
from foretell.arena.report.svg import Figure
from foretell.arena.report.wording import bracket, plural, signed
from foretell.arena.scoreboard import OVERALL
from foretell.arena.studies.boards import board
from foretell.arena.studies.paired import (
    Standing,
    as_interval,
    brier_of,
    groups_of,
    mean_gain,
    standings,
    turned,
)
from foretell.arena.studies.selection import complete, notes_of, settings_of
from foretell.arena.studies.trial_rules import RULES, endless_brier, expected_brier, pooled
from foretell.arena.study import Column, Entry, Grid, Material, Picture, Study, Style, Value
from foretell.evaluate.arrays import Floats
from foretell.evaluate.intervals import Interval
from foretell.evaluate.significance import Comparison
from foretell.forecasters.combine.rows import Examples

CURVES = ("logit mean", "mean", "median")
ENDLESS = "mean of ∞ trials"
NOTES = (
    "Every number for k trials is the exact mean over all choices of k of the trials: nothing is drawn at random.",
    "The arithmetic mean's expected Brier score is a line in 1/k, which gives its score with endlessly many trials; "
    "other rules obey no such law.",
)


def study(material: Material) -> Study:
    """Curves of all complete configurations, and every rule for the chosen ones (the best one, if none is chosen)."""
    tables = complete(material)
    curves: dict[str, list[Floats]] = {}
    for done, (name, examples) in enumerate(tables.items()):
        material.progress(done, len(tables))
        curves[name] = [expected_brier(RULES["logit mean"], examples, k) for k in _counts(examples)]
    overview, gain = _overview(tables, curves, material)
    shown = material.chosen or (_best(overview),)
    details = {name: standings_of(tables[name], material) for name in shown}
    grids = [_detail(name, found, tables[name]) for name, found in details.items()]
    figures = [_curve(found, tables[name]) for name, found in details.items()]
    return Study(
        name="trials",
        title="What another trial brings",
        finding=_finding(gain, tables, overview),
        grids=(overview, *grids),
        pictures=tuple(
            Picture(name=f"trials-{i}", title=f"{name}: score against trials", figure=figure)
            for i, (name, figure) in enumerate(zip(shown, figures, strict=True), 1)
        ),
        notes=(*NOTES, *notes_of(material, tables)),
        settings=settings_of(material, tables),
    )


def standings_of(examples: Examples, material: Material) -> list[Standing]:
    """Every rule with every number of trials, against the logit mean of all trials."""
    scores = {
        label(rule, k): expected_brier(RULES[rule], examples, k) for rule in CURVES for k in reversed(_counts(examples))
    }
    most = len(examples.rows.trials)
    if most > 1:
        scores[ENDLESS] = endless_brier(examples)
    for rule in ("trimmed mean", "extremised"):
        scores[label(rule, most)] = brier_of(pooled(RULES[rule], examples.rows.trials), examples)
    return standings(scores, examples, label("logit mean", most), material.resampling)


def label(rule: str, k: int) -> str:
    """A rule over k trials, as tables write it.

    >>> label("logit mean", 5)
    'logit mean of 5'
    """
    return f"{rule} of {k}"


def _counts(examples: Examples) -> range:
    return range(1, len(examples.rows.trials) + 1)


def _overview(
    tables: Mapping[str, Examples], curves: Mapping[str, Sequence[Floats]], material: Material
) -> tuple[Grid, Comparison | None]:
    """One line per configuration: the logit mean's index with 1, 2, … trials, and what the last ones bring."""
    most = max(len(curve) for curve in curves.values())
    entries: list[Entry] = []
    for name, curve in curves.items():
        scores = {str(k): score for k, score in enumerate(curve, 1)}
        found = standings(scores, tables[name], str(len(curve)), material.resampling)
        index: list[Value] = [one.index[OVERALL].estimate if OVERALL in one.index else None for one in found]
        index += [None] * (most - len(index))
        gain = [None if one is None else turned(one) for one in (found[0].against.get(OVERALL), found[0].two_way)]
        entries.append(Entry(name=name, values=(*index, *gain, found[-1].index.get(OVERALL))))
    columns = [Column(label=f"k={k}", tip=f"Brier index of the logit mean of {k} trials") for k in range(1, most + 1)]
    columns += [
        Column(label="all − one", tip="paired difference, questions resampled"),
        Column(label="two-way", tip="the same, resolution days resampled too"),
        Column(label="all", tip="with its interval"),
    ]
    entries.sort(key=lambda entry: -(entry.values[-1].estimate if isinstance(entry.values[-1], Interval) else 0.0))
    grid = Grid(title="Logit mean of k trials", head="Configuration", columns=tuple(columns), entries=tuple(entries))
    longest = [name for name, curve in curves.items() if len(curve) == most > 1]
    if not longest:
        return grid, None
    last, first = ([curves[name][k] for name in longest] for k in (-1, 0))
    return grid, mean_gain(last, first, tables[longest[0]], material.resampling)


def _best(overview: Grid) -> str:
    return overview.entries[0].name


def _detail(name: str, found: Sequence[Standing], examples: Examples) -> Grid:
    reference = next(one.name for one in found if not one.against)
    styles: dict[str, Style] = {reference: "reference", ENDLESS: "anchor"}
    return board(f"{name}: rules and trials", found, groups_of(examples), styles=styles)


def _curve(found: Sequence[Standing], examples: Examples) -> Figure:
    """Paired differences to all trials' logit mean: intervals of the scores themselves would hide the curve."""
    counts, by_name = _counts(examples), {one.name: one for one in found}
    scores = {rule: tuple(_gap(by_name[label(rule, k)]) for k in counts) for rule in CURVES}
    n = tuple(found[0].n for _ in counts)
    lines = Breakdown(
        column="trials",
        ordered=True,
        groups=tuple(str(k) for k in counts),
        n=n,
        base_rate=tuple(float("nan") for _ in counts),
        scores=scores,
        answered={rule: n for rule in CURVES},
    )
    return score_by_group(lines, label=f"BI minus logit mean of {len(counts)}", decimals=2, zero=True)


def _gap(one: Standing) -> Interval:
    if OVERALL in one.against:
        return as_interval(one.against[OVERALL])
    return Interval(estimate=0.0, low=0.0, high=0.0, se=0.0, n_clusters=0, draws=0)


def _finding(gain: Comparison | None, tables: Mapping[str, Examples], overview: Grid) -> str:
    if gain is None:
        return "There is one trial only: nothing to say about more of them."
    curves = [[value for value in entry.values if isinstance(value, float)] for entry in overview.entries]
    most = max(map(len, curves))
    mean = np.mean([curve for curve in curves if len(curve) == most], axis=0)
    told = ", ".join(f"trial {k} {signed(step, 2)}" for k, step in enumerate(np.diff(mean).tolist(), 2))
    return (
        f"{most} trials instead of one are worth {signed(gain.diff, 1)} BI {bracket(gain.low, gain.high, 1)} on "
        f"average over {plural(len(tables), 'configuration')} (logit mean): {told}."
    )
