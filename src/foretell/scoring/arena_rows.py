"""The published events of Prophet Arena, or any question set, as an arena's table without entries."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from foretell.data.datasets.prophet_arena import read_arena_file
from foretell.data.datasets.question_set import QuestionSet
from foretell.questions.errors import InputError
from foretell.questions.question import Target
from foretell.scoring.arena_table import (
    ArenaOutcomes,
    ArenaTable,
    EventKinds,
    MomentColumns,
    Times,
    arena_frame,
    moment_arrays,
)


def arena_table_from_prophet_arena(path: str | Path) -> ArenaTable:
    """The published events of Prophet Arena, as CSV or as the SDK's JSONL; only the baselines will be scored."""
    found = read_arena_file(path)
    if found is None:
        raise InputError("this is no file of Prophet Arena events", path=path, hint="its CSV subset, or events.jsonl")
    return arena_table_from_questions(found)


def arena_table_from_questions(asked: QuestionSet) -> ArenaTable:
    """A question set as an arena's table: every question is an event at the moment it was asked."""
    questions = asked.questions
    columns = MomentColumns(
        event=[one.id for one in questions],
        taken_at=seconds_of([one.due for one in questions]),
        closes_at=seconds_of([one.closes_at for one in questions]),
        targets=[tuple(target.id for target in one.targets) for one in questions],
        quotes=[np.array([_quotes(target) for target in one.targets], "<f8").tobytes() for one in questions],
    )
    kinds = EventKinds(
        category={one.id: one.category for one in questions},
        platform={one.id: one.source for one in questions},
        cluster={one.id: one.cluster for one in questions},
    )
    known = {(one.question_id, one.target_id): one for one in asked.resolutions}
    outcomes = ArenaOutcomes(
        place={key: i for i, key in enumerate(known)},
        outcome=np.array([one.outcome for one in known.values()], np.float64),
        known_at=seconds_of([one.resolved_at for one in known.values()]),
    )
    return replace(arena_frame(asked.name, moment_arrays(columns), kinds, outcomes), notes=asked.notes)


def seconds_of(moments: Sequence[datetime | None]) -> Times:
    """Moments as an array, to the second; None is NaT."""
    found = [None if at is None else at.astimezone(UTC).replace(tzinfo=None) for at in moments]
    return np.array(found, "datetime64[s]")


def _quotes(target: Target) -> list[float | None]:
    """Last price, yes bid, yes ask and no ask; None where there is none."""
    shot = target.snapshot
    return [None] * 4 if shot is None else [shot.last_price, shot.yes_bid, shot.yes_ask, shot.no_ask]
