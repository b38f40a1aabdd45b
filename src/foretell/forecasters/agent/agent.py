"""The belief agent as a forecaster: turns a question and a context into a forecast with reasons and citations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from foretell.forecasters.agent.actions import AgentToolset
from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.agent.belief import QUESTION, BeliefEvidence, starting_belief
from foretell.forecasters.agent.loop import AgentTrial, BeliefIntervention, StopReason, TrialResult
from foretell.forecasters.agent.prompts import StartingSignals, crowd_of, prior_of, question_prompt, system_prompt
from foretell.forecasters.agent.settings import FULL, AgentSettings, AgentVariant
from foretell.forecasters.forecaster import CannotForecast, Context, Forecaster, forecast_of
from foretell.models.model import SystemMessage, UserMessage
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import ForecastMade
from foretell.tools.fence import SourceStore
from foretell.tools.tool import ANY_SOURCE, FIXED, offered_tools

# A belief as text for people: the answer, the case for and against with its sources, and what stayed open.

FORECAST = "Forecast: "
"""Start of the line with the numbers; `without_numbers` removes that line for readers who must not see them."""


def rationale(ending: TrialResult, p: Mapping[str, float], store: SourceStore) -> str:
    """The reasons behind a forecast, with one line per cited source at the end."""
    belief = ending.belief
    numbers = ", ".join(f"{target} {value:.3f}" for target, value in p.items())
    how = f"{ending.stop.value}; {ending.detail}" if ending.detail else ending.stop.value
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


def without_numbers(text: str) -> str:
    """A rationale without the line that states the forecast.

    >>> without_numbers("Forecast: yes 0.300 (submitted)."), without_numbers("Polls moved.")
    ('', 'Polls moved.')
    """
    return "\n".join(line for line in text.splitlines() if not line.startswith(FORECAST)).strip()


def _listed(heading: str, evidence: Sequence[BeliefEvidence]) -> str:
    if not evidence:
        return ""
    return "\n".join([f"{heading}:", *(f"- {item.claim} [{item.source_id or 'no source'}]" for item in evidence)])


def _source(store: SourceStore, source_id: str) -> str:
    found = store[source_id]
    when = found.published.date().isoformat() if found.published else "undated"
    return f"[{source_id}] {found.title} ({when}) {found.url}".rstrip()


@dataclass(frozen=True, kw_only=True)
class BeliefAgent:
    """Searches step by step and keeps a belief throughout; its variant decides what it may do and what it is told."""

    variant: AgentVariant = FULL
    settings: AgentSettings = field(default_factory=AgentSettings)
    bypass: Mapping[str, Forecaster] = field(default_factory=dict[str, Forecaster])
    """Forecasters by source whose estimate is submitted, clamped, without asking any language model."""
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
        """Return one probability for every target; raise `CannotForecast` if no probability was ever stated."""
        bypassed = await self._bypassed(question, context)
        if bypassed is not None:
            context.emit(ForecastMade(p=bypassed.p, how=StopReason.BYPASS.value))
            return bypassed
        trial = self._trial(question, context)
        ending = await trial.run()
        # A run that saw the future is never shown under the name of one that did not.
        name = f"{self.name}+clairvoyant" if trial.toolbox.clairvoyant else self.name
        if ending.p is None:
            why = ending.stop.value.replace("standing belief", "no probability was stated")
            raise CannotForecast(f"{why}: {ending.detail}" if ending.detail else why, forecaster=name)
        form = trial.offer.form
        p = self.settings.clamp.apply(ending.p, form.exclusivity)
        context.emit(ForecastMade(p=p, how=ending.stop.value))
        words = rationale(ending, p, trial.toolbox.sources)
        distribution = form.distribution(p, ending.distribution)
        problem = (ending.detail or ending.stop.value) if ending.ending == "degraded" else ""
        return forecast_of(
            p, question, context, name, words, distribution=distribution, ending=ending.ending, problem=problem
        )

    def _trial(self, question: Question, context: Context) -> AgentTrial:
        toolbox = context.tools_for(question)
        if toolbox.as_of != context.as_of:
            raise ValueError(f"the toolbox is fenced at {toolbox.as_of}, the question is asked at {context.as_of}")
        by_schema = self.settings.reply_format == "schema"
        form = AnswerFormat.of(question, percent=by_schema)
        # The tools that suit the source; one the policy has never heard of is offered to all.
        usual = offered_tools(question.source, 1, [spec.name for spec in toolbox.specs()], fixed=False)
        research = tuple(spec for spec in toolbox.specs() if spec.name in usual or spec.name not in ANY_SOURCE)
        offer = AgentToolset(form=form, variant=self.variant, research=research)
        laid_down = self.settings.source_steps and question.source in FIXED
        signals = self._signals(question, context)
        slot = f"{question.id}/trial {context.trial}"
        trial = AgentTrial(
            request=context.request("agent", (), slot=slot, settings=self.settings.sampling),
            offer=offer,
            belief=starting_belief(form, crowd=signals.crowd, prior=signals.prior),
            model=context.model("agent"),
            toolbox=toolbox,
            emit=context.emit,
            settings=self.settings,
            allowed=lambda step: offered_tools(question.source, step, offer.by_name) if laid_down else None,
            push=self.push,
        )
        live = context.as_of.mode == "live"
        system = system_prompt(offer, steps=trial.steps, clamp=self.settings.clamp, by_schema=by_schema, live=live)
        asked = question_prompt(question, context.as_of, offer, signals)
        messages = (SystemMessage(text=system), UserMessage(text=asked, cached=True))
        return replace(trial, request=replace(trial.request, messages=messages))

    def _signals(self, question: Question, context: Context) -> StartingSignals:
        crowd, day = crowd_of(question, context.as_of) if self.variant.crowd else (None, "")
        prior, cases = prior_of(question, context) if self.variant.prior else (None, 0)
        shown = question.closes_at if context.as_of.mode == "live" or self.settings.closing_time else None
        return StartingSignals(
            crowd=crowd,
            crowd_day=day,
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
