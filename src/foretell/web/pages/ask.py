"""Ask a question: an immediate free answer without a model or, with the token, research in the background."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from foretell.forecasters.tree.forecaster import CLAIM
from foretell.frozen import frozen
from foretell.models.check import unknown_models
from foretell.number_text import dollars, duration, plural
from foretell.operations.ask import AskResult, answer_question, names_model, prepare_ask, stored_answer
from foretell.operations.doctor import MODEL_PROVIDERS
from foretell.operations.models import list_models
from foretell.operations.requests.asking import AskRequest
from foretell.operations.requests.setup import ModelsListRequest
from foretell.operations.sharpen import SharpenedQuestion
from foretell.operations.tree_grow import stored_tree
from foretell.operations.typed_question import typed_run_spec
from foretell.plugins import NO_CHOICE
from foretell.questions.errors import InputError
from foretell.request import OperationRequest, environment_values, errors_name_fields
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync
from foretell.runs.runner import PreparedRun, asks_models
from foretell.runs.runtime import TRIED_FIRST, prices_of, unpriced_models
from foretell.runs.services import SEARCH_ENGINES
from foretell.runs.settings import KEYS, Settings
from foretell.runs.spec import QuestionsSpec, RunSpec, spec_from_json
from foretell.runs.store import TrialKey
from foretell.runs.trial_costs import TrialCosts, trial_cost
from foretell.standing.record import Sharpening
from foretell.web.forms import body_of, form_fields, form_values
from foretell.web.rendering import html_page, link_to
from foretell.web.security import FIELD, TokenRequired, form_of, require_token
from foretell.web.state import CurrentState, WebState

START_SECONDS = 10.0
"""Maximum number of seconds that a new run may take to appear in the store."""
MAX_MODELS, RECENT_RUNS = 8, 20
"""Maximum number of models offered, and number of recent runs searched for models that were used lately."""
PICK = "pick"
"""Form field with the model that was picked; used if no model is typed."""
TRIAL_CHOICES = (1, 3, 5, 9)
"""Numbers of trials that have a button; any other can be typed."""
OTHER_TRIALS = "other_trials"
"""Form field with a typed number of trials; takes precedence over the buttons."""
ESTIMATE_FIELDS = ("model", "search", "trials", "budget", "effort")
"""Fields that determine the cost and the duration of asking."""
OUTSIDE_FIELDS = ("question", "closes", "as_of", "options", "exclusivity", "criteria", "price")
"""Fields that the outside view needs; only these go into the address."""
TYPED_AS = "typed"
"""Form field with the question as it was typed, before a model proposed another wording."""
NOT_IN_FORM = ("config", "plan", "watch", "once", "sharpen")
"""Options without a field: a form sends its fields, plans with a button of its own, and watching is a command's."""
MODEL_PRICE = "model_price"
"""Form field with the price of a model that foretell does not know."""
router = APIRouter()


@frozen
class StartedRun:
    """A run that was started in the background."""

    run: str
    question: str
    due: str
    warnings: tuple[str, ...]


@frozen
class AskEstimate:
    """The expected cost and duration of asking, before anything is started."""

    dollars: float | None
    """Expected cost in dollars; None if the price is not known."""
    seconds: float
    text: str
    basis: str
    """Explanation of where the numbers come from."""
    most: float | None = None
    """The most that can be billed; None without a budget."""


class OutsideQuery(body_of(AskRequest, *(name for name in AskRequest.model_fields if name not in OUTSIDE_FIELDS))):
    """A question for the outside view."""


def model_keys(settings: Settings) -> dict[str, list[str]]:
    """Return the model providers with a key, and the environment variables of the keys that are missing."""
    services = settings.services
    providers = [name for name in MODEL_PROVIDERS if name in services]
    return {"providers": providers, "missing": [KEYS[name][0] for name in MODEL_PROVIDERS if name not in providers]}


def usable_engines(settings: Settings) -> tuple[str, ...]:
    """Return the search engines that can be used with the available keys and corpora."""
    usable = {"gdelt", *(("local",) if settings.corpus.exists() else ()), *settings.services}
    return tuple(engine for engine in SEARCH_ENGINES if engine in usable)


def read_ask(here: WebState) -> dict[str, Any]:
    """Return what a question can be asked with: keys, models with prices, search engines, defaults and all fields."""
    engines, chosen, services = usable_engines(here.settings), environment_values(AskRequest), here.settings.services
    # By default, use the engines for which a key is set.
    search = chosen.get("search") or tuple(engine for engine in engines if engine in services)
    return {
        **model_keys(here.settings),
        "engines": engines,
        "engine_notes": {name: _engine_note(name, here.settings) for name in engines},
        "engines_without_key": {name: KEYS[name][0] for name in SEARCH_ENGINES if name in KEYS and name not in engines},
        "model": chosen.get("model", ""),
        "search": search,
        "models": model_choices(here, chosen.get("model", ""), search),
        "known_models": known_models(here),
        "fields": here.cached(
            ("ask fields",),
            (engines, chosen),
            lambda: form_fields(AskRequest, choices={"search": engines}, leave_out=NOT_IN_FORM, required=["question"]),
        ),
    }


def _engine_note(name: str, settings: Settings) -> str:
    if settings.is_example:
        return "made-up news"
    return "key set" if name in settings.services else "your documents" if name == "local" else "no key needed"


def model_choices(here: WebState, usual: str, search: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return models with a key, the default one first, each with the expected cost and duration of a trial.

    Models that are offered and their prices are at most a minute old, because looking them up takes longer than a page.
    """
    minute, listed = (time.monotonic() // 60,), known_models(here)[:MAX_MODELS]
    all_runs = here.while_unchanged(("every run",), here.store.runs)
    rows = [row for row in all_runs if not row.archived][:RECENT_RUNS]
    used = [str(row.spec.get("models", {}).get("agent", "")) for row in rows]
    services, example = here.settings.services, here.settings.is_example
    recent = [name for name in dict.fromkeys(used) if name and _is_usable(name, services)]
    names, measured = tuple(dict.fromkeys(filter(None, [usual, *recent, *listed])))[:MAX_MODELS], here.measured_costs()
    choices = here.cached(
        ("model choices",), (*minute, names, search, measured), lambda: _priced_models(names, search, measured)
    )
    # In the example nothing costs money, whatever a model costs elsewhere.
    return [choice for choice in choices if choice["dollars"] == 0] if example else choices


def known_models(here: WebState) -> list[str]:
    """Return all models that can be used here."""
    minute, usable = (time.monotonic() // 60,), ModelsListRequest(usable=True)
    return here.cached(("models",), minute, lambda: [row["model"] for row in list_models(usable, here.settings).models])


def _priced_models(names: Sequence[str], search: tuple[str, ...], measured: TrialCosts) -> list[dict[str, Any]]:
    priced_models: list[dict[str, Any]] = []
    for name in names:
        try:
            spec = RunSpec(questions=QuestionsSpec(dataset="typed"), models={"agent": name}, search=search)
            cost = trial_cost(spec, measured)
        except InputError:
            continue
        estimate = {"dollars": cost.dollars, "seconds": cost.seconds, "basis": cost.basis, "trials": cost.trials}
        priced_models.append({"model": name, **estimate})
    return priced_models


def _is_usable(name: str, services: tuple[str, ...]) -> bool:
    """Whether a model that was used before can be called here now: it needs no key, or its key is set."""
    provider = name.partition(":")[0]
    return provider not in MODEL_PROVIDERS or provider in services


@router.get("/api/ask/estimate", include_in_schema=False)
def read_estimate(request: Request, here: CurrentState) -> AskEstimate:
    """Estimate what asking costs and how long it takes, for the form that sends its fields, or say why not."""
    require_token(request)  # Costs are measured on what was run here.
    sent = {name: request.query_params.getlist(name) for name in (*ESTIMATE_FIELDS, "set", MODEL_PRICE)}
    return _estimate(here, _with_price(form_values(AskRequest, sent)))


def _with_price(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a form with the price of a model as a setting."""
    price = values.pop(MODEL_PRICE, "")
    return {**values, "set": {**values.get("set", {}), "prices.agent": price}} if price else values


def _estimate(here: WebState, values: Mapping[str, Any]) -> AskEstimate:
    """Estimate from similar trials on this machine, or roughly from the price of the model."""
    model = values.get("model") or environment_values(AskRequest).get("model") or NO_CHOICE
    if model == NO_CHOICE and not values.get("config") and not values.get("set"):
        return AskEstimate(dollars=None, seconds=0.0, text="Choose a model", basis="The outside view needs none.")
    try:
        with errors_name_fields(AskRequest, titles=True):
            return _estimate_of(here, AskRequest.read(NOTHING_CHOSEN | {"question": "?", **values}))
    except InputError as error:
        return AskEstimate(dollars=None, seconds=0.0, text="No estimate", basis=str(error))


def _estimate_of(here: WebState, wish: AskRequest) -> AskEstimate:
    if not names_model(wish):
        return AskEstimate(dollars=None, seconds=0.0, text="Choose a model", basis="")
    spec = typed_run_spec(wish)
    cost = trial_cost(spec, here.measured_costs())
    seconds = cost.seconds * math.ceil(spec.trials / spec.concurrency)
    basis = {
        "measured": f"measured on {plural(cost.trials, 'trial')} like this one on this machine",
        "rough": "a rough guess: nothing like this has run on this machine yet",
    }.get(cost.basis, "")
    if cost.dollars is None:
        return AskEstimate(
            dollars=None, seconds=seconds, text=f"Price not known, about {duration(seconds)}", basis=basis
        )
    total = cost.dollars * spec.trials
    money = f"About {dollars(total)}" if total else "Costs nothing"
    most = min([limit for limit in (spec.budget.run, spec.budget.question) if limit is not None], default=None)
    limit = "" if not total else ", no limit is set" if most is None else f", at most {dollars(most)}"
    high = cost.nine_in_ten(spec.trials)
    basis += f": 9 in 10 cost under {dollars(high)}" if high else ""
    text = f"{money}{limit}, about {duration(seconds)}"
    return AskEstimate(dollars=total, seconds=seconds, text=text, basis=basis, most=most)


@router.get("/api/ask", tags=["ask"])
def read_outside(here: CurrentState, wording: Annotated[OutsideQuery, Query()]) -> dict[str, Any]:
    """Answer without a model: from public markets and series, or else from how similar questions ended. Free."""
    with errors_name_fields(AskRequest):
        return _outside(wording.model_dump(), here).to_dict()


def _outside(values: dict[str, Any], here: WebState) -> AskResult:
    """Return the outside view, even if FORETELL_MODEL names a model: viewing a page spends nothing."""
    return _answer_now({**values, "model": NO_CHOICE}, here)


def _answer_now(values: dict[str, Any], here: WebState) -> Any:
    return run_sync(answer_question(AskRequest.read(values), here.settings), event_loop.run)


class AskBody(body_of(AskRequest, "plan", "watch", "once", "sharpen")):
    """A question to research."""


@router.post("/api/ask", tags=["ask"], status_code=202)
def ask(here: CurrentState, _: TokenRequired, request: AskBody) -> StartedRun:
    """Research a question in the background. Spends money. Follow its progress at /api/runs/{run}/stream."""
    with errors_name_fields(AskRequest):
        return _research(here, AskRequest.read(request.model_dump(exclude_unset=True)))


def _research(here: WebState, request: AskRequest, *, confirmed: bool = True, typed: str = "") -> StartedRun:
    if not names_model(request):
        hint = "GET /api/ask answers without a model"
        raise InputError("no model is named", column="model", hint=hint)
    sharpening = Sharpening(original=typed, text=request.question) if typed else None
    prepared = prepare_ask(request, here.settings, sharpening)
    return start_run(here, prepared, confirmed=confirmed)


@router.get("/api/runs/{run}/answer", tags=["ask"])
def read_answer(here: CurrentState, run: str, question: str | None = None, due: str | None = None) -> dict[str, Any]:
    """The answer of a run to a question, as `foretell ask --json` prints it; for a claim, its tree."""
    row = here.run(run)
    if question is not None and due is not None:
        asked_question = here.store.question(TrialKey(run=row.id, question=question, due=due, trial=0))
    else:
        matching = [stored for stored in here.store.questions(row.id) if question in (None, stored.id)]
        asked_question = matching[-1] if matching else None
    if asked_question is None:
        raise HTTPException(404, f"run {row.id} has no such question")
    spec, paid = spec_from_json(row.spec), here.money(row.id)
    if asked_question.subtype == CLAIM:
        return replace(stored_tree(here.store, spec, asked_question, here.settings), paid=paid).to_dict()
    return replace(stored_answer(here.store, spec, asked_question), paid=paid).to_dict()


@router.get("/ask", include_in_schema=False)
def show_ask(request: Request, here: CurrentState) -> Response:
    """Show the form and, if the address has a question, its outside view."""
    values = form_values(AskRequest, {name: request.query_params.getlist(name) for name in request.query_params})
    answer, problem = None, ""
    if values.get("question"):
        try:
            with errors_name_fields(AskRequest, titles=True):
                answer = _outside({name: values[name] for name in OUTSIDE_FIELDS if name in values}, here)
        except InputError as error:
            problem = str(error)
    return _ask_page(request, here, values, problem, answer)


@router.post("/ask", include_in_schema=False)
async def send_ask(request: Request, here: CurrentState, _: TokenRequired) -> Response:
    """Start the research and redirect to the page where it can be followed."""
    values = await entered_values(request, AskRequest)
    picked = str(values.pop(PICK, ""))
    if picked and "model" not in values:
        values["model"] = picked
    if typed := values.pop(OTHER_TRIALS, ""):
        values["trials"] = typed
    values = _with_price(values)
    if values.pop("outside", None):
        address = {name: values[name] for name in OUTSIDE_FIELDS if name in values}
        lines = {name: "\n".join(value) if isinstance(value, list) else value for name, value in address.items()}
        return RedirectResponse(link_to("ask", **lines), status_code=303)
    confirmed, typed = bool(values.pop(UNPRICED, None)), str(values.pop(TYPED_AS, ""))
    if values.pop("sharpen", None):
        return await run_in_threadpool(_show_wording, request, here, values)
    return await start_from_form(
        AskRequest,
        lambda: _research(here, AskRequest.read(NOTHING_CHOSEN | values), confirmed=confirmed, typed=typed),
        lambda problem: _ask_page(request, here, values, problem),
    )


def _show_wording(request: Request, here: WebState, values: dict[str, Any]) -> Response:
    """Show the form with the wording that the model proposes, to be changed or sent."""
    try:
        with errors_name_fields(AskRequest, titles=True):
            proposal = _answer_now(NOTHING_CHOSEN | values | {"sharpen": "propose"}, here)
    except InputError as error:
        return _ask_page(request, here, values, str(error))
    return _ask_page(request, here, values | proposal.fields, "", wording=proposal)


def _ask_page(
    request: Request,
    here: WebState,
    values: dict[str, Any],
    problem: str,
    answer: AskResult | None = None,
    wording: SharpenedQuestion | None = None,
) -> Response:
    # A form that was sent without a search engine is shown again without one.
    form = ask_form(here, {"search": [], **values} if request.method == "POST" else values)
    unpriced = bool(problem) and any(part in problem for part in ("no price is known", "needs a known price"))
    more = {"problem": problem, "answer": answer, "wording": wording, "unpriced": unpriced, **form}
    return html_page(request, "ask.html", more.pop("view"), status=422 if problem else 200, **more)


def ask_form(here: WebState, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a form that asks a question offers, what is filled in, and what asking with it would cost."""
    view = read_ask(here)
    typed, search = str(values.get("model", "")), values.get("search", list(view["search"]))
    offered = [choice["model"] for choice in view["models"]]
    picked = typed if typed in offered else "" if typed else next(iter(offered), "")
    choices = {name: values[name] for name in ESTIMATE_FIELDS if name in values}
    return {
        "view": view,
        "entered": {**values, "search": search},
        "picked": picked,
        "estimate": _estimate(here, {**choices, "model": typed or picked or NO_CHOICE, "search": search}),
        "trial_choices": TRIAL_CHOICES,
    }


# Start runs in the background, from requests and from forms.

NOTHING_CHOSEN: dict[str, Any] = {"model": NO_CHOICE, "search": [NO_CHOICE]}
"""Values for what a form leaves empty: no engine ticked means no search, whatever the environment says."""


UNPRICED = "unpriced"
"""Form checkbox: start even if the price of a model is not known."""


def start_run(here: WebState, prepared: PreparedRun, *, confirmed: bool = True) -> StartedRun:
    """Start a run in the background and wait until it is in the store.

    If it is not `confirmed`, as from a form, it is refused if the price of a model is not known, so that the user is
    asked first.
    """
    if not prepared.questions:
        raise InputError(f"{prepared.spec.questions.dataset} has no question to ask now", column="questions")
    if not confirmed and asks_models(prepared.spec) and unpriced_models(prepared.spec):
        raise InputError(prepared.notices[0], hint="or tick the box below to start anyway")
    spec = prepared.spec
    unknown = unknown_models(list(spec.models.values()), prices_of(spec)) if here.settings.check_models else []
    here.jobs.start(prepared)
    until = time.monotonic() + START_SECONDS
    while here.store.run(prepared.spec.id) is None and time.monotonic() < until:
        time.sleep(0.02)
    question = prepared.questions[0]
    due = question.due.isoformat()
    return StartedRun(
        run=prepared.spec.id,
        question=question.id,
        due=due,
        warnings=(*prepared.warnings, *prepared.notes, *prepared.notices, *map(TRIED_FIRST.format, unknown)),
    )


async def entered_values(request: Request, kind: type[OperationRequest]) -> dict[str, Any]:
    """Return the values that were entered in the form of a request."""
    sent = await form_of(request)
    sent.pop(FIELD, None)
    return form_values(kind, sent)


async def start_from_form(
    kind: type[OperationRequest],
    start: Callable[[], StartedRun],
    show_again: Callable[[str], Response],
    *,
    watch: str = "question",
) -> Response:
    """Start a run and redirect to where it can be followed, or show the form of `kind` again with the error."""
    try:
        with errors_name_fields(kind, titles=True):
            started = await run_in_threadpool(start)
    except InputError as error:
        return await run_in_threadpool(show_again, str(error))
    address = link_to("run", started.run)
    if watch == "question":
        address = link_to("question", started.run, started.question, due=started.due)
    return RedirectResponse(address, status_code=303)
