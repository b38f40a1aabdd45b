"""The current listing of a market, with each question as this machine first saw it.

A question that is listed again keeps its date, so that it is not asked twice and a run that was killed finds its
replies. With `again`, a question counts as new after that many days.
"""

import json
from datetime import datetime, timedelta
from pathlib import Path

from foretell.data.datasets.question_files import default_id
from foretell.data.datasets.question_set import QuestionSet, SetFilter
from foretell.data.files import write_atomically
from foretell.data.http import SourceError
from foretell.data.markets.listing import EventListing, ListingFilter
from foretell.data.untrusted import for_file_name
from foretell.questions.as_of import AsOf
from foretell.questions.codec import from_dict, to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync
from foretell.runs.set_names import SLUG, SetName, split_again
from foretell.runs.settings import Settings

MAX_QUESTIONS = 1_000


def open_listing(set_name: SetName, wanted: SetFilter, settings: Settings, now: datetime) -> QuestionSet:
    """Return the current listing of a market, in its order. Questions seen before are returned as they were then."""
    listed, notes = run_sync(list_questions(set_name, wanted, settings, now), event_loop.run)
    name, again = split_again(set_name.argument)
    days = wanted.again or again
    path = settings.home / "listings" / set_name.name / f"{_file_name(name)}.json"
    # Older versions stored the questions of tournaments here.
    older = settings.home / "tournaments" / f"{for_file_name(name)}.json"
    known = _stored(older if set_name.name == "metaculus" and not path.exists() else path)
    chosen: list[Question] = []
    for question in listed:
        seen = known.get(question.id, question)
        is_new = days is not None and now - seen.due >= timedelta(days=days)
        chosen.append(question if is_new else seen)
    rows = [json.loads(to_json(question)) for question in (known | {new.id: new for new in chosen}).values()]
    write_atomically(path, json.dumps(rows, ensure_ascii=False, indent=0).encode())
    return QuestionSet(name=f"{set_name.name}:{name}" if name else set_name.name, questions=tuple(chosen), notes=notes)


def _file_name(name: str) -> str:
    """Return a name as a valid file name on any system.

    >>> _file_name("minibench"), _file_name("")
    ('minibench', 'everything')
    """
    if not name:
        return "everything"
    return name if SLUG.fullmatch(name) else f"{default_id(name)}"


async def list_questions(
    set_name: SetName, wanted: SetFilter, settings: Settings, now: datetime
) -> tuple[list[Question], tuple[str, ...]]:
    """Return the questions that a market lists under a name, and notes on what was left out."""
    from foretell.data.http import AsyncHttpClient
    from foretell.runs.services import open_markets

    name, _ = split_again(set_name.argument)
    full = f"{set_name.name}:{name}" if name else set_name.name
    after, before = wanted.window
    request = ListingFilter(
        as_of=AsOf(at=now, mode="live"),
        closes_after=after,
        closes_before=before,
        category=wanted.category,
        minimum_volume=wanted.minimum_volume,
        status=wanted.status or "open",
        limit=wanted.limit or MAX_QUESTIONS,
    )
    async with AsyncHttpClient(access=settings.access) as http:
        source = open_markets(settings, http, [full]).events.get(full)
        if source is None:
            raise InputError(f"{set_name.name} lists no events", hint="it only has prices")
        listing: EventListing = source.events(request)
        try:
            questions = [event.question for event in await listing.all()]
        except SourceError as error:
            raise InputError(str(error) if error.url == full else f"{full} could not be read: {error}") from None
        return questions, listing.ledger.notes()


def _stored(path: Path) -> dict[str, Question]:
    if not path.is_file():
        return {}
    try:
        questions = [from_dict(row, Question) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError, InputError):
        raise InputError("is damaged", path=path, hint="delete it, and its questions are asked again") from None
    return {question.id: question for question in questions}
