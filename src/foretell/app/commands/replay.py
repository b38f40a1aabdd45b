"""foretell replay: a run again, offline, from its journal."""

import tempfile
from pathlib import Path

import click

from foretell.app import loop


@click.command()
@click.argument("run")
@click.option("--dataset", help="The questions, where they are not in the spec's own place any more.")
def replay(run: str, dataset: str | None) -> None:
    """Run RUN again from the journal alone, without network, keys or corpus, and check that every answer is the same.

    A reply that the journal does not hold is an error that names what was asked: nothing is paid.
    """
    from dataclasses import replace

    from foretell.app.asking import TYPED, benchmark_of
    from foretell.app.commands.show import find_run
    from foretell.app.running import execute, prepare
    from foretell.app.settings import KEYS, load_settings
    from foretell.arena.spec import spec_from_json
    from foretell.arena.store import Store
    from foretell.llm.journal import Journal
    from foretell.questions.codec import to_json
    from foretell.sources.corpus.store import Corpus

    settings = load_settings()
    store = Store(settings.store)
    run = find_run(store, run)
    row = next(row for row in store.runs() if row.id == run)
    spec = spec_from_json(row.spec)
    before = [to_json(answer) for answer in store.answers(run)]
    asked = store.questions(run)
    store.close()
    # A question typed at the command line lives nowhere but in the store.
    alone = benchmark_of(asked[0]) if spec.questions.dataset.startswith(TYPED) and asked else None
    wanted = spec if dataset is None else replace(spec, questions=replace(spec.questions, dataset=dataset))
    prepared = replace(prepare(wanted, alone), spec=spec)
    with tempfile.TemporaryDirectory(prefix="foretell-replay-") as folder:
        # The same tools are on offer as then; nobody is asked, so that no key has to be a real one.
        keys = {KEYS[service][0]: "replayed" for service in row.services if service in KEYS}
        aside = replace(settings, home=Path(folder), keys=keys, corpus_file=None, database=None)
        Corpus(aside.corpus).close()
        journal = Journal(settings.journal, mode="replay")
        loop.run(execute(prepared, aside, journal=journal))
        again = Store(aside.store)
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
