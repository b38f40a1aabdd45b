"""Several independent trials of one question, run at the same time and put together."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from foretell.forecasters.agent.context import AgentContext
from foretell.forecasters.agent.numeric import LEVELS
from foretell.forecasters.combine.aggregate import Aggregate
from foretell.forecasters.forecaster import CannotForecast, Forecaster, RunContext
from foretell.questions.distribution import Categorical, Numeric
from foretell.questions.event import Emit
from foretell.questions.forecast import Failure, Forecast, Usage
from foretell.questions.question import Question


class Judge(Protocol):
    """Puts trials together by reading their reasons."""

    async def judge(self, question: Question, forecasts: Sequence[Forecast], context: RunContext) -> Forecast:
        """The forecast it makes of them, or `CannotForecast`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Trials:
    """The same forecaster several times, each with its own slot, seed and trace; a question fails only if all do."""

    forecaster: Forecaster
    count: int = 5
    combine: Aggregate = field(default_factory=Aggregate)
    judge: Judge | None = None
    """Reads the trials' reasons and answers in place of the rule; where it fails, the rule answers."""
    listen: Callable[[int], Emit] | None = None
    """A listener per trial, so that their events do not mix; otherwise all go to the context's own."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count = {self.count}: at least one trial is needed")

    @property
    def name(self) -> str:
        """As shown in tables."""
        how = "judge" if self.judge else self.combine.name
        return f"{self.forecaster.name} x{self.count} {how}"

    async def forecast(self, question: Question, context: RunContext) -> Forecast:
        """The trials put together, or `CannotForecast` with the reason of the first failure."""
        answers = await self.run(question, context)
        made = [answer for answer in answers if isinstance(answer, Forecast)]
        failures = [answer for answer in answers if isinstance(answer, Failure)]
        if not made:
            raise CannotForecast(f"all {self.count} trials failed; the first: {failures[0].error}")
        return await self._together(question, context, made, failures)

    async def run(self, question: Question, context: RunContext) -> list[Forecast | Failure]:
        """Every trial's own answer, in the order of trials."""
        return list(await asyncio.gather(*(self._one(question, context, trial) for trial in range(self.count))))

    async def _one(self, question: Question, context: RunContext, trial: int) -> Forecast | Failure:
        if isinstance(context, AgentContext):
            context = context.for_trial(trial, self.listen(trial) if self.listen else None)
        try:
            return replace(await self.forecaster.forecast(question, context), trial=trial)
        except CannotForecast as error:
            name = self.forecaster.name
            return Failure(question_id=question.id, forecaster=name, as_of=context.as_of, error=str(error), trial=trial)

    async def _together(
        self, question: Question, context: RunContext, made: list[Forecast], failures: list[Failure]
    ) -> Forecast:
        judged = await self._judged(question, context, made)
        p = judged.p if judged else self.combine.apply([forecast.p for forecast in made], failed=len(failures))
        if question.exclusive and len(p) > 1:
            p = Categorical(p=p, normalise=True).p
        spread = max(abs(a.p[t] - b.p[t]) for a in made for b in made for t in p)
        told = f"{len(made)} of {self.count} trials answered; they differ by at most {spread:.3f}."
        reasons = [f"Trial {one.trial}:\n{one.rationale}" for one in made]
        failed = [f"Trial {one.trial} failed: {one.error}" for one in failures]
        return Forecast(
            question_id=question.id,
            forecaster=self.name,
            as_of=context.as_of,
            p=p,
            rationale="\n\n".join([told, *([judged.rationale] if judged else []), *reasons, *failed]),
            usage=Usage.side_by_side([*(one.usage for one in made), *([judged.usage] if judged else [])]),
            distribution=_distribution(made, p),
        )

    async def _judged(self, question: Question, context: RunContext, made: list[Forecast]) -> Forecast | None:
        if self.judge is None or len(made) < 2:
            return None
        if isinstance(context, AgentContext):
            # One trial past the last: the judge's calls are journalled apart from all of theirs.
            context = context.for_trial(self.count, self.listen(self.count) if self.listen else None)
        try:
            return await self.judge.judge(question, made, context)
        except CannotForecast:
            return None


def _distribution(made: Sequence[Forecast], p: Mapping[str, float]) -> Categorical | Numeric | None:
    """Options as aggregated; numeric distributions by the mean of their quantiles (Vincent 1912)."""
    numeric = [one.distribution for one in made if isinstance(one.distribution, Numeric)]
    if any(isinstance(one.distribution, Categorical) for one in made):
        return Categorical(p=p, normalise=True)
    if not numeric:
        return None
    described = [level for level in LEVELS.values() if all(one.cdf[0] <= level <= one.cdf[-1] for one in numeric)]
    means = {level: sum(one.quantile(level) for one in numeric) / len(numeric) for level in described}
    try:
        return Numeric.from_quantiles(means)
    except ValueError:
        return None
