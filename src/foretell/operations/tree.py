"""Growing trees from the command line and in runs."""

import hashlib
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.forecaster import CLAIM
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import tree_from_dict, write_tree
from foretell.models.journal import Journal
from foretell.operations.ask import TYPED_PREFIX, TypedQuestion, question_from_text, single_question_set
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent, TreeGrown, ignore_event
from foretell.runs.executor import Executor
from foretell.runs.runner import open_answers, prepare_run
from foretell.runs.runtime import TreeOutput
from foretell.runs.settings import Settings
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec
from foretell.runs.store import RunStore, cells_of

if TYPE_CHECKING:
    from foretell.forecasters.tree.tree_file import TreeFile


@dataclass(frozen=True, kw_only=True)
class TreeRequest:
    """A claim to grow a tree for, and how."""

    asked: TypedQuestion
    models: dict[str, str]
    options: dict[str, Any]
    search: tuple[str, ...] = ()
    budget: float | None = None
    out: Path | None = None


@dataclass(frozen=True, kw_only=True)
class TreeResult:
    """A grown tree, and what it took."""

    tree: Tree
    answer: Forecast
    path: Path
    run: str
    warnings: tuple[str, ...] = ()


def tree_run_spec(wish: TreeRequest) -> RunSpec:
    """The run that grows the tree: the same wish on the same day is the same run, and goes on where it was."""
    day = datetime.now(UTC).date() if wish.asked.as_of is None else ""
    words = hashlib.sha256(repr((wish.asked, day)).encode()).hexdigest()
    return RunSpec(
        questions=QuestionsSpec(dataset=f"{TYPED_PREFIX}{words[:10]}"),
        forecaster="tree",
        options=wish.options,
        models=wish.models,
        search=wish.search,
        mode="live" if wish.asked.as_of is None else "backtest",
        budget=BudgetSpec(run=wish.budget, question=wish.budget),
    )


async def grow_tree(wish: TreeRequest, settings: Settings, *, watch: EmitEvent = ignore_event) -> TreeResult:
    """Grow a tree for a claim. Killed and started again, it finds every reply it had and pays for none twice."""
    spec = tree_run_spec(wish)
    output = TreeOutput(file=wish.out or settings.home / "trees" / f"{spec.id}.json", watch=watch)
    store = RunStore(settings.store)
    with closing(store), closing(Journal(settings.journal)) as journal:
        question = _unfinished_question(store, spec) or _claim_question(wish.asked)
        prepared = prepare_run(spec, single_question_set(question))
        store.begin(spec.id, spec.to_json(), _now().isoformat(), services=settings.services)
        store.keep_questions(spec.id, prepared.questions)
        path = wish.out or settings.home / "trees" / f"{spec.id}.json"
        async with open_answers(spec, settings, journal, store, concurrency=1, trees=output) as answer:
            cells = list(cells_of(spec.id, prepared.questions, 1))
            await Executor(store, concurrency=1).run(cells, answer)
        made = [one for one in store.answers(spec.id) if one.as_of.at == question.as_of_in(spec.mode).at]
        answer = _forecast(made)
        tree = _tree_of(store, spec.id, question)
        write_tree(path, tree)  # Also where the same wish was granted before, into another file.
        return TreeResult(
            tree=tree,
            answer=answer,
            path=path,
            run=spec.id,
            warnings=(*prepared.warnings, *output.warnings),
        )


def _unfinished_question(store: RunStore, spec: RunSpec) -> Question | None:
    """The question of an earlier start of the same run that came to no forecast: its cutoff is kept."""
    done = {(question, due) for question, due, _ in store.finished(spec.id)}
    left = [one for one in store.questions(spec.id) if (one.id, one.due.isoformat()) not in done]
    return left[-1] if left else None


def _claim_question(asked: TypedQuestion) -> Question:
    return replace(question_from_text(asked, _now()), subtype=CLAIM)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _forecast(made: list[Forecast | Failure]) -> Forecast:
    answer = made[-1] if made else None
    if not isinstance(answer, Forecast):
        raise InputError(f"the tree came to no answer: {answer.error if answer else 'nothing was run'}")
    return answer


def _tree_of(store: RunStore, run: str, question: Question) -> Tree:
    due = question.due.isoformat()
    grown = [
        event.document
        for _, key, event in store.events(run, question.id)
        if key.due == due and isinstance(event, TreeGrown)
    ]
    if not grown:
        raise InputError("the tree came to no end")
    return evaluated(tree_from_dict(grown[-1]).tree)


# A tree file in other forms, by the name of the form.

TREE_FORMATS = ("problog", "bif", "xmlbif", "dot", "mermaid", "markdown", "html", "json", "circuit")


def format_tree(found: "TreeFile", form: str) -> str:
    """The file in one of `TREE_FORMATS`."""
    from foretell.forecasters.tree import exports
    from foretell.forecasters.tree.what_if import compare_scenarios

    if form in exports.TEXT_FORMATS:
        return exports.TEXT_FORMATS[form](found.tree)
    if form == "json":
        from foretell.forecasters.tree.tree_file import tree_text

        return tree_text(found.tree, found.scenarios)
    outcomes = compare_scenarios(found.tree, found.scenarios.values())
    if form == "markdown":
        from foretell.forecasters.tree.markdown import to_markdown

        return to_markdown(found.tree, outcomes)
    from foretell.report.tree_page import tree_page

    return tree_page(found.tree, outcomes)
