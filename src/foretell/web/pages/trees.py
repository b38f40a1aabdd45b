"""Trees: the gallery, a tree with what-if, its claims, notebooks and exports."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from foretell.forecasters.tree.arithmetic.scaling import links_unfit_for_bayes_net
from foretell.forecasters.tree.arithmetic.sensitivity import tornado
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import TreeFile
from foretell.operations.requests import NO_CHOICE, TREE_FORMATS, TreeRequest, WhatIfRequest
from foretell.operations.tree import format_tree, prepare_tree, stored_tree
from foretell.operations.what_if import compare_edits, numbers_by_name
from foretell.questions.errors import InputError
from foretell.report.charts.ranking import TornadoRow, tornado_plot
from foretell.report.charts.svg import Chart
from foretell.runs.spec import spec_from_json
from foretell.web.forms import body_of, form_fields, form_values
from foretell.web.pages.ask import start_run
from foretell.web.rendering import html_page, link_to
from foretell.web.security import FIELD, TokenRequired, form_of
from foretell.web.state import CurrentState, WebState
from foretell.web.views.ask import StartedRun, usable_engines
from foretell.web.views.trees import (
    ClaimView,
    NotebookView,
    TreeList,
    TreeView,
    claim_view,
    list_trees,
    notebook_view,
    open_tree,
    tree_path,
    tree_view,
)

TORNADO_BARS = 15
BAYES_FORMATS = ("problog", "bif", "xmlbif")
"""Forms that take links which are chances given the children."""
TREE_RESPONSES: dict[int | str, dict[str, Any]] = {404: {"description": "No such tree, or no such claim in it."}}
router = APIRouter(tags=["trees"])


class TreeBody(body_of(TreeRequest, "out")):
    """A tree to grow, as it is sent to the server."""


class WhatIfBody(body_of(WhatIfRequest, "tree", "save")):
    """Other probabilities for the tree that the address names."""


@router.get("/api/trees")
def read_trees(here: CurrentState) -> TreeList:
    """Every tree file of this machine."""
    return list_trees(here.settings)


@router.post("/api/trees", status_code=202)
def grow(here: CurrentState, _: TokenRequired, request: TreeBody) -> StartedRun:
    """Grow a tree for a claim in the background. Spends money. Follow it at /api/runs/{run}/stream."""
    return start_run(here, prepare_tree(TreeRequest.read(request.model_dump()), here.settings))


@router.get("/api/runs/{run}/tree", responses=TREE_RESPONSES)
def read_grown(here: CurrentState, run: str) -> dict[str, Any]:
    """The tree that a run has grown for a claim: the same as `foretell tree --json` prints."""
    row = here.run(run)
    asked = here.store.questions(row.id)
    if not asked:
        raise HTTPException(404, f"run {row.id} grows no tree")
    return stored_tree(here.store, spec_from_json(row.spec), asked[-1], here.settings).to_dict()


@router.get("/trees", include_in_schema=False)
def show_trees(request: Request, here: CurrentState) -> Response:
    """The gallery, and the form that grows a tree."""
    return _trees_page(request, here, {}, "")


@router.post("/trees", include_in_schema=False)
async def send_tree(request: Request, here: CurrentState, _: TokenRequired) -> Response:
    """Start growing and go to where it can be watched."""
    sent = await form_of(request)
    sent.pop(FIELD, None)
    given = form_values(TreeRequest, sent)
    chosen = {"model": NO_CHOICE, "search": [NO_CHOICE], **given}
    try:
        begun = await run_in_threadpool(lambda: start_run(here, prepare_tree(TreeRequest.read(chosen), here.settings)))
    except InputError as error:
        return await run_in_threadpool(_trees_page, request, here, given, str(error))
    return RedirectResponse(link_to("question", begun.run, begun.question, due=begun.due), status_code=303)


def _trees_page(request: Request, here: WebState, given: dict[str, Any], problem: str) -> Response:
    fields = form_fields(TreeRequest, choices={"search": usable_engines(here.settings)})
    view, status = list_trees(here.settings), 422 if problem else 200
    return html_page(request, "trees.html", view, status=status, fields=fields, given=given, problem=problem)


# Names of trees may hold slashes (a run's trees lie in a folder), so what is asked of a tree comes first in the path.
@router.get("/api/tree/whatif/{name:path}", responses=TREE_RESPONSES)
def read_whatif(here: CurrentState, name: str, set: Annotated[list[str], Query(max_length=2000)]) -> dict[str, Any]:
    """What other probabilities (`set=P2.1=0.3`, repeated) do to every claim. Nothing is stored."""
    return _what_if(here, name, {"set": numbers_by_name(set)})


@router.post("/api/tree/whatif/{name:path}", responses=TREE_RESPONSES)
def play(here: CurrentState, name: str, request: WhatIfBody) -> dict[str, Any]:
    """The same with everything that can be said: saved scenarios, spread, tornado. Nothing is stored."""
    return _what_if(here, name, request.model_dump())


@router.get("/api/tree/export/{form}/{name:path}", responses=TREE_RESPONSES, response_class=PlainTextResponse)
def read_export(here: CurrentState, form: str, name: str) -> Response:
    """The tree as a logic program, a Bayes net, a graph or a report."""
    if form not in TREE_FORMATS:
        raise HTTPException(404, f"there is no form {form!r}; there are {', '.join(TREE_FORMATS)}")
    text = format_tree(_open_tree_file(here, name), form)
    if form == "html":
        return HTMLResponse(text, headers={"Content-Disposition": 'attachment; filename="tree.html"'})
    return PlainTextResponse(text)


@router.get("/api/tree/claim/{claim}/{name:path}", responses=TREE_RESPONSES)
def read_claim(here: CurrentState, claim: str, name: str) -> ClaimView:
    """One claim with its proof."""
    return _claim(_open_tree_file(here, name), name, claim)


@router.get("/api/tree/notebook/{claim}/{name:path}", responses=TREE_RESPONSES)
def read_notebook(here: CurrentState, claim: str, name: str) -> NotebookView:
    """The notebook that a claim was worked out in."""
    return _notebook(here, name, claim)


@router.get("/api/tree/view/{name:path}", responses=TREE_RESPONSES)
def read_tree(here: CurrentState, name: str) -> TreeView:
    """A tree: its claims, the operations behind them, what it hangs on, and its scenarios."""
    return tree_view(name, _open_tree_file(here, name))


@router.post("/api/tree/scenario/{name:path}", status_code=201, responses=TREE_RESPONSES)
def add_scenario(
    here: CurrentState, _: TokenRequired, name: str, scenario: str, set: Annotated[list[str], Query()]
) -> dict[str, Any]:
    """Store some probabilities in the tree's file as a scenario of that name."""
    return _save_scenario(here, name, scenario, set)


@router.post("/trees/scenario/{name:path}", include_in_schema=False)
async def add_scenario_by_form(request: Request, here: CurrentState, _: TokenRequired, name: str) -> Response:
    """The same, from the page."""
    form = await form_of(request)
    _save_scenario(here, name, form.get("scenario", [""])[0], form.get("set", [""])[0].split())
    return RedirectResponse(link_to("tree", name), status_code=303)


@router.get("/trees/claim/{claim}/{name:path}", include_in_schema=False)
def show_claim(request: Request, here: CurrentState, claim: str, name: str) -> Response:
    """The page of a claim."""
    return html_page(request, "claim.html", _claim(_open_tree_file(here, name), name, claim))


@router.get("/trees/notebook/{claim}/{name:path}", include_in_schema=False)
def show_notebook(request: Request, here: CurrentState, claim: str, name: str) -> Response:
    """The page of a notebook."""
    return html_page(request, "notebook.html", _notebook(here, name, claim))


@router.get("/trees/view/{name:path}", include_in_schema=False)
def show_tree(request: Request, here: CurrentState, name: str) -> Response:
    """The page of a tree."""
    file = _open_tree_file(here, name)
    path = tree_path(here.settings, name)
    return html_page(request, "tree.html", tree_view(name, file), **tree_extras(file.tree, str(path)))


def tree_extras(tree: Tree, path: str) -> dict[str, Any]:
    """What the page of a tree shows beside its view."""
    unfit = [problem.node for problem in links_unfit_for_bayes_net(tree) if problem.node]
    forms = tuple(form for form in TREE_FORMATS if not unfit or form not in BAYES_FORMATS)
    return {"tornado": tornado_of(tree), "forms": forms, "unfit": unfit, "path": path}


def tornado_of(tree: Tree) -> Chart | None:
    """What the answer would be with each input at its ends; None where it hangs on nothing."""
    bars = tornado(tree)[:TORNADO_BARS]
    rows = [TornadoRow(name=f"{bar.id} {bar.claim}", at_low=bar.at_low, at_high=bar.at_high) for bar in bars]
    return tornado_plot(rows, tree.nodes[tree.root].p or 0.0) if rows else None


def _open_tree_file(here: WebState, name: str) -> TreeFile:
    try:
        return open_tree(here.settings, name)
    except KeyError:
        raise HTTPException(404, f"there is no tree {name[:80]!r}") from None


def _claim(file: TreeFile, name: str, claim: str) -> ClaimView:
    if claim not in file.tree.nodes:
        raise HTTPException(404, f"the tree has no claim {claim[:80]!r}")
    return claim_view(name, file.tree, claim)


def _notebook(here: WebState, name: str, claim: str) -> NotebookView:
    file = _open_tree_file(here, name)
    node = file.tree.nodes.get(claim)
    if node is None or node.grounding is None or not node.grounding.notebook:
        raise HTTPException(404, f"no notebook was written for {claim[:80]!r}")
    folder = tree_path(here.settings, name).parent
    path = (folder / node.grounding.notebook).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise HTTPException(404, "the notebook is not beside its tree any more")
    return notebook_view(name, claim, node.claim, path)


def _what_if(here: WebState, name: str, values: dict[str, Any]) -> dict[str, Any]:
    _open_tree_file(here, name)
    return compare_edits(WhatIfRequest.read({**values, "tree": tree_path(here.settings, name)})).to_dict()


def _save_scenario(here: WebState, name: str, scenario: str, sets: list[str]) -> dict[str, Any]:
    """Checked by playing it; the file is written whole."""
    if not scenario.strip() or not sets:
        raise HTTPException(422, "a scenario needs a name and at least one ID=P")
    return _what_if(here, name, {"set": numbers_by_name(sets), "save": scenario.strip()[:80]})
