"""Changes to trees from the page: manual edits, work by models after a plan with its price, and the version history."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from foretell.forecasters.tree import GROUNDERS, RULES
from foretell.forecasters.tree.history import ConflictingEdits, current_version
from foretell.operations.requests.runs import RunsRequest
from foretell.operations.requests.trees import (
    TreeDiffRequest,
    TreeEditRequest,
    TreeExpandRequest,
    TreeGroundRequest,
    TreeHistoryRequest,
    TreeResearchRequest,
    TreeResynthesizeRequest,
)
from foretell.operations.tree_edit import TreeEditResult, diff_trees, edit, tree_history
from foretell.operations.what_if import numbers_by_name
from foretell.questions.errors import InputError
from foretell.request import errors_name_fields
from foretell.web.forms import body_of, form_fields
from foretell.web.pages.ask import NOTHING_CHOSEN, form_given, usable_engines
from foretell.web.pages.trees import NO_TREE, known_claim, known_tree, read_claim, tree_path
from foretell.web.rendering import html_page, link_to
from foretell.web.security import TokenRequired, form_of
from foretell.web.state import CurrentState, WebState
from foretell.web.tree_work import WORK_REQUESTS, TreeWork, TreeWorkKind, work_on_tree, work_title

router = APIRouter()
WEB_EDITOR = "over the web"
"""Author of a change if none is given."""
ON_THE_PAGE: dict[TreeWorkKind, tuple[str, ...]] = {
    "ground": ("model", "grounder", "trials", "search", "budget", "who", "why"),
    "expand": ("model", "grounder", "rule", "leaves", "rounds", "search", "budget", "who", "why"),
    "resynthesize": ("model", "rule", "claims", "budget", "who", "why"),
}
"""Fields that a form shows at once; the others are collapsed."""
HIDDEN: tuple[str, ...] = (
    "tree",
    "claim",
    "base_version",
    "plan",
    "unsandboxed",
    "kernels",
    "concurrency",
    "allocate",
    "late_text",
)
"""Fields that the page fills in itself or leaves to the command line."""
RUNS_LOOKED_AT = 50
"""Number of recent runs whose models are suggested."""
NOT_BY_FORM = ("tree", "plan", "unsandboxed")
"""Fields that a form can never set, whatever it sends."""


class TreeEditBody(body_of(TreeEditRequest, "tree", "edits", "save_as", "rejudge", "model", "budget")):
    """Edits to the tree named in the path."""


class TreeGroundBody(body_of(TreeGroundRequest, "tree")):
    """Leaves to ground again."""


class TreeExpandBody(body_of(TreeExpandRequest, "tree")):
    """A leaf to break down."""


class TreeResynthesizeBody(body_of(TreeResynthesizeRequest, "tree")):
    """Judgements to update."""


# Edits, and the versions they leave behind.


@router.post("/api/tree/edit/{name:path}", **NO_TREE)
async def change_tree(here: CurrentState, _: TokenRequired, name: str, request: TreeEditBody) -> dict[str, Any]:
    """Change statements, reports, probabilities, children and links. The old version is kept. Calls no model."""
    return (await _edited(here, name, request.model_dump())).to_dict()


async def _edited(here: WebState, name: str, values: dict[str, Any]) -> TreeEditResult:
    who = values.get("who") or WEB_EDITOR
    return await edit(TreeEditRequest.read({**values, "tree": tree_path(here.settings, name), "who": who}))


@router.post("/trees/edit/{claim}/{name:path}", include_in_schema=False)
async def change_claim_by_form(
    request: Request, here: CurrentState, _: TokenRequired, claim: str, name: str
) -> Response:
    """Change a claim from a form: its statement, report, probability, rule or parent, or add a child."""
    form = await form_of(request)
    given = {field: values[0].strip() for field, values in form.items() if values and values[0].strip()}
    file = known_tree(here, name)
    node = known_claim(file, claim)
    report = node.report or (node.grounding.report if node.grounding is not None else "")
    values: dict[str, Any] = {field: given[field] for field in ("who", "why", "base_version") if field in given}
    if given.get("statement", node.claim) != node.claim:
        values["claim"] = {claim: given["statement"]}
    # A browser sends line ends of its own.
    if "report" in given and given["report"].replace("\r\n", "\n") != report.strip():
        values["report"] = {claim: given["report"].replace("\r\n", "\n")}
    if "p" in given:
        values["set"] = numbers_by_name([f"{claim}={given['p']}"])
    if "add" in given:
        values["add"] = [f"{claim}={given['add']}"]
    values |= {field: {claim: given[field]} for field in ("formula", "weights") if field in given}
    values |= {field: [claim] for field in ("remove", "unpin") if given.get(field)}
    values |= {"move": {claim: given["move"]}} if "move" in given else {}
    try:
        await _edited(here, name, values)
    except InputError as error:
        view = read_claim(here, file, node, name)
        return html_page(request, "claim.html", view, status=409, problem=str(error), given=given)
    gone = bool(given.get("remove"))
    return RedirectResponse(link_to("tree", name) if gone else link_to("claim", claim, name), status_code=303)


@router.post("/trees/keep/{name:path}", include_in_schema=False)
async def keep_numbers_by_form(request: Request, here: CurrentState, _: TokenRequired, name: str) -> Response:
    """Save the probabilities of a what-if as the tree's next version."""
    form = {field: values[0].strip() for field, values in (await form_of(request)).items() if values}
    values: dict[str, Any] = {field: form[field] for field in ("who", "why", "base_version") if form.get(field)}
    try:
        await _edited(here, name, {**values, "set": numbers_by_name(form.get("set", "").split())})
    except ConflictingEdits as error:
        raise HTTPException(409, str(error)) from None
    return RedirectResponse(link_to("tree", name), status_code=303)


@router.get("/api/tree/history/{name:path}", **NO_TREE)
def read_versions(here: CurrentState, name: str) -> dict[str, Any]:
    """The versions of a tree: who changed what, when and why."""
    return tree_history(TreeHistoryRequest(tree=tree_path(here.settings, name))).to_dict()


@router.get("/api/tree/diff/{name:path}", **NO_TREE)
def read_diff(here: CurrentState, name: str, start: int | None = None, end: int | None = None) -> dict[str, Any]:
    """Compare two versions of a tree claim by claim; by default the last two."""
    return diff_trees(TreeDiffRequest(tree=tree_path(here.settings, name), start=start, end=end)).to_dict()


@router.get("/trees/history/{name:path}", include_in_schema=False)
def show_versions(
    request: Request, here: CurrentState, name: str, start: int | None = None, end: int | None = None
) -> Response:
    """Show the versions of a tree, and a comparison of two of them."""
    return _versions_page(request, here, name, start, end)


def _versions_page(
    request: Request, here: WebState, name: str, start: int | None = None, end: int | None = None, problem: str = ""
) -> Response:
    view: dict[str, Any] = {**read_versions(here, name), "name": name, "diff": None, "start": start, "end": end}
    tree = known_tree(here, name).tree
    view["claim"] = tree.nodes[tree.root].claim
    if start is not None or len(view["versions"]) > 1:
        view["diff"] = read_diff(here, name, start, end)
    return html_page(request, "tree_history.html", view, status=409 if problem else 200, problem=problem)


@router.post("/api/tree/restore/{name:path}", **NO_TREE)
def restore_version(
    here: CurrentState,
    _: TokenRequired,
    name: str,
    version: Annotated[int, Query(ge=1)],
    who: Annotated[str, Query(max_length=200)] = "",
    why: Annotated[str, Query(max_length=500)] = "",
) -> dict[str, Any]:
    """Restore an older version of a tree as a new version, so that nothing is lost."""
    path = tree_path(here.settings, name)
    return tree_history(TreeHistoryRequest(tree=path, restore=version, who=who or WEB_EDITOR, why=why)).to_dict()


@router.post("/trees/restore/{name:path}", include_in_schema=False)
async def restore_by_form(request: Request, here: CurrentState, _: TokenRequired, name: str) -> Response:
    """Restore an older version from the page."""
    form = {field: values[0].strip() for field, values in (await form_of(request)).items() if values}
    try:
        values = {"restore": form.get("version"), "who": form.get("who") or WEB_EDITOR, "why": form.get("why", "")}
        tree_history(TreeHistoryRequest.read({"tree": tree_path(here.settings, name), **values}))
    except InputError as error:
        return _versions_page(request, here, name, problem=str(error))
    return RedirectResponse(link_to("tree-history", name), status_code=303)


# Models at work: first what would be done and what it would cost, then the work, then what came of it.


@router.post("/api/tree/ground/{name:path}", **NO_TREE)
async def ground_leaves(here: CurrentState, _: TokenRequired, name: str, request: TreeGroundBody) -> dict[str, Any]:
    """Ground leaves again in the background. Spends money, unless `plan` is true: then it only returns the plan."""
    return await _work(here, name, "ground", request.model_dump())


@router.post("/api/tree/expand/{name:path}", **NO_TREE)
async def expand_leaf(here: CurrentState, _: TokenRequired, name: str, request: TreeExpandBody) -> dict[str, Any]:
    """Break down a leaf in the background. Spends money, unless `plan` is true: then it only returns the plan."""
    return await _work(here, name, "expand", request.model_dump())


@router.post("/api/tree/resynthesize/{name:path}", **NO_TREE)
async def resynthesize(
    here: CurrentState, _: TokenRequired, name: str, request: TreeResynthesizeBody
) -> dict[str, Any]:
    """Update stale judgements in the background. Spends money, unless `plan` is true: then it only returns the plan."""
    return await _work(here, name, "resynthesize", request.model_dump())


async def _work(here: WebState, name: str, what: TreeWorkKind, values: dict[str, Any]) -> dict[str, Any]:
    request = _request(here, name, what, values)
    if request.plan:
        return (await work_on_tree(request, here.settings)).to_dict()
    return here.tree_work.start(name, what, request).to_dict()


def _request(here: WebState, name: str, what: TreeWorkKind, values: dict[str, Any]) -> TreeResearchRequest:
    who = values.get("who") or WEB_EDITOR
    return WORK_REQUESTS[what].read({**values, "tree": tree_path(here.settings, name), "who": who})


@router.get("/api/tree/job/{work}", **NO_TREE)
def read_work(here: CurrentState, work: str) -> dict[str, Any]:
    """Status of a job on a tree: calls, dollars, latest events and the result."""
    return here.tree_work.of(work).to_dict()


@router.post("/api/tree/stop/{work}", **NO_TREE)
def stop_work(here: CurrentState, _: TokenRequired, work: str) -> dict[str, Any]:
    """Stop a job on a tree. The tree stays unchanged; replies already paid for are kept and not paid for again."""
    return here.tree_work.stop(work).to_dict()


@router.get("/trees/do/{what}/{name:path}", include_in_schema=False)
def show_work_form(request: Request, here: CurrentState, what: TreeWorkKind, name: str, claim: str = "") -> Response:
    """Show the form for work by models."""
    engines = usable_engines(here.settings)
    given: dict[str, Any] = {"of": claim, "search": list(engines)}
    if what != "resynthesize":
        given["grounder"] = "search" if engines else "plain"
    return _form_page(request, here, what, name, given)


def _form_page(
    request: Request, here: WebState, what: TreeWorkKind, name: str, given: dict[str, Any], problem: str = ""
) -> Response:
    claim: str = given.get("of", "")
    file = known_tree(here, name)
    node = known_claim(file, claim) if claim else None
    choices = {"search": usable_engines(here.settings), "grounder": GROUNDERS, "rule": RULES}
    if what == "resynthesize":
        choices["rule"] = ("", *RULES)
        given = {"claims": [claim] if node is not None and node.children and not node.stale else [], **given}
    leave_out = (*HIDDEN, *(("claims",) if what == "ground" else ()))
    used = dict.fromkeys(one.model for one in here.run_list(RunsRequest(), limit=RUNS_LOOKED_AT).runs if one.model)
    fields = form_fields(WORK_REQUESTS[what], choices=choices, proposals={"model": tuple(used)}, leave_out=leave_out)
    view = {
        "tree": name,
        "what": what,
        "title": work_title(what, [claim] if claim and what != "resynthesize" else ()),
        "claim": claim,
        "statement": node.claim if node is not None else "",
        "base_version": file.version,
        "first": [field for wanted in ON_THE_PAGE[what] for field in fields if field.name == wanted],
        "more": [field for field in fields if field.name not in ON_THE_PAGE[what]],
    }
    status = 422 if problem else 200
    return html_page(request, "tree_work_form.html", view, status=status, given=given, problem=problem)


@router.post("/trees/do/{what}/{name:path}", include_in_schema=False)
async def send_work(request: Request, here: CurrentState, _: TokenRequired, what: TreeWorkKind, name: str) -> Response:
    """Show the plan with its price; if submitted from there, start the work."""
    given = await form_given(request, WORK_REQUESTS[what])
    start, claim = given.pop("start", None), given.pop("of", "")
    values = {
        name: one for name, one in (NOTHING_CHOSEN | given).items() if name not in ("tree", "plan", "unsandboxed")
    }
    if what == "expand":
        values["claim"] = claim
    elif what == "ground" and claim:
        values["claims"] = [claim]
    try:
        with errors_name_fields(WORK_REQUESTS[what], titles=True):
            asked = _request(here, name, what, values)
            if start:
                work = here.tree_work.start(name, what, asked)
                return RedirectResponse(link_to("tree-work", work.id), status_code=303)
            plan = await work_on_tree(asked.model_copy(update={"plan": True}), here.settings)
            if plan.calls and asked.model is None:
                raise InputError("no model is named", column="model", hint="e.g. openai:NAME")
    except InputError as error:
        return await run_in_threadpool(_form_page, request, here, what, name, {**given, "of": claim}, str(error))
    kept = {field: one for field, one in given.items() if field not in NOT_BY_FORM}
    view = {
        "tree": name,
        "what": what,
        "title": work_title(what, [claim] if claim and what != "resynthesize" else ()),
        "claim": claim,
        "base_version": current_version(tree_path(here.settings, name)),
        "kept": kept,
        "plan": plan,
    }
    return html_page(request, "tree_plan.html", view)


@router.get("/trees/job/{work}", include_in_schema=False)
def show_work(request: Request, here: CurrentState, work: str) -> Response:
    """Show the status of a job, and its result."""
    return _work_page(request, here.tree_work.of(work))


@router.post("/trees/stop/{work}", include_in_schema=False)
def stop_by_form(here: CurrentState, _: TokenRequired, work: str) -> Response:
    """Stop a job from the page."""
    here.tree_work.stop(work)
    return RedirectResponse(link_to("tree-work", work), status_code=303)


def _work_page(request: Request, work: TreeWork) -> Response:
    result = work.result
    rows = result.changes if result is not None else ()
    return html_page(request, "tree_work.html", work.to_dict(), changes=rows, result=result)
