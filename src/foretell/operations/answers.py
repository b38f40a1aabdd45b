"""Score the answers of stored runs to questions that are answered in words, lists, numbers or options."""

from collections import Counter
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import Any

from foretell.data.datasets.free_form import FREE_FORM, RIGHT, stated_answer
from foretell.data.files import write_atomically
from foretell.data.untrusted import rows_as_csv
from foretell.frozen import frozen
from foretell.interface import suggesting
from foretell.models.model import ModelError
from foretell.number_text import plural
from foretell.operations.studies import MachineServices
from foretell.python_calls import python_errors
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost, Forecast
from foretell.questions.question import Question
from foretell.report.result import Result
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync
from foretell.runs.question_sets import questions_of_run
from foretell.runs.settings import Settings, load_settings
from foretell.runs.store import RunStore
from foretell.scoring.answers import ScoredAnswer, chosen_options, judge_answer, score_answer, total_score
from foretell.studies.inputs import gather_bounded, refuse_if_all_failed
from foretell.studies.stored_runs import find_stored_run, forecasts_of_run

COLUMNS = ("forecaster", "question", "target", "due", "trial", "p", "outcome", "score", "level", "rule", "answer")


@frozen
class RunAnswer:
    """One answer of a run with its score, and the forecast that states it."""

    question: Question
    forecast: Forecast
    scored: ScoredAnswer


@frozen
class AnswerScores(Result):
    """The answers of a run with their scores."""

    forecaster: str
    answers: tuple[RunAnswer, ...]
    cost: Cost
    problems: tuple[str, ...] = ()
    """Why the judge could not compare some of the answers."""

    @property
    def total(self) -> float:
        """The mean score by level, weighted as FutureX does."""
        return total_score([answer.scored for answer in self.answers])

    @property
    def undecided(self) -> int:
        """The number of answers in other words than the right one that no judge compared; their score is without it."""
        return sum(not answer.scored.comparable for answer in self.answers)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A note on answers that only a judge can compare."""
        if not self.undecided:
            return ()
        differ = f"{plural(self.undecided, 'answer')} in other words than the right one, which only a judge can compare"
        return (differ, *(f"{count}: {problem}" for problem, count in Counter(self.problems).most_common(3)))

    def by_level(self) -> dict[int, tuple[int, float]]:
        """Return the number of answers and their mean score by level; 0 for questions without a level."""
        levels: dict[int, list[float]] = {}
        for answer in self.answers:
            levels.setdefault(answer.scored.reference.level or 0, []).append(answer.scored.score)
        return {level: (len(scores), fmean(scores)) for level, scores in sorted(levels.items())}

    def rows(self) -> list[dict[str, Any]]:
        """Return the answers in words as a table that `score` reads: p is the probability that the answer is right.

        Undecided answers have no outcome.
        """
        return [self._row(answer) for answer in self.answers if answer.question.subtype == FREE_FORM]

    def _row(self, answer: RunAnswer) -> dict[str, Any]:
        scored = answer.scored
        values = (
            *(self.forecaster, answer.question.id, RIGHT, answer.question.due.date().isoformat()),
            *(answer.forecast.trial, answer.forecast.p[RIGHT], int(scored.right) if scored.comparable else None),
            *(scored.score, scored.reference.level, scored.rule, scored.answer),
        )
        return dict(zip(COLUMNS, values, strict=True))

    def write(self, path: Path) -> None:
        """Write the rows as CSV for `foretell score`."""
        write_atomically(path, rows_as_csv(self.rows(), COLUMNS).encode())

    def to_dict(self) -> dict[str, Any]:
        """Return the scores by level and the rows."""
        levels = {str(level): {"n": n, "score": mean} for level, (n, mean) in self.by_level().items()}
        return {"total": self.total, "levels": levels, "undecided": self.undecided, "answers": self.rows()}

    def __str__(self) -> str:
        levels = (f"level {level}: {mean:.3f} (n = {n})" for level, (n, mean) in self.by_level().items() if level)
        parts = "; ".join(levels)
        return f"{self.forecaster}: {self.total:.3f} on {plural(len(self.answers), 'answer')}{parts and f'; {parts}'}"


def has_answers(run: str, settings: Settings | None = None) -> bool:
    """Return whether questions of a stored run are answered in words. Raises `InputError` if there is no such run."""
    with closing(RunStore((settings or load_settings()).store)) as store:
        stored = find_stored_run(store, run)
        return any(question.subtype == FREE_FORM for question in store.questions(stored.id))


@suggesting
@python_errors()
def score_answers(
    run: str, *, judge: str | None = None, budget: float | None = None, settings: Settings | None = None
) -> AnswerScores:
    """Score every answer of a stored run whose question set has the right answers.

    Args:
        run: Name or id of the run; the beginning of the id is enough.
        judge: A model, as "provider:name", that compares texts which differ. Without one, they stay undecided.
        budget: Hard limit in dollars for the judge. Its replies are saved: an answer is compared and paid for once.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        An `AnswerScores`; `write` makes a table for `score` of the answers in words.

    Raises:
        InputError: If there is no such run, its set has no right answers, or the judge gave no usable answer at all.
    """
    services = MachineServices(settings=settings or load_settings(), watch=lambda _: None)
    return run_sync(_score(services, run, judge, budget), event_loop.run)


async def _score(services: MachineServices, run: str, judge: str | None, budget: float | None) -> AnswerScores:
    with services.store() as store:
        stored = find_stored_run(store, run)
        references = {known.question_id: known for known in questions_of_run(store, stored.id).references}
        answers = [
            RunAnswer(question=question, forecast=forecast, scored=score_answer(reference, _answer(question, forecast)))
            for _, question, forecast in forecasts_of_run(store, stored.id)
            if (reference := references.get(question.id)) is not None
        ]
    if not answers:
        hint = "sets of FutureX and OpenForesight have them"
        raise InputError(f"run {stored.id} has no answer to a question whose right answer is known", hint=hint)
    if judge is None or all(answer.scored.comparable for answer in answers):
        return AnswerScores(forecaster=stored.name, answers=tuple(answers), cost=Cost())
    services.check_models([judge])
    problems: list[str] = []
    async with services.model("answers", judge, budget) as models:

        async def judged(answer: RunAnswer) -> RunAnswer:
            try:
                scored = await judge_answer(models.model, judge, answer.question, answer.scored)
            except ModelError as error:
                problems.append(str(error))
                return answer
            return RunAnswer(question=answer.question, forecast=answer.forecast, scored=scored)

        compared = await gather_bounded(answers, judged, models.progress)
        cost = models.cost
    refuse_if_all_failed(judge, problems, sum(answer.scored.rule == "judge" for answer in compared))
    return AnswerScores(forecaster=stored.name, answers=tuple(compared), cost=cost, problems=tuple(problems))


def _answer(question: Question, forecast: Forecast) -> str:
    if question.subtype == FREE_FORM:
        return stated_answer(forecast.rationale)
    return chosen_options(question, forecast.p)
