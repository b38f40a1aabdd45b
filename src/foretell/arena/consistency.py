"""What entries stated, for the study of consistency: before anything was made to fit."""

from collections.abc import Mapping, Sequence

import numpy as np

from foretell.arena.score_data import read_arena_table
from foretell.models.database.interface import Database
from foretell.questions.codec import from_json
from foretell.questions.question import Question
from foretell.report.study import StudyResult
from foretell.scoring.arena_table import ArenaTable
from foretell.studies.consistency import OutcomeStructure, StatedForecast, consistency_study, plain_structure

_LAST_ASKED = """
select question from asked where moment in (
    select max(id) from moment where arena = ? and state = 'ready' group by event)"""


def stated_forecasts(standings: ArenaTable, questions: Mapping[str, Question]) -> list[StatedForecast]:
    """What every entry stated at the last moment of every event whose question is at hand, yardsticks left out."""
    table = standings.p if standings.stated is None else standings.stated
    ends = np.append(standings.starts, len(standings.markets))
    found: list[StatedForecast] = []
    for moment in _last_moments(standings):
        event = standings.events.ids[int(standings.moments.event[moment])]
        if event not in questions:
            continue
        rows = slice(int(ends[moment]), int(ends[moment + 1]))
        targets = standings.markets.target[rows]
        for entry, said in zip(standings.entries, table[:, rows], strict=True):
            p = {target: one for target, one in zip(targets, said.tolist(), strict=True) if np.isfinite(one)}
            if p and not entry.anchor:
                found.append(StatedForecast(forecaster=entry.name, question=questions[event], p=p))
    return found


def arena_consistency_study(
    database: Database, arena: str, structures: Mapping[str, OutcomeStructure] | None = None
) -> StudyResult:
    """Logical-chain and exclusivity scores of an arena's entries (Prophet Arena D.4).

    Structures by event come from what the questions declare and from their wording, unless others (a model's) are
    given. They need no outcome: open events count as well.
    """
    asked: Sequence[tuple[str]] = database.read(_LAST_ASKED, (arena,))
    questions = {question.id: question for (body,) in asked if (question := from_json(body, Question))}
    found = structures or {id: plain_structure(question) for id, question in questions.items()}
    return consistency_study(stated_forecasts(read_arena_table(database, arena, stated=True), questions), found)


def _last_moments(standings: ArenaTable) -> list[int]:
    """The last moment of every event."""
    event = standings.moments.event
    return np.flatnonzero(np.append(np.diff(event) > 0, [True] * bool(len(event)))).tolist()
