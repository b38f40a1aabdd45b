"""`foretell ledger`: what was handed in, and proof that the record was not changed."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from foretell.arena.ledger import Entry, Ledger

FILE = click.option(
    "--file", "path", type=click.Path(path_type=Path, dir_okay=False), help="Another ledger (default: this machine's)."
)


@click.group()
def ledger() -> None:
    """What was handed in, when, and with which content: a chain in which no link can be changed unseen."""


@ledger.command()
@FILE
@click.option("--head", "noted", metavar="NUMBER:HASH", help="A head that you noted: nothing up to it may be missing.")
def verify(path: Path | None, noted: str | None) -> None:
    """Check every entry; name the first that was changed, removed or put elsewhere.

    Entries cut off at the end leave a good chain behind: only a head noted elsewhere shows that they are gone.
    """
    from foretell.arena.ledger import Head
    from foretell.questions.problems import InputError

    try:
        head = None if noted is None else Head.read(noted)
    except ValueError as error:
        raise InputError(str(error), column="--head") from None
    verdict = _ledger(path).verify(head)
    click.echo(str(verdict))
    if not verdict.whole:
        sys.exit(1)


@ledger.command()
@FILE
def head(path: Path | None) -> None:
    """Print the last entry's number and hash: note it elsewhere, and the whole ledger is pinned down."""
    from foretell.questions.problems import InputError

    found = _ledger(path).head()
    if found is None:
        raise InputError("the ledger is empty", hint="foretell submit writes it")
    click.echo(str(found))


@ledger.command()
@FILE
@click.option("--platform", help="Only this platform.")
@click.option("--question", help="Only questions whose name begins so.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last so many.")
@click.option("--json", "as_json", is_flag=True, help="Print whole entries as JSON lines.")
def show(path: Path | None, platform: str | None, question: str | None, last: int | None, as_json: bool) -> None:
    """List entries: what was meant to be sent, and what became of it."""
    found = [
        entry
        for entry in _ledger(path).entries()
        if platform in (None, entry.platform) and entry.question.startswith(question or "")
    ]
    for entry in found[-last:] if last else found:
        click.echo(json.dumps(asdict(entry), ensure_ascii=False) if as_json else _line(entry))


def _ledger(path: Path | None) -> "Ledger":
    from foretell.app.settings import load_settings
    from foretell.app.submitting import ledger_of
    from foretell.arena.ledger import Ledger
    from foretell.questions.problems import InputError

    if path is None:
        return ledger_of(load_settings())
    if not path.is_file():
        raise InputError("no such file", path=path)
    return Ledger(path)


def _line(entry: "Entry") -> str:
    told = f"{entry.number:5} {entry.at[:19]} {entry.platform} {entry.account} {entry.question} {entry.part}"
    if entry.kind == "intention":
        return f"{told}: to send {_short(entry.content)} [{entry.digest[:12]}]"
    return f"{told}: {entry.kind} of entry {entry.content['intention']}: {entry.content['how']}"


def _short(content: object, width: int = 60) -> str:
    text = json.dumps(content, ensure_ascii=False)
    return text if len(text) <= width else text[: width - 1] + "…"
