"""An arena as a question set: every question that it asked, with the context it kept and the results so far."""

from contextlib import closing
from pathlib import Path

from foretell.arena.listing import check_arena
from foretell.arena.spec import read_arena
from foretell.arena.store import ArenaStore
from foretell.data.datasets.dataset import DatasetRequest
from foretell.data.datasets.question_set import QuestionSet, asked_key
from foretell.runs.settings import load_settings
from foretell.runs.store import RunStore


def arena_questions(request: DatasetRequest) -> QuestionSet:
    """Return the questions of the arena `arena:NAME`, by its name, its file or its folder."""
    named = request.argument
    name = read_arena(named).name if named and Path(named).exists() else named
    with closing(RunStore(load_settings().store)) as runs:
        check_arena(runs.database, name)
        store = ArenaStore(runs.database, name)
        asked = store.asked()
        return QuestionSet(
            name=f"arena {name}",
            questions=tuple(question for question, _ in asked),
            resolutions=tuple(store.outcomes()),
            contexts={asked_key(question): context for question, context in asked},
        )
