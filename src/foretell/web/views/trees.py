"""The tree files of this machine."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foretell.forecasters.tree.arithmetic.circuit import Circuit
from foretell.forecasters.tree.arithmetic.sensitivity import circuit_and_values, input_text, sensitivities
from foretell.forecasters.tree.description import OutlineLine, claim_marks, link_in_numbers, link_in_words, outline
from foretell.forecasters.tree.edits import Scenario, SetP
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.tree_file import TreeFile, read_tree_file
from foretell.forecasters.tree.what_if import apply_scenario
from foretell.questions.errors import InputError
from foretell.runs.settings import Settings

# A notebook as a page shows it: what was thought, what was run, what came out. Only text and pictures pass.

MAX_CELLS = 400
MAX_OUTPUT = 20_000
MAX_PICTURE_BYTES = 3_000_000
PNG_HEADER = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, kw_only=True)
class NotebookOutput:
    """Something a cell showed."""

    text: str = ""
    error: bool = False
    png: str = ""
    """A picture, in base 64."""


@dataclass(frozen=True, kw_only=True)
class NotebookCell:
    """One cell."""

    kind: str
    """markdown or code."""
    source: str
    outputs: tuple[NotebookOutput, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NotebookView:
    """The page of a notebook."""

    tree: str
    claim: str
    title: str
    cells: tuple[NotebookCell, ...]
    left_out: int = 0
    """Cells beyond what a page holds."""


def notebook_view(tree: str, claim: str, title: str, path: Path) -> NotebookView:
    """The notebook in that file; one that cannot be read is an `InputError`."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        cells = [_cell(cell) for cell in found["cells"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the notebook cannot be read: {type(error).__name__}") from None
    return NotebookView(
        tree=tree, claim=claim, title=title, cells=tuple(cells[:MAX_CELLS]), left_out=max(0, len(cells) - MAX_CELLS)
    )


def _cell(cell: Mapping[str, Any]) -> NotebookCell:
    kind = "markdown" if cell.get("cell_type") == "markdown" else "code"
    outputs = tuple(_output(one) for one in cell.get("outputs") or ())
    return NotebookCell(kind=kind, source=_text(cell.get("source")), outputs=outputs)


def _output(output: Mapping[str, Any]) -> NotebookOutput:
    if output.get("output_type") == "error":
        return NotebookOutput(
            text=_plain("\n".join(map(str, output.get("traceback") or [output.get("evalue", "")]))), error=True
        )
    if output.get("output_type") == "stream":
        return NotebookOutput(text=_plain(_text(output.get("text"))))
    data = output.get("data") or {}
    png = _png(_text(data.get("image/png")).strip())
    return NotebookOutput(png=png) if png else NotebookOutput(text=_plain(_text(data.get("text/plain"))))


def _png(text: str) -> str:
    """The picture, where it is one: what else may stand there is not shown."""
    if not text or len(text) > MAX_PICTURE_BYTES:
        return ""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return base64.b64encode(data).decode() if data.startswith(PNG_HEADER) else ""


def _text(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _plain(text: str) -> str:
    """Without the colours of a terminal, and not endless."""
    import re

    told = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    return told if len(told) <= MAX_OUTPUT else told[:MAX_OUTPUT] + "…"


# A tree as a page shows it: a card for every claim, the operations behind them, what it hangs on, scenarios.

EXCERPT_LENGTH = 400
"""Characters of a report on a card; the claim's own page has all of it."""
INPUT_ROWS = 25


@dataclass(frozen=True, kw_only=True)
class ClaimCard:
    """One claim where it stands in the outline."""

    id: str
    claim: str
    p: float | None
    depth: int
    parent: str | None
    children: tuple[str, ...]
    again: bool
    """It stands further up with its children: the same claim, used once more."""
    how: str
    marks: tuple[str, ...]
    control: str
    """`input` for what can be moved freely, `pin` for a claim that can be held at a value, else nothing."""
    key_factor: str
    excerpt: str
    grounder: str
    sources: int
    notebook: bool
    error: str


@dataclass(frozen=True, kw_only=True)
class TreeInputView:
    """Something the answer hangs on."""

    id: str
    claim: str
    p: float
    slope: float
    share: float


@dataclass(frozen=True, kw_only=True)
class ScenarioView:
    """A saved scenario and what comes of it."""

    name: str
    text: str
    p: float | None
    changed: tuple[str, ...] = ()
    sets: Mapping[str, float] = field(default_factory=dict[str, float])
    """The numbers it sets, where that is all it does: the page can play it by itself."""
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class TreeView:
    """The page of a tree."""

    name: str
    root: str
    claim: str
    p: float | None
    as_of: str | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    cards: tuple[ClaimCard, ...]
    inputs: tuple[TreeInputView, ...]
    """The most important ones first."""
    scenarios: tuple[ScenarioView, ...]
    circuit: Mapping[str, Any]
    """The operations the page runs (see `Circuit.to_dict`)."""


@dataclass(frozen=True, kw_only=True)
class ClaimView:
    """The page of one claim: its proof in full."""

    tree: str
    id: str
    claim: str
    p: float | None
    how: str
    numbers: str
    causality: str
    key_factor: str
    report: str
    grounder: str
    grounding: str
    error: str
    sources: tuple[str, ...]
    notebook: bool
    notes: tuple[str, ...]
    marks: tuple[str, ...]
    children: tuple[tuple[str, str, float | None], ...]
    parents: tuple[str, ...]


def tree_view(name: str, file: TreeFile) -> TreeView:
    """Everything on the page of a tree."""
    tree = file.tree
    circuit, _ = circuit_and_values(tree)
    top = tree.nodes[tree.root]
    return TreeView(
        name=name,
        root=tree.root,
        claim=top.claim,
        p=top.p,
        as_of=None if tree.as_of is None else str(tree.as_of),
        notes=tuple(tree.notes),
        warnings=tuple(str(one) for one in file.warnings),
        cards=_cards(tree, circuit),
        inputs=tuple(
            TreeInputView(id=one.id, claim=one.claim, p=one.p, slope=one.slope, share=one.share)
            for one in sensitivities(tree)[:INPUT_ROWS]
        ),
        scenarios=tuple(_scenario(tree, circuit, one) for one in file.scenarios.values()),
        circuit=circuit.to_dict(),
    )


def _cards(tree: Tree, circuit: Circuit) -> tuple[ClaimCard, ...]:
    found: list[ClaimCard] = []
    path: list[str] = []
    for line in outline(tree):
        del path[line.depth :]
        found.append(_card(line, path[-1] if path else None, circuit))
        found += [] if line.again else _assumption(tree, line, circuit)
        path.append(line.node.id)
    return tuple(found)


def _card(line: OutlineLine, parent: str | None, circuit: Circuit) -> ClaimCard:
    node, grounding = line.node, line.node.grounding
    report = node.report or (grounding.report if grounding is not None else "")
    return ClaimCard(
        id=node.id,
        claim=node.claim,
        p=node.p,
        depth=line.depth,
        parent=parent,
        children=() if line.again else node.children,
        again=line.again,
        how=link_in_words(node) if node.children else "",
        marks=tuple(claim_marks(node)),
        control="" if line.again else _control(node, circuit),
        key_factor=node.key_factor or (grounding.key_factor if grounding is not None else ""),
        excerpt=report[:EXCERPT_LENGTH] + "…" * (len(report) > EXCERPT_LENGTH),
        grounder=grounding.grounder if grounding is not None else "",
        sources=len(grounding.sources) if grounding is not None else 0,
        notebook=bool(grounding is not None and grounding.notebook),
        error=grounding.error if grounding is not None else "",
    )


def _control(node: Proposition, circuit: Circuit) -> str:
    if node.id in circuit.inputs:
        return "input"
    return "pin" if node.id in circuit.pinnable else ""


def _assumption(tree: Tree, line: OutlineLine, circuit: Circuit) -> list[ClaimCard]:
    """What a formula takes for granted is a number one may doubt, and so has a card."""
    name = f"{line.node.id}:PA"
    if name not in circuit.inputs:
        return []
    blank = Proposition(id=name, claim=input_text(tree, name), p=circuit.inputs[name])
    card = _card(OutlineLine(node=blank, depth=line.depth + 1), line.node.id, circuit)
    return [card]


def _scenario(tree: Tree, circuit: Circuit, scenario: Scenario) -> ScenarioView:
    try:
        outcome = apply_scenario(tree, scenario)
    except InputError as error:
        return ScenarioView(name=scenario.name, text=scenario.text, p=None, problem=str(error))
    movable = circuit.inputs.keys() | circuit.pinnable
    sets = {edit.id: edit.p for edit in scenario.edits if isinstance(edit, SetP) and edit.id in movable}
    return ScenarioView(
        name=scenario.name,
        text=scenario.text,
        p=outcome.p,
        changed=tuple(change.id for change in outcome.changes),
        sets=sets if len(sets) == len(scenario.edits) else {},
    )


def claim_view(name: str, tree: Tree, id: str) -> ClaimView:
    """The page of a claim; `KeyError` where the tree has none of that id."""
    node = tree.nodes[id]
    grounding = node.grounding
    return ClaimView(
        tree=name,
        id=id,
        claim=node.claim,
        p=node.p,
        how=link_in_words(node),
        numbers=link_in_numbers(tree, node),
        causality=node.causality,
        key_factor=node.key_factor or (grounding.key_factor if grounding is not None else ""),
        report=node.report,
        grounder=grounding.grounder if grounding is not None else "",
        grounding=grounding.report if grounding is not None else "",
        error=grounding.error if grounding is not None else "",
        sources=grounding.sources if grounding is not None else (),
        notebook=bool(grounding is not None and grounding.notebook),
        notes=node.notes,
        marks=tuple(claim_marks(node)),
        children=tuple((child, tree.nodes[child].claim, tree.nodes[child].p) for child in node.children),
        parents=tuple(other.id for other in tree.nodes.values() if id in other.children),
    )


TREE_SUFFIX = ".json"


@dataclass(frozen=True, kw_only=True)
class TreeRowView:
    """One tree as listed."""

    name: str
    claim: str
    p: float | None
    claims: int
    problem: str = ""
    """Why the file cannot be used."""


@dataclass(frozen=True, kw_only=True)
class TreeList:
    """All of them."""

    folder: str
    trees: tuple[TreeRowView, ...]


def list_trees(settings: Settings) -> TreeList:
    """Every tree file in the home, by name; one that cannot be read says why."""
    folder = tree_folder(settings)
    names = (
        sorted(path.relative_to(folder).as_posix() for path in folder.rglob(f"*{TREE_SUFFIX}"))
        if folder.is_dir()
        else []
    )
    return TreeList(
        folder=str(folder), trees=tuple(_tree_row(settings, name.removesuffix(TREE_SUFFIX)) for name in names)
    )


def tree_folder(settings: Settings) -> Path:
    """Where `foretell tree` and runs put their trees."""
    return settings.home / "trees"


def tree_path(settings: Settings, name: str) -> Path:
    """The file of a tree; a name that leads out of the folder is nobody's."""
    folder = tree_folder(settings).resolve()
    try:
        path = (folder / f"{name}{TREE_SUFFIX}").resolve()
        if path.is_relative_to(folder) and path.is_file():
            return path
    except (OSError, ValueError):
        pass  # Too long for a file's name, or with characters no name may have.
    raise KeyError(name)


def open_tree(settings: Settings, name: str) -> TreeFile:
    """The tree of that name, worked out; `KeyError` where there is none."""
    return read_tree_file(tree_path(settings, name))


def _tree_row(settings: Settings, name: str) -> TreeRowView:
    try:
        tree = open_tree(settings, name).tree
    except InputError as error:
        return TreeRowView(name=name, claim="", p=None, claims=0, problem=str(error))
    top = tree.nodes[tree.root]
    return TreeRowView(name=name, claim=top.claim, p=top.p, claims=len(tree.nodes))
