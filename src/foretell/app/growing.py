"""Growing trees from the command line and in runs."""

import hashlib
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foretell.app.asking import TYPED, Asked, benchmark_of, question_of
from foretell.app.nursery import TREE, Nursery, Shelf
from foretell.app.running import prepare
from foretell.app.settings import Settings
from foretell.app.tree_options import TreeOptions
from foretell.app.workbench import workbench
from foretell.arena.cells import cells_of
from foretell.arena.executor import Executor
from foretell.arena.spec import BudgetSpec, QuestionsSpec, RunSpec
from foretell.arena.store import Store
from foretell.forecasters.tree.arithmetic.evaluate import evaluated
from foretell.forecasters.tree.files.tree_file import tree_from_dict, write_tree
from foretell.forecasters.tree.forecaster import CLAIM
from foretell.forecasters.tree.proposition import Tree
from foretell.llm.journal import Journal
from foretell.questions.event import Emit, TreeGrown, ignore
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.problems import InputError
from foretell.questions.question import Question


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A claim to grow a tree for, and how."""

    asked: Asked
    models: dict[str, str]
    options: dict[str, Any]
    search: tuple[str, ...] = ()
    budget: float | None = None
    out: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Harvest:
    """A grown tree, and what it took."""

    tree: Tree
    answer: Forecast
    path: Path
    run: str
    warnings: tuple[str, ...] = ()


def spec_of_wish(wish: Wish) -> RunSpec:
    """The run that grows the tree: the same wish on the same day is the same run, and goes on where it was."""
    day = datetime.now(UTC).date() if wish.asked.as_of is None else ""
    words = hashlib.sha256(repr((wish.asked, day)).encode()).hexdigest()
    return RunSpec(
        questions=QuestionsSpec(dataset=f"{TYPED}{words[:10]}"),
        forecaster=TREE,
        options=wish.options,
        models=wish.models,
        search=wish.search,
        mode="live" if wish.asked.as_of is None else "backtest",
        budget=BudgetSpec(run=wish.budget, question=wish.budget),
    )


async def grow_claim(wish: Wish, settings: Settings, *, watch: Emit = ignore) -> Harvest:
    """Grow a tree for a claim. Killed and started again, it finds every reply it had and pays for none twice."""
    spec = spec_of_wish(wish)
    options = TreeOptions.read(spec.options)
    store = Store(settings.store)
    with closing(store), closing(Journal(settings.journal)) as journal:
        question = _standing(store, spec) or _claimed(wish.asked)
        prepared = prepare(spec, benchmark_of(question))
        store.begin(spec.id, spec.to_json(), _now().isoformat(), services=settings.services)
        store.keep_questions(spec.id, prepared.questions)
        path = wish.out or settings.home / "trees" / f"{spec.id}.json"
        async with workbench(spec, settings, journal, limits=options.limits()) as bench:
            shelf = Shelf(folder=path.resolve().parent, file=path.resolve())
            nursery = Nursery(bench=bench, settings=settings, options=options, shelf=shelf, watch=watch)
            async with nursery.answers() as answer:
                cells = list(cells_of(spec.id, prepared.questions, 1))
                await Executor(store, concurrency=1).run(cells, answer)
        made = [one for one in store.answers(spec.id) if one.as_of.at == question.as_of_in(spec.mode).at]
        answer = _forecast(made)
        tree = _tree_of(store, spec.id, question)
        write_tree(path, tree)  # Also where the same wish was granted before, into another file.
        return Harvest(
            tree=tree,
            answer=answer,
            path=path,
            run=spec.id,
            warnings=(*prepared.warnings, *nursery.warnings),
        )


def _standing(store: Store, spec: RunSpec) -> Question | None:
    """The question of an earlier start of the same run that came to no forecast: its cutoff is kept."""
    done = {(question, due) for question, due, _ in store.finished(spec.id)}
    left = [one for one in store.questions(spec.id) if (one.id, one.due.isoformat()) not in done]
    return left[-1] if left else None


def _claimed(asked: Asked) -> Question:
    return replace(question_of(asked, _now()), subtype=CLAIM)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _forecast(made: list[Forecast | Failure]) -> Forecast:
    answer = made[-1] if made else None
    if not isinstance(answer, Forecast):
        raise InputError(f"the tree came to no answer: {answer.error if answer else 'nothing was run'}")
    return answer


def _tree_of(store: Store, run: str, question: Question) -> Tree:
    due = question.due.isoformat()
    grown = [
        event.document
        for _, key, event in store.events(run, question.id)
        if key.due == due and isinstance(event, TreeGrown)
    ]
    if not grown:
        raise InputError("the tree came to no end")
    return evaluated(tree_from_dict(grown[-1]).tree)
