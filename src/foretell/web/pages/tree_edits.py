"""Changes to trees from the page: manual edits, work by models after a plan with its price, and the version history."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from foretell.forecasters.tree import GROUNDERS, RULES
from foretell.forecasters.tree.history import ConflictingEdits, current_version
from foretell.operations.requests.runs import RunsRequest
from foretell.operations.requests.trees import AUTO, TreeEditRequest, TreeLogRequest, TreeUpdateRequest
from foretell.operations.tree_edit import TreeEditResult, edit_tree, tree_log
from foretell.operations.tree_update import update
from foretell.operations.what_if import numbers_by_name
from foretell.questions.errors import InputError
from foretell.request import errors_name_fields
from foretell.runs.spec import read_changes
from foretell.web.forms import body_of, form_fields
from foretell.web.pages.ask import NOTHING_CHOSEN, form_given, usable_engines
from foretell.web.pages.trees import NO_TREE, known_claim, known_tree, read_claim, tree_path
from foretell.web.rendering import html_page, link_to
from foretell.web.security import TokenRequired, form_of
from foretell.web.state import CurrentState, WebState
from foretell.web.tree_work import TreeWork, work_title

router = APIRouter()
WEB_EDITOR = "over the web"
"""Author of a change if none is given."""
ON_THE_PAGE = ("model", "claims", "grounder", "trials", "rule", "search", "budget", "author", "message")
"""Fields that the form for work by models shows at once; the others are collapsed."""
HIDDEN = ("tree", "expand", "base_version", "plan", "config", "adaptive")
"""Fields that the page fills in itself or leaves to the command line."""
RUNS_LOOKED_AT = 50
"""Number of recent runs whose models are suggested."""
NOT_BY_FORM = ("tree", "plan", "config")
"""Fields that a form can never set, whatever it sends."""


class TreeEditBody(body_of(TreeEditRequest, "tree")):
    """Edits to the tree named in the path."""


class TreeUpdateBody(body_of(TreeUpdateRequest, "tree", "config")):
    """What to research, break down or judge again."""


# Edits, and the versions they leave behind.


@router.post("/api/tree/edit/{name:path}", **NO_TREE)
async def change_tree(here: CurrentState, _: TokenRequired, name: str, request: TreeEditBody) -> dict[str, Any]:
    """Change statements, probabilities, claims and rules, or restore a version. Asks no model."""
    values = request.model_dump()
    if isinstance(values.get("edits"), Path):
        raise HTTPException(422, "edits: send the list itself; files are for the command line")
    return _edited(here, name, values).to_dict()


def _edited(here: WebState, name: str, values: dict[str, Any]) -> TreeEditResult:
    author = values.get("author") or WEB_EDITOR
    return edit_tree(TreeEditRequest.read({**values, "tree": tree_path(here.settings, name), "author": author}))


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
    values: dict[str, Any] = {field: given[field] for field in ("author", "message", "base_version") if field in given}
    if given.get("statement", node.claim) != node.claim:
        values["text"] = {claim: given["statement"]}
    edits: list[dict[str, Any]] = []
    # A browser sends line ends of its own.
    if "report" in given and given["report"].replace("\r\n", "\n") != report.strip():
        edits.append({"edit": "set_report", "id": claim, "report": given["report"].replace("\r\n", "\n")})
    if "move" in given:
        edits.append({"edit": "move_node", "id": claim, "to": given["move"]})
    if "p" in given or given.get("auto"):
        values["set"] = {claim: given.get("p", AUTO)}
    if "add" in given:
        values["add"] = [f"{claim}={given['add']}"]
    if "rule" in given:
        values["rule"] = {claim: given["rule"]}
    if given.get("remove"):
        values["remove"] = [claim]
    try:
        _edited(here, name, {**values, "edits": edits or None})
    except InputError as error:
        view = read_claim(here, file, node, name)
        return html_page(request, "claim.html", view, status=409, problem=str(error), given=given)
    gone = bool(given.get("remove"))
    return RedirectResponse(link_to("tree", name) if gone else link_to("claim", claim, name), status_code=303)


@router.post("/trees/keep/{name:path}", include_in_schema=False)
async def keep_numbers_by_form(request: Request, here: CurrentState, _: TokenRequired, name: str) -> Response:
    """Save the probabilities of a what-if as the tree's next version."""
    form = {field: values[0].strip() for field, values in (await form_of(request)).items() if values}
    values: dict[str, Any] = {field: form[field] for field in ("author", "message", "base_version") if form.get(field)}
    try:
        _edited(here, name, {**values, "set": numbers_by_name(form.get("set", "").split())})
    except ConflictingEdits as error:
        raise HTTPException(409, str(error)) from None
    return RedirectResponse(link_to("tree", name), status_code=303)


@router.get("/api/tree/history/{name:path}", **NO_TREE)
def read_versions(here: CurrentState, name: str) -> dict[str, Any]:
    """The versions of a tree: who changed what, when and why."""
    return tree_log(TreeLogRequest(tree=tree_path(here.settings, name))).to_dict()


@router.get("/api/tree/diff/{name:path}", **NO_TREE)
def read_diff(here: CurrentState, name: str, start: int | None = None, end: int | None = None) -> dict[str, Any]:
    """Compare two versions of a tree claim by claim; by default the last two."""
    versions = f"{'' if start is None else start}..{'' if end is None else end}"
    return tree_log(TreeLogRequest(tree=tree_path(here.settings, name), diff=versions)).to_dict()


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


@router.post("/trees/restore/{name:path}", include_in_schema=False)
async def restore_by_form(request: Request, here: CurrentState, _: TokenRequired, name: str) -> Response:
    """Restore an older version from the page."""
    form = {field: values[0].strip() for field, values in (await form_of(request)).items() if values}
    try:
        _edited(
            here, name, {"restore": form.get("version"), "author": form.get("author"), "message": form.get("message")}
        )
    except InputError as error:
        return _versions_page(request, here, name, problem=str(error))
    return RedirectResponse(link_to("tree-history", name), status_code=303)


# Models at work: first what would be done and what it would cost, then the work, then what came of it.


@router.post("/api/tree/update/{name:path}", **NO_TREE)
async def update_tree(here: CurrentState, _: TokenRequired, name: str, request: TreeUpdateBody) -> dict[str, Any]:
    """Research leaves, break one down or judge rules again, in the background. Spends money, unless `plan` is true."""
    wish = _request(here, name, request.model_dump())
    if wish.plan:
        return (await update(wish, here.settings)).to_dict()
    return here.tree_work.start(name, wish).to_dict()


def _request(here: WebState, name: str, values: dict[str, Any]) -> TreeUpdateRequest:
    author = values.get("author") or WEB_EDITOR
    wish = TreeUpdateRequest.read({**values, "tree": tree_path(here.settings, name), "author": author})
    if read_changes(wish.set).get("options.unsandboxed"):
        raise InputError("notebooks run in a sandbox here", column="set", hint="use the command line")
    return wish


@router.get("/api/tree/job/{work}", **NO_TREE)
def read_work(here: CurrentState, work: str) -> dict[str, Any]:
    """Status of a job on a tree: calls, dollars, latest events and the result."""
    return here.tree_work.of(work).to_dict()


@router.post("/api/tree/stop/{work}", **NO_TREE)
def stop_work(here: CurrentState, _: TokenRequired, work: str) -> dict[str, Any]:
    """Stop a job on a tree. The tree stays unchanged; replies already paid for are kept and not paid for again."""
    return here.tree_work.stop(work).to_dict()


@router.get("/trees/update/{name:path}", include_in_schema=False)
def show_work_form(request: Request, here: CurrentState, name: str, claims: str = "", expand: str = "") -> Response:
    """Show the form for work by models."""
    engines = usable_engines(here.settings)
    given: dict[str, Any] = {"search": list(engines), "grounder": "search" if engines else "plain"}
    given |= {"claims": [claims]} if claims else {}
    return _form_page(request, here, name, given | ({"expand": expand} if expand else {}))


def _form_page(request: Request, here: WebState, name: str, given: dict[str, Any], problem: str = "") -> Response:
    file = known_tree(here, name)
    claim: str = given.get("expand") or next(iter(given.get("claims", ())), "")
    node = file.tree.nodes.get(claim)
    choices = {"search": usable_engines(here.settings), "grounder": GROUNDERS, "rule": ("", *RULES)}
    used = dict.fromkeys(one.model for one in here.run_list(RunsRequest(), limit=RUNS_LOOKED_AT).runs if one.model)
    leave_out = (*HIDDEN, *(("claims", "research") if given.get("expand") else ()))
    fields = form_fields(TreeUpdateRequest, choices=choices, proposals={"model": tuple(used)}, leave_out=leave_out)
    title = work_title(TreeUpdateRequest(tree=name, claims=(claim,) if claim else ()))
    view = {
        "tree": name,
        "title": f"Break down {claim}" if given.get("expand") else title,
        "claim": claim,
        "statement": node.claim if node is not None else "",
        "base_version": file.version,
        "first": [field for wanted in ON_THE_PAGE for field in fields if field.name == wanted],
        "more": [field for field in fields if field.name not in ON_THE_PAGE],
    }
    status = 422 if problem else 200
    return html_page(request, "tree_work_form.html", view, status=status, given=given, problem=problem)


@router.post("/trees/update/{name:path}", include_in_schema=False)
async def send_work(request: Request, here: CurrentState, _: TokenRequired, name: str) -> Response:
    """Show the plan with its price; if submitted from there, start the work."""
    given = await form_given(request, TreeUpdateRequest)
    start = given.pop("start", None)
    values = {field: value for field, value in (NOTHING_CHOSEN | given).items() if field not in NOT_BY_FORM}
    if values.get("research") == "no":  # What the form proposes has no effect then.
        values = {field: value for field, value in values.items() if field not in ("grounder", "search", "trials")}
    try:
        with errors_name_fields(TreeUpdateRequest, titles=True):
            asked = _request(here, name, values)
            if start:
                work = here.tree_work.start(name, asked)
                return RedirectResponse(link_to("tree-work", work.id), status_code=303)
            plan = (await update(asked.model_copy(update={"plan": True}), here.settings)).plan
            if plan is not None and plan.calls and asked.model is None:
                raise InputError("no model is named", column="model", hint="e.g. openai:NAME")
    except InputError as error:
        return await run_in_threadpool(_form_page, request, here, name, given, str(error))
    view = {
        "tree": name,
        "title": work_title(asked),
        "claim": asked.expand or next(iter(asked.claims), ""),
        "base_version": current_version(tree_path(here.settings, name)),
        "kept": {field: value for field, value in given.items() if field not in NOT_BY_FORM},
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
