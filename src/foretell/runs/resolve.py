"""Outcomes of a run's questions: from a table, its question set, or the markets that ask them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from foretell.data.datasets.question_files import read_outcomes
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.market import market_ref
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.runs.question_sets import questions_of_run
from foretell.runs.services import open_markets
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore


def table_outcomes(path: Path | None, questions: Sequence[Question]) -> list[Resolution]:
    """Return the outcomes in a table, some of which must belong to the run."""
    if path is None:
        return []
    outcomes = read_outcomes(path)
    targets = {(question.id, target.id) for question in questions for target in question.targets}
    if outcomes and not any((outcome.question_id, outcome.target_id) in targets for outcome in outcomes):
        hint = "the columns question and target hold the ids that foretell show RUN --json prints"
        raise InputError("no row is about a question of this run", path=path, column="question", hint=hint)
    return list(outcomes)


def set_outcomes(store: RunStore, run: str, problems: list[str]) -> Sequence[Resolution]:
    """Return the outcomes in the question set of the run."""
    try:
        return questions_of_run(store, run).resolutions
    except InputError as error:
        problems.append(str(error))
        return ()


async def market_outcomes(questions: Sequence[Question], settings: Settings, problems: list[str]) -> list[Resolution]:
    """Return the outcomes that markets have published."""
    now = datetime.now(UTC)
    over = [
        question
        for question in questions
        if question.closes_at is None
        or question.closes_at <= now
        or any(target.resolves_at is not None and target.resolves_at <= now for target in question.targets)
    ]
    platforms = {ref.platform for q in over for target in q.targets if (ref := market_ref(q, target)) is not None}
    if not platforms:
        return []
    resolutions: list[Resolution] = []
    async with AsyncHttpClient(access=settings.access) as client:
        markets = open_markets(settings, client, sorted(platforms))
        for platform, source in markets.settlements.items():
            try:
                resolutions += await source.settlements(over)
            except SourceError as error:
                problems.append(f"{platform}: {error}")
    return resolutions
