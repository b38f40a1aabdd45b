"""foretell submit, export and ledger: forecasts where others judge them."""

import sys
from typing import TYPE_CHECKING

import click

from foretell.cli.options import prints_result
from foretell.cli.request_options import request_options
from foretell.operations.requests import (
    ExportRequest,
    LedgerRequest,
    LedgerShowRequest,
    LedgerVerifyRequest,
    SubmitRequest,
)

if TYPE_CHECKING:
    from foretell.operations.result import Result
    from foretell.operations.submit import SubmissionPreview


@click.group()
def export() -> None:
    """Write a run's forecasts in the format of a benchmark."""


@export.command()
@request_options(ExportRequest)
@prints_result()
def forecastbench(request: ExportRequest) -> "Result":
    """Write RUN as a ForecastBench submission, checked against the round's question set.

    Trials are combined by the run's own rule, or as --combine says. The benchmark ranks a file that answers at least
    95 % of the market and 95 % of the data-set forecasts; with less, nothing is written unless you say --incomplete.
    """
    from foretell.operations.export import export_forecastbench

    return export_forecastbench(request)


@click.group()
def ledger() -> None:
    """What was submitted, when, and with which content: a chain in which no link can be changed unseen."""


@ledger.command()
@request_options(LedgerVerifyRequest)
@prints_result()
def verify(request: LedgerVerifyRequest) -> "Result":
    """Check every entry; name the first that was changed, removed or put elsewhere.

    Entries cut off at the end leave a good chain behind: only a head noted elsewhere shows that they are gone.
    """
    from foretell.operations.submit import verify_ledger

    return verify_ledger(request)


@ledger.command()
@request_options(LedgerRequest)
@prints_result()
def head(request: LedgerRequest) -> "Result":
    """Print the last entry's number and hash: note it elsewhere, and the whole ledger is pinned down."""
    from foretell.operations.submit import ledger_head

    return ledger_head(request)


@ledger.command()
@request_options(LedgerShowRequest)
@prints_result(".json", ".jsonl")
def show(request: LedgerShowRequest) -> "Result":
    """List entries: what was meant to be sent, and what became of it."""
    from foretell.operations.submit import ledger_entries

    return ledger_entries(request)


@click.command()
@request_options(SubmitRequest)
@click.option("--yes", is_flag=True, help="Send without asking.")
@prints_result()
def submit(request: SubmitRequest, yes: bool) -> "Result":
    """Submit the forecasts of RUN, or of a FILE of forecasts.

    What was submitted before with the same content is not sent again. Every forecast is noted in a ledger
    (foretell ledger) before it leaves and when the platform has taken it. Look first, then send:

      foretell submit RUN --to metaculus --comment --dry-run

      foretell submit RUN --to metaculus --comment --yes

    Keys: METACULUS_TOKEN, ARENA_API_KEY. ForecastBench gets a file, which you upload to your team's folder.
    """
    from foretell.operations.submit import submit

    def confirm(preview: "SubmissionPreview") -> None:
        for message in preview.messages():
            click.echo(message, err=True)
        if preview.fresh and not request.dry_run and not yes:
            _ask(preview)

    return submit(request, confirm)


def _ask(preview: "SubmissionPreview") -> None:
    from foretell.questions.errors import InputError

    if not sys.stdin.isatty():
        raise InputError("nobody is there to be asked", hint="say --yes to send, or --dry-run to look")
    for item in preview.fresh:
        click.echo(f"  {item.question} {item.part}: {item.title}", err=True)
    click.confirm("Send?", abort=True, err=True)
