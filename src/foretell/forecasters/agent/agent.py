"""The belief agent as a forecaster: from a question and a context to a forecast with reasons and citations."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from foretell.forecasters.agent.belief import start
from foretell.forecasters.agent.context import AgentContext, Tally, Watched
from foretell.forecasters.agent.ending import Ending, Stop
from foretell.forecasters.agent.form import Form
from foretell.forecasters.agent.job import Job, Push
from foretell.forecasters.agent.loop import Trial
from foretell.forecasters.agent.offer import Offer
from foretell.forecasters.agent.prompts import Start, opening, system_prompt
from foretell.forecasters.agent.rationale import rationale
from foretell.forecasters.agent.settings import AgentSettings
from foretell.forecasters.agent.signals import crowd_of, prior_of
from foretell.forecasters.agent.variants import FULL, Variant
from foretell.forecasters.forecaster import CannotForecast, Forecaster, RunContext
from foretell.llm.message import Request, ToolSpec
from foretell.questions.event import Failed, ForecastMade
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.tools.fence import Fenced
from foretell.tools.policy import ANY_SOURCE, FIXED, offered


@dataclass(frozen=True, kw_only=True)
class BeliefAgent:
    """Searches step by step and keeps a belief all the way; what it is allowed and told is its variant."""

    variant: Variant = FULL
    settings: AgentSettings = field(default_factory=AgentSettings)
    bypass: Mapping[str, Forecaster] = field(default_factory=dict[str, Forecaster])
    """Forecasters by source whose estimate is submitted as it is, without asking any language model."""
    push: Push | None = None
    """For experiments: replaces the belief's numbers at one step."""
    extra: str = ""
    """More material for the question prompt."""
    label: str = ""

    @property
    def name(self) -> str:
        """As shown in tables."""
        return self.label or self.variant.name

    async def forecast(self, question: Question, context: RunContext) -> Forecast:
        """One probability for every target, or `CannotForecast` where no probability was ever stated."""
        answer = await self.attempt(question, context)
        if isinstance(answer, Failure):
            raise CannotForecast(answer.error)
        return answer

    async def attempt(self, question: Question, context: RunContext) -> Forecast | Failure:
        """One trial. Whatever the model says, it ends in one of the two."""
        if not isinstance(context, AgentContext):
            raise TypeError("the belief agent needs models and tools: give it an AgentContext")
        bypassed = await self._bypassed(question, context)
        if bypassed is not None:
            context.emit(ForecastMade(p=bypassed.p, how=Stop.BYPASS.value))
            return bypassed
        tally = Tally(context.emit)
        context = replace(context, emit=tally)
        began = asyncio.get_running_loop().time()
        job = self._job(question, context)
        ending = await Trial(job).run()
        usage = replace(tally.usage, seconds=asyncio.get_running_loop().time() - began)
        answer = self._answer(question, context, job, ending)
        return replace(answer, usage=usage) if isinstance(answer, Forecast) else answer

    def _job(self, question: Question, context: AgentContext) -> Job:
        toolbox = context.toolbox(question, context)
        if toolbox.as_of != context.as_of:
            raise ValueError(f"the toolbox is fenced at {toolbox.as_of}, the question is asked at {context.as_of}")
        by_schema = self.settings.asking == "schema"
        form = Form.of(question, percent=by_schema)
        offer = Offer(form=form, variant=self.variant, research=_research(toolbox, question.source))
        laid_down = self.settings.fixed and question.source in FIXED
        signals = self._start(question, context)
        job = Job(
            request=self._request(context, question),
            offer=offer,
            belief=start(form, crowd=signals.crowd, prior=signals.prior),
            model=Watched(context.model, context.emit, "agent", context.prices),
            toolbox=toolbox,
            emit=context.emit,
            settings=self.settings,
            allowed=lambda step: offered(question.source, step, offer.by_name) if laid_down else None,
            push=self.push,
        )
        system = system_prompt(offer, steps=job.steps, clamp=self.settings.clamp, by_schema=by_schema)
        messages = opening(question, context.as_of, offer, system=system, start=signals)
        return replace(job, request=replace(job.request, messages=messages))

    def _request(self, context: AgentContext, question: Question) -> Request:
        sampling = self.settings.sampling or context.models.setting("agent")
        if context.seed is not None:
            sampling = replace(sampling, seed=context.seed + context.trial)
        slot = f"{question.id}/trial {context.trial}"
        return Request(model=context.models.name("agent"), messages=(), settings=sampling, slot=slot)

    def _start(self, question: Question, context: AgentContext) -> Start:
        crowd, day = crowd_of(question, context.as_of) if self.variant.crowd else (None, "")
        shown = question.closes_at if context.as_of.mode == "live" or self.settings.closing_time else None
        return Start(
            crowd=crowd,
            crowd_day=day,
            prior=prior_of(question, context) if self.variant.prior else None,
            closes=shown.date().isoformat() if shown else "",
            extra=self.extra,
        )

    def _answer(self, question: Question, context: AgentContext, job: Job, ending: Ending) -> Forecast | Failure:
        name = self._marked(job.toolbox)
        if ending.p is None:
            why = ending.stop.value.replace("standing belief", "no probability was stated")
            error = f"{why}: {ending.detail}" if ending.detail else why
            context.emit(Failed(error=error))
            return Failure(
                question_id=question.id, forecaster=name, as_of=context.as_of, error=error, trial=context.trial
            )
        form = job.offer.form
        p = self.settings.clamp.apply(ending.p, exclusive=form.exclusive)
        context.emit(ForecastMade(p=p, how=ending.stop.value))
        return Forecast(
            question_id=question.id,
            forecaster=name,
            as_of=context.as_of,
            p=p,
            trial=context.trial,
            rationale=rationale(ending, p, job.toolbox.shelf),
            distribution=form.distribution(p, ending.distribution),
        )

    def _marked(self, toolbox: Fenced) -> str:
        """A run that saw the future is never shown under the name of one that did not."""
        return f"{self.name}+clairvoyant" if toolbox.clairvoyant else self.name

    async def _bypassed(self, question: Question, context: AgentContext) -> Forecast | None:
        model = self.bypass.get(question.source)
        if model is None:
            return None
        try:
            estimate = await model.forecast(question, context)
        except CannotForecast:
            return None
        p = self.settings.clamp.apply(estimate.p, exclusive=Form.of(question).exclusive)
        told = f"{Stop.BYPASS.value} ({model.name}). {estimate.rationale}".strip()
        return replace(estimate, forecaster=self.name, p=p, trial=context.trial, rationale=told)


def _research(toolbox: Fenced, source: str) -> tuple[ToolSpec, ...]:
    """The tools that suit the source; one the policy has never heard of is offered to all."""
    usual = offered(source, 1, [spec.name for spec in toolbox.specs()], fixed=False)
    return tuple(spec for spec in toolbox.specs() if spec.name in usual or spec.name not in ANY_SOURCE)
