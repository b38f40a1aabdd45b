"""Trees of claims: grow them for a claim, list them, show them with all that they depend on, check their notebooks."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from foretell.forecasters.forecaster import make_forecaster
from foretell.forecasters.tree.arithmetic.error_bar import error_bar
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.arithmetic.scaling import scale_tree
from foretell.forecasters.tree.arithmetic.sensitivity import beta_paths, drivers, sensitivities
from foretell.forecasters.tree.edits import Scenario
from foretell.forecasters.tree.exports import (
    claim_marks,
    format_probability,
    one_line,
    outline,
    stale_parts,
    to_bif,
    to_dot,
    to_problog,
    tree_failures,
)
from foretell.forecasters.tree.forecaster import CLAIM
from foretell.forecasters.tree.grow.analyze import ROOT
from foretell.forecasters.tree.history import read_history
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.text import TreeProblem, raise_errors
from foretell.forecasters.tree.tree_file import (
    TreeFile,
    check_file,
    read_tree_file,
    tree_from_dict,
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
    TreeListRequest,
    TreeRequest,
    TreeShowRequest,
    TreeUpdateRequest,
    tree_reference,
)
from foretell.operations.result import Result, show_table
from foretell.operations.table import operation
from foretell.operations.tree_plan import Planner, TreePlan
from foretell.questions.errors import InputError, NoAnswer, known_names
from foretell.questions.forecast import Cost, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent, TreeGrown, ignore_event
from foretell.report.document import ReportDocument
from foretell.report.terminal import TextColumn, show_text
from foretell.report.tree_report import ReportFacts, picture_of, tornado_of, tree_report
from foretell.runs.runner import PreparedRun, check_options, check_run, execute_run, prepare_run
from foretell.runs.runtime import TreeOutput
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore
from foretell.runs.tree_runtime import TreeOptions
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.session import conclusion_of, data_path, read_notebook, rerun_notebook

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


# Finding a tree, and writing it in other formats.


def find_tree(given: Any, settings: Settings | None = None) -> Path:
    """Return the file of a tree: given by its file, its name, or the id or name of the run that grew it.

    Raises InputError if there is none.
    """
    if not isinstance(given, str | Path):
        raise InputError("is not a stored tree", column="TREE", hint="give its file, or its name in foretell tree list")
    settings, written = settings or load_settings(), str(given)
    if Path(given).is_file():
        return Path(given)
    known = {path.relative_to(_folder(settings)).with_suffix("").as_posix(): path for path in tree_files(settings)}
    name = written.removesuffix(".json")
    matches = [known[name]] if name in known else [path for one, path in known.items() if one.startswith(name)]
    if not matches and (isinstance(settings.store, str) or settings.store.exists()):
        with closing(RunStore(settings.store)) as store:
            runs = [row.id for row in store.runs() if row.name == written]
        matches = [path for one, path in known.items() if one.partition("/")[0] in runs]
    if len(matches) != 1:
        hint = (
            f"there are {', '.join(path.stem for path in matches[:5])}" if matches else known_names(name, list(known))
        )
        problem = "names several trees" if matches else "there is no such tree"
        raise InputError(problem, path=given, hint=hint if known else "foretell tree grow makes one")
    return matches[0]


def open_tree(given: Any, settings: Settings | None = None) -> tuple[TreeFile, Path | None]:
    """Read a stored tree, a tree as JSON or a `Tree`; also return its file, if it has one."""
    if isinstance(given, TreeFile):
        return given, None
    if isinstance(given, Tree):
        return TreeFile(tree=evaluated(given)), None
    if isinstance(given, Mapping):
        file = tree_from_dict(cast("dict[str, Any]", given))
        return replace(file, tree=evaluated(file.tree)), None
    path = find_tree(given, settings)
    return read_tree_file(path), path


@dataclass(frozen=True, kw_only=True)
class TreeDocument(Result):
    """A tree that can be written as a report, a picture, or a file for other programs."""

    tree: Tree
    path: Path | None
    """The tree's file; None for a tree that is not stored."""
    scenarios: Mapping[str, Scenario] = field(default_factory=dict[str, Scenario])
    bias_sd: float = 0.0
    """Standard deviation of errors that repeat in every trial of a leaf."""

    @property
    def p(self) -> float | None:
        """The probability of the claim."""
        return self.tree.nodes[self.tree.root].p

    @property
    def failures(self) -> tuple[str, ...]:
        """Claims whose number is only a stand-in because something failed, and why."""
        return tuple(tree_failures(self.tree))

    @property
    def exit_code(self) -> int:
        """3 if the answer rests on a failure."""
        return 3 if self.failures else 0

    @property
    def usable_tree(self) -> Tree:
        """The tree. Raises InvalidTree if it has errors."""
        return self.tree

    @property
    def document(self) -> ReportDocument:
        """The report: the answer, what it depends on, its error bar, every claim with its sources, and its origin."""
        facts = ReportFacts(systematic_error=self.bias_sd)
        if self.path is not None:
            facts = replace(facts, file=self.path.name, versions=tuple(read_history(self.path)))
        return tree_report(self.usable_tree, compare_scenarios(self.usable_tree, self.scenarios.values()), facts)

    def rows(self) -> list[dict[str, Any]]:
        """One row per claim, in the order of the outline."""
        return tree_rows(self.usable_tree)

    def to_html(self) -> str:
        """The report as one HTML file."""
        return self.document.to_html()

    def to_markdown(self) -> str:
        """The report as Markdown."""
        return self.document.to_markdown()

    def to_svg(self) -> str:
        """A picture of the tree."""
        return picture_of(self.usable_tree).standalone()

    def to_dot(self) -> str:
        """The tree as a graph for Graphviz."""
        return to_dot(self.usable_tree)

    def to_bif(self) -> str:
        """The tree as a Bayes net. Raises InvalidTree if its weights are no conditional probabilities."""
        return to_bif(self.usable_tree)

    def to_problog(self) -> str:
        """The tree as a ProbLog program. Raises InvalidTree if its weights are no conditional probabilities."""
        return to_problog(self.usable_tree)

    def write_json(self, path: Path) -> None:
        """Write the tree itself, with its notebooks beside it, so that it can be opened again."""
        nodes = dict(self.usable_tree.nodes)
        for id, name in _notebook_names(self.usable_tree).items():
            notebook, grounding = None if self.path is None else self.path.parent / name, nodes[id].grounding
            if notebook is not None and notebook.is_file() and grounding is not None:
                copied = Path(f"{path.stem}_notebooks", notebook.name)
                _copy_notebook(notebook, (path.parent / copied).parent)
                nodes[id] = replace(nodes[id], grounding=replace(grounding, notebook=copied.as_posix()))
        write_tree(path, replace(self.usable_tree, nodes=nodes), self.scenarios)

    def write_folder(self, path: Path) -> list[Path]:
        """Copy the notebooks with their data into a folder. Raises InputError if there are none."""
        names = _notebook_names(self.usable_tree)
        if self.path is None or not names:
            hint = "they come from --grounder notebook"
            raise InputError("no leaf of this tree has a notebook", path=self.path, hint=hint)
        states = [notebook_state(self.path, id, name) for id, name in names.items()]
        return [file for one in states if one.ok for file in _copy_notebook(self.path.parent / one.file, path)]


# Growing.


@dataclass(frozen=True, kw_only=True)
class TreeResult(TreeDocument):
    """A grown tree, with its cost and its file."""

    forecast: Forecast
    path: Path
    """The tree's file."""
    run: str
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
    def usage(self) -> Cost:
        """Dollars, calls and tokens."""
        return self.forecast.usage

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know before relying on the number, and where the tree is."""
        told = (*self.failures, *self.cautions, *map(one_line, self.tree.notes), *self.notes)
        return (*told, f"Wrote {self.path}")

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


@dataclass(frozen=True, kw_only=True)
class PlannedTree(TreeResult):
    """What growing a tree would take. It has no forecast, and its tree is the claim alone."""

    forecast: Forecast = field(init=False)
    plan: TreePlan

    @property
    def warnings(self) -> tuple[str, ...]:
        """That nothing was done."""
        return ("Nothing was asked or written",)

    def rows(self) -> list[dict[str, Any]]:
        """One row per step."""
        return self.plan.to_dict()["plan"]

    def to_dict(self) -> dict[str, Any]:
        """The claim, the steps, and about what they cost."""
        return {"claim": self.tree.nodes[self.tree.root].claim, "run": self.run, **self.plan.to_dict()}

    def print(self, console: "Console") -> None:
        """One line per step, and the sum."""
        show_text(console, f"{self.plan}\n")


def tree_spec(request: TreeRequest | TreeUpdateRequest, options: Mapping[str, Any] | None = None) -> RunSpec:
    """Return the run that works on a tree, with these options where nobody says otherwise.

    Raises InputError if the settings are for another forecaster or for several trees, or state something unused.
    """
    spec = typed_run_spec(request, {"forecaster": "tree", "options": dict(options or {})})
    if spec.forecaster != "tree":
        problem = f"these are settings of the forecaster {spec.forecaster!r}"
        raise InputError(problem, path=request.config, column="forecaster", hint="--set forecaster=tree")
    if spec.trials != 1:
        hint = "--trials says how often each leaf is estimated; --set trials=1"
        raise InputError("one tree is grown", path=request.config, column="trials", hint=hint)
    if spec.options.get("deep_model") and spec.options.get("grounder") not in ("deep", "auto"):
        hint = "add that, or leave this out"
        raise InputError("has no effect without --grounder deep or auto", column="options.deep_model", hint=hint)
    # What is stated at its default is the same run as what is not stated.
    usual = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(TreeOptions()).items()}
    stated = {name: value for name, value in spec.options.items() if name not in usual or usual[name] != value}
    # A tree is one trial on one question, so a budget for the run is one for the question too.
    limit = spec.budget.run if spec.budget.question is None else spec.budget.question
    return replace(spec, options=stated, budget=replace(spec.budget, question=limit))


def tree_options(stated: Mapping[str, Any]) -> TreeOptions:
    """Return the options of a run that works on a tree. Raises InputError for one that is unknown or wrong."""
    options = make_forecaster("tree", stated)
    assert isinstance(options, TreeOptions)
    return options


def prepare_tree(request: TreeRequest, settings: Settings) -> PreparedRun:
    """The run that grows the tree, checked before anything is stored.

    The same request on the same day is the same run and continues where it stopped.
    """
    spec = tree_spec(request)
    check_run(spec, settings)
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
    if request.plan:
        return _planned(request, settings)
    prepared = prepare_tree(request, settings)
    for notice in prepared.notices:
        tell(notice)
    output = TreeOutput(watch=watch)
    done = await execute_run(prepared, settings, trees=output)
    with closing(RunStore(settings.store)) as store, told_what_it_cost(done.money):
        result = stored_tree(store, prepared.spec, prepared.questions[0], settings)
    write_tree(result.path, result.tree)  # Also if it was deleted since the same request was answered before.
    return replace(result, cautions=(*result.cautions, *output.warnings), paid=done.money)


grow_tree = operation(TreeRequest)(grow)


def _planned(request: TreeRequest, settings: Settings) -> PlannedTree:
    spec = tree_spec(request)
    check_options(spec)
    plan = Planner(spec=spec).growth(ROOT, tree_options(spec.options))
    tree = Tree(root=ROOT, nodes={ROOT: Proposition(id=ROOT, claim=request.claim)})
    return PlannedTree(tree=tree, path=_folder(settings) / f"{spec.id}.json", run=spec.id, plan=plan)


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
        path=_folder(settings) / f"{spec.id}.json",
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

    def to_dict(self) -> dict[str, Any]:
        """The folder, and the trees with the time of their last change as text."""
        trees = [{**asdict(one), "changed": one.changed.isoformat()} for one in self.trees]
        return {"folder": str(self.folder), "trees": trees}

    def print(self, console: Console) -> None:
        """A table, or how to grow a first tree."""
        if not self.trees:
            show_text(
                console, f'No tree in {self.folder} yet. Grow one: foretell tree grow "CLAIM" --model provider:name\n'
            )
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
    settings = settings or load_settings()
    stats = {path: path.stat() for path in tree_files(settings)}
    latest_first = sorted(stats, key=lambda path: (stats[path].st_mtime, path), reverse=True)
    folder = _folder(settings)
    trees = (_listed(path, folder, stats[path].st_mtime_ns, stats[path].st_size) for path in latest_first)
    return TreesResult(folder=folder, trees=tuple(trees))


def _folder(settings: Settings) -> Path:
    return settings.home / "trees"


def tree_files(settings: Settings) -> list[Path]:
    """Return the files of the trees in the home, without the data of their notebooks, which is JSON too."""
    folder = _folder(settings)
    data = {data_path(notebook) for notebook in folder.rglob("*.ipynb")}
    return [path for path in folder.rglob("*.json") if path not in data]


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
class ShownTree(TreeDocument):
    """A tree that was read and checked, with everything computed from its leaves."""

    problems: tuple[TreeProblem, ...] = ()
    """Remarks on the tree's file, or the errors because of which it cannot be used."""
    inputs: bool = False
    """Whether to show what the answer depends on."""
    scaled: str = ""
    """How scaling changed the answer."""

    @property
    def errors(self) -> tuple[TreeProblem, ...]:
        """Errors because of which the tree cannot be used."""
        return tuple(one for one in self.problems if not one.warning)

    @property
    def usable_tree(self) -> Tree:
        """The tree. Raises InvalidTree if it has errors."""
        raise_errors(self.errors, path=self.path)
        return self.tree

    @property
    def ok(self) -> bool:
        """Whether the tree can be used."""
        return not self.errors

    @property
    def exit_code(self) -> int:
        """1 if the tree cannot be used, 3 if its answer rests on a failure."""
        return 1 if self.errors else super().exit_code

    @property
    def notebooks(self) -> "tuple[NotebookState, ...]":
        """The notebooks behind its leaves."""
        path = self.path
        if path is None:
            return ()
        return tuple(notebook_state(path, id, name) for id, name in _notebook_names(self.tree).items())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What failed, what scaling changed, and remarks on the file."""
        remarks = (str(one) for one in self.problems if one.warning)
        return (*self.failures, *filter(None, [self.scaled]), *remarks)

    def to_dict(self) -> dict[str, Any]:
        """The answer in numbers and words, every claim, what failed or is stale, and the inputs if requested."""
        problems = [{"kind": "note" if one.warning else "error", "problem": str(one)} for one in self.problems]
        file = None if self.path is None else str(self.path)
        if self.errors:
            return {"file": file, "ok": False, "problems": problems}
        tree = self.tree
        bar = error_bar(tree, systematic_error=self.bias_sd)
        body: dict[str, Any] = {
            "file": file,
            "ok": True,
            "root": tree.root,
            "claim": tree.nodes[tree.root].claim,
            "p": self.p,
            "answer": self.document.lead,
            "error_bar": None if bar is None else asdict(bar),
            "claims": self.rows(),
            "drivers": [asdict(one) for one in drivers(tree)],
            "failures": list(self.failures),
            "stale": stale_parts(tree),
            "problems": problems,
            "notebooks": [asdict(one) for one in self.notebooks],
        }
        if self.inputs:
            body["inputs"] = [asdict(one) for one in sensitivities(tree)]
            body["paths"] = [{**asdict(one), "product": one.product} for one in beta_paths(tree)]
        return body

    def to_svg(self) -> str:
        """A tornado chart if inputs were requested, otherwise a picture of the tree."""
        return tornado_of(self.tree).standalone() if self.inputs else super().to_svg()

    def print(self, console: "Console") -> None:
        """The outline, then a table of inputs with a line per path, and the notebooks; or the errors."""
        if self.errors:
            lines = [f"error: {one.with_pointer()}" for one in self.errors]
            count = f"{len(self.errors)} error{'s' * (len(self.errors) != 1)}"
            return show_text(console, "\n".join([*lines, f"{self.path or 'The tree'}: {count}"]) + "\n")
        print_tree(self.tree, console, self.bias_sd)
        if self.inputs:
            table = Table("input", "p", "slope", "share", Column("claim", overflow="fold"), box=None)
            for row in sensitivities(self.tree):
                cells = (row.id, format_probability(row.p), f"{row.slope:+.3f}", f"{row.share:.0%}")
                table.add_row(*cells, Text(one_line(row.claim)))
            console.print(table)
            for path in beta_paths(self.tree):
                steps = " × ".join(f"{slope:.3g}" for slope in path.slopes)
                show_text(console, f"{path.product:+.4f}  {' → '.join(path.claims)}  ({steps})\n")
        for notebook in self.notebooks:
            show_text(console, f"notebook {notebook}\n")


@operation(TreeShowRequest)
def show_tree(request: TreeShowRequest, settings: Settings | None = None) -> ShownTree:
    """Read a tree, check it and compute every probability from its leaves.

    A tree with errors is returned with them as `errors`, and cannot be used otherwise.
    """
    if isinstance(request.tree, Path):
        path = find_tree(request.tree, settings)
        problems = tuple(check_file(path))
        if any(not one.warning for one in problems):
            nothing = Tree(root=ROOT, nodes={ROOT: Proposition(id=ROOT, claim="")})
            return ShownTree(tree=nothing, path=path, problems=problems)
        file = read_tree_file(path)
    else:
        file, path = open_tree(request.tree, settings)
        problems = file.warnings
    tree, scaled = file.tree, ""
    if request.scaling is not None:
        before, tree = tree.nodes[tree.root].p, scale_tree(tree, request.scaling)
        after = tree.nodes[tree.root].p
        scaled = f"scaled by {request.scaling}: the root was {before:.4f}, is {after:.4f}"
    return ShownTree(
        tree=tree,
        path=path,
        scenarios=file.scenarios,
        bias_sd=request.bias_sd,
        problems=problems,
        inputs=request.inputs,
        scaled=scaled,
    )


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

    def __str__(self) -> str:
        data = "no data" if self.data_bytes is None else f"{self.data_bytes:,} bytes of data"
        state = f": {self.state}" if self.state else ""
        return f"{self.claim} {format_probability(self.p)} {self.file}, {self.cells} cells, {data}{state}"


def _notebook_names(tree: Tree) -> dict[str, str]:
    """Leaf → its notebook, as the tree names it."""
    found = {id: node.grounding.notebook for id, node in tree.nodes.items() if node.grounding is not None}
    return {id: name for id, name in found.items() if name}


def _copy_notebook(notebook: Path, folder: Path) -> list[Path]:
    """Copy a notebook with the data beside it into a folder, and return the copies."""
    folder.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copy(file, folder / file.name)) for file in (notebook, data_path(notebook)) if file.is_file()]


def notebook_state(tree: Path, id: str, name: str) -> NotebookState:
    """Describe a notebook beside its tree."""
    folder = tree.parent.resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        return NotebookState(claim=id, file=name, state="it lies outside the folder of the tree", ok=False)
    try:
        document = read_notebook(path)
    except InputError as error:
        return NotebookState(claim=id, file=name, state=str(error), ok=False)
    data = data_path(path)
    p = conclusion_of(document).get("p")
    return NotebookState(
        claim=id,
        file=name,
        p=p if isinstance(p, float) else None,
        cells=len(document["cells"]),
        data_bytes=data.stat().st_size if data.is_file() else None,
        state="" if data.is_file() else "the data that it read was not saved: research the leaf again to have it",
    )


@dataclass(frozen=True, kw_only=True)
class VerifiedNotebooks(Result):
    """The notebooks of a tree after every cell was run again."""

    lines = "notebooks"
    notebooks: tuple[NotebookState, ...]

    @property
    def ok(self) -> bool:
        """Whether every notebook exists and gave the same results."""
        return all(one.ok for one in self.notebooks)

    def __str__(self) -> str:
        return "\n".join(map(str, self.notebooks))


async def verify_notebooks(
    tree: Any, settings: Settings | None = None, *, unsandboxed: bool = False
) -> VerifiedNotebooks:
    """Run every cell of a tree's notebooks again, in a sandbox without a network, and compare the outputs.

    Args:
        tree: The tree's file, name or run, or what `grow_tree` returned.
        settings: Settings of this machine.
        unsandboxed: Whether to run the cells with the user's full permissions.

    Raises InputError if no leaf of the tree has a notebook.
    """
    path = find_tree(tree_reference(tree), settings)
    names = _notebook_names(read_tree_file(path).tree)
    if not names:
        raise InputError("no leaf of this tree has a notebook", path=path, hint="they come from --grounder notebook")
    states = [notebook_state(path, id, name) for id, name in names.items()]
    async with KernelPool(warm=0, most=1, unsandboxed=unsandboxed) as pool:
        done = [await _verified(one, path.parent / one.file, pool) if one.ok else one for one in states]
    return VerifiedNotebooks(notebooks=tuple(done))


async def _verified(state: NotebookState, path: Path, pool: KernelPool) -> NotebookState:
    try:
        ran = await rerun_notebook(path, pool)
    except InputError as error:
        return replace(state, state=str(error), ok=False)
    if ran.same:
        return replace(state, state=f"run again, {ran.cells} cells give the same output")
    places = ", ".join(map(str, ran.differing))
    return replace(state, state=f"run again, another output in cell {places}", ok=False)
