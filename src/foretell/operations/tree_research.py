"""Let models work on an existing tree: estimate leaves again, expand a leaf, or repeat outdated judgements."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from foretell.forecasters.forecaster import Context, EventLog
from foretell.forecasters.tree.arithmetic.error_bar import leaf_trials, next_trials, root_slopes
from foretell.forecasters.tree.arithmetic.evaluation import stale_claims
from foretell.forecasters.tree.edits import AddNode, Edit, SetGrounding, SetLink, SetReport, ShareNode
from foretell.forecasters.tree.forecaster import CLAIM, TreeForecaster
from foretell.forecasters.tree.grow.ground import (
    USUAL_TOKENS,
    GroundingPool,
    GroundingResult,
    Leaf,
    LeafBudget,
    combined_results,
)
from foretell.forecasters.tree.grow.grow import TreeGrowth, TreeJob
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings, TreeQuestion
from foretell.forecasters.tree.grow.synthesize import ModelFreeRule, rejudge, rule_named, rule_of
from foretell.forecasters.tree.history import TreeAuthor, TreeCommit, commit_edits, open_version
from foretell.forecasters.tree.links import AverageLink
from foretell.forecasters.tree.proposition import (
    Grounding,
    Proposition,
    Tree,
    TreeOrigin,
    leaves,
    parents_of,
    pre_order,
)
from foretell.forecasters.tree.settings import TreeSettings
from foretell.forecasters.tree.tree_file import read_tree_file
from foretell.forecasters.tree.what_if import claim_changes, resynthesize
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.models.model import TokenCount
from foretell.operations.ask import cost_text, late_text_of, typed_run_spec
from foretell.operations.requests.trees import (
    TreeExpandRequest,
    TreeGroundRequest,
    TreeResearchRequest,
    TreeResynthesizeRequest,
)
from foretell.operations.table import operation
from foretell.operations.tree import tree_spec
from foretell.operations.tree_edit import PlannedStep, TreeEditResult, editor
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent, ignore_event
from foretell.runs.runner import check_run, money_notices
from foretell.runs.runtime import TreeOutput, open_runtime, prices_of
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import RunSpec
from foretell.runs.tree_runtime import TreeOptions, open_forecaster
from foretell.tools.late_text import late_passages, without_late_passages

Tell = Callable[[str], None]


# Plans and their cost.


JUDGE_TOKENS = TokenCount(input=5_000, output=1_500)
"""Usual tokens for judging a rule."""
ANALYZE_TOKENS = TokenCount(input=4_000, output=1_500)


@dataclass(frozen=True, kw_only=True)
class _Planner:
    """Estimates cost by the prices of the request's models."""

    request: TreeResearchRequest

    def step(self, claim: str, do: str, calls: int, each: TokenCount, role: str, times: float = 1.0) -> PlannedStep:
        return PlannedStep(claim=claim, do=do, calls=calls, dollars=self._dollars(each, role, times))

    def _dollars(self, tokens: TokenCount, role: str, times: float) -> float | None:
        if self.request.model is None:
            return None
        spec = typed_run_spec(self.request)
        price = prices_of(spec).of(spec.models.get(role, spec.models["agent"]))
        return None if price is None else times * price.dollars(tokens)

    def ground(self, claim: str, grounder: str, trials: int) -> PlannedStep:
        calls, tokens = USUAL_TOKENS.get(grounder, USUAL_TOKENS["search"])
        return self.step(claim, f"examine by {grounder}", calls * trials, tokens, "grounder", trials)

    def judge(self, claim: str, rule: str) -> PlannedStep:
        if isinstance(rule_named(rule), ModelFreeRule):
            return PlannedStep(claim=claim, do=f"join by {rule}", calls=0, dollars=0.0)
        return self.step(claim, f"judge the rule {rule}", 1, JUDGE_TOKENS, "synthesizer")


def _computed(tree: Tree, start: Iterable[str], asked: Iterable[str]) -> list[PlannedStep]:
    """Claims above a change that are recomputed by arithmetic."""
    up, found, stack = parents_of(tree.nodes), dict[str, None](), list(start)
    while stack:
        for parent in up[stack.pop()]:
            if parent not in found:
                found[parent] = None
                stack.append(parent)
    known = set(asked)
    return [PlannedStep(claim=id, do="compute", calls=0, dollars=0.0) for id in found if id not in known]


def _planned(request: TreeResearchRequest, tree: Tree, steps: Sequence[PlannedStep]) -> TreeEditResult:
    """The tree as it is, with the steps that would be taken."""
    return TreeEditResult(tree=tree, path=request.tree, changes=(), stale=tuple(stale_claims(tree)), steps=tuple(steps))


# Opening a tree for models to work on.


@dataclass(frozen=True, kw_only=True)
class _TreeWork:
    """Everything needed to work on one version of a tree."""

    tree: Tree
    version: int
    about: TreeQuestion
    context: Context
    forecaster: TreeForecaster
    log: EventLog[TreeJob] = field(default_factory=EventLog[TreeJob])

    @property
    def pool(self) -> GroundingPool:
        made = self.forecaster
        return GroundingPool(made.grounder, made.settings, made.fall_backs)

    @property
    def settings(self) -> TreeSettings:
        return self.forecaster.settings


def _question(request: TreeResearchRequest, tree: Tree, as_of: AsOf) -> Question:
    """The root's claim as a question, with the tree's criteria and closing date unless the request gives others."""
    root, origin = tree.nodes[tree.root].claim, tree.origin or TreeOrigin()
    closes = instant(request.closes) if request.closes else None
    if closes is None and origin.closes and instant(origin.closes) > as_of.at:
        closes = instant(origin.closes)
    return Question(
        id=f"claim {root}",
        source="own",
        text=root,
        criteria=request.criteria or origin.criteria,
        due=as_of.at,
        closes_at=closes,
        targets=(Target(id="yes", resolves_at=closes),),
        subtype=CLAIM,
    )


def _early_words(request: TreeResearchRequest, tree: Tree, question: Question, as_of: AsOf) -> tuple[Tree, Question]:
    """The tree and its question for models: as of a past date, without text that was written later.

    With `cut`, late passages are replaced by a mark; the file is unchanged.
    """
    if as_of.mode != "backtest" or late_text_of(request) == "keep":
        return tree, question
    if late_text_of(request) == "cut":
        nodes = {id: _cut_node(node, question, as_of) for id, node in tree.nodes.items()}
        return replace(tree, nodes=nodes), without_late_passages(question, as_of)
    words: list[tuple[str, Question]] = []
    for node in tree.nodes.values():
        told = node.grounding or Grounding()
        texts = (node.claim, node.causality, node.key_factor, node.report, told.key_factor, told.report)
        words += [(node.id, replace(question, text=text, criteria="")) for text in texts if text]
    for id, said in (*words, ("", question)):
        if late := late_passages(said, as_of):
            where = f"claim {id}" if id else "the tree's question"
            problem = f"{where} holds words of after {as_of.at:%Y-%m-%d}: “{late[0].found}” in “{late[0].sentence}”"
            hint = "foretell tree edit changes a claim; --late-text cut leaves such passages out, keep shows them"
            raise InputError(problem, path=request.tree, hint=hint)
    return tree, question


def _cut_node(node: Proposition, question: Question, as_of: AsOf) -> Proposition:
    def cut(text: str) -> str:
        return without_late_passages(replace(question, text=text, criteria=""), as_of).text if text else text

    told = node.grounding
    return replace(
        node,
        claim=cut(node.claim),
        causality=cut(node.causality),
        key_factor=cut(node.key_factor),
        report=cut(node.report),
        grounding=told and replace(told, key_factor=cut(told.key_factor), report=cut(told.report)),
    )


def _as_of(request: TreeResearchRequest, tree: Tree) -> AsOf:
    """The date to work as of: the one given, that of a backtest tree, or now."""
    if request.as_of:
        return AsOf.day(request.as_of) if len(request.as_of) == 10 else AsOf(at=instant(request.as_of))
    if tree.as_of is not None and tree.as_of.mode == "backtest":
        return tree.as_of
    return AsOf(at=datetime.now(UTC).replace(microsecond=0), mode="live")


def _spec(request: TreeResearchRequest, options: TreeOptions, as_of: AsOf) -> RunSpec:
    usual = TreeOptions()
    changed = {name: value for name, value in vars(options).items() if value != getattr(usual, name)}
    return replace(tree_spec(request, changed), mode=as_of.mode)


@asynccontextmanager
async def _open_work(
    request: TreeResearchRequest, options: TreeOptions, settings: Settings, watch: EmitEvent, tell: Tell
) -> AsyncGenerator[_TreeWork]:
    tree, version = open_version(request.tree)
    if request.base_version is not None and request.base_version != version:
        raise InputError(
            f"is at version {version}, not at {request.base_version}",
            path=request.tree,
            hint=f"see what changed with foretell tree diff {request.tree} --from {request.base_version}",
        )
    as_of = _as_of(request, tree)
    spec = _spec(request, options, as_of)
    check_run(spec, settings)
    for notice in money_notices(spec):
        tell(notice)
    question = _question(request, tree, as_of)
    tree, question = _early_words(request, tree, question, as_of)
    settings.home.mkdir(parents=True, exist_ok=True)
    with closing(Journal(settings.journal)) as journal:
        async with open_runtime(spec, settings, journal, limits=options.limits()) as plain:
            runtime = replace(plain, trees=TreeOutput(file=request.tree, watch=watch))
            async with open_forecaster(options, runtime) as (forecaster, runtime):
                assert isinstance(forecaster, TreeForecaster)
                context = replace(runtime.context(question), as_of=as_of)
                slot = f"{question.id}/trial {context.trial}"
                about = TreeQuestion(question=question, as_of=as_of, target="yes", slot=slot)
                log = EventLog[TreeJob](watch)
                yield _TreeWork(
                    tree=tree, version=version, about=about, context=context, forecaster=forecaster, log=log
                )


def _finished(
    request: TreeResearchRequest, work: _TreeWork, edits: Sequence[Edit], failed: Sequence[str], why: str
) -> TreeEditResult:
    """Commit the edits beside what others changed in the meantime, and report the result."""
    live = work.context.as_of if work.context.as_of.mode == "live" and edits else None
    usage: Cost = work.log.usage()
    author = TreeAuthor(who=editor(request.who), why=request.why or why, models=work.log.models(), cost=usage)
    done: TreeCommit = commit_edits(request.tree, edits, author, base=work.version, as_of=live)
    return TreeEditResult(
        tree=done.after,
        path=request.tree,
        changes=tuple(claim_changes(done.before, done.after)),
        stale=tuple(stale_claims(done.after)),
        version=done.version,
        merged=done.merged,
        failed=tuple(failed),
        notes=(cost_text(usage, Money(billed=usage.dollars, reused=usage.reused)),) if usage.calls else (),
    )


def _leaf(tree: Tree, id: str) -> Proposition:
    if id not in tree.nodes:
        raise InputError(f"{id[:80]} is not in the tree", hint="foretell tree show lists its claims")
    if tree.nodes[id].children:
        raise InputError(
            f"{id} has children: only leaves can be researched", hint="foretell tree resynthesize judges it again"
        )
    return tree.nodes[id]


# Ground.


async def ground(
    request: TreeGroundRequest,
    settings: Settings | None = None,
    *,
    watch: EmitEvent = ignore_event,
    tell: Tell = lambda _: None,
) -> TreeEditResult:
    """Estimate leaves of a tree again, once or several times, and recompute everything above them.

    Costs money. A leaf that could not be estimated keeps its number.
    """
    settings = settings or load_settings()
    tree, planner = read_tree_file(request.tree).tree, _Planner(request=request)
    bought = None
    if request.allocate is not None:
        bought = _trials_for(request.allocate, planner.ground("", request.grounder, 1).dollars)
    if bought is None:
        given = dict.fromkeys(leaves_to_ground(tree, request.claims), request.trials)
        why = f"examined {', '.join(given)} by {request.grounder}"
    else:
        given = _shared_out(tree, request.claims, bought)
        why = f"{bought} more trials where the answer is least sure"
    if not given:
        raise InputError(
            "no leaf is stale, failed or open", path=request.tree, hint="name the leaves to research again"
        )
    if request.plan:
        steps = [planner.ground(id, request.grounder, times) for id, times in given.items()]
        return _planned(request, tree, [*steps, *_computed(tree, given, given)])
    options = _options(request, grounder=request.grounder, deep_model=request.deep_model)
    async with _open_work(request, options, settings, watch, tell) as work:
        edits: list[Edit] = []
        failed: list[str] = []
        now = work.tree
        # Half of what was bought is tried first; the rest goes where that shows the answer is least sure.
        turns = [None] if bought is None else [part for part in (bought - bought // 2, bought // 2) if part]
        for turn, part in enumerate(turns):
            given = given if part is None else _shared_out(now, request.claims, part)
            jobs = [_examined(work, id, times, turn=turn) for id, times in given.items()]
            for id, results in zip(given, await asyncio.gather(*jobs), strict=True):
                node = now.nodes[id]
                new = combined_grounding(node, results, keep=request.keep_trials or bought is not None)
                if new.p is None:
                    failed.append(f"{id} could not be examined: {new.grounding.error}")
                if new.p is not None or node.p is None:
                    edits.append(new)
                    now = resynthesize(now, [new]) if bought is not None else now
        return _finished(request, work, edits, failed, why)


ground_leaves = operation(TreeGroundRequest)(ground)


def _trials_for(dollars: float, price: float | None) -> int:
    """How many trials a sum of money buys."""
    if price is None:
        raise InputError(
            "the cost of a trial is unknown", column="--allocate", hint="state it with --model-price 0.5/2"
        )
    if price == 0:
        raise InputError("a trial costs nothing", column="--allocate", hint="say how many with --trials")
    count = min(int(dollars / price + 1e-9), MOST_TRIALS)
    if count < 1:
        raise InputError(f"a trial costs about ${price:.4f}", column="--allocate", hint="allocate more")
    return count


MOST_TRIALS = 1_000
"""Maximum number of trials that `--allocate` buys."""


def _shared_out(tree: Tree, named: Sequence[str], count: int) -> dict[str, int]:
    """Distribute trials over the leaves: leaf → number of trials."""
    chosen = {_leaf(tree, id).id for id in named}
    trials = {id: one for id, one in leaf_trials(tree).items() if not chosen or id in chosen}
    if not trials:
        raise InputError("no leaf has a probability yet", hint="research them first, without --allocate")
    given = next_trials(root_slopes(tree), trials, count)
    return {id: times for id, times in given.items() if times}


def leaves_to_ground(tree: Tree, named: Sequence[str]) -> list[str]:
    """The named leaves, or those that are stale, failed or were never estimated."""
    if named:
        return [_leaf(tree, id).id for id in dict.fromkeys(named)]
    return [id for id in leaves(tree) if tree.nodes[id].stale or tree.nodes[id].p is None]


def _options(request: TreeResearchRequest, **fields: Any) -> TreeOptions:
    common = ("concurrency", "retries", "leaf_seconds", "kernels", "unsandboxed")
    return TreeOptions(**{name: getattr(request, name) for name in common}, **fields)


async def _examined(work: _TreeWork, id: str, trials: int, *, turn: int = 0) -> list[GroundingResult]:
    """Estimate one leaf several times, independently."""
    context = replace(work.context, emit=work.log.job(("grounding", f"{id} {turn}" if turn else id)))
    place = ClaimSurroundings.of(work.tree.nodes, parents_of(work.tree.nodes), id)
    found: list[GroundingResult] = []
    for trial in range(turn * MOST_TRIALS, turn * MOST_TRIALS + trials):
        leaf = Leaf(
            id=id,
            claim=work.tree.nodes[id].claim,
            tree_question=work.about,
            surroundings=place,
            # Another version or another trial is another estimate.
            slot=f"{work.about.slot}/{id}/grounding {work.version}.{trial}",
            budget=LeafBudget(),
        )
        found.append(await work.pool.ground(leaf, replace(context, trial=trial)))
    return found


def combined_grounding(node: Proposition, results: Sequence[GroundingResult], *, keep: bool = False) -> SetGrounding:
    """Combine several estimates of a leaf into one edit; with `keep`, earlier ones count too."""
    earlier: tuple[float, ...] = ()
    if keep and node.p is not None:
        earlier = (node.grounding.trials if node.grounding is not None else ()) or (node.p,)
    found = combined_results(results, earlier)
    return SetGrounding(id=node.id, p=found.p, grounding=found.grounding)


# Expand.


async def expand(
    request: TreeExpandRequest,
    settings: Settings | None = None,
    *,
    watch: EmitEvent = ignore_event,
    tell: Tell = lambda _: None,
) -> TreeEditResult:
    """Break a leaf into smaller claims, estimate and combine them, and recompute everything above it.

    Costs money. If nothing comes of it, the leaf stays as it was.
    """
    settings = settings or load_settings()
    tree = read_tree_file(request.tree).tree
    id = _leaf(tree, request.claim).id
    stem = "P" if id == "P0" else f"{id}."
    if taken := [other for other in tree.nodes if other != id and other.startswith(stem)]:
        raise InputError(
            f"{id} cannot be broken down: the ids of its parts are used by {', '.join(taken[:5])}", path=request.tree
        )
    options = _options(
        request,
        grounder=request.grounder,
        deep_model=request.deep_model,
        **{name: getattr(request, name) for name in ("rule", "leaves", "rounds", "nodes", "depth", "steps")},
    )
    if request.plan:
        return _expansion_plan(request, tree, id)
    async with _open_work(request, options, settings, watch, tell) as work:
        up = parents_of(work.tree.nodes)
        growth = TreeGrowth(
            about=replace(work.about, claim=work.tree.nodes[id].claim, slot=f"{work.about.slot}/expand {work.version}"),
            context=work.context,
            pool=work.pool,
            log=work.log,
            settings=work.settings,
            dollars=request.budget,
            root=id,
            above=ClaimSurroundings.of(work.tree.nodes, up, id),
        )
        grown = await growth.run()
        edits = grafted(grown)
        failed = [] if edits else [f"{id} stays a leaf: {'; '.join(grown.notes) or 'nothing was added to it'}"]
        return _finished(request, work, edits, failed, f"broke down {id}")


expand_leaf = operation(TreeExpandRequest)(expand)


def _expansion_plan(request: TreeExpandRequest, tree: Tree, id: str) -> TreeEditResult:
    planner = _Planner(request=request)
    many = min(request.leaves**request.rounds, request.nodes)
    apart = planner.step(id, "break down", 2, ANALYZE_TOKENS, "analyzer", 2.0)
    parts = planner.ground(f"{id}.*", request.grounder, many)
    joined = planner.judge(id, request.rule)
    return _planned(request, tree, [apart, parts, joined, *_computed(tree, [id], [id])])


def grafted(grown: Tree) -> list[Edit]:
    """Turn a subtree grown from a leaf into edits of the tree around it; none if it has no probability."""
    top = grown.nodes[grown.root]
    if not top.children or top.link is None:
        return []
    up = parents_of(grown.nodes)
    found: list[Edit] = []
    for id in pre_order(grown.nodes, grown.root)[1:]:
        node = grown.nodes[id]
        bare = replace(node, children=(), link=None, p=None if node.children else node.p, incomplete=())
        found.append(AddNode(parent=up[id][0], node=replace(bare, rule="", failed="", report="", key_factor="")))
    for id, above in up.items():
        found += [ShareNode(id=id, parent=parent) for parent in above[1:]]
    for id in pre_order(grown.nodes, grown.root):
        node = grown.nodes[id]
        if node.children:
            failed = node.failed or ("none of its children has a probability" if node.link is None else "")
            found.append(SetLink(id=id, link=node.link or AverageLink(), rule=node.rule or "linear", failed=failed))
            found.append(SetReport(id=id, report=node.report, key_factor=node.key_factor, causality=node.causality))
    return found


# Resynthesize.


async def resynthesize_judgements(
    request: TreeResynthesizeRequest,
    settings: Settings | None = None,
    *,
    watch: EmitEvent = ignore_event,
    tell: Tell = lambda _: None,
) -> TreeEditResult:
    """Repeat outdated rules and judgements of a tree, from the leaves up; the rest is recomputed by arithmetic.

    Costs money if a model has to be asked. If it gives no answer, the old judgement stays and is still stale.
    """
    settings = settings or load_settings()
    tree = read_tree_file(request.tree).tree
    again = _asked_again(tree, request.claims)
    asked = [*dict.fromkeys([*stale_claims(tree), *again])]
    if request.plan:
        planner = _Planner(request=request)
        # Judgements above a repeated one see another number and are repeated too.
        ahead = [id for id in _above(tree, asked) if rule_of(tree.nodes[id]) == "vanilla" and id not in asked]
        every = [*asked, *ahead]
        steps = [planner.judge(id, request.rule or rule_of(tree.nodes[id])) for id in every]
        return _planned(request, tree, [*steps, *_computed(tree, every, every)])
    if not asked:
        version = open_version(request.tree)[1]
        return TreeEditResult(tree=tree, path=request.tree, changes=(), stale=(), version=version)
    async with _open_work(request, _options(request, grounder="plain"), settings, watch, tell) as work:
        # A failed or deliberately repeated judgement is a new question, not one to take from the journal.
        slot = f"{work.about.slot}/rejudge" + (f" {work.version}" if again else "")
        about = replace(work.about, slot=slot)
        done = await rejudge(work.tree, about, work.context, also=again, rule=request.rule, log=work.log)
        failed = [f"{id} could not be judged again: {why}" for id, why in done.failed.items()]
        return _finished(request, work, done.edits, failed, f"judged {', '.join(asked)} anew")


resynthesize_tree = operation(TreeResynthesizeRequest)(resynthesize_judgements)


def _asked_again(tree: Tree, named: Sequence[str]) -> list[str]:
    """Claims that failed, and those that the request names although nothing changed."""
    for id in named:
        if id not in tree.nodes or not tree.nodes[id].children:
            raise InputError(f"{id[:80]} is not a claim with children", hint="foretell tree ground researches leaves")
    failed = [id for id, node in tree.nodes.items() if node.failed and node.children and node.pinned is None]
    return [*dict.fromkeys([*failed, *named])]


def _above(tree: Tree, start: Iterable[str]) -> list[str]:
    return [step.claim for step in _computed(tree, start, ())]
