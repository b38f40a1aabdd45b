"""foretell runs, show and replay: what was run on this machine, what it found and how, and the same again offline."""

from typing import TYPE_CHECKING

import click

from foretell.cli.request_options import request_options
from foretell.operations.requests import ReplayRequest, RunsRequest, ShowRequest

if TYPE_CHECKING:
    from foretell.operations.run import ShowResult


@click.command()
@request_options(ReplayRequest)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def replay(request: ReplayRequest, as_json: bool) -> None:
    """Run RUN again from the journal alone, without network, keys or corpus, and check that every answer is the same.

    A reply that the journal does not hold is an error that names what was asked: nothing is paid.
    """
    from foretell.operations.run import replay as compute_again

    result = compute_again(request)
    if as_json:
        click.echo(result.to_json())
    else:
        click.echo(str(result))
    if result.same < result.total:
        raise SystemExit(1)


@click.command()
@request_options(RunsRequest)
@click.option("--json", "as_json", is_flag=True, help="Print the runs as JSON.")
def runs(request: RunsRequest, as_json: bool) -> None:
    """List the runs on this machine, the newest first."""
    from rich.console import Console
    from rich.table import Column, Table

    from foretell.operations.run import list_runs

    result = list_runs(request)
    if as_json:
        click.echo(result.to_json())
        return
    if not result.total:
        click.echo("no runs yet; try: foretell ask, or foretell run SPEC.yaml")
        return
    names = ("created", "questions", "forecaster", "model", "trials", "forecasts", "failed")
    table = Table(Column("run", no_wrap=True, overflow="fold"), *names, box=None)
    for row in result.rows():
        table.add_row(row["run"], *(str(row[name])[:40] for name in names))
    Console().print(table)


@click.command()
@request_options(ShowRequest)
@click.option("--json", "as_json", is_flag=True, help="Print the stored answers, and steps of QUESTION, as JSON.")
def show(request: ShowRequest, as_json: bool) -> None:
    """Show the answers of RUN, or every step of one QUESTION: searches, beliefs, what was withheld, and the answer."""
    from foretell.operations.run import show as show_run

    result = show_run(request)
    if as_json:
        click.echo(result.to_json())
    elif result.question is None:
        _overview(result)
    else:
        _steps(result)


def _overview(result: "ShowResult") -> None:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(Column("question", overflow="fold"), "as of", "trial", "answer", "calls", "$", box=None)
    for row in result.rows():
        cost = "" if row["dollars"] is None else f"{row['dollars']:.4f}"
        calls = "" if row["calls"] is None else str(row["calls"])
        table.add_row(Text(row["question"]), row["as_of"], str(row["trial"]), Text(row["answer"]), calls, cost)
    Console().print(table)


def _steps(result: "ShowResult") -> None:
    from rich.console import Console
    from rich.text import Text

    from foretell.questions.forecast import Forecast
    from foretell.report.trace import describe_event

    console = Console()
    for answer in result.answers:
        console.rule(f"trial {answer.trial}")
        for event in result.steps.get(answer.trial, ()):
            console.print(Text(describe_event(event)))
        if isinstance(answer, Forecast):
            console.print(Text(answer.rationale))
        else:
            console.print(Text(f"failed: {answer.error}", style="red"))
