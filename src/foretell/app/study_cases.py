"""What studies of runs and arenas look at: traces, statements, and cases for a judge."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from foretell.app.commands.show import find_run
from foretell.app.settings import Settings
from foretell.arena.live.book import Book
from foretell.arena.live.spec import arena_of, read_arena
from foretell.arena.spec import RunSpec, spec_from_json
from foretell.arena.store import Store
from foretell.arena.studies.from_store import all_cases, statements_in, traces_in
from foretell.arena.studies.structure import Structure, plain_structure
from foretell.forecasters.context.context import Context, known_at
from foretell.questions.problems import InputError
from foretell.questions.question import Question

if TYPE_CHECKING:
    from foretell.arena.studies.consistency import Statement
    from foretell.arena.studies.habits_report import Traced
    from foretell.arena.studies.judge import Case


@dataclass(frozen=True, kw_only=True)
class NamedRun:
    """A stored run under the name that tables show."""

    id: str
    name: str
    spec: RunSpec


def named_runs(store: Store, starts: Sequence[str]) -> list[NamedRun]:
    """The runs whose ids begin so: forecaster and model, with the id where two would be called the same."""
    if not starts:
        raise InputError("no run is named", hint="give --run RUN; foretell runs lists them")
    found: dict[str, NamedRun] = {}
    for start in starts:
        id = find_run(store, start)
        row = store.run(id)
        assert row is not None
        spec = spec_from_json(row.spec)
        found[id] = NamedRun(id=id, name=" ".join(filter(None, [spec.forecaster, spec.models.get("agent")])), spec=spec)
    return _told_apart(list(found.values()))


def arena_runs(store: Store, arena: str) -> list[NamedRun]:
    """The entries of an arena, by its file, its folder or its name."""
    name = read_arena(arena).name if Path(arena).exists() else arena
    Book(store.database, name)  # Makes the tables where no arena was ever opened.
    known = [known for (known,) in store.database.read("select name from arena order by name")]
    if name not in known:
        hint = f"there are: {', '.join(known)}" if known else "there is none on this machine"
        raise InputError(f"there is no arena {name[:80]!r}", column="--arena", hint=hint)
    rows = {row.id: row for row in store.runs()}
    entries = [one for one in Book(store.database, name).entries() if one.run in rows]
    return _told_apart(
        [NamedRun(id=one.run, name=one.name, spec=spec_from_json(rows[one.run].spec)) for one in entries]
    )


def _told_apart(runs: Sequence[NamedRun]) -> list[NamedRun]:
    names = [run.name for run in runs]
    return [replace(run, name=f"{run.name} ({run.id[:6]})") if names.count(run.name) > 1 else run for run in runs]


def traced(settings: Settings, starts: Sequence[str]) -> "dict[str, list[Traced]]":
    """What the trials of runs did, by name."""
    with closing(Store(settings.store)) as store:
        found = {run.name: traces_in(store, run.id, trials=run.spec.trials) for run in named_runs(store, starts)}
    for name, traces in found.items():
        if not traces:
            raise InputError(f"run {name} has no trial yet", hint="start it with foretell run")
    return found


def stated(settings: Settings, starts: Sequence[str], arena: str | None) -> "list[Statement]":
    """What was stated in runs or by the entries of an arena, before it was made to fit."""
    if bool(starts) == bool(arena):
        raise InputError("one thing is looked at", hint="give --run RUN (it may be repeated) or --arena ARENA")
    with closing(Store(settings.store)) as store:
        runs = arena_runs(store, arena) if arena else named_runs(store, starts)
        found = [one for run in runs for one in statements_in(store, run.id, name=run.name)]
    if not found:
        raise InputError("nothing has been stated yet", column="--arena" if arena else "--run")
    return found


def fullest(statements: "Sequence[Statement]") -> list[Question]:
    """Every question once, as it was asked with most outcomes: their structure holds for the others too."""
    found: dict[str, Question] = {}
    for one in statements:
        known = found.get(one.question.id)
        if known is None or len(one.question.targets) > len(known.targets):
            found[one.question.id] = one.question
    return list(found.values())


def plain_structures(questions: Sequence[Question]) -> dict[str, Structure]:
    """What questions declare and what their wording shows."""
    return {one.id: plain_structure(one) for one in questions}


def cases(settings: Settings, starts: Sequence[str], limit: int | None) -> "list[Case]":
    """Forecasts of runs with reasons and what they were shown; a larger sample contains a smaller one."""
    found: list[Case] = []
    with closing(Store(settings.store)) as store:
        for run in named_runs(store, starts):
            for case in all_cases(store, run.id, _contexts(store, run)):
                named = replace(case.forecast, forecaster=run.name)
                found.append(replace(case, forecast=named))
    if not found:
        raise InputError("no forecast of these runs gives a reason", column="--run")
    return sorted(found, key=lambda case: case.item)[:limit]


def _contexts(store: Store, run: NamedRun) -> Callable[[str], Context | None]:
    """What a run was shown, by digest: the book of its arena, or its questions alone."""
    arena = arena_of(run.spec)
    if arena is not None:
        return Book(store.database, arena).context
    alone: dict[str, Context] = {}
    for question in store.questions(run.id):
        as_of = question.as_of_in(run.spec.mode)
        made = Context(question=known_at(question, as_of), as_of=as_of)
        alone[made.digest] = made
    return alone.get
