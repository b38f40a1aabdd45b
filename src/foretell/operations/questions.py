"""Question sets of every kind: show one, sort it by topic, or save it as a file to run."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

from rich.console import Console

from foretell.data.datasets.question_set import AskedKey, QuestionSet, asked_key, quarantine_note
from foretell.data.datasets.set_filter import SetFilter
from foretell.forecasters.prompt.prediction_context import RefusedArticle, refusal_notes, refused_articles
from foretell.forecasters.topics import TopicClassifier, TopicLabel
from foretell.models.journal import Journal
from foretell.models.names import ModelRoles
from foretell.models.router import ModelRouter
from foretell.operations.requests import FetchRequest, QuestionsRequest
from foretell.operations.result import Result, show_table
from foretell.operations.submit import open_ledger
from foretell.questions.as_of import instant
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.question_sets import LATE_TEXT_HINT, find_set, list_questions, open_benchmark, with_early_texts
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.submit.ledger import SubmissionHistory
from foretell.tools.late_text import LatePassage, late_passages

SHOWN = 20
"""Questions that are shown in a terminal."""


@dataclass(frozen=True, kw_only=True)
class QuestionsResult(Result):
    """Questions that are well formed, and their topics where those were asked for."""

    questions: tuple[Question, ...]
    topics: tuple[TopicLabel, ...] = ()
    notes: tuple[str, ...] = ()
    outcomes: int = 0
    """Targets whose outcome the set tells."""
    late: Mapping[AskedKey, tuple[LatePassage, ...]] = field(default_factory=dict[AskedKey, tuple[LatePassage, ...]])
    """Where the text of a question was written after the moment of asking: a backtest leaves it out."""
    refused: Mapping[AskedKey, tuple[RefusedArticle, ...]] = field(
        default_factory=dict[AskedKey, tuple[RefusedArticle, ...]]
    )
    """Sources that came with a question and that the fence refuses."""

    def to_dict(self) -> Any:
        """One dictionary for each question, whole."""
        found: list[dict[str, Any]] = []
        for place, question in enumerate(self.questions):
            row = json.loads(to_json(question))
            if self.topics:
                row |= {"topic": self.topics[place].topic, "topic_by": self.topics[place].by}
            if late := self.late.get(asked_key(question)):
                row["quarantined"] = [vars(one) for one in late]
            if refused := self.refused.get(asked_key(question)):
                row["refused_sources"] = [vars(one) for one in refused]
            found.append(row)
        return found

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
            row |= {"topic": self.topics[place].topic} if self.topics else {}
            row |= {"quarantined": str((self.late.get(asked_key(question)) or ("",))[0])} if self.late else {}
            found.append(row)
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
            show_text(console, f"… and {len(self.questions) - SHOWN} more\n")
        kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(q.kind for q in self.questions).items())
        targets = sum(len(q.targets) for q in self.questions)
        known = f", {self.outcomes} of which have come out" if self.outcomes else ""
        show_text(console, f"{len(self.questions)} questions ({kinds}) with {targets} targets{known}: well formed.\n")
        if self.late:
            one = len(self.late) == 1
            text = f"{quarantine_note(len(self.late))}. A backtest leaves {'it' if one else 'them'} out"
            show_text(console, f"{text} ({LATE_TEXT_HINT}):\n")
        for (id, due), found in list(self.late.items())[:SHOWN]:
            show_text(console, f"  {id}, asked {due.date()}\n" + "".join(f"    {one}\n" for one in found[:SHOWN]))
        for topic, n in Counter(label.topic for label in self.topics).most_common():
            show_text(console, f"{n:5} {topic}\n")
        show_text(console, "".join(f"{note}\n" for note in self.notes))


def _crowd(row: dict[str, Any]) -> str:
    return "" if row["crowd"] is None else f"{row['crowd']:.0%}"


async def read_set(name: str, wanted: SetFilter, settings: Settings, as_of: str | None = None) -> QuestionSet:
    """Any question set as it stands now: a file, a data set, or what a market lists."""
    found = find_set(name)
    if found.kind == "datasets":
        return open_benchmark(name, wanted=wanted, live=True, now=_moment(as_of) if as_of else None).questions
    if as_of:
        raise InputError(f"{name} lists what is known today", column="--as-of", hint="leave it out")
    if wanted.rounds:
        raise InputError(f"{name} has no rounds", column="--round")
    questions, notes = await list_questions(found, wanted, settings, clock_of(settings)().replace(microsecond=0))
    return QuestionSet(name=name, questions=tuple(questions), notes=notes)


def _moment(written: str) -> datetime:
    try:
        return instant(written)
    except ValueError as error:
        raise InputError(str(error), column="--as-of") from None


async def check_questions(request: QuestionsRequest, settings: Settings | None = None) -> QuestionsResult:
    """Show a question set that is well formed, and sort it by topic where that is asked for."""
    if request.model is not None and not request.topics:
        raise InputError("a model has nothing to do here", column="--model", hint="say --topics")
    found = await read_set(request.dataset, request.wanted(), settings or load_settings(), request.as_of)
    if not found.questions:
        raise InputError(f"{request.dataset} has no such question", hint="; ".join(found.notes[:3]) or None)
    topics = await _topics(found.questions, request.model) if request.topics else ()
    late = {asked_key(one): late_passages(one) for one in found.questions} if request.late_text != "keep" else {}
    late = {key: passages for key, passages in late.items() if passages}
    if request.late_text == "cut":
        found = with_early_texts(found, "cut")
    articles = [(one, found.contexts.get(asked_key(one), ())) for one in found.questions]
    refused = {asked_key(one): tuple(refused_articles(one, given)) for one, given in articles if given}
    named = list(chain.from_iterable(refused.values()))
    return QuestionsResult(
        questions=found.questions,
        topics=topics,
        notes=(*found.notes, *refusal_notes(named, sum(len(given) for _, given in articles), SHOWN)),
        outcomes=len(found.outcomes()),
        late=late,
        refused={key: those for key, those in refused.items() if those},
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


@dataclass(frozen=True, kw_only=True)
class FetchResult(QuestionsResult):
    """A question set as it stands now."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out."""
        return self.notes

    def rows(self) -> list[dict[str, Any]]:
        """Whole questions, as `foretell run` reads them."""
        return self.to_dict()

    def print(self, console: Console) -> None:
        """How many."""
        show_text(console, f"{len(self.questions)} questions\n")


async def fetch(request: FetchRequest) -> FetchResult:
    """A question set as it stands now."""
    settings, wanted = load_settings(), request.wanted()
    market, _, part = request.dataset.partition(":")
    if request.tournaments and (part or market != "metaculus"):
        raise InputError(f"{request.dataset} has no tournaments", column="--tournament", hint="fetch metaculus")
    names = [f"{market}:{name}" for name in request.tournaments] or [request.dataset]
    # What was sent is left out before it is counted.
    every = replace(wanted, limit=None) if request.new else wanted
    sets = [await read_set(name, every, settings) for name in names]
    found = {(one.id, one.due): one for one in chain.from_iterable(one.questions for one in sets)}
    sent = _submitted(settings) if request.new else frozenset[str]()
    chosen = [question for question in found.values() if question.id not in sent][: request.limit]
    if not chosen:
        kind = "new open question" if request.new else f"{wanted.status or 'open'} question"
        raise InputError(f"{request.dataset} has no {kind} for you", hint="nothing was written")
    notes = dict.fromkeys(note for one in sets for note in one.notes)
    return FetchResult(questions=tuple(chosen), notes=tuple(notes))


def _submitted(settings: Settings) -> frozenset[str]:
    """Ids of what this machine submitted before; of a group one part is enough."""
    taken = [key[2] for key in SubmissionHistory.of(open_ledger(settings).entries()).taken]
    return frozenset(name for full in taken for name in (full, full.partition("#")[0]))
