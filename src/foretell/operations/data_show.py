"""Any question set: show it, sort it by topic, or save it to a file."""

import asyncio
import json
from collections import Counter
from collections.abc import Container, Mapping
from contextlib import closing
from dataclasses import field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console

from foretell.data.datasets.question_set import (
    AskedKey,
    QuestionSet,
    SetFilter,
    asked_key,
    excluded_note,
)
from foretell.forecasters.prompt.prediction_context import RefusedArticle, refusal_notes, refused_articles
from foretell.forecasters.topics import TopicClassifier, TopicLabel
from foretell.frozen import frozen
from foretell.models.journal import Journal
from foretell.models.names import ModelRoles
from foretell.models.router import ModelRouter
from foretell.number_text import percent
from foretell.operations.data_build import write_question_set
from foretell.operations.requests.data import (
    DataShowRequest,
)
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.report.result import Result, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.listings import list_questions
from foretell.runs.question_sets import LEAKY_QUESTIONS_HINT, open_benchmark, with_early_texts
from foretell.runs.set_names import find_set
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.tools.post_cutoff_text import PostCutoffPassage, post_cutoff_passages
from foretell.tournaments.ledger import SubmissionHistory, open_ledger

SHOWN = 20
"""How many questions are shown in a terminal."""


@frozen
class QuestionsResult(Result):
    """Valid questions, with their topics if requested."""

    question_set: QuestionSet
    topics: tuple[TopicLabel, ...] = ()
    notes: tuple[str, ...] = ()
    post_cutoff: Mapping[AskedKey, tuple[PostCutoffPassage, ...]] = field(
        default_factory=dict[AskedKey, tuple[PostCutoffPassage, ...]]
    )
    """Questions whose own text is newer than their date; a backtest leaves them out."""
    refused: Mapping[AskedKey, tuple[RefusedArticle, ...]] = field(
        default_factory=dict[AskedKey, tuple[RefusedArticle, ...]]
    )
    """Sources of a question that the leakage filter refuses."""

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions."""
        return self.question_set.questions

    @property
    def outcomes(self) -> int:
        """The number of targets with an outcome."""
        return len(self.question_set.outcomes())

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one dictionary per question, with all fields and notes."""
        rows: list[dict[str, Any]] = []
        for place, question in enumerate(self.questions):
            row = json.loads(to_json(question))
            if self.topics:
                row |= {"topic": self.topics[place].topic, "topic_by": self.topics[place].by}
            if passages := self.post_cutoff.get(asked_key(question)):
                row["excluded"] = [vars(passage) for passage in passages]
            if refused := self.refused.get(asked_key(question)):
                row["refused_sources"] = [vars(article) for article in refused]
            rows.append(row)
        return rows

    def saved(self) -> QuestionSet:
        """Return the set as it is written to a file: the topic of a question, if it has one, is its category."""
        labels = [label.topic for label in self.topics] or [question.category for question in self.questions]
        pairs = zip(self.questions, labels, strict=True)
        return replace(
            self.question_set, questions=tuple(replace(question, category=label) for question, label in pairs)
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return all fields of each question, as in a file of questions."""
        return [json.loads(to_json(question)) for question in self.saved().questions]

    def write_folder(self, folder: Path) -> list[Path]:
        """Write questions.jsonl, outcomes.csv with the known outcomes, and contexts.jsonl; return their paths."""
        return write_question_set(self.saved(), folder)

    def table(self) -> list[dict[str, Any]]:
        """Return what the terminal shows, for every question."""
        rows: list[dict[str, Any]] = []
        for place, question in enumerate(self.questions):
            first = question.targets[0]
            resolves = first.resolves_at or question.closes_at
            row = {
                "id": question.id,
                "asked": question.due.date().isoformat(),
                "resolves": resolves.date().isoformat() if resolves else "",
                "targets": len(question.targets),
                "price": "" if (price := first.snapshot and first.snapshot.price) is None else percent(price),
                "text": question.text,
            }
            row |= {"topic": self.topics[place].topic} if self.topics else {}
            rows.append(row)
        return rows

    def print(self, console: Console) -> None:
        """Print the first questions as a table, and a summary of all."""
        columns: dict[TextColumn, Any] = {
            TextColumn(head="id", shrink=12): "id",
            TextColumn(head="asked", drop=2): "asked",
            TextColumn(head="resolves"): "resolves",
            TextColumn(head="targets", right=True, drop=3): "targets",
            TextColumn(head="price", right=True, drop=1): "price",
        }
        columns |= {TextColumn(head="topic"): "topic"} if self.topics else {}
        show_table(console, self.table()[:SHOWN], columns | {TextColumn(head="question", shrink=32): "text"})
        if len(self.questions) > SHOWN:
            show_text(console, f"… and {len(self.questions) - SHOWN} more\n")
        kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(q.kind for q in self.questions).items())
        targets = sum(len(q.targets) for q in self.questions)
        known = f", {self.outcomes} of which have resolved" if self.outcomes else ""
        show_text(console, f"{len(self.questions)} questions ({kinds}) with {targets} targets{known}: well formed.\n")
        if self.post_cutoff:
            pronoun = "it" if len(self.post_cutoff) == 1 else "them"
            text = f"{excluded_note(len(self.post_cutoff))}. A backtest leaves {pronoun} out"
            show_text(console, f"{text} ({LEAKY_QUESTIONS_HINT}):\n")
        for (id, due), passages in list(self.post_cutoff.items())[:SHOWN]:
            lines = "".join(f"    {passage}\n" for passage in passages[:SHOWN])
            show_text(console, f"  {id}, asked {due.date()}\n{lines}")
        for topic, n in Counter(label.topic for label in self.topics).most_common():
            show_text(console, f"{n:5} {topic}\n")


async def read_set(name: str, wanted: SetFilter, settings: Settings) -> QuestionSet:
    """Read any question set as it is now: a file, a data set, or a market's list."""
    dataset = find_set(name)
    if dataset.kind == "datasets":
        return open_benchmark(name, wanted=wanted, live=True).questions
    if wanted.rounds:
        raise InputError(f"{name} has no rounds", column="questions.rounds")
    questions, notes = await list_questions(dataset, wanted, settings, clock_of(settings)().replace(microsecond=0))
    return QuestionSet(name=name, questions=tuple(questions), notes=notes)


async def show_questions(request: DataShowRequest, settings: Settings | None = None) -> QuestionsResult:
    """Check a question set and return its questions, with their topics if requested.

    Raises InputError if the set or a setting cannot be used, or if no question is left.
    """
    settings, wanted = settings or load_settings(), request.wanted()
    submitted = _submitted(settings) if request.new else frozenset[str]()
    result = await look_at_set(request.dataset, wanted, settings, leave_out=submitted)
    return replace(result, topics=await _topics(result.questions, request.model)) if request.topics else result


async def look_at_set(
    name: str, wanted: SetFilter, settings: Settings, *, leave_out: Container[str] = ()
) -> QuestionsResult:
    """Read a question set, and note texts that are newer than their questions and sources that are refused.

    Questions whose ids are in `leave_out` do not count towards the limit.
    """
    question_set = await read_set(name, replace(wanted, limit=None) if leave_out else wanted, settings)
    chosen = [question for question in question_set.questions if question.id not in leave_out][: wanted.limit]
    if not chosen:
        kind = "new open question for you" if question_set.questions else "such question"
        raise InputError(f"{name} has no {kind}", hint="; ".join(question_set.notes[:3]) or None)
    question_set = question_set.only(chosen)
    post_cutoff = (
        {asked_key(question): post_cutoff_passages(question) for question in question_set.questions}
        if wanted.leaky_questions != "keep"
        else {}
    )
    if wanted.leaky_questions == "redact":
        question_set = with_early_texts(question_set, "redact")
    materials = [(question, question_set.contexts.get(asked_key(question), ())) for question in question_set.questions]
    # A whole context was checked when it was gathered.
    contexts = [(question, material) for question, material in materials if not isinstance(material, str)]
    refused = {
        asked_key(question): tuple(refused_articles(question, articles)) for question, articles in contexts if articles
    }
    named = list(chain.from_iterable(refused.values()))
    return QuestionsResult(
        question_set=question_set,
        notes=(*question_set.notes, *refusal_notes(named, sum(len(articles) for _, articles in contexts), SHOWN)),
        post_cutoff={key: passages for key, passages in post_cutoff.items() if passages},
        refused={key: articles for key, articles in refused.items() if articles},
    )


async def _topics(questions: tuple[Question, ...], model: str | None) -> tuple[TopicLabel, ...]:
    if model is None:
        return tuple([await TopicClassifier().sort(question) for question in questions])
    settings = load_settings()
    with closing(Journal(settings.journal)) as journal:
        async with ModelRouter(settings.keys, journal=journal, addresses=settings.addresses) as router:
            router.check([model])
            classifier = TopicClassifier(models=ModelRoles(agent=model), model=router)
            return tuple(await asyncio.gather(*(classifier.sort(question) for question in questions)))


def _submitted(settings: Settings) -> frozenset[str]:
    """Return ids of questions that this machine has submitted; one part of a group is enough."""
    taken = [key[2] for key in SubmissionHistory.of(open_ledger(settings).entries()).taken]
    return frozenset(name for full in taken for name in (full, full.partition("#")[0]))
