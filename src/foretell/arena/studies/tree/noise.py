"""Study: what does noise in the leaves do to the answer? Three kinds of noise, all rules, made-up worlds or real trees.

After Analytica (2026), section 5.3. The measure is `spoilt`, which no rule can have less of than a linear one.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from foretell.arena.report.breakdown import Breakdown
from foretell.arena.report.figures.groups import score_by_group
from foretell.arena.report.svg import Figure
from foretell.arena.report.wording import bracket, number, plural
from foretell.arena.studies.tree.disturbance import DISTURBANCES
from foretell.arena.studies.tree.material import TreeMaterial, only_made_up
from foretell.arena.studies.tree.play import Scene
from foretell.arena.studies.tree.players import RULES
from foretell.arena.studies.tree.stress import AT, RATIOS, Effects, effects, mean_of
from foretell.arena.studies.tree.world import KINDS, Kind
from foretell.arena.study import Column, Entry, Grid, Material, Picture, Study, Value
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.compare import compare_paired

SIZES = (4, 10, 30, 100)
DRAWN = ("linear", "logic", "noisy-or", "average", "vanilla")
NOTES = (
    "Spoilt is 1 − r² between the answers without and with noise, over the questions of a world: the part of what the "
    "rule had to say that no recalibration brings back. Every rule is linear in each leaf, and of all such rules a "
    "weighted sum is spoilt least: the leaves' own 1 − ρ², whatever the weights.",
    "bayes-net is linear with weights that are conditional chances. Free weights (linear) may carry an answer beyond 0 "
    "or 1, where it is held: that edge is a bend, and a rule with a bend is no weighted sum any more.",
    "vanilla goes by the numbers for a fifth only, and by reports that no noise reaches for the rest. That is set, not "
    "found.",
    "Moved is how far answers go, and says as much about how far they ever go as about noise. Accuracy holds noise and "
    "misfit together: a rule can be right more often with noise than another without.",
)


def study(material: Material) -> Study:
    """All rules under all kinds of noise; on real trees where some are given."""
    if isinstance(material, TreeMaterial) and material.trees:
        from foretell.arena.studies.tree.real_trees import study_of_trees

        return study_of_trees(material)
    scene = replace(only_made_up(material, "tree-noise", trees=True), questions=400)
    found: dict[Kind, Effects] = {
        kind: effects(replace(scene, kinds=(kind,)), progress=material.progress) for kind in KINDS
    }
    both: Effects = {key: [*found["linear"][key], *found["logic"][key]] for key in found["linear"]}
    how = material.resampling
    grids = [_curves(name, both, how) for name in DISTURBANCES]
    grids += [_gaps(found, how), _sizes(scene, how)]
    grids += [*(_accuracy(name, found, how) for name in DISTURBANCES), _moved(found, how)]
    return Study(
        name="tree-noise",
        title="What noise in the leaves does to the answer",
        finding=_finding(both, how),
        grids=tuple(grids),
        pictures=tuple(
            Picture(name=name, title=f"Spoilt by {name} noise", figure=_figure(name, both, how))
            for name in DISTURBANCES
        ),
        notes=NOTES,
        settings=scene.told,
    )


def _curves(noise: str, found: Effects, how: Resampling) -> Grid:
    entries = [
        Entry(
            name=rule,
            values=tuple(mean_of(found[rule, noise, ratio], "spoilt", how) for ratio in RATIOS),
            style="reference" if rule == "linear" else "",
        )
        for rule in RULES
    ]
    columns = tuple(Column(label=f"{ratio:g}", tip=f"noise ratio {ratio:g}") for ratio in RATIOS)
    return Grid(title=f"Spoilt by {noise} noise, %", head="Rule", columns=columns, entries=tuple(entries))


def _gaps(found: Mapping[Kind, Effects], how: Resampling) -> Grid:
    """Logic minus linear, world by world."""
    entries: list[Entry] = []
    for noise in DISTURBANCES:
        for kind, one in found.items():
            for rule in ("linear", "bayes-net"):
                values: list[Value] = []
                for ratio in RATIOS:
                    logic, linear = (
                        np.array([100 * effect.spoilt for effect in one[name, noise, ratio]])
                        for name in ("logic", rule)
                    )
                    values.append(compare_paired(logic, linear, resampling=how))
                entries.append(Entry(name=f"{noise}, {kind} worlds, − {rule}", values=tuple(values)))
    columns = tuple(Column(label=f"{ratio:g}") for ratio in RATIOS)
    caption = "Positive: the logic rule is spoilt more. Worlds resampled."
    title = "Logic minus linear, % spoilt"
    return Grid(title=title, head="Noise", columns=columns, entries=tuple(entries), caption=caption)


def _sizes(scene: Scene, how: Resampling) -> Grid:
    """Larger trees, worlds of formulas, uncertain noise at one ratio."""
    entries: list[Entry] = []
    rules = ("bayes-net", "linear", "logic")
    for leaves in SIZES:
        small = replace(
            scene, worlds=min(24, scene.worlds), kinds=("logic",), settings=replace(scene.settings, leaves=leaves)
        )
        found = effects(small, rules)
        values = [mean_of(found[rule, "uncertain", AT], "spoilt", how) for rule in rules]
        entries.append(Entry(name=plural(leaves, "leaf").replace("leafs", "leaves"), values=tuple(values)))
    columns = tuple(Column(label=rule) for rule in rules)
    title = f"By size of the tree: spoilt by uncertain noise of {AT:g}, logic worlds, %"
    return Grid(title=title, head="At least", columns=columns, entries=tuple(entries))


def _accuracy(noise: str, found: Mapping[Kind, Effects], how: Resampling) -> Grid:
    """As the paper has it: accuracy against the noise ratio."""
    entries = [
        Entry(
            name=f"{kind} worlds: {rule}",
            values=(
                mean_of(one[rule, "", 0.0], "accuracy", how),
                *(mean_of(one[rule, noise, ratio], "accuracy", how) for ratio in RATIOS),
            ),
        )
        for kind, one in found.items()
        for rule in RULES
    ]
    columns = (Column(label="without"), *(Column(label=f"{ratio:g}") for ratio in RATIOS))
    title = f"Accuracy at one half under {noise} noise, %"
    return Grid(title=title, head="Rule", columns=columns, entries=tuple(entries))


def _moved(found: Mapping[Kind, Effects], how: Resampling) -> Grid:
    entries = [
        Entry(
            name=f"{kind} worlds: {rule}",
            values=tuple(mean_of(one[rule, noise, 0.5], "moved", how) for noise in DISTURBANCES),
        )
        for kind, one in found.items()
        for rule in RULES
    ]
    columns = tuple(Column(label=f"{noise} 0.5") for noise in DISTURBANCES)
    title = "Moved, percentage points"
    return Grid(title=title, head="Rule", columns=columns, entries=tuple(entries))


def _figure(noise: str, found: Effects, how: Resampling) -> Figure:
    scores = {rule: tuple(mean_of(found[rule, noise, ratio], "spoilt", how) for ratio in RATIOS) for rule in DRAWN}
    n = tuple(len(found[DRAWN[0], noise, ratio]) for ratio in RATIOS)
    lines = Breakdown(
        column="noise_ratio",
        ordered=True,
        groups=tuple(f"{ratio:g}" for ratio in RATIOS),
        n=n,
        base_rate=tuple(float("nan") for _ in RATIOS),
        scores=scores,
        answered={rule: n for rule in DRAWN},
    )
    return score_by_group(lines, label=f"% spoilt by {noise} noise")


def _finding(found: Effects, how: Resampling) -> str:
    told: list[str] = []
    more = 0
    for noise in DISTURBANCES:
        logic, linear = (np.array([100 * one.spoilt for one in found[rule, noise, AT]]) for rule in ("logic", "linear"))
        gap = compare_paired(logic, linear, resampling=how)
        more += gap.low > 0
        ends = bracket(gap.low, gap.high, 1)
        means = " − ".join(number(float(np.nanmean(one)), 0) for one in (logic, linear))
        told.append(f"{noise} {means} = {number(gap.diff, 1)} {ends}")
    return (
        f"At a noise ratio of {AT:g} the logic rule is spoilt clearly more than the linear one by {more} of "
        f"{plural(len(DISTURBANCES), 'kind')} of noise (% spoilt): {'; '.join(told)}."
    )
