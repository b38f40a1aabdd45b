"""Noise on finished trees: with their own links, with claims judged again, and with means or random weights instead."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from random import Random

import numpy as np

from foretell.forecasters.tree.arithmetic.circuit import Circuit, run_many
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.edits import SetP
from foretell.forecasters.tree.forecaster import relink
from foretell.forecasters.tree.grow.prompting import TreeQuestion
from foretell.forecasters.tree.grow.synthesize import rejudge
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Tree, leaves
from foretell.forecasters.tree.what_if import resynthesize
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, bootstrap_score, bootstrap_sums
from foretell.metrics.scores import right_side
from foretell.number_text import number, plural
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost
from foretell.questions.question import Question
from foretell.report.study import StudyChart, StudyTable, column, table
from foretell.report.study_result import StudyResult
from foretell.studies.cases import TreeFacts
from foretell.studies.inputs import StudyData, StudyModels, StudyServices, gather_bounded
from foretell.studies.leaf_noise import AT, DISTURBANCES, RATIO_COLUMNS, RATIOS, Disturbance, noise_curves

DRAWS = 200
"""Number of disturbed copies of every tree whose answer is computed."""
AS_THEY_ARE = "as they are"
NOTES = (
    "Spoilt is 1 − r² between the roots without and with noise, over the trees; trees are resampled. Trees "
    "must have different roots.",
    "Leaves are disturbed, assumptions are not.",
)
ACCURACY_NOTE = (
    "Accuracy is the share of trees on the right side of one half; of several options, the likeliest must come true. "
    "Compare its decrease, not its level."
)


# Claims that were judged as a whole: a model judges them again for each disturbed copy.


@frozen
class AskedCopy:
    """One disturbed copy of a tree with judged claims: which tree, and which noise."""

    group: str
    place: int
    noise: str
    ratio: float


@frozen
class AskedAgain:
    """The trees whose judged claims were judged again, by disturbed copy."""

    trees: Mapping[AskedCopy, Tree] = field(default_factory=dict[AskedCopy, Tree])
    failed: int = 0
    """Number of copies of which a claim could not be judged again."""


def judged_claims(tree: Tree) -> list[str]:
    """Return the claims whose probability was judged, not computed."""
    return [id for id, node in tree.nodes.items() if isinstance(node.link, JudgedLink) and node.pinned is None]


def disturbed_leaves(
    tree: Tree, disturb: Disturbance, ratio: float, seed: Sequence[int], draws: int
) -> dict[str, Floats]:
    """Return values of the leaves with noise, one for each copy of the tree."""
    names = leaves(tree)
    now = np.array([[tree.missing if (p := tree.nodes[name].p) is None else p for name in names]])
    noisy = disturb(np.repeat(now, draws, axis=0), ratio, np.random.default_rng([*seed]))
    return {name: noisy[:, i] for i, name in enumerate(names)}


async def judge_again(
    inputs: StudyServices, data: StudyData, model: str, budget: float | None
) -> tuple[AskedAgain, Cost]:
    """Have a model judge the judged claims of every tree again, once for each kind and ratio of noise."""
    copies = [
        AskedCopy(group=group, place=place, noise=noise, ratio=ratio)
        for group, trees in data.trees.items()
        for place, tree in enumerate(trees)
        if judged_claims(tree)
        for noise in DISTURBANCES
        for ratio in RATIOS
    ]
    if not copies:
        raise InputError("has no effect: no claim of these trees was judged", column="--model", hint="leave it out")
    inputs.check_models([model])
    async with inputs.model("tree-noise", model, budget) as models:

        async def judge(copy: AskedCopy) -> tuple[Tree, bool]:
            facts = data.tree_facts.get(copy.group, ())
            question = facts[copy.place].question if facts else None
            return await _judged(models, data.trees[copy.group][copy.place], question, copy, data.resampling.seed)

        results = await gather_bounded(copies, judge, models.progress)
        trees = {copy: tree for copy, (tree, _) in zip(copies, results, strict=True)}
        return AskedAgain(trees=trees, failed=sum(failed for _, failed in results)), models.cost


async def _judged(
    models: StudyModels, tree: Tree, question: Question | None, copy: AskedCopy, seed: int
) -> tuple[Tree, bool]:
    """Return a disturbed copy whose judged claims were judged again, and whether a judgement failed."""
    noisy = disturbed_leaves(tree, DISTURBANCES[copy.noise], copy.ratio, [seed, copy.place], 1)
    changed = resynthesize(tree, [SetP(id=id, p=float(values[0])) for id, values in noisy.items()])
    asked = question or _question_of(tree)
    context = models.context(asked)
    about = TreeQuestion(
        question=asked,
        as_of=context.as_of,
        claim=tree.nodes[tree.root].claim,
        slot=f"{asked.id}/{copy.group}/{copy.place}/{copy.noise} noise {copy.ratio:g}",
    )
    result = await rejudge(changed, about, context)
    return result.tree, bool(result.failed)


def _question_of(tree: Tree) -> Question:
    """Return the question behind a tree that was read from a file."""
    claim = tree.nodes[tree.root].claim
    if tree.as_of is None:
        raise InputError("a tree without a date cannot be judged again", column="--model", hint="give runs")
    criteria = tree.origin.criteria if tree.origin is not None else ""
    return Question(id=claim[:80], source="own", text=claim, due=tree.as_of.at, criteria=criteria)


# What noise does to the roots.


def _joins(seed: int) -> Mapping[str, Callable[[Tree], Tree]]:
    rng = Random(seed)
    return {
        AS_THEY_ARE: lambda tree: tree,
        "average": lambda tree: relink(tree, "average", rng),
        "random": lambda tree: relink(tree, "random", rng),
    }


@frozen
class TreeGroup:
    """Trees that are joined in one way, with the answers of copies that were judged again."""

    name: str
    trees: Sequence[Tree]
    facts: Sequence[TreeFacts] = ()
    asked: Mapping[tuple[int, str, float], Tree] = field(default_factory=dict[tuple[int, str, float], Tree])

    def copies(self, place: int, noise: str, ratio: float, seed: int) -> dict[str, Floats]:
        """Return the answers of the disturbed copies of one tree, by option; of the root if it has none."""
        tree, again = self.trees[place], self.asked.get((place, noise, ratio))
        if again is not None:
            root = again.nodes[again.root]
            return {name: np.array([p]) for name, p in (root.row or {"": root.p or 0.0}).items()}
        circuit = compile_tree(tree)
        noisy = disturbed_leaves(tree, DISTURBANCES[noise], ratio, [seed, place], DRAWS)
        known = {name: values for name, values in noisy.items() if name in circuit.input_places}
        values = run_many(circuit, known, DRAWS)
        return {name: values[at] for name, at in _answers(circuit, tree).items()}

    def right(self, place: int, answers: Mapping[str, Floats]) -> float | None:
        """Return the share of answers on the right side; None if the question is not decided."""
        outcomes = self.facts[place].outcomes if self.facts else {}
        if not outcomes:
            return None
        if len(answers) == 1:
            # The claim of a tree with one answer is about its target.
            outcome = outcomes.get(self.facts[place].target)
            return (
                None if outcome is None else float(np.mean(right_side(next(iter(answers.values())), np.array(outcome))))
            )
        names = list(answers)
        likeliest = np.argmax(np.stack([answers[name] for name in names]), axis=0)
        return float(np.mean([outcomes.get(names[i], 0.0) for i in likeliest.tolist()]))


def _answers(circuit: Circuit, tree: Tree) -> dict[str, int]:
    """Return the place of each answer of a tree among the results of its operations."""
    return dict(circuit.rows.get(tree.root, {})) or {"": circuit.claims[tree.root]}


def _groups(data: StudyData, asked: AskedAgain) -> Iterator[TreeGroup]:
    for name, trees in data.trees.items():
        if len(trees) < 2:
            raise InputError(f"{name} has {plural(len(trees), 'tree')}", hint="give at least two")
        facts = data.tree_facts.get(name, ())
        again = {(copy.place, copy.noise, copy.ratio): tree for copy, tree in asked.trees.items() if copy.group == name}
        for way, join in _joins(data.resampling.seed).items():
            joined = [join(tree) for tree in trees]
            own = again if way == AS_THEY_ARE else {}
            yield TreeGroup(name=f"{name}, {way}", trees=joined, facts=facts, asked=own)


def noise_in_trees(data: StudyData, asked: AskedAgain) -> StudyResult:
    """Study every group of trees under every kind of noise."""
    groups = list(_groups(data, asked))
    grids = [_spoilt_table(noise, groups, data) for noise in DISTURBANCES]
    lines = {noise: accuracies(noise, groups, data) for noise in DISTURBANCES}
    trees = [tree for group in data.trees.values() for tree in group]
    first = grids[0].rows[0].name
    at = {noise: grid.numbers(f"{AT:g}").get(first) for noise, grid in zip(DISTURBANCES, grids, strict=True)}
    spoilt = [f"{noise} {number(value, 0)}" for noise, value in at.items() if value is not None]
    sentence = f"{plural(len(trees), 'tree')}: all roots are the same, so noise has no effect to measure."
    if spoilt:
        sentence = f"{plural(len(trees), 'tree')}; % spoilt of {first} at a ratio of {AT:g}: {', '.join(spoilt)}."
    known = [noise for noise, by_group in lines.items() if by_group]
    return StudyResult(
        name="tree-noise",
        title="What noise in the leaves of real trees does to their roots",
        sentences=(sentence,),
        tables=(*grids, *(_accuracy_table(noise, lines[noise]) for noise in known)),
        charts=tuple(_charts(grids, lines, max(len(group.trees) for group in groups))),
        notes=(*NOTES, *([ACCURACY_NOTE] if known else []), *_judged_notes(trees, asked)),
        settings={"seed": data.resampling.seed, "disturbed copies": DRAWS},
    )


def _judged_notes(trees: Sequence[Tree], asked: AskedAgain) -> Iterator[str]:
    judged = sum(isinstance(tree.nodes[tree.root].link, JudgedLink) for tree in trees)
    if judged and not asked.trees:
        yield f"{plural(judged, 'root')} of {len(trees)} are judged: no noise reaches them. --model judges them again."
    if asked.trees:
        yield f"Judged claims were judged again for one copy of each tree, noise and ratio: {len(asked.trees)} copies."
    if asked.failed:
        yield f"In {asked.failed} of {len(asked.trees)} copies a claim could not be judged again and kept its number."


def _spoilt_table(noise: str, groups: Sequence[TreeGroup], data: StudyData) -> StudyTable:
    rows = {group.name: [variance_lost_among(group, noise, ratio, data) for ratio in RATIOS] for group in groups}
    return table(f"Spoilt by {noise} noise, %", "Trees", RATIO_COLUMNS, rows)


def variance_lost_among(group: TreeGroup, noise: str, ratio: float, data: StudyData) -> Interval | None:
    """Return 1 − r² over the roots of the trees, in per cent; None if all roots are the same."""
    sums = np.stack([_sums(group, place, noise, ratio, data.resampling.seed) for place in range(len(group.trees))])
    interval = bootstrap_sums(sums, _spoilt_from_sums, data.resampling)
    return interval if np.isfinite(interval.estimate) else None


def _sums(group: TreeGroup, place: int, noise: str, ratio: float, seed: int) -> Floats:
    """Return sums over the copies of one tree: n, Σx, Σy, Σx², Σy², Σxy of the root before and after noise."""
    tree = group.trees[place]
    circuit = compile_tree(tree)
    y = next(iter(group.copies(place, noise, ratio, seed).values()))
    x = np.full(len(y), circuit.run()[next(iter(_answers(circuit, tree).values()))])
    return np.array([len(y), x.sum(), y.sum(), x @ x, y @ y, x @ y])


def _spoilt_from_sums(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    both, first, second = xy - x * y / n, xx - x**2 / n, yy - y**2 / n
    # Roots that are the same up to rounding have no variance to lose.
    differ = np.minimum(first, second) > 1e-12 * n
    return 100 * (1 - np.divide(both**2, first * second, out=np.full(np.shape(n), np.nan), where=differ))


# Accuracy, if the questions are decided.


def accuracies(noise: str, groups: Sequence[TreeGroup], data: StudyData) -> dict[str, list[Interval]]:
    """Return the accuracy in per cent without noise and at every ratio, by group; without groups not decided."""
    lines: dict[str, list[Interval]] = {}
    for group in groups:
        right = [_right_by_ratio(group, place, noise, data.resampling.seed) for place in range(len(group.trees))]
        decided = [(shares, group.facts[place].question.cluster) for place, shares in enumerate(right) if shares]
        if decided:
            values, clusters = np.array([shares for shares, _ in decided]), [cluster for _, cluster in decided]
            lines[group.name] = [
                bootstrap_score(100 * values[:, step], clusters, resampling=data.resampling, bounds=(0.0, 100.0))
                for step in range(values.shape[1])
            ]
    return lines


def _right_by_ratio(group: TreeGroup, place: int, noise: str, seed: int) -> list[float]:
    """Return the share of right answers of one tree without noise and at every ratio; empty if it is not decided."""
    tree = group.trees[place]
    circuit = compile_tree(tree)
    values = circuit.run()
    without = {name: np.array([values[at]]) for name, at in _answers(circuit, tree).items()}
    answers = [without, *(group.copies(place, noise, ratio, seed) for ratio in RATIOS)]
    shares = [group.right(place, answer) for answer in answers]
    return [share for share in shares if share is not None]


def _accuracy_table(noise: str, lines: Mapping[str, Sequence[Interval]]) -> StudyTable:
    return table(f"Accuracy under {noise} noise, %", "Trees", (column("without"), *RATIO_COLUMNS), lines)


def _charts(
    spoilt: Sequence[StudyTable], lines: Mapping[str, Mapping[str, Sequence[Interval]]], trees: int
) -> Iterator[StudyChart]:
    """Yield charts of the trees as they are: what is spoilt, and their accuracy."""
    for noise, grid in zip(DISTURBANCES, spoilt, strict=True):
        curves = {
            row.name.removesuffix(f", {AS_THEY_ARE}"): [cell for cell in row.values if isinstance(cell, Interval)]
            for row in grid.rows
            if row.name.endswith(AS_THEY_ARE)
        }
        curves = {name: line for name, line in curves.items() if len(line) == len(RATIOS)}
        if curves:
            label = f"% spoilt by {noise} noise"
            yield StudyChart(name=noise, title=label, chart=noise_curves(curves, RATIOS, trees, label))
    for noise, by_group in lines.items():
        own = {
            name.removesuffix(f", {AS_THEY_ARE}"): line for name, line in by_group.items() if name.endswith(AS_THEY_ARE)
        }
        if own:
            label = f"Accuracy in % under {noise} noise"
            chart = noise_curves(own, [0.0, *RATIOS], trees, label)
            yield StudyChart(name=f"accuracy-{noise}", title=label, chart=chart)
