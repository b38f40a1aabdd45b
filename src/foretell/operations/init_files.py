"""Commented files to start from, each with a JSON schema so that editors can complete and check it."""

import hashlib
import io
import json
import re
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from importlib.metadata import distribution
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any, Literal

from foretell.data.files import write_atomically
from foretell.frozen import frozen
from foretell.models.names import ModelName
from foretell.models.prices import PriceList
from foretell.number_text import plural
from foretell.operations.requests.setup import ArenaFileSettings, BotSettings, InitRequest
from foretell.patterns import pattern
from foretell.plugins import NO_CHOICE
from foretell.questions.errors import InputError, MissingExtra
from foretell.report.result import Result
from foretell.runs.services import SEARCH_ENGINES
from foretell.runs.set_names import TOURNAMENT_PREFIX, Tournament
from foretell.runs.settings import KEYS
from foretell.tournaments.forecastbench import BucketFolder

SchemaKind = Literal["run", "arena", "grid"]


def spec_schema(kind: SchemaKind) -> dict[str, Any]:
    """Return the JSON schema of a file, made from the types that read it and their short forms."""
    if kind == "arena":
        from foretell.arena.spec import ArenaSpec

        schema = _schema(ArenaSpec)
        entry = schema["$defs"]["EntrySpec"]
        entry["properties"]["model"] = {"type": "string", "description": "Short for models: {agent: NAME}."}
        entries = schema["properties"]["entries"]
        entries["additionalProperties"] = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/EntrySpec"}]}
        return schema
    from foretell.runs.spec import DERIVED_SETTINGS, RunSpec

    run = _schema(RunSpec)
    for name in DERIVED_SETTINGS:
        del run["properties"][name]
    questions = run["properties"]["questions"]
    run["properties"]["questions"] = {
        "description": "Which questions to ask: a question set by name or a file, or its fields.",
        "anyOf": [{"type": "string"}, questions],
    }
    run["properties"]["tournament"] = {
        "description": "Settings of foretell tournament run: budget, organization, bucket, update_after, …",
        "type": "object",
    }
    run["required"] = []  # A part of a grid, and what `foretell tournament run` reads, have none of their own.
    if kind == "run":
        return run
    named = {"type": "object", "additionalProperties": True}
    parts: dict[str, Any] = {
        "name": {"type": "string", "description": "The name that foretell grid lists."},
        "base": {**named, "description": "What all runs share: the fields of a run.", "properties": run["properties"]},
        "factors": {
            **named,
            "description": "What varies: a list of levels, or levels by name that set several fields.",
            "additionalProperties": {"anyOf": [{"type": "array"}, {"type": "object"}]},
        },
        "also": {"type": "array", "items": named, "description": "Runs in addition to the combinations of factors."},
        "without": {"type": "array", "items": named, "description": "Combinations to leave out."},
        "budget": {"type": "number", "exclusiveMinimum": 0, "description": "Dollars for all runs together."},
    }
    return {**run, "title": "Grid", "description": "An experiment as a file.", "properties": parts}


def _schema(kind: type) -> dict[str, Any]:
    from pydantic import ConfigDict, TypeAdapter, with_config

    read = with_config(ConfigDict(extra="forbid", use_attribute_docstrings=True))(kind)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TypeAdapter(read).json_schema()}


def schema_text(kind: SchemaKind) -> bytes:
    """Return the schema as the content of a file."""
    return (json.dumps(spec_schema(kind), indent=1, ensure_ascii=False) + "\n").encode()


def write_commented(file: Path, text: str, kind: SchemaKind) -> Path:
    """Write a file that names its schema in the first line, and the schema next to it; return the schema's path."""
    schema = file.with_name(f"{kind}.schema.json")
    write_atomically(schema, schema_text(kind))
    write_atomically(file, f"# yaml-language-server: $schema={schema.name}\n{text}".encode())
    return schema


@frozen
class InitResult(Result):
    """The files that were written, and what to do next."""

    files: tuple[Path, ...]
    next: str

    def __str__(self) -> str:
        return "\n".join([*(f"Wrote {path}" for path in self.files), f"Next: {self.next}"])


def init(request: InitRequest) -> InitResult:
    """Write a commented settings file, or the repository of a bot.

    Raises InputError, before anything is written, if a file exists (unless it may be overwritten) or a choice cannot
    work.
    """
    return _init_bot(request) if request.kind == "bot" else _init_file(request, request.kind)


NEXT_STEPS = {"run": "foretell run {}", "grid": "foretell grid {} --plan", "arena": "foretell arena run {}"}


def _init_file(request: InitRequest, kind: SchemaKind) -> InitResult:
    file = request.path or Path("" if kind == "arena" else f"{kind}.yaml")
    if kind == "arena" and file.suffix not in (".yaml", ".yml"):
        file = file / "arena.yaml"
    file = file if file.suffix else file.with_suffix(".yaml")
    _refuse_existing([file], request)
    text = (files("foretell.operations") / "templates" / f"{kind}.yaml").read_text(encoding="utf-8")
    if kind == "arena":
        chosen = ArenaFileSettings.from_settings(request.set)
        text = Template(text).substitute(name=chosen.name or default_arena_name(file))
    if request.budget is not None:
        limit = f"{{ run: {request.budget:g} }}" if kind == "run" else f"{request.budget:g}"
        text = re.sub(r"^# budget: [^#\n]*", f"budget: {limit} ", text, count=1, flags=re.MULTILINE)
    schema = write_commented(file, text, kind)
    return InitResult(files=(file, schema), next=NEXT_STEPS[kind].format(file.parent if kind == "arena" else file))


def _refuse_existing(paths: Iterable[Path], request: InitRequest) -> None:
    for path in paths:
        if path.exists() and not request.force:
            raise InputError("already exists", path=path, hint="choose another name, or overwrite it with --force")


def default_arena_name(file: Path) -> str:
    """Return an arena's name from the path of its file.

    >>> default_arena_name(Path("/srv/My Arena/arena.yaml")), default_arena_name(Path("/srv/x/cup.yaml"))
    ('my-arena', 'cup')
    """
    name = file.resolve().parent.name if file.stem == "arena" else file.stem
    return re.sub(r"[^a-z0-9_-]+", "-", name.casefold()).strip("-_") or "arena"


# The files of a bot, made from templates.


BOT_FILES = {
    "README.md": "README.md",
    "bot.yaml": "bot.yaml",
    "bot.sh": "bot.sh",
    "requirements.txt": "requirements.txt",
    "gitignore": ".gitignore",
    "forecast.yml": ".github/workflows/forecast.yml",
    "test_bot.py": "tests/test_bot.py",
}
"""Template → its path in the bot's repository."""
SUNDAYS = "7 1,5,9,13,17,21 * * 0"
"""Rounds of ForecastBench are due every other Sunday; on the other Sundays there is nothing to do."""
USUAL_MODEL, USUAL_BUDGET = "openrouter:openai/gpt-6-luna", 1.0
GOOGLE_KEY = "GOOGLE_SERVICE_ACCOUNT_KEY"
USUAL_TOURNAMENT = {"metaculus": "minibench", "prophet-arena": "weekly", "forecastbench": ""}
WORDS: dict[str, dict[str, str]] = {
    "metaculus": {
        "LOOK": "--dry-run --limit 1 --trials 1",
        "TEST": "--sandbox",
        "TEST_HELP": "In the testing area instead of the tournament",
    },
    "prophet-arena": {
        "LOOK": "--dry-run --limit 1 --trials 1",
        "TEST": "--dry-run",
        "TEST_HELP": "Forecast, and send nothing",
    },
    "forecastbench": {
        "LOOK": "--plan",
        "TEST": "--sandbox",
        "TEST_HELP": "The newest past round as of its day; nothing is sent",
    },
}
"""What differs between platforms in the workflow."""
WHEELS = "wheels"
"""The folder for a wheel in the bot's repository."""
FIELD_MEANINGS = {
    "metaculus": "the token of the bot's account on Metaculus",
    "prophet_arena": "the key of your agent on Prophet Arena",
    "openrouter": "a key of OpenRouter, which pays for the model",
}
FIRST_MINUTE = 7
"""Minutes past the hour: GitHub starts workflows late on the full hour."""
HOUR, DAY = 60, 1440
_MARK = pattern(r"@@([A-Z_]+)@@")


def with_usual_choices(request: BotSettings) -> BotSettings:
    """Fill in the usual choices for the platform."""
    bench = request.platform == "forecastbench"
    return request.model_copy(
        update={
            "model": "" if request.model == NO_CHOICE else request.model or ("" if bench else USUAL_MODEL),
            "tournament": request.tournament or USUAL_TOURNAMENT[request.platform],
        }
    )


def check_choices(request: BotSettings) -> None:
    """Refuse choices that cannot work on GitHub or within the budget."""
    if request.platform == "metaculus":
        Tournament.read(TOURNAMENT_PREFIX + request.tournament)
    elif request.platform == "prophet-arena" and request.tournament not in ("weekly", "live"):
        raise InputError(f"{request.tournament!r} is not a track", column="--set tournament", hint="weekly or live")
    elif request.platform == "forecastbench":
        if not request.organization:
            raise InputError("is needed: your team, as registered", column="--set organization")
        try:
            BucketFolder.read(request.bucket or "gs://bucket/folder", "2026-01-01")
        except InputError as error:
            raise error.at(column="--set bucket") from None
    if request.budget > request.tournament_budget:
        hint = f"the whole tournament may cost {request.tournament_budget:g}; raise --set tournament_budget"
        raise InputError("is more than the tournament may cost", column="--budget", hint=hint)
    if HOUR % request.interval and (request.interval % HOUR or DAY % request.interval):
        problem = f"{request.interval} minutes divide neither the hour nor the day"
        raise InputError(
            problem, column="--set interval", hint="5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440"
        )
    engines = [name for name in SEARCH_ENGINES if name != "local"]
    if unknown := [name for name in request.search if name not in engines]:
        hint = f"engines are {', '.join(engines)}"
        raise InputError(f"a bot cannot search with {unknown[0]!r}", column="--set search", hint=hint)
    if request.model or request.platform != "forecastbench":
        _check_model(request.model)


def _check_model(model: str) -> None:
    if ModelName.read(model).provider not in KEYS:
        raise InputError(f"{model} cannot be reached from GitHub", column="--set model", hint="openrouter:NAME")
    if PriceList().of(model) is None:
        if find_spec("genai_prices") is None:
            raise MissingExtra("knowing what the bot's model costs", "llm")
        hint = "choose one that is priced: a budget in dollars cannot be enforced otherwise"
        raise InputError(f"the price of {model} is not known", column="--set model", hint=hint)


def bot_secrets(request: BotSettings) -> dict[str, str]:
    """Map variable → what it holds."""
    bench = request.platform == "forecastbench"
    own = {GOOGLE_KEY: "the key of a Google service account that may upload for your team, as JSON"} if bench else {}
    services = [] if bench else [request.platform.replace("-", "_")]
    services += [ModelName.read(request.model).provider, *request.search] if request.model else []
    return own | {
        KEYS[service][0]: FIELD_MEANINGS.get(service, f"a key of {service}")
        for service in dict.fromkeys(services)
        if service in KEYS
    }


def cron(minutes: int) -> str:
    """Return the schedule for GitHub, as a cron expression.

    >>> cron(20), cron(360), cron(1440)
    ('7,27,47 * * * *', '7 */6 * * *', '7 6 * * *')
    """
    if minutes < HOUR:
        return f"{','.join(str(minute) for minute in range(FIRST_MINUTE % minutes, HOUR, minutes))} * * * *"
    return f"{FIRST_MINUTE} */{minutes // HOUR} * * *" if minutes < DAY else f"{FIRST_MINUTE} 6 * * *"


# Where the bot installs foretell from.


@frozen
class BotInstallation:
    """A requirement for pip, and the wheel that it names, if any."""

    line: str
    wheel: tuple[str, bytes] | None = None
    """Name and content."""


def installation(source: str | None) -> BotInstallation:
    """Return how the bot installs foretell.

    >>> installation("https://git.example/forecasts/foretell").line
    'foretell[llm] @ git+https://git.example/forecasts/foretell'
    """
    if source is not None and not source.endswith(".whl"):
        address = source.partition("@ ")[2] or source
        if "://" not in address:
            hint = "such as git+https://HOST/OWNER/foretell or dist/foretell-0.3.0-py3-none-any.whl"
            raise InputError(f"{source!r} is neither a git address nor a wheel", column="--set install", hint=hint)
        return BotInstallation(line=f"foretell[llm] @ {'' if address.startswith('git+') else 'git+'}{address}")
    if source is None:
        name, content = packed_wheel()
    elif Path(source).is_file():
        name, content = Path(source).name, Path(source).read_bytes()
    else:
        raise InputError("no such file", path=Path(source), column="--set install")
    return BotInstallation(line=f"./{WHEELS}/{name}[llm]", wheel=(name, content))


def packed_wheel() -> tuple[str, bytes]:
    """Pack the running foretell into a wheel; return its name and content. The result is reproducible."""
    own, root = distribution("foretell"), Path(str(files("foretell")))
    name, facts = f"foretell-{own.version}", f"foretell-{own.version}.dist-info"
    packed = {
        f"foretell/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed |= {f"{facts}/{part}": (own.read_text(part) or "").encode() for part in ("METADATA", "entry_points.txt")}
    packed[f"{facts}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: foretell\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{path},sha256={_record_digest(content)},{len(content)}\n" for path, content in packed.items())
    packed[f"{facts}/RECORD"] = f"{record}{facts}/RECORD,,\n".encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in packed.items():
            archive.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED)
    return f"{name}-py3-none-any.whl", buffer.getvalue()


def _record_digest(content: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


# The files.


def bot_files(request: BotSettings) -> dict[str, bytes]:
    """Return every file of the bot, by path."""
    secrets, install = bot_secrets(request), installation(request.install)
    bench = request.platform == "forecastbench"
    target = f"{request.platform}:{request.tournament}" if request.tournament else request.platform
    words = WORDS[request.platform] | {
        "FIRST_SECRET": next(iter(secrets)),
        "TARGET": target,
        "SETTINGS": _bot_settings(request),
        "WHO": f"Agents with `{request.model}` answer too, for at most $"
        f"{request.budget:.2f} a round; what they do not get to is answered without a model."
        if request.model
        else "It asks no model and costs nothing.",
        "PAGES": ".foretell/tournaments/*/*.*.json" if bench else ".foretell/tournaments/*/pages/*.html",
        "NAME": request.folder.resolve().name,
        "TOURNAMENT": request.tournament,
        "MODEL": request.model,
        "MINUTES": str(request.interval),
        "CRON": SUNDAYS if bench else cron(request.interval),
        "RUN_BUDGET": f"{request.budget:.2f}",
        "TOURNAMENT_BUDGET": f"{request.tournament_budget:.2f}",
        "SECRET_ENV": "\n".join(f"          {name}: ${{{{ secrets.{name} }}}}" for name in secrets),
        "SECRET_ROWS": "\n".join(f"   | `{name}` | {meaning} |" for name, meaning in secrets.items()),
        "SECRET_COUNT": {1: "one secret", 2: "two", 3: "three", 4: "four"}.get(len(secrets), str(len(secrets))),
        "INSTALL": install.line,
    }
    files = {
        path: _MARK.sub(lambda mark: words[mark[1]], _template(name, request.platform)).encode()
        for name, path in BOT_FILES.items()
    }
    files["run.schema.json"] = schema_text("run")
    return files | ({} if install.wheel is None else {f"{WHEELS}/{install.wheel[0]}": install.wheel[1]})


def _bot_settings(request: BotSettings) -> str:
    """Return the content of bot.yaml: how the bot forecasts, and the settings of its tournament."""
    lines: list[str] = []
    if request.model:
        lines += [
            "forecaster: reason",
            f"models:\n  agent: {request.model}",
            f"search: [{', '.join(request.search)}]",
            f"trials: {request.trials}",
            "budget:",
            f"  run: {request.budget:.2f} # hard limit in dollars for one run",
            f"  question: {max(0.05, request.budget / 4):.2f} # hard limit in dollars for all trials of one question",
        ]
    else:
        lines += [f"models:\n  agent: {NO_CHOICE} # whatever FORETELL_MODEL says"]
    lines += ["tournament:"]
    if request.model:
        lines += [f"  budget: {request.tournament_budget:.2f} # hard limit in dollars for the whole tournament"]
    if request.platform == "forecastbench":
        lines += [f"  organization: {_quoted(request.organization)} # your team, as registered"]
        bucket = "# bucket: gs://BUCKET/FOLDER" if request.bucket is None else f"bucket: {_quoted(request.bucket)}"
        lines += [f"  {bucket} # the folder to upload to"]
        lines += ["  when_open: true # if no round is open today, exit successfully"]
    else:
        lines += ["  # update_after: 7 # update a forecast after so many days"]
        lines += ["  # before_close: 24 # update it once more in so many hours before the close"]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Quote a text for YAML."""
    return json.dumps(text, ensure_ascii=False)


def _template(name: str, platform: str) -> str:
    """Return the template of this platform, or the one that all platforms share."""
    folder = files("foretell.operations").joinpath("templates")
    own = folder.joinpath(f"bot_{platform.replace('-', '_')}", f"{name}.template")
    return (own if own.is_file() else folder.joinpath("bot", f"{name}.template")).read_text(encoding="utf-8")


def _init_bot(request: InitRequest) -> InitResult:
    """Write a repository that takes part in a tournament on a schedule."""
    if request.platform == "forecastbench" and request.budget is not None and not request.set.get("model"):
        raise InputError(
            "has no effect without --set model", column="--budget", hint="without a model it costs nothing"
        )
    folder = request.path or Path()
    fixed = {"folder": folder, "platform": request.platform, "budget": request.budget or USUAL_BUDGET}
    bot = with_usual_choices(BotSettings.from_settings(request.set, **fixed))
    check_choices(bot)
    files = {folder / path: content for path, content in bot_files(bot).items()}
    _refuse_existing(files, request)
    for path, content in files.items():
        write_atomically(path, content)
    (folder / "bot.sh").chmod(0o755)
    secrets = list(bot_secrets(bot))
    count = plural(len(secrets), "secret")
    return InitResult(files=tuple(files), next=f"{folder / 'README.md'}; it takes {count}, {' and '.join(secrets)}.")
