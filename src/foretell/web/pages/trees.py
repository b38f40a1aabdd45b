"""Trees: the gallery, a tree with what-if, its claims, notebooks and exports."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from foretell.forecasters.tree.arithmetic.scaling import links_unfit_for_bayes_net
from foretell.forecasters.tree.arithmetic.sensitivity import tornado
from foretell.forecasters.tree.edits import Scenario
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import TreeFile, write_tree
from foretell.forecasters.tree.what_if import apply_scenario
from foretell.operations.tree import TREE_FORMATS, format_tree
from foretell.report.charts.ranking import TornadoRow, tornado_plot
from foretell.report.charts.svg import Chart
from foretell.web.rendering import html_page, link_to
from foretell.web.security import TokenRequired, form_of
from foretell.web.state import CurrentState, WebState
from foretell.web.views.trees import (
    ClaimView,
    NotebookView,
    TreeList,
    TreeView,
    WhatIfView,
    claim_view,
    edits_from_text,
    list_trees,
    notebook_view,
    open_tree,
    tree_path,
    tree_view,
    what_if_view,
)

TORNADO_BARS = 15
BAYES_FORMATS = ("problog", "bif", "xmlbif")
"""Forms that take links which are chances given the children."""
TREE_RESPONSES: dict[int | str, dict[str, Any]] = {404: {"description": "No such tree, or no such claim in it."}}

router = APIRouter(tags=["trees"])


@router.get("/api/trees")
def read_trees(here: CurrentState) -> TreeList:
    """Every tree file of this machine."""
    return list_trees(here.settings)


@router.get("/trees", include_in_schema=False)
def show_trees(request: Request, here: CurrentState) -> Response:
    """The gallery."""
    return html_page(request, "trees.html", list_trees(here.settings))


# Names of trees may hold slashes (a run's trees lie in a folder), so what is asked of a tree comes first in the path.
@router.get("/api/tree/whatif/{name:path}", responses=TREE_RESPONSES)
def read_whatif(here: CurrentState, name: str, set: Annotated[list[str], Query(max_length=2000)]) -> WhatIfView:
    """What other probabilities (`set=P2.1=0.3`, repeated) do to every claim. Nothing is kept."""
    return what_if_view(_open_tree_file(here, name).tree, set)


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
) -> WhatIfView:
    """Keep some probabilities in the tree's file as a scenario of that name."""
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


def _save_scenario(here: WebState, name: str, scenario: str, sets: list[str]) -> WhatIfView:
    """Checked by playing it; the file is written whole."""
    if not scenario.strip() or not sets:
        raise HTTPException(422, "a scenario needs a name and at least one ID=P")
    file = _open_tree_file(here, name)
    made = Scenario(name=scenario.strip()[:80], edits=edits_from_text(sets))
    apply_scenario(file.tree, made)
    kept = file.with_scenario(made)
    write_tree(tree_path(here.settings, name), kept.tree, kept.scenarios)
    return what_if_view(file.tree, sets)
