"""What every platform asks of a forecast before any of its own rules."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from foretell.arena.submission.submission import Item
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question

OLD = timedelta(days=7)


def newest(forecasts: Iterable[Forecast]) -> list[Forecast]:
    """The last forecast of each question, in the order in which questions first came up."""
    found: dict[str, Forecast] = {}
    for forecast in forecasts:
        known = found.get(forecast.question_id)
        if known is None or forecast.as_of.at >= known.as_of.at:
            found[forecast.question_id] = forecast
    return list(found.values())


def past(forecast: Forecast) -> tuple[str, ...]:
    """Why a forecast is none of the present."""
    if forecast.as_of.mode == "backtest":
        return (f"it was made as of {forecast.as_of.at.date()} in a backtest, not live",)
    return ()


def age(forecast: Forecast, now: datetime) -> tuple[str, ...]:
    """A word about a forecast that may have been overtaken by events."""
    days = (now - forecast.as_of.at) / timedelta(days=1)
    return (f"it was made {days:.0f} days ago",) if now - forecast.as_of.at > OLD else ()


def unanswered(forecasts: Sequence[Forecast], questions: Iterable[Question]) -> list[Item]:
    """What was asked and has no forecast."""
    answered = {forecast.question_id for forecast in forecasts}
    silent = {question.id: question.text for question in questions if question.id not in answered}
    return [
        Item(question=id, part="forecast", content={}, title=title, problems=("it has no forecast",))
        for id, title in silent.items()
    ]
