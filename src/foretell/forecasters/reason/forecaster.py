"""The forecaster `reason`: scout, take apart where it helps, judge the leaves, state cases, and reconcile."""

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from time import monotonic

from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.agent.settings import AgentSettings
from foretell.forecasters.combine.clamp import Clamp
from foretell.forecasters.combine.distributions import reconciled_distribution
from foretell.forecasters.forecaster import Context, UsageMeter, forecast_of
from foretell.forecasters.reason.evidence import BlindEstimate, evidence_list
from foretell.forecasters.reason.leaves import LeafJudge
from foretell.forecasters.reason.outside import known_before_research
from foretell.forecasters.reason.plan import DEEPEST, SPLIT, ClaimPlan, PlannedClaim, PlanReader, plan_tree
from foretell.forecasters.reason.reconcile import ReconciledTree, Reconciler, must_reconcile
from foretell.forecasters.reason.scout import SCOUT, Scout, ScoutReport
from foretell.forecasters.reason.settings import SHARES, ReasonSettings
from foretell.forecasters.reason.take_apart import conditions, grows_the_tree, uncertainty
from foretell.forecasters.series.forecasters import Auto, value_known
from foretell.forecasters.tree.arithmetic.error_bar import error_bar
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.case_checks import scaled_scenarios
from foretell.forecasters.tree.case_links import CasesLink, SplitLink
from foretell.forecasters.tree.cases import cases_in_words, kind_in_words
from foretell.forecasters.tree.closing import root_children
from foretell.forecasters.tree.forecaster import StoreTree, claim_of_target, targets_to_analyze, tree_summary
from foretell.forecasters.tree.grounders.search import SearchGrounder
from foretell.forecasters.tree.grow.analyze import ROOT
from foretell.forecasters.tree.grow.ground import Grounder, GroundingPool, GroundingResult
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings, TreeQuestion
from foretell.forecasters.tree.grow.synthesize import Synthesizer
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.parts import numbers_in_words
from foretell.forecasters.tree.proposition import Proposition, Tree, TreeOrigin, post_order
from foretell.forecasters.tree.settings import TreeSettings
from foretell.forecasters.tree.tree_file import to_dict, tree_to_dict
from foretell.frozen import frozen
from foretell.models.structured_output import NoUsableAnswer
from foretell.number_text import brief_percent
from foretell.questions.forecast import (
    NOT_TAKEN_APART,
    Forecast,
    Numeric,
    Reconciliation,
    distribution_gap,
    gap_between,
)
from foretell.questions.question import Question, scaled
from foretell.questions.trace import (
    ForecastMade,
    ModelCalled,
    NodeAnalyzed,
    NodeSynthesized,
    TraceEvent,
    TreeGrown,
)
from foretell.tools.reading import GUIDED

OPTIONS = "options"
"""Name of the tree of a question with several options."""
SCENARIOS_OF_NUMBER = (
    f"It asks for a number or a date, so {ROOT} is a {SPLIT} into scenarios, in each of which the number is then "
    "estimated. Scenarios are not taken apart."
)
"""What the planner is told about a number in place of its structure."""
NOT_COMBINED = "The claims below could not be combined into one value, so the answer is the direct estimate alone."


@frozen
class ReasonForecaster:
    """Researches first, estimates directly, and takes the question apart where that helps."""

    settings: ReasonSettings = field(default_factory=ReasonSettings)
    dollars: float | None = None
    """Budget per question, in dollars; None for no limit."""
    grounder: Grounder | None = None
    """Researches open leaves; None for search."""
    fall_backs: tuple[Grounder, ...] = ()
    """Grounders to try, in order, after the main one has failed."""
    store_tree: StoreTree | None = None
    """Called with every finished tree, in addition to the event that holds it."""
    run: str = ""
    """Id of the run, recorded in the tree's origin."""

    @property
    def name(self) -> str:
        """Name shown in tables."""
        return self.settings.name

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return one probability for every target. Raises `CannotForecast` if none was ever stated."""
        began, meter, models = monotonic(), UsageMeter(context.emit), dict[str, None]()

        def emit(event: TraceEvent) -> None:
            if isinstance(event, ModelCalled):
                models[f"{event.role}={event.model}"] = None
            meter(event)

        own = replace(context, emit=emit)
        scout = self._scout(await known_before_research(question, own), own.trials)
        report = await scout.series_report(question, own)
        if report is None:
            trial = scout.trial(question, own)
            report = scout.report(trial, await trial.run())
            own.emit(report.found)
        known = conditions(report, question, own, self.settings, self.dollars)
        if own.trials > 1 and all(condition.holds for condition in known):
            report = report.with_others(await own.evidence_of_others(question))
        known += uncertainty(report, self.settings)
        against = [condition.text for condition in known if not condition.holds]
        if against:
            forecast = self._direct(question, own, report, against)
        else:
            why = tuple(condition.text for condition in known)
            reasoning = Reasoning(forecaster=self, question=question, context=own, report=report, why=why)
            forecast = await reasoning.forecast(models)
        usage = replace(meter.usage, seconds=monotonic() - began)
        return replace(forecast, usage=usage, value=await value_known(question, own))

    def _scout(self, known: str, trials: int) -> Scout:
        """Return the scout; its first prompt holds what is known before research. The trials share its budget."""
        clamp = Clamp.read(self.settings.clamp)
        share = 1.0 if self.settings.take_apart == "never" else SHARES["scout"]
        return Scout(
            variant=replace(SCOUT, calls=self.settings.scout_calls),
            settings=AgentSettings(steps=self.settings.scout_replies, seconds=self.settings.seconds, clamp=clamp),
            dollars=None if self.dollars is None else share * self.dollars / trials,
            bypass={source: Auto() for source in self.settings.series_sources},
            extra=known,
            label=self.name,
        )

    def _direct(self, question: Question, context: Context, report: ScoutReport, against: list[str]) -> Forecast:
        """Return the direct estimate alone."""
        p = Clamp.read(self.settings.clamp).apply(report.estimate.p, question.exclusivity)
        context.emit(ForecastMade(p=p, how=report.how))
        text = report.rationale
        if self.settings.take_apart != "never" and not report.by_series and grows_the_tree(context):
            text = f"{NOT_TAKEN_APART}{'; '.join(against)}.\n\n{text}"
        return forecast_of(
            p,
            question,
            context,
            report.name,
            text,
            distribution=report.estimate.distribution,
            ending=report.ending,
            problem=report.problem,
        )


@frozen
class Reasoning:
    """Takes one question apart."""

    forecaster: ReasonForecaster
    question: Question
    context: Context
    report: ScoutReport
    why: tuple[str, ...] = ()
    """Why it is taken apart."""

    @property
    def settings(self) -> ReasonSettings:
        """The forecaster's settings."""
        return self.forecaster.settings

    @property
    def several(self) -> bool:
        """Whether one tree answers several options."""
        return len(targets_to_analyze(self.question, shortcut=self.settings.shortcut)) > 1

    @cached_property
    def number(self) -> AnswerFormat | None:
        """The form of the answer, if the question is about a number or a date."""
        form = AnswerFormat.of(self.question, never=True)
        return form if form.thresholds is not None else None

    @cached_property
    def direct(self) -> BlindEstimate:
        """The direct estimate of all trials; the chances of thresholds follow from the distribution of their number."""
        estimate = self.report.of_all
        if self.number is None or estimate.distribution is None:
            return estimate
        return replace(estimate, p=self.number.chances(estimate.distribution))

    @property
    def options(self) -> tuple[str, ...]:
        """The options, or the thresholds of a number, that one tree answers; empty for a single claim."""
        return tuple(target.id for target in self.question.targets) if self.several or self.number else ()

    def about(self) -> TreeQuestion:
        """Return the question as the tree's requests state it."""
        first = self.question.targets[0]
        name = OPTIONS if self.options else first.id
        claim = f"The answer to: {self.question.text}" if self.options else claim_of_target(self.question, first)
        return TreeQuestion(
            question=self.question,
            as_of=self.context.as_of,
            claim=claim,
            target=name,
            slot=f"{self.question.id}/trial {self.context.trial}/reason {name}",
            whole=self.several and self.number is None,
        )

    async def forecast(self, models: Mapping[str, None]) -> Forecast:
        """Plan, judge, combine and reconcile."""
        about = self.about()
        try:
            plan = await self.plan(about)
        except NoUsableAnswer as error:
            return self._without_tree(f"no plan: {error}")
        judge = self.judge(about)
        tree = await self._tree(about, plan, judge)
        reconciled, result = await self._reconciled(about, tree)
        return self._finished(about, reconciled, result, models)

    async def plan(self, about: TreeQuestion) -> ClaimPlan:
        """Ask for a plan on the basis of what the scout found."""
        report = self.report
        reader = PlanReader(
            claim=about.claim,
            evidence=frozenset(item.id for item in report.evidence),
            most=self.settings.children,
            options=bool(self.options),
            deepest=DEEPEST if self.number is None else 1,
        )
        structure = report.structure if report.structure != "single" else ""
        known = (
            ("Evidence found so far", evidence_list(report.evidence, self.settings.evidence_tokens)),
            ("Still open", "\n".join(f"- {text}" for text in report.open_questions)),
            ("How it seems to be built", structure if self.number is None else SCENARIOS_OF_NUMBER),
        )
        plan = await plan_tree(about, self.context, reader, known)
        for planned in plan.values():
            if planned.children:
                claims = {id: plan[id].claim for id in planned.children}
                self.context.emit(
                    NodeAnalyzed(node=planned.id, tree=about.target, added=planned.children, claims=claims)
                )
        return plan

    def judge(self, about: TreeQuestion) -> LeafJudge:
        """Return what judges the leaves."""
        forecaster = self.forecaster
        grounder = forecaster.grounder or SearchGrounder(steps=self.settings.leaf_rounds, reading=GUIDED)
        return LeafJudge(
            about=about,
            context=self.context,
            pool=GroundingPool(grounder, self.settings, forecaster.fall_backs),
            evidence=self.report.evidence,
            evidence_tokens=self.settings.evidence_tokens,
            dollars=None if forecaster.dollars is None else SHARES["leaves"] * forecaster.dollars,
        )

    # Leaves and cases.

    async def _tree(self, about: TreeQuestion, plan: ClaimPlan, judge: LeafJudge) -> Tree:
        """Judge the leaves, then combine every parent, children first."""
        results = await judge.judge(plan)
        nodes = {id: _proposition(planned, results.get(id)) for id, planned in plan.items()}
        draft = Tree(root=ROOT, nodes=nodes, as_of=self.context.as_of)
        for id in post_order(draft):
            if plan[id].children:
                nodes |= _scaled_scenarios(plan[id], nodes)
                nodes[id] = await self._combined(about, plan, nodes, id, judge)
        notes = [f"{id}: {note}" for id, node in nodes.items() for note in node.notes]
        return evaluated(replace(draft, nodes=nodes, notes=tuple(notes)))

    async def _combined(
        self, about: TreeQuestion, plan: ClaimPlan, nodes: Mapping[str, Proposition], id: str, judge: LeafJudge
    ) -> Proposition:
        """State the cases of one claim. If that fails, the root takes the direct estimate, others are researched."""
        planned = plan[id]
        synthesizer = self.synthesizer(about, planned.kind, root=id == ROOT)
        below = {child: replace(nodes[child], children=(), link=None) for child in planned.children}
        node = await synthesizer.synthesize(nodes[id], ClaimSurroundings(), below)
        if node.failed or node.link is None:
            p = self._first_direct() if id == ROOT else (await judge.research(plan, planned)).p
            reason = node.failed or "none of its children has a probability"
            reason = reason.replace("the mean of the children", "a direct estimate")
            node = replace(node, link=JudgedLink(p=0.5 if p is None else p), p=p, failed=reason)
        link = to_dict(node.link) if node.link is not None else {}
        self.context.emit(NodeSynthesized(node=id, tree=about.target, p=node.p, link=link, notes=node.notes))
        return node

    def synthesizer(self, about: TreeQuestion, kind: str, *, root: bool = False) -> Synthesizer:
        """Return what states the cases of a claim of this kind."""
        return Synthesizer(
            about=about,
            context=self.context,
            settings=TreeSettings(rule=SPLIT if kind == SPLIT else "cases"),
            options=self.options if root else (),
            number=self.number if root else None,
            known=(("Evidence found so far", evidence_list(self.report.evidence, self.settings.evidence_tokens)),),
        )

    def reconciler(self, about: TreeQuestion) -> Reconciler:
        """Return what asks why tree and direct estimate differ."""
        return Reconciler(
            about=about,
            context=self.context,
            settings=self.settings,
            evidence=self.report.evidence,
            number=self.number,
        )

    def _first_direct(self) -> float:
        return self.direct.p[self.question.targets[0].id]

    # Reconciliation and the answer.

    def _values(self, tree: Tree) -> dict[str, float]:
        """Return the tree's value for each target; the direct estimate if the root took it."""
        root = tree.nodes[tree.root]
        if self.options:
            return dict(root.row) or dict(self.direct.p)
        first, *others = (target.id for target in self.question.targets)
        p = self._first_direct() if root.p is None else root.p
        return {first: p, **{target: 1 - p for target in others}}

    def _distribution(self, tree: Tree) -> Numeric | None:
        """Return the tree's distribution of a number; None for other questions, and if the root took the estimate."""
        link = tree.nodes[tree.root].link
        mixture = link.mixture(root_children(tree)) if isinstance(link, SplitLink) else None
        return mixture if mixture is None or self.number is None else self.number.cut(mixture)

    def _gap(self, reconciled: ReconciledTree) -> float:
        """Return how far tree and direct estimate are apart."""
        tree, direct = self._distribution(reconciled.tree), reconciled.distribution
        if tree is not None and direct is not None:
            return distribution_gap(tree, direct)
        return gap_between(self._values(reconciled.tree), reconciled.direct)

    def _compared(self, tree: Tree) -> str:
        """Return the target that reconciliation is about: the one with the largest gap, of a number the most even."""
        direct, values = self.direct.p, self._values(tree)
        if self.number is not None:
            return min(direct, key=lambda id: abs(direct[id] - 0.5))
        return max(direct, key=lambda id: gap_between({id: values[id]}, {id: direct[id]}))

    async def _reconciled(self, about: TreeQuestion, tree: Tree) -> tuple[ReconciledTree, Reconciliation]:
        estimate = self.direct
        reconciled = ReconciledTree(tree=tree, direct=estimate.p, distribution=estimate.distribution)
        failed = bool(tree.nodes[tree.root].failed)
        asked = (self._gap(reconciled) > self.settings.gap or must_reconcile(tree)) and not failed
        if asked:
            reconciled = await self.reconciler(about).reconcile(tree, estimate, self._compared(tree))
        values, direct = self._values(reconciled.tree), reconciled.direct
        gap = self._gap(reconciled)
        clamp, bar = Clamp.read(self.settings.clamp), error_bar(reconciled.tree)
        root = reconciled.tree.nodes[reconciled.tree.root].link
        return reconciled, Reconciliation(
            tree=clamp.apply(values, self.question.exclusivity),
            direct=clamp.apply(direct, self.question.exclusivity),
            gap=gap,
            changes=reconciled.changes,
            apart=gap > self.settings.gap,
            own=clamp.apply(self.report.estimate.p, self.question.exclusivity) if self.report.others else None,
            own_distribution=self.report.estimate.distribution if self.report.others else None,
            trials=1 + len(self.report.others),
            limit=self.settings.gap,
            asked=asked,
            error=0.0 if bar is None else bar.sd,
            weight=self.settings.tree_weight,
            kind="" if root is None else root.kind,
            report=reconciled.report,
            tree_distribution=self._distribution(reconciled.tree),
            direct_distribution=reconciled.distribution,
            why=self.why,
        )

    def _finished(
        self, about: TreeQuestion, reconciled: ReconciledTree, result: Reconciliation, models: Mapping[str, None]
    ) -> Forecast:
        question, failed = self.question, reconciled.tree.nodes[reconciled.tree.root].failed
        # Without usable cases the tree has no value of its own that could agree with the direct estimate.
        both = None if failed else result
        own = self.report.estimate
        p, distribution = Clamp.read(self.settings.clamp).apply(own.p, question.exclusivity), own.distribution
        if both is not None:
            p, distribution = scaled(both.combined(), question.exclusivity), both.direct_distribution
            if self.number is not None and distribution is not None:
                distribution = reconciled_distribution(both, distribution)
                p = self.number.chances(distribution)
        summary = NOT_COMBINED if both is None else reconciliation_text(reconciled.tree, both, p)
        tree = replace(reconciled.tree, origin=self._origin(models, both))
        if self.forecaster.store_tree is not None:
            self.forecaster.store_tree(question, self.context.trial, about.target, tree)
        self.context.emit(TreeGrown(tree=about.target, document=tree_to_dict(tree)))
        how = self.report.how if both is None else f"tree and direct estimate, {both.verdict}"
        self.context.emit(ForecastMade(p=p, how=how))
        text = "\n\n".join([summary, self.report.rationale, tree_summary(tree)])
        ending = "fallback" if failed else self.report.ending
        return forecast_of(
            p,
            question,
            self.context,
            self.report.name,
            text,
            distribution=distribution,
            ending=ending,
            problem=failed or self.report.problem,
            reconciliation=both,
        )

    def _without_tree(self, problem: str) -> Forecast:
        """Return the direct estimate, marked as a fallback, because no tree could be grown."""
        p = Clamp.read(self.settings.clamp).apply(self.report.estimate.p, self.question.exclusivity)
        self.context.emit(ForecastMade(p=p, how=self.report.how))
        text = f"{NOT_TAKEN_APART}{problem}.\n\n{self.report.rationale}"
        return forecast_of(
            p,
            self.question,
            self.context,
            self.report.name,
            text,
            distribution=self.report.estimate.distribution,
            ending="fallback",
            problem=problem,
        )

    def _origin(self, models: Mapping[str, None], both: Reconciliation | None) -> TreeOrigin:
        question = self.question
        closes = question.closes_at or question.targets[0].resolves_at
        return TreeOrigin(
            question=question.text,
            criteria=question.criteria,
            closes=closes.date().isoformat() if closes is not None else "",
            url=question.url,
            run=self.forecaster.run,
            grounder=self.forecaster.grounder.name if self.forecaster.grounder else "search",
            rule="cases",
            models=tuple(sorted(models)),
            reconciliation=both,
        )


def _proposition(planned: PlannedClaim, result: GroundingResult | None) -> Proposition:
    kind = f"{kind_in_words(planned.kind)}; " if planned.kind and planned.kind not in (SPLIT, "at_least") else ""
    node = Proposition(
        id=planned.id,
        claim=planned.claim,
        children=planned.children,
        causality=f"{planned.kind}: {kind}{planned.why}" if planned.kind else "",
    )
    return node if result is None else replace(node, p=result.p, grounding=result.grounding, notes=result.notes)


def _scaled_scenarios(planned: PlannedClaim, nodes: Mapping[str, Proposition]) -> dict[str, Proposition]:
    """Return the scenarios of a claim, scaled if they add up to more than 1, with a note; empty if nothing changes."""
    if planned.kind != SPLIT:
        return {}
    before = {id: nodes[id].p or 0.0 for id in planned.children}
    after, why = scaled_scenarios(before)
    if after is before:
        return {}
    notes = {id: (f"scaled from {brief_percent(p)}: {why}",) if why else () for id, p in before.items()}
    return {id: replace(nodes[id], p=p, notes=(*nodes[id].notes, *notes[id])) for id, p in after.items()}


def reconciliation_text(tree: Tree, result: Reconciliation, p: Mapping[str, float]) -> str:
    """Return the lines that head an answer: both values, whether they agree, what was changed, and the cases."""
    lines: list[str] = []
    root = tree.nodes[tree.root]
    if numbers := numbers_in_words(tree, result):
        lines.append(numbers)
    for target, value in p.items():
        name = f"{target}: " if len(p) > 1 else ""
        lines.append(f"{name}{brief_percent(value)} from {result.in_words(target)}")
    lines += [f"Changed: {change}" for change in result.changes]
    lines += [f"On the difference: {result.report}"] if result.report else []
    if isinstance(root.link, CasesLink):
        kind = kind_in_words(root.link.kind, root.link.stated.k)
        lines.append(f"Of {', '.join(root.children)}, {kind}. {cases_in_words(root.link.stated)}")
    return "\n".join(lines)
