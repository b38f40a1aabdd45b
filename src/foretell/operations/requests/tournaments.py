"""Requests to submit forecasts: exports, tournaments, the ledger, and the live arena."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from foretell.operations.requests.asking import ENGINE_NAMES, NO_CHOICE, ShortText
from foretell.operations.requests.runs import RUN
from foretell.operations.requests.scoring import Columns
from foretell.request import OperationRequest, setting

_COMBINE_HELP = "How trials are combined (default: the run's own rule)."


class ForecastBenchTeamFields(OperationRequest):
    """The team, and the content of the ForecastBench file."""

    organization: str = setting("", "ForecastBench: your team, as registered.")
    model: str = setting("", "ForecastBench: the name to show on the leaderboard.")
    model_organization: str = setting("", "ForecastBench: who made the model (default: the organization).")
    file_number: int = setting(1, "ForecastBench: which of your three files this is.", ge=1, le=3)
    round: str | None = setting(None, "ForecastBench: due date, if there are several rounds.", metavar="DATE")
    reasoning: bool = setting(False, "ForecastBench: include the reasons in the file.")
    incomplete: bool = setting(False, "ForecastBench: write the file even if it is too incomplete to be ranked.")
    folder: Path = setting(Path(), "ForecastBench: folder for the file.", metavar="FOLDER")


_DEGRADED = setting(False, "Also use forecasts based on a failure of the model or of all its tools.")


class ExportRequest(ForecastBenchTeamFields):
    """Write RUN as a ForecastBench submission, checked against the round's question set.

    Trials are combined by the run's own rule, or as --combine says. The benchmark only ranks files with at least 95 %
    of the market and 95 % of the data-set forecasts. With less, nothing is written unless you use --incomplete.
    """

    run: str = RUN
    combine: str | None = setting(None, _COMBINE_HELP)
    degraded: bool = _DEGRADED


_BUCKET = setting(
    None,
    "ForecastBench: your team's upload folder; {round} in it is replaced by the due date.",
    metavar="gs://BUCKET/FOLDER",
    env="FORECASTBENCH_BUCKET",
)


class SubmitRequest(ForecastBenchTeamFields):
    """Submit the forecasts of RUN, or of a FILE of forecasts.

    A forecast that was already submitted is not sent again. Every forecast is recorded in a ledger (foretell ledger)
    before it is sent, and again when the platform accepts it. Look first, then send:

      foretell submit RUN --to metaculus --comment --dry-run

      foretell submit RUN --to metaculus --comment --yes

    You need a key: METACULUS_TOKEN, or ARENA_API_KEY for Prophet Arena. For ForecastBench, a file is written. With
    --bucket and FORECASTBENCH_TOKEN it is uploaded to your team's folder; without them, you upload it.
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {
        "to=forecastbench": " ".join([*ForecastBenchTeamFields.model_fields, "bucket"]),
        "to=metaculus": "post clip",
        "to=prophet-arena": "agent window",
        "to=metaculus or to=prophet-arena": "comment",
    }
    source: str = setting(help="Id of a run, or a file of forecasts.", argument=True, metavar="RUN|FILE")
    to: Literal["forecastbench", "metaculus", "prophet-arena"] = setting(help="The platform.")
    degraded: bool = _DEGRADED
    comment: Literal["private", "public"] | None = setting(
        None, "Also send the reasons; on Metaculus as a comment, private by default.", alone="private"
    )
    clip: bool = setting(False, "Change probabilities that the platform does not accept to the nearest allowed value.")
    questions: tuple[str, ...] = setting((), "Only this question; may be repeated.", flag="--question", metavar="ID")
    post: str | None = setting(None, "Metaculus: the post that the run's only question answers.", metavar="POST")
    combine: str | None = setting(None, _COMBINE_HELP)
    resend: bool = setting(False, "Send forecasts again that were already sent.")
    agent: str = setting("", "Prophet Arena: your agent's name (default: your weekly-track agent).")
    window: int | None = setting(None, "Prophet Arena: the round of the event (default: the open one).")
    bucket: str | None = _BUCKET
    dry_run: bool = setting(False, "Print exactly what would be sent, and send nothing.")
    yes: bool = setting(False, "Send without asking.")


class TournamentFields(OperationRequest):
    """Fields shared by all tournaments: how to forecast, budgets, and whether it counts."""

    spec: Path | None = setting(
        None,
        "A run's spec (YAML) that says how to forecast; the questions come from the tournament.",
        metavar="FILE",
    )
    model: str | None = setting(
        None, "Model, as provider:name (default: the spec's, or FORETELL_MODEL).", min_length=1, max_length=300
    )
    search: tuple[ShortText, ...] = setting(
        (), "Search engine; may be repeated (default: the spec's, or FORETELL_SEARCH).", names=ENGINE_NAMES
    )
    trials: int | None = setting(None, "Trials per question (default: the spec's, or 1).", ge=1, le=50)
    budget: float | None = setting(
        None, "Hard limit in dollars for this visit (default: the spec's).", metavar="DOLLARS", gt=0
    )
    question_budget: float | None = setting(
        None,
        "Hard limit in dollars for the trials of one question together (default: the spec's).",
        metavar="DOLLARS",
        gt=0,
    )
    tournament_budget: float | None = setting(
        None, "Hard limit in dollars for the whole tournament, including earlier visits.", metavar="DOLLARS", gt=0
    )
    model_price: str | None = setting(
        None,
        "Price of a model that foretell does not know, in dollars per million input/output tokens, such as 0.5/2.",
        metavar="IN/OUT",
        max_length=200,
    )
    degraded: bool = setting(False, "Also send forecasts based on a failure of the model or of all its tools.")
    plan: bool = setting(False, "Only show the questions, the cost and the time.")
    dry_run: bool = setting(False, "Forecast, print what would be sent, and send nothing.")
    practice: bool = setting(False, "Use a practice world on this machine: no key, no cost, nothing leaves it.")
    concurrency: int = setting(4, "How many trials run at the same time.", ge=1, le=2000)
    summary: Path | None = setting(
        None, "Append the day's summary to this file, as Markdown.", metavar="FILE", env="GITHUB_STEP_SUMMARY"
    )

    @field_validator("model")
    @classmethod
    def _no_model(cls, model: str | None) -> str | None:
        return None if model in ("", NO_CHOICE) else model


class VisitFields(TournamentFields):
    """For tournaments in which questions open and close: which ones to answer, and when to update them."""

    update_after: float | None = setting(
        None, "Update a forecast after this many days (default: never).", metavar="DAYS", gt=0
    )
    before_close: float | None = setting(
        None, "Update a forecast once more in this many hours before the close.", metavar="HOURS", gt=0
    )
    limit: int | None = setting(
        None, "Maximum number of questions in this visit; those that close first come first.", ge=1
    )


class TournamentRequest(VisitFields):
    """Visit a Metaculus tournament: forecast the open questions you have not answered, and submit them with reasons.

    Run it regularly, for example every 20 minutes from a scheduler. Only one visit runs at a time, answered questions
    are skipped, nothing is paid for or sent twice, even after a crash, and a page shows what was done today.

      foretell tournament metaculus minibench --practice      # no key needed, in a practice world

      foretell tournament metaculus minibench --rehearse      # for real, in the platform's testing area

      foretell tournament metaculus minibench --budget 1 --tournament-budget 50

    Keys: METACULUS_TOKEN, and your model's key. `foretell init bot` writes a repository that does this on GitHub.
    """

    tournament: str = setting(help="Slug or number of the tournament.", argument=True, min_length=1, max_length=80)
    comment: Literal["private", "public"] = setting("private", "Who can read the comment with the reasons.")
    rehearse: bool = setting(False, "Use the platform's testing area instead of the tournament.")


class ForecastBenchRoundRequest(TournamentFields):
    """Take part in a ForecastBench round: download, update values, forecast, check, write the file, upload it.

    Without a model, `stack` answers every question for free, from prices, series and the outcomes of earlier rounds.
    With --model, agents answer too, and both are combined based on earlier rounds. If money or time runs out, the
    stack's answer is used, so the file is always complete. If it is interrupted, start it again and it continues.

      foretell tournament forecastbench --practice            # no key needed, in a practice world

      foretell tournament forecastbench 2026-08-02 --rehearse # a past round as of its day; nothing is sent

      foretell tournament forecastbench --organization "My team" --bucket gs://BUCKET/FOLDER

    A round is open from 00:00 to 23:59:59 UTC on its due date. Uploading needs FORECASTBENCH_TOKEN, an access token
    such as `gcloud auth print-access-token` prints. Without --bucket, you are told where the file is.
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {
        "model or spec": "search trials model_price stop_before",
        "bucket or practice": "overwrite",
    }
    round: str = setting(
        "latest", "Due date of the round, or latest.", argument=True, metavar="[DATE|latest]", max_length=20
    )
    organization: str = setting("", "Your team, as registered.", env="FORECASTBENCH_ORGANIZATION", max_length=200)
    entry: str = setting(
        "", "Name on the leaderboard (default: foretell with its model).", metavar="NAME", max_length=200
    )
    model_organization: str = setting("", "Who made the model (default: the organization).", max_length=200)
    file_number: int = setting(1, "Which of your three files this is.", ge=1, le=3)
    reasoning: bool = setting(False, "Include the reasons in the file.")
    incomplete: bool = setting(False, "Write the file even if it is too incomplete to be ranked.")
    folder: Path | None = setting(None, "Folder for the file (default: the round's own).", metavar="FOLDER")
    bucket: str | None = _BUCKET
    past_rounds: int = setting(26, "How many earlier rounds to learn from; missing ones are downloaded.", ge=0, le=200)
    stop_before: float = setting(
        30.0,
        "Agents stop this many minutes before the round closes, and the file is sent.",
        metavar="MINUTES",
        ge=0,
    )
    rehearse: bool = setting(False, "Answer a past round as of its due date: nothing later is used, nothing is sent.")
    when_open: bool = setting(False, "If no round is open today, exit successfully; for schedulers.")
    overwrite: bool = setting(False, "Replace an uploaded file that this machine did not write.")


class ProphetArenaTournamentRequest(VisitFields):
    """Visit Prophet Arena: forecast the open questions of a track that you have not answered, and submit them.

    The weekly track is a release of about a hundred questions with one deadline, Saturday 23:59 New York time. The live
    track has every event that currently accepts forecasts. You can run it as often as you like: only one visit runs at
    a time, and nothing is paid for or sent twice. Forecasts over the daily quota are sent the next day.

      foretell tournament prophet_arena weekly --practice

      foretell tournament prophet_arena weekly --model openai:NAME --search gdelt --budget 5

      foretell tournament prophet_arena live --agent my-agent --tournament-budget 50 --budget 2

    Keys: ARENA_API_KEY, and your model's key.
    """

    track: Literal["weekly", "live"] = setting("weekly", "weekly or live.", argument=True, metavar="[weekly|live]")
    agent: str = setting("", "Your agent's name (default: your weekly-track agent).", env="ARENA_AGENT", max_length=200)
    reasons: bool = setting(True, "Send the reasons with every forecast.")


class TournamentResultsRequest(OperationRequest):
    """Score your past rounds and tournaments, next to public methods.

    Shows every score with its interval (resampling resolution days and questions), the share answered, and the rows
    crowd price, base rate and 0.5. Outcomes are updated first. For public ForecastBench methods, --methods takes files
    as teams send them, a folder of them, the published archive (forecast_sets.tar.gz), or a table; the default is
    forecast_sets next to the pulled rounds.

      foretell tournament results forecastbench --methods forecast_sets.tar.gz --by source,horizon
    """

    platform: Literal["forecastbench", "metaculus", "prophet_arena"] | None = setting(
        None, "Only this platform.", argument=True, metavar="[PLATFORM]"
    )
    rounds: tuple[str, ...] = setting((), "Only this round or tournament; may be repeated.", flag="--round")
    methods: tuple[Path, ...] = setting(
        (), "Public ForecastBench methods; may be repeated.", metavar="FILE|FOLDER", flag="--methods"
    )
    by: Columns = setting((), "Also score each combination of these columns, e.g. source,horizon.", metavar="COLUMNS")
    reference: str | None = setting(
        None, "Compare all others with this forecaster (default: your newest entry).", metavar="NAME"
    )
    missing: float | None = setting(
        None, "Probability to use for missing forecasts; the official leaderboard uses 0.5.", metavar="P", ge=0, le=1
    )
    draws: int = setting(2000, "Number of bootstrap draws.", ge=100)
    offline: bool = setting(False, "Use only the outcomes on this machine; no network.")


class LedgerRequest(OperationRequest):
    """Print the number and hash of the last entry. Note it elsewhere to be able to prove that nothing was changed."""

    file: Path | None = setting(None, "Another ledger file.", metavar="FILE")


class LedgerVerifyRequest(LedgerRequest):
    """Check every entry; name the first that was changed, removed or moved.

    Entries removed at the end cannot be detected from the ledger alone; for that, pass a head that you noted elsewhere.
    """

    head: str | None = setting(
        None, "A head that you noted; checks that nothing up to it is missing.", metavar="NUMBER:HASH"
    )


class LedgerShowRequest(LedgerRequest):
    """List the entries: what was to be sent, and what happened."""

    platform: str | None = setting(None, "Only this platform.")
    question: str | None = setting(None, "Only questions whose id begins with this.")
    last: int | None = setting(None, "Only the last N entries.", metavar="N", ge=1)


_ARENA_FILE: Any = setting(Path(), "The arena's file, or its folder.", argument=True, metavar="[ARENA]")


class ArenaRequest(OperationRequest):
    """An arena, by its file."""

    file: Path = _ARENA_FILE


class ArenaCollectRequest(ArenaRequest):
    """Read the platforms' open events, select new ones by the arena's rules, and update those already selected.

    Every rejected event is counted with its reason. You can repeat it: it never takes more events than the
    rules allow for the day.
    """


class ArenaContextRequest(ArenaRequest):
    """For every event that is due, store fresh prices and the sources that all entries will see.

    What could not be stored in time, before the next round or before the event closed, is listed as missed.
    """


class ArenaResolveRequest(ArenaRequest):
    """Look up the outcomes of events that have closed."""


class ArenaStatusRequest(ArenaRequest):
    """Show what is open, done and missed, when the next forecasts are due, and what was spent."""


class ArenaInitRequest(OperationRequest):
    """Write arena.yaml, with every field explained, into the folder PLACE.

    PLACE may also be a file that ends in .yaml. The arena works as it is, without a key: public events from Kalshi,
    forecasters without language models, and the market price as the one to beat. The first line of the file names a
    JSON schema, written next to it, so that your editor can check what you type.
    """

    place: Path = setting(Path(), "A folder, or a file that ends in .yaml.", argument=True, metavar="[PLACE]")
    name: str | None = setting(None, "Name of the arena (default: the name of its folder).")
    force: bool = setting(False, "Overwrite an existing file.")


class _AnsweringRequest(ArenaRequest):
    """How the entries of an arena answer."""

    concurrency: int = setting(50, "How many forecasts to make at the same time.", ge=1, le=2000)
    where: Literal["auto", "here"] = setting(
        "auto", "With a shared database: answer in this process (here) instead of using its workers (auto)."
    )


class ArenaForecastRequest(_AnsweringRequest):
    """Let every entry forecast the events that are ready and that it has not answered yet.

    If FORETELL_DATABASE_URL is set, forecasts by language models are put into a queue for `foretell worker`, and this
    command waits for them.
    """

    entries: tuple[str, ...] = setting((), "Only this entry; may be repeated.", flag="--entry", metavar="NAME")


class ArenaScoreRequest(ArenaRequest):
    """Rank all entries on resolved events, next to the market, the base rate and 0.5."""

    by: Columns = setting((), "Also score by category, platform or lead_time.", metavar="COLUMNS")
    draws: int = setting(2000, "Number of bootstrap draws.", ge=100)
    seed: int = setting(0, "Seed of the bootstrap.")


class ArenaShowRequest(OperationRequest):
    """Show one event: prices, every forecast, and the outcome.

    EVENT is its id, or the end of it: kalshi/KXFED-26DEC or KXFED-26DEC.
    """

    event: str = setting(help="Id of the event, or the end of it.", argument=True)
    file: Path = setting(Path(), "The arena's file or folder.", flag="--arena", metavar="PATH")


class ArenaRunRequest(_AnsweringRequest):
    """Keep an arena going: collect events, forecast them on schedule, look up outcomes. Ctrl-C ends it.

    You can start it several times, also on other machines with a shared database: each step is done only once. You can
    stop it at any time: the next start continues and pays for no reply twice. With --rehearse, every stage is done once
    in a separate arena, named like yours plus "-rehearsal": real events and real answers that do not count.
    """

    poll_interval: float | None = setting(
        None, "Seconds between two checks of what is due.", metavar="SECONDS", ge=0.01
    )
    once: bool = setting(False, "Do what is due now, then exit: for cron.")
    rehearse: bool = setting(False, "Try every stage once, in an arena that does not count.")


class ArenaDemoRequest(OperationRequest):
    """Play a month of an arena in about a minute: no key, no network, made-up events.

    A simulated exchange lists made-up events with the prices of imperfect traders, and a simulated search engine finds
    made-up news about them. Scripted models and forecasters without a model take part. All stages of an arena run in
    simulated time until every event has resolved. Because the world is simulated, its true probabilities are known: one
    row of the leaderboard shows them. It can only be beaten by luck.
    """

    days: int = setting(30, "Days on which new events are selected.", ge=1, le=366)
    events_per_day: int = setting(8, "Events selected per day.", ge=1, le=100)
    seed: int = setting(0, "Another seed makes another world.")
    folder: Path = setting(Path("arena-demo"), "Folder for the leaderboard page.", metavar="FOLDER")
    keep: bool = setting(False, "Also keep runs, journal and arena.yaml there, so that you can explore them.")
