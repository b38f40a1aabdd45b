"""What is set up on this machine: its models, and the checks of `foretell doctor`.

Which keys exist, paths and addresses are shown to holders of the token only, and never written to a static site.
"""

import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as NotFinished
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ConfigDict

from foretell.operations.models import ModelsResult, list_models, model_records
from foretell.operations.requests.setup import ModelsListRequest
from foretell.questions.errors import InputError
from foretell.web.pages.home import without_example_keys
from foretell.web.rendering import html_page, link_to
from foretell.web.security import TokenRequired, access_of, has_token, require_token
from foretell.web.state import CurrentState, WebState

router = APIRouter()
RECORDS_SECONDS = 60.0
"""How old the costs and scores of models may be."""
CHECK_WAIT = 1.5
"""How long the page of the doctor waits for a check; after that, it says that the check is still under way."""


class ModelFilters(ModelsListRequest):
    """Filters of the list of models. The class is built at once, as FastAPI needs it."""

    model_config = ConfigDict(defer_build=False)


ModelsQuery = Annotated[ModelFilters, Query()]


def read_models(request: Request, here: WebState, filters: ModelsListRequest) -> dict[str, Any]:
    """Return known models and models used here, as `foretell models list --json` prints them.

    Without the token, the list does not say which of them can be used or how often they were; names contain no address
    or path.
    """
    may_see = has_token(request, access_of(request))
    if filters.usable and not may_see:
        require_token(request)
    if filters.update is not None:
        raise InputError("a table of models is only installed with `foretell models list --update`", column="update")
    records = here.cached(
        ("model records",), (time.monotonic() // RECORDS_SECONDS,), lambda: model_records(here.settings)
    )
    models = list_models(filters, here.settings, records)
    return models.to_dict() if may_see else _without_setup(models, request.app.state.hide)


def _without_setup(result: ModelsResult, hide: Callable[[bytes], bytes]) -> dict[str, Any]:
    # Sort by name, because the usual order (usable models first) would reveal which models are usable.
    # The page shows provider and name apart, so the filter of responses would not recognise a path.
    rows = {hide(row["model"].encode()).decode(): row for row in result.models}
    # The number of calls at a known price would reveal what was spent.
    unknown = {"usable": None, "calls": 0, "dollars": None}
    models = [{**row, "model": name, **unknown} for name, row in sorted(rows.items())]
    return {"models": models, "dates": list(result.dates), "missing_keys": {}}


@router.get("/setup", include_in_schema=False)
def show_setup(request: Request, here: CurrentState, filters: ModelsQuery) -> Response:
    """Show the last check of the set-up, or that it is still under way, and the models with a form to filter them.

    Strangers see the models alone and are asked for the token.
    """
    checked, checking = None, False
    if has_token(request, access_of(request)):
        try:
            checked = here.checkup().result(CHECK_WAIT)
        except NotFinished:
            checking = True
    result = checked.result if checked else None
    if result is not None and here.settings.is_example:
        result = replace(result, findings=tuple(without_example_keys(result.findings)))
    all_models = read_models(request, here, ModelsListRequest())["models"]
    more: dict[str, Any] = {
        "check": result,
        "checked": checked.at if checked else None,
        "checking": checking,
        "chosen": filters,
        "all_models": all_models,
        "providers": dict.fromkeys(row["model"].partition(":")[0] for row in all_models),
    }
    return html_page(request, "setup.html", read_models(request, here, filters), **more)


@router.post("/setup", include_in_schema=False)
def check_again(here: CurrentState, _: TokenRequired) -> Response:
    """Handle the button that checks the set-up again."""
    here.checkup(again=True)
    return RedirectResponse(link_to("setup"), status_code=303)
