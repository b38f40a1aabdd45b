"""foretell show: what a run found, and how."""

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.report.trace import describe_event
from foretell.runs import event_loop
from foretell.runs.store import find_run

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.runs.store import RunStore


# foretell replay: a run again, offline, from its journal.


@click.command()
@click.argument("run")
@click.option("--dataset", help="The questions, where they are not in the spec's own place any more.")
def replay(run: str, dataset: str | None) -> None:
    """Run RUN again from the journal alone, without network, keys or corpus, and check that every answer is the same.

    A reply that the journal does not hold is an error that names what was asked: nothing is paid.
    """
    from dataclasses import replace

    from foretell.data.corpus import Corpus
    from foretell.models.journal import Journal
    from foretell.operations.ask import TYPED_PREFIX, single_question_set
    from foretell.questions.codec import to_json
    from foretell.runs.runner import execute_run, prepare_run
    from foretell.runs.settings import KEYS, load_settings
    from foretell.runs.spec import spec_from_json
    from foretell.runs.store import RunStore

    settings = load_settings()
    store = RunStore(settings.store)
    run = find_run(store, run)
    row = next(row for row in store.runs() if row.id == run)
    spec = spec_from_json(row.spec)
    before = [to_json(answer) for answer in store.answers(run)]
    asked = store.questions(run)
    store.close()
    # A question typed at the command line lives nowhere but in the store.
    alone = single_question_set(asked[0]) if spec.questions.dataset.startswith(TYPED_PREFIX) and asked else None
    wanted = spec if dataset is None else replace(spec, questions=replace(spec.questions, dataset=dataset))
    prepared = replace(prepare_run(wanted, alone), spec=spec)
    with tempfile.TemporaryDirectory(prefix="foretell-replay-") as folder:
        # The same tools are on offer as then; nobody is asked, so that no key has to be a real one.
        keys = {KEYS[service][0]: "replayed" for service in row.services if service in KEYS}
        aside = replace(settings, home=Path(folder), keys=keys, corpus_file=None, database=None)
        Corpus(aside.corpus).close()
        journal = Journal(settings.journal, mode="replay")
        event_loop.run(execute_run(prepared, aside, journal=journal))
        again = RunStore(aside.store)
        after = [to_json(answer) for answer in again.answers(run)]
        again.close()
    same = sum(_timeless(a) == _timeless(b) for a, b in zip(before, after, strict=False))
    click.echo(f"{same} of {len(before)} answers are the same, from the journal alone")
    if same < len(before):
        raise SystemExit(1)


def _timeless(answer: str) -> str:
    """An answer without how long it took, which is the clock's and not the run's."""
    import json

    data = json.loads(answer)
    data.get("usage", {}).pop("seconds", None)
    return json.dumps(data, sort_keys=True)


# foretell runs: what was run on this machine.


@click.command()
def runs() -> None:
    """List the runs on this machine, the newest first."""
    from rich.console import Console
    from rich.table import Column, Table

    from foretell.runs.settings import load_settings
    from foretell.runs.store import RunStore

    settings = load_settings()
    store = RunStore(settings.store)
    found = store.runs()
    store.close()
    if not found:
        click.echo("no runs yet; try: foretell ask, or foretell run SPEC.yaml")
        return
    table = Table(
        Column("run", no_wrap=True, overflow="fold"),
        "created",
        "questions",
        "forecaster",
        "model",
        "trials",
        "forecasts",
        "failed",
        box=None,
    )
    for row in found:
        table.add_row(
            row.id,
            row.created,
            str(row.spec["questions"]["dataset"])[:40],
            row.spec["forecaster"],
            row.spec["models"].get("agent", ""),
            str(row.spec["trials"]),
            str(row.done),
            str(row.failed),
        )
    Console().print(table)


@click.command()
@click.argument("run")
@click.argument("question", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the stored answers and events as JSON lines.")
def show(run: str, question: str | None, as_json: bool) -> None:
    """Show the answers of RUN, or every step of one QUESTION: searches, beliefs, what was withheld, and the answer."""
    from rich.console import Console

    from foretell.questions.codec import to_json
    from foretell.runs.settings import load_settings
    from foretell.runs.store import RunStore

    store = RunStore(load_settings().store)
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


def _overview(store: "RunStore", run: str, console: "Console") -> None:
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


def _steps(store: "RunStore", run: str, question: str, console: "Console") -> None:
    from rich.text import Text

    from foretell.questions.errors import InputError
    from foretell.questions.forecast import Forecast

    answers = [a for a in store.answers(run) if a.question_id == question]
    if not answers:
        raise InputError(f"run {run} has no answer to {question!r}", hint=f"foretell show {run} lists its questions")
    for answer in answers:
        console.rule(f"trial {answer.trial}")
        for _, key, event in store.events(run, question):
            if key.trial == answer.trial:
                console.print(Text(describe_event(event)))
        if isinstance(answer, Forecast):
            console.print(Text(answer.rationale))
        else:
            console.print(Text(f"failed: {answer.error}", style="red"))
