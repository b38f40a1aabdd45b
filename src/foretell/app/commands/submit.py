"""`foretell submit`: hand forecasts in where others judge them."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.app import loop
from foretell.app.commands.options import COMBINE

if TYPE_CHECKING:
    from foretell.app.settings import Settings
    from foretell.app.submitting import Material, Order
    from foretell.arena.submission.sending import Handed
    from foretell.arena.submission.submission import Item, Submission, Submitter

PLATFORMS = ("forecastbench", "metaculus", "prophet-arena")
FOLDER = click.Path(path_type=Path, file_okay=False)
FAILED = ("refused", "failed", "unknown")


@click.command()
@click.argument("what", metavar="RUN|FILE")
@click.option("--to", required=True, type=click.Choice(PLATFORMS), help="Where to.")
@click.option("--dry-run", is_flag=True, help="Print exactly what would be sent, and send nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--comment",
    type=click.Choice(["private", "public"]),
    is_flag=False,
    flag_value="private",
    help="Send the reasons along: on Metaculus as a comment, private unless you say public.",
)
@click.option("--clip", is_flag=True, help="Move probabilities that are not taken to the nearest that are.")
@click.option("--question", "only", multiple=True, metavar="ID", help="Only this question; repeat for several.")
@click.option("--as", "named", metavar="POST", help="Metaculus: the post that the run's only question answers.")
@click.option("--combine", help=f"{COMBINE} Default: the run's own rule.")
@click.option("--again", is_flag=True, help="Send also what was sent before with the same content.")
@click.option("--agent", default="", help="Prophet Arena: your agent's name there.")
@click.option("--window", help="Prophet Arena: the round of the event (default: the open one).")
@click.option("--organization", default="", help="ForecastBench: your team, as registered.")
@click.option("--model", default="", help="ForecastBench: the name to show on the board.")
@click.option("--model-organization", default="", help="ForecastBench: who made the model.")
@click.option("--number", type=click.IntRange(1, 3), default=1, help="ForecastBench: which of three files this is.")
@click.option("--round", "day", metavar="DATE", help="ForecastBench: due date, where there are several.")
@click.option("--reasoning", is_flag=True, help="ForecastBench: put the reasons into the file.")
@click.option("--incomplete", is_flag=True, help="ForecastBench: although too much is missing to be ranked.")
@click.option(
    "--out", "folder", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="ForecastBench: folder."
)
def submit(
    what: str,
    to: str,
    dry_run: bool,
    yes: bool,
    only: tuple[str, ...],
    combine: str | None,
    again: bool,
    day: str | None,
    **options: Any,
) -> None:
    """Hand in the forecasts of RUN, or of a FILE of forecasts.

    What was handed in before with the same content is not sent again. Every forecast is noted in a ledger
    (foretell ledger) before it leaves and when the platform has taken it. Look first, then send:

      foretell submit RUN --to metaculus --comment --dry-run

      foretell submit RUN --to metaculus --comment --yes

    Keys: METACULUS_TOKEN, ARENA_API_KEY. ForecastBench gets a file, which you upload to your team's folder.
    """
    from foretell.app.clock import clock_of
    from foretell.app.settings import load_settings
    from foretell.app.submitting import Order, material, of_round
    from foretell.questions.problems import InputError
    from foretell.sources.http import SourceError

    settings = load_settings()
    found = material(settings, what, combine=combine, at=clock_of(settings)())
    found = found.only(only) if only else found
    found = of_round(settings, found, day) if to == "forecastbench" else found
    order = Order.of(to, options)
    try:
        good = loop.run(_submitted(order, settings, found, again=again, dry_run=dry_run, sure=yes))
    except SourceError as error:
        raise InputError(f"{to} could not be reached as it should: {error}", hint="nothing more was sent") from None
    if not good:
        sys.exit(1)


async def _submitted(
    order: "Order", settings: "Settings", found: "Material", *, again: bool, dry_run: bool, sure: bool
) -> bool:
    """Plan, show, ask and send; whether all that could be sent was."""
    from foretell.app.clock import clock_of
    from foretell.app.submitting import ledger_of, opened, patience_of, relevant
    from foretell.arena.submission.sending import Sending

    ledger, clock = ledger_of(settings), clock_of(settings)
    at = clock()
    found, notes = relevant(order, found, at)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    async with opened(order, settings, found, at) as submitter:
        submission = submitter.plan(found.forecasts, found.questions)
        sending = Sending(submitter, ledger, clock, patience_of(order, settings, again=again))
        fresh, before = sending.preview(submission)
        _show(submission, fresh, before)
        if dry_run:
            _print_requests(submitter, fresh)
            return bool(submission.ready)
        if not fresh:
            return bool(submission.ready)
        _ask(submission, fresh, sure=sure)
        return _report(await sending.hand_in(submission), str(ledger.head()))


def _show(submission: "Submission", fresh: "list[Item]", before: "list[Handed]") -> None:
    """What is about to happen, and what is not, for a person."""
    for item in submission.refused:
        for problem in item.problems:
            click.echo(f"not sent: {item.question} {item.part}: {problem}", err=True)
    for item in submission.ready:
        for note in item.notes:
            click.echo(f"note: {item.question}: {note}", err=True)
    for one in before:
        click.echo(f"not sent: {one}", err=True)
    counts = {part: sum(item.part == part for item in fresh) for part in ("forecast", "comment", "file")}
    told = ", ".join(f"{n} {part}{'s' if n != 1 else ''}" for part, n in counts.items() if n) or "nothing"
    click.echo(f"to {submission.platform} as {submission.account}: {told}", err=True)


def _print_requests(submitter: "Submitter", fresh: "list[Item]") -> None:
    requests = [asdict(request) for request in submitter.requests(fresh)]
    click.echo(json.dumps(requests, ensure_ascii=False, indent=1))


def _ask(submission: "Submission", fresh: "list[Item]", *, sure: bool) -> None:
    from foretell.questions.problems import InputError

    if sure:
        return
    if not sys.stdin.isatty():
        raise InputError("nobody is there to be asked", hint="say --yes to send, or --dry-run to look")
    for item in fresh:
        click.echo(f"  {item.question} {item.part}: {item.title}", err=True)
    click.confirm("Send?", abort=True, err=True)


def _report(handed: "list[Handed]", head: str) -> bool:
    for one in handed:
        click.echo(str(one))
        if one.item.part == "file" and one.fate == "sent":
            click.echo(f"Upload {one.item.title} to the folder that the benchmark gave your team.")
    click.echo(f"ledger head {head}; keep a note of it elsewhere", err=True)
    return not any(one.fate in FAILED for one in handed)
