"""An arena's table out of plain lists: questions at moments, forecasts and outcomes; or out of a question set."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from foretell.data.datasets.prophet_arena import read_arena_file
from foretell.data.datasets.question_set import QuestionSet
from foretell.metrics.arrays import Floats
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.scoring.arena_table import (
    ArenaEntry,
    ArenaOutcomes,
    ArenaTable,
    EventKinds,
    MomentColumns,
    Times,
    arena_frame,
    moment_arrays,
)


@dataclass(frozen=True, kw_only=True)
class ArenaQuestionRow:
    """One event at one moment."""

    event: str
    taken_at: datetime
    targets: tuple[str, ...]
    closes_at: datetime | None = None
    category: str = ""
    platform: str = ""
    cluster: str = ""
    """Empty: the event's own."""
    quotes: Sequence[float] = ()
    """Last, yes bid, yes ask and no ask of every target in turn; NaN or nothing where there is none."""


@dataclass(frozen=True, kw_only=True)
class ArenaForecastRow:
    """The forecast of one entry at one moment: probabilities by target."""

    entry: str
    event: str
    taken_at: datetime
    p: Mapping[str, float]
    dollars: float = float("nan")
    seconds: float = float("nan")


@dataclass(frozen=True, kw_only=True)
class ArenaOutcomeRow:
    """How a target of an event came out, and when that was known; None: it is void."""

    outcome: int | None
    known_at: datetime | None = None


def arena_table_from_rows(
    name: str,
    questions: Sequence[ArenaQuestionRow],
    outcomes: Mapping[tuple[str, str], ArenaOutcomeRow],
    answers: Sequence[ArenaForecastRow],
    *,
    notes: tuple[str, ...] = (),
) -> ArenaTable:
    """The table of a few thousand forecasts; outcomes by event and target. Trials of one entry are averaged."""
    asked = moment_arrays(
        MomentColumns(
            event=[one.event for one in questions],
            taken_at=seconds_of([one.taken_at for one in questions]),
            closes_at=seconds_of([one.closes_at for one in questions]),
            targets=[one.targets for one in questions],
            quotes=[np.asarray(one.quotes, "<f8").tobytes() for one in questions],
        )
    )
    frame = arena_frame(name, asked, _row_kinds(questions), _row_outcomes(outcomes))
    names = tuple(dict.fromkeys(answer.entry for answer in answers))
    at = {(one.event, one.taken_at): int(asked.place[i]) for i, one in enumerate(questions)}
    p = _TrialMean(len(names), frame)
    for answer in answers:
        moment, code = at[answer.event, answer.taken_at], names.index(answer.entry)
        p.add(code, moment, answer.p)
    return replace(
        frame,
        entries=tuple(_entry(one, [answer for answer in answers if answer.entry == one]) for one in names),
        p=p.mean(),
        notes=notes,
    )


def seconds_of(moments: Sequence[datetime | None]) -> Times:
    """Moments as an array, to the second; None is NaT."""
    found = [None if at is None else at.astimezone(UTC).replace(tzinfo=None) for at in moments]
    return np.array(found, "datetime64[s]")


def _row_kinds(questions: Sequence[ArenaQuestionRow]) -> EventKinds:
    return EventKinds(
        category={one.event: one.category for one in questions},
        platform={one.event: one.platform for one in questions},
        cluster={one.event: one.cluster for one in questions},
    )


def _row_outcomes(outcomes: Mapping[tuple[str, str], ArenaOutcomeRow]) -> ArenaOutcomes:
    return ArenaOutcomes(
        place={key: i for i, key in enumerate(outcomes)},
        outcome=np.array([np.nan if one.outcome is None else one.outcome for one in outcomes.values()], np.float64),
        known_at=seconds_of([one.known_at for one in outcomes.values()]),
    )


class _TrialMean:
    """Sums and counts of trials, so that their mean is one division at the end."""

    def __init__(self, entries: int, frame: ArenaTable) -> None:
        self._targets = frame.markets.target
        self._ends = np.append(frame.starts, len(frame.markets)).tolist()
        shape = (entries, len(frame.markets))
        self._sum, self._n = np.zeros(shape), np.zeros(shape, np.int64)

    def add(self, entry: int, moment: int, p: Mapping[str, float]) -> None:
        """One trial of one moment; a target without a probability was not answered."""
        rows = slice(self._ends[moment], self._ends[moment + 1])
        given = np.array([p.get(target, np.nan) for target in self._targets[rows]], np.float64)
        known = np.isfinite(given)
        self._sum[entry, rows] += np.where(known, given, 0.0)
        self._n[entry, rows] += known

    def mean(self) -> Floats:
        """NaN where there is no forecast."""
        return np.divide(self._sum, self._n, out=np.full(self._sum.shape, np.nan), where=self._n > 0)


def _entry(name: str, answers: Sequence[ArenaForecastRow]) -> ArenaEntry:
    dollars, seconds = ([getattr(one, field) for one in answers] for field in ("dollars", "seconds"))
    return ArenaEntry(name=name, forecasts=len(answers), dollars=_mean(dollars), seconds=_mean(seconds))


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")


NO_PRICE = float("nan")


def arena_table_from_questions(asked: QuestionSet, forecasts: Iterable[Forecast] = ()) -> ArenaTable:
    """A question set as an arena's table; without forecasts only the baselines will be scored."""
    moments = {(question.id, question.as_of.at): question for question in asked.questions}
    answers = [
        ArenaForecastRow(
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
    return arena_table_from_rows(
        asked.name,
        [_question_row(question) for question in asked.questions],
        _outcomes(asked.resolutions),
        answers,
        notes=asked.notes,
    )


def arena_table_from_prophet_arena(path: str | Path) -> ArenaTable:
    """The published events of Prophet Arena, as CSV or as the SDK's JSONL."""
    found = read_arena_file(path)
    if found is None:
        raise InputError("this is no file of Prophet Arena events", path=path, hint="its CSV subset, or events.jsonl")
    return arena_table_from_questions(found)


def _question_row(question: Question) -> ArenaQuestionRow:
    return ArenaQuestionRow(
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
        return NO_PRICE, NO_PRICE, NO_PRICE, NO_PRICE
    last, bid, yes, no = (
        NO_PRICE if one is None else one for one in (shot.last_price, shot.yes_bid, shot.yes_ask, shot.no_ask)
    )
    return last, bid, yes, no


def _outcomes(resolutions: Iterable[Resolution]) -> dict[tuple[str, str], ArenaOutcomeRow]:
    return {
        (one.question_id, one.target_id): ArenaOutcomeRow(outcome=one.outcome, known_at=one.resolved_at)
        for one in resolutions
    }
