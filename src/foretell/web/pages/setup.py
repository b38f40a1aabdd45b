"""What is set up on this machine: its models, and the checks of `foretell doctor`.

Which keys exist, paths and addresses are shown to holders of the token only, and never written to a static site.
"""

import asyncio
import time
from concurrent.futures import TimeoutError as NotFinished
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from foretell.models.model import load_provider
from foretell.models.names import ModelName
from foretell.operations.doctor import doctor
from foretell.operations.models import ModelsResult, list_models, model_records
from foretell.operations.requests.setup import DoctorRequest, ModelsListRequest
from foretell.questions.errors import InputError
from foretell.web.rendering import html_page, link_to
from foretell.web.security import TokenHeld, TokenRequired, access_of, has_token, require_token
from foretell.web.state import CurrentState

router = APIRouter()
RECORDS_SECONDS = 60.0
"""How old the costs and scores of models may be."""
CHECK_WAIT = 1.5
"""How long the page of the doctor waits for a check; after that, it says that the check is still under way."""
ModelsQuery = Annotated[ModelsListRequest, Query()]


@router.get("/api/models", tags=["setup"])
def read_models(request: Request, here: CurrentState, wanted: ModelsQuery) -> dict[str, Any]:
    """Known models and models used here; the same as `foretell models list --json`.

    Without the token, the list does not say which of them can be used, and names contain no address or path.
    """
    held = has_token(request, access_of(request))
    if wanted.usable and not held:
        require_token(request)
    if wanted.update is not None:
        raise InputError("a table of models is only installed with `foretell models list --update`", column="update")
    records = here.kept(
        ("model records",), (time.monotonic() // RECORDS_SECONDS,), lambda: model_records(here.settings)
    )
    found = list_models(wanted, here.settings, records)
    return found.to_dict() if held else _without_setup(found)


def _without_setup(found: ModelsResult) -> dict[str, Any]:
    # By name: the usual order, usable models first, would tell which these are.
    rows = {_public_name(row["model"]): row for row in found.models}
    models = [{**row, "model": name, "usable": None} for name, row in sorted(rows.items())]
    return {"models": models, "dates": list(found.dates), "missing_keys": {}}


def _public_name(model: str) -> str:
    """Return the name of a model without the address of its server or the folder of its file."""
    name = ModelName.read(model)
    if name.url:
        return f"{name.provider}:{name.name}"
    return f"{name.provider}:{PurePath(name.name).name}" if load_provider(name.provider).per_model else model


@router.get("/models", include_in_schema=False)
def show_models(
    request: Request,
    here: CurrentState,
    wanted: ModelsQuery,
    view: Annotated[dict[str, Any], Depends(read_models)],
) -> Response:
    """Show the models, with a form to filter them."""
    every = read_models(request, here, ModelsListRequest())["models"]
    providers = dict.fromkeys(row["model"].partition(":")[0] for row in every)
    return html_page(request, "models.html", view, wanted=wanted, every=every, providers=providers)


@router.get("/api/doctor", tags=["setup"])
def read_doctor(here: CurrentState, _: TokenHeld) -> dict[str, Any]:
    """Check the set-up now; the same as `foretell doctor --json`. Needs the token, and no network."""
    return asyncio.run(doctor(DoctorRequest(), here.settings)).to_dict()


@router.get("/doctor", include_in_schema=False)
def show_doctor(request: Request, here: CurrentState) -> Response:
    """Show the last check of the set-up, or that it is still under way; strangers are asked for the token."""
    if not has_token(request, access_of(request)):
        return html_page(request, "doctor.html", None, checking=False)
    try:
        found = here.checkup().result(CHECK_WAIT)
    except NotFinished:
        return html_page(request, "doctor.html", None, checking=True)
    return html_page(request, "doctor.html", found.result, checked=found.at)


@router.post("/doctor", include_in_schema=False)
def check_again(here: CurrentState, _: TokenRequired) -> Response:
    """Handle the button that checks the set-up again."""
    here.checkup(again=True)
    return RedirectResponse(link_to("doctor"), status_code=303)
