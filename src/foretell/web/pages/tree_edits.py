"""Changes to trees from the page: manual edits, work by models after a plan with its price, and the version history."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from foretell.forecasters.tree.history import ConflictingEdits, current_version
from foretell.forecasters.tree.settings import GROUNDERS, RULES
from foretell.operations.requests.runs import RunsRequest
from foretell.operations.requests.trees import AUTO, TreeEditRequest, TreeLogRequest, TreeUpdateRequest
from foretell.operations.tree_edit import TreeEditResult, edit_tree
from foretell.operations.tree_log import tree_log
from foretell.operations.tree_update import update
from foretell.operations.what_if import numbers_by_name
from foretell.questions.errors import InputError
from foretell.request import errors_name_fields, setting
from foretell.runs.spec import read_changes
from foretell.web.forms import body_of, form_fields, probability_text
from foretell.web.pages.ask import NOTHING_CHOSEN, entered_values, usable_engines
from foretell.web.pages.trees import NO_TREE, known_claim, known_tree, read_claim, tree_path
from foretell.web.rendering import html_page, link_to
from foretell.web.security import TokenRequired, form_of
from foretell.web.state import CurrentState, WebState
from foretell.web.tree_work import work_title

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
    """What to research, break down or judge again, or work to stop."""

    stop: str | None = setting(None, "Stop this work, by its id; the tree stays as it is.", max_length=40)


# Edits and versions.


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
    entered = {field: values[0].strip() for field, values in form.items() if values and values[0].strip()}
    file = known_tree(here, name)
    node = known_claim(file, claim)
    report = node.report or (node.grounding.report if node.grounding is not None else "")
    values: dict[str, Any] = {
        field: entered[field] for field in ("author", "message", "base_version") if field in entered
    }
    if entered.get("statement", node.claim) != node.claim:
        values["text"] = {claim: entered["statement"]}
    edits: list[dict[str, Any]] = []
    # Browsers send CRLF as line ends.
    if "report" in entered and entered["report"].replace("\r\n", "\n") != report.strip():
        edits.append({"edit": "set_report", "id": claim, "report": entered["report"].replace("\r\n", "\n")})
    if "move" in entered:
        edits.append({"edit": "move_node", "id": claim, "to": entered["move"]})
    if "percent" in entered:
        values["set"] = {claim: probability_text(entered["percent"])}
    elif entered.get("auto"):
        values["set"] = {claim: AUTO}
    if "add" in entered:
        values["add"] = [f"{claim}={entered['add']}"]
    if "rule" in entered:
        values["rule"] = {claim: entered["rule"]}
    if entered.get("remove"):
        values["remove"] = [claim]
    try:
        _edited(here, name, {**values, "edits": edits or None})
    except InputError as error:
        view = read_claim(request, here, file, node, name)
        return html_page(request, "claim.html", view, status=409, problem=str(error), entered=entered)
    removed = bool(entered.get("remove"))
    return RedirectResponse(link_to("tree", name) if removed else link_to("claim", claim, name), status_code=303)


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


@router.get("/api/tree/log/{name:path}", **NO_TREE)
def read_log(here: CurrentState, name: str, start: int | None = None, end: int | None = None) -> dict[str, Any]:
    """The versions of a tree: who changed what, when and why; with `start` or `end`, how two versions differ."""
    return _log(here, name) if start is None and end is None else _diff(here, name, start, end)


def _log(here: WebState, name: str, diff: str | None = None) -> dict[str, Any]:
    return tree_log(TreeLogRequest(tree=tree_path(here.settings, name), diff=diff)).to_dict()


def _diff(here: WebState, name: str, start: int | None, end: int | None) -> dict[str, Any]:
    return _log(here, name, f"{'' if start is None else start}..{'' if end is None else end}")


@router.get("/trees/history/{name:path}", include_in_schema=False)
def show_versions(
    request: Request, here: CurrentState, name: str, start: int | None = None, end: int | None = None
) -> Response:
    """Show the versions of a tree, and a comparison of two of them."""
    return _versions_page(request, here, name, start, end)


def _versions_page(
    request: Request, here: WebState, name: str, start: int | None = None, end: int | None = None, problem: str = ""
) -> Response:
    view: dict[str, Any] = {**_log(here, name), "name": name, "diff": None, "start": start, "end": end}
    tree = known_tree(here, name).tree
    view["claim"] = tree.nodes[tree.root].claim
    if start is not None or len(view["versions"]) > 1:
        view["diff"] = _diff(here, name, start, end)
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


# Work by models: first the plan and its price, then the work, then its result.


@router.post("/api/tree/update/{name:path}", **NO_TREE)
async def update_tree(here: CurrentState, _: TokenRequired, name: str, request: TreeUpdateBody) -> dict[str, Any]:
    """Research leaves, break one down or judge rules again, in the background.

    Spends money, unless `plan` is true: then it only returns the plan. Follow it at /api/tree/job/{work}.
    """
    if request.stop is not None:
        if request.model_fields_set != {"stop"}:
            raise InputError("cannot be combined with other fields", column="stop", hint="leave out the others")
        return here.tree_work.stop(request.stop).to_dict()
    wish = _request(here, name, request.model_dump(exclude_unset=True, exclude={"stop"}))
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


# One page for all stages: the form, the plan with its price, and the work with its result.


@router.get("/trees/update/{name:path}", include_in_schema=False)
def show_work(
    request: Request, here: CurrentState, name: str, claims: str = "", expand: str = "", job: str = ""
) -> Response:
    """Show the form for work by models or, with `job`, the status of such work and its result."""
    if job:
        work = here.tree_work.of(job)
        changes = work.result.changes if work.result is not None else ()
        return html_page(request, "tree_work.html", work.to_dict(), stage="job", changes=changes, result=work.result)
    engines = usable_engines(here.settings)
    entered: dict[str, Any] = {"search": list(engines), "grounder": "search" if engines else "plain"}
    entered |= {"claims": [claims]} if claims else {}
    return _form_page(request, here, name, entered | ({"expand": expand} if expand else {}))


def _form_page(request: Request, here: WebState, name: str, entered: dict[str, Any], problem: str = "") -> Response:
    file = known_tree(here, name)
    claim: str = entered.get("expand") or next(iter(entered.get("claims", ())), "")
    node = file.tree.nodes.get(claim)
    choices = {"search": usable_engines(here.settings), "grounder": GROUNDERS, "rule": ("", *RULES)}
    used = dict.fromkeys(run.model for run in here.run_list(RunsRequest(), limit=RUNS_LOOKED_AT).runs if run.model)
    leave_out = (*HIDDEN, *(("claims", "research") if entered.get("expand") else ()))
    fields = form_fields(TreeUpdateRequest, choices=choices, proposals={"model": tuple(used)}, leave_out=leave_out)
    title = work_title(TreeUpdateRequest(tree=name, claims=(claim,) if claim else ()))
    view = {
        "tree": name,
        "title": f"Break down {claim}" if entered.get("expand") else title,
        "claim": claim,
        "statement": node.claim if node is not None else "",
        "base_version": file.version,
        "first": [field for name in ON_THE_PAGE for field in fields if field.name == name],
        "more": [field for field in fields if field.name not in ON_THE_PAGE],
    }
    status = 422 if problem else 200
    return html_page(request, "tree_work.html", view, status=status, stage="form", entered=entered, problem=problem)


@router.post("/trees/update/{name:path}", include_in_schema=False)
async def send_work(request: Request, here: CurrentState, _: TokenRequired, name: str) -> Response:
    """Show the plan with its price; if submitted from there, start the work. Also stops work in progress."""
    if stopped := (await form_of(request)).get("stop", [""])[0]:
        here.tree_work.stop(stopped)
        return RedirectResponse(link_to("tree-update", name, job=stopped), status_code=303)
    entered = await entered_values(request, TreeUpdateRequest)
    start = entered.pop("start", None)
    values = {field: value for field, value in (NOTHING_CHOSEN | entered).items() if field not in NOT_BY_FORM}
    if values.get("research") == "no":  # The defaults of the form have no effect then.
        values = {field: value for field, value in values.items() if field not in ("grounder", "search", "trials")}
    try:
        with errors_name_fields(TreeUpdateRequest, titles=True):
            wish = _request(here, name, values)
            if start:
                work = here.tree_work.start(name, wish)
                return RedirectResponse(link_to("tree-update", name, job=work.id), status_code=303)
            plan = (await update(wish.model_copy(update={"plan": True}), here.settings)).plan
            if plan is not None and plan.calls and wish.model is None:
                raise InputError("no model is named", column="model", hint="e.g. openai:NAME")
    except InputError as error:
        return await run_in_threadpool(_form_page, request, here, name, entered, str(error))
    view = {
        "tree": name,
        "title": work_title(wish),
        "claim": wish.expand or next(iter(wish.claims), ""),
        "base_version": current_version(tree_path(here.settings, name)),
        "entered": {field: value for field, value in entered.items() if field not in NOT_BY_FORM},
        "plan": plan,
    }
    return html_page(request, "tree_work.html", view, stage="plan")
