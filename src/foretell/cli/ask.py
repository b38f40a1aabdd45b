"""foretell ask: one question, researched step by step."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from foretell.runs import event_loop
from foretell.runs.spec import COMBINE_HELP

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.operations.ask import TypedQuestion
    from foretell.questions.forecast import Forecast
    from foretell.questions.question import Question
    from foretell.runs.combine import CombinationSettings
    from foretell.runs.runner import PreparedRun
    from foretell.runs.settings import Settings

NO_MODEL = """This is the outside view alone: no model is set, and nothing was researched.
Give --model openai:NAME, anthropic:NAME or google:NAME and its key (OPENAI_API_KEY, …), or take one on this machine:
--model compat:NAME@http://localhost:11434/v1, or --model local:PATH.gguf."""

LISTED_MEMBERS = 10
"""Members of the reference class that are shown."""


@click.command()
@click.argument("question")
@click.option("--by", metavar="DATE", help="When it will be known.")
@click.option("--as-of", metavar="DATE", help="Ask as if it were that day: nothing later is seen.")
@click.option("--option", "options", multiple=True, help="One of several exclusive outcomes; repeat for each.")
@click.option("--criteria", default="", help="How exactly it resolves.")
@click.option("--price", type=click.FloatRange(0, 1), help="What a market says now.")
@click.option("--model", envvar="FORETELL_MODEL", show_envvar=True, help="provider:name of the agent.")
@click.option(
    "--search", "engines", multiple=True, help="Search engine: brave, exa, tavily, serper, asknews, gdelt, local."
)
@click.option(
    "--trials", type=click.IntRange(1, 50), default=1, show_default=True, help="Independent trials to combine."
)
@click.option("--budget", type=float, metavar="DOLLARS", help="Hard limit; a spent budget ends in the standing belief.")
@click.option(
    "--variant", type=click.Choice(["full", "nobelief", "zero-shot", "batch"]), default="full", show_default=True
)
@click.option("--combine", default="default", show_default=True, help=COMBINE_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print the forecast as JSON.")
def ask(
    question: str,
    by: str | None,
    as_of: str | None,
    options: tuple[str, ...],
    criteria: str,
    price: float | None,
    model: str | None,
    engines: tuple[str, ...],
    trials: int,
    budget: float | None,
    variant: str,
    combine: str,
    as_json: bool,
) -> None:
    """Ask QUESTION: the agent searches step by step, keeps a belief, and answers with a probability and its reasons.

    foretell ask "Will it snow in Oslo before Christmas?" --by 2026-12-24 --model openai:NAME --search brave
    """
    from foretell.operations.ask import TypedQuestion, question_from_text, run_spec_for, single_question_set
    from foretell.runs.combine import combining_by_name
    from foretell.runs.runner import prepare_run
    from foretell.runs.settings import load_settings

    asked = TypedQuestion(text=question, by=by, as_of=as_of, options=options, criteria=criteria, price=price)
    due = question_from_text(asked, datetime.now(UTC).replace(microsecond=0))
    settings = load_settings()
    if model is None:
        _without_model(due, asked, settings, as_json=as_json)
        return
    search = engines or tuple(filter(None, os.environ.get("FORETELL_SEARCH", "").split(",")))
    spec = run_spec_for(asked, model, search=search, trials=trials, budget=budget, variant=variant)
    if combine == "judged":
        spec = replace(spec, aggregate="judged")
    prepared = prepare_run(spec, single_question_set(due))
    for warning in prepared.warnings:
        click.echo(f"warning: {warning}", err=True)
    forecast = _research_watched(prepared, settings, combining_by_name(combine), watched=not as_json)
    if as_json:
        _print_json(forecast)
    else:
        _print(forecast, prepared)


def _research_watched(
    prepared: "PreparedRun", settings: "Settings", how: "CombinationSettings", *, watched: bool
) -> "Forecast":
    from foretell.cli.live_view import run_live_view
    from foretell.operations.ask import run_research

    with run_live_view(settings, prepared.spec.id, shown=watched) as watch:
        return event_loop.run(run_research(prepared, settings, how, watch=watch))


def _print_json(forecast: "Forecast") -> None:
    from foretell.questions.codec import to_json

    click.echo(json.dumps(json.loads(to_json(forecast)), ensure_ascii=False, indent=1))


def _print_answer(forecast: "Forecast", question: "Question") -> "Console":
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for target in question.targets:
        label = target.label or target.id
        console.print(Text.assemble((f"{forecast.p[target.id]:.0%}", "bold"), f"  {label}"))
    console.print(Text(forecast.rationale))
    return console


def _print(forecast: "Forecast", prepared: "PreparedRun") -> None:
    from rich.text import Text

    console = _print_answer(forecast, prepared.questions[0])
    usage = forecast.usage
    told = f"{usage.calls} model calls, {usage.input_tokens + usage.output_tokens:,} tokens, ${usage.dollars:.4f}"
    console.print(Text(f"{told}. Every step: foretell show {prepared.spec.id} {forecast.question_id}", style="dim"))


def _without_model(question: "Question", asked: "TypedQuestion", settings: "Settings", *, as_json: bool) -> None:
    """The outside view: nothing is read, nobody is asked."""
    from foretell.operations.ask import outside_forecast, reference_class

    as_of = question.as_of_in("backtest" if asked.as_of else "live")
    forecast = outside_forecast(question, as_of, settings)
    if as_json:
        _print_json(forecast)
    else:
        console = _print_answer(forecast, question)
        found = reference_class(question, as_of, settings)
        for member in found.members[:LISTED_MEMBERS] if found else ():
            console.print(
                f"  {'yes' if member.outcome else 'no':3}  {member.known_on}  {member.text.splitlines()[0][:90]}"
            )
    click.echo(NO_MODEL, err=True)
