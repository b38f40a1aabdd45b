"""The one thing every forecaster does."""

from dataclasses import dataclass, field
from typing import Protocol

from foretell.questions.clock import AsOf
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, SeriesRef
from foretell.sources.http import SourceError
from foretell.sources.series import Series, SeriesSource, SeriesUnavailable


class CannotForecast(Exception):
    """The forecaster has nothing to say on this question, and says why: it is recorded as a `Failure`."""


class NoSeries:
    """The source of a run that was given none."""

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Always refuses."""
        raise SeriesUnavailable(f"no source of series was given for {ref.provider}/{ref.id}")


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """What a forecaster may lean on besides the question: the cutoff, and sources that respect it."""

    as_of: AsOf
    series: SeriesSource = field(default_factory=NoSeries)

    async def series_of(self, question: Question) -> Series:
        """The series that decides the question, clamped to the cutoff whatever the source returned."""
        if question.series is None:
            raise CannotForecast(f"question {question.id} is not about a time series")
        try:
            known = (await self.series.fetch(question.series, self.as_of)).until(self.as_of)
        except (SeriesUnavailable, SourceError) as error:
            raise CannotForecast(str(error)) from error
        if not len(known):
            raise CannotForecast(f"nothing of series {question.series.id} was known at {self.as_of}")
        return known


class Forecaster(Protocol):
    """Turns a question, seen as of a cutoff, into a forecast.

    Asynchronous because most forecasters wait for models and tools; those that only compute simply return.
    """

    @property
    def name(self) -> str:
        """As shown in tables."""
        ...

    async def forecast(self, question: Question, context: RunContext) -> Forecast:
        """One probability for every target of the question, or `CannotForecast`."""
        ...
