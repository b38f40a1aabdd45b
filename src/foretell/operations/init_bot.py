"""The files of a bot, made from templates."""

import re
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from foretell.data.atomic_file import write_atomically
from foretell.models.names import ModelName
from foretell.models.prices import PriceList
from foretell.operations.requests import InitBotRequest
from foretell.operations.result import Result
from foretell.questions.errors import InputError
from foretell.runs.question_sets import TOURNAMENT_PREFIX, Tournament
from foretell.runs.services import SEARCH_ENGINES
from foretell.runs.settings import KEYS

BOT_FILES = {
    "README.md": "README.md",
    "bot.yaml": "bot.yaml",
    "check.yaml": "check.yaml",
    "bot.sh": "bot.sh",
    "requirements.txt": "requirements.txt",
    "gitignore": ".gitignore",
    "forecast.yml": ".github/workflows/forecast.yml",
    "test_bot.py": "tests/test_bot.py",
}
"""Template → where it goes. Names that tools look for are given only there."""
FIELD_MEANINGS = {
    "metaculus": "the token of the bot's account on Metaculus",
    "openrouter": "a key of OpenRouter, which pays for the model",
}
MINUTE = 17
"""Past the hour: on the hour every schedule of the world is due, and GitHub is late."""
_MARK = re.compile(r"@@([A-Z_]+)@@")


def check_choices(request: InitBotRequest) -> None:
    """Refuse what could not work on GitHub, or not within the budget."""
    Tournament.read(TOURNAMENT_PREFIX + request.tournament)
    if request.budget_per_day * request.interval / 24 < 0.01:
        raise InputError("less than a cent a run", column="--budget-per-day", hint="allow more, or run less often")
    if 24 % request.interval:
        problem = f"{request.interval} hours do not divide the day"
        raise InputError(problem, column="--interval", hint="1, 2, 3, 4, 6, 8, 12")
    engines = [name for name in SEARCH_ENGINES if name != "local"]
    if unknown := [name for name in request.search if name not in engines]:
        hint = f"engines are {', '.join(engines)}"
        raise InputError(f"a bot cannot search with {unknown[0]!r}", column="--search", hint=hint)
    if ModelName.read(request.model).provider not in KEYS:
        raise InputError(f"{request.model} cannot be reached from GitHub", column="--model", hint="openrouter:NAME")
    if PriceList().of(request.model) is None:
        hint = "choose one that is priced: a budget in dollars cannot hold otherwise"
        raise InputError(f"the price of {request.model} is not known", column="--model", hint=hint)


def bot_secrets(request: InitBotRequest) -> dict[str, str]:
    """By the name of the variable: what it is."""
    services = ["metaculus", ModelName.read(request.model).provider, *request.search]
    return {
        KEYS[service][0]: FIELD_MEANINGS.get(service, f"a key of {service}")
        for service in dict.fromkeys(services)
        if service in KEYS
    }


def bot_files(request: InitBotRequest) -> dict[str, str]:
    """Every file of the bot by its path."""
    secrets, hours, day = bot_secrets(request), request.interval, request.budget_per_day
    run = int(day * hours / 24 * 100) / 100
    words = {
        "NAME": request.folder.resolve().name,
        "TOURNAMENT": request.tournament,
        "MODEL": request.model,
        "SEARCH": ", ".join(request.search),
        "TRIALS": str(request.trials),
        "HOURS": str(hours),
        "RUNS": str(24 // hours),
        "CRON": f"{MINUTE} */{hours} * * *" if hours < 24 else f"{MINUTE} 6 * * *",
        "DAY_BUDGET": f"{day:.2f}",
        "RUN_BUDGET": f"{run:.2f}",
        "QUESTION_BUDGET": f"{max(0.05, run / 4):.2f}",
        "CHECK_BUDGET": f"{min(0.25, run):.2f}",
        "SECRET_ENV": "\n".join(f"          {name}: ${{{{ secrets.{name} }}}}" for name in secrets),
        "SECRET_ROWS": "\n".join(f"   | `{name}` | {meaning} |" for name, meaning in secrets.items()),
        "VERSION": version("foretell"),
    }
    templates = files("foretell.operations").joinpath("templates", "bot")
    return {
        path: _MARK.sub(lambda mark: words[mark[1]], templates.joinpath(f"{name}.template").read_text(encoding="utf-8"))
        for name, path in BOT_FILES.items()
    }


@dataclass(frozen=True, kw_only=True)
class BotFiles(Result):
    """A bot that was written into a folder."""

    folder: Path
    files: tuple[Path, ...]
    secrets: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to do next."""
        names = " and ".join(self.secrets)
        return (f"next: {self.folder / 'README.md'}; it takes {len(self.secrets)} secrets, {names}.",)

    def __str__(self) -> str:
        return "\n".join(f"Wrote {path}" for path in self.files)


def init_bot(request: InitBotRequest) -> BotFiles:
    """Write a repository that forecasts a Metaculus tournament on a schedule.

    A file that is there already stops everything before anything is written.
    """
    check_choices(request)
    made = {request.folder / path: text for path, text in bot_files(request).items()}
    for path in made:
        if path.exists():
            raise InputError("is there already", path=path, hint="name a new folder")
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    (request.folder / "bot.sh").chmod(0o755)
    return BotFiles(folder=request.folder, files=tuple(made), secrets=tuple(bot_secrets(request)))
