"""Trees: the gallery, a tree with what-if analysis, its claims, notebooks and exports."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from foretell.forecasters.tree.arithmetic.circuit import Circuit
from foretell.forecasters.tree.arithmetic.error_bar import error_bar, error_bars
from foretell.forecasters.tree.arithmetic.evaluation import circuit_and_values
from foretell.forecasters.tree.arithmetic.scaling import links_without_bayes_net
from foretell.forecasters.tree.arithmetic.sensitivity import (
    TornadoBar,
    child_slopes,
    input_text,
    sensitivities,
    tornado,
)
from foretell.forecasters.tree.edits import Scenario, SetP
from foretell.forecasters.tree.exports import (
    OutlineLine,
    claim_marks,
    link_in_numbers,
    link_in_words,
    outline,
    stale_parts,
    tree_caveats,
    tree_failures,
)
from foretell.forecasters.tree.history import current_version, read_history
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.parts import (
    chances_in_chain,
    claim_checks,
    claim_parts,
    closing_numbers,
    numbers_in_words,
    reasoning_lines,
    reconciliation_parts,
    stated_numbers,
)
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree, TreeOrigin, parents_of
from foretell.forecasters.tree.settings import GROUNDERS, RULES
from foretell.forecasters.tree.tree_file import TreeFile, read_tree_file, tree_text
from foretell.forecasters.tree.what_if import apply_scenario, resynthesize
from foretell.operations.requests.trees import TreeListRequest, TreeRequest, TreeShowRequest, WhatIfRequest
from foretell.operations.tree import ShownTree
from foretell.operations.tree import show_tree as shown_tree
from foretell.operations.tree_grow import prepare_tree
from foretell.operations.tree_list import list_trees
from foretell.operations.what_if import numbers_by_name, what_if
from foretell.questions.errors import InputError
from foretell.report.provenance import command_text, running_command
from foretell.request import errors_name_fields, setting
from foretell.runs.settings import Settings
from foretell.web.forms import body_of, form_fields, probability_text
from foretell.web.notebooks import notebook_view
from foretell.web.pages.ask import (
    NOTHING_CHOSEN,
    UNPRICED,
    StartedRun,
    entered_values,
    start_from_form,
    start_run,
    usable_engines,
)
from foretell.web.rendering import html_page, link_to
from foretell.web.security import TokenRequired, form_of, require_trust
from foretell.web.state import CurrentState, WebState

router = APIRouter()
TORNADO_BARS = 15
INPUT_ROWS = 25
EXCERPT_LENGTH = 400
"""Maximum number of characters of a report on a card; the claim's own page shows all of it."""
VERSIONS_SHOWN = 8
"""Maximum number of versions listed for a claim, the latest that changed it."""
DRIVERS_SHOWN = 3
"""Number of inputs with the largest effect on the answer that are shown with their evidence beside the tree."""
BAYES_NET = "Bayes net"
EXPORTS = {
    "Report": {"html": "HTML", "markdown": "Markdown"},
    "Data": {"json": "JSON"},
    "Graph": {"dot": "DOT"},
    BAYES_NET: {"problog": "ProbLog", "bif": "BIF"},
}
"""Export formats of a tree. A Bayes net requires links that are conditional probabilities."""
NO_TREE: dict[str, Any] = {
    "tags": ["trees"],
    "responses": {404: {"description": "No such tree, or no such claim in it."}},
}


class TreeBody(body_of(TreeRequest, "config", "plan")):
    """A tree to grow."""


class WhatIfBody(body_of(WhatIfRequest, "tree", "save")):
    """Other probabilities for the tree named in the path."""

    save: str | None = setting(None, "Save them in the tree's file as a scenario.", min_length=1, max_length=80)


# The tree files of this machine.


def tree_path(settings: Settings, name: str) -> Path:
    """Return the file of a tree; raises a 404 error if there is none or the name leads out of the folder."""
    folder = (settings.home / "trees").resolve()
    try:
        path = (folder / f"{name}.json").resolve()
        if path.is_relative_to(folder) and path.is_file():
            return path
    except (OSError, ValueError):
        pass  # Too long for a file name, or with characters that are not allowed.
    raise HTTPException(404, f"there is no tree {name[:80]!r}")


def known_tree(here: CurrentState, name: str) -> TreeFile:
    """Return the tree named in the path, evaluated, with its version number."""
    path = tree_path(here.settings, name)
    return replace(read_tree_file(path), version=current_version(path))


def known_claim(file: Annotated[TreeFile, Depends(known_tree)], claim: str) -> Proposition:
    """Return the claim named in the path; raises a 404 error if there is none."""
    if claim not in file.tree.nodes:
        raise HTTPException(404, f"the tree has no claim {claim[:80]!r}")
    return file.tree.nodes[claim]


KnownTree = Annotated[TreeFile, Depends(known_tree)]
KnownClaim = Annotated[Proposition, Depends(known_claim)]
ChangedNumbers = Annotated[tuple[str, ...], Query(max_length=2000, description="A changed number, as P2.1=0.3.")]


@router.get("/api/trees", tags=["trees"])
def read_trees(here: CurrentState) -> dict[str, Any]:
    """List all tree files on this machine, last changed first; one that cannot be read has the reason."""
    return list_trees(TreeListRequest(), here.settings).to_dict()


@router.get("/trees", include_in_schema=False)
def show_trees(request: Request, here: CurrentState) -> Response:
    """Show the gallery, and the form that grows a tree."""
    return _trees_page(request, here, {}, "")


def _trees_page(request: Request, here: WebState, entered: dict[str, Any], problem: str) -> Response:
    choices = {"search": usable_engines(here.settings), "grounder": ("", *GROUNDERS), "rule": ("", *RULES)}
    fields = form_fields(TreeRequest, choices=choices, leave_out=("config", "plan"))
    view, status = read_trees(here), 422 if problem else 200
    return html_page(request, "trees.html", view, status=status, fields=fields, entered=entered, problem=problem)


@router.post("/api/trees", tags=["trees"], status_code=202)
def grow(here: CurrentState, _: TokenRequired, request: TreeBody) -> StartedRun:
    """Grow a tree for a claim in the background. Spends money. Follow its progress at /api/runs/{run}/stream."""
    with errors_name_fields(TreeRequest):
        return start_run(here, prepare_tree(TreeRequest.read(request.model_dump()), here.settings))


@router.post("/trees", include_in_schema=False)
async def send_tree(request: Request, here: CurrentState, _: TokenRequired) -> Response:
    """Start growing a tree and redirect to the page where it can be followed."""
    entered = await entered_values(request, TreeRequest)
    confirmed = bool(entered.pop(UNPRICED, None))

    def start() -> StartedRun:
        prepared = prepare_tree(TreeRequest.read(NOTHING_CHOSEN | entered), here.settings)
        return start_run(here, prepared, confirmed=confirmed)

    return await start_from_form(
        TreeRequest,
        start,
        lambda problem: _trees_page(request, here, entered, problem),
    )


# Names of trees may contain slashes (the trees of a run are in a folder), so the name comes last in the path.


@router.post("/api/tree/whatif/{name:path}", **NO_TREE)
async def play(here: CurrentState, name: str, body: WhatIfBody, request: Request) -> dict[str, Any]:
    """The effect of other probabilities, with saved scenarios, spread and tornado. Stored only with `save`."""
    if body.save is not None:
        await require_trust(request)
    return await run_in_threadpool(_what_if, here, name, body.model_dump())


def _what_if(here: WebState, name: str, values: dict[str, Any]) -> dict[str, Any]:
    return what_if(WhatIfRequest.read({**values, "tree": tree_path(here.settings, name)})).to_dict()


@router.post("/trees/scenario/{name:path}", include_in_schema=False)
async def add_scenario_by_form(request: Request, here: CurrentState, _: TokenRequired, name: str) -> Response:
    """Store a scenario from the page."""
    form = await form_of(request)
    scenario, numbers = form.get("scenario", [""])[0].strip()[:80], form.get("set", [""])[0].split()
    if not scenario or not numbers:
        raise HTTPException(422, "a scenario needs a name and at least one ID=P")
    await run_in_threadpool(_what_if, here, name, {"set": numbers_by_name(numbers), "save": scenario})
    return RedirectResponse(link_to("tree", name), status_code=303)


# Exports of a tree.


FORMS: Mapping[str, Callable[[ShownTree], str]] = {
    "html": ShownTree.to_html,
    "markdown": ShownTree.to_markdown,
    "json": lambda result: tree_text(result.tree, result.scenarios),
    "dot": ShownTree.to_dot,
    "problog": ShownTree.to_problog,
    "bif": ShownTree.to_bif,
}


@router.get("/api/tree/export/{form}/{name:path}", response_class=PlainTextResponse, **NO_TREE)
def read_export(here: CurrentState, name: str, form: str) -> Response:
    """The tree as a report, as JSON, as a graph, a logic program or a Bayes net."""
    path = tree_path(here.settings, name)
    if form not in FORMS:
        raise HTTPException(404, f"there is no format {form!r}; there are {', '.join(FORMS)}")
    # Do not reveal the folder of the trees.
    with running_command(command_text("tree show", TreeShowRequest(tree=Path(path.name)))):
        text = FORMS[form](shown_tree(TreeShowRequest(tree=path), here.settings))
    if form == "html":
        return HTMLResponse(text, headers={"Content-Disposition": 'attachment; filename="tree.html"'})
    return PlainTextResponse(text)


# The page of a tree: a card for every claim, the operations that combine them, sensitivities and scenarios.


@router.get("/api/tree/view/{name:path}", **NO_TREE)
def read_tree(file: KnownTree, name: str, set: ChangedNumbers = ()) -> dict[str, Any]:
    """A tree: its claims, the operations that combine them, what the answer depends on, and its scenarios.

    With `set` (`set=P0:all=0.9`, repeated), the numbers are those of that what-if; nothing is stored.
    """
    tree = _changed(file.tree, numbers_by_name(set))
    circuit, _ = circuit_and_values(tree)
    top, origin = tree.nodes[tree.root], tree.origin or TreeOrigin()
    return {
        "name": name,
        "root": tree.root,
        "claim": top.claim,
        "p": top.p,
        "version": file.version,
        "claims": len(tree.nodes),
        "leaves": sum(not node.children for node in tree.nodes.values()),
        "as_of": None if tree.as_of is None else str(tree.as_of),
        "closes": origin.closes or None,
        "models": list(dict.fromkeys(role.partition("=")[2] for role in origin.models)),
        "dollars": origin.cost.dollars if origin.cost.calls else None,
        "notes": tree.notes,
        "failures": tree_failures(tree),
        "caveats": tree_caveats(tree),
        "error_bar": error_bar(tree),
        "row": dict(top.row),
        "reconciliation": reconciliation_parts(tree),
        "distributions": numbers_in_words(tree, origin.reconciliation),
        "reasoning": reasoning_lines(tree),
        "stale": stale_parts(tree),
        "warnings": [str(warning) for warning in file.warnings if not shown_apart(tree, warning.node)],
        "cards": _cards(tree, circuit),
        "inputs": sensitivities(tree)[:INPUT_ROWS],
        "scenarios": [_scenario(tree, circuit, scenario) for scenario in file.scenarios.values()],
        "circuit": circuit.to_dict(),
    }


@router.get("/trees/view/{name:path}", include_in_schema=False)
def show_tree(request: Request, here: CurrentState, file: KnownTree, name: str) -> Response:
    """Show the page of a tree."""
    # Comparing a tree with the one before takes less time than computing what the page shows.
    view, more = here.cached(("tree", name), (file,), lambda: (read_tree(file, name), _of_tree(file.tree)))
    versions = len(read_history(tree_path(here.settings, name)))
    return html_page(request, "tree.html", view, versions=versions, **more)


def _of_tree(tree: Tree) -> dict[str, Any]:
    """Return what only the page of a tree shows: the inputs with the largest effect, and the formats it can have."""
    unfit = [problem.node for problem in links_without_bayes_net(tree) if problem.node]
    bars = tornado(tree)[:TORNADO_BARS]
    return {
        "both": None if tree.origin is None else tree.origin.reconciliation,
        "bars": bars,
        "drivers": [_driver(tree, bar) for bar in bars[:DRIVERS_SHOWN]] if len(tree.nodes) > 1 else [],
        "forms": {title: kinds for title, kinds in EXPORTS.items() if not unfit or title != BAYES_NET},
        "unfit": unfit,
    }


def _driver(tree: Tree, bar: TornadoBar) -> dict[str, Any]:
    """Return an input with a large effect on the answer, and the evidence for its probability."""
    node = tree.nodes.get(bar.id)
    grounding = (node and node.grounding) or Grounding()
    return {
        "id": bar.id,
        "claim": bar.claim,
        "p": bar.p,
        "grounder": grounding.grounder,
        "sources": len(grounding.sources),
        "key_factor": (node and node.key_factor) or grounding.key_factor,
    }


def shown_apart(tree: Tree, id: str) -> bool:
    """Whether a claim is already listed among the failures and stale parts."""
    node = tree.nodes.get(id)
    return node is not None and bool(node.failed or node.stale)


def _cards(tree: Tree, circuit: Circuit) -> list[dict[str, Any]]:
    """Return a card for every claim, in outline order."""
    cards: list[dict[str, Any]] = []
    path: list[str] = []
    moves: dict[str, dict[str, float]] = {}
    after: dict[str, dict[str, str]] = {}
    bars = error_bars(tree)
    for line in outline(tree):
        del path[line.depth :]
        parent = path[-1] if path else None
        if parent is not None and parent not in moves:
            moves[parent] = child_slopes(tree, parent)
            after[parent] = chances_in_chain(tree, parent)
        slope = moves[parent].get(line.node.id) if parent is not None else None
        then = after[parent].get(line.node.id, "") if parent is not None else ""
        bar = bars.get(line.node.id)
        more = {
            "then": then,
            "ends": None if bar is None else (bar.low, bar.high),
            # The rule with the numbers below it filled in.
            "numbers": "" if line.again else link_in_numbers(tree, line.node),
        }
        cards.append(_card(line, parent, circuit, slope) | more)
        path.append(line.node.id)
        # The assumption of a formula is a number that can be changed, so it has a card.
        assumption = f"{line.node.id}:PA"
        if assumption in circuit.inputs and not line.again:
            blank = Proposition(id=assumption, claim=input_text(tree, assumption), p=circuit.inputs[assumption])
            cards.append(_card(OutlineLine(node=blank, depth=line.depth + 1), line.node.id, circuit))
    return cards


def _card(line: OutlineLine, parent: str | None, circuit: Circuit, slope: float | None = None) -> dict[str, Any]:
    """Return a card; `then` is its chance after the earlier children of its parent, `ends` those of its error bar."""
    node, grounding = line.node, line.node.grounding or Grounding()
    report = node.report or grounding.report
    # Inputs can be moved freely; other claims can be fixed at a value.
    control = "input" if node.id in circuit.inputs else "pin" if node.id in circuit.pinnable else ""
    return {
        "id": node.id,
        "claim": node.claim,
        "p": node.p,
        "depth": line.depth,
        "parent": parent,
        "children": () if line.again else node.children,
        "again": line.again,
        "kind": "" if node.link is None or node.pinned is not None else node.link.heading,
        "how": link_in_words(node) if node.children else "",
        "slope": slope,
        "then": "",
        "ends": None,
        "numbers": "",
        "marks": claim_marks(node),
        "state": _state(node),
        "trials": grounding.trials,
        "control": "" if line.again else control,
        "key_factor": node.key_factor or grounding.key_factor,
        "excerpt": report[:EXCERPT_LENGTH] + "…" * (len(report) > EXCERPT_LENGTH),
        "grounder": grounding.grounder,
        "sources": len(grounding.sources),
        "notebook": bool(grounding.notebook),
        "error": grounding.error or node.failed,
    }


def _state(node: Proposition) -> str:
    """Return the problem of a claim in one word: failed, open or stale; empty if there is none."""
    judged = isinstance(node.link, JudgedLink) and node.link.stale
    failed = node.failed and node.pinned is None
    if failed or (not node.children and node.p is None):
        return "failed" if failed or (node.grounding is not None and node.grounding.error) else "open"
    return "stale" if node.stale or judged else ""


def _scenario(tree: Tree, circuit: Circuit, scenario: Scenario) -> dict[str, Any]:
    """Return a saved scenario and its result, with the probabilities it sets if it does nothing else, for the page."""
    view = {"name": scenario.name, "text": scenario.text, "p": None, "changed": [], "sets": {}, "problem": ""}
    try:
        outcome = apply_scenario(tree, scenario)
    except InputError as error:
        return view | {"problem": str(error)}
    movable = circuit.inputs.keys() | circuit.pinnable
    sets = {edit.id: edit.p for edit in scenario.edits if isinstance(edit, SetP) and edit.id in movable}
    changed = [change.id for change in outcome.changes]
    return view | {"p": outcome.p, "changed": changed, "sets": sets if len(sets) == len(scenario.edits) else {}}


def _changed(tree: Tree, numbers: Mapping[str, float]) -> Tree:
    """Return the tree with other numbers; unchanged without any."""
    return resynthesize(tree, [SetP(id=id, p=p) for id, p in numbers.items()]) if numbers else tree


def read_claim(
    request: Request, here: CurrentState, file: KnownTree, node: KnownClaim, name: str, set: ChangedNumbers = ()
) -> dict[str, Any]:
    """Return one claim with its evidence, its effect on the answer, and who changed it.

    With `set` (`set=P2.1=0.3`, repeated), the numbers are those of that what-if; nothing is stored. Cases of the claim
    may also be stated under their own names, such as `P0:all=0.9`, and by a form in percent: `P0:all%=90`.
    """
    stated = [
        f"{id.removesuffix('%')}={probability_text(p) if id.endswith('%') else p}"
        for id, p in request.query_params.items()
        if id.startswith(f"{node.id}:") and p
    ]
    parts = claim_parts(file.tree, node.id) if node.pinned is None else None
    known = {f"{node.id}:{case}": p for case, p in stated_numbers(parts).items()}
    numbers = numbers_by_name((*set, *stated))
    # A form sends all its fields, with six digits.
    numbers = {id: p for id, p in numbers.items() if id not in known or abs(known[id] - p) > 1e-6}
    tree = _changed(file.tree, numbers)
    grounding = node.grounding or Grounding()
    versions = [version for version in read_history(tree_path(here.settings, name)) if node.id in version.changed]
    return {
        "tree": name,
        "id": node.id,
        "claim": node.claim,
        "p": tree.nodes[node.id].p,
        "before": node.p,
        "what_if": len(numbers),
        "override": node.pinned is not None,
        "how": link_in_words(tree.nodes[node.id]),
        "parts": claim_parts(tree, node.id) if parts is not None else None,
        "checks": claim_checks(tree, node.id),
        "closing": closing_numbers(tree) if node.id == tree.root else {},
        "both": (both := tree.origin.reconciliation if tree.origin is not None and node.id == tree.root else None),
        "distributions": numbers_in_words(tree, both) if both is not None else "",
        "numbers": link_in_numbers(tree, tree.nodes[node.id]),
        "causality": node.causality,
        "key_factor": node.key_factor or grounding.key_factor,
        "report": node.report,
        "base_version": file.version,
        "grounder": grounding.grounder,
        "grounding": grounding.report,
        "error": grounding.error,
        "failed": node.failed,
        "route": grounding.route,
        "trials": grounding.trials,
        "stale": node.stale,
        "sources": grounding.sources,
        "notebook": bool(grounding.notebook),
        "notes": node.notes,
        "marks": claim_marks(node),
        "children": [(child, tree.nodes[child].claim, tree.nodes[child].p) for child in node.children],
        "parents": [other.id for other in tree.nodes.values() if node.id in other.children],
        "above": _way_up(tree, node.id),
        "slope": next((sensitivity.slope for sensitivity in sensitivities(tree) if sensitivity.id == node.id), None),
        "stale_parts": len(stale_parts(file.tree)),
        "versions": [
            {
                "version": version.version,
                "at": version.at.isoformat(),
                "author": version.author,
                "message": version.message,
            }
            for version in reversed(versions[-VERSIONS_SHOWN:])
        ],
    }


def _way_up(tree: Tree, id: str) -> list[dict[str, Any]]:
    """Return the claims from this one up to the answer, following first parents, with how each is computed."""
    up, way_up = parents_of(tree.nodes), list[dict[str, Any]]()
    while up[id]:
        id = up[id][0]
        node = tree.nodes[id]
        way_up.append({"id": id, "p": node.p, "how": link_in_words(node), "numbers": link_in_numbers(tree, node)})
    return way_up


@router.get("/trees/claim/{claim}/{name:path}", include_in_schema=False)
def show_claim(request: Request, view: Annotated[dict[str, Any], Depends(read_claim)]) -> Response:
    """Show one claim."""
    return html_page(request, "claim.html", view)


@router.get("/trees/notebook/{claim}/{name:path}", include_in_schema=False)
def show_notebook(request: Request, here: CurrentState, node: KnownClaim, name: str) -> Response:
    """Show the notebook in which a claim was worked out."""
    if node.grounding is None or not node.grounding.notebook:
        raise HTTPException(404, f"no notebook was written for {node.id[:80]!r}")
    folder = tree_path(here.settings, name).parent
    path = (folder / node.grounding.notebook).resolve()
    if not path.is_relative_to(folder) or not path.is_file():
        raise HTTPException(404, "the file of the notebook is missing")
    return html_page(request, "notebook.html", notebook_view(name, node, path))
