"""foretell ask: one question, researched step by step."""

from typing import TYPE_CHECKING

import click

from foretell.cli.request_options import request_options
from foretell.operations.requests import AskRequest

if TYPE_CHECKING:
    from foretell.operations.ask import AskResult

NO_MODEL = """This is the outside view alone: no model is set, and nothing was researched.
Give --model openai:NAME, anthropic:NAME or google:NAME and its key (OPENAI_API_KEY, …), or take one on this machine:
--model compat:NAME@http://localhost:11434/v1, or --model local:PATH.gguf."""


@click.command()
@request_options(AskRequest)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def ask(request: AskRequest, as_json: bool) -> None:
    """Ask QUESTION: the agent searches step by step, keeps a belief, and answers with a probability and its reasons.

    foretell ask "Will it snow in Oslo before Christmas?" --closes 2026-12-24 --model openai:NAME --search brave
    """
    from foretell.cli.live_view import run_live_view
    from foretell.operations.ask import answer_question
    from foretell.runs import event_loop
    from foretell.runs.settings import load_settings

    settings = load_settings()
    with run_live_view(shown=not as_json and request.model is not None) as on_event, event_loop.runner() as loop:
        result = loop.run(answer_question(request, settings, on_event=on_event))
    for warning in result.warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        click.echo(result.to_json())
    else:
        _print(result)
    for note in result.notes if result.run else (NO_MODEL,):
        click.echo(f"note: {note}" if result.run else note, err=True)


def _print(result: "AskResult") -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for row in result.rows():
        console.print(Text.assemble((f"{row['p']:.0%}", "bold"), f"  {row['outcome']}"))
    console.print(Text(result.rationale))
    for one in result.similar:
        line = one.text.splitlines()[0][:90]
        console.print(Text(f"  {'yes' if one.outcome else 'no':3}  {one.known_on}  {line}"))
    if result.run is not None:
        usage = result.usage
        cost = f"{usage.calls} model calls, {usage.input_tokens + usage.output_tokens:,} tokens, ${usage.dollars:.4f}"
        console.print(Text(f"{cost}. Every step: foretell show {result.run} {result.question.id}", style="dim"))
