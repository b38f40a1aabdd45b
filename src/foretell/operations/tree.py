"""Trees of claims: grown for a claim, and written in other forms."""

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foretell.data.atomic_file import write_atomically
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.description import claim_marks, format_probability, one_line, outline
from foretell.forecasters.tree.forecaster import CLAIM
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import TreeFile, tree_from_dict, tree_to_dict, write_tree
from foretell.operations.ask import UNPAID_NOTE, typed_question, typed_questions, typed_run_spec
from foretell.operations.operation import operation
from foretell.operations.requests import TreeRequest
from foretell.operations.result import Result
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost, Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent, TreeGrown, ignore_event
from foretell.runs.runner import PreparedRun, check_run, execute_run, prepare_run
from foretell.runs.runtime import TreeOutput
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import BudgetSpec, RunSpec
from foretell.runs.store import RunStore

TREE_SUFFIXES = {
    ".json": "json",
    ".html": "html",
    ".md": "markdown",
    ".dot": "dot",
    ".mmd": "mermaid",
    ".bif": "bif",
    ".xml": "xmlbif",
    ".pl": "problog",
}
"""Suffix of a file → the form in which a tree is written to it."""
TREE = "tree"
"""The name of the forecaster."""
INPUTS_SHOWN = 10
"""Inputs that the answer depends on most, as told beside a tree."""


@dataclass(frozen=True, kw_only=True)
class TreeResult(Result):
    """A grown tree, and what it took."""

    tree: Tree
    forecast: Forecast
    path: Path
    """The tree's file."""
    run: str
    files: tuple[Path, ...] = ()
    """Every file that was written."""
    warnings: tuple[str, ...] = ()  # pyright: ignore[reportIncompatibleMethodOverride] - a field where others compute it
    notes: tuple[str, ...] = ()

    @property
    def p(self) -> float | None:
        """The probability of the claim."""
        return self.tree.nodes[self.tree.root].p

    @property
    def usage(self) -> Cost:
        """Dollars, calls and tokens."""
        return self.forecast.usage

    def rows(self) -> list[dict[str, Any]]:
        """One row for each claim, in the order of the outline."""
        return [
            {
                "id": line.node.id,
                "depth": line.depth,
                "p": line.node.p,
                "claim": line.node.claim,
                "marks": "; ".join(["see above"] if line.again else claim_marks(line.node)),
            }
            for line in outline(self.tree)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The answer, the inputs it depends on most, what it cost, and the whole tree."""
        from foretell.forecasters.tree.arithmetic.sensitivity import sensitivities

        usage = self.usage
        return {
            "claim": self.tree.nodes[self.tree.root].claim,
            "p": self.p,
            "run": self.run,
            "file": str(self.path),
            "depends_on": [
                {"id": one.id, "claim": one.claim, "p": one.p, "slope": one.slope}
                for one in sensitivities(self.tree)[:INPUTS_SHOWN]
            ],
            "usage": {
                "dollars": usage.dollars,
                "calls": usage.calls,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
            },
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "tree": tree_to_dict(self.tree),
        }

    def __str__(self) -> str:
        return "\n".join(tree_lines(self.tree))


def tree_lines(tree: Tree) -> list[str]:
    """The outline of a tree: id, probability, claim and remarks, one line each."""
    return [f"{'  ' * depth}{id} {p} {claim}{remark}" for depth, id, p, claim, remark in tree_outline(tree)]


def tree_outline(tree: Tree) -> list[tuple[int, str, str, str, str]]:
    """By claim: depth, id, probability, claim and remark, all ready to print."""
    found: list[tuple[int, str, str, str, str]] = []
    for line in outline(tree):
        marks = "; ".join(["see above"] if line.again else claim_marks(line.node))
        cells = (line.node.id, format_probability(line.node.p), one_line(line.node.claim))
        found.append((line.depth, *cells, f" ({marks})" if marks else ""))
    return found


def tree_run_spec(request: TreeRequest) -> RunSpec:
    """The run that grows the tree: the same request on the same day is the same run, and goes on where it was."""
    # A tree is one trial on one question: a budget for all of it is one for the question too.
    limit = request.question_budget if request.question_budget is not None else request.budget
    return typed_run_spec(
        request,
        forecaster=TREE,
        options=request.changed("tree"),
        budget=BudgetSpec(run=request.budget, question=limit),
    )


def prepare_tree(request: TreeRequest, settings: Settings) -> PreparedRun:
    """The run that grows the tree, checked before anything is stored."""
    spec = tree_run_spec(request)
    check_run(spec, settings)
    for path in request.out:
        _format_of(path)
    with closing(RunStore(settings.store)) as store:
        question = _unfinished_question(store, spec) or replace(typed_question(request), subtype=CLAIM)
    return prepare_run(spec, typed_questions([question]))


async def grow(request: TreeRequest, settings: Settings, *, watch: EmitEvent = ignore_event) -> TreeResult:
    """Grow a tree for a claim. Killed and started again, it finds every reply it had and pays for none twice."""
    prepared = prepare_tree(request, settings)
    file = next((path for path in request.out if path.suffix == ".json"), None)
    output = TreeOutput(file=file, watch=watch)
    await execute_run(prepared, settings, trees=output)
    with closing(RunStore(settings.store)) as store:
        result = stored_tree(store, prepared.spec, prepared.questions[0], settings)
    path = file or result.path
    write_tree(path, result.tree)  # Also where the same request was answered before, into another file.
    for other in request.out:
        if other != path:
            write_atomically(other, format_tree(TreeFile(tree=result.tree), _format_of(other)).encode())
    files = tuple(dict.fromkeys((path, *request.out)))
    return replace(result, path=path, files=files, warnings=(*result.warnings, *output.warnings))


def _format_of(path: Path) -> str:
    if path.suffix not in TREE_SUFFIXES:
        hint = f"use {', '.join(TREE_SUFFIXES)}"
        raise InputError(f"a tree cannot be written as {path.suffix or path.name!r}", column="--out", hint=hint)
    return TREE_SUFFIXES[path.suffix]


def stored_tree(store: RunStore, spec: RunSpec, question: Question, settings: Settings) -> TreeResult:
    """The tree that a run has grown for a claim."""
    made = [one for one in store.answers(spec.id) if one.as_of.at == question.as_of_in(spec.mode).at]
    forecast = _forecast(made)
    return TreeResult(
        tree=_tree_of_events(store, spec.id, question),
        forecast=forecast,
        path=settings.home / "trees" / f"{spec.id}.json",
        run=spec.id,
        warnings=prepare_run(spec, typed_questions([question])).warnings,
        notes=() if forecast.usage.calls else (UNPAID_NOTE,),
    )


@operation(TreeRequest)
def grow_tree(request: TreeRequest, settings: Settings | None = None) -> TreeResult:
    """Take a claim apart into claims, have each judged by a model, and put them together again.

    Costs money and takes minutes. The tree's numbers can be changed afterwards with `what_if`.
    """
    from foretell.runs import event_loop
    from foretell.runs.backtest import run_sync

    return run_sync(grow(request, settings or load_settings()), event_loop.run)


def _unfinished_question(store: RunStore, spec: RunSpec) -> Question | None:
    """The question of an earlier start of the same run that came to no forecast: its cutoff is kept."""
    done = {(question, due) for question, due, _ in store.finished(spec.id)}
    left = [one for one in store.questions(spec.id) if (one.id, one.due.isoformat()) not in done]
    return left[-1] if left else None


def _forecast(made: list[Forecast | Failure]) -> Forecast:
    answer = made[-1] if made else None
    if not isinstance(answer, Forecast):
        raise InputError(f"the tree came to no answer: {answer.error if answer else 'nothing was run'}")
    return answer


def _tree_of_events(store: RunStore, run: str, question: Question) -> Tree:
    due = question.due.isoformat()
    grown = [
        event.document
        for _, key, event in store.events(run, question.id)
        if key.due == due and isinstance(event, TreeGrown)
    ]
    if not grown:
        raise InputError("the tree came to no end")
    return evaluated(tree_from_dict(grown[-1]).tree)


def format_tree(found: TreeFile, form: str) -> str:
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
