"""Requests to submit forecasts: tournaments, the ledger, and the live arena."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar, cast

from pydantic import field_validator, model_validator

from foretell.operations.requests.asking import ForecastingRequest
from foretell.operations.requests.scoring import Columns
from foretell.questions.errors import InputError, known_names
from foretell.request import OperationRequest, flags, setting, split_section
from foretell.scoring.bootstrap_options import BOOTSTRAP, Bootstrap
from foretell.tournaments.settings import (
    MODEL_FREE,
    ForecastBenchSettings,
    MetaculusSettings,
    ProphetArenaSettings,
    TournamentSettings,
)

INCLUDE_FALLBACK: Any = setting(
    False, "Also use fallback forecasts, made after a failure of the model or of all its tools."
)


# Tournaments.


SECTION = "tournament"
"""The section of a settings file on how to take part, and the first part of its keys."""


SETTINGS: Mapping[str, type[TournamentSettings]] = {
    "metaculus": MetaculusSettings,
    "forecastbench": ForecastBenchSettings,
    "prophet-arena": ProphetArenaSettings,
}
"""Platform → the keys of its section."""
SUBMISSION_KEYS = {
    "metaculus": (),
    "forecastbench": (
        *("organization", "entry", "model_organization", "file_number"),
        *("reasoning", "incomplete", "folder", "bucket"),
    ),
    "prophet-arena": ("agent", "window"),
}
"""Platform → the keys that a submission has."""
Keys = TypeVar("Keys", bound=TournamentSettings)


def read_section(kind: type[Keys], values: Mapping[str, Any], known: Sequence[str], platform: str) -> Keys:
    """Read the keys of the section `tournament`.

    Args:
        kind: The keys of the platform.
        values: Key → value; None means the default.
        known: The keys that have an effect.
        platform: The platform, for messages.

    Raises:
        InputError: If a key does not exist, has no effect, belongs to another platform, or has a wrong value.
    """
    for name in values:
        if name in known:
            continue
        others = [other for other, keys in SETTINGS.items() if name in keys.model_fields]
        if platform in others:
            problem, hint = "has no effect here", "leave it out"
        elif others:
            problem, hint = f"is a setting of {' and '.join(others)}, not of {platform}", "leave it out"
        else:
            problem = "there is no such setting"
            hint = known_names(f"{SECTION}.{name}", [f"{SECTION}.{key}" for key in known])
        raise InputError(problem, column=f"{SECTION}.{name}", hint=hint)
    try:
        return kind.read(values)
    except InputError as error:
        raise error.at(column=f"{SECTION}.{error.column}") from None


def check_platform(text: str) -> str:
    """Return a platform, with or without a tournament after a colon; raise ValueError if there is no such platform."""
    platform = text.partition(":")[0]
    if platform not in SETTINGS:
        raise ValueError(f"there is no platform {platform!r}: {known_names(platform, list(SETTINGS))}")
    return text


class TournamentRunRequest(ForecastingRequest):
    """Take part in a tournament: forecast the open questions you have not answered, and submit the forecasts.

    TOURNAMENT is metaculus:SLUG, forecastbench or forecastbench:DATE, prophet-arena:weekly or prophet-arena:live. You
    can run it as often as you like, for example every 20 minutes from a scheduler: only one process works on a
    tournament at a time, answered questions are skipped, and nothing is paid for or sent twice, even after a crash.

      foretell practice -- foretell tournament run metaculus:minibench   # no key needed

      foretell tournament run metaculus:minibench --budget 1 --set tournament.budget=50

      foretell tournament run forecastbench --set tournament.organization="My team"

    Settings of a tournament are in the section `tournament` of the settings file, or given by --set
    tournament.KEY=VALUE. Keys of all platforms: budget (for the whole tournament). Metaculus: update_after (days),
    before_close (hours), comment (private or public). Prophet Arena: update_after, before_close, agent, reasons.
    ForecastBench: organization, entry (the name on the leaderboard), model_organization, file_number, reasoning,
    incomplete, folder, bucket, past_rounds, stop_before (minutes), when_open, overwrite,
    accept_stale.

    ForecastBench: a round is open on its due date, in UTC. Without a model, `model_free` answers every question for
    free, from prices, series and the outcomes of earlier rounds. With a model, agents answer too, and both are
    combined. If money or time runs out, the answer of `model_free` is used, so the file is always complete.

    Keys: METACULUS_TOKEN or ARENA_API_KEY, and your model's key. Uploading to ForecastBench needs tournament.bucket and
    FORECASTBENCH_TOKEN, an access token such as `gcloud auth print-access-token` prints; without them, you upload the
    file. `foretell init bot` writes a repository that takes part on GitHub.
    """

    SETTING_KEYS: ClassVar[Mapping[str, str]] = {**ForecastingRequest.SETTING_KEYS, "trials": "trials"}
    tournament: str = setting(help="The platform, and which tournament of it.", argument=True, max_length=100)
    trials: int | None = setting(None, "Trials per question (default: 1).", ge=1, le=50)
    plan: bool = setting(False, "Only show the questions, the cost and the time.")
    dry_run: bool = setting(False, "Forecast, print what would be sent, and send nothing.")
    sandbox: bool = setting(
        False,
        "Try it where it does not count: in the testing area of Metaculus, or on a past round of ForecastBench as of "
        "its due date, of which nothing is sent.",
    )
    limit: int | None = setting(None, "Maximum number of questions; those that close first come first.", ge=1)
    summary: Path | None = setting(
        None, "Append the day's summary to this file, as Markdown.", metavar="FILE", env="GITHUB_STEP_SUMMARY"
    )
    include_fallback: bool = INCLUDE_FALLBACK
    accept_stale: bool = setting(False, "Send a round although more than a tenth of its values are stale.")

    @field_validator("tournament")
    @classmethod
    def _known_tournament(cls, text: str) -> str:
        platform, _, name = check_platform(text).partition(":")
        if platform == "metaculus" and not name:
            raise ValueError("names no tournament: write its slug or number, such as metaculus:minibench")
        if platform == "prophet-arena" and name not in ("", "weekly", "live"):
            raise ValueError(f"there is no track {name!r}: write prophet-arena:weekly or prophet-arena:live")
        return text

    @model_validator(mode="after")
    def _fits_platform(self) -> Any:
        if self.limit is not None and self.platform == "forecastbench":
            raise InputError("has no effect on ForecastBench, which ranks whole rounds", column="--limit")
        if self.accept_stale and self.platform != "forecastbench":
            raise InputError("has an effect only on ForecastBench", column="--accept-stale", hint="leave it out")
        if self.sandbox and self.platform == "prophet-arena":
            raise InputError("Prophet Arena has no testing area", column="--sandbox", hint="--dry-run sends nothing")
        return self

    @property
    def platform(self) -> str:
        """The platform: metaculus, forecastbench or prophet-arena."""
        return self.tournament.partition(":")[0]

    @property
    def name(self) -> str:
        """The slug, due date or track; empty if none was given."""
        return self.tournament.partition(":")[2]

    def settings(self, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the settings of the run, without the section `tournament`."""
        _, others = split_section(self.set, SECTION)
        for name in others:
            if name.partition(".")[0] in ("questions", "mode"):
                raise InputError("the questions come from the tournament", column=f"--set {name}", hint="leave it out")
            if name in SETTINGS[self.platform].model_fields and name != "budget":
                hint = f"did you mean {SECTION}.{name}?"
                raise InputError("there is no such setting", column=f"--set {name}", hint=hint)
        return ForecastingRequest.settings(self.model_copy(update={"set": others}), base)

    @property
    def model_free(self) -> bool:
        """Whether questions are to be answered without a model although one may be named, as in the environment."""
        return self.settings().get("forecaster") == MODEL_FREE

    def unused_without_model(self) -> str | None:
        """Return a setting that has no effect without a model, or None."""
        used = [flags(name, type(self).model_fields[name])[-1] for name in self.SETTING_KEYS if self._is_set(name)]
        # Ignore an engine that is only set in the environment, and a file whose model is switched off.
        stated = split_section(self.set, SECTION)[1] if self.no_model else self.settings()
        needed = ("concurrency", "search", *(("forecaster", "models") if self.model_free else ()))
        used += [name for name in stated if name not in needed]
        return used[0] if used else None

    def section(self, kind: type[Keys]) -> Keys:
        """Return the section `tournament`: that of the file, changed by `set`."""
        from foretell.runs.spec import read_changes, read_section_of

        known = [name for name in kind.model_fields if name != "window"]
        stored = {} if self.config is None else read_section_of(self.config, SECTION)
        try:
            read_section(kind, stored, known, self.platform)
        except InputError as error:
            raise error.at(path=self.config) from None
        return read_section(kind, {**stored, **read_changes(split_section(self.set, SECTION)[0])}, known, self.platform)


class TournamentResultsRequest(OperationRequest):
    """Score the rounds and tournaments you took part in, next to public methods.

    Shows every score with its interval (resampling resolution days and questions), the share answered, and the rows
    market price, base rate and 0.5. Outcomes are updated first, unless the network is switched off. For public
    ForecastBench methods, --methods takes files as teams send them, a folder of them, the published archive
    (forecast_sets.tar.gz), or a table; the default is forecast_sets next to the pulled rounds.

      foretell tournament results forecastbench --methods forecast_sets.tar.gz --by source,horizon
    """

    tournament: str | None = setting(
        None, "Only this platform, or this round or tournament of it.", argument=True, metavar="[PLATFORM[:ROUND]]"
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
    bootstrap: Bootstrap = BOOTSTRAP

    @field_validator("tournament")
    @classmethod
    def _known_tournament(cls, text: str | None) -> str | None:
        return text and check_platform(text)


# Submitting.


class SubmitRequest(OperationRequest):
    """Submit the forecasts of RUN, or of a FILE of forecasts.

    A forecast that was already submitted is not sent again. Every forecast is recorded in a ledger (foretell ledger)
    before it is sent, and again when the platform accepts it. Look first, then send:

      foretell submit RUN --to metaculus --comment --dry-run

      foretell submit RUN --to metaculus --comment --yes

    You need a key: METACULUS_TOKEN, or ARENA_API_KEY for Prophet Arena. For ForecastBench, a file is written, checked
    against the round's question set. With tournament.bucket and FORECASTBENCH_TOKEN it is uploaded to your team's
    folder; without them, you upload it. With --out the file is only written: any run on the round can be used, also a
    backtest or a closed round, and nothing is recorded as sent.

      foretell submit RUN --to forecastbench --set tournament.organization="My team" --out forecasts.json

    --set combine=RULE changes how trials are combined (default: the run's own rule). Keys of tournament for
    ForecastBench: organization, entry (the name on the leaderboard), model_organization, file_number, reasoning,
    incomplete, folder, bucket. Prophet Arena: agent, window (the round of the event; default: the open one).
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {
        "to=metaculus": "post clip",
        "to=metaculus or to=prophet-arena": "comment",
    }
    source: str = setting(help="Id of a run, or a file of forecasts.", argument=True, metavar="RUN|FILE")
    to: str = setting(
        help="The platform: metaculus, prophet-arena or forecastbench; forecastbench:DATE if there are several rounds.",
        metavar="PLATFORM",
    )
    include_fallback: bool = INCLUDE_FALLBACK
    comment: Literal["private", "public"] | None = setting(
        None, "Also send the reasons; on Metaculus as a comment, private by default.", alone="private"
    )
    clip: bool = setting(False, "Change probabilities that the platform does not accept to the nearest allowed value.")
    questions: tuple[str, ...] = setting((), "Only this question; may be repeated.", flag="--question", metavar="ID")
    post: str | None = setting(None, "Metaculus: the post that the run's only question answers.", metavar="POST")
    resend: bool = setting(False, "Send forecasts again that were already sent.")
    dry_run: bool = setting(False, "Print exactly what would be sent, and send nothing.")
    yes: bool = setting(False, "Send without asking.")
    set: Mapping[str, Any] = setting(
        {}, "Set combine or a key of tournament; may be repeated.", metavar="KEY=VALUE", group="settings"
    )
    out: Path | None = setting(None, "ForecastBench: only write the file, to this path.", metavar="FILE")

    @field_validator("to")
    @classmethod
    def _known_platform(cls, text: str) -> str:
        if ":" in check_platform(text) and not text.startswith("forecastbench:"):
            raise ValueError("names the platform only, unless it is forecastbench:DATE")
        return text

    @model_validator(mode="after")
    def _fits_platform(self) -> Any:
        keys = [f"{SECTION}.{key}" for key in SUBMISSION_KEYS[self.platform]]
        for name in split_section(self.set, SECTION)[1]:
            if name != "combine":
                raise InputError(
                    "there is no such setting", column=f"--set {name}", hint=known_names(name, ["combine", *keys])
                )
        self.section(SETTINGS[self.platform])
        if self.out is None:
            return self
        if self.platform != "forecastbench":
            raise InputError("has no effect without --to forecastbench", column="--out", hint="leave it out")
        unused = [
            flags(name, type(self).model_fields[name])[-1]
            for name in ("resend", "dry_run", "yes")
            if self._is_set(name)
        ]
        unused += [f"--set {name}" for name in ("tournament.folder", "tournament.bucket") if name in self.set]
        if unused:
            raise InputError("has no effect with --out, which sends nothing", column=unused[0], hint="leave it out")
        return self

    @property
    def platform(self) -> str:
        """The platform: metaculus, forecastbench or prophet-arena."""
        return self.to.partition(":")[0]

    @property
    def round(self) -> str | None:
        """The due date of the round of ForecastBench, if one is named."""
        return self.to.partition(":")[2] or None

    @property
    def combine(self) -> str | None:
        """How trials are combined; None for the run's own rule."""
        return self.set.get("combine")

    def section(self, kind: type[Keys]) -> Keys:
        """Return the keys of `tournament` that `set` has."""
        from foretell.runs.spec import read_changes

        values, known = read_changes(split_section(self.set, SECTION)[0]), SUBMISSION_KEYS[self.platform]
        return read_section(kind, values, known, self.platform)


class LedgerRequest(OperationRequest):
    """List what was submitted and what happened to it, and the hash of the last entry.

    Save the last line, NUMBER:HASH, elsewhere. Later you can verify with it that no entry up to there was changed or
    removed:

      foretell ledger --verify

      foretell ledger --verify 12:9f86d081884c
    """

    verify: str | None = setting(
        None,
        "Check every entry and name the first that was changed, removed or moved. With a NUMBER:HASH that you saved, "
        "also check that nothing was removed at the end.",
        metavar="[NUMBER:HASH]",
        alone="all",
    )
    platform: str | None = setting(None, "Only entries of this platform.")
    last: int | None = setting(None, "Only the last N entries.", metavar="N", ge=1)
    file: Path | None = setting(None, "Another ledger file.", metavar="FILE")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for name in ("platform", "last"):
            if self.verify is not None and getattr(self, name) is not None:
                raise InputError("has no effect with --verify: the whole ledger is checked", column=f"--{name}")
        return self


class ArenaRequest(OperationRequest):
    """An arena, by its file."""

    file: Path = setting(Path(), "The arena's file, or its folder.", argument=True, metavar="[ARENA]")


ArenaStage = Literal["collect", "context", "forecast", "resolve"]


class ArenaRunRequest(ArenaRequest):
    """Keep an arena going: collect events, forecast them on schedule, look up outcomes. Ctrl-C ends it.

    You can start it several times, also on other machines with a shared database: each step is done only once. You can
    stop it at any time: the next start continues and pays for no reply twice. The stages:

    collect: read the platforms' open events, select new ones by the arena's rules, and update those already selected.

    context: for every event that is due, store fresh prices and the sources that all entries will see.

    forecast: let every entry forecast the events that are ready and that it has not answered yet.

    resolve: look up the outcomes of events that have closed.

      foretell arena run my-arena

      foretell arena run my-arena --sandbox

      foretell arena run --once --stage collect --stage context
    """

    once: bool = setting(False, "Do what is due now, then exit; a stage that you name is done even if it is not due.")
    stages: tuple[ArenaStage, ...] = setting((), "Only this stage; may be repeated.", flag="--stage")
    entries: tuple[str, ...] = setting(
        (), "Only forecasts of this entry; may be repeated.", flag="--entry", metavar="NAME"
    )
    sandbox: bool = setting(
        False,
        'Do every stage once in a separate arena, named like yours plus "-sandbox": real events and real answers that '
        "do not count.",
    )
    where: Literal["auto", "here"] = setting(
        "auto", "With a shared database: answer in this process (here) instead of using its workers (auto)."
    )
    concurrency: int = setting(50, "How many forecasts to make at the same time.", ge=1, le=2000)

    @model_validator(mode="after")
    def _forecasts(self) -> Self:
        if self.stages and "forecast" not in self.stages:
            for name, flag in (("entries", "--entry"), ("where", "--where"), ("concurrency", "--concurrency")):
                if self._is_set(name):
                    raise InputError("has no effect without the stage forecast", column=flag, hint="leave it out")
        return self


class ArenaScoreRequest(ArenaRequest):
    """Rank all entries on resolved events, next to the market, the base rate and 0.5."""

    by: Columns = setting((), "Also score by category, platform or lead_time.", metavar="COLUMNS")
    shares: tuple[str, ...] = setting(
        (),
        "Also the Brier score with these shares of categories, which sum to 1; other is every category that is not "
        "named. May be repeated.",
        metavar="CATEGORY=SHARE,...",
    )
    bootstrap: Bootstrap = BOOTSTRAP


class ArenaShowRequest(ArenaRequest):
    """Show what is open, done and missed, when the next forecasts are due, and what was spent; or one EVENT.

    EVENT is the id of an event, or the end of it: kalshi/KXFED-26DEC or KXFED-26DEC. Its prices, every forecast and the
    outcome are shown. A single argument that is neither a file nor a folder is an EVENT of the arena in this folder.

      foretell arena show

      foretell arena show KXFED-26DEC

      foretell arena show my-arena KXFED-26DEC
    """

    event: str | None = setting(None, "Id of an event, or the end of it.", argument=True, metavar="[EVENT]")

    @model_validator(mode="before")
    @classmethod
    def _alone(cls, values: Any) -> Any:
        """Treat a single argument that is not a path as an event."""
        if isinstance(values, dict) and "file" in values and values.get("event") is None:
            fields = cast("dict[str, Any]", values)
            if not Path(fields["file"]).exists() and Path(fields["file"]).suffix not in (".yaml", ".yml"):
                return {**fields, "file": Path(), "event": str(fields["file"])}
        return cast("Any", values)
