"""Show the prompts that models receive, for every kind of question, agent variant and role.

Nothing is duplicated here: example questions are asked with a model that records the request and does not answer.
"""

import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.settings import VARIANTS, AgentSettings, ReplyFormat
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.base_rates.rates import BaseRates, PastOutcomes
from foretell.forecasters.combine.aggregate import ReasonsPanel
from foretell.forecasters.forecaster import Context, Models, attempt
from foretell.forecasters.prompt.builder import ContextBuildSettings
from foretell.forecasters.prompt.elicitation import ELICITATIONS
from foretell.forecasters.prompt.forecaster import PromptForecaster
from foretell.forecasters.prompt.summaries import Summariser
from foretell.forecasters.tree.forecaster import claim_of_target
from foretell.forecasters.tree.grounders.search import AgentGrounder, PlainGrounder, SearchGrounder
from foretell.forecasters.tree.grow.analyze import AnalysisDraft, AnalysisLimits, analyze
from foretell.forecasters.tree.grow.ground import CannotGround, Grounder, Leaf
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings, TreeQuestion
from foretell.forecasters.tree.grow.synthesize import SynthesisRule, Synthesizer, rule_named
from foretell.forecasters.tree.proposition import Grounding, Proposition
from foretell.forecasters.tree.settings import TreeSettings
from foretell.models.budget import estimate_tokens
from foretell.models.journal import Journal
from foretell.models.model import ModelError, ModelRefused, ModelSettings, Reply, Request, ToolSpec
from foretell.models.names import ModelRoles, default_efforts
from foretell.operations.requests.data import PromptsRequest
from foretell.operations.result import Result
from foretell.operations.run_plan import ShownPrompt
from foretell.plugins import names
from foretell.questions.as_of import AsOf, AsOfMode, instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import LastValue, Question, SeriesRef, Snapshot, Target, even_chance
from foretell.runs.runner import PreparedRun, asks_models, execute_run, has_panel
from foretell.runs.runtime import forecaster_name, forecaster_options, models_of_run
from foretell.runs.settings import KEYS, Settings
from foretell.runs.spec import RunSpec
from foretell.studies.audit.auditor import AuditCase, Auditor
from foretell.studies.audit.leakage import READ_INSTRUCTION, SUPPORT_INSTRUCTION
from foretell.studies.audit.passages import MATERIAL_INSTRUCTION
from foretell.tools import series, web
from foretell.tools.fence import AdmittedSource, FencedTools, SourceStore
from foretell.tools.leak_filter import Excerpt, LeakFilter
from foretell.tools.rules import FenceRules
from foretell.tools.tool import SourceItem, ToolFailed, ToolMaterial

MODEL = "scripted:example"
ASKED_ON = "2026-03-02"
MANY = (
    "Albania, Armenia, Australia, Austria, Belgium, Croatia, Cyprus, Denmark, Estonia, Finland, France, Germany, "
    "Greece, Italy, Norway, Poland, Portugal, Sweden, Switzerland, United Kingdom"
)


def example_questions() -> dict[str, Question]:
    """One question of each kind, by the name of the kind."""
    due = instant(ASKED_ON)

    def day(after: int) -> datetime:
        return due + timedelta(days=after)

    asked: dict[str, Any] = {"source": "asked", "due": due}
    week, quarter = day(7), day(90)
    return {
        "own": Question(
            id="asked/1",
            text="Will the Northgate bridge reopen to cars by 30 June 2026?",
            criteria="YES if the city announces that cars may cross again.",
            closes_at=instant("2026-06-30"),
            targets=(Target(id="yes", resolves_at=instant("2026-06-30")),),
            **asked,
        ),
        "market": Question(
            id="manifold/AbCdEf123",
            source="manifold",
            text="Will the central bank cut its rate in April 2026?",
            criteria="Resolves YES if a cut is announced at the April meeting.",
            url="https://manifold.markets/someone/will-the-central-bank-cut",
            due=due,
            closes_at=instant("2026-04-16"),
            targets=(Target(id="yes", snapshot=Snapshot(at=day(-3), last_price=0.34)),),
        ),
        "dates": Question(
            id="fred/DGS10",
            source="fred",
            kind="dataset",
            text="Will the 10-year yield be higher than on the day the question was asked?",
            criteria="Decided by the value published for each date.",
            due=due,
            series=SeriesRef(provider="fred", id="DGS10"),
            last_value=LastValue(value=4.12, at=day(-3), meaning="percent a year"),
            targets=tuple(
                Target(id=f"{at:%Y-%m-%d}", label=f"Higher on {at:%Y-%m-%d}?", resolves_at=at) for at in (week, quarter)
            ),
        ),
        "wikipedia": Question(
            id="wikipedia/1",
            source="wikipedia",
            kind="dataset",
            subtype="fide_rank",
            text="Will the player be ranked first in the list of top players on Wikipedia?",
            due=due,
            targets=(Target(id=f"{week:%Y-%m-%d}", resolves_at=week),),
        ),
        "options": Question(
            id="asked/2",
            text="Which party will lead the next government?",
            exclusivity="exactly one",
            closes_at=instant("2026-09-30"),
            targets=tuple(
                Target(id=name, label=name, resolves_at=instant("2026-09-30")) for name in ("Blue", "Green", "Other")
            ),
            **asked,
        ),
        "at-most-one": Question(
            id="asked/5",
            text="Which of these cities will be named to host the games of 2040?",
            exclusivity="at most one",
            closes_at=instant("2026-09-30"),
            targets=tuple(Target(id=name, label=name, resolves_at=instant("2026-09-30")) for name in ("Oslo", "Rome")),
            **asked,
        ),
        "many": Question(
            id="asked/5",
            text="Which country will win the song contest of 2026?",
            criteria="The country with the most points in the final, as announced by the organisers.",
            exclusivity="exactly one",
            closes_at=instant("2026-05-16"),
            targets=tuple(Target(id=name, label=name, resolves_at=instant("2026-05-16")) for name in MANY.split(", ")),
            **asked,
        ),
        "separate": Question(
            id="asked/3",
            text="Which of these cities will break their March heat record in 2026?",
            targets=tuple(Target(id=name, label=name, resolves_at=instant("2026-03-31")) for name in ("Oslo", "Rome")),
            **asked,
        ),
        "number": Question(
            id="metaculus/4",
            source="metaculus",
            subtype="numeric",
            text="How many seats will the Greens win?",
            background="The range asked about is 0 to 90 seats; it cannot end up outside.",
            due=due,
            closes_at=instant("2026-09-30"),
            targets=tuple(Target(id=f">{level}", label=f">{level} seats") for level in (22, 45, 68)),
        ),
    }


def example_rates() -> BaseRates:
    """Base rates from sixty outcomes of each kind of data, one a day."""
    days = np.datetime64(ASKED_ON, "D") - np.arange(1, 121).astype("m8[D]")
    source = np.repeat(np.array(["fred", "wikipedia"]), 60)
    past = PastOutcomes(
        known_on=days,
        source=source,
        subtype=np.where(source == "fred", "", "fide_rank"),
        horizon_days=np.full(120, 7),
        outcome=(np.arange(120) % 5 < 2).astype(np.float64),
    )
    return BaseRates(past=past)


class _Kept(ModelRefused):
    """Raised instead of an answer, once the request is recorded."""


class RequestKeeper:
    """A model that records requests and does not answer."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        """Record the request and raise."""
        self.requests.append(request)
        raise _Kept("only the prompt is wanted")


@dataclass(frozen=True)
class _SpecOnly:
    """A tool that is offered and never used."""

    spec: ToolSpec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        raise ToolFailed("examples use no tool")


def _tools(question: Question, context: Context) -> FencedTools:
    """The tools that a run offers for this kind of question."""
    specs = [web.SEARCH_SPEC, web.LOOKUP_SPEC, web.WIKIPEDIA_SPEC]
    specs += [series.SERIES_SPEC] if question.series is not None else []
    specs += [series.PRICES_SPEC] if question.source == "manifold" else []
    leak_filter = LeakFilter(model=context.model("filter"), name=MODEL)
    fence = FenceRules(as_of=context.as_of, question=question)
    return FencedTools.around([_SpecOnly(spec) for spec in (*specs, web.SUMMARIZE_SPEC)], fence, leak_filter)


@dataclass(frozen=True, kw_only=True)
class ExamplePrompt:
    """A request as it would be sent, with its approximate length."""

    kind: str
    role: str
    form: str
    tokens: int
    text: str

    @property
    def name(self) -> str:
        """A name usable as a file name."""
        return "_".join(part.replace(" ", "-") for part in (self.kind, self.role, self.form))


def request_text(request: Request) -> str:
    """A request as text: its messages, then its tools or schema, each under a heading."""
    parts = [f"----- {type(m).__name__.removesuffix('Message').lower()} -----\n{m.text}" for m in request.messages]
    parts += [f"----- tool {tool.name} -----\n{tool.description}\n{tool.parameters_json}" for tool in request.tools]
    if request.schema is not None:
        parts.append(f"----- schema -----\n{json.dumps(request.schema, ensure_ascii=False)}")
    return "\n\n".join(parts) + "\n"


async def _first_request(ask: Callable[[Context], Awaitable[Any]], question: Question, mode: AsOfMode) -> Request:
    keeper = RequestKeeper()
    models = Models(roles=ModelRoles(agent=MODEL), model=keeper)
    context = Context(
        as_of=question.as_of_in(mode), models=models, tools=_tools, past=Past(recorded_rates=example_rates())
    )
    await ask(context)
    return keeper.requests[0]


def _asks(question: Question) -> Iterator[tuple[str, str, AsOfMode, Callable[[Context], Awaitable[Any]]]]:
    """Role, variant, mode and function for every request about a question."""

    def agent(variant: str, reply_format: ReplyFormat) -> Callable[[Context], Awaitable[Any]]:
        signals = VARIANTS[variant].with_signals(crowd=True, prior=True)
        forecaster = BeliefAgent(variant=signals, settings=AgentSettings(reply_format=reply_format, source_steps=False))
        return lambda context: attempt(forecaster, question, context)

    for variant in VARIANTS:
        yield "agent", variant, "live", agent(variant, "tools")
    yield "agent", "full backtest", "backtest", agent("full", "tools")
    yield "agent", "full by schema", "live", agent("full", "schema")
    for way in ELICITATIONS:
        if way != "ensemble":  # It asks in the words of four others.
            forecaster = PromptForecaster(elicitation=way)
            yield "context", way, "live", lambda context, forecaster=forecaster: attempt(forecaster, question, context)
    yield "filter", "search results", "backtest", lambda context: _filter(question, context)
    yield "summariser", "search results", "live", lambda context: _summarise(question, context)
    yield "judge", "panel of trials", "live", lambda context: _panel(question, context)
    for what in ("searches", "ranking", "summary"):
        form = f"context {what}"
        yield "summariser", form, "live", lambda context, what=what: _build_context(question, context, what)
    yield "analyzer", "first step", "live", lambda context: _analyze(question, context)
    for grounder in (PlainGrounder(), SearchGrounder(), AgentGrounder()):
        leaf = grounder.name
        yield "grounder", leaf, "live", lambda context, grounder=grounder: _ground(grounder, question, context)
    for rule in (rule_named(name) for name in names("synthesis_rules")):
        if isinstance(rule, SynthesisRule):
            yield "synthesizer", rule.name, "live", lambda context, rule=rule: _synthesize(rule, question, context)
    for what, words in AUDITS.items():
        yield "auditor", what, "backtest", lambda context, words=words: _audit(words, question, context)


FOUND = SourceItem(title="Works are on schedule", text="The mayor said on Friday that works are on schedule.")


async def _filter(question: Question, context: Context) -> None:
    leak_filter = LeakFilter(model=context.model("filter"), name=MODEL)
    await leak_filter.judge([Excerpt(title=FOUND.title, text=FOUND.text)], context.as_of, question.text)


async def _summarise(question: Question, context: Context) -> None:
    store = SourceStore()
    finder = _Finder()
    fence = FenceRules(as_of=context.as_of, question=question)
    reader = web.SummarizeResults(sources=store, model=context.model("summariser"), name=MODEL, question=question)
    tools = FencedTools.around([finder, reader], fence, None, sources=store)
    await tools.use(finder.spec.name, {"query": "works"})
    await tools.use(reader.spec.name, {"ids": ["search_1_result_1"], "question": "When do the works end?"})


class _Finder:
    """A search that finds one thing."""

    spec = web.SEARCH_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        return ToolMaterial(heading="Results:", items=(replace(FOUND, published=as_of.at, dating="published"),))


async def _panel(question: Question, context: Context) -> None:
    even = dict.fromkeys((t.id for t in question.targets), even_chance(question.exclusivity, len(question.targets)))
    trial = Forecast(
        question_id=question.id, forecaster="agent", as_of=context.as_of, p=even, rationale="Works are on schedule."
    )
    await ReasonsPanel().judge(question, [trial], context)


AUDITS = {"material": MATERIAL_INSTRUCTION, "reasoning": READ_INSTRUCTION, "support": SUPPORT_INSTRUCTION}


async def _audit(instruction: str, question: Question, context: Context) -> None:
    sources = (FOUND.text,) if instruction is SUPPORT_INSTRUCTION else None
    case = AuditCase(
        instruction=instruction,
        as_of=context.as_of,
        question=question.text,
        title=FOUND.title,
        text=FOUND.text,
        sources=sources,
    )
    await Auditor(model=context.model("auditor"), name=MODEL).judge([case])


async def _build_context(question: Question, context: Context, what: str) -> None:
    """The three requests made while building the shared context of an arena question."""
    summariser = Summariser(
        model=context.model("summariser"), name=MODEL, question=question, as_of=context.as_of, settings=ModelSettings()
    )
    page = AdmittedSource(id="search_1_result_1", item=FOUND, shown=FOUND.text, whole=True)
    with suppress(ModelError):
        if what == "searches":
            await summariser.queries(ContextBuildSettings().queries)
        elif what == "ranking":
            await summariser.ranking([page])
        else:
            await summariser.summary(page, FOUND.text)


# A tree: its first claim, two children of it, and what is asked about each.

CHILDREN = {"r.1": "The works are finished on time.", "r.2": "No court stops the plan."}


def _tree_question(question: Question, context: Context) -> TreeQuestion:
    target = question.targets[0]
    return TreeQuestion(
        question=question, as_of=context.as_of, claim=claim_of_target(question, target), target=target.id
    )


async def _analyze(question: Question, context: Context) -> None:
    about = _tree_question(question, context)
    draft = AnalysisDraft(Proposition(id="r", claim=about.claim), ClaimSurroundings(), AnalysisLimits())
    await analyze(about, context, TreeSettings(), draft)


async def _ground(grounder: Grounder, question: Question, context: Context) -> None:
    about = _tree_question(question, context)
    first, second = CHILDREN.values()
    place = ClaimSurroundings(path=(about.claim,), siblings=(second,))
    with suppress(ModelError, CannotGround):
        await grounder.ground(Leaf(id="r.1", claim=first, tree_question=about, surroundings=place, slot="r.1"), context)


async def _synthesize(rule: SynthesisRule, question: Question, context: Context) -> None:
    about = _tree_question(question, context)
    grounding = Grounding(grounder="search", report="The mayor says that they are on schedule.", key_factor="schedule")
    below = {id: Proposition(id=id, claim=claim, p=0.7, grounding=grounding) for id, claim in CHILDREN.items()}
    root = Proposition(id="r", claim=about.claim, children=tuple(CHILDREN), causality="Both must be true.")
    synthesizer = Synthesizer(about=about, context=context, settings=TreeSettings(rule=rule.name))
    await synthesizer.synthesize(root, ClaimSurroundings(), below)


async def example_prompts(kinds: Sequence[str] = ()) -> tuple[ExamplePrompt, ...]:
    """The prompts of the kinds named, or of all."""
    questions = example_questions()
    if unknown := [kind for kind in kinds if kind not in questions]:
        raise InputError(f"there is no kind {unknown[0]!r}", hint=f"kinds are {', '.join(questions)}")
    found: list[ExamplePrompt] = []
    for kind in kinds or questions:
        for role, form, mode, ask in _asks(questions[kind]):
            request = await _first_request(ask, questions[kind], mode)
            tokens = estimate_tokens(request).input
            found.append(ExamplePrompt(kind=kind, role=role, form=form, tokens=tokens, text=request_text(request)))
    return tuple(found)


class RequestRecorder(Journal):
    """A journal without replies that records what would be sent. Nothing is sent."""

    def __init__(self, path: Path) -> None:
        Journal(path).close()
        super().__init__(path, mode="replay")
        self.requests: list[Request] = []

    def reply(self, request: Request, ask: Callable[[], Awaitable[Reply]], payer: str = "") -> Awaitable[Reply]:
        """Record the request and raise."""
        self.requests.append(request)
        raise _Kept("only the prompt is wanted")


async def spec_prompts(prepared: PreparedRun, settings: Settings) -> tuple[ShownPrompt, ...]:
    """Return the prompts of a run for its first question: the first request, and those that follow from it.

    What depends on what a model finds is shown for a made-up result. No model is asked.
    """
    spec = prepared.spec
    if not asks_models(spec) or not prepared.questions:
        return ()
    question = prepared.questions[0]
    if not spec.marked:
        spec = replace(spec, marked=True, efforts=spec.efforts or default_efforts(models_of_run(spec)))
    with tempfile.TemporaryDirectory(prefix="foretell-prompts-") as folder:
        # No search engine is asked, so that its key need not be there.
        keys = {KEYS[engine][0]: "not used" for engine in spec.search if engine in KEYS}
        aside = replace(settings, home=Path(folder), database=None, budget=None, corpus_file=settings.corpus)
        aside = replace(aside, keys={**keys, **settings.keys})
        recorder = RequestRecorder(Path(folder) / "journal.db")
        first = replace(prepared, spec=replace(spec, trials=1), questions=(question,), only=None)
        await execute_run(first, aside, journal=recorder)
    found = [_shown(f"{forecaster_name(spec)}, first request", request) for request in recorder.requests[:1]]
    wanted = _later_roles(spec)
    for role, form, mode, ask in _asks(question):
        if form in wanted.get(role, ()):
            request = await _first_request(ask, question, mode)
            found.append(_shown(f"{role}, {form}", request))
    return tuple(found)


def _shown(name: str, request: Request) -> ShownPrompt:
    return ShownPrompt(name=name, tokens=estimate_tokens(request).input, text=request_text(request))


def _later_roles(spec: RunSpec) -> dict[str, tuple[str, ...]]:
    """Role → the forms in which a run asks it after the first request."""
    options = forecaster_options(spec)
    wanted: dict[str, tuple[str, ...]] = {}
    if forecaster_name(spec) == "tree":
        usual = TreeSettings()
        wanted["grounder"] = (str(options.get("grounder", SearchGrounder().name)),)
        wanted["synthesizer"] = (str(options.get("rule", usual.rule)),)
    if forecaster_name(spec) in ("agent", "tree") and options.get("variant") != "zero-shot":
        wanted["summariser"] = ("search results",)
        wanted["filter"] = ("search results",) if spec.mode == "backtest" else ()
    if has_panel(spec):
        wanted["judge"] = ("panel of trials",)
    return wanted


@dataclass(frozen=True, kw_only=True)
class PromptsResult(Result):
    """Prompts, with their approximate number of tokens."""

    prompts: tuple[ExamplePrompt, ...]
    whole: bool

    def __str__(self) -> str:
        width = max((len(one.name) for one in self.prompts), default=0)
        lines = [f"{one.name:<{width}}  {one.tokens:>5,} tokens" for one in self.prompts]
        if not self.whole:
            more = "To read those of a kind: foretell prompts KIND. Tokens are estimated from the length."
            return "\n".join([*lines, "", more])
        texts = [f"===== {one.name}, about {one.tokens:,} tokens =====\n\n{one.text}" for one in self.prompts]
        return "\n".join([*texts, *lines])


async def show_prompts(request: PromptsRequest) -> PromptsResult:
    """Show the prompts for an example of each kind of question."""
    prompts = await example_prompts([request.kind] if request.kind else [])
    chosen = tuple(one for one in prompts if request.role in (None, one.role))
    return PromptsResult(prompts=chosen, whole=request.kind is not None)
