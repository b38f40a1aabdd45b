"""Trees of claims: grow them for a claim, list, show, check and export them, and write reports."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from foretell.data.files import write_atomically
from foretell.forecasters.tree import exports
from foretell.forecasters.tree.arithmetic.error_bar import error_bar
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.arithmetic.scaling import scale_tree
from foretell.forecasters.tree.arithmetic.sensitivity import beta_paths, drivers, sensitivities
from foretell.forecasters.tree.exports import (
    claim_marks,
    format_probability,
    one_line,
    outline,
    stale_parts,
    tree_failures,
)
from foretell.forecasters.tree.forecaster import CLAIM
from foretell.forecasters.tree.history import read_history
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.text import TreeProblem
from foretell.forecasters.tree.tree_file import (
    TreeFile,
    check_file,
    read_tree_file,
    tree_from_dict,
    tree_text,
    tree_to_dict,
    write_tree,
)
from foretell.forecasters.tree.what_if import compare_scenarios
from foretell.models.ledger import Money
from foretell.operations.ask import (
    UNPAID_NOTE,
    answer_money,
    cost_text,
    told_what_it_cost,
    typed_question,
    typed_questions,
    typed_run_spec,
)
from foretell.operations.requests.trees import (
    TreeCheckRequest,
    TreeExportRequest,
    TreeListRequest,
    TreeNotebookRequest,
    TreeReportRequest,
    TreeRequest,
    TreeResearchRequest,
    TreeShowRequest,
)
from foretell.operations.result import Result, show_table
from foretell.operations.table import operation
from foretell.questions.errors import InputError, NoAnswer
from foretell.questions.forecast import Cost, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent, TreeGrown, ignore_event
from foretell.report.document import ReportDocument
from foretell.report.terminal import TextColumn, show_text
from foretell.report.tree_report import ReportFacts, picture_of, tornado_of, tree_report
from foretell.runs.runner import PreparedRun, check_run, execute_run, prepare_run
from foretell.runs.runtime import TreeOutput
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.session import conclusion_of, data_path, read_notebook, rerun_notebook

TREE_SUFFIXES = {
    ".json": "json",
    ".html": "html",
    ".md": "markdown",
    ".dot": "dot",
    ".bif": "bif",
    ".pl": "problog",
}
"""Suffix of a file → the format in which a tree is written to it."""
INPUTS_SHOWN = 10
"""How many of the most important inputs are shown."""


def tree_rows(tree: Tree) -> list[dict[str, Any]]:
    """One row per claim, in the order of the outline."""
    return [
        {
            "id": line.node.id,
            "depth": line.depth,
            "p": line.node.p,
            "claim": line.node.claim,
            "marks": "; ".join(["see above"] if line.again else claim_marks(line.node)),
        }
        for line in outline(tree)
    ]


def print_tree(tree: Tree, console: "Console", systematic_error: float = 0.0) -> None:
    """Print the outline of a tree, one claim per line with its probability and remarks, and its error bar."""
    for row in tree_rows(tree):
        marks = f" ({row['marks']})" if row["marks"] else ""
        head, p = f"{'  ' * row['depth']}{row['id']} ", format_probability(row["p"])
        indent = min(len(head) + len(p) + 1, console.width // 2)
        claim = Text.assemble(one_line(row["claim"]), (marks, "yellow"))
        first, *more = claim.wrap(console, console.width - indent)
        console.print(Text.assemble(head, (p, "bold"), " ", first), highlight=False)
        for line in more:
            console.print(Text.assemble(" " * indent, line), highlight=False)
    if (bar := error_bar(tree, systematic_error=systematic_error)) is not None:
        show_text(console, f"The answer lies {bar}.\n")


# Growing.


@dataclass(frozen=True, kw_only=True)
class TreeResult(Result):
    """A grown tree, with its cost and files."""

    tree: Tree
    forecast: Forecast
    path: Path
    """The tree's file."""
    run: str
    files: tuple[Path, ...] = ()
    """Every file that was written."""
    cautions: tuple[str, ...] = ()
    """What a model may have known beforehand."""
    notes: tuple[str, ...] = ()
    paid: Money | None = None
    """What growing it cost; None for a tree that was stored before."""

    @property
    def money(self) -> Money:
        """What was billed for it now, and what its other replies cost when they came."""
        return answer_money(self.usage, self.paid)

    @property
    def p(self) -> float | None:
        """The probability of the claim."""
        return self.tree.nodes[self.tree.root].p

    @property
    def usage(self) -> Cost:
        """Dollars, calls and tokens."""
        return self.forecast.usage

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know before relying on the number, and the files that were written."""
        written = (f"Wrote {path}" for path in self.files)
        return (*self.failures, *self.cautions, *map(one_line, self.tree.notes), *self.notes, *written)

    @property
    def failures(self) -> tuple[str, ...]:
        """Claims whose number is only a stand-in because something failed, and why."""
        return tuple(tree_failures(self.tree))

    @property
    def exit_code(self) -> int:
        """3 if the answer rests on a failure."""
        return 3 if self.failures else 0

    def rows(self) -> list[dict[str, Any]]:
        """One row per claim, in the order of the outline."""
        return tree_rows(self.tree)

    def to_dict(self) -> dict[str, Any]:
        """The answer, its most important inputs, its cost, and the whole tree."""
        counted = ("dollars", "calls", "input_tokens", "output_tokens")
        return {
            "claim": self.tree.nodes[self.tree.root].claim,
            "p": self.p,
            "run": self.run,
            "file": str(self.path),
            "depends_on": [
                {"id": one.id, "claim": one.claim, "p": one.p, "slope": one.slope}
                for one in sensitivities(self.tree)[:INPUTS_SHOWN]
            ],
            "usage": {name: getattr(self.usage, name) for name in counted},
            **self.money.to_dict(),
            "warnings": list(self.cautions),
            "failures": list(self.failures),
            "notes": list(self.notes),
            "tree": tree_to_dict(self.tree),
        }

    def print(self, console: "Console") -> None:
        """The outline and the cost."""
        print_tree(self.tree, console)
        steps = f"Every step: foretell show {self.run} {self.forecast.question_id}"
        show_text(console, f"{cost_text(self.usage, self.money)}. {steps}\n")


def tree_spec(request: TreeRequest | TreeResearchRequest, options: Mapping[str, Any]) -> RunSpec:
    """The run that works on a tree, with these options where nobody says otherwise."""
    spec = typed_run_spec(request, {"forecaster": "tree", "options": dict(options)})
    # A tree is one trial on one question, so a budget for the run is one for the question too.
    limit = spec.budget.run if spec.budget.question is None else spec.budget.question
    return replace(spec, budget=replace(spec.budget, question=limit))


def prepare_tree(request: TreeRequest, settings: Settings) -> PreparedRun:
    """The run that grows the tree, checked before anything is stored.

    The same request on the same day is the same run and continues where it stopped.
    """
    spec = tree_spec(request, request.changed("tree"))
    check_run(spec, settings)
    for path in request.out:
        _format_of(path)
    with closing(RunStore(settings.store)) as store:
        # An earlier attempt without a forecast continues with its own question, whose cutoff is stored.
        done = {(question, due) for question, due, _ in store.finished(spec.id)}
        left = [one for one in store.questions(spec.id) if (one.id, one.due.isoformat()) not in done]
    question = left[-1] if left else replace(typed_question(request), subtype=CLAIM)
    return prepare_run(spec, typed_questions([question]))


async def grow(
    request: TreeRequest,
    settings: Settings | None = None,
    *,
    watch: EmitEvent = ignore_event,
    tell: Callable[[str], None] = lambda _: None,
) -> TreeResult:
    """Break a claim into smaller claims, have a model estimate each, and combine them.

    Costs money and takes minutes. The numbers can be changed afterwards with `what_if`. If it is killed and started
    again, it reuses every saved reply and pays for none twice.
    """
    settings = settings or load_settings()
    prepared = prepare_tree(request, settings)
    for notice in prepared.notices:
        tell(notice)
    output = TreeOutput(watch=watch)
    done = await execute_run(prepared, settings, trees=output)
    with closing(RunStore(settings.store)) as store, told_what_it_cost(done.money):
        result = stored_tree(store, prepared.spec, prepared.questions[0], settings)
    write_tree(result.path, result.tree)  # Also if it was deleted since the same request was answered before.
    for path in request.out:
        if _format_of(path) == "json":
            _copy_tree(result, path)
        else:
            text = format_tree(TreeFile(tree=result.tree), _format_of(path), report_facts(result.path))
            write_atomically(path, text.encode())
    files, cautions = (result.path, *request.out), (*result.cautions, *output.warnings)
    return replace(result, files=files, cautions=cautions, paid=done.money)


def _copy_tree(result: TreeResult, path: Path) -> None:
    """Write a grown tree to another file, with its notebooks beside it."""
    nodes = dict(result.tree.nodes)
    for id, node in nodes.items():
        notebook = result.path.parent / node.grounding.notebook if node.grounding and node.grounding.notebook else None
        if notebook is not None and notebook.is_file():
            assert node.grounding is not None
            copied = Path(f"{path.stem}_notebooks", notebook.name)
            (path.parent / copied).parent.mkdir(parents=True, exist_ok=True)
            for file in filter(Path.is_file, (notebook, data_path(notebook))):
                shutil.copy(file, (path.parent / copied).with_name(file.name))
            nodes[id] = replace(node, grounding=replace(node.grounding, notebook=copied.as_posix()))
    write_tree(path, replace(result.tree, nodes=nodes))


grow_tree = operation(TreeRequest)(grow)


def _format_of(path: Path) -> str:
    if path.suffix not in TREE_SUFFIXES:
        hint = f"use {', '.join(TREE_SUFFIXES)}"
        raise InputError(f"a tree cannot be written as {path.suffix or path.name!r}", column="--out", hint=hint)
    return TREE_SUFFIXES[path.suffix]


def stored_tree(store: RunStore, spec: RunSpec, question: Question, settings: Settings) -> TreeResult:
    """The tree that a run has grown for a claim."""
    made = [one for one in store.answers(spec.id) if one.as_of.at == question.as_of_in(spec.mode).at]
    forecast = made[-1] if made else None
    if not isinstance(forecast, Forecast):
        raise NoAnswer(f"the tree came to no answer: {forecast.error if forecast else 'nothing was run'}")
    due = question.due.isoformat()
    events = [event for _, key, event in store.events(spec.id, question.id) if key.due == due]
    grown = [event.document for event in events if isinstance(event, TreeGrown)]
    if not grown:
        raise NoAnswer("the tree came to no end")
    return TreeResult(
        tree=evaluated(tree_from_dict(grown[-1]).tree),
        forecast=forecast,
        path=settings.home / "trees" / f"{spec.id}.json",
        run=spec.id,
        cautions=prepare_run(spec, typed_questions([question])).warnings,
        notes=() if forecast.usage.calls else (UNPAID_NOTE,),
    )


# Trees in files.


@dataclass(frozen=True, kw_only=True)
class ListedTree:
    """One line in the list of trees."""

    name: str
    claim: str = ""
    p: float | None = None
    claims: int = 0
    changed: datetime
    problem: str = ""
    """Why it cannot be read."""


@dataclass(frozen=True, kw_only=True)
class TreesResult(Result):
    """The trees in a folder."""

    lines = "trees"
    folder: Path
    trees: tuple[ListedTree, ...]

    def print(self, console: Console) -> None:
        """A table, or how to grow a first tree."""
        if not self.trees:
            show_text(console, f'No tree in {self.folder} yet. Grow one: foretell tree "CLAIM" --model provider:name\n')
            return
        columns: dict[TextColumn, str | Callable[[Any], object]] = {
            TextColumn(head="tree"): lambda one: one.name,
            TextColumn(head="p", right=True): lambda one: "" if one.problem else format_probability(one.p),
            TextColumn(head="claims", right=True, drop=2): lambda one: one.claims or "",
            TextColumn(head="changed", drop=1): lambda one: f"{one.changed:%Y-%m-%d}",
            TextColumn(head="claim", shrink=30): lambda one: one_line(one.problem or one.claim),
        }
        show_table(console, self.trees, columns)


@operation(TreeListRequest)
def list_trees(request: TreeListRequest, settings: Settings | None = None) -> TreesResult:
    """List the tree files of this machine, the last changed first; a file that cannot be read says why."""
    del request
    folder = (settings or load_settings()).home / "trees"
    data = {data_path(notebook) for notebook in folder.rglob("*.ipynb")}  # JSON too, but no trees.
    found = {path: path.stat() for path in folder.rglob("*.json") if path not in data}
    latest_first = sorted(found, key=lambda path: (found[path].st_mtime, path), reverse=True)
    trees = (_listed(path, folder, found[path].st_mtime_ns, found[path].st_size) for path in latest_first)
    return TreesResult(folder=folder, trees=tuple(trees))


@lru_cache(maxsize=1000)  # A server lists the same trees for every visitor.
def _listed(path: Path, folder: Path, changed_ns: int, size: int) -> ListedTree:
    del size  # Another size is another tree, though it was written within the clock's step.
    changed = datetime.fromtimestamp(changed_ns / 1e9, UTC)
    name = path.relative_to(folder).with_suffix("").as_posix()
    try:
        tree = read_tree_file(path).tree
    except InputError as error:
        return ListedTree(name=name, changed=changed, problem=str(error))
    top = tree.nodes[tree.root]
    return ListedTree(name=name, claim=top.claim, p=top.p, claims=len(tree.nodes), changed=changed)


@dataclass(frozen=True, kw_only=True)
class ShownTree(Result):
    """A tree as stored in its file."""

    file: TreeFile
    request: TreeShowRequest
    """What else to show."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Notes on the file."""
        return tuple(map(str, self.file.warnings))

    def rows(self) -> list[dict[str, Any]]:
        """One row per claim, in the order of the outline."""
        return tree_rows(self.file.tree)

    def to_dict(self) -> dict[str, Any]:
        """The claims with their probabilities, and inputs and paths if requested."""
        tree = self.file.tree
        body: dict[str, Any] = {"root": tree.root, "p": tree.nodes[tree.root].p, "claims": self.rows()}
        if (bar := error_bar(tree, systematic_error=self.request.systematic_error)) is not None:
            body["error_bar"] = asdict(bar)
        if self.request.inputs:
            body["inputs"] = [asdict(one) for one in sensitivities(tree)]
        if self.request.paths:
            body["paths"] = [{**asdict(one), "product": one.product} for one in beta_paths(tree)]
        return body

    def to_svg(self) -> str:
        """A tornado chart if inputs were requested, otherwise a picture of the tree."""
        return (tornado_of(self.file.tree) if self.request.inputs else picture_of(self.file.tree)).standalone()

    def print(self, console: "Console") -> None:
        """The outline, then a table of inputs and a line per path."""
        print_tree(self.file.tree, console, self.request.systematic_error)
        if self.request.inputs:
            table = Table("input", "p", "slope", "share", Column("claim", overflow="fold"), box=None)
            for row in sensitivities(self.file.tree):
                cells = (row.id, format_probability(row.p), f"{row.slope:+.3f}", f"{row.share:.0%}")
                table.add_row(*cells, Text(one_line(row.claim)))
            console.print(table)
        for path in beta_paths(self.file.tree) if self.request.paths else ():
            steps = " × ".join(f"{slope:.3g}" for slope in path.slopes)
            show_text(console, f"{path.product:+.4f}  {' → '.join(path.claims)}  ({steps})\n")


def show_tree(request: TreeShowRequest) -> ShownTree:
    """Read the tree in a file and compute every probability from its leaves."""
    return ShownTree(file=read_tree_file(request.file), request=request)


@dataclass(frozen=True, kw_only=True)
class TreeCheck(Result):
    """All errors in a tree's file, and notes worth knowing."""

    file: Path
    problems: tuple[TreeProblem, ...]
    failures: tuple[str, ...] = ()
    """Claims whose number is only a stand-in because something failed, and why."""

    @property
    def errors(self) -> int:
        """How many errors make the file unusable."""
        return sum(not problem.warning for problem in self.problems)

    @property
    def ok(self) -> bool:
        """Whether the file can be used."""
        return not self.errors

    @property
    def exit_code(self) -> int:
        """1 if the file cannot be used, 3 if its answer rests on a failure."""
        return 1 if self.errors else 3 if self.failures else 0

    def rows(self) -> list[dict[str, Any]]:
        """One row per problem."""
        return [{"kind": "note" if one.warning else "error", "problem": str(one)} for one in self.problems]

    def to_dict(self) -> dict[str, Any]:
        """The problems, and whether the file can be used."""
        return {"file": str(self.file), "sound": self.ok, "problems": self.rows(), "failures": list(self.failures)}

    def __str__(self) -> str:
        lines = [f"{'note' if one.warning else 'error'}: {one.with_pointer()}" for one in self.problems]
        verdict = f"{self.errors} error{'s' * (self.errors != 1)}" if self.errors else "sound"
        rests = f", but its answer rests on {len(self.failures)} of its claims failing" if self.failures else ""
        return "\n".join([*lines, f"{self.file}: {verdict}{rests}"])


def check_tree(request: TreeCheckRequest) -> TreeCheck:
    """Report everything that is wrong with a tree's file."""
    problems = tuple(check_file(request.file))
    usable = all(one.warning for one in problems)
    failures = tree_failures(read_tree_file(request.file).tree) if usable else []
    return TreeCheck(file=request.file, problems=problems, failures=tuple(failures))


@dataclass(frozen=True, kw_only=True)
class ExportedTree(Result):
    """A tree in another format."""

    form: str
    text: str
    out: Path | None = None
    scaled: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """How much scaling changed the answer, and the file that was written."""
        written = f"Wrote {self.out}" if self.out is not None else ""
        return tuple(filter(None, (self.scaled, written)))

    def print(self, console: "Console") -> None:
        """The text, unless it was written to a file."""
        if self.out is None:
            show_text(console, self.text)


def export_tree(request: TreeExportRequest) -> ExportedTree:
    """Write the tree in a file as a logic program, a Bayes net, a graph or a report."""
    found, scaled = read_tree_file(request.file), ""
    if request.scaling is not None:
        before = found.tree.nodes[found.tree.root].p
        found = TreeFile(tree=scale_tree(found.tree, request.scaling), scenarios=found.scenarios)
        after = found.tree.nodes[found.tree.root].p
        scaled = f"scaled by {request.scaling}: the root was {before:.4f}, is {after:.4f}"
    text = format_tree(found, request.to, report_facts(request.file))
    if request.out is not None:
        write_atomically(request.out, text.encode())
    return ExportedTree(form=request.to, text=text, out=request.out, scaled=scaled)


def format_tree(found: TreeFile, form: str, facts: ReportFacts | None = None) -> str:
    """The text of a tree in one of `TREE_FORMATS`."""
    if form in exports.TEXT_FORMATS:
        return exports.TEXT_FORMATS[form](found.tree)
    if form == "json":
        return tree_text(found.tree, found.scenarios)
    document = _report(found, facts)
    return document.to_markdown() if form == "markdown" else document.to_html()


# The report.


def _report(found: TreeFile, facts: ReportFacts | None) -> ReportDocument:
    return tree_report(found.tree, compare_scenarios(found.tree, found.scenarios.values()), facts)


def report_facts(path: Path, systematic_error: float = 0.0) -> ReportFacts:
    """What a report says about a tree's file beside the tree itself."""
    return ReportFacts(
        file=path.name,
        versions=tuple(read_history(path)),
        systematic_error=systematic_error,
    )


@dataclass(frozen=True, kw_only=True)
class SignedReport(Result):
    """A report to read, print and sign."""

    tree: Tree
    document: ReportDocument

    @property
    def exit_code(self) -> int:
        """3 if the answer rests on a failure."""
        return 3 if tree_failures(self.tree) else 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What failed and what is stale."""
        return (*tree_failures(self.tree), *stale_parts(self.tree))

    def to_dict(self) -> dict[str, Any]:
        """The answer, its paragraph, drivers and error bar, and the whole report as Markdown."""
        bar = error_bar(self.tree)
        return {
            "claim": self.document.title,
            "p": self.tree.nodes[self.tree.root].p,
            "answer": self.document.lead,
            "error_bar": None if bar is None else asdict(bar),
            "drivers": [asdict(one) for one in drivers(self.tree)],
            "failures": tree_failures(self.tree),
            "stale": stale_parts(self.tree),
            "report": self.to_markdown(),
        }

    def to_html(self) -> str:
        """The report as one HTML file."""
        return self.document.to_html()

    def to_markdown(self) -> str:
        """The report as Markdown."""
        return self.document.to_markdown()

    def __str__(self) -> str:
        return f"{self.document.title}\n\n{self.document.lead}"


@operation(TreeReportRequest)
def report_tree(request: TreeReportRequest, settings: Settings | None = None) -> SignedReport:
    """The report on the tree in a file: the answer, what it depends on, every claim, and how it was made."""
    found = read_tree_file(request.file)
    return SignedReport(tree=found.tree, document=_report(found, report_facts(request.file, request.systematic_error)))


# The notebooks of a tree.


@dataclass(frozen=True, kw_only=True)
class NotebookState:
    """One notebook of a tree."""

    claim: str
    file: str
    p: float | None = None
    """The probability concluded from it."""
    cells: int = 0
    data_bytes: int | None = None
    """Size of the data beside it; None without data."""
    state: str = ""
    """The result of running it again, or what is wrong with it."""
    ok: bool = True


@dataclass(frozen=True, kw_only=True)
class NotebookStates(Result):
    """The notebooks of a tree."""

    lines = "notebooks"
    notebooks: tuple[NotebookState, ...]
    folder: Path | None = None

    @property
    def ok(self) -> bool:
        """Whether every notebook exists, and gave the same results when run again."""
        return all(one.ok for one in self.notebooks)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the copies are."""
        return (f"Wrote {self.folder}",) if self.folder is not None else ()

    def __str__(self) -> str:
        lines: list[str] = []
        for one in self.notebooks:
            data = "no data" if one.data_bytes is None else f"{one.data_bytes:,} bytes of data"
            told = f": {one.state}" if one.state else ""
            lines.append(f"{one.claim} {format_probability(one.p)} {one.file}, {one.cells} cells, {data}{told}")
        return "\n".join(lines)


async def check_notebooks(request: TreeNotebookRequest, settings: Settings | None = None) -> NotebookStates:
    """List the notebooks of a tree, copy them with their data, or run them again and compare."""
    tree = read_tree_file(request.file).tree
    named: dict[str, str] = {}
    for id, node in tree.nodes.items():
        if node.grounding is not None and node.grounding.notebook:
            named[id] = node.grounding.notebook
    for id in request.claims:
        if id not in named:
            known = ", ".join(named) or "there are none"
            raise InputError(f"{id[:80]} has no notebook", path=request.file, hint=f"leaves with notebooks: {known}")
    chosen = {id: name for id, name in named.items() if not request.claims or id in request.claims}
    if not chosen:
        hint = "they come from foretell tree grow or ground with --grounder notebook"
        raise InputError("no leaf of this tree has a notebook", path=request.file, hint=hint)
    found = [_state(request, id, name) for id, name in chosen.items()]
    if not request.verify:
        return NotebookStates(notebooks=tuple(found), folder=request.folder)
    async with KernelPool(warm=0, most=1, unsandboxed=request.unsandboxed) as pool:
        done = [await _verified(one, request.file.parent / one.file, pool) if one.ok else one for one in found]
    return NotebookStates(notebooks=tuple(done), folder=request.folder)


def verify_notebooks(tree: Path, settings: Settings) -> Result:
    """Run the notebooks of a tree again and compare their results."""
    from foretell.runs import event_loop
    from foretell.runs.event_loop import run_sync

    request = TreeNotebookRequest.read({"file": tree, "verify": True})
    return run_sync(check_notebooks(request, settings), event_loop.run)


def _state(request: TreeNotebookRequest, id: str, name: str) -> NotebookState:
    """A notebook beside its tree; it is copied if the request says so."""
    top = request.file.parent.resolve()
    path = (top / name).resolve()
    if not path.is_relative_to(top):
        return NotebookState(claim=id, file=name, state="it lies outside the folder of the tree", ok=False)
    try:
        document = read_notebook(path)
    except InputError as error:
        return NotebookState(claim=id, file=name, state=str(error), ok=False)
    beside = data_path(path)
    there = beside.is_file()
    if request.folder is not None:
        request.folder.mkdir(parents=True, exist_ok=True)
        for one in (path, beside) if there else (path,):
            shutil.copyfile(one, request.folder / one.name)
    said = conclusion_of(document).get("p")
    return NotebookState(
        claim=id,
        file=name,
        p=said if isinstance(said, float) else None,
        cells=len(document["cells"]),
        data_bytes=beside.stat().st_size if there else None,
        state="" if there else "the data that it read was not kept: examine the leaf again to have it",
    )


async def _verified(state: NotebookState, path: Path, pool: KernelPool) -> NotebookState:
    try:
        ran = await rerun_notebook(path, pool)
    except InputError as error:
        return replace(state, state=str(error), ok=False)
    if ran.same:
        return replace(state, state=f"run again, {ran.cells} cells say the same")
    places = ", ".join(map(str, ran.differing))
    return replace(state, state=f"run again, another output in cell {places}", ok=False)
