"""Past events for studies of memory: questions whose outcomes are known, with what was published about them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from foretell.app.datasets import open_benchmark
from foretell.app.study_asking import spread
from foretell.arena.studies.recall import Past
from foretell.forecasters.context.context import from_articles
from foretell.questions.problems import InputError
from foretell.questions.question import Question
from foretell.sources.datasets.question_set import Key
from foretell.sources.datasets.row import csv_rows


def past_events(
    dataset: str, *, rounds: Sequence[str] = (), outcomes: Path | None = None, limit: int | None = None
) -> list[Past]:
    """Events with a known outcome, the last asking of each; `outcomes` tells those that the set does not."""
    found = open_benchmark(dataset, rounds=rounds).questions
    told = read_outcomes(outcomes) if outcomes is not None else {}
    known: dict[str, tuple[Question, dict[str, int]]] = {}
    resolved = found.outcomes()
    for question in found.questions:
        if truth := _truth(question, resolved) | _told(question, told):
            known[question.id] = question, truth
    if not known:
        hint = "give --outcomes, a table of question, target and outcome"
        raise InputError("none of the questions has a known outcome", column="--questions", hint=hint)
    return [
        Past(context=from_articles(question, found.contexts.get((question.id, question.due), ())), truth=truth)
        for question, truth in spread(list(known.values()), limit or len(known))
    ]


def read_outcomes(path: Path) -> dict[tuple[str, str], int]:
    """How targets came out, 0 or 1, from a CSV file with question, outcome and, where there are several, target."""
    found: dict[tuple[str, str], int] = {}
    for row in csv_rows(path):
        text = row.text("outcome")
        if text and text not in ("0", "1", "0.0", "1.0"):
            raise row.problem("outcome", f"{text[:40]!r} is neither 0 nor 1")
        if text:
            found[row.need("question"), row.text("target")] = int(float(text))
    return found


def _truth(question: Question, outcomes: Mapping[Key, int]) -> dict[str, int]:
    """As the set has it: for each asking, or once for all."""
    truth: dict[str, int] = {}
    for target in question.targets:
        for due in (None, question.due):
            if (key := (question.id, due, target.id)) in outcomes:
                truth[target.id] = outcomes[key]
    return truth


def _told(question: Question, told: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """As a table has it; a question with one target needs none named."""
    named = {target.id: told[question.id, target.id] for target in question.targets if (question.id, target.id) in told}
    if not named and len(question.targets) == 1 and (question.id, "") in told:
        return {question.targets[0].id: told[question.id, ""]}
    return named
