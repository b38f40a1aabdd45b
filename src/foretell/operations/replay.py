"""Recompute a stored run from the journal alone, or run a tree's notebooks again, and compare the results."""

import json
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from foretell.frozen import frozen
from foretell.operations.requests.runs import ReplayRequest
from foretell.operations.requests.trees import tree_reference
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure
from foretell.report.result import Result
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync
from foretell.runs.notebook_reruns import rerun_notebooks
from foretell.runs.settings import Settings, load_settings
from foretell.runs.store import RunStore, find_run_row
from foretell.runs.stored_runs import replay_into, stored_run
from foretell.runs.tree_files import find_tree
from foretell.runs.tree_notebooks import NotebookState


@frozen
class ReplayResult(Result):
    """How many answers of a run are the same when recomputed from the journal."""

    run: str
    """The id of the run, or the file of the tree."""
    same: int
    total: int
    notes: tuple[str, ...] = ()
    """Why answers could not be recomputed."""

    @property
    def ok(self) -> bool:
        """Whether all answers are the same."""
        return self.same == self.total

    def __str__(self) -> str:
        return f"{self.same} of {self.total} answers are the same, from the journal alone"


def replay(request: ReplayRequest, settings: Settings | None = None) -> ReplayResult:
    """Recompute a stored run from the journal alone, without network, keys or corpus, and compare the answers.

    Of a tree, the notebooks of its leaves are run again and their results compared.
    """
    settings = settings or load_settings()
    with closing(RunStore(settings.store)) as store:
        if (tree := _tree_named(store, request.run, settings)) is not None:
            if request.dataset is not None:
                raise InputError("has no effect on a tree", column="--dataset", hint="leave it out")
            return run_sync(verify_notebooks(tree, settings), event_loop.run)
        row = find_run_row(store, request.run)
        run = row.id
        before = [to_json(answer) for answer in store.answers(run)]
        prepared = stored_run(store, run, request.dataset)
    with tempfile.TemporaryDirectory(prefix="foretell-replay-") as folder:
        replayed = replay_into(Path(folder), prepared, row, settings)
        with closing(RunStore(replayed.store)) as again:
            answers = list(again.answers(run))
    after = [to_json(answer) for answer in answers]
    known = set(before)
    problems = [a.error for a in answers if isinstance(a, Failure) and to_json(a) not in known]
    same = sum(_without_seconds(a) == _without_seconds(b) for a, b in zip(before, after, strict=False))
    return ReplayResult(run=run, same=same, total=len(before), notes=tuple(dict.fromkeys(problems))[:5])


def _tree_named(store: RunStore, name: str, settings: Settings) -> Path | None:
    """Return the file of a tree with this name; None if there is none, or if a run has the name too."""
    path, saved = Path(name), settings.home / "trees" / f"{name}.json"
    if any(row.name == name or row.id.startswith(name) for row in store.runs()):
        return None
    if path.is_file() or path.suffix == ".json":
        return path
    return saved if saved.is_file() else None


def _without_seconds(answer: str) -> str:
    """Return an answer without its duration, its payer and the last bits of its cost, which vary between runs."""
    data = json.loads(answer)
    usage = data.get("usage", {})
    usage.pop("seconds", None)
    usage["dollars"] = round(usage.get("dollars", 0.0) + usage.pop("reused", 0.0), 9)
    return json.dumps(data, sort_keys=True)


@frozen
class VerifiedNotebooks(ReplayResult):
    """The notebooks of a tree after every cell was run again; those with other results, or none, are not the same."""

    lines = "notebooks"
    notebooks: tuple[NotebookState, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.notebooks))


async def verify_notebooks(
    tree: Any, settings: Settings | None = None, *, unsandboxed: bool = False
) -> VerifiedNotebooks:
    """Run every cell of a tree's notebooks again, in a sandbox without a network, and compare the outputs.

    Raises InputError if no leaf of the tree has a notebook.
    """
    path = find_tree(tree_reference(tree), settings)
    notebooks = await rerun_notebooks(path, unsandboxed=unsandboxed)
    same = sum(notebook.ok for notebook in notebooks)
    return VerifiedNotebooks(run=str(path), same=same, total=len(notebooks), notebooks=notebooks)
