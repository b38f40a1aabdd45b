"""Editing the tree in a file: a list of edits, and judged claims above them asked for again."""

import json
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foretell.forecasters.tree.arithmetic.evaluation import stale_claims
from foretell.forecasters.tree.description import format_probability
from foretell.forecasters.tree.edits import SetP
from foretell.forecasters.tree.forecaster import CLAIM
from foretell.forecasters.tree.grow.synthesize import rejudge
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import edits_from_json, read_tree_file, write_tree
from foretell.forecasters.tree.what_if import ClaimChange, claim_changes, resynthesize
from foretell.models.journal import Journal
from foretell.models.providers.function import model_name
from foretell.operations.requests import TreeEditRequest
from foretell.operations.result import Result
from foretell.operations.table import operation
from foretell.questions.errors import InputError
from foretell.questions.question import Question, Target
from foretell.runs.runtime import open_runtime
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec


@dataclass(frozen=True, kw_only=True)
class TreeEditResult(Result):
    """The edited tree, and what became of its claims."""

    tree: Tree
    path: Path
    """The file it was written to."""
    changes: tuple[ClaimChange, ...]
    stale: tuple[str, ...]
    """Judged claims that were stated before a change beneath them, and still stand so."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the tree is."""
        return (f"Wrote {self.path}",)

    def to_dict(self) -> dict[str, Any]:
        """The answer, and every claim that changed."""
        changes = [
            {"id": one.id, "claim": one.claim, "was": one.before, "is": one.after, "changed": list(one.fields)}
            for one in self.changes
        ]
        p = self.tree.nodes[self.tree.root].p
        return {"p": p, "file": str(self.path), "changes": changes, "stale": list(self.stale)}

    def __str__(self) -> str:
        lines = [
            f"{one.id} {format_probability(one.before)} → {format_probability(one.after)}"
            + (f" ({', '.join(one.fields)})" if one.fields else "")
            for one in self.changes
        ]
        if self.stale:
            lines.append(f"note: judged before a change beneath them: {', '.join(self.stale)}")
        return "\n".join(lines or ["Nothing changed."])


async def edit(request: TreeEditRequest, settings: Settings | None = None) -> TreeEditResult:
    """Edit the tree, ask for stale judgements again where the request says so, and write the file."""
    file = read_tree_file(request.tree)
    edits = [SetP(id=id.strip(), p=p) for id, p in request.set.items()]
    tree = resynthesize(file.tree, [*_edits(request), *edits])
    if request.rejudge:
        tree = await _rejudged(tree, request, settings or load_settings())
    path = request.save_as or request.tree
    write_tree(path, tree, file.scenarios)
    changes = tuple(claim_changes(file.tree, tree))
    return TreeEditResult(tree=tree, path=path, changes=changes, stale=tuple(stale_claims(tree)))


edit_tree = operation(TreeEditRequest)(edit)


def _edits(request: TreeEditRequest) -> list[Any]:
    if request.edits is None:
        return []
    try:
        written = json.loads(request.edits.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read as JSON: {error}", path=request.edits) from None
    return list(edits_from_json(written))


async def _rejudged(tree: Tree, request: TreeEditRequest, settings: Settings) -> Tree:
    if request.model is None:
        hint = "e.g. openai:NAME; FORETELL_MODEL stands in for it"
        raise InputError("no model is named", column="--model", hint=hint)
    root = tree.nodes[tree.root].claim
    spec = RunSpec(
        questions=QuestionsSpec(dataset="tree edits"),
        models={"agent": model_name(request.model)},
        mode="live" if tree.as_of is None else tree.as_of.mode,
        budget=BudgetSpec(run=request.budget),
    )
    # A tree file does not hold the question it was grown for: the root's claim stands for it.
    due = datetime.now(UTC).replace(microsecond=0) if tree.as_of is None else tree.as_of.at
    asked = Question(id=f"claim {root}", source="own", text=root, due=due, targets=(Target(id="yes"),), subtype=CLAIM)
    settings.home.mkdir(parents=True, exist_ok=True)
    with closing(Journal(settings.journal)) as journal:
        async with open_runtime(spec, settings, journal) as runtime:
            context = runtime.context(asked)
            if tree.as_of is not None:
                context = replace(context, as_of=tree.as_of)
            return await rejudge(tree, asked, context)
