"""Enter a tournament on any platform: forecast what is open and unanswered, and submit it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from foretell.operations.requests.tournaments import TournamentRunRequest
from foretell.questions.errors import InputError
from foretell.runs.runner import WatchProgress, asks_models
from foretell.runs.set_names import TOURNAMENT_PREFIX, Tournament
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import RunSpec, spec_from_mapping
from foretell.tournaments import metaculus
from foretell.tournaments.connection import PlatformConnection
from foretell.tournaments.forecastbench import PLATFORM as FORECASTBENCH
from foretell.tournaments.forecastbench import ROUND, TOKEN_VARIABLE, ForecastBenchTeam
from foretell.tournaments.ledger import SubmissionHistory, open_ledger
from foretell.tournaments.metaculus import MetaculusOptions
from foretell.tournaments.platforms import TESTING_AREA, ArenaTrack, MetaculusTournament
from foretell.tournaments.question_visit import QuestionVisit, TournamentPlatform, TournamentResult
from foretell.tournaments.round_visit import LATEST, NoOpenRound, RoundResult, RoundVisit, pull_rounds
from foretell.tournaments.settings import MODEL_FREE, ForecastBenchSettings, MetaculusSettings, ProphetArenaSettings
from foretell.tournaments.visit import VisitOptions

CONCURRENCY = 4
"""How many trials run at the same time, unless a setting says otherwise."""
PRACTICE = "practice"
"""The token of the local stand-in; also the team and the bucket there, unless the settings name others."""


async def enter(
    request: TournamentRunRequest,
    settings: Settings | None = None,
    *,
    watch: WatchProgress = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> TournamentResult | RoundResult:
    """Forecast what is open and unanswered in a tournament, and submit it.

    Returns a `RoundResult` for ForecastBench and a `TournamentResult` for Metaculus and Prophet Arena. Raises
    `InputError` if the request is wrong, a key is missing, or the platform cannot be reached.
    """
    settings = settings or load_settings()
    own_fields = VisitOptions.__dataclass_fields__.keys() & type(request).model_fields.keys()
    options = VisitOptions(watch=watch, tell=tell, **{name: getattr(request, name) for name in own_fields})
    if request.platform == FORECASTBENCH:
        return await _enter_round(request, settings, options)
    own: MetaculusSettings | ProphetArenaSettings
    connect: Callable[[PlatformConnection], TournamentPlatform]
    if request.platform == metaculus.PLATFORM:
        own = request.section(MetaculusSettings)
        slug = TESTING_AREA if request.sandbox else Tournament.read(request.tournament).slug
        questions = f"{TOURNAMENT_PREFIX}{slug}"
        connect = partial(MetaculusTournament, slug=slug, options=MetaculusOptions(comment=own.comment, clip=True))
    else:
        own, slug = request.section(ProphetArenaSettings), request.name or "weekly"
        questions = f"prophet_arena:{slug}"
        history = SubmissionHistory.of(open_ledger(settings).entries())
        connect = partial(ArenaTrack, own=own, track=slug, history=history)
    visit = QuestionVisit(
        settings=settings,
        options=options,
        spec=tournament_spec(request, questions),
        platform=request.platform,
        slug=slug,
        limit=own.budget,
        own=own,
        connect=connect,
    )
    return await visit.alone()


def tournament_spec(request: TournamentRunRequest, questions: str) -> RunSpec:
    """Return the run that forecasts the questions of a tournament, with the settings of the request.

    Raises:
        InputError: If a setting is wrong, or no model is named although one is needed.
    """
    settings = request.settings({"concurrency": CONCURRENCY})
    spec = spec_from_mapping({**settings, "questions": questions, "mode": "live"})
    if not spec.leakage_filter:
        raise InputError(
            "a run without the leakage filter cannot enter a tournament", path=request.config, column="leakage_filter"
        )
    if asks_models(spec) and "agent" not in spec.models:
        raise InputError("no model is named", column="--model", hint="e.g. openai:NAME; or set FORETELL_MODEL")
    return spec


# ForecastBench.


async def _enter_round(request: TournamentRunRequest, settings: Settings, options: VisitOptions) -> RoundResult:
    """Take part in a round of ForecastBench."""
    own, agents = request.section(ForecastBenchSettings), _run_settings(request)
    if settings.keys.get(TOKEN_VARIABLE) == PRACTICE and not request.sandbox:
        given = {"organization": own.organization or PRACTICE, "bucket": own.bucket or f"gs://{PRACTICE}/{ROUND}"}
        own = own.model_copy(update=given)
    _refuse_unused(request, own, agents)
    team = _team(request, own, agents)
    try:
        day, notes = await pull_rounds(request.name, own, settings, options)
    except NoOpenRound as error:
        if not own.when_open:
            raise
        day = request.name or LATEST
        return RoundResult(round=day, organization=team.organization, entry=team.model, notes=(str(error),))
    visit = RoundVisit(
        settings=settings,
        options=options,
        spec=None if agents is None else _agents(request),
        platform=FORECASTBENCH,
        # The name of earlier versions, so that their rounds continue.
        slug=f"{day}-{own.file_number}" + ("-rehearsal" if request.sandbox else ""),
        limit=own.budget,
        own=own,
        team=team,
        day=day,
        notes=notes,
    )
    return await visit.alone()


def _agents(request: TournamentRunRequest) -> RunSpec:
    """Return how agents forecast."""
    spec = tournament_spec(request, FORECASTBENCH)
    if not asks_models(spec):
        hint = "without a model, model_free is used"
        raise InputError("this forecaster uses no model", path=request.config, column="forecaster", hint=hint)
    return spec


def _run_settings(request: TournamentRunRequest) -> dict[str, Any] | None:
    """Return the settings of the agents' run; None without a model."""
    run = request.settings()
    return run if run.get("models", {}).get("agent") and not request.model_free else None


def _refuse_unused(request: TournamentRunRequest, own: ForecastBenchSettings, run: dict[str, Any] | None) -> None:
    """Refuse settings that have no effect in this round."""
    if own.overwrite and own.bucket is None:
        raise InputError("has no effect without tournament.bucket", column="tournament.overwrite", hint="leave it out")
    if run is not None:
        return
    unused = request.unused_without_model() or (
        "tournament.stop_before" if "stop_before" in own.model_fields_set else None
    )
    if unused is not None:
        hint = "leave this out" if request.model_free else "add --model, or leave this out"
        raise InputError("has no effect without a model", column=unused, hint=hint)


def _team(request: TournamentRunRequest, own: ForecastBenchSettings, run: dict[str, Any] | None) -> ForecastBenchTeam:
    """Return the team that submits. A registered name is needed only if something is sent."""
    pretend = request.sandbox or request.dry_run or request.plan
    if not own.organization and not pretend:
        hint = "as registered with ForecastBench; not needed with --sandbox"
        raise InputError(
            "ForecastBench needs to know who submits the file", column="tournament.organization", hint=hint
        )
    return ForecastBenchTeam(
        organization=own.organization or "sandbox",
        model=own.entry or f"foretell {MODEL_FREE if run is None else run['models']['agent']}",
        model_organization=own.model_organization,
        number=own.file_number,
    )
