"""Show the prompts that the models of a run receive.

A question is asked with the run's own forecaster, tools and roles, and with a model that records the request instead of
answering it. No model and no service is contacted.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from foretell.data.http import AsyncHttpClient
from foretell.forecasters.combine.panel import ReasonsPanel
from foretell.forecasters.forecaster import Context, EventLog, Models, attempt, make_forecaster
from foretell.forecasters.news.judge import NewsText, judge_news
from foretell.forecasters.news.revise import PriorForecast, revise_forecast
from foretell.forecasters.prompt.builder import ContextBuildSettings
from foretell.forecasters.prompt.prediction_context import PredictionContext, RankedSource, StoredContexts, known_at
from foretell.forecasters.prompt.summaries import Summariser
from foretell.forecasters.reason.evidence import BlindEstimate, EvidenceItem
from foretell.forecasters.reason.forecaster import ReasonForecaster, Reasoning
from foretell.forecasters.reason.plan import ClaimPlan, PlannedClaim
from foretell.forecasters.reason.scout import ScoutReport
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.case_links import SplitLink, cases_link, spread_of
from foretell.forecasters.tree.cases import HELPS, StatedCases
from foretell.forecasters.tree.forecaster import claim_of_target
from foretell.forecasters.tree.grounders.adaptive import AdaptiveGrounder
from foretell.forecasters.tree.grounders.deep_research import DeepResearchGrounder, SearchServer
from foretell.forecasters.tree.grounders.search import AgentGrounder, PlainGrounder, SearchGrounder
from foretell.forecasters.tree.grow.analyze import ROOT, AnalysisDraft, AnalysisLimits, analyze
from foretell.forecasters.tree.grow.correlations import correlated_claims
from foretell.forecasters.tree.grow.ground import CannotGround, Grounder, GroundingPool, Leaf
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings, TreeQuestion
from foretell.forecasters.tree.grow.synthesize import SynthesisRule, Synthesizer, rule_named
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.forecasters.tree.settings import ThoughtSettings, TreeSettings
from foretell.forecasters.tree.thoughts import Thinker, Thought, ThoughtJob, ThoughtPosition
from foretell.models.budget import Budget, estimate_tokens
from foretell.models.journal import Journal
from foretell.models.model import ModelError, ModelRefused, Reply, Request
from foretell.models.router import ModelRouter
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Forecast, Numeric
from foretell.questions.question import Question, even_chance
from foretell.questions.thresholds import LEVELS, thresholds_of
from foretell.runs.contexts import gathers_sources
from foretell.runs.runner import asks_models, forecaster_of, has_panel
from foretell.runs.runtime import Runtime, forecaster_name, forecaster_options, models_of_run, shown_context
from foretell.runs.services import open_services
from foretell.runs.settings import KEYS, Settings, load_settings
from foretell.runs.spec import RunSpec, SpecPrompt
from foretell.runs.tree_runtime import GroundingOptions, ReasonOptions, ThoughtOptions, TreeOptions
from foretell.tools import web
from foretell.tools.content_filter import Excerpt, LeakVerdict, ModelContentFilter
from foretell.tools.leakage_filter import AdmittedSource, FilteredTools, SourceStore
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import SourceItem, ToolMaterial

Ask = Callable[[Context], Awaitable[Any]]
"""Makes a request to a model of the context."""


async def prompts_of(
    spec: RunSpec,
    question: Question,
    settings: Settings | None = None,
    contexts: Collection[PredictionContext] = (),
) -> tuple[SpecPrompt, ...]:
    """Return the prompts that the models of a run receive about a question: the first one of each role.

    Later prompts of a role depend on what models and tools have returned. Those of the filter, the summariser and the
    grounder are shown with example data.

    Args:
        spec: The run.
        question: One of its questions.
        settings: This machine's; missing keys do not matter.
        contexts: What was gathered for the run's questions beforehand.

    Returns:
        One prompt per role, or none if the forecaster asks no model.

    Raises:
        InputError: If the run has an option or role that cannot be used.
    """
    if not asks_models(spec):
        return ()
    settings = settings or load_settings()
    # Engines are treated as if their keys were set, because nothing is sent.
    keys = {names[0]: "none" for names in KEYS.values()} | dict(settings.keys)
    prompts: list[SpecPrompt] = []
    with closing(Journal(":memory:")) as journal:
        async with AsyncHttpClient() as client, ModelRouter({}, journal=journal) as router:
            roles = models_of_run(spec)
            services = open_services(replace(settings, keys=keys), client, spec.search)
            runtime = Runtime(
                spec=spec,
                models=roles,
                router=router,
                journal=journal,
                services=services,
                budget=Budget("prompts"),
                settings=settings,
                contexts=StoredContexts(contexts or _example_contexts(spec, question)),
            )
            for role, ask in _asks(spec, question):
                recorder = RequestRecorder()
                context = replace(runtime.context(question), models=Models(roles=roles, model=recorder))
                await ask(context)
                for request in recorder.requests[:1]:
                    tokens = estimate_tokens(request).input
                    prompts.append(
                        SpecPrompt(role=role, model=request.model, tokens=tokens, text=request_text(request))
                    )
    return tuple(prompts)


def _asks(spec: RunSpec, question: Question) -> Iterator[tuple[str, Ask]]:
    """Yield the roles of a run with the function that makes their first request."""
    options = make_forecaster(forecaster_name(spec), forecaster_options(spec))
    if isinstance(options, TreeOptions):
        yield from _tree_asks(options, question)
    elif isinstance(options, ThoughtOptions):
        for role, step in THOUGHT_STEPS[options.kind].items():
            yield role, lambda context, step=step: step(_thinker(question, context))
        yield from _grounding_asks(options, question)
    elif isinstance(options, ReasonOptions):
        yield from _reason_asks(options, question)
    elif not hasattr(options, "open"):
        forecaster = shown_context(forecaster_of(options), spec)
        yield "agent", lambda context: attempt(forecaster, question, context)
    if gathers_sources(spec):
        for what in CONTEXT_STEPS:
            yield f"summariser, {what}", lambda context, what=what: ask_for_context(question, context, what)
    yield from _tool_asks(spec, question)
    if spec.questions.typed and spec.mode == "live":  # Only such a question can be watched.
        yield "filter, news of a watched question", lambda context: ask_bearing(question, context)
        yield "agent, update of a watched question", lambda context: ask_revision(question, context)
    if has_panel(spec):
        yield "judge", lambda context: ask_panel(question, context)


def _tree_asks(options: TreeOptions, question: Question) -> Iterator[tuple[str, Ask]]:
    """Yield the requests of the forecaster `tree`."""
    yield "analyzer", lambda context: ask_analyzer(question, context, options)
    if options.correlations:
        yield "judge, correlated claims", lambda context: ask_correlations(question, context)
    yield from _grounding_asks(options, question)
    rule = rule_named(options.rule)
    if isinstance(rule, SynthesisRule):
        yield "synthesizer", lambda context: ask_synthesizer(rule, question, context)


def _reason_asks(options: ReasonOptions, question: Question) -> Iterator[tuple[str, Ask]]:
    """Yield the requests of the forecaster `reason`."""
    reason = ReasonForecaster(settings=options)
    yield "agent, scout", lambda context: attempt(reason, question, context)
    if options.take_apart != "never":
        for role, step in REASON_STEPS.items():
            yield role, lambda context, step=step: step(reason, question, context)


def _tool_asks(spec: RunSpec, question: Question) -> Iterator[tuple[str, Ask]]:
    """Yield the requests of the models behind the tools."""
    if forecaster_options(spec).get("variant") == "zero-shot":
        return
    if spec.mode == "backtest" and spec.leakage_filter:
        yield "filter", lambda context: ask_filter(question, context)
    if spec.search:
        yield "summariser", lambda context: ask_summariser(question, context)


# A model that records requests.


class RequestRecorder:
    """A model that records requests and does not answer."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        """Record the request and raise."""
        self.requests.append(request)
        raise ModelRefused("the prompt was recorded")


def request_text(request: Request) -> str:
    """Return a request as text: its messages, then its tools or schema, each under a heading."""
    parts = [f"----- {type(m).__name__.removesuffix('Message').lower()} -----\n{m.text}" for m in request.messages]
    parts += [f"----- tool {tool.name} -----\n{tool.description}\n{tool.parameters_json}" for tool in request.tools]
    if request.schema is not None:
        parts.append(f"----- schema -----\n{json.dumps(request.schema, ensure_ascii=False)}")
    return "\n\n".join(parts) + "\n"


# The first request of a role, with example data.

FOUND = SourceItem(title="Works are on schedule", text="The mayor said on Friday that works are on schedule.")
CHILDREN = {"r.1": "The works are finished on time.", "r.2": "No court stops the plan."}


def _example_contexts(spec: RunSpec, question: Question) -> list[PredictionContext]:
    """Return a context with one source, if the run gathers sources."""
    source = RankedSource(url="https://example.org/works", title=FOUND.title, summary=FOUND.text)
    as_of = question.as_of_in(spec.mode)
    context = PredictionContext(question=known_at(question, as_of), as_of=as_of, sources=(source,), searcher="example")
    return [context] if gathers_sources(spec) else []


async def ask_filter(question: Question, context: Context) -> None:
    """Ask whether a search result was written after the cutoff."""
    content_filter = ModelContentFilter(model=context.model("filter"), name=context.models.name("filter"))
    await content_filter.judge([Excerpt(title=FOUND.title, text=FOUND.text)], context.as_of, question.text)


async def ask_summariser(question: Question, context: Context) -> None:
    """Ask for a summary of a search result."""
    store = SourceStore()
    finder = _Finder()
    rules = LeakageRules(as_of=context.as_of, question=question)
    name = context.models.name("summariser")
    reader = web.SummarizeResults(sources=store, model=context.model("summariser"), name=name, question=question)
    tools = FilteredTools.around([finder, reader], rules, _KeepExample(), sources=store)
    await tools.use(finder.spec.name, {"query": "works"})
    await tools.use(reader.spec.name, {"ids": ["search_1_result_1"], "question": "When do the works end?"})


async def ask_bearing(question: Question, context: Context) -> None:
    """Ask whether a text bears on a question that is watched."""
    with suppress(ModelError):
        await judge_news(question, [_news_text(context)], context, slot="news")


async def ask_revision(question: Question, context: Context) -> None:
    """Ask what a text changes about the last forecast of a question that is watched."""
    even = dict.fromkeys((t.id for t in question.targets), even_chance(question.exclusivity, len(question.targets)))
    numeric = None if thresholds_of(question) is None else _example_distribution(question)
    prior = PriorForecast(p=even, at=context.as_of.at, reason="Works are on schedule.", distribution=numeric)
    with suppress(ModelError):
        await revise_forecast(question, prior, [_news_text(context)], context, slot="belief")


def _news_text(context: Context) -> NewsText:
    return NewsText(text=f"{FOUND.title}\n{FOUND.text}", url="https://example.org/works", published=context.as_of.at)


class _Finder:
    """A search that returns one result."""

    spec = web.SEARCH_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        return ToolMaterial(heading="Results:", items=(replace(FOUND, published=as_of.at, dating="published"),))


class _KeepExample:
    """A content filter that keeps everything: the text is our own example, and a backtest needs a filter."""

    async def judge(self, excerpts: Sequence[Excerpt], as_of: AsOf, question: str) -> list[LeakVerdict]:
        return [LeakVerdict(word="KEEP", reason="an example")] * len(excerpts)


async def ask_panel(question: Question, context: Context) -> None:
    """Ask for one forecast from the reasons of the trials."""
    even = dict.fromkeys((t.id for t in question.targets), even_chance(question.exclusivity, len(question.targets)))
    trial = Forecast(
        question_id=question.id, forecaster="agent", as_of=context.as_of, p=even, rationale="Works are on schedule."
    )
    await ReasonsPanel().judge(question, [trial], context)


async def ask_analyzer(question: Question, context: Context, settings: TreeSettings) -> None:
    """Ask how the first claim of a tree breaks down."""
    about = _tree_question(question, context)
    draft = AnalysisDraft(Proposition(id="r", claim=about.claim), ClaimSurroundings(), AnalysisLimits())
    await analyze(about, context, settings, draft)


async def ask_grounder(grounder: Grounder, question: Question, context: Context) -> None:
    """Ask for the probability of a leaf."""
    with suppress(ModelError, CannotGround):
        await grounder.ground(_leaf(question, context), context)


def _grounding_asks(options: GroundingOptions, question: Question) -> Iterator[tuple[str, Ask]]:
    """Yield the requests about a leaf: by the run's grounder, or the choice and every grounder that may be chosen."""
    grounders = {grounder.name: grounder for grounder in example_grounders(options.deep_model)}
    chosen = [grounders[options.grounder]] if options.grounder in grounders else []
    if options.grounder == "auto":
        adaptive = AdaptiveGrounder(grounders=grounders)
        yield "judge, choice of grounder", lambda context: ask_grounder(adaptive, question, context)
        chosen = list(grounders.values())
    for grounder in chosen:
        role = "grounder" if len(chosen) == 1 else f"grounder, {grounder.name}"
        yield role, lambda context, grounder=grounder: ask_grounder(grounder, question, context)
        if isinstance(grounder, DeepResearchGrounder):
            yield "judge, probability of a report", lambda context: ask_extraction(question, context)


def example_grounders(deep_model: str | None = None) -> tuple[Grounder, ...]:
    """Return all grounders. Neither a kernel is opened nor the server that a deep-research model searches on."""
    from foretell.forecasters.tree.grounders.notebook import NotebookGrounder
    from foretell.tools.notebook.pool import KernelPool

    deep = DeepResearchGrounder(server=SearchServer("https://search.example"), model=deep_model)
    return PlainGrounder(), SearchGrounder(), AgentGrounder(), deep, NotebookGrounder(pool=KernelPool())


def _leaf(question: Question, context: Context) -> Leaf:
    """Return a leaf of a tree about the question."""
    about = _tree_question(question, context)
    first, second = CHILDREN.values()
    place = ClaimSurroundings(path=(about.claim,), siblings=(second,))
    return Leaf(id="r.1", claim=first, tree_question=about, surroundings=place, slot="r.1")


async def ask_extraction(question: Question, context: Context) -> None:
    """Ask for the probability that a report without one comes down to."""
    with suppress(ModelError):
        await DeepResearchGrounder().extract(FOUND.text, _leaf(question, context), context)


async def ask_correlations(question: Question, context: Context) -> None:
    """Ask which claims move together."""
    with suppress(ModelError):
        await correlated_claims(_tree_question(question, context), context, "r", CHILDREN)


CONTEXT_STEPS = ("searches", "ranking", "summaries")
"""What a summariser is asked for while sources are gathered."""


async def ask_for_context(question: Question, context: Context, what: str) -> None:
    """Ask for one of `CONTEXT_STEPS`."""
    summariser = Summariser(
        model=context.model("summariser"),
        name=context.models.name("summariser"),
        question=question,
        as_of=context.as_of,
        settings=context.models.settings("summariser"),
    )
    page = AdmittedSource(id="search_1_result_1", item=FOUND, shown=FOUND.text, whole=True)
    with suppress(ModelError):
        if what == "searches":
            await summariser.queries(ContextBuildSettings().queries)
        elif what == "ranking":
            await summariser.ranking([page])
        else:
            await summariser.summary(page, FOUND.text)


# The requests of the forecaster `thoughts`.

THOUGHTS = tuple(
    Thought(id=f"T1.1.1.{n}", claim=claim, p=0.7, grounding=Grounding(grounder="search", report=FOUND.text))
    for n, claim in enumerate(CHILDREN.values(), start=1)
)
PLACE = ThoughtPosition(1, 1, 1)


def _thinker(question: Question, context: Context) -> Thinker:
    about = replace(_tree_question(question, context), slot=f"{question.id}/thoughts")
    pool = GroundingPool(PlainGrounder(), ThoughtSettings())
    return Thinker(about=about, context=context, pool=pool, log=EventLog[ThoughtJob]())


async def _next_thoughts(thinker: Thinker) -> None:
    await thinker.next_thoughts((), 2, PLACE)


async def _rated_lines(thinker: Thinker) -> None:
    await thinker.best([(thought,) for thought in THOUGHTS], 1, PLACE)


async def _merged_thoughts(thinker: Thinker) -> None:
    with suppress(ModelError):
        await thinker.merge(THOUGHTS, PLACE)


async def _concluded(thinker: Thinker) -> None:
    with suppress(ModelError):
        await thinker.conclude(THOUGHTS, PLACE)


ThoughtAsk = Callable[[Thinker], Awaitable[None]]
_PROPOSED: Mapping[str, ThoughtAsk] = {"analyzer, next thoughts": _next_thoughts}
_CONCLUDED: Mapping[str, ThoughtAsk] = {"grounder, conclusion": _concluded}
_RATED: Mapping[str, ThoughtAsk] = {**_PROPOSED, "analyzer, rating of lines": _rated_lines}
THOUGHT_STEPS: Mapping[str, Mapping[str, ThoughtAsk]] = {
    "chain": {**_PROPOSED, **_CONCLUDED},
    "tree": {**_RATED, **_CONCLUDED},
    "graph": {**_RATED, "analyzer, merged thought": _merged_thoughts, **_CONCLUDED},
    "forest": {**_RATED, **_CONCLUDED},
}
"""Kind of thoughts → role and step → the function that makes its request."""


async def ask_synthesizer(rule: SynthesisRule, question: Question, context: Context) -> None:
    """Ask how two claims combine."""
    about = _tree_question(question, context)
    grounding = Grounding(grounder="search", report="The mayor says that they are on schedule.", key_factor="schedule")
    below = {id: Proposition(id=id, claim=claim, p=0.7, grounding=grounding) for id, claim in CHILDREN.items()}
    root = Proposition(id="r", claim=about.claim, children=tuple(CHILDREN), causality="Both must be true.")
    synthesizer = Synthesizer(about=about, context=context, settings=TreeSettings(rule=rule.name))
    await synthesizer.synthesize(root, ClaimSurroundings(), below)


# The requests of the forecaster `reason` after its scout, with an example of what the scout found.


def _reasoning(reason: ReasonForecaster, question: Question, context: Context) -> Reasoning:
    """Return the reasoning about a question whose scout found one fact."""
    even = dict.fromkeys((t.id for t in question.targets), even_chance(question.exclusivity, len(question.targets)))
    fact = EvidenceItem(id="E1", fact=FOUND.text, source=FOUND.title, date=context.as_of.at.date().isoformat())
    report = ScoutReport(
        estimate=BlindEstimate(
            p=even,
            distribution=None if thresholds_of(question) is None else _example_distribution(question),
            reason="Works are on schedule.",
        ),
        evidence=(fact,),
        open_questions=("When do the works end?",),
        structure="split" if len(even) > 1 else "all",
        parts=2,
        name=reason.name,
    )
    return Reasoning(forecaster=reason, question=question, context=context, report=report)


def _example_distribution(question: Question) -> Numeric:
    """Return an even distribution over the range of a question, or from 0 to 100."""
    low, high = (question.range.minimum, question.range.maximum) if question.range is not None else (0.0, 100.0)
    return Numeric.from_quantiles({level: low + level * (high - low) for level in LEVELS.values()})


def _example_plan(reasoning: Reasoning) -> ClaimPlan:
    """Return a plan with an answered and an open child."""
    root = PlannedClaim(id=ROOT, claim=reasoning.about().claim, kind="all", children=("P1", "P2"))
    answered, still_open = CHILDREN.values()
    first = PlannedClaim(id="P1", claim=answered, evidence=("E1",))
    return {ROOT: root, "P1": first, "P2": PlannedClaim(id="P2", claim=still_open)}


def _example_tree(reasoning: Reasoning) -> Tree:
    """Return a tree of two judged leaves: both are needed, or with several options they are scenarios."""
    plan = _example_plan(reasoning)
    chance = 0.4 if reasoning.options else 0.7
    grounding = Grounding(grounder="search", report=f"{FOUND.text} (E1)", key_factor="schedule")
    nodes = {id: Proposition(id=id, claim=plan[id].claim, p=chance, grounding=grounding) for id in plan[ROOT].children}
    if reasoning.options:
        even = (1 / len(reasoning.options),) * len(reasoning.options)
        link = SplitLink(options=reasoning.options, then=dict.fromkeys(nodes, even), otherwise=even)
        if reasoning.number is not None and reasoning.report.estimate.distribution is not None:
            spread = spread_of(reasoning.report.estimate.distribution)
            spreads, dates = dict.fromkeys(nodes, spread), reasoning.number.dates
            link = replace(link, spreads=spreads, spread_otherwise=spread, dates=dates)
    else:
        none = dict.fromkeys(nodes, 0.0)
        cases = StatedCases(kind="all", direction=dict.fromkeys(nodes, HELPS), none=0.0, all=0.95, only={**none})
        link = cases_link(cases, dict.fromkeys(nodes, chance))
    root = Proposition(id=ROOT, claim=plan[ROOT].claim, children=tuple(nodes), link=link)
    return evaluated(Tree(root=ROOT, nodes={ROOT: root, **nodes}, as_of=reasoning.context.as_of))


async def ask_plan(reason: ReasonForecaster, question: Question, context: Context) -> None:
    """Ask how the question is taken apart."""
    reasoning = _reasoning(reason, question, context)
    with suppress(ModelError):
        await reasoning.plan(reasoning.about())


async def ask_answered_leaves(reason: ReasonForecaster, question: Question, context: Context) -> None:
    """Ask for the probabilities of leaves that the evidence answers."""
    reasoning = _reasoning(reason, question, context)
    plan = _example_plan(reasoning)
    await reasoning.judge(reasoning.about()).answered(plan[ROOT], [plan["P1"]])


async def ask_open_leaf(reason: ReasonForecaster, question: Question, context: Context) -> None:
    """Ask for the probability of a leaf that is researched."""
    reasoning = _reasoning(reason, question, context)
    plan = _example_plan(reasoning)
    await reasoning.judge(reasoning.about()).research(plan, plan["P2"])


async def ask_cases(reason: ReasonForecaster, question: Question, context: Context) -> None:
    """Ask for the chances of the claim by case, or of all options by scenario."""
    reasoning = _reasoning(reason, question, context)
    tree = _example_tree(reasoning)
    root = replace(tree.nodes[ROOT], link=None, p=None)
    synthesizer = reasoning.synthesizer(reasoning.about(), "split" if reasoning.options else "all", root=True)
    await synthesizer.synthesize(root, ClaimSurroundings(), {id: tree.nodes[id] for id in root.children})


async def ask_reconciliation(reason: ReasonForecaster, question: Question, context: Context) -> None:
    """Ask why tree and direct estimate differ."""
    reasoning = _reasoning(reason, question, context)
    tree, first = _example_tree(reasoning), question.targets[0].id
    await reasoning.reconciler(reasoning.about()).reconcile(tree, reasoning.report.estimate, first)


REASON_STEPS = {
    "analyzer, plan": ask_plan,
    "grounder, answered leaves": ask_answered_leaves,
    "grounder, open leaf": ask_open_leaf,
    "synthesizer, cases": ask_cases,
    "synthesizer, reconciliation": ask_reconciliation,
}
"""Role and step → the function that makes its request."""


def _tree_question(question: Question, context: Context) -> TreeQuestion:
    target = question.targets[0]
    return TreeQuestion(
        question=question, as_of=context.as_of, claim=claim_of_target(question, target), target=target.id
    )
