"""The answers of stored runs: the trials of each question combined, and what pages and scores need of them."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime

from foretell.forecasters.combine.aggregate import PANEL
from foretell.frozen import frozen
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.runs.combine import (
    combine_trials,
    combining_of_row,
    combining_trials_alone,
    learnt_from,
    with_probabilities,
)
from foretell.runs.spec import AUTO
from foretell.runs.store import RunRow, RunStore
from foretell.scoring.caveats import run_caveats

Answers = Sequence[Forecast | Failure]


def final_forecasts(store: RunStore, row: RunRow, answers: Answers, questions: Sequence[Question]) -> list[Forecast]:
    """One forecast per question of a run, with trials combined as its spec says: the number shown everywhere."""
    return combine_trials(answers, questions, combining_of_row(store, row))


def scored_forecasts(store: RunStore, row: RunRow, answers: Answers, questions: Sequence[Question]) -> list[Forecast]:
    """The forecasts a run is scored by. Under `auto` these are its trials alone.

    Otherwise the forecaster would be compared with a price that is already part of its answers.
    """
    if (row.spec.get("combine") or AUTO) == AUTO:
        return combine_trials(answers, questions, combining_trials_alone(row))
    return final_forecasts(store, row, answers, questions)


def combined_forecasts(
    store: RunStore, row: RunRow, answers: Answers, questions: Sequence[Question], own: Sequence[Forecast]
) -> list[Forecast]:
    """The answers of a run if they differ from the forecasts it is scored by, `own`, whose reasons they have."""
    stored = stored_answers(store, row)
    if stored is None:
        return _combined(store, row, answers, questions, own)
    combined = {answer.key: answer.combined for answer in stored.answers}
    pairs = [(forecast, combined.get(_key(forecast))) for forecast in own]
    return [with_probabilities(forecast, p) for forecast, p in pairs if p is not None]


def _combined(
    store: RunStore, row: RunRow, answers: Answers, questions: Sequence[Question], own: Sequence[Forecast]
) -> list[Forecast]:
    if learnt_from(store, row) is None:
        return []
    finals = [forecast.p for forecast in final_forecasts(store, row, answers, questions)]
    if all(forecast.p == p for forecast, p in zip(own, finals, strict=True)):
        return []
    return [with_probabilities(*pair) for pair in zip(own, finals, strict=True)]


# Combining the trials of a long run and fitting its rule take long, so the results are stored.


@frozen
class StoredAnswer:
    """What pages and scores need of the trials of one question."""

    question: str
    as_of: str
    own: Mapping[str, float] | None = None
    """The forecast that the run is scored by; None if no trial can be used."""
    combined: Mapping[str, float] | None = None
    """The answer, if answers of the run differ from the forecasts it is scored by."""
    trials: Sequence[Mapping[str, float]] = ()
    failed: int = 0
    """Number of trials without an answer."""
    fallback: int = 0
    """Number of trials whose answer is based on a failure."""
    value: str = ""
    """The value of its series that the forecast stands on, in words."""

    @property
    def p(self) -> Mapping[str, float] | None:
        """The answer."""
        return self.own if self.combined is None else self.combined

    @property
    def key(self) -> tuple[str, str]:
        """The question and the time as of which it was asked."""
        return self.question, self.as_of


FIELDS = tuple(field.name for field in fields(StoredAnswer))


@frozen
class StoredAnswers:
    """What pages and scores need of the trials of a run."""

    answers: tuple[StoredAnswer, ...]
    caveats: tuple[str, ...]
    """What failed or was left out, and what that means for the scores."""


STORED_VERSION = 4
"""Version of the stored answers; raised if they are computed in another way."""


def answers_of_run(store: RunStore, row: RunRow, questions: Sequence[Question], *, combined: bool) -> StoredAnswers:
    """Return the answers of a run, computed again if a trial has ended or its rule has learnt from other outcomes.

    Without `combined`, the rule is not fitted: `StoredAnswer.combined` may be missing, and nothing is stored.
    """
    if combined and (stored := stored_answers(store, row)) is not None:
        return stored
    answers = list(store.answers(row.id))
    forecasts = scored_forecasts(store, row, answers, questions)
    own = {_key(forecast): forecast for forecast in forecasts}
    combined_by_key = {
        _key(forecast): forecast.p
        for forecast in (_combined(store, row, answers, questions, forecasts) if combined else ())
    }
    trials: dict[tuple[str, str], list[Forecast | Failure]] = {}
    for answer in answers:
        trials.setdefault(_key(answer), []).append(answer)
    result = StoredAnswers(
        answers=tuple(
            _stored_answer(key, ended, own.get(key), combined_by_key.get(key)) for key, ended in trials.items()
        ),
        caveats=caveats_of_answers(row, len(questions), answers),
    )
    if combined:
        rows = [[getattr(answer, name) for name in FIELDS] for answer in result.answers]
        store.keep_answers(row.id, _state(store, row), json.dumps([rows, result.caveats]))
    return result


def stored_answers(store: RunStore, row: RunRow) -> StoredAnswers | None:
    """Return the stored answers of a run; None if they are damaged, missing or of another state."""
    text = store.kept_answers(row.id, _state(store, row))
    if text is None:
        return None
    rows, caveats = json.loads(text)
    answers = tuple(StoredAnswer(**dict(zip(FIELDS, values, strict=True))) for values in rows)
    return StoredAnswers(answers=answers, caveats=tuple(caveats))


def _state(store: RunStore, row: RunRow) -> str:
    return f"{STORED_VERSION} {row.state_of_answers} {learnt_from(store, row)}"


def _key(answer: Forecast | Failure) -> tuple[str, str]:
    return answer.question_id, answer.as_of.at.isoformat()


def _stored_answer(
    key: tuple[str, str], ended: Answers, own: Forecast | None, combined: Mapping[str, float] | None
) -> StoredAnswer:
    forecasts = [trial for trial in ended if isinstance(trial, Forecast) and trial.forecaster != PANEL]
    return StoredAnswer(
        question=key[0],
        as_of=key[1],
        own=None if own is None else dict(own.p),
        combined=None if combined is None else dict(combined),
        trials=[dict(forecast.p) for forecast in forecasts],
        failed=sum(isinstance(trial, Failure) for trial in ended),
        fallback=sum(forecast.fallback for forecast in forecasts),
        value="" if own is None or own.value is None else own.value.in_words,
    )


# What failed in a run.


def caveats_of_run(store: RunStore, row: RunRow) -> tuple[str, ...]:
    """Return what failed or was left out in a run, and what that means for its scores."""
    if (stored := stored_answers(store, row)) is not None:
        return stored.caveats
    return caveats_of_answers(row, store.question_count(row.id), list(store.answers(row.id)))


def caveats_of_answers(
    row: RunRow, questions: int, answers: Answers, *, excluded: int | None = None
) -> tuple[str, ...]:
    """Return the same, given the number of questions and the answers to them."""
    ended, usable = Counter[tuple[str, datetime]](), set[tuple[str, datetime]]()
    for answer in answers:
        if answer.forecaster != PANEL:
            key = (answer.question_id, answer.as_of.at)
            ended[key] += 1
            if isinstance(answer, Forecast) and not answer.fallback:
                usable.add(key)
    planned = int(row.spec.get("trials", 1))
    return run_caveats(
        answers,
        unanswered=sum(count >= planned and key not in usable for key, count in ended.items()),
        questions=questions,
        excluded=int(row.spec.get("questions", {}).get("excluded", 0)) if excluded is None else excluded,
    )
