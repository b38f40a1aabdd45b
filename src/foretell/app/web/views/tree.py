"""A tree as a page shows it: a card for every claim, the operations behind them, what it hangs on, scenarios."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foretell.forecasters.tree.arithmetic.circuit import Circuit
from foretell.forecasters.tree.export.outline import Line, marks, outline
from foretell.forecasters.tree.export.words import in_numbers, in_words
from foretell.forecasters.tree.files.tree_file import TreeFile
from foretell.forecasters.tree.influence.sensitivity import claim_of, sensitivities, worked_out
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.whatif.edits import Edit, Scenario, SetP
from foretell.forecasters.tree.whatif.whatif import Outcome, play
from foretell.questions.problems import InputError

LONGEST = 400
"""Characters of a report on a card; the claim's own page has all of it."""
ROWS = 25


@dataclass(frozen=True, kw_only=True)
class Card:
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
class Input:
    """Something the answer hangs on."""

    id: str
    claim: str
    p: float
    slope: float
    share: float


@dataclass(frozen=True, kw_only=True)
class ScenarioLine:
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
    cards: tuple[Card, ...]
    inputs: tuple[Input, ...]
    """The most important ones first."""
    scenarios: tuple[ScenarioLine, ...]
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


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A claim whose probability is another one now."""

    id: str
    claim: str
    before: float | None
    after: float | None


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """What some other numbers lead to."""

    p: float
    before: float | None
    changes: tuple[Changed, ...]
    stale: tuple[str, ...]
    held: tuple[str, ...]


def tree_view(name: str, file: TreeFile) -> TreeView:
    """Everything on the page of a tree."""
    tree = file.tree
    circuit, _ = worked_out(tree)
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
            Input(id=one.id, claim=one.claim, p=one.p, slope=one.slope, share=one.share)
            for one in sensitivities(tree)[:ROWS]
        ),
        scenarios=tuple(_scenario(tree, circuit, one) for one in file.scenarios.values()),
        circuit=circuit.to_dict(),
    )


def _cards(tree: Tree, circuit: Circuit) -> tuple[Card, ...]:
    found: list[Card] = []
    path: list[str] = []
    for line in outline(tree):
        del path[line.depth :]
        found.append(_card(line, path[-1] if path else None, circuit))
        found += [] if line.again else _assumption(tree, line, circuit)
        path.append(line.node.id)
    return tuple(found)


def _card(line: Line, parent: str | None, circuit: Circuit) -> Card:
    node, grounding = line.node, line.node.grounding
    report = node.report or (grounding.report if grounding is not None else "")
    return Card(
        id=node.id,
        claim=node.claim,
        p=node.p,
        depth=line.depth,
        parent=parent,
        children=() if line.again else node.children,
        again=line.again,
        how=in_words(node) if node.children else "",
        marks=tuple(marks(node)),
        control="" if line.again else _control(node, circuit),
        key_factor=node.key_factor or (grounding.key_factor if grounding is not None else ""),
        excerpt=report[:LONGEST] + "…" * (len(report) > LONGEST),
        grounder=grounding.grounder if grounding is not None else "",
        sources=len(grounding.sources) if grounding is not None else 0,
        notebook=bool(grounding is not None and grounding.notebook),
        error=grounding.error if grounding is not None else "",
    )


def _control(node: Proposition, circuit: Circuit) -> str:
    if node.id in circuit.inputs:
        return "input"
    return "pin" if node.id in circuit.pinnable else ""


def _assumption(tree: Tree, line: Line, circuit: Circuit) -> list[Card]:
    """What a formula takes for granted is a number one may doubt, and so has a card."""
    name = f"{line.node.id}:PA"
    if name not in circuit.inputs:
        return []
    blank = Proposition(id=name, claim=claim_of(tree, name), p=circuit.inputs[name])
    card = _card(Line(node=blank, depth=line.depth + 1), line.node.id, circuit)
    return [card]


def _scenario(tree: Tree, circuit: Circuit, scenario: Scenario) -> ScenarioLine:
    try:
        outcome = play(tree, scenario)
    except InputError as error:
        return ScenarioLine(name=scenario.name, text=scenario.text, p=None, problem=str(error))
    movable = circuit.inputs.keys() | circuit.pinnable
    sets = {edit.id: edit.p for edit in scenario.edits if isinstance(edit, SetP) and edit.id in movable}
    return ScenarioLine(
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
        how=in_words(node),
        numbers=in_numbers(tree, node),
        causality=node.causality,
        key_factor=node.key_factor or (grounding.key_factor if grounding is not None else ""),
        report=node.report,
        grounder=grounding.grounder if grounding is not None else "",
        grounding=grounding.report if grounding is not None else "",
        error=grounding.error if grounding is not None else "",
        sources=grounding.sources if grounding is not None else (),
        notebook=bool(grounding is not None and grounding.notebook),
        notes=node.notes,
        marks=tuple(marks(node)),
        children=tuple((child, tree.nodes[child].claim, tree.nodes[child].p) for child in node.children),
        parents=tuple(other.id for other in tree.nodes.values() if id in other.children),
    )


def what_if(tree: Tree, sets: Sequence[str]) -> WhatIf:
    """What `ID=P` texts lead to; one that does not fit is an `InputError`."""
    edits = edits_of(sets)
    return _whatif(tree, play(tree, Scenario(name="as set", edits=edits)))


def edits_of(sets: Sequence[str]) -> tuple[Edit, ...]:
    """`ID=P` texts as edits."""
    found: list[Edit] = []
    for one in sets:
        id, _, value = one.rpartition("=")
        try:
            found.append(SetP(id=id.strip(), p=float(value)))
        except ValueError:
            raise InputError(f"{one[:80]!r} is not ID=NUMBER", column="set", hint="write P2.1=0.3") from None
    return tuple(found)


def _whatif(tree: Tree, outcome: Outcome) -> WhatIf:
    return WhatIf(
        p=outcome.p,
        before=tree.nodes[tree.root].p,
        changes=tuple(
            Changed(id=change.id, claim=change.claim, before=change.before, after=change.after)
            for change in outcome.changes
        ),
        stale=outcome.stale,
        held=outcome.held,
    )
