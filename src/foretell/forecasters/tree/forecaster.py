"""The forecasters `tree` and `tree-file`: one grows a tree for a question's claim, the other reads a stored one.

Both forecast the probability of the tree's root.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from random import Random
from time import monotonic

from foretell.forecasters.combine.aggregate import logit_mean
from foretell.forecasters.combine.clamp import Clamp
from foretell.forecasters.forecaster import CannotForecast, Context, EventLog
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.grounders.search import SearchGrounder
from foretell.forecasters.tree.grow.ground import Grounder, GroundingPool, gather_or_cancel
from foretell.forecasters.tree.grow.grow import TreeGrowth, TreeJob, tree_job_order
from foretell.forecasters.tree.grow.prompting import TreeQuestion
from foretell.forecasters.tree.grow.synthesize import ModelFreeRule, rule_named
from foretell.forecasters.tree.proposition import Grounding, Tree, TreeOrigin, leaves
from foretell.forecasters.tree.settings import GroundSettings, TreeSettings
from foretell.forecasters.tree.tree_file import read_tree_file, tree_to_dict
from foretell.forecasters.tree.wording import tidy
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Categorical, Cost, Forecast
from foretell.questions.question import Question, Target, scaled
from foretell.questions.trace import EmitEvent, ForecastMade, TraceEvent, TreeGrown, ignore_event

CLAIM = "claim"
"""Subtype of questions whose text is already a claim."""
MOST_SOURCES = 20
"""Maximum number of sources in a rationale."""


# Turn the targets of a question into claims, and the claims' probabilities into a forecast.


def claim_of_target(question: Question, target: Target) -> str:
    """Reword the question as a claim about one target.

    >>> q = Question(id="q", source="own", text="Will it snow?", due="2025-10-26", targets=(Target(id="yes"),))
    >>> claim_of_target(q, q.targets[0])
    'The answer to the question "Will it snow?" is yes.'
    """
    if question.subtype == CLAIM:
        return question.text
    day = f", as decided on {target.resolves_at.date().isoformat()}" if target.resolves_at else ""
    if len(question.targets) == 1:
        return f'The answer to the question "{question.text}" is yes{day}.'
    label = target.label or target.id
    if question.exclusivity != "independent":
        return f'The answer to the question "{question.text}" is "{label}"{day}.'
    return f'The answer to the question "{question.text}" is yes for "{label}"{day}.'


def targets_to_analyze(question: Question, *, shortcut: bool) -> tuple[Target, ...]:
    """Return the targets to analyse. With the shortcut, only the first of two if exactly one comes true."""
    two = question.exclusivity == "exactly one" and len(question.targets) == 2
    return question.targets[:1] if two and shortcut else question.targets


def target_probabilities(question: Question, probabilities: Mapping[str, float]) -> dict[str, float]:
    """Return the probability of each target. Mutually exclusive targets are scaled if their sum is impossible.

    >>> from foretell.questions.question import Target
    >>> q = Question(id="q", source="own", text="Who wins?", due="2025-10-26", exclusivity="exactly one",
    ...              targets=(Target(id="a"), Target(id="b")))
    >>> target_probabilities(q, {"a": 0.75}), target_probabilities(q, {"a": 0.75, "b": 0.75})
    ({'a': 0.75, 'b': 0.25}, {'a': 0.5, 'b': 0.5})
    """
    if question.exclusivity == "exactly one" and len(probabilities) == 1:
        first, other = (target.id for target in question.targets)
        return {first: probabilities[first], other: 1.0 - probabilities[first]}
    return scaled(probabilities, question.exclusivity)


def forecast_from_targets(
    question: Question,
    context: Context,
    name: str,
    numbers: Mapping[str, float],
    rationale: str,
    clamp: Clamp,
) -> Forecast:
    """Build the forecast of a question from the probabilities of the analysed targets."""
    p = clamp.apply(target_probabilities(question, numbers), question.exclusivity)
    return Forecast(
        question_id=question.id,
        forecaster=name,
        as_of=context.as_of,
        p=p,
        rationale=rationale,
        distribution=Categorical(p=p, normalise=True) if question.exclusivity == "exactly one" else None,
    )


# Texts about claims and sources in rationales.


def claim_line(id: str, claim: str, p: float | None, grounding: Grounding | None) -> str:
    """Return one line about a grounded claim: its probability and key factor, or why it has none."""
    if p is None:
        return f"- {id} no number ({grounding.error if grounding else 'not grounded'}): {claim}"
    factor = f" [{grounding.key_factor}]" if grounding and grounding.key_factor else ""
    return f"- {id} {percent(p, 1)}: {claim}{factor}"


def source_list(cited: list[tuple[str, str]]) -> str:
    """List the sources, each with the claim that cites it (source numbers restart at every claim)."""
    lines = [f"{id} {source}" for id, source in cited[:MOST_SOURCES]]
    more = [f"and {len(cited) - MOST_SOURCES} more"] if len(cited) > MOST_SOURCES else []
    return "\n".join(["Sources:", *lines, *more]) if lines else ""


def tree_summary(tree: Tree, target: str = "") -> str:
    """Return the rationale of a tree: the root's report, all leaves with probability or error, notes, and sources."""
    root = tree.nodes[tree.root]
    heading = f"Tree for {target}: " if target else ""
    below = [tree.nodes[id] for id in leaves(tree)]
    parts = [
        "" if root.p is None else f"{heading}{percent(root.p, 1)} for: {root.claim}",
        root.key_factor,
        root.report,
        "\n".join(["Leaves:", *(claim_line(leaf.id, leaf.claim, leaf.p, leaf.grounding) for leaf in below)]),
        "\n".join(["Notes:", *(f"- {note}" for note in tree.notes)]) if tree.notes else "",
        source_list([(leaf.id, source) for leaf in below if leaf.grounding for source in leaf.grounding.sources]),
    ]
    return "\n\n".join(part for part in parts if part)


def tree_summaries(trees: Mapping[str, Tree]) -> str:
    """Return the summaries of a question's trees, labelled by target if there are several."""
    return "\n\n".join(tree_summary(tree, target if len(trees) > 1 else "") for target, tree in trees.items())


# Shared by trees and thoughts: every target is analysed separately, all of them concurrently.


@frozen
class TargetResult:
    """The result of analysing one target: a probability, or the reason why there is none."""

    p: float | None
    error: str = ""
    rationale: str = ""
    events: tuple[TraceEvent, ...] = ()
    """Events in an order that does not depend on timing."""
    usage: Cost = field(default_factory=Cost)
    lacking: int = 0
    """Number of claims that have no probability of their own."""


@frozen
class AnalyzingForecaster:
    """Base of forecasters that analyse every target of a question and combine the results into one forecast."""

    settings: GroundSettings
    dollars: float | None = None
    """Budget per question, in dollars; None for no limit."""
    grounder: Grounder = field(default_factory=SearchGrounder)
    fall_backs: tuple[Grounder, ...] = ()
    """Grounders to try, in order, after the main one has failed."""
    on_event: EmitEvent = ignore_event
    """Receives every event immediately; the context's listener gets them in a fixed order at the end."""

    @property
    def name(self) -> str:
        """Name shown in tables."""
        return f"{self.settings.name} {self.grounder.name}"

    async def _analyze(self, about: TreeQuestion, context: Context, pool: GroundingPool, count: int) -> TargetResult:
        """Analyse one of `count` targets. They share the pool and split the budget equally."""
        raise NotImplementedError

    def _how(self, results: list[TargetResult]) -> str:
        """Return the label of this method in the trace."""
        raise NotImplementedError

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Forecast every target. Raises `CannotForecast` if no claim could be grounded."""
        began = monotonic()
        targets = targets_to_analyze(question, shortcut=self.settings.shortcut)
        pool = GroundingPool(self.grounder, self.settings, self.fall_backs)
        abouts = [
            TreeQuestion(
                question=question,
                as_of=context.as_of,
                claim=claim_of_target(question, target),
                target=target.id,
            )
            for target in targets
        ]
        results = await gather_or_cancel(self._analyze(about, context, pool, len(targets)) for about in abouts)
        for event in (event for result in results for event in result.events):
            context.emit(event)
        name = context.tools_for(question).marked_name(self.name)
        error = next((result.error for result in results if result.p is None), None)
        if error is not None:
            raise CannotForecast(error, forecaster=name)
        numbers = {target.id: result.p or 0.0 for target, result in zip(targets, results, strict=True)}
        rationale = "\n\n".join(result.rationale for result in results)
        forecast = forecast_from_targets(question, context, name, numbers, rationale, Clamp.read(self.settings.clamp))
        context.emit(ForecastMade(p=dict(forecast.p), how=self._how(results)))
        usage = Cost.side_by_side(result.usage for result in results)
        return replace(forecast, trial=context.trial, usage=replace(usage, seconds=monotonic() - began))


StoreTree = Callable[[Question, int, str, Tree], None]
"""Stores a finished tree, given the question, trial, target and tree."""


@frozen
class TreeForecaster(AnalyzingForecaster):
    """Breaks a question into claims, grounds the leaves, and combines them."""

    settings: TreeSettings = field(default_factory=TreeSettings)
    seed: int = 0
    """Seed for random weights."""
    store_tree: StoreTree | None = None
    """Called with every finished tree, in addition to the event that holds it."""
    run: str = ""
    """Id of the run, recorded in the tree's origin."""

    async def _analyze(self, about: TreeQuestion, context: Context, pool: GroundingPool, count: int) -> TargetResult:
        log = EventLog[TreeJob](self.on_event)
        dollars = self.dollars
        growth = TreeGrowth(
            about=replace(about, slot=f"{about.question.id}/trial {context.trial}/tree {about.target}"),
            context=context,
            pool=pool,
            log=log,
            settings=self.settings,
            dollars=None if dollars is None else dollars / count,
            seed=self.seed,
        )
        tree = replace(await growth.run(), origin=self._origin(about, log))
        if self.store_tree is not None:
            self.store_tree(about.question, context.trial, about.target, tree)
        root, bottom = tree.nodes[tree.root], [tree.nodes[leaf] for leaf in leaves(tree)]
        error = ""
        if all(leaf.p is None for leaf in bottom):
            reason = bottom[0].grounding.error if bottom[0].grounding else "none was tried"
            error = f"no leaf of the tree for {about.target} could be grounded: {reason}"
        grown = TreeGrown(tree=about.target, document=tree_to_dict(tree))
        return TargetResult(
            p=None if error else root.p,
            error=error,
            rationale=tree_summary(tree, about.target if count > 1 else ""),
            events=(*log.events(tree_job_order(tree)), grown),
            usage=log.usage(),
            lacking=len(root.incomplete),
        )

    def _origin(self, about: TreeQuestion, log: EventLog[TreeJob]) -> TreeOrigin:
        question = about.question
        closes = question.closes_at or next(
            (target.resolves_at for target in question.targets if target.id == about.target), None
        )
        return TreeOrigin(
            question=question.text if question.text != about.claim else "",
            criteria=question.criteria,
            closes=closes.date().isoformat() if closes is not None else "",
            url=question.url,
            run=self.run,
            grounder=self.grounder.name,
            rule=self.settings.rule,
            models=log.models(),
            cost=log.usage(),
        )

    def _how(self, results: list[TargetResult]) -> str:
        lacking = sum(result.lacking for result in results)
        return f"root of a tree, {lacking} claims without a number of their own" if lacking else "root of a tree"


# The forecaster `tree-file`: answers from stored trees, with their own links or a rule that needs no model.
#
# A stored tree answers the question whose claim is its root. Trees that were grown after the question's cutoff, or at
# an unknown time, are rejected.


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
    model_free = rule_named(rule)
    if not isinstance(model_free, ModelFreeRule):
        raise InputError(f"the rule {rule} asks a model", hint="average and random need none")
    nodes = {
        id: replace(node, link=model_free.make(node.children, rng), p=None) if node.children else node
        for id, node in tree.nodes.items()
    }
    return evaluated(replace(tree, nodes=nodes))


STORED = "stored"


@frozen
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
            problem = f"the rule {self.rule!r} cannot combine stored trees without a model"
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
                f"the stored trees about target {target.id} of question {question.id} were grown after {as_of}, or "
                "at an unknown time"
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
    numbers = [tree.nodes[tree.root].p for tree in trees]
    return float(logit_mean([tree.missing if p is None else p for p, tree in zip(numbers, trees, strict=True)]))


def stored_trees(
    folder: str | None = None, file: str | None = None, rule: str = STORED, seed: int = 0, shortcut: bool = True
) -> StoredTreesForecaster:
    """Read the trees in a folder or file. `foretell run` stores a run's trees in trees/RUN of its home."""
    if (folder is None) == (file is None):
        raise InputError("tree-file needs a folder or a file of trees", hint="tree-file:folder=trees/RUN")
    files = [Path(file)] if file is not None else sorted(Path(str(folder)).glob("*.json"))
    if not files:
        raise InputError("there is no tree file", path=folder, hint="foretell run stores them in trees/RUN of its home")
    trees: dict[str, list[Tree]] = {}
    for path in files:
        tree = read_tree_file(path).tree
        trees.setdefault(tidy(tree.nodes[tree.root].claim), []).append(tree)
    return StoredTreesForecaster(trees=trees, rule=rule, seed=seed, shortcut=shortcut)
