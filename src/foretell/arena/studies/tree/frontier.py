"""Study: what does a right answer cost? Accuracy against dollars and against time, and who is not beaten on both.

After Analytica (2026), section 5.4 and D.4.2.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from foretell.arena.report.figures.frontier import FrontierPoint, frontier, pareto
from foretell.arena.report.wording import number
from foretell.arena.studies.selection import complete, notes_of, settings_of
from foretell.arena.studies.tree.material import Cost, TreeMaterial, made_up
from foretell.arena.studies.tree.play import Scene, play
from foretell.arena.studies.tree.players import DIRECT, Method, SimulatedGrounder
from foretell.arena.studies.tree.prices import Priced
from foretell.arena.studies.tree.shape import draw_shape
from foretell.arena.study import Column, Entry, Grid, Material, Picture, Progress, Study
from foretell.evaluate.bootstrap import Resampling, bootstrap_score
from foretell.evaluate.intervals import Interval
from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.tree.growing.draft import depth_of
from foretell.questions.problems import InputError

GROUNDERS: Mapping[str, tuple[SimulatedGrounder, Cost]] = {
    "quick": (SimulatedGrounder(bias=0.06, slant=0.2, sd=0.2), Cost(dollars=0.02, seconds=32)),
    "careful": (SimulatedGrounder(bias=0.03, slant=0.12, sd=0.12), Cost(dollars=0.07, seconds=157)),
    "thorough": (SimulatedGrounder(bias=0.01, slant=0.08, sd=0.06), Cost(dollars=4.02, seconds=456)),
}
"""Errors are set; dollars and seconds are those of search, notebook and deep research in Analytica's Tables 2 and 3."""
CALL = Cost(dollars=0.005, seconds=30)
"""Of one call to take apart or to put together, set."""
NOTES = (
    "On the frontier is who is not beaten in accuracy by anybody who costs no more. Accuracy per dollar favours "
    "whatever is nearly free, and is given because the paper gives it.",
    "Accuracy is that of single runs, at one half.",
)
MADE_UP = (
    "Errors of the made-up grounders are set; their dollars and seconds are published ones of search, notebook and "
    "deep research. Which of them lies on the frontier says nothing about real ones; how trees and repeats move a "
    "grounder along it does: asking again averages out what is new each time, a tree also what is wrong every time.",
)


def study(material: Material) -> Study:
    """Real forecasters with what they cost where tables are given, else those of a made-up world."""
    scene = made_up(material)
    if scene is not None:
        tables, costs = _played(scene, material.progress)
        return _study(tables, costs, material, (*NOTES, *MADE_UP), scene.told)
    costs = material.costs if isinstance(material, TreeMaterial) else {}
    tables = {name: table for name, table in complete(material).items() if name in costs}
    if not tables:
        raise InputError(
            "no forecaster has a cost", hint="give --costs, a table with forecaster, dollars and seconds, or --run"
        )
    return _study(tables, costs, material, (*NOTES, *notes_of(material, tables)), settings_of(material, tables))


def _study(
    tables: Mapping[str, Examples],
    costs: Mapping[str, Cost],
    material: Material,
    notes: tuple[str, ...],
    settings: dict[str, object],
) -> Study:
    right = {name: single_accuracy(table, material.resampling) for name, table in tables.items()}
    by = {
        "dollars": [FrontierPoint(name=n, cost=costs[n].dollars, interval=i) for n, i in right.items()],
        "seconds": [FrontierPoint(name=n, cost=costs[n].seconds, interval=i) for n, i in right.items()],
    }
    best = {unit: {one.name for one in pareto(points)} for unit, points in by.items()}
    entries = [
        Entry(
            name=name,
            values=(
                interval,
                costs[name].dollars,
                costs[name].seconds,
                interval.estimate / costs[name].dollars if costs[name].dollars > 0 else None,
                "yes" if name in best["dollars"] else "",
                "yes" if name in best["seconds"] else "",
            ),
        )
        for name, interval in right.items()
    ]
    columns = (
        Column(label="accuracy", tip="of a single run at one half, %"),
        Column(label="dollars", decimals=3, tip="per forecast"),
        Column(label="seconds", decimals=0, tip="per forecast, on the clock"),
        Column(label="per dollar", decimals=0, tip="accuracy divided by dollars: the paper's cost efficiency"),
        Column(label="best for its dollars"),
        Column(label="best for its time"),
    )
    grid = Grid(title="Accuracy and cost", head="Method", columns=columns, entries=tuple(entries))
    labels = {"dollars": "dollars per forecast", "seconds": "seconds per forecast"}
    pictures = tuple(
        Picture(
            name=unit,
            title=f"Accuracy against {unit}",
            figure=frontier(points, label="accuracy, %", cost_label=labels[unit]),
        )
        for unit, points in by.items()
    )
    return Study(
        name="frontier",
        title="What a right answer costs",
        finding=_finding(by["dollars"]),
        grids=(grid,),
        pictures=pictures,
        notes=notes,
        settings=settings,
    )


def single_accuracy(examples: Examples, how: Resampling) -> Interval:
    """Share of right answers of single runs in per cent, clusters resampled."""
    p = examples.rows.trials
    happened = np.where(examples.outcome == 1, p, 1 - p)
    said = ~np.isnan(p)
    kept = said.any(axis=0)
    right = np.where(said, happened > 0.5, 0.0).sum(axis=0)[kept] / said.sum(axis=0)[kept]
    return bootstrap_score(100 * right, examples.rows.cluster[kept], resampling=how)


def _played(scene: Scene, progress: Progress) -> tuple[dict[str, Examples], dict[str, Cost]]:
    methods: list[Method] = []
    costs: dict[str, Cost] = {}
    leaves, parents, levels = usual_size(scene)
    for name, (grounder, price) in GROUNDERS.items():
        alone = Method(name=f"{name} alone", rule=DIRECT, grounder=grounder)
        mine = [
            alone,
            replace(alone, name=f"{name}, mean of 10", repeats=10),
            *(replace(alone, name=f"{name}, tree {rule}", rule=rule) for rule in ("linear", "logic", "average")),
        ]
        priced = Priced(grounding=price, analysis=CALL, synthesis=CALL)
        costs |= {one.name: priced.cost(one, leaves=leaves, parents=parents, levels=levels) for one in mine}
        methods += mine
    return play(scene, methods, progress).tables, costs


def usual_size(scene: Scene) -> tuple[float, float, float]:
    """Mean leaves, parents and levels of the scene's trees."""
    sizes: list[tuple[int, int, int]] = []
    for place in range(min(scene.worlds, 50)):
        rng = np.random.default_rng([scene.seed, place])
        shape = draw_shape(scene.settings.leaves, rng, children=scene.settings.children)
        ends = sum(not children for children in shape.values())
        sizes.append((ends, len(shape) - ends, max(map(depth_of, shape))))
    leaves, parents, levels = np.mean(sizes, axis=0).tolist()
    return leaves, parents, levels


def _finding(points: list[FrontierPoint]) -> str:
    best = pareto(points)
    told = [f"{one.name} ({number(one.interval.estimate, 1)} % for ${one.cost:.3g})" for one in best]
    return f"Best for their dollars: {', '.join(told)}."
