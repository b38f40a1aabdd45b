"""The tournaments that were entered from this machine: what was sent, what has resolved, and tables to score."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path

from foretell.data.datasets.forecastbench import read_submission
from foretell.data.datasets.forecastbench_download import (
    FORECASTBENCH_URL,
    ForecastBenchDownload,
    pulled_rounds,
    read_pulled,
)
from foretell.data.datasets.forecastbench_methods import FORECAST_SETS, MethodForecasts, read_methods, submission_rows
from foretell.data.datasets.question_set import QuestionSet, union
from foretell.data.files import DownloadCache
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.markets.prophet_arena import MARKET as PROPHET_ARENA_MARKET
from foretell.data.markets.prophet_arena import PLATFORM as PROPHET_ARENA
from foretell.data.markets.prophet_arena import ProphetArenaClient
from foretell.data.settlements.prophet_arena import weekly_results
from foretell.frozen import frozen
from foretell.questions.errors import InputError
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.past import past_of, rates_of
from foretell.runs.services import open_markets, service_config
from foretell.runs.settings import Settings, clock_of
from foretell.runs.store import RunStore
from foretell.scoring.baselines import BASE_RATE
from foretell.scoring.long_tables import forecast_rows, outcome_rows
from foretell.scoring.run_answers import final_forecasts
from foretell.scoring.stored_scores import keep_summary
from foretell.tournaments.connection import SERVICES
from foretell.tournaments.money import TournamentMoney
from foretell.tournaments.state import RoundState, Row, StoredState, TournamentState

FORECASTBENCH = "forecastbench"
YOU = "you"


@frozen
class OwnTournament:
    """A round or tournament that was entered from this machine, and its state."""

    platform: str
    name: str
    """A due date, or a slug."""
    state: str
    entry: str = ""
    """Its name on the leaderboard."""
    last: str = ""
    """When it was last run."""
    answered: int = 0
    sent: int = 0
    """How many forecasts the platform has; all or none of a round."""
    decided: int = 0
    """How many targets have resolved."""
    billed: float = 0.0
    runs: tuple[str, ...] = ()
    file: str = ""


# What was entered from this machine.


def entered_tournaments(settings: Settings, wanted: str = "", names: Sequence[str] = ()) -> list[OwnTournament]:
    """Return the rounds and tournaments entered from this machine, newest first, also those with damaged files.

    `wanted` is a platform, or a round or tournament of it; `names` are rounds and tournaments.
    """
    own_tournaments: list[OwnTournament] = []
    wanted, _, name = wanted.partition(":")
    chosen = {*names, *([name] if name else [])}
    for path in sorted((settings.home / "tournaments").glob("*/state.json")):
        service, _, name = path.parent.name.partition("-")
        platform = "prophet-arena" if service == PROPHET_ARENA else service
        if wanted not in ("", platform):
            continue
        try:
            if platform == FORECASTBENCH:
                tournament = _round(RoundState.read(path, round=name), settings)
            else:
                tournament = _questions(platform, name, TournamentState.read(path), settings)
        except (InputError, TypeError, KeyError):
            tournament = OwnTournament(platform=platform, name=name, state=f"damaged: {path}")
        if not chosen or tournament.name in chosen:
            own_tournaments.append(tournament)
    return sorted(own_tournaments, key=lambda tournament: tournament.last, reverse=True)


def _billed(state: StoredState, settings: Settings) -> float:
    return TournamentMoney.of(settings, f"tournament {state.path.parent.name}", state.paid_runs).total.billed


def _round(state: RoundState, settings: Settings) -> OwnTournament:
    stage = "uploaded" if state.uploaded else "file written" if state.file else "begun"
    answered = state.visits[-1]["answered"] if state.visits else 0
    return OwnTournament(
        platform=FORECASTBENCH,
        name=state.round,
        entry=state.entry + (" (sandbox)" if state.rehearsal else ""),
        last=state.visits[-1]["at"] if state.visits else "",
        answered=answered,
        sent=answered if state.uploaded else 0,
        state="sandbox" if state.rehearsal and state.file else stage,
        billed=_billed(state, settings),
        runs=tuple(state.runs.values()),
        file=state.file,
    )


def _questions(platform: str, name: str, state: TournamentState, settings: Settings) -> OwnTournament:
    rows = {row["question"]: row for visit in state.visits for row in visit["rows"]}
    sent, waiting = sum(bool(row["sent"]) for row in rows.values()), len(state.outbox)
    return OwnTournament(
        platform=platform,
        name=name,
        entry=YOU,
        last=state.visits[-1]["at"] if state.visits else "",
        answered=sum(bool(row["answer"]) for row in rows.values()),
        sent=sent,
        state=f"{sent} sent" + (f", {waiting} waiting" if waiting else ""),
        billed=_billed(state, settings),
        runs=tuple(state.runs),
    )


# Outcomes.


async def bring_outcomes(own: Sequence[OwnTournament], settings: Settings) -> list[str]:
    """Update the outcomes; return what could not be updated."""
    limits = HttpLimits(attempts=2)
    try:
        async with AsyncHttpClient(limits=limits, access=settings.access) as client:
            if own[0].platform == FORECASTBENCH:
                url = settings.addresses.get(FORECASTBENCH) or FORECASTBENCH_URL
                source = ForecastBenchDownload(DownloadCache(settings.home / FORECASTBENCH), client, url=url)
                await source.pull(sorted({tournament.name for tournament in own}))
                return []
            return await _ask_platform(own, settings, client)
    except (SourceError, InputError) as error:
        return [f"{own[0].platform}: outcomes could not be updated: {error}"]


async def _ask_platform(own: Sequence[OwnTournament], settings: Settings, client: AsyncHttpClient) -> list[str]:
    """Fetch the outcomes of closed questions from the platform and store them with the runs."""
    platform, now = SERVICES[own[0].platform], clock_of(settings)()
    source = open_markets(settings, client, [platform]).settlements.get(platform)
    if source is None:
        return [f"{platform} does not publish outcomes"]
    with closing(RunStore(settings.store)) as store:
        for run in dict.fromkeys(run for tournament in own for run in tournament.runs):
            questions = store.questions(run)
            over = [question for question in questions if question.closes_at is None or question.closes_at <= now]
            if over:
                resolutions = await source.settlements(over)
                if platform == PROPHET_ARENA:
                    # Outcomes of the weekly track are published with its release.
                    resolutions = [*resolutions, *await weekly_results(_arena(settings, client), over)]
                if RunOutcomes(store).keep(run, questions, resolutions):
                    await asyncio.to_thread(keep_summary, settings.store, run)
    return []


def _arena(settings: Settings, client: AsyncHttpClient) -> ProphetArenaClient:
    config = service_config(settings, client, PROPHET_ARENA)
    return PROPHET_ARENA_MARKET.client(config)


# Tables to score.


@frozen
class TournamentTable:
    """The forecasts and outcomes of the tournaments of a platform."""

    tournaments: list[OwnTournament]
    """With the number of resolved targets."""
    forecasts: list[Row] = field(default_factory=list[Row])
    """Empty if nothing can be scored yet."""
    outcomes: list[Row] = field(default_factory=list[Row])
    newest: str = ""
    """The newest own entry."""


def table_of_rounds(
    own: Sequence[OwnTournament], methods: Sequence[Path], settings: Settings, notes: list[str]
) -> TournamentTable:
    """Return your own files and the public methods on the same rounds."""
    cache, rounds = DownloadCache(settings.home / FORECASTBENCH), list[QuestionSet]()
    here = set(pulled_rounds(cache))
    forecasts: list[Row] = []
    names: set[str] = set()
    counted: list[OwnTournament] = []
    for tournament in own:
        if tournament.name not in here or not Path(tournament.file or "?").is_file():
            notes.append(
                f"{tournament.name} ({tournament.entry or tournament.state}): its file or its question set is missing"
            )
            counted.append(tournament)
            continue
        submission = read_submission(tournament.file)
        pulled = read_pulled(cache, tournament.name)
        rounds.append(pulled)
        names.add(submission.forecaster)
        forecasts += submission_rows(submission, tournament.entry)
        counted.append(replace(tournament, decided=len(pulled.outcomes())))
    days = {tournament.name for tournament in counted if tournament.decided}
    if not days:
        return TournamentTable(tournaments=counted)
    others = _methods(methods, cache, days, names)
    notes += [f"left out: {problem}" for problem in others.problems[:5]]
    if len(others.problems) > 5:
        notes.append(f"and {len(others.problems) - 5} more files that cannot be read")
    if not others.rows:
        folder = cache.root / FORECAST_SETS
        notes.append(f"there is no public method for these rounds: give files with --methods, or put them in {folder}")
    all_rounds = union(FORECASTBENCH, list({question_set.name: question_set for question_set in rounds}.values()))
    rows = [*forecasts, *others.rows, *_base_rates(all_rounds, cache)]
    outcomes = outcome_rows(all_rounds.questions, all_rounds.resolutions)
    notes.append("market price: as published with the question set, ten days before the due date")
    first = next(tournament.entry for tournament in counted if tournament.name in days)
    return TournamentTable(tournaments=counted, forecasts=_once(rows), outcomes=outcomes, newest=first)


def _base_rates(rounds: QuestionSet, cache: DownloadCache) -> list[Row]:
    """Return base rates: how often similar questions came true in earlier rounds, as known before each due date."""
    history = union(FORECASTBENCH, [read_pulled(cache, day) for day in pulled_rounds(cache)])
    rates = past_of(history.questions, history.resolutions).rates
    rows: list[Row] = []
    for question, target, rate in rates_of(rounds.questions, rates, "backtest"):
        due = question.due.date().isoformat()
        rows.append({"forecaster": BASE_RATE, "question": question.id, "target": target, "due": due, "p": rate})
    return rows


def _once(rows: Sequence[Row]) -> list[Row]:
    """Return one row per forecaster and target; the newest entry counts."""
    first_rows: dict[tuple[str, ...], Row] = {}
    for row in rows:
        first_rows.setdefault((row["forecaster"], row["question"], row["target"], row["due"]), row)
    return list(first_rows.values())


def _methods(named: Sequence[Path], cache: DownloadCache, days: set[str], own: set[str]) -> MethodForecasts:
    """Return public methods from the named files, or from the folder of the downloaded rounds."""
    defaults = (cache.root / FORECAST_SETS, cache.root / f"{FORECAST_SETS}.tar.gz")
    places = named or tuple(place for place in defaults if place.exists())
    method_forecasts = MethodForecasts()
    for place in places:
        read = read_methods(place, days, own=own)
        method_forecasts.rows += read.rows
        method_forecasts.problems += read.problems
    return method_forecasts


def table_of_questions(own: Sequence[OwnTournament], settings: Settings) -> TournamentTable:
    """Return the runs of tournaments on resolved questions; numbers and dates are not scored here."""
    forecasts: list[Row] = []
    outcomes: dict[tuple[str, ...], Row] = {}
    counted: list[OwnTournament] = []
    with closing(RunStore(settings.store)) as store:
        for tournament in own:
            decided = 0
            for run in tournament.runs:
                row, questions = store.run(run), store.questions(run)
                if row is None:
                    continue
                run_outcomes = outcome_rows(questions, RunOutcomes(store).of(run))
                decided += sum(entry["outcome"] is not None for entry in run_outcomes)
                outcomes |= {(entry["question"], entry["target"], entry["due"]): entry for entry in run_outcomes}
                final = final_forecasts(store, row, list(store.answers(run)), questions)
                forecasts += [{**entry, "forecaster": tournament.name} for entry in forecast_rows(final, questions)]
            counted.append(replace(tournament, decided=decided))
    rows = [row for row in outcomes.values() if row["outcome"] is not None]
    if len({row["question"] for row in rows}) < 2 or not forecasts:
        return TournamentTable(tournaments=counted)
    best = next(tournament.name for tournament in counted if tournament.decided)
    return TournamentTable(
        tournaments=counted, forecasts=_once(forecasts), outcomes=list(outcomes.values()), newest=best
    )
