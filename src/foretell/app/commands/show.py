"""foretell show: what a run found, and how."""

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.arena.store import Store
    from foretell.questions.event import Event


@click.command()
@click.argument("run")
@click.argument("question", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the stored answers and events as JSON lines.")
def show(run: str, question: str | None, as_json: bool) -> None:
    """Show the answers of RUN, or every step of one QUESTION: searches, beliefs, what was withheld, and the answer."""
    from rich.console import Console

    from foretell.app.settings import load_settings
    from foretell.arena.store import Store
    from foretell.questions.codec import to_json

    store = Store(load_settings().store)
    run = find_run(store, run)
    if as_json:
        for answer in store.answers(run):
            if question in (None, answer.question_id):
                click.echo(to_json(answer))
        for _, key, event in store.events(run, question):
            told = {"trial": key.trial, "event": type(event).__name__, **vars(event)}
            click.echo(json.dumps(told, ensure_ascii=False, default=str))
    elif question is None:
        _overview(store, run, Console())
    else:
        _steps(store, run, question, Console())
    store.close()


def find_run(store: "Store", start: str) -> str:
    """The run whose id begins so."""
    from foretell.questions.problems import InputError

    found = [row.id for row in store.runs() if row.id.startswith(start)]
    if len(found) != 1:
        problem = f"no run begins with {start!r}" if not found else f"{len(found)} runs begin with {start!r}"
        raise InputError(problem, hint="foretell runs lists them")
    return found[0]


def _overview(store: "Store", run: str, console: "Console") -> None:
    from rich.table import Column, Table
    from rich.text import Text

    from foretell.questions.forecast import Forecast

    table = Table(Column("question", overflow="fold"), "asked as of", "trial", "answer", "calls", "$", box=None)
    for answer in store.answers(run):
        day = answer.as_of.at.date().isoformat()
        if isinstance(answer, Forecast):
            p = ", ".join(f"{target} {value:.0%}" for target, value in answer.p.items())
            cells = (p, str(answer.usage.calls), f"{answer.usage.dollars:.4f}")
        else:
            cells = (f"failed: {answer.error}", "", "")
        table.add_row(Text(answer.question_id), day, str(answer.trial), Text(cells[0]), *cells[1:])
    console.print(table)


def _steps(store: "Store", run: str, question: str, console: "Console") -> None:
    from rich.text import Text

    from foretell.questions.forecast import Forecast
    from foretell.questions.problems import InputError

    answers = [a for a in store.answers(run) if a.question_id == question]
    if not answers:
        raise InputError(f"run {run} has no answer to {question!r}", hint=f"foretell show {run} lists its questions")
    for answer in answers:
        console.rule(f"trial {answer.trial}")
        for _, key, event in store.events(run, question):
            if key.trial == answer.trial:
                console.print(Text(told(event)))
        if isinstance(answer, Forecast):
            console.print(Text(answer.rationale))
        else:
            console.print(Text(f"failed: {answer.error}", style="red"))


def told(event: "Event", width: int = 400) -> str:
    """One event in a line or two."""
    from foretell.questions import event as kinds

    match event:
        case kinds.ModelCalled():
            cost = "" if event.dollars is None else f" ${event.dollars:.4f}"
            return f"  {event.role}: {event.input_tokens} → {event.output_tokens} tokens{cost}"
        case kinds.ToolUsed():
            return f"{event.step}. {event.tool}({_arguments(event.arguments)})\n   {_short(event.result, width)}"
        case kinds.LeakBlocked():
            return f"  withheld ({event.layer}): {event.reason} {event.url}".rstrip()
        case kinds.BeliefRevised():
            p = ", ".join(f"{target} {value:.0%}" for target, value in event.p.items())
            return f"  belief: {p}; {_short(event.reason, width)}"
        case kinds.NodeAnalyzed() | kinds.NodeGrounded() | kinds.NodeSynthesized() | kinds.TreeGrown():
            return _of_tree(event, width)
        case kinds.ForecastMade():
            p = ", ".join(f"{target} {value:.0%}" for target, value in event.p.items())
            return f"answer: {p} ({event.how})"
        case kinds.Failed():
            return f"failed: {event.error}"


def _of_tree(event: "Event", width: int) -> str:
    """What happened to a tree of claims."""
    from foretell.questions import event as kinds

    match event:
        case kinds.NodeAnalyzed():
            lines = [f"  {id}: {_short(event.claims.get(id, ''), width)}" for id in event.added]
            return "\n".join([f"{event.node} was taken apart into {len(event.added)} claims", *lines])
        case kinds.NodeGrounded():
            value = "no probability" if event.p is None else f"{event.p:.0%}"
            return f"{event.node} grounded by {event.grounder}: {value} {_short(event.error, width)}".rstrip()
        case kinds.NodeSynthesized():
            value = "no probability" if event.p is None else f"{event.p:.0%}"
            return f"{event.node} put together: {value} by {json.dumps(event.link, ensure_ascii=False)[:width]}"
        case kinds.TreeGrown():
            return f"the tree for {event.tree} is finished: {len(event.document.get('nodes', ()))} claims"
        case _:
            return ""


def _arguments(arguments: Any) -> str:
    return ", ".join(f"{name}={str(value)[:80]!r}" for name, value in arguments.items() if name != "updated_belief")


def _short(text: str, width: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
