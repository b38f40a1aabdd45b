"""foretell questions: is this file of questions well formed, and what does it ask?"""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.app.commands.options import FILE

if TYPE_CHECKING:
    from foretell.questions.question import Question

SHOWN = 20


@click.command()
@click.argument("file", type=FILE)
@click.option("--due", metavar="DATE", help="When the questions are asked, for rows that do not say so (default: now).")
def questions(file: Path, due: str | None) -> None:
    """Check a FILE of questions (JSONL, JSON, CSV, YAML) and show what is in it."""
    from foretell.questions.clock import instant
    from foretell.questions.problems import InputError
    from foretell.sources.datasets.files import read_questions

    try:
        asked_at = instant(due) if due else datetime.now(UTC)
    except ValueError as error:
        raise InputError(str(error), column="--due") from None
    found = read_questions(file, asked_at=asked_at)
    _show(found.questions)
    for note in found.notes:
        click.echo(note)


def _show(questions: "tuple[Question, ...]") -> None:
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
