"""What entries stated, for the study of consistency: before anything was made to fit."""

from collections.abc import Mapping, Sequence

import numpy as np

from foretell.arena.standings.from_book import from_book
from foretell.arena.standings.standings import Standings
from foretell.arena.studies.consistency import Statement, consistency_study
from foretell.arena.studies.structure import Structure, plain_structure
from foretell.arena.study import Study
from foretell.llm.database.port import Database
from foretell.questions.codec import from_json
from foretell.questions.question import Question

_LAST_ASKED = """
select question from asked where moment in (
    select max(id) from moment where arena = ? and state = 'ready' group by event)"""


def statements(standings: Standings, questions: Mapping[str, Question]) -> list[Statement]:
    """What every entry stated at the last moment of every event whose question is at hand, yardsticks left out."""
    table = standings.p if standings.stated is None else standings.stated
    ends = np.append(standings.starts, len(standings.markets))
    found: list[Statement] = []
    for moment in _last_moments(standings):
        event = standings.events.ids[int(standings.moments.event[moment])]
        if event not in questions:
            continue
        rows = slice(int(ends[moment]), int(ends[moment + 1]))
        targets = standings.markets.target[rows]
        for entry, said in zip(standings.entries, table[:, rows], strict=True):
            p = {target: one for target, one in zip(targets, said.tolist(), strict=True) if np.isfinite(one)}
            if p and not entry.anchor:
                found.append(Statement(forecaster=entry.name, question=questions[event], p=p))
    return found


def consistency_of(database: Database, arena: str, structures: Mapping[str, Structure] | None = None) -> Study:
    """Logical-chain and exclusivity scores of an arena's entries (Prophet Arena D.4).

    Structures by event come from what the questions declare and from their wording, unless others (a model's) are
    given. They need no outcome: open events count as well.
    """
    asked: Sequence[tuple[str]] = database.read(_LAST_ASKED, (arena,))
    questions = {question.id: question for (body,) in asked if (question := from_json(body, Question))}
    found = structures or {id: plain_structure(question) for id, question in questions.items()}
    return consistency_study(statements(from_book(database, arena, stated=True), questions), found)


def _last_moments(standings: Standings) -> list[int]:
    """The last moment of every event."""
    event = standings.moments.event
    return np.flatnonzero(np.append(np.diff(event) > 0, [True] * bool(len(event)))).tolist()
