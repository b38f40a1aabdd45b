"""What can be said of a question without any model: the crowd's price, or how questions like it ended."""

from functools import cache
from pathlib import Path

from foretell.app import loop
from foretell.app.settings import Settings
from foretell.arena.history import past_questions
from foretell.arena.waiting import waited
from foretell.forecasters.baselines import Crowd
from foretell.forecasters.forecaster import CannotForecast, RunContext
from foretell.forecasters.outside.past import PastQuestions
from foretell.forecasters.outside.similar import ReferenceClass
from foretell.forecasters.outside.view import OutsideView
from foretell.questions.clock import AsOf
from foretell.questions.forecast import Forecast
from foretell.questions.problems import InputError
from foretell.questions.question import Question
from foretell.sources.datasets.cache import Cache
from foretell.sources.datasets.pull import pulled_rounds, read_pulled
from foretell.sources.datasets.question_set import QuestionSet, union


def outside_forecast(question: Question, as_of: AsOf, settings: Settings) -> Forecast:
    """The price where one was given, else the outside view, with the reference class among the pulled rounds."""
    priced = all(target.snapshot is not None for target in question.targets)
    forecaster = Crowd() if priced else OutsideView(bank=_pulled(settings.home))
    try:
        return waited(forecaster.forecast(question, RunContext(as_of=as_of)), loop.run)
    except CannotForecast as reason:
        hint = "foretell data pull forecastbench brings rounds to learn from, or give --model"
        raise InputError(str(reason), hint=hint) from None


def reference_class(question: Question, as_of: AsOf, settings: Settings) -> ReferenceClass | None:
    """The most similar questions among the pulled rounds; None where none were pulled."""
    bank = _pulled(settings.home)
    return None if bank is None else ReferenceClass.of(question, bank, as_of)


@cache
def _pulled(home: Path) -> PastQuestions | None:
    cache = Cache(home / "forecastbench")
    found = [found for day in pulled_rounds(cache) if (found := _readable(cache, day))]
    if not found:
        return None
    everything = union("pulled", found)
    return past_questions(everything.questions, everything.resolutions)


def _readable(cache: Cache, day: str) -> QuestionSet | None:
    try:
        return read_pulled(cache, day)
    except InputError:
        return None
