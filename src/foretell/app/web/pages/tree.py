"""Trees: the gallery, a tree with what-if, its claims, notebooks and exports."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from foretell.app.tree_forms import FORMS, tree_form
from foretell.app.web.links import served
from foretell.app.web.rendering import page
from foretell.app.web.security import Trusted, form_of
from foretell.app.web.serving import Here, Serving
from foretell.app.web.views.notebook import NotebookView, notebook_view
from foretell.app.web.views.tree import ClaimView, TreeView, WhatIf, claim_view, edits_of, tree_view, what_if
from foretell.app.web.views.trees import Trees, list_trees, open_tree, tree_path
from foretell.arena.report.figures.tornado import TornadoRow, tornado_plot
from foretell.arena.report.svg import Figure
from foretell.forecasters.tree.files.tree_file import TreeFile, write_tree
from foretell.forecasters.tree.influence.sensitivity import tornado
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.scaling import unfit_links
from foretell.forecasters.tree.whatif.edits import Scenario
from foretell.forecasters.tree.whatif.whatif import play

BARS = 15
CONDITIONAL = ("problog", "bif", "xmlbif")
"""Forms that take links which are chances given the children."""
CANNOT: dict[int | str, dict[str, Any]] = {404: {"description": "No such tree, or no such claim in it."}}

router = APIRouter(tags=["trees"])


@router.get("/api/trees")
def read_trees(here: Here) -> Trees:
    """Every tree file of this machine."""
    return list_trees(here.settings)


@router.get("/trees", include_in_schema=False)
def show_trees(request: Request, here: Here) -> Response:
    """The gallery."""
    return page(request, "trees.html", list_trees(here.settings))


# Names of trees may hold slashes (a run's trees lie in a folder), so what is asked of a tree comes first in the path.
@router.get("/api/tree/whatif/{name:path}", responses=CANNOT)
def read_whatif(here: Here, name: str, set: Annotated[list[str], Query(max_length=2000)]) -> WhatIf:
    """What other probabilities (`set=P2.1=0.3`, repeated) do to every claim. Nothing is kept."""
    return what_if(_file(here, name).tree, set)


@router.get("/api/tree/export/{form}/{name:path}", responses=CANNOT, response_class=PlainTextResponse)
def read_export(here: Here, form: str, name: str) -> Response:
    """The tree as a logic program, a Bayes net, a graph or a report."""
    if form not in FORMS:
        raise HTTPException(404, f"there is no form {form!r}; there are {', '.join(FORMS)}")
    text = tree_form(_file(here, name), form)
    if form == "html":
        return HTMLResponse(text, headers={"Content-Disposition": 'attachment; filename="tree.html"'})
    return PlainTextResponse(text)


@router.get("/api/tree/claim/{claim}/{name:path}", responses=CANNOT)
def read_claim(here: Here, claim: str, name: str) -> ClaimView:
    """One claim with its proof."""
    return _claim(_file(here, name), name, claim)


@router.get("/api/tree/notebook/{claim}/{name:path}", responses=CANNOT)
def read_notebook(here: Here, claim: str, name: str) -> NotebookView:
    """The notebook that a claim was worked out in."""
    return _notebook(here, name, claim)


@router.get("/api/tree/view/{name:path}", responses=CANNOT)
def read_tree(here: Here, name: str) -> TreeView:
    """A tree: its claims, the operations behind them, what it hangs on, and its scenarios."""
    return tree_view(name, _file(here, name))


@router.post("/api/tree/scenario/{name:path}", status_code=201, responses=CANNOT)
def add_scenario(here: Here, _: Trusted, name: str, scenario: str, set: Annotated[list[str], Query()]) -> WhatIf:
    """Keep some probabilities in the tree's file as a scenario of that name."""
    return _keep(here, name, scenario, set)


@router.post("/trees/scenario/{name:path}", include_in_schema=False)
async def add_scenario_by_form(request: Request, here: Here, _: Trusted, name: str) -> Response:
    """The same, from the page."""
    form = await form_of(request)
    _keep(here, name, form.get("scenario", [""])[0], form.get("set", [""])[0].split())
    return RedirectResponse(served("tree", name), status_code=303)


@router.get("/trees/claim/{claim}/{name:path}", include_in_schema=False)
def show_claim(request: Request, here: Here, claim: str, name: str) -> Response:
    """The page of a claim."""
    return page(request, "claim.html", _claim(_file(here, name), name, claim))


@router.get("/trees/notebook/{claim}/{name:path}", include_in_schema=False)
def show_notebook(request: Request, here: Here, claim: str, name: str) -> Response:
    """The page of a notebook."""
    return page(request, "notebook.html", _notebook(here, name, claim))


@router.get("/trees/view/{name:path}", include_in_schema=False)
def show_tree(request: Request, here: Here, name: str) -> Response:
    """The page of a tree."""
    file = _file(here, name)
    path = tree_path(here.settings, name)
    return page(request, "tree.html", tree_view(name, file), **tree_extras(file.tree, str(path)))


def tree_extras(tree: Tree, path: str) -> dict[str, Any]:
    """What the page of a tree shows beside its view."""
    unfit = [problem.node for problem in unfit_links(tree) if problem.node]
    forms = tuple(form for form in FORMS if not unfit or form not in CONDITIONAL)
    return {"tornado": tornado_of(tree), "forms": forms, "unfit": unfit, "path": path}


def tornado_of(tree: Tree) -> Figure | None:
    """What the answer would be with each input at its ends; None where it hangs on nothing."""
    bars = tornado(tree)[:BARS]
    rows = [TornadoRow(name=f"{bar.id} {bar.claim}", at_low=bar.at_low, at_high=bar.at_high) for bar in bars]
    return tornado_plot(rows, tree.nodes[tree.root].p or 0.0) if rows else None


def _file(here: Serving, name: str) -> TreeFile:
    try:
        return open_tree(here.settings, name)
    except KeyError:
        raise HTTPException(404, f"there is no tree {name[:80]!r}") from None


def _claim(file: TreeFile, name: str, claim: str) -> ClaimView:
    if claim not in file.tree.nodes:
        raise HTTPException(404, f"the tree has no claim {claim[:80]!r}")
    return claim_view(name, file.tree, claim)


def _notebook(here: Serving, name: str, claim: str) -> NotebookView:
    file = _file(here, name)
    node = file.tree.nodes.get(claim)
    if node is None or node.grounding is None or not node.grounding.notebook:
        raise HTTPException(404, f"no notebook was written for {claim[:80]!r}")
    folder = tree_path(here.settings, name).parent
    path = (folder / node.grounding.notebook).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise HTTPException(404, "the notebook is not beside its tree any more")
    return notebook_view(name, claim, node.claim, path)


def _keep(here: Serving, name: str, scenario: str, sets: list[str]) -> WhatIf:
    """Checked by playing it; the file is written whole."""
    if not scenario.strip() or not sets:
        raise HTTPException(422, "a scenario needs a name and at least one ID=P")
    file = _file(here, name)
    made = Scenario(name=scenario.strip()[:80], edits=edits_of(sets))
    play(file.tree, made)
    kept = file.with_scenario(made)
    write_tree(tree_path(here.settings, name), kept.tree, kept.scenarios)
    return what_if(file.tree, sets)
