"""Show trees of claims with their inputs."""

from collections.abc import Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from foretell.forecasters.tree.arithmetic.error_bar import error_bar
from foretell.forecasters.tree.arithmetic.scaling import scale_tree
from foretell.forecasters.tree.arithmetic.sensitivity import beta_paths, drivers, sensitivities
from foretell.forecasters.tree.edits import Scenario
from foretell.forecasters.tree.exports import (
    claim_marks,
    link_in_words,
    one_line,
    outline,
    stale_parts,
    to_bif,
    to_dot,
    to_problog,
    tree_caveats,
    tree_failures,
)
from foretell.forecasters.tree.history import read_history
from foretell.forecasters.tree.parts import reasoning_lines, reconciliation_parts
from foretell.forecasters.tree.proposition import ROOT, Proposition, Tree
from foretell.forecasters.tree.text import TreeProblem, raise_errors
from foretell.forecasters.tree.tree_file import check_file, read_tree_file, write_tree
from foretell.forecasters.tree.what_if import compare_scenarios
from foretell.frozen import frozen
from foretell.number_text import percent, plural, signed
from foretell.operations.requests.trees import TreeShowRequest
from foretell.questions.errors import InputError
from foretell.report.markup import sentence
from foretell.report.result import DocumentResult
from foretell.report.terminal import show_text
from foretell.runs.settings import Settings
from foretell.runs.tree_files import find_tree, open_tree
from foretell.runs.tree_notebooks import NotebookState, copy_notebook, notebook_names, notebook_state

if TYPE_CHECKING:
    from foretell.report.document import ReportDocument

INPUTS_SHOWN = 10
"""How many of the most important inputs are shown."""


def tree_rows(tree: Tree) -> list[dict[str, Any]]:
    """Return one row per claim, in the order of the outline."""
    return [
        {
            "id": line.node.id,
            "depth": line.depth,
            "p": line.node.p,
            "claim": line.node.claim,
            "kind": "" if line.node.link is None else line.node.link.heading,
            "how": link_in_words(line.node) if line.node.children and not line.again else "",
            "marks": "; ".join(["see above"] if line.again else claim_marks(line.node)),
            "examined": "" if line.node.grounding is None else "; ".join(line.node.grounding.route),
        }
        for line in outline(tree)
    ]


def print_tree(tree: Tree, console: "Console", systematic_error: float = 0.0) -> None:
    """Print what the answer rests on, then every claim with its probability, remarks and cases, and the error bar."""
    for line in reasoning_lines(tree):
        console.print(Text(line), highlight=False)
    for row in tree_rows(tree):
        marks = f" ({row['marks']})" if row["marks"] else ""
        head, p = f"{'  ' * row['depth']}{row['id']} ", percent(row["p"], 1)
        indent = min(len(head) + len(p) + 1, console.width // 2)
        claim = Text.assemble(one_line(row["claim"]), (marks, "yellow"))
        first, *more = claim.wrap(console, console.width - indent)
        console.print(Text.assemble(head, (p, "bold"), " ", first), highlight=False)
        cases = Text(f"{row['kind']}. {row['how']}", style="dim") if row["kind"] and row["how"] else Text()
        for line in (*more, *(cases.wrap(console, console.width - indent) if cases else ())):
            console.print(Text.assemble(" " * indent, line), highlight=False)
    routes = {row["id"]: one_line(row["examined"]).rstrip(".") for row in tree_rows(tree) if row["examined"]}
    for id, route in routes.items():
        show_text(console, f"{id} was examined by {route}.\n")
    for caveat in (*tree_failures(tree), *tree_caveats(tree)):
        console.print(Text(sentence(caveat), style="yellow"), highlight=False)
    if (bar := error_bar(tree, systematic_error=systematic_error)) is not None:
        show_text(console, f"The answer lies {bar}.\n")


# Finding a tree, and writing it in other formats.


@frozen
class TreeDocument(DocumentResult):
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
        """Claims whose number is only a fallback because something failed, and why."""
        return tuple(tree_failures(self.tree))

    @property
    def exit_code(self) -> int:
        """3 if the answer is a fallback."""
        return 3 if self.failures else 0

    @property
    def usable_tree(self) -> Tree:
        """The tree. Raises InvalidTree if it has errors."""
        return self.tree

    @property
    def document(self) -> "ReportDocument":
        """The report: the answer, what it depends on, its error bar, every claim with its sources, and its origin."""
        from foretell.report.tree_report import ReportFacts, tree_report  # Pages and their figures.

        facts = ReportFacts(systematic_error=self.bias_sd)
        if self.path is not None:
            facts = replace(facts, file=self.path.name, versions=tuple(read_history(self.path)))
        return tree_report(self.usable_tree, compare_scenarios(self.usable_tree, self.scenarios.values()), facts)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per claim, in the order of the outline."""
        return tree_rows(self.usable_tree)

    def to_svg(self) -> str:
        """Return a picture of the tree."""
        from foretell.report.tree_report import picture_of

        return picture_of(self.usable_tree).standalone()

    def to_dot(self) -> str:
        """Return the tree as a graph for Graphviz."""
        return to_dot(self.usable_tree)

    def to_bif(self) -> str:
        """Return the tree as a Bayes net. Raises InvalidTree if its weights are not conditional probabilities."""
        return to_bif(self.usable_tree)

    def to_problog(self) -> str:
        """Return the tree as a ProbLog program. Raises InvalidTree if its weights are not conditional probabilities."""
        return to_problog(self.usable_tree)

    def write_json(self, path: Path) -> None:
        """Write the tree itself, with its notebooks next to it, so that it can be opened again."""
        nodes = dict(self.usable_tree.nodes)
        for id, name in notebook_names(self.usable_tree).items():
            notebook, grounding = None if self.path is None else self.path.parent / name, nodes[id].grounding
            if notebook is not None and notebook.is_file() and grounding is not None:
                copied = Path(f"{path.stem}_notebooks", notebook.name)
                copy_notebook(notebook, (path.parent / copied).parent)
                nodes[id] = replace(nodes[id], grounding=replace(grounding, notebook=copied.as_posix()))
        write_tree(path, replace(self.usable_tree, nodes=nodes), self.scenarios)

    def write_folder(self, path: Path) -> list[Path]:
        """Copy the notebooks with their data into a folder. Raises InputError if there are none."""
        names = notebook_names(self.usable_tree)
        if self.path is None or not names:
            hint = "they come from --grounder notebook"
            raise InputError("no leaf of this tree has a notebook", path=self.path, hint=hint)
        states = [notebook_state(self.path, id, name) for id, name in names.items()]
        return [file for state in states if state.ok for file in copy_notebook(self.path.parent / state.file, path)]


@frozen
class ShownTree(TreeDocument):
    """A tree that was read and checked, with everything computed from its leaves."""

    problems: tuple[TreeProblem, ...] = ()
    """Remarks on the tree's file, or errors that make it unusable."""
    inputs: bool = False
    """Whether to show what the answer depends on."""
    scaled: str = ""
    """How scaling changed the answer."""

    @property
    def errors(self) -> tuple[TreeProblem, ...]:
        """Errors that make the tree unusable."""
        return tuple(problem for problem in self.problems if not problem.warning)

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
        """1 if the tree cannot be used, 3 if its answer is a fallback."""
        return 1 if self.errors else super().exit_code

    @property
    def notebooks(self) -> "tuple[NotebookState, ...]":
        """The notebooks behind its leaves."""
        path = self.path
        if path is None:
            return ()
        return tuple(notebook_state(path, id, name) for id, name in notebook_names(self.tree).items())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What failed, what scaling changed, and remarks on the file."""
        remarks = (str(problem) for problem in self.problems if problem.warning)
        return (*self.failures, *filter(None, [self.scaled]), *remarks)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer in numbers and words, every claim, what failed or is stale, and the inputs if requested."""
        problems = [
            {"kind": "note" if problem.warning else "error", "problem": str(problem)} for problem in self.problems
        ]
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
            "reconciliation": reconciliation_parts(tree),
            "claims": self.rows(),
            "drivers": [asdict(driver) for driver in drivers(tree)],
            "failures": list(self.failures),
            "caveats": tree_caveats(tree),
            "stale": stale_parts(tree),
            "problems": problems,
            "notebooks": [asdict(notebook) for notebook in self.notebooks],
        }
        if self.inputs:
            body["inputs"] = [asdict(sensitivity) for sensitivity in sensitivities(tree)]
            body["paths"] = [{**asdict(beta_path), "product": beta_path.product} for beta_path in beta_paths(tree)]
        return body

    def to_svg(self) -> str:
        """Return a tornado chart if inputs were requested, otherwise a picture of the tree."""
        from foretell.report.tree_report import tornado_of

        return tornado_of(self.tree).standalone() if self.inputs else super().to_svg()

    def print(self, console: "Console") -> None:
        """Print the outline, then a table of inputs with a line per path, and the notebooks; or the errors."""
        if self.errors:
            lines = [f"error: {error.with_pointer()}" for error in self.errors]
            lines.append(f"{self.path or 'The tree'}: {plural(len(self.errors), 'error')}")
            return show_text(console, "\n".join(lines) + "\n")
        print_tree(self.tree, console, self.bias_sd)
        if self.inputs:
            table = Table("input", "p", "slope", "share", Column("claim", overflow="fold"), box=None)
            for row in sensitivities(self.tree):
                cells = (row.id, percent(row.p, 1), signed(row.slope, 3), percent(row.share))
                table.add_row(*cells, Text(one_line(row.claim)))
            console.print(table)
            for path in beta_paths(self.tree):
                steps = " × ".join(f"{slope:.3g}" for slope in path.slopes)
                show_text(console, f"{signed(path.product, 4)}  {' → '.join(path.claims)}  ({steps})\n")
        for notebook in self.notebooks:
            show_text(console, f"notebook {notebook}\n")


def show_tree(request: TreeShowRequest, settings: Settings | None = None) -> ShownTree:
    """Read a tree, check it and compute every probability from its leaves.

    A tree with errors is returned with them as `errors`, and cannot be used otherwise.
    """
    if isinstance(request.tree, Path):
        path = find_tree(request.tree, settings)
        problems = tuple(check_file(path))
        if any(not problem.warning for problem in problems):
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
        scaled = f"scaled by {request.scaling}: the root was {percent(before, 1)}, is {percent(after, 1)}"
    return ShownTree(
        tree=tree,
        path=path,
        scenarios=file.scenarios,
        bias_sd=request.bias_sd,
        problems=problems,
        inputs=request.inputs,
        scaled=scaled,
    )
