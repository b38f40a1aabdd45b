"""`foretell fetch`: the open questions of a platform as a file that `foretell run` asks."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.app import loop
from foretell.app.commands.options import FILE

if TYPE_CHECKING:
    from foretell.app.settings import Settings
    from foretell.questions.clock import AsOf
    from foretell.questions.question import Question


@click.command()
@click.argument("platform", type=click.Choice(["metaculus", "prophet-arena"]))
@click.option("--tournament", "tournaments", multiple=True, help="Metaculus: only this one, by slug or number; repeat.")
@click.option("--limit", type=click.IntRange(1, 5000), default=200, show_default=True, help="Most questions.")
@click.option("--new", is_flag=True, help="Only what was not handed in from this machine before.")
@click.option("--out", type=FILE, default=Path("questions.jsonl"), show_default=True, help="Where to write them.")
def fetch(platform: str, tournaments: tuple[str, ...], limit: int, new: bool, out: Path) -> None:
    """Write the open questions of PLATFORM to a file, one JSON line each, as they stand now.

    Yes-or-no questions, choices, groups, and questions about a number. Ask them with a spec that says mode: live, then
    hand the run in with foretell submit.
    """
    from foretell.app.clock import clock_of
    from foretell.app.commands.output import write_text
    from foretell.app.settings import load_settings
    from foretell.questions.clock import AsOf
    from foretell.questions.codec import to_json
    from foretell.questions.problems import InputError
    from foretell.sources.http import SourceError

    settings = load_settings()
    as_of = AsOf(at=clock_of(settings)().replace(microsecond=0), mode="live")
    try:
        found, notes = loop.run(_open(settings, platform, as_of, tournaments, limit))
    except SourceError as error:
        raise InputError(f"{platform} could not be read: {error}") from None
    for note in notes:
        click.echo(f"note: {note}", err=True)
    sent = _sent(settings, platform) if new else set[str]()
    kept = [question for question in found if question.id not in sent][:limit]
    if not kept:
        raise InputError(f"{platform} has no {'new ' if new else ''}open question for you", hint="nothing was written")
    write_text(out, "".join(f"{to_json(question)}\n" for question in kept))
    click.echo(f"Wrote {out}: {len(kept)} questions")


async def _open(
    settings: "Settings", platform: str, as_of: "AsOf", tournaments: tuple[str, ...], limit: int
) -> "tuple[list[Question], tuple[str, ...]]":
    from foretell.app.submitting import connected
    from foretell.sources.listing import Wanted
    from foretell.sources.markets.metaculus import MetaculusClient
    from foretell.sources.markets.metaculus_events import MetaculusEvents
    from foretell.sources.markets.prophet_arena import ArenaClient, ArenaEvents
    from foretell.sources.posting.metaculus_numbers import open_numbers

    wanted = Wanted(as_of=as_of, limit=limit)
    async with connected(platform, settings) as wire:
        if platform == "prophet-arena":
            events = ArenaEvents(ArenaClient(http=wire.reading, key=wire.key, **wire.host, **wire.paces)).events(wanted)
            return [event.question for event in await events.all()], events.ledger.notes()
        client = MetaculusClient(http=wire.reading, token=wire.key, **wire.host, **wire.paces)
        events = MetaculusEvents(client, tournaments=tournaments).events(wanted)
        found = [event.question for event in await events.all()]
        numbers = await open_numbers(client, as_of, tournaments=tournaments, limit=limit)
        taken = ("a question of type numeric", "a question of type discrete")
        notes = tuple(note for note in events.ledger.notes() if not any(word in note for word in taken))
        return found + [one for one in numbers if one.id not in {question.id for question in found}], notes


def _sent(settings: "Settings", platform: str) -> set[str]:
    """Questions of which the platform has taken a forecast; of a group one part is enough."""
    from foretell.app.submitting import ledger_of
    from foretell.arena.ledger.accounts import Accounts

    taken = [key[2] for key in Accounts.of(ledger_of(settings).entries()).taken if key[0] == platform]
    return {name for full in taken for name in (full, full.partition("#")[0])}
