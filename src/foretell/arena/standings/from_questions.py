"""Standings out of a set of questions with outcomes: the Prophet Arena data set, or any other, with any forecasts."""

from collections.abc import Iterable
from pathlib import Path

from foretell.arena.standings.making import Answer, Asking, Outcome, standings_of
from foretell.arena.standings.standings import Standings
from foretell.questions.forecast import Forecast
from foretell.questions.problems import InputError
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.sources.datasets.arena_files import read_arena_file
from foretell.sources.datasets.question_set import QuestionSet

NOTHING = float("nan")


def from_questions(asked: QuestionSet, forecasts: Iterable[Forecast] = ()) -> Standings:
    """Standings of a question set; without forecasts they hold the yardsticks only."""
    moments = {(question.id, question.as_of.at): question for question in asked.questions}
    answers = [
        Answer(
            entry=forecast.forecaster,
            event=question.id,
            taken_at=question.due,
            p=forecast.p,
            dollars=forecast.usage.dollars,
            seconds=forecast.usage.seconds,
        )
        for forecast in forecasts
        if (question := moments.get((forecast.question_id, forecast.as_of.at))) is not None
    ]
    return standings_of(
        asked.name,
        [_asking(question) for question in asked.questions],
        _outcomes(asked.resolutions),
        answers,
        notes=asked.notes,
    )


def from_prophet_arena(path: str | Path) -> Standings:
    """The published events, as CSV or as the SDK's JSONL, with the yardsticks that need no model."""
    found = read_arena_file(path)
    if found is None:
        raise InputError("this is no file of Prophet Arena events", path=path, hint="its CSV subset, or events.jsonl")
    return from_questions(found)


def _asking(question: Question) -> Asking:
    return Asking(
        event=question.id,
        taken_at=question.due,
        targets=tuple(target.id for target in question.targets),
        closes_at=question.closes_at,
        category=question.category,
        platform=question.source,
        cluster=question.cluster,
        quotes=[number for target in question.targets for number in _quotes(target)],
    )


def _quotes(target: Target) -> tuple[float, float, float, float]:
    shot = target.snapshot
    if shot is None:
        return NOTHING, NOTHING, NOTHING, NOTHING
    last, bid, yes, no = (
        NOTHING if one is None else one for one in (shot.last_price, shot.yes_bid, shot.yes_ask, shot.no_ask)
    )
    return last, bid, yes, no


def _outcomes(resolutions: Iterable[Resolution]) -> dict[tuple[str, str], Outcome]:
    return {
        (one.question_id, one.target_id): Outcome(outcome=one.outcome, known_at=one.resolved_at) for one in resolutions
    }
