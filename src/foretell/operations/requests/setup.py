"""Requests to set up and try foretell: servers, settings files, the demo, models, services, the doctor."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from foretell.questions.errors import InputError
from foretell.request import OperationRequest, setting


class DemoRequest(OperationRequest):
    """See everything in a minute: a scored backtest, an agent's research, a tree of claims and a month of an arena.

    Needs no key and no network. The backtest is real: 400+ questions about series that ship with statsmodels (El Niño
    sea temperature, CO₂, the US economy, sunspots, …), answered as of their dates. The other parts are marked as
    examples: scripted replies, made-up news, a simulated market. The results are saved apart from your own data;
    --open shows them in your browser. With a folder, --out writes the tables of the backtest.

    --arena simulates a larger month of an arena instead. A simulated exchange lists made-up events with the prices of
    imperfect traders; scripted models and forecasters without a model take part. The true probabilities of a simulated
    world are known: one row of the leaderboard shows them.
    """

    open: bool = setting(False, "Open it in a browser, until Ctrl-C; created only if it does not exist yet.")
    arena: bool = setting(False, "Only a month of an arena, with more events.")
    questions: int | None = setting(None, "Only the first N questions of the backtest, for a quick look.", ge=2)

    @model_validator(mode="after")
    def _arena_has_no_backtest(self) -> Self:
        if self.arena and self.questions is not None:
            raise InputError("has no effect with --arena", column="--questions", hint="leave one of them out")
        return self


class ServeRequest(OperationRequest):
    """Open foretell in a browser: ask questions, watch runs, explore trees and leaderboards.

    Only this machine can reach it unless you set --host. To spend money or save changes, open the printed link: it
    contains the access token. Everything is also available as JSON, see /openapi.json.

    --static writes the pages into a folder instead. Open them from disk or put them on any web server; what-if on trees
    still works.

      foretell serve --static public --only run:autumn --only arena:main
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"static": "only"}
    host: str = setting("127.0.0.1", "Address to listen on. With any other address, every request needs the token.")
    port: int = setting(8400, "Port to listen on; 0 picks a free one.", ge=0, le=65535)
    token: str | None = setting(
        None,
        "Access token for spending money and saving changes; by default, a new one is printed.",
        env="FORETELL_TOKEN",
    )
    open: bool = setting(False, "Open a browser.")
    static: Path | None = setting(None, "Write the pages into this folder and end.", metavar="FOLDER")
    only: tuple[str, ...] = setting(
        (), "With --static: only this run, tree or arena; may be repeated.", metavar="KIND:NAME"
    )

    @model_validator(mode="after")
    def _check_static(self) -> Self:
        ignored = [name for name in ("host", "port", "token", "open") if self._is_set(name)]
        if self.static is not None and ignored:
            raise InputError("has no effect with --static", column=f"--{ignored[0]}", hint="leave one of them out")
        for chosen in self.only:
            kind, colon, name = chosen.partition(":")
            if kind not in ("run", "tree", "arena") or not colon or not name:
                hint = "write run:NAME, tree:NAME or arena:NAME"
                raise InputError(f"{chosen!r} names no run, tree or arena", column="--only", hint=hint)
        return self


class McpRequest(OperationRequest):
    """Make foretell available to AI assistants over the Model Context Protocol.

    Spends nothing unless you allow it:

      foretell mcp --allow-spending 2 --model openai:NAME --search brave --files ~/forecasts

    The limit is for all calls of this process together. With --http, every request needs the token in FORETELL_TOKEN;
    without one, a token is generated and printed.
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"http": "port"}
    allow_spending: float | None = setting(
        None, "Hard limit in dollars for all calls together.", metavar="DOLLARS", ge=0
    )
    models: tuple[str, ...] = setting(
        (),
        "A model that assistants may use, as provider:name, the default one first (default: FORETELL_MODEL).",
        flag="--model",
    )
    search: tuple[str, ...] = setting(
        (), "A search engine that assistants may use (default: FORETELL_SEARCH, or else local)."
    )
    files: tuple[Path, ...] = setting((), "Allow reading tables and trees in this folder.", metavar="FOLDER")
    http: bool = setting(False, "Serve on http://127.0.0.1 instead of standard input and output.")
    port: int = setting(8766, "Port with --http; 0 picks a free one.", ge=0, le=65535)


BotPlatform = Literal["metaculus", "forecastbench", "prophet-arena"]


class BotSettings(OperationRequest):
    """What a bot takes part in, and how; all but its folder, platform and budget are keys of `init bot --set`."""

    ONLY_WITH: ClassVar[Mapping[str, str]] = {
        "platform=forecastbench": "organization bucket",
        "platform=metaculus or platform=prophet-arena": "tournament interval",
        "model or platform=metaculus or platform=prophet-arena": "search trials tournament_budget",
    }
    folder: Path = setting(Path(), "Folder for the bot.")
    platform: BotPlatform = setting("metaculus", "The platform.", flag="--for")
    budget: float = setting(1.0, "Hard limit in dollars for one run.", ge=0.01)
    tournament: str = setting("", "Metaculus tournament, or Prophet Arena track.", flag="--set tournament")
    organization: str = setting("", "Your team on ForecastBench.", flag="--set organization", max_length=200)
    bucket: str | None = setting(None, "The folder on ForecastBench to upload to.", flag="--set bucket")
    model: str = setting("", "Model, as provider:name, with a known price.", flag="--set model")
    search: tuple[str, ...] = setting(("gdelt",), "Search engines; gdelt needs no key.", flag="--set search")
    tournament_budget: float = setting(
        50.0, "Hard limit in dollars for the whole tournament.", flag="--set tournament_budget", ge=0.01
    )
    interval: int = setting(20, "Minutes between two runs.", flag="--set interval", ge=5, le=1440)
    trials: int = setting(3, "Trials per question.", flag="--set trials", ge=1, le=20)
    install: str | None = setting(
        None, "Where the bot installs foretell from: a git address or a wheel.", flag="--set install"
    )


class ArenaFileSettings(OperationRequest):
    """Keys of `init arena --set`."""

    name: str = setting("", "Name of the arena (default: the name of its folder).")


class InitRequest(OperationRequest):
    """Create a settings file for a run, a grid or an arena, or a repository for a bot.

    The files work as they are, without a key, and every field is explained. The first line names a JSON schema, written
    next to it, so that your editor can complete and check what you type.

      foretell init run

      foretell init arena my-arena --set name=autumn

    A bot takes part in a tournament by itself, on GitHub. It needs two secrets, the platform's and the model's key, and
    spends no more than its budget. README.md in its folder explains the rest.

      foretell init bot my-bot --budget 2 --set tournament=minibench

      foretell init bot my-bot --for forecastbench --set organization="My team" --set bucket=gs://BUCKET/FOLDER

    Settings of a bot: tournament (Metaculus tournament by slug or number, default minibench; Prophet Arena track,
    weekly or live), organization and bucket (ForecastBench: your team as registered, the folder to upload to), model
    (default openrouter:openai/gpt-6-luna; ForecastBench: none), search=gdelt, tournament_budget=50, interval=20
    (minutes between two runs), trials=3, install (a git address or a wheel; default: this installation, packed into a
    wheel).
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"kind=bot": "platform", "kind=bot or kind=arena": "set"}
    kind: Literal["run", "grid", "arena", "bot"] = setting(help="What to create.", argument=True, metavar="KIND")
    path: Path | None = setting(
        None, "The file, or the folder of an arena or a bot (default: here).", argument=True, metavar="[PATH]"
    )
    platform: BotPlatform = setting("metaculus", "Platform of a bot.", flag="--for")
    budget: float | None = setting(
        None, "Hard limit in dollars; for a bot, of one run (default: 1).", metavar="DOLLARS", ge=0.01
    )
    force: bool = setting(False, "Overwrite existing files.")
    set: Mapping[str, Any] = setting({}, "A setting of a bot or an arena; may be repeated.", metavar="KEY=VALUE")


class PracticeRequest(OperationRequest):
    """Start practice on this machine: no key, no network, no cost.

    It has models, search engines, web pages, Wikipedia, series, markets, deep research, and inboxes that act like
    Metaculus, Prophet Arena and ForecastBench. Run one command in it, also a bot:

      foretell practice -- foretell ask "Will Norges Bank cut its rate before 2027?"

    Or open a shell in it, and leave it with exit:

      foretell practice -- bash

    What was sent to a tournament is counted at the end and saved in practice/inbox.jsonl in FORETELL_HOME, one line for
    each forecast, comment and file. Runs are saved in the same folder, apart from your own; delete the folder to start
    again.

    Without a command, it runs until Ctrl-C and prints the lines to use in other shells. Its data is small and made up,
    and its models know nothing: it shows how things work, not how good forecasts are.
    """

    port: int = setting(0, "First of 15 consecutive ports (default: free ones).", metavar="PORT", ge=0, le=65520)
    latency: float = setting(0.0, "Delay of every response.", metavar="SECONDS", ge=0)
    env_file: Path | None = setting(None, "Also write the lines to this file.", metavar="FILE")
    command: tuple[str, ...] = setting((), "A command to run in it.", argument=True, metavar="[COMMAND]...")


class ModelsListRequest(OperationRequest):
    """List the known models and those you used: prices, knowledge cutoffs, abilities, and what they cost you so far.

    Models that you can use now come first. You can use any other model of a provider by its name, too. With --json, the
    list also says in how many of your runs a model was the agent, and their Brier index on resolved questions.
    """

    provider: str | None = setting(None, "Only models of this provider.", metavar="NAME", max_length=40)
    usable: bool = setting(False, "Only models that need no key or whose key is set.")
    find: str = setting("", "Only models whose name contains this text.", metavar="TEXT", max_length=100)
    update: str | None = setting(
        None, "First install a newer table of models from a file or https address, in the format of known_models.toml; "
        "its entries take precedence over those in the package.", metavar="FILE|URL", min_length=1, max_length=2000,
    )  # fmt: skip


class ModelsCheckRequest(OperationRequest):
    """Test MODEL with five short requests: does it answer, call tools, continue after them, follow a schema?

    The result is stored and used by later runs. This costs a few hundred tokens.

      foretell models check compat:qwen3:8b@http://localhost:11434/v1
    """

    model: str = setting(help="Model, as provider:name.", argument=True, min_length=1, max_length=300)
    seconds: float = setting(120.0, "Longest wait for one reply.", gt=0)


class DoctorRequest(OperationRequest):
    """Check your set-up: what works, what is missing, what is wrong, and how to fix it.

    Checks installed extras, API keys (never printed), sandbox, databases, settings, clock, disk and versions. Uses no
    network unless you ask for it. The exit code is 1 if something is wrong. A damaged database is named, with how to
    restore it.

      foretell doctor --contact you@example.org

    --services lists the outside services with key, rate limit, last success and last error; with a name, one of them
    with its limits and their source. With --online, it sends one to three cheap requests to each, with the adapters
    that a run uses. You can paste that table into an issue: it contains no keys.

      foretell doctor --online --services fred
    """

    online: bool = setting(False, "Also send one cheap request to every service you set up, and compare clocks.")
    repair: bool = setting(
        False,
        "Repair what is safe to repair: move edited replies and answers to a separate file, compute answers again from "
        "stored replies, rebuild indexes and accounts.",
    )
    contact: str | None = setting(
        None,
        "Your e-mail or web address; stored, and sent to services that ask who sends a request.",
        metavar="ADDRESS",
        max_length=200,
    )
    services: str | None = setting(
        None, "List the outside services, or only this one; with --online, check them.",
        alone="all", metavar="[NAME]", max_length=40,
    )  # fmt: skip
