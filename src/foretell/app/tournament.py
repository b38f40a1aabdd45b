"""Open questions of a Metaculus tournament, each kept as it was when this machine first saw it.

A question that is seen again is the same question, to the second: what was answered is not asked anew, and a run that
was killed finds its replies. With `again`, a question is taken as new after so many days.
"""

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from foretell.app import loop
from foretell.app.settings import Settings
from foretell.arena.waiting import waited
from foretell.questions.clock import AsOf
from foretell.questions.codec import from_json, to_json
from foretell.questions.problems import InputError
from foretell.questions.question import Question
from foretell.sources.datasets.question_set import QuestionSet
from foretell.sources.http import SourceError
from foretell.sources.listing import Listing, Wanted
from foretell.sources.whole_file import write_whole

PREFIX = "metaculus:"
HINT = "write metaculus:TOURNAMENT, such as metaculus:minibench, or metaculus:TOURNAMENT,again=7"
MOST = 1_000
_SLUG = re.compile(r"[A-Za-z0-9_-]{1,80}")


@dataclass(frozen=True, kw_only=True)
class Tournament:
    """A tournament by its slug or number.

    >>> Tournament.read("metaculus:minibench,again=7")
    Tournament(slug='minibench', again=7.0)
    """

    slug: str
    again: float | None = None
    """Days after which a question is asked anew; None asks every question once."""

    @classmethod
    def read(cls, name: str) -> "Tournament":
        """From the name of a question set."""
        slug, *options = name.removeprefix(PREFIX).split(",")
        if not _SLUG.fullmatch(slug):
            raise InputError(f"{slug!r} is not the name of a tournament", column="questions", hint=HINT)
        again: float | None = None
        for option in options:
            key, _, value = option.partition("=")
            try:
                again = float(value)
            except ValueError:
                again = 0.0
            if key.strip() != "again" or again <= 0:
                raise InputError(f"cannot use {option!r}", column="questions", hint=HINT)
        return cls(slug=slug, again=again)

    def file(self, home: Path) -> Path:
        """Where its questions are kept."""
        return home / "tournaments" / f"{self.slug}.json"

    def fresh(self, seen: Question, now: datetime) -> bool:
        """Whether a question that was seen before is asked anew."""
        return self.again is not None and now - seen.due >= timedelta(days=self.again)


def open_questions(tournament: Tournament, settings: Settings, now: datetime) -> QuestionSet:
    """What is open now, in the platform's order; what was seen before as it was then."""
    listed, notes = waited(_listed(tournament, settings, now), loop.run)
    path = tournament.file(settings.home)
    known = _kept(path)
    chosen: list[Question] = []
    for question in listed:
        seen = known.get(question.id)
        chosen.append(question if seen is None or tournament.fresh(seen, now) else seen)
    _keep(path, known | {question.id: question for question in chosen})
    return QuestionSet(name=tournament.slug, questions=tuple(chosen), notes=notes)


async def _listed(tournament: Tournament, settings: Settings, now: datetime) -> tuple[list[Question], tuple[str, ...]]:
    from foretell.sources.async_http import AsyncHttpClient
    from foretell.sources.markets.metaculus import MetaculusClient
    from foretell.sources.markets.metaculus_events import MetaculusEvents

    token = settings.key("metaculus")
    if not token:
        raise InputError("Metaculus answers nobody without a token", hint="set METACULUS_TOKEN")
    own: dict[str, Any] = {}
    if "metaculus" in settings.addresses:
        # A server of one's own need not be spared.
        own = {"host": settings.addresses["metaculus"], "per_second": 100.0, "retry_seconds": 0.1}
    async with AsyncHttpClient() as http:
        events = MetaculusEvents(MetaculusClient(http=http, token=token, **own), tournaments=(tournament.slug,))
        listing: Listing = events.events(Wanted(as_of=AsOf(at=now, mode="live"), limit=MOST))
        try:
            found = [event.question for event in await listing.all()]
        except SourceError as error:
            raise InputError(f"the questions of {tournament.slug} could not be read: {error}") from None
        return found, listing.ledger.notes()


def _kept(path: Path) -> dict[str, Question]:
    if not path.is_file():
        return {}
    try:
        rows = cast("list[Any]", json.loads(path.read_text(encoding="utf-8")))
        questions = [from_json(json.dumps(row), Question) for row in rows]
    except (ValueError, TypeError, InputError):
        raise InputError("is damaged", path=path, hint="delete it: its questions are then asked anew") from None
    return {question.id: question for question in questions}


def _keep(path: Path, questions: dict[str, Question]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(to_json(question)) for question in questions.values()]
    write_whole(path, json.dumps(rows, ensure_ascii=False, indent=0).encode())
