"""The prompts of every kind of question, agent variant and role, recorded by a model."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.settings import VARIANTS, AgentSettings, ReplyFormat
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.base_rates.rates import BaseRates, PastOutcomes, Rates
from foretell.forecasters.forecaster import Context, Models, attempt
from foretell.forecasters.prompt.elicitation import ELICITATIONS
from foretell.forecasters.prompt.forecaster import PromptForecaster
from foretell.forecasters.reason.forecaster import ReasonForecaster
from foretell.forecasters.tree.grounders.search import AgentGrounder, PlainGrounder, SearchGrounder
from foretell.forecasters.tree.grow.synthesize import SynthesisRule, rule_named
from foretell.forecasters.tree.settings import TreeSettings
from foretell.models.budget import estimate_tokens
from foretell.models.model import Request, ToolSpec
from foretell.models.names import ModelRoles
from foretell.plugins import names
from foretell.questions.as_of import AsOf, AsOfMode, instant
from foretell.questions.errors import InputError
from foretell.questions.question import LastValue, Question, SeriesRef, Snapshot, Target
from foretell.runs.prompts import (
    CONTEXT_STEPS,
    FOUND,
    REASON_STEPS,
    RequestRecorder,
    ask_analyzer,
    ask_filter,
    ask_for_context,
    ask_grounder,
    ask_panel,
    ask_summariser,
    ask_synthesizer,
    request_text,
)
from foretell.studies.audit.auditor import AuditCase, Auditor
from foretell.studies.audit.leakage import READ_INSTRUCTION, SUPPORT_INSTRUCTION
from foretell.studies.audit.passages import MATERIAL_INSTRUCTION
from foretell.tools import series, web
from foretell.tools.calculate import CALCULATE_SPEC
from foretell.tools.content_filter import ModelContentFilter
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.series_stats import STATS_SPEC
from foretell.tools.tool import ToolFailed, ToolMaterial

MODEL = "scripted:example"
ASKED_ON = "2026-03-02"
MANY = (
    "Albania, Armenia, Australia, Austria, Belgium, Croatia, Cyprus, Denmark, Estonia, Finland, France, Germany, "
    "Greece, Italy, Norway, Poland, Portugal, Sweden, Switzerland, United Kingdom"
)


def example_questions() -> dict[str, Question]:
    """Return one question of each kind, by the name of the kind."""
    due = instant(ASKED_ON)

    def day(after: int) -> datetime:
        return due + timedelta(days=after)

    shared: dict[str, Any] = {"source": "asked", "due": due}
    week, quarter = day(7), day(90)
    return {
        "own": Question(
            id="asked/1",
            text="Will the Northgate bridge reopen to cars by 30 June 2026?",
            criteria="YES if the city announces that cars may cross again.",
            closes_at=instant("2026-06-30"),
            targets=(Target(id="yes", resolves_at=instant("2026-06-30")),),
            **shared,
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
            **shared,
        ),
        "at-most-one": Question(
            id="asked/5",
            text="Which of these cities will be named to host the games of 2040?",
            exclusivity="at most one",
            closes_at=instant("2026-09-30"),
            targets=tuple(Target(id=name, label=name, resolves_at=instant("2026-09-30")) for name in ("Oslo", "Rome")),
            **shared,
        ),
        "many": Question(
            id="asked/5",
            text="Which country will win the song contest of 2026?",
            criteria="The country with the most points in the final, as announced by the organisers.",
            exclusivity="exactly one",
            closes_at=instant("2026-05-16"),
            targets=tuple(Target(id=name, label=name, resolves_at=instant("2026-05-16")) for name in MANY.split(", ")),
            **shared,
        ),
        "separate": Question(
            id="asked/3",
            text="Which of these cities will break their March heat record in 2026?",
            targets=tuple(Target(id=name, label=name, resolves_at=instant("2026-03-31")) for name in ("Oslo", "Rome")),
            **shared,
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
    """Return base rates from sixty outcomes of each kind of data, one a day."""
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


def past_with(rates: Rates) -> Past:
    """Return a past without questions that has these base rates."""
    past = Past()
    past.cached("rates", lambda: rates)
    return past


@dataclass(frozen=True)
class _SpecOnly:
    """A tool that is offered and never used."""

    spec: ToolSpec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        raise ToolFailed("examples use no tool")


def _tools(question: Question, context: Context) -> FilteredTools:
    """Return the tools that a run offers for this kind of question."""
    specs = [web.SEARCH_SPEC, web.LOOKUP_SPEC, web.WIKIPEDIA_SPEC]
    specs += [series.SERIES_SPEC, STATS_SPEC] if question.series is not None else []
    specs += [series.PRICES_SPEC] if question.source == "manifold" else []
    content_filter = ModelContentFilter(model=context.model("filter"), name=MODEL)
    rules = LeakageRules(as_of=context.as_of, question=question)
    return FilteredTools.around(
        [_SpecOnly(spec) for spec in (*specs, web.SUMMARIZE_SPEC, CALCULATE_SPEC)], rules, content_filter
    )


@dataclass(frozen=True, kw_only=True)
class ExamplePrompt:
    """Return a request as it would be sent, with its approximate length."""

    kind: str
    role: str
    form: str
    tokens: int
    text: str

    @property
    def name(self) -> str:
        """A name usable as a file name."""
        return "_".join(part.replace(" ", "-") for part in (self.kind, self.role, self.form))


async def _first_request(ask: Callable[[Context], Awaitable[Any]], question: Question, mode: AsOfMode) -> Request:
    keeper = RequestRecorder()
    models = Models(roles=ModelRoles(agent=MODEL), model=keeper)
    context = Context(as_of=question.as_of_in(mode), models=models, tools=_tools, past=past_with(example_rates()))
    await ask(context)
    return keeper.requests[0]


def _asks(question: Question) -> Iterator[tuple[str, str, AsOfMode, Callable[[Context], Awaitable[Any]]]]:
    """Role, variant, mode and function for every request about a question."""

    def agent(variant: str, reply_format: ReplyFormat) -> Callable[[Context], Awaitable[Any]]:
        signals = VARIANTS[variant].with_signals(market_price=True, prior=True)
        forecaster = BeliefAgent(variant=signals, settings=AgentSettings(reply_format=reply_format, source_steps=False))
        return lambda context: attempt(forecaster, question, context)

    for variant in VARIANTS:
        yield "agent", variant, "live", agent(variant, "tools")
    yield "agent", "full backtest", "backtest", agent("full", "tools")
    yield "agent", "full by schema", "live", agent("full", "schema")
    for way in ELICITATIONS:
        if way != "ensemble":  # It uses the prompts of four other variants.
            forecaster = PromptForecaster(elicitation=way)
            yield "context", way, "live", lambda context, forecaster=forecaster: attempt(forecaster, question, context)
    yield "filter", "search results", "backtest", lambda context: ask_filter(question, context)
    yield "summariser", "search results", "live", lambda context: ask_summariser(question, context)
    yield "judge", "panel of trials", "live", lambda context: ask_panel(question, context)
    for what in CONTEXT_STEPS:
        form = f"context {what}"
        yield "summariser", form, "live", lambda context, what=what: ask_for_context(question, context, what)
    yield "analyzer", "first step", "live", lambda context: ask_analyzer(question, context, TreeSettings())
    for grounder in (PlainGrounder(), SearchGrounder(), AgentGrounder()):
        leaf = grounder.name
        yield "grounder", leaf, "live", lambda context, grounder=grounder: ask_grounder(grounder, question, context)
    for rule in (rule_named(name) for name in names("synthesis_rules")):
        if isinstance(rule, SynthesisRule):
            yield "synthesizer", rule.name, "live", lambda context, rule=rule: ask_synthesizer(rule, question, context)
    yield from _reason_asks(question)
    for what, words in AUDITS.items():
        yield "auditor", what, "backtest", lambda context, words=words: _audit(words, question, context)


def _reason_asks(question: Question) -> Iterator[tuple[str, str, AsOfMode, Callable[[Context], Awaitable[Any]]]]:
    """Yield the requests of the forecaster `reason`."""
    reason = ReasonForecaster()
    for mode in ("live", "backtest"):
        yield "scout", mode, mode, lambda context: attempt(reason, question, context)
    for step, ask in REASON_STEPS.items():
        role, form = step.split(", ")
        yield role, form, "live", lambda context, ask=ask: ask(reason, question, context)


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


async def example_prompts(kinds: Sequence[str] = (), only: AsOfMode | None = None) -> tuple[ExamplePrompt, ...]:
    """Return the prompts of the named kinds, or of all; in their usual modes, or in only one mode."""
    questions = example_questions()
    if unknown := [kind for kind in kinds if kind not in questions]:
        raise InputError(f"there is no kind {unknown[0]!r}", hint=f"kinds are {', '.join(questions)}")
    prompts: list[ExamplePrompt] = []
    for kind in kinds or questions:
        for role, form, mode, ask in _asks(questions[kind]):
            request = await _first_request(ask, questions[kind], only or mode)
            tokens = estimate_tokens(request).input
            prompts.append(ExamplePrompt(kind=kind, role=role, form=form, tokens=tokens, text=request_text(request)))
    return tuple(prompts)
