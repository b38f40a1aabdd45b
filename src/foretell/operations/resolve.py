"""Look up the outcomes of a run's questions."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from foretell.frozen import frozen
from foretell.number_text import bracket
from foretell.operations.requests.runs import RunsResolveRequest
from foretell.report.result import Result
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.resolve import market_outcomes, set_outcomes, table_outcomes
from foretell.runs.settings import Settings, load_settings
from foretell.runs.store import RunStore, find_run
from foretell.scoring.stored_scores import StoredScores


@frozen
class ResolveResult(Result):
    """What is known about the outcomes of a run's questions."""

    run: str
    decided: int
    """How many questions have at least one outcome."""
    questions: int
    new: int
    """How many outcomes are new."""
    score: Mapping[str, Any]
    problems: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Outcomes that could not be looked up."""
        return self.problems

    def __str__(self) -> str:
        text = f"run {self.run}: {self.decided} of {self.questions} questions decided, {self.new} outcomes new"
        index = self.score.get("brier_index")
        if index is None:
            return text
        others = [
            f"{name} {self.score[key]['estimate']:.1f}"
            for key, name in (("price", "market"), ("base_rate", "base rate"))
            if self.score.get(key)
        ]
        baselines = f" ({', '.join(others)})" if others else ""
        return f"{text}\nBrier index {index['estimate']:.1f} {bracket(index['low'], index['high'], 1)}{baselines}"


async def resolve_run(request: RunsResolveRequest, settings: Settings | None = None) -> ResolveResult:
    """Look up the outcomes of a run in its question set, on markets, or in a table."""
    settings = settings or load_settings()
    problems: list[str] = []
    with closing(RunStore(settings.store)) as store:
        run = find_run(store, request.run)
        questions = store.questions(run)
        resolutions = [
            *table_outcomes(request.outcomes, questions),
            *set_outcomes(store, run, problems),
            *await market_outcomes(questions, settings, problems),
        ]
        new = RunOutcomes(store).keep(
            run, questions, {(r.question_id, r.due, r.target_id): r for r in resolutions}.values()
        )
        row = store.run(run)
        assert row is not None
        score = StoredScores(store).of([row])[run]
    return ResolveResult(
        run=row.name or run,
        decided=score["decided"],
        questions=len(questions),
        new=new,
        score=score,
        problems=tuple(problems),
    )
