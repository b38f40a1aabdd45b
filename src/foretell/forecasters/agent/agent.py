"""The belief agent as a forecaster: turns a question and a context into a forecast with reasons and citations."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from foretell.forecasters.agent.actions import AgentToolset
from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.agent.belief import QUESTION, BeliefEvidence, starting_belief
from foretell.forecasters.agent.loop import CURRENT_ESTIMATE, AgentTrial, BeliefIntervention, StopReason, TrialResult
from foretell.forecasters.agent.prompts import StartingSignals, price_of, prior_of, question_prompt, system_prompt
from foretell.forecasters.agent.settings import FULL, AgentSettings, AgentVariant
from foretell.forecasters.forecaster import CannotForecast, Context, Forecaster, forecast_of
from foretell.frozen import frozen
from foretell.models.model import SystemMessage, UserMessage
from foretell.number_text import percent
from foretell.patterns import pattern
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import ForecastMade
from foretell.tools.leakage_filter import SourceStore
from foretell.tools.reading import STYLES
from foretell.tools.tool import ANY_SOURCE, FIXED, offered_tools

# A belief as text for readers: the answer, the evidence for and against with its sources, and open questions.

FORECAST = "Forecast: "
"""Start of the line with the numbers, which `without_numbers` removes."""
KEPT = 5e-4
"""Smallest difference between a stated number and the forecast that is mentioned."""


def rationale(ending: TrialResult, p: Mapping[str, float], store: SourceStore) -> str:
    """Return the reasons behind a forecast, with one line per cited source at the end."""
    belief = ending.belief
    numbers = ", ".join(f"{target} {percent(value, 1)}" for target, value in p.items())
    made = forecast_made(ending, p)
    how = f"{made.in_words}; {ending.detail}" if ending.detail else made.in_words
    evidence = (*belief.evidence_for, *belief.evidence_against)
    cited = dict.fromkeys(item.source_id for item in evidence if item.source_id and item.source_id != QUESTION)
    parts = [
        f"{FORECAST}{numbers} ({how}).",
        ending.reason or belief.reason,
        _listed("For", belief.evidence_for),
        _listed("Against", belief.evidence_against),
        "\n".join(["Open:", *(f"- {question}" for question in belief.open_questions)]) if belief.open_questions else "",
    ]
    if lines := [_source(store, source) for source in cited if source in store]:
        parts.append("\n".join(["Sources:", *lines]))
    return "\n\n".join(part for part in parts if part)


def forecast_made(ending: TrialResult, p: Mapping[str, float]) -> ForecastMade:
    """Return the event of a forecast, with what was stated if the forecast was kept at a bound instead."""
    stated = ending.p if ending.p and any(abs(value - p[target]) > KEPT for target, value in ending.p.items()) else None
    return ForecastMade(p=p, how=ending.stop.value, stated=stated)


_TREE_ANSWER = pattern(
    r"(?:- )?(?:(?:[^\n]{0,300}: )?\S+ % from tree |(?:Tree for [^\n]{0,300}: )?(?:[01]\.\d{3}|[<>]?[\d.]+ %) for: |"
    r"Changed: direct estimate )|\S{1,80} [01]\.\d{3}(?::|\Z)"
)
"""How the lines begin with which a tree, or a tree and a direct estimate, state the forecast."""


def without_numbers(text: str) -> str:
    r"""Return a rationale without the lines that state the forecast.

    >>> without_numbers("Forecast: yes 30.0 % (submitted)."), without_numbers("Polls moved.")
    ('', 'Polls moved.')
    >>> without_numbers("18 % from tree 20 % and direct 18 % (agree)\n19.7 % for: It opens.\nThe court decides.")
    'The court decides.'
    """
    lines = text.splitlines()
    return "\n".join(line for line in lines if not line.startswith(FORECAST) and not _TREE_ANSWER.match(line)).strip()


def _listed(heading: str, evidence: Sequence[BeliefEvidence]) -> str:
    if not evidence:
        return ""
    return "\n".join([f"{heading}:", *(f"- {item.claim} [{item.source_id or 'no source'}]" for item in evidence)])


def _source(store: SourceStore, source_id: str) -> str:
    source = store[source_id]
    when = source.published.date().isoformat() if source.published else "undated"
    return f"[{source_id}] {source.title} ({when}) {source.url}".rstrip()


@frozen
class BeliefAgent:
    """Researches step by step and keeps a belief throughout; its variant sets its tools and its prompt."""

    variant: AgentVariant = FULL
    settings: AgentSettings = field(default_factory=AgentSettings)
    bypass: Mapping[str, Forecaster] = field(default_factory=dict[str, Forecaster])
    """Forecasters by source whose clamped estimate is submitted without a language model."""
    push: BeliefIntervention | None = None
    """For experiments: replaces the belief's numbers at one step."""
    extra: str = ""
    """Additional material for the question prompt."""
    label: str = ""

    @property
    def name(self) -> str:
        """The name shown in tables."""
        return self.label or self.variant.name

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return one probability for every target. Raises `CannotForecast` if none was ever stated."""
        bypassed = await self._bypassed(question, context)
        if bypassed is not None:
            context.emit(ForecastMade(p=bypassed.p, how=StopReason.BYPASS.value))
            return bypassed
        trial = self._trial(question, context)
        ending = await trial.run()
        # Results without a leakage filter must not appear under the same name as filtered ones.
        name = trial.toolbox.marked_name(self.name)
        if ending.p is None:
            why = ending.stop.value.replace(CURRENT_ESTIMATE, "no probability was stated")
            raise CannotForecast(f"{why}: {ending.detail}" if ending.detail else why, forecaster=name)
        form = trial.toolset.form
        p = self.settings.clamp.apply(ending.p, form.exclusivity)
        context.emit(forecast_made(ending, p))
        text = rationale(ending, p, trial.toolbox.sources)
        distribution = form.distribution(p, ending.distribution)
        problem = (ending.detail or ending.stop.value) if ending.ending == "fallback" else ""
        return forecast_of(
            p, question, context, name, text, distribution=distribution, ending=ending.ending, problem=problem
        )

    def _trial(self, question: Question, context: Context) -> AgentTrial:
        toolbox = context.tools_for(question).read_in(STYLES[self.variant.reading])
        if toolbox.as_of != context.as_of:
            raise ValueError(f"the toolbox is filtered as of {toolbox.as_of}, the question as of {context.as_of}")
        by_schema = self.settings.reply_format == "schema"
        form = AnswerFormat.of(question, percent=by_schema, never=self.variant.never)
        # The tools for this source. A tool that the policy does not know is offered for all sources.
        suitable = offered_tools(question.source, 1, [spec.name for spec in toolbox.specs()], fixed=False)
        research = tuple(spec for spec in toolbox.specs() if spec.name in suitable or spec.name not in ANY_SOURCE)
        toolset = AgentToolset(form=form, variant=self.variant, research=research)
        fixed_steps = self.settings.source_steps and question.source in FIXED
        signals = self._signals(question, context)
        slot = f"{question.id}/trial {context.trial}"
        trial = AgentTrial(
            request=context.request("agent", (), slot=slot, settings=self.settings.sampling),
            toolset=toolset,
            belief=starting_belief(form, price=signals.price, prior=signals.prior),
            model=context.model("agent"),
            toolbox=toolbox,
            emit=context.emit,
            settings=self.settings,
            allowed=lambda step: offered_tools(question.source, step, toolset.by_name) if fixed_steps else None,
            push=self.push,
        )
        live = context.as_of.mode == "live"
        system = system_prompt(toolset, steps=trial.steps, clamp=self.settings.clamp, by_schema=by_schema, live=live)
        prompt = question_prompt(question, context.as_of, toolset, signals)
        messages = (SystemMessage(text=system), UserMessage(text=prompt, cached=True))
        return replace(trial, request=replace(trial.request, messages=messages))

    def _signals(self, question: Question, context: Context) -> StartingSignals:
        price, day = price_of(question, context.as_of) if self.variant.market_price else (None, "")
        prior, cases = prior_of(question, context) if self.variant.prior else (None, 0)
        shown = question.closes_at if context.as_of.mode == "live" or self.settings.closing_time else None
        return StartingSignals(
            price=price,
            price_day=day,
            prior=prior,
            prior_cases=cases,
            closes=shown.date().isoformat() if shown else "",
            extra=self.extra,
        )

    async def _bypassed(self, question: Question, context: Context) -> Forecast | None:
        model = self.bypass.get(question.source)
        if model is None:
            return None
        try:
            estimate = await model.forecast(question, context)
        except CannotForecast:
            return None
        p = self.settings.clamp.apply(estimate.p, question.exclusivity)
        text = f"{StopReason.BYPASS.value} ({model.name}). {estimate.rationale}".strip()
        return replace(estimate, forecaster=self.name, p=p, trial=context.trial, rationale=text)
