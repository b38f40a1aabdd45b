"""Results of your own rounds and tournaments: what was sent, what has resolved, and scores beside public methods."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from rich.console import Console

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
from foretell.operations.requests.tournaments import TournamentResultsRequest
from foretell.operations.result import Result, show_table
from foretell.operations.score import ScoreResult
from foretell.operations.submit import SERVICES
from foretell.operations.table import operation
from foretell.operations.tournament import TournamentMoney
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.report.leaderboard import markdown_board
from foretell.report.provenance import Provenance
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.outcomes import RunOutcomes, past_of, rates_of
from foretell.runs.services import open_markets, service_config
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.runs.store import RunStore
from foretell.scoring.join import read_table
from foretell.scoring.long_tables import final_forecasts, forecast_rows, outcome_rows
from foretell.scoring.score import ScoringOptions, score_table
from foretell.scoring.table import BASE_RATE

FORECASTBENCH = "forecastbench"
YOU = "you"
Row = dict[str, Any]


NONE_ENTERED = (
    "no tournament was entered from here; try: foretell practice -- foretell tournament run forecastbench, "
    "then: foretell practice -- foretell tournament results\n"
)


@dataclass(frozen=True, kw_only=True)
class OwnTournament:
    """A round or tournament that was entered from this machine, and its state."""

    platform: str
    name: str
    """A due date, or a slug."""
    entry: str
    """Its name on the leaderboard."""
    last: str
    """When it was last run."""
    answered: int
    sent: int
    """How many forecasts the platform has; all or none of a round."""
    state: str
    decided: int = 0
    """How many targets have resolved."""
    billed: float = 0.0
    runs: tuple[str, ...] = ()
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class TournamentResults(Result):
    """Your rounds and tournaments, and a leaderboard for each platform with resolved questions."""

    entered: tuple[OwnTournament, ...]
    boards: Mapping[str, ScoreResult]
    """Platform → leaderboard."""
    notes: tuple[str, ...] = ()

    def rows(self) -> list[Row]:
        """One row for each platform, forecaster and group."""
        return [{"tournament": name, **row} for name, board in self.boards.items() for row in board.rows()]

    def to_dict(self) -> Row:
        """Your rounds and the leaderboards."""
        return {
            "entered": plain_data(self.entered),
            "boards": {name: board.to_dict() for name, board in self.boards.items()},
            "notes": list(self.notes),
        }

    def to_html(self) -> str:
        """The first leaderboard as a page."""
        if not self.boards:
            raise InputError("nothing has resolved yet, so there is no leaderboard to write")
        return next(iter(self.boards.values())).to_html()

    def to_markdown(self) -> str:
        """The leaderboards as Markdown."""
        parts = [f"## {name}\n\n{markdown_board(board.board)}" for name, board in self.boards.items()]
        settings = next((board.board.settings for board in self.boards.values()), None)
        return "\n".join([*(parts or ["no board\n"]), Provenance.now(settings).to_markdown()])

    def print(self, console: Console) -> None:
        """Your rounds, then the leaderboards."""
        if not self.entered:
            show_text(console, NONE_ENTERED)
            return
        columns: dict[TextColumn, str | Callable[[OwnTournament], object]] = {
            TextColumn(head="tournament"): lambda one: one.platform,
            TextColumn(head="round", shrink=10): lambda one: one.name,
            TextColumn(head="entry", shrink=16, drop=2): lambda one: one.entry,
            TextColumn(head="last run", drop=1): lambda one: one.last[:16].replace("T", " "),
            TextColumn(head="answered", right=True): lambda one: str(one.answered),
            TextColumn(head="decided", right=True): lambda one: str(one.decided),
            TextColumn(head="$", right=True, drop=3): lambda one: f"{one.billed:.2f}",
            TextColumn(head="state"): lambda one: one.state,
        }
        show_table(console, self.entered, cast("Any", columns))
        for name, board in self.boards.items():
            show_text(console, f"\n{name}\n")
            board.print(console)


async def score_tournaments(
    request: TournamentResultsRequest,
    settings: Settings | None = None,
    *,
    tell: Callable[[str], None] = lambda _: None,
) -> TournamentResults:
    """Score your past rounds and tournaments beside public methods."""
    settings = settings or load_settings()
    entered = entered_tournaments(settings, request)
    notes: list[str] = []
    boards: dict[str, ScoreResult] = {}
    shown: list[OwnTournament] = []
    for platform in dict.fromkeys(one.platform for one in entered):
        own = [one for one in entered if one.platform == platform]
        if settings.network:
            tell(f"{platform}: looking for outcomes")
            notes += await _bring_outcomes(own, settings)
        score = _score_rounds if platform == FORECASTBENCH else _score_questions
        counted, board = score(own, request, settings, notes)
        shown += counted
        if board is not None:
            boards[platform] = board
    return TournamentResults(entered=tuple(shown), boards=boards, notes=tuple(notes))


tournament_results = operation(TournamentResultsRequest)(score_tournaments)


# What was entered from this machine.


def entered_tournaments(settings: Settings, request: TournamentResultsRequest) -> list[OwnTournament]:
    """All rounds and tournaments entered from this machine, newest first; the state of a damaged one says so."""
    found: list[OwnTournament] = []
    wanted, _, round = (request.tournament or "").partition(":")
    rounds = {*request.rounds, *([round] if round else [])}
    for path in sorted((settings.home / "tournaments").glob("*/state.json")):
        service, _, name = path.parent.name.partition("-")
        platform = "prophet-arena" if service == PROPHET_ARENA else service
        if wanted not in ("", platform):
            continue
        try:
            body: Any = json.loads(path.read_text(encoding="utf-8"))
            account = f"tournament {path.parent.name}"
            own = platform == FORECASTBENCH
            one = _round(account, body, settings) if own else _questions(account, platform, name, body, settings)
        except (ValueError, TypeError, KeyError, AttributeError):
            one = OwnTournament(
                platform=platform, name=name, entry="", last="", answered=0, sent=0, state=f"damaged: {path}"
            )
        if not rounds or one.name in rounds:
            found.append(one)
    return sorted(found, key=lambda one: one.last, reverse=True)


def _round(account: str, body: Row, settings: Settings) -> OwnTournament:
    visits: list[Row] = body["visits"]
    state = "uploaded" if body["uploaded"] else "file written" if body["file"] else "begun"
    answered = visits[-1]["answered"] if visits else 0
    money = TournamentMoney.of(settings, account, body["paid"])
    return OwnTournament(
        platform=FORECASTBENCH,
        name=body["round"],
        entry=body["entry"] + (" (sandbox)" if body["rehearsal"] else ""),
        last=visits[-1]["at"] if visits else "",
        answered=answered,
        sent=answered if body["uploaded"] else 0,
        state="sandbox" if body["rehearsal"] and body["file"] else state,
        billed=money.total.billed,
        runs=tuple(body["runs"].values()),
        file=body["file"],
    )


def _questions(account: str, platform: str, name: str, body: Row, settings: Settings) -> OwnTournament:
    visits: list[Row] = body["visits"]
    rows = {row["question"]: row for visit in visits for row in visit["rows"]}
    sent, waiting = sum(bool(row["sent"]) for row in rows.values()), len(body["outbox"])
    money = TournamentMoney.of(settings, account, body["runs"])
    return OwnTournament(
        platform=platform,
        name=name,
        entry=YOU,
        last=visits[-1]["at"] if visits else "",
        answered=sum(bool(row["answer"]) for row in rows.values()),
        sent=sent,
        state=f"{sent} sent" + (f", {waiting} waiting" if waiting else ""),
        billed=money.total.billed,
        runs=tuple(body["runs"]),
    )


# Outcomes.


async def _bring_outcomes(own: Sequence[OwnTournament], settings: Settings) -> list[str]:
    """Update the outcomes; return what could not be updated."""
    limits = HttpLimits(attempts=2)
    try:
        async with AsyncHttpClient(limits=limits, access=settings.access) as client:
            if own[0].platform == FORECASTBENCH:
                url = settings.addresses.get(FORECASTBENCH) or FORECASTBENCH_URL
                source = ForecastBenchDownload(DownloadCache(settings.home / FORECASTBENCH), client, url=url)
                await source.pull(sorted({one.name for one in own}))
                return []
            return await _ask_platform(own, settings, client)
    except (SourceError, InputError) as error:
        return [f"{own[0].platform}: outcomes could not be brought up to date: {error}"]


async def _ask_platform(own: Sequence[OwnTournament], settings: Settings, client: AsyncHttpClient) -> list[str]:
    """Fetch the outcomes of closed questions from the platform and store them with the runs."""
    platform, now = SERVICES[own[0].platform], clock_of(settings)()
    source = open_markets(settings, client, [platform]).settlements.get(platform)
    if source is None:
        return [f"{platform} does not tell how questions came out"]
    with closing(RunStore(settings.store)) as store:
        for run in dict.fromkeys(run for one in own for run in one.runs):
            questions = store.questions(run)
            over = [one for one in questions if one.closes_at is None or one.closes_at <= now]
            if over:
                told = await source.settlements(over)
                if platform == PROPHET_ARENA:
                    # Outcomes of the weekly track are published with its release.
                    told = [*told, *await weekly_results(_arena(settings, client), over)]
                RunOutcomes(store).keep(run, questions, told)
    return []


def _arena(settings: Settings, client: AsyncHttpClient) -> ProphetArenaClient:
    config = service_config(settings, client, PROPHET_ARENA)
    return PROPHET_ARENA_MARKET.client(config)


# Scores.


def _board(
    forecasts: list[Row], outcomes: list[Row], request: TournamentResultsRequest, title: str, own: str
) -> ScoreResult:
    table = read_table(forecasts, outcomes)
    options = ScoringOptions(
        by=request.by,
        reference=request.reference or own,
        missing=request.missing,
        cluster=request.bootstrap.cluster,
        resampling=request.bootstrap.resampling,
    )
    return ScoreResult(board=score_table(table, options), table=table, scoring=options, title=title)


def _score_rounds(
    own: Sequence[OwnTournament], request: TournamentResultsRequest, settings: Settings, notes: list[str]
) -> tuple[list[OwnTournament], ScoreResult | None]:
    """Score your own files beside the public methods on the same rounds."""
    cache, rounds = DownloadCache(settings.home / FORECASTBENCH), list[QuestionSet]()
    here = set(pulled_rounds(cache))
    forecasts: list[Row] = []
    names: set[str] = set()
    counted: list[OwnTournament] = []
    for one in own:
        if one.name not in here or not Path(one.file or "?").is_file():
            notes.append(f"{one.name} ({one.entry or one.state}): its file or its question set is not here")
            counted.append(one)
            continue
        submission = read_submission(one.file)
        found = read_pulled(cache, one.name)
        rounds.append(found)
        names.add(submission.forecaster)
        forecasts += submission_rows(submission, one.entry)
        counted.append(replace(one, decided=len(found.outcomes())))
    days = {one.name for one in counted if one.decided}
    if not days:
        return counted, None
    others = _methods(request, cache, days, names)
    notes += [f"left out: {problem}" for problem in others.problems[:5]]
    if len(others.problems) > 5:
        notes.append(f"and {len(others.problems) - 5} more files that cannot be read")
    if not others.rows:
        folder = cache.root / FORECAST_SETS
        notes.append(f"no public method is on file for these rounds: name files of methods, or put them in {folder}")
    asked = union(FORECASTBENCH, list({one.name: one for one in rounds}.values()))
    rows = [*forecasts, *others.rows, *_base_rates(asked, cache)]
    outcomes = outcome_rows(asked.questions, asked.resolutions)
    notes.append("crowd price: as published with the question set, ten days before the due date")
    first = next(one.entry for one in counted if one.name in days)
    return counted, _board(_once(rows), outcomes, request, "ForecastBench", first)


def _base_rates(asked: QuestionSet, cache: DownloadCache) -> list[Row]:
    """Base rates: how often similar questions came true in earlier rounds, known before each due date."""
    history = union(FORECASTBENCH, [read_pulled(cache, day) for day in pulled_rounds(cache)])
    rates = past_of(history.questions, history.resolutions).rates
    rows: list[Row] = []
    for question, target, rate in rates_of(asked.questions, rates, "backtest"):
        due = question.due.date().isoformat()
        rows.append({"forecaster": BASE_RATE, "question": question.id, "target": target, "due": due, "p": rate})
    return rows


def _once(rows: Sequence[Row]) -> list[Row]:
    """One row per forecaster and target; the newest entry counts."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        found.setdefault((row["forecaster"], row["question"], row["target"], row["due"]), row)
    return list(found.values())


def _methods(request: TournamentResultsRequest, cache: DownloadCache, days: set[str], own: set[str]) -> MethodForecasts:
    """Public methods from the files that the request names, or from beside the downloaded rounds."""
    beside = (cache.root / FORECAST_SETS, cache.root / f"{FORECAST_SETS}.tar.gz")
    places = request.methods or tuple(place for place in beside if place.exists())
    found = MethodForecasts()
    for place in places:
        read = read_methods(place, days, own=own)
        found.rows += read.rows
        found.problems += read.problems
    return found


def _score_questions(
    own: Sequence[OwnTournament], request: TournamentResultsRequest, settings: Settings, notes: list[str]
) -> tuple[list[OwnTournament], ScoreResult | None]:
    """Score the runs of tournaments on resolved questions; numbers and dates are not scored here."""
    forecasts: list[Row] = []
    outcomes: dict[tuple[str, ...], Row] = {}
    counted: list[OwnTournament] = []
    with closing(RunStore(settings.store)) as store:
        for one in own:
            decided = 0
            for run in one.runs:
                row, questions = store.run(run), store.questions(run)
                if row is None:
                    continue
                told = outcome_rows(questions, RunOutcomes(store).of(run))
                decided += sum(each["outcome"] is not None for each in told)
                outcomes |= {(each["question"], each["target"], each["due"]): each for each in told}
                said = final_forecasts(store, row, list(store.answers(run)), questions)
                forecasts += [{**each, "forecaster": one.name} for each in forecast_rows(said, questions)]
            counted.append(replace(one, decided=decided))
    rows = [row for row in outcomes.values() if row["outcome"] is not None]
    if len({row["question"] for row in rows}) < 2 or not forecasts:
        return counted, None
    best = next(one.name for one in counted if one.decided)
    return counted, _board(_once(forecasts), list(outcomes.values()), request, own[0].platform, best)
