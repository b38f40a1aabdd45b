"""The forecaster `tree-file`: answers from stored trees, with their own links or a rule that needs no model.

A finished tree answers the question whose claim is its root, and only if it knew no more than the question allows: a
tree that was grown after the question's cutoff, or does not say when it was grown, is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from foretell.forecasters.agent.settings import Clamp
from foretell.forecasters.combine.aggregate import logit_mean
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.forecaster import (
    claim_of_target,
    forecast_from_targets,
    targets_to_analyze,
    tree_summaries,
)
from foretell.forecasters.tree.grow.claims import tidy
from foretell.forecasters.tree.grow.synthesize import ModelFreeRule, rule_named
from foretell.forecasters.tree.proposition import Tree, leaves
from foretell.forecasters.tree.tree_file import read_tree
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target


def relink(tree: Tree, rule: str, rng: Random) -> Tree:
    """Replace every link by a rule that needs no model; pinned claims stay pinned.

    The difference from the original tree shows how much the links add to the leaves.

    >>> from foretell.forecasters.tree.links import LinearLink
    >>> from foretell.forecasters.tree.proposition import Proposition
    >>> leaves = {id: Proposition(id=id, claim=id, p=p) for id, p in (("P1", 0.2), ("P2", 0.6))}
    >>> top = Proposition(id="P0", claim="c", children=("P1", "P2"), link=LinearLink(weights={"P1": 0.1, "P2": 0.8}))
    >>> round(relink(Tree(root="P0", nodes={"P0": top, **leaves}), "average", Random(0)).nodes["P0"].p, 12)
    0.4
    """
    found = rule_named(rule)
    if not isinstance(found, ModelFreeRule):
        raise InputError(f"the rule {rule} asks a model", hint="without one there are average and random")
    nodes = {
        id: replace(node, link=found.make(node.children, rng), p=None) if node.children else node
        for id, node in tree.nodes.items()
    }
    return evaluated(replace(tree, nodes=nodes))


STORED = "stored"


@dataclass(frozen=True, kw_only=True)
class StoredTreesForecaster:
    """Answers from the latest tree with the same root claim; several with the same cutoff give their logit mean."""

    trees: Mapping[str, Sequence[Tree]]
    """Trees by root claim."""
    rule: str = STORED
    """`stored` keeps the links; `average` and `random` combine the same leaves without them."""
    seed: int = 0
    """Seed for random weights."""
    clamp: Clamp = field(default_factory=Clamp)
    shortcut: bool = True
    """If exactly one of two outcomes comes true, look up only the first; the other gets the complement."""

    def __post_init__(self) -> None:
        if self.rule not in (STORED, "average", "random"):
            problem = f"no tree can be put together by {self.rule!r} without a model"
            raise InputError(problem, hint="rules are stored, average, random")

    @property
    def name(self) -> str:
        """Name shown in tables."""
        return "tree-file" if self.rule == STORED else f"tree-file {self.rule}"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Forecast the roots' probabilities; if exactly one option comes true, they are divided by their sum."""
        targets = targets_to_analyze(question, shortcut=self.shortcut)
        trees = {target.id: self._of(question, target, context.as_of) for target in targets}
        numbers = {target: _root_mean(several) for target, several in trees.items()}
        rationale = tree_summaries({target: several[0] for target, several in trees.items()})
        return forecast_from_targets(question, context, self.name, numbers, rationale, self.clamp)

    def _of(self, question: Question, target: Target, as_of: AsOf) -> list[Tree]:
        known = self.trees.get(tidy(claim_of_target(question, target)), ())
        if not known:
            raise CannotForecast(f"no stored tree is about target {target.id} of question {question.id}")
        dated = [(tree.as_of.at, tree) for tree in known if tree.as_of is not None and as_of.admits(tree.as_of.at)]
        if not dated:
            raise CannotForecast(
                f"the stored trees about target {target.id} of question {question.id} were grown after {as_of}, or do "
                "not say when"
            )
        latest = max(at for at, _ in dated)
        usable = [tree for at, tree in dated if at == latest and _has_number(tree)]
        if not usable:
            raise CannotForecast(f"no leaf of the tree about target {target.id} of question {question.id} has a number")
        return [self._joined(tree, question, place) for place, tree in enumerate(usable)]

    def _joined(self, tree: Tree, question: Question, place: int) -> Tree:
        if self.rule == STORED:
            return tree
        return relink(tree, self.rule, Random(f"{self.seed}/{question.id}/{question.due}/{place}"))


def _has_number(tree: Tree) -> bool:
    return any(tree.nodes[leaf].p is not None for leaf in leaves(tree))


def _root_mean(trees: Sequence[Tree]) -> float:
    found = [tree.nodes[tree.root].p for tree in trees]
    return float(logit_mean([tree.missing if p is None else p for p, tree in zip(found, trees, strict=True)]))


def stored_trees(
    folder: str | None = None, file: str | None = None, rule: str = STORED, seed: int = 0, shortcut: bool = True
) -> StoredTreesForecaster:
    """Read the trees in a folder or file. `foretell run` stores a run's trees in trees/RUN of its home."""
    if (folder is None) == (file is None):
        raise InputError("tree-file needs a folder or a file of trees", hint="tree-file:folder=trees/RUN")
    files = [Path(file)] if file is not None else sorted(Path(str(folder)).glob("*.json"))
    if not files:
        raise InputError("there is no tree file", path=folder, hint="foretell run keeps them in trees/RUN of its home")
    trees: dict[str, list[Tree]] = {}
    for path in files:
        tree = read_tree(path)
        trees.setdefault(tidy(tree.nodes[tree.root].claim), []).append(tree)
    return StoredTreesForecaster(trees=trees, rule=rule, seed=seed, shortcut=shortcut)
