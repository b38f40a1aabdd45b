"""Show the prompts that the models of a run receive.

Nothing is duplicated here: a question is asked with the run's own forecaster, tools and roles, and a model that records
the request instead of answering it. No model and no service is contacted.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from foretell.data.http import AsyncHttpClient
from foretell.forecasters.combine.aggregate import ReasonsPanel
from foretell.forecasters.forecaster import Context, Models, attempt, make_forecaster
from foretell.forecasters.tree.forecaster import claim_of_target
from foretell.forecasters.tree.grounders.search import AgentGrounder, PlainGrounder, SearchGrounder
from foretell.forecasters.tree.grow.analyze import AnalysisDraft, AnalysisLimits, analyze
from foretell.forecasters.tree.grow.ground import CannotGround, Grounder, Leaf
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings, TreeQuestion
from foretell.forecasters.tree.grow.synthesize import SynthesisRule, Synthesizer, rule_named
from foretell.forecasters.tree.proposition import Grounding, Proposition
from foretell.forecasters.tree.settings import TreeSettings
from foretell.models.budget import Budget, estimate_tokens
from foretell.models.journal import Journal
from foretell.models.model import ModelError, ModelRefused, Reply, Request
from foretell.models.router import ModelRouter
from foretell.operations.run_plan import SpecPrompt
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, even_chance
from foretell.runs.runner import asks_models, forecaster_of, has_panel
from foretell.runs.runtime import Runtime, forecaster_name, forecaster_options, models_of_run, shown_context
from foretell.runs.services import open_services
from foretell.runs.settings import KEYS, Settings, load_settings
from foretell.runs.spec import RunSpec
from foretell.runs.tree_runtime import TreeOptions
from foretell.tools import web
from foretell.tools.fence import FencedTools, SourceStore
from foretell.tools.leak_filter import Excerpt, LeakFilter, LeakVerdict
from foretell.tools.rules import FenceRules
from foretell.tools.tool import SourceItem, ToolMaterial

Ask = Callable[[Context], Awaitable[Any]]
"""Makes a request to a model of the context."""


async def prompts_of(spec: RunSpec, question: Question, settings: Settings | None = None) -> tuple[SpecPrompt, ...]:
    """Return the prompts that the models of a run receive about a question: the first one of each role.

    Later prompts of a role depend on what models and tools have returned; those of the filter, the summariser and the
    grounder are shown with an example of that.

    Args:
        spec: The run.
        question: One of its questions.
        settings: This machine's; missing keys do not matter.

    Returns:
        One prompt per role, or none if the forecaster asks no model.

    Raises:
        InputError: If the run has an option or role that cannot be used.
    """
    if not asks_models(spec):
        return ()
    settings = settings or load_settings()
    # The tools of an engine are offered as if its key were set: nothing is ever sent.
    keys = {names[0]: "none" for names in KEYS.values()} | dict(settings.keys)
    prompts: list[SpecPrompt] = []
    async with AsyncHttpClient() as client, ModelRouter({}, journal=Journal(":memory:")) as router:
        roles = models_of_run(spec)
        services = open_services(replace(settings, keys=keys), client, spec.search)
        budget, journal = Budget("prompts"), Journal(":memory:")
        runtime = Runtime(
            spec=spec,
            models=roles,
            router=router,
            journal=journal,
            services=services,
            budget=budget,
            settings=settings,
        )
        for role, ask in _asks(spec, question, runtime):
            recorder = RequestRecorder()
            context = replace(runtime.context(question), models=Models(roles=roles, model=recorder))
            await ask(context)
            for request in recorder.requests[:1]:
                tokens = estimate_tokens(request).input
                prompts.append(SpecPrompt(role=role, model=request.model, tokens=tokens, text=request_text(request)))
        journal.close()
    return tuple(prompts)


def _asks(spec: RunSpec, question: Question, runtime: Runtime) -> Iterator[tuple[str, Ask]]:
    """Yield the roles of a run with the function that makes their first request."""
    made = make_forecaster(forecaster_name(spec), forecaster_options(spec))
    if isinstance(made, TreeOptions):
        yield "analyzer", lambda context: ask_analyzer(question, context, made)
        grounders = {one.name: one for one in (PlainGrounder(), SearchGrounder(), AgentGrounder())}
        grounder = grounders.get(made.grounder, SearchGrounder())
        yield "grounder", lambda context: ask_grounder(grounder, question, context)
        rule = rule_named(made.rule)
        if isinstance(rule, SynthesisRule):
            yield "synthesizer", lambda context: ask_synthesizer(rule, question, context)
    elif not hasattr(made, "open"):
        forecaster = shown_context(forecaster_of(made, runtime), spec, runtime.contexts)
        yield "agent", lambda context: attempt(forecaster, question, context)
    has_tools = forecaster_options(spec).get("variant") != "zero-shot"
    if has_tools and spec.mode == "backtest" and not spec.clairvoyant:
        yield "filter", lambda context: ask_filter(question, context)
    if has_tools and spec.search:
        yield "summariser", lambda context: ask_summariser(question, context)
    if has_panel(spec):
        yield "judge", lambda context: ask_panel(question, context)


# A model that records what it is asked.


class RequestRecorder:
    """A model that records requests and does not answer."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        """Record the request and raise."""
        self.requests.append(request)
        raise ModelRefused("only the prompt is wanted")


def request_text(request: Request) -> str:
    """Return a request as text: its messages, then its tools or schema, each under a heading."""
    parts = [f"----- {type(m).__name__.removesuffix('Message').lower()} -----\n{m.text}" for m in request.messages]
    parts += [f"----- tool {tool.name} -----\n{tool.description}\n{tool.parameters_json}" for tool in request.tools]
    if request.schema is not None:
        parts.append(f"----- schema -----\n{json.dumps(request.schema, ensure_ascii=False)}")
    return "\n\n".join(parts) + "\n"


# The first request of a role, with an example of what it works on.

FOUND = SourceItem(title="Works are on schedule", text="The mayor said on Friday that works are on schedule.")
CHILDREN = {"r.1": "The works are finished on time.", "r.2": "No court stops the plan."}


async def ask_filter(question: Question, context: Context) -> None:
    """Ask whether a search result was written after the cutoff."""
    leak_filter = LeakFilter(model=context.model("filter"), name=context.models.name("filter"))
    await leak_filter.judge([Excerpt(title=FOUND.title, text=FOUND.text)], context.as_of, question.text)


async def ask_summariser(question: Question, context: Context) -> None:
    """Ask for a summary of a search result."""
    store = SourceStore()
    finder = _Finder()
    fence = FenceRules(as_of=context.as_of, question=question)
    name = context.models.name("summariser")
    reader = web.SummarizeResults(sources=store, model=context.model("summariser"), name=name, question=question)
    tools = FencedTools.around([finder, reader], fence, _KeepExample(), sources=store)
    await tools.use(finder.spec.name, {"query": "works"})
    await tools.use(reader.spec.name, {"ids": ["search_1_result_1"], "question": "When do the works end?"})


class _Finder:
    """A search that finds one thing."""

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
    about = _tree_question(question, context)
    first, second = CHILDREN.values()
    place = ClaimSurroundings(path=(about.claim,), siblings=(second,))
    with suppress(ModelError, CannotGround):
        await grounder.ground(Leaf(id="r.1", claim=first, tree_question=about, surroundings=place, slot="r.1"), context)


async def ask_synthesizer(rule: SynthesisRule, question: Question, context: Context) -> None:
    """Ask how two claims combine."""
    about = _tree_question(question, context)
    grounding = Grounding(grounder="search", report="The mayor says that they are on schedule.", key_factor="schedule")
    below = {id: Proposition(id=id, claim=claim, p=0.7, grounding=grounding) for id, claim in CHILDREN.items()}
    root = Proposition(id="r", claim=about.claim, children=tuple(CHILDREN), causality="Both must be true.")
    synthesizer = Synthesizer(about=about, context=context, settings=TreeSettings(rule=rule.name))
    await synthesizer.synthesize(root, ClaimSurroundings(), below)


def _tree_question(question: Question, context: Context) -> TreeQuestion:
    target = question.targets[0]
    return TreeQuestion(
        question=question, as_of=context.as_of, claim=claim_of_target(question, target), target=target.id
    )
