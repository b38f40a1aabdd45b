"""Files of questions: check one, sort it by topic, or fetch what is open on a platform."""

import asyncio
import json
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from foretell.data.datasets.question_files import read_questions
from foretell.data.http import SourceError
from foretell.data.markets.listing import ListingFilter
from foretell.data.markets.metaculus import MetaculusClient, MetaculusEvents
from foretell.data.markets.prophet_arena import ProphetArenaClient, ProphetArenaListing
from foretell.forecasters.topics import TopicClassifier, TopicLabel
from foretell.models.journal import Journal
from foretell.models.names import ModelRoles
from foretell.models.router import ModelRouter
from foretell.operations.requests import FetchRequest, QuestionsRequest
from foretell.operations.result import Result, show_table
from foretell.operations.submit import open_ledger, open_platform
from foretell.questions.as_of import AsOf, instant
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.report.terminal import TextColumn
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.submit.ledger import SubmissionHistory

SHOWN = 20
"""Questions that are shown in a terminal."""


@dataclass(frozen=True, kw_only=True)
class QuestionsResult(Result):
    """Questions that are well formed, and their topics where those were asked for."""

    questions: tuple[Question, ...]
    topics: tuple[TopicLabel, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> Any:
        """One dictionary for each question, whole."""
        if not self.topics:
            return [json.loads(to_json(question)) for question in self.questions]
        return [
            {**json.loads(to_json(question)), "topic": label.topic, "topic_by": label.by}
            for question, label in zip(self.questions, self.topics, strict=True)
        ]

    def rows(self) -> list[dict[str, Any]]:
        """What the terminal shows, for every question."""
        found: list[dict[str, Any]] = []
        for place, question in enumerate(self.questions):
            first = question.targets[0]
            resolves = first.resolves_at or question.closes_at
            row = {
                "id": question.id,
                "asked": question.due.date().isoformat(),
                "resolves": resolves.date().isoformat() if resolves else "",
                "targets": len(question.targets),
                "crowd": first.snapshot.price if first.snapshot else None,
                "text": question.text,
            }
            found.append(row | ({"topic": self.topics[place].topic} if self.topics else {}))
        return found

    def print(self, console: Console) -> None:
        """The first questions as a table, and a sentence on all of them."""
        columns: dict[TextColumn, Any] = {
            TextColumn(head="id", shrink=12): "id",
            TextColumn(head="asked", drop=2): "asked",
            TextColumn(head="resolves"): "resolves",
            TextColumn(head="targets", right=True, drop=3): "targets",
            TextColumn(head="crowd", right=True, drop=1): _crowd,
        }
        columns |= {TextColumn(head="topic"): "topic"} if self.topics else {}
        show_table(console, self.rows()[:SHOWN], columns | {TextColumn(head="question", shrink=32): "text"})
        if len(self.questions) > SHOWN:
            console.file.write(f"… and {len(self.questions) - SHOWN} more\n")
        kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(q.kind for q in self.questions).items())
        targets = sum(len(q.targets) for q in self.questions)
        console.file.write(f"{len(self.questions)} questions ({kinds}) with {targets} targets: well formed.\n")
        for topic, n in Counter(label.topic for label in self.topics).most_common():
            console.file.write(f"{n:5} {topic}\n")
        console.file.writelines(f"{note}\n" for note in self.notes)


def _crowd(row: dict[str, Any]) -> str:
    return "" if row["crowd"] is None else f"{row['crowd']:.0%}"


async def check_questions(request: QuestionsRequest) -> QuestionsResult:
    """Check a file of questions, and sort them by topic where that is asked for."""
    try:
        asked_at = instant(request.as_of) if request.as_of else datetime.now(UTC)
    except ValueError as error:
        raise InputError(str(error), column="--as-of") from None
    found = read_questions(request.file, asked_at=asked_at)
    if request.model is not None and not request.topics:
        raise InputError("a model has nothing to do here", column="--model", hint="say --topics")
    topics = await _topics(found.questions, request.model) if request.topics else ()
    return QuestionsResult(questions=found.questions, topics=topics, notes=found.notes)


async def _topics(questions: tuple[Question, ...], model: str | None) -> tuple[TopicLabel, ...]:
    if model is None:
        return tuple([await TopicClassifier().sort(question) for question in questions])
    settings = load_settings()
    with closing(Journal(settings.journal)) as journal:
        async with ModelRouter(settings.keys, journal=journal, addresses=settings.addresses) as router:
            router.check([model])
            classifier = TopicClassifier(models=ModelRoles(agent=model), model=router)
            return tuple(await asyncio.gather(*(classifier.sort(question) for question in questions)))


@dataclass(frozen=True, kw_only=True)
class FetchResult(QuestionsResult):
    """The open questions of a platform, as they stand now."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out."""
        return self.notes

    def rows(self) -> list[dict[str, Any]]:
        """Whole questions, as `foretell run` reads them."""
        return self.to_dict()

    def print(self, console: Console) -> None:
        """How many."""
        console.file.write(f"{len(self.questions)} questions\n")


async def fetch(request: FetchRequest) -> FetchResult:
    """The open questions of a platform, as they stand now."""
    settings = load_settings()
    as_of = AsOf(at=clock_of(settings)().replace(microsecond=0), mode="live")
    try:
        found, notes = await _open_questions(request, settings, as_of)
    except SourceError as error:
        raise InputError(f"{request.platform} could not be read: {error}") from None
    # Of a group one part is enough for it to count as submitted.
    history = SubmissionHistory.of(open_ledger(settings).entries()).taken if request.new else ()
    taken = [key[2] for key in history if key[0] == request.platform]
    sent = {name for full in taken for name in (full, full.partition("#")[0])}
    chosen = [question for question in found if question.id not in sent][: request.limit]
    if not chosen:
        kind = "new open question" if request.new else "open question"
        raise InputError(f"{request.platform} has no {kind} for you", hint="nothing was written")
    return FetchResult(questions=tuple(chosen), notes=notes)


async def _open_questions(
    request: FetchRequest, settings: Settings, as_of: AsOf
) -> tuple[list[Question], tuple[str, ...]]:

    wanted = ListingFilter(as_of=as_of, limit=request.limit)
    async with open_platform(request.platform, settings) as wire:
        if request.platform == "prophet-arena":
            events = ProphetArenaListing(ProphetArenaClient(http=wire.reading, key=wire.key, **wire.address)).events(
                wanted
            )
            return [event.question for event in await events.all()], events.ledger.notes()
        client = MetaculusClient(http=wire.reading, token=wire.key, **wire.address)
        events = MetaculusEvents(client, tournaments=request.tournaments).events(wanted)
        return [event.question for event in await events.all()], events.ledger.notes()
