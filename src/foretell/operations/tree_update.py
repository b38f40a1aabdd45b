"""Bring a tree up to date: research leaves, break a leaf down, and judge outdated rules again."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foretell.forecasters.forecaster import Context, EventLog
from foretell.forecasters.tree.arithmetic.error_bar import leaf_trials, next_trials, root_slopes
from foretell.forecasters.tree.arithmetic.evaluation import stale_claims
from foretell.forecasters.tree.edits import AddNode, Edit, SetGrounding, SetLink, SetReport, ShareNode
from foretell.forecasters.tree.forecaster import CLAIM, TreeForecaster
from foretell.forecasters.tree.grow.ground import GroundingPool, GroundingResult, Leaf, LeafBudget, combined_results
from foretell.forecasters.tree.grow.grow import TreeGrowth, TreeJob
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings, TreeQuestion
from foretell.forecasters.tree.grow.synthesize import USUAL_RULE, rejudge, rule_of
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
from foretell.frozen import frozen
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.number_text import dollars
from foretell.operations.requests.trees import TreeUpdateRequest
from foretell.operations.tree_edit import TreeEditResult, author_name
from foretell.operations.tree_grow import tree_options, tree_spec
from foretell.operations.tree_plan import Planner, TreePlan, claims_above, computed_steps
from foretell.operations.typed_question import leaky_questions_of
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent, ignore_event
from foretell.runs.costs import cost_text
from foretell.runs.runner import check_run, money_notices
from foretell.runs.runtime import TreeOutput, open_runtime
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import RunSpec
from foretell.runs.tree_files import find_tree
from foretell.runs.tree_runtime import TreeOptions, open_forecaster
from foretell.tools.post_cutoff_text import post_cutoff_passages, without_post_cutoff_passages

Tell = Callable[[str], None]
MAX_TRIALS = 1_000
"""Maximum number of trials that `adaptive` buys."""
EXPANSION: Mapping[str, Any] = {"leaves": 6, "nodes": 200, "rule": USUAL_RULE}
"""Default options for breaking down one leaf."""


async def update(
    request: TreeUpdateRequest,
    settings: Settings | None = None,
    *,
    watch: EmitEvent = ignore_event,
    tell: Tell = lambda _: None,
) -> TreeEditResult:
    """Research the leaves of a tree that are stale, failed or named, and judge outdated rules again.

    With `expand`, a leaf is broken into smaller claims instead. Costs money. A leaf that could not be researched keeps
    its number. A rule that could not be judged stays unchanged and stale.
    """
    work = TreeUpdate(request=request, settings=settings or load_settings(), watch=watch, tell=tell)
    return await (work.judge_and_research() if request.expand is None else work.expand(request.expand))


@frozen
class TreeUpdate:
    """One update of a tree."""

    request: TreeUpdateRequest
    settings: Settings
    watch: EmitEvent
    tell: Tell

    @property
    def base(self) -> Mapping[str, Any]:
        """Default options."""
        return EXPANSION if self.request.expand is not None else {}

    def spec(self) -> RunSpec | None:
        """Return the run that works on the tree; None if no model is named."""
        named = self.request.settings().get("models", {}).get("agent")
        return tree_spec(self.request, self.base) if named else None

    def options(self, spec: RunSpec | None) -> TreeOptions:
        """Return the options of the run."""
        stated = {**self.base, **self.request.settings().get("options", {})}
        return tree_options(stated if spec is None else spec.options)

    # Research and judgements.

    async def judge_and_research(self) -> TreeEditResult:
        """Research leaves, then judge again the rules that are out of date."""
        request = self.request
        path = find_tree(request.tree, self.settings)
        tree = read_tree_file(path).tree
        spec = self.spec()
        options, planner = self.options(spec), Planner(spec=spec)
        bought = self._bought(planner, options)
        times = self._times(tree, options, bought)
        again = _judged_again(tree, request.claims)
        scope = {*request.claims, *claims_above(tree, request.claims)} if request.claims else set(tree.nodes)
        judged = list(dict.fromkeys([*(id for id in stale_claims(tree) if id in scope), *again]))
        # A claim judged as a whole is judged again if a claim below it changes.
        ahead = [id for id in claims_above(tree, [*times, *judged]) if rule_of(tree.nodes[id]) == "vanilla"]
        judged = list(dict.fromkeys([*judged, *ahead]))
        rule = request.settings().get("options", {}).get("rule")
        if request.rule is not None and not judged:
            raise InputError("no rule is judged again", column="--rule", hint="name the claims to judge by it")
        if request.plan:
            steps = [planner.research(id, options.grounder, count) for id, count in times.items()]
            steps += [planner.judge(id, rule or rule_of(tree.nodes[id])) for id in judged]
            steps += computed_steps(tree, [*times, *judged])
            return _unchanged(path, tree, plan=TreePlan(steps=tuple(steps)))
        if not times and not judged:
            return _unchanged(
                path, tree, notes=("nothing is stale, failed or open; name claims to update them anyway",)
            )
        spec = spec or tree_spec(request)  # Raises an error: no model is named.
        # Rules are judged without grounders, which may need kernels or keys.
        options = replace(options, trials=1) if times else replace(options, trials=1, grounder="plain", deep_model=None)
        async with self._open(path, spec, options) as work:
            edits, failed = await self._researched(work, times, bought)
            now = resynthesize(work.tree, edits)
            stale = [id for id in stale_claims(now) if id in scope]
            if stale or again:
                # A failed or deliberately repeated judgement must not be taken from the journal.
                slot = f"{work.about.slot}/rejudge" + (f" {work.version}" if again else "")
                about = replace(work.about, slot=slot)
                done = await rejudge(now, about, work.context, also=again, only=scope, rule=rule, log=work.log)
                edits += done.edits
                failed += [f"{id} could not be judged again: {why}" for id, why in done.failed.items()]
            judged = list(dict.fromkeys(edit.id for edit in edits if isinstance(edit, SetLink)))
            return self._finished(path, work, edits, failed, _message(times, judged, bought, options.grounder))

    def _bought(self, planner: Planner, options: TreeOptions) -> int | None:
        """Return how many trials `adaptive` buys; None without it."""
        if self.request.adaptive is None:
            return None
        price = planner.research("", options.grounder, 1).dollars
        if price is None:
            hint = "set it with --set prices.agent=0.5/2"
            raise InputError("the cost of a trial is unknown", column="--adaptive", hint=hint)
        if price == 0:
            raise InputError("a trial costs nothing", column="--adaptive", hint="use --trials")
        count = min(int(self.request.adaptive / price + 1e-9), MAX_TRIALS)
        if count < 1:
            raise InputError(f"a trial costs about {dollars(price)}", column="--adaptive", hint="spend more")
        return count

    def _times(self, tree: Tree, options: TreeOptions, bought: int | None) -> dict[str, int]:
        """Return the leaves to research, and how often each."""
        claims = self.request.claims
        for id in claims:
            if id not in tree.nodes:
                raise InputError(f"{id[:80]} is not in the tree", hint="foretell tree show lists its claims")
        named = [id for id in dict.fromkeys(claims) if not tree.nodes[id].children]
        if not self.request.research:
            if named:
                raise InputError(f"{named[0]} is a leaf, which has no rule to judge", hint="leave out --no-research")
            return {}
        if bought is not None:
            return _distributed(tree, named, bought)
        if not claims:
            named = [id for id in leaves(tree) if tree.nodes[id].stale or tree.nodes[id].p is None]
        return dict.fromkeys(named, options.trials)

    async def _researched(
        self, work: "_TreeWork", times: dict[str, int], bought: int | None
    ) -> tuple[list[Edit], list[str]]:
        """Research leaves; return the edits, and what could not be researched and why."""
        edits: list[Edit] = []
        failed: list[str] = []
        now = work.tree
        # Half of the trials run first. The rest goes to the leaves that reduce the uncertainty of the answer most.
        turns = [None] if bought is None else [part for part in (bought - bought // 2, bought // 2) if part]
        for turn, part in enumerate(turns):
            if part is not None:
                named = [id for id in self.request.claims if not now.nodes[id].children]
                times = _distributed(now, named, part)
            jobs = [_trials(work, id, count, turn=turn) for id, count in times.items()]
            for id, results in zip(times, await asyncio.gather(*jobs), strict=True):
                node = now.nodes[id]
                new = combined_grounding(node, results, keep=bought is not None)
                if new.p is None:
                    failed.append(f"{id} could not be researched: {new.grounding.error}")
                if new.p is not None or node.p is None:
                    edits.append(new)
                    now = resynthesize(now, [new]) if bought is not None else now
        return edits, failed

    # Breaking a leaf down.

    async def expand(self, id: str) -> TreeEditResult:
        """Break a leaf into smaller claims, research and combine them. If that fails, it stays a leaf."""
        path = find_tree(self.request.tree, self.settings)
        tree = read_tree_file(path).tree
        if id not in tree.nodes:
            raise InputError(f"{id[:80]} is not in the tree", hint="foretell tree show lists its claims")
        if tree.nodes[id].children:
            raise InputError(f"{id} has children: only leaves can be broken down", column="--expand")
        stem = "P" if id == "P0" else f"{id}."
        if taken := [other for other in tree.nodes if other != id and other.startswith(stem)]:
            problem = f"{id} cannot be broken down: the ids of its parts are used by {', '.join(taken[:5])}"
            raise InputError(problem, path=path)
        spec = self.spec()
        options = self.options(spec)
        if self.request.plan:
            plan = Planner(spec=spec).growth(id, options)
            return _unchanged(path, tree, plan=TreePlan(steps=(*plan.steps, *computed_steps(tree, [id]))))
        spec = spec or tree_spec(self.request)  # Raises an error: no model is named.
        async with self._open(path, spec, options) as work:
            slot = f"{work.about.slot}/expand {work.version}"
            growth = TreeGrowth(
                about=replace(work.about, claim=work.tree.nodes[id].claim, slot=slot),
                context=work.context,
                pool=work.pool,
                log=work.log,
                settings=work.settings,
                dollars=spec.budget.question,
                root=id,
                above=ClaimSurroundings.of(work.tree.nodes, parents_of(work.tree.nodes), id),
            )
            grown = await growth.run()
            edits = grafted(grown)
            failed = [] if edits else [f"{id} stays a leaf: {'; '.join(grown.notes) or 'nothing was added to it'}"]
            return self._finished(path, work, edits, failed, f"broke down {id}")

    # Opening a tree for models to work on.

    @asynccontextmanager
    async def _open(self, path: Path, spec: RunSpec, options: TreeOptions) -> "AsyncGenerator[_TreeWork]":
        request, settings = self.request, self.settings
        tree, version = open_version(path)
        if request.base_version is not None and request.base_version != version:
            raise InputError(
                f"is at version {version}, not at {request.base_version}",
                path=path,
                hint=f"see what changed with foretell tree log {path} --diff {request.base_version}..",
            )
        as_of = _as_of(request, tree)
        spec = replace(spec, mode=as_of.mode)
        check_run(spec, settings)
        for notice in money_notices(spec):
            self.tell(notice)
        question = _question(request, tree, as_of)
        tree, question = _early_words(request, path, tree, question, as_of)
        settings.home.mkdir(parents=True, exist_ok=True)
        with closing(Journal(settings.journal)) as journal:
            async with open_runtime(spec, settings, journal, limits=options.limits()) as plain:
                runtime = replace(plain, trees=TreeOutput(file=path, watch=self.watch))
                async with open_forecaster(options, runtime) as (forecaster, runtime):
                    assert isinstance(forecaster, TreeForecaster)
                    context = replace(runtime.context(question), as_of=as_of)
                    slot = f"{question.id}/trial {context.trial}"
                    about = TreeQuestion(question=question, as_of=as_of, target="yes", slot=slot)
                    log = EventLog[TreeJob](self.watch)
                    yield _TreeWork(
                        tree=tree, version=version, about=about, context=context, forecaster=forecaster, log=log
                    )

    def _finished(
        self, path: Path, work: "_TreeWork", edits: Sequence[Edit], failed: Sequence[str], message: str
    ) -> TreeEditResult:
        """Commit the edits, merged with changes of others in the meantime, and return the result."""
        live = work.context.as_of if work.context.as_of.mode == "live" and edits else None
        usage: Cost = work.log.usage()
        author = TreeAuthor(
            name=author_name(self.request.author),
            message=self.request.message or message,
            models=work.log.models(),
            cost=usage,
        )
        done: TreeCommit = commit_edits(path, edits, author, base=work.version, as_of=live)
        return TreeEditResult(
            tree=done.after,
            path=path,
            changes=tuple(claim_changes(done.before, done.after)),
            stale=tuple(stale_claims(done.after)),
            version=done.version,
            merged=done.merged,
            failed=tuple(failed),
            notes=(cost_text(usage, Money(billed=usage.dollars, reused=usage.reused)),) if usage.calls else (),
        )


def _unchanged(path: Path, tree: Tree, *, plan: TreePlan | None = None, notes: tuple[str, ...] = ()) -> TreeEditResult:
    stale = tuple(stale_claims(tree))
    return TreeEditResult(tree=tree, path=path, changes=(), stale=stale, plan=plan, notes=notes)


def _message(times: Collection[str], judged: Sequence[str], bought: int | None, grounder: str) -> str:
    """Return what was done, for the history."""
    parts: list[str] = []
    if bought is not None:
        parts.append(f"{bought} more trials where they reduce the uncertainty most")
    elif times:
        parts.append(f"researched {', '.join(times)} by {grounder}")
    if judged:
        parts.append(f"judged {', '.join(judged)} again")
    return "; ".join(parts)


def _distributed(tree: Tree, named: Sequence[str], count: int) -> dict[str, int]:
    """Distribute trials over the leaves: leaf → number of trials."""
    trials = {id: estimates for id, estimates in leaf_trials(tree).items() if not named or id in named}
    if not trials:
        raise InputError("no leaf has a probability yet", hint="research them first, without --adaptive")
    distribution = next_trials(root_slopes(tree), trials, count)
    return {id: times for id, times in distribution.items() if times}


def _judged_again(tree: Tree, named: Sequence[str]) -> list[str]:
    """Return claims with children that are judged although nothing changed: those named, or else those failed."""
    if named:
        return [id for id in dict.fromkeys(named) if id in tree.nodes and tree.nodes[id].children]
    return [id for id, node in tree.nodes.items() if node.failed and node.children and node.pinned is None]


@frozen
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
        forecaster = self.forecaster
        return GroundingPool(forecaster.grounder, forecaster.settings, forecaster.fall_backs)

    @property
    def settings(self) -> TreeSettings:
        return self.forecaster.settings


def _question(request: TreeUpdateRequest, tree: Tree, as_of: AsOf) -> Question:
    """Return the root's claim as a question. The request may override the tree's criteria and closing date."""
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


def _early_words(
    request: TreeUpdateRequest, path: Path, tree: Tree, question: Question, as_of: AsOf
) -> tuple[Tree, Question]:
    """Return the tree and its question for models. As of a past date, they contain no text that was written later.

    With `redact`, post-cutoff passages are replaced by a mark; the file is unchanged. Otherwise, they are an error.
    """
    if as_of.mode != "backtest" or leaky_questions_of(request) == "keep":
        return tree, question
    if leaky_questions_of(request) == "redact":
        nodes = {id: _cut_node(node, question, as_of) for id, node in tree.nodes.items()}
        return replace(tree, nodes=nodes), without_post_cutoff_passages(question, as_of)
    words: list[tuple[str, Question]] = []
    for node in tree.nodes.values():
        grounding = node.grounding or Grounding()
        texts = (node.claim, node.causality, node.key_factor, node.report, grounding.key_factor, grounding.report)
        words += [(node.id, replace(question, text=text, criteria="")) for text in texts if text]
    for id, worded in (*words, ("", question)):
        if passages := post_cutoff_passages(worded, as_of):
            where = f"claim {id}" if id else "the tree's question"
            first = f"“{passages[0].found}” in “{passages[0].sentence}”"
            problem = f"{where} contains text from after {as_of.at:%Y-%m-%d}: {first}"
            hint = "edit the claim with foretell tree edit, or use --set questions.leaky_questions=redact (or keep)"
            raise InputError(problem, path=path, hint=hint)
    return tree, question


def _cut_node(node: Proposition, question: Question, as_of: AsOf) -> Proposition:
    def cut(text: str) -> str:
        return without_post_cutoff_passages(replace(question, text=text, criteria=""), as_of).text if text else text

    grounding = node.grounding
    return replace(
        node,
        claim=cut(node.claim),
        causality=cut(node.causality),
        key_factor=cut(node.key_factor),
        report=cut(node.report),
        grounding=grounding and replace(grounding, key_factor=cut(grounding.key_factor), report=cut(grounding.report)),
    )


def _as_of(request: TreeUpdateRequest, tree: Tree) -> AsOf:
    """Return the date to work as of: the one given, that of a backtest tree, or now."""
    if request.as_of:
        return AsOf.day(request.as_of) if len(request.as_of) == 10 else AsOf(at=instant(request.as_of))
    if tree.as_of is not None and tree.as_of.mode == "backtest":
        return tree.as_of
    return AsOf(at=datetime.now(UTC).replace(microsecond=0), mode="live")


async def _trials(work: _TreeWork, id: str, trials: int, *, turn: int = 0) -> list[GroundingResult]:
    """Estimate one leaf several times, independently."""
    context = replace(work.context, emit=work.log.job(("grounding", f"{id} {turn}" if turn else id)))
    place = ClaimSurroundings.of(work.tree.nodes, parents_of(work.tree.nodes), id)
    grounding_results: list[GroundingResult] = []
    for trial in range(turn * MAX_TRIALS, turn * MAX_TRIALS + trials):
        leaf = Leaf(
            id=id,
            claim=work.tree.nodes[id].claim,
            tree_question=work.about,
            surroundings=place,
            # Each version and trial has its own estimate.
            slot=f"{work.about.slot}/{id}/grounding {work.version}.{trial}",
            budget=LeafBudget(),
        )
        grounding_results.append(await work.pool.ground(leaf, replace(context, trial=trial)))
    return grounding_results


def combined_grounding(node: Proposition, results: Sequence[GroundingResult], *, keep: bool = False) -> SetGrounding:
    """Combine several estimates of a leaf into one edit; with `keep`, earlier ones count too."""
    earlier: tuple[float, ...] = ()
    if keep and node.p is not None:
        earlier = (node.grounding.trials if node.grounding is not None else ()) or (node.p,)
    combined = combined_results(results, earlier)
    return SetGrounding(id=node.id, p=combined.p, grounding=combined.grounding)


def grafted(grown: Tree) -> list[Edit]:
    """Turn a subtree grown from a leaf into edits of the tree around it; none if it has no probability."""
    top = grown.nodes[grown.root]
    if not top.children or top.link is None:
        return []
    up = parents_of(grown.nodes)
    edits: list[Edit] = []
    for id in pre_order(grown.nodes, grown.root)[1:]:
        node = grown.nodes[id]
        bare = replace(node, children=(), link=None, p=None if node.children else node.p, incomplete=())
        edits.append(AddNode(parent=up[id][0], node=replace(bare, rule="", failed="", report="", key_factor="")))
    for id, above in up.items():
        edits += [ShareNode(id=id, parent=parent) for parent in above[1:]]
    for id in pre_order(grown.nodes, grown.root):
        node = grown.nodes[id]
        if node.children:
            failed = node.failed or ("none of its children has a probability" if node.link is None else "")
            edits.append(SetLink(id=id, link=node.link or AverageLink(), rule=rule_of(node), failed=failed))
            edits.append(SetReport(id=id, report=node.report, key_factor=node.key_factor, causality=node.causality))
    return edits
