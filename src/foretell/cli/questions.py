"""foretell questions: is this file of questions well formed, and what does it ask?"""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.cli.options import FILE_PATH
from foretell.runs import event_loop

if TYPE_CHECKING:
    from foretell.questions.as_of import AsOf
    from foretell.questions.question import Question
    from foretell.runs.settings import Settings


# `foretell fetch`: the open questions of a platform as a file that `foretell run` asks.


@click.command()
@click.argument("platform", type=click.Choice(["metaculus", "prophet-arena"]))
@click.option("--tournament", "tournaments", multiple=True, help="Metaculus: only this one, by slug or number; repeat.")
@click.option("--limit", type=click.IntRange(1, 5000), default=200, show_default=True, help="Most questions.")
@click.option("--new", is_flag=True, help="Only what was not handed in from this machine before.")
@click.option("--out", type=FILE_PATH, default=Path("questions.jsonl"), show_default=True, help="Where to write them.")
def fetch(platform: str, tournaments: tuple[str, ...], limit: int, new: bool, out: Path) -> None:
    """Write the open questions of PLATFORM to a file, one JSON line each, as they stand now.

    Yes-or-no questions, choices, groups, and questions about a number. Ask them with a spec that says mode: live, then
    hand the run in with foretell submit.
    """
    from foretell.cli.options import write_text
    from foretell.data.http import SourceError
    from foretell.questions.as_of import AsOf
    from foretell.questions.codec import to_json
    from foretell.questions.errors import InputError
    from foretell.runs.settings import clock_of, load_settings

    settings = load_settings()
    as_of = AsOf(at=clock_of(settings)().replace(microsecond=0), mode="live")
    try:
        found, notes = event_loop.run(_open_questions(settings, platform, as_of, tournaments, limit))
    except SourceError as error:
        raise InputError(f"{platform} could not be read: {error}") from None
    for note in notes:
        click.echo(f"note: {note}", err=True)
    sent = _already_submitted(settings, platform) if new else set[str]()
    kept = [question for question in found if question.id not in sent][:limit]
    if not kept:
        raise InputError(f"{platform} has no {'new ' if new else ''}open question for you", hint="nothing was written")
    write_text(out, "".join(f"{to_json(question)}\n" for question in kept))
    click.echo(f"Wrote {out}: {len(kept)} questions")


async def _open_questions(
    settings: "Settings", platform: str, as_of: "AsOf", tournaments: tuple[str, ...], limit: int
) -> "tuple[list[Question], tuple[str, ...]]":
    from foretell.data.markets.listing import ListingFilter
    from foretell.data.markets.metaculus import MetaculusClient, MetaculusEvents
    from foretell.data.markets.prophet_arena import ProphetArenaClient, ProphetArenaListing
    from foretell.operations.submit import open_platform
    from foretell.submit.metaculus_client import open_numeric_questions

    wanted = ListingFilter(as_of=as_of, limit=limit)
    async with open_platform(platform, settings) as wire:
        if platform == "prophet-arena":
            events = ProphetArenaListing(
                ProphetArenaClient(http=wire.reading, key=wire.key, **wire.host, **wire.paces)
            ).events(wanted)
            return [event.question for event in await events.all()], events.ledger.notes()
        client = MetaculusClient(http=wire.reading, token=wire.key, **wire.host, **wire.paces)
        events = MetaculusEvents(client, tournaments=tournaments).events(wanted)
        found = [event.question for event in await events.all()]
        numbers = await open_numeric_questions(client, as_of, tournaments=tournaments, limit=limit)
        taken = ("a question of type numeric", "a question of type discrete")
        notes = tuple(note for note in events.ledger.notes() if not any(word in note for word in taken))
        return found + [one for one in numbers if one.id not in {question.id for question in found}], notes


def _already_submitted(settings: "Settings", platform: str) -> set[str]:
    """Questions of which the platform has taken a forecast; of a group one part is enough."""
    from foretell.operations.submit import open_ledger
    from foretell.submit.ledger import SubmissionHistory

    taken = [key[2] for key in SubmissionHistory.of(open_ledger(settings).entries()).taken if key[0] == platform]
    return {name for full in taken for name in (full, full.partition("#")[0])}


SHOWN = 20


@click.command()
@click.argument("file", type=FILE_PATH)
@click.option("--due", metavar="DATE", help="When the questions are asked, for rows that do not say so (default: now).")
def questions(file: Path, due: str | None) -> None:
    """Check a FILE of questions (JSONL, JSON, CSV, YAML) and show what is in it."""
    from foretell.data.datasets.question_files import read_questions
    from foretell.questions.as_of import instant
    from foretell.questions.errors import InputError

    try:
        asked_at = instant(due) if due else datetime.now(UTC)
    except ValueError as error:
        raise InputError(str(error), column="--due") from None
    found = read_questions(file, asked_at=asked_at)
    _show_questions(found.questions)
    for note in found.notes:
        click.echo(note)


def _show_questions(questions: "tuple[Question, ...]") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("id", "asked", "resolves", "targets", "crowd", "question", box=None)
    for question in questions[:SHOWN]:
        first = question.targets[0]
        resolves = first.resolves_at or question.closes_at
        price = first.snapshot.price if first.snapshot else None
        table.add_row(
            Text(question.id),
            question.due.date().isoformat(),
            resolves.date().isoformat() if resolves else "",
            str(len(question.targets)),
            "" if price is None else f"{price:.0%}",
            Text(question.text[:80]),
        )
    console = Console()
    console.print(table)
    if len(questions) > SHOWN:
        console.print(f"… and {len(questions) - SHOWN} more")
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(q.kind for q in questions).items())
    targets = sum(len(q.targets) for q in questions)
    console.print(f"{len(questions)} questions ({kinds}) with {targets} targets: well formed.")
