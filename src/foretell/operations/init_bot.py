"""The files of a bot, made from templates."""

import re
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True, kw_only=True)
class BotSettings:
    """What a person chooses about a bot."""

    name: str
    tournament: str = "minibench"
    model: str = "openrouter:openai/gpt-5-mini"
    search: tuple[str, ...] = ("gdelt",)
    dollars_per_day: float = 3.0
    hours: int = 8
    """Between two runs; divides the day."""
    trials: int = 3

    def __post_init__(self) -> None:
        Tournament.read(TOURNAMENT_PREFIX + self.tournament)
        if 24 % self.hours:
            raise InputError(
                f"{self.hours} hours do not divide the day", column="--interval", hint="1, 2, 3, 4, 6, 8, 12"
            )
        if unknown := [name for name in self.search if name not in SEARCH_ENGINES or name == "local"]:
            hint = f"engines are {', '.join(name for name in SEARCH_ENGINES if name != 'local')}"
            raise InputError(f"a bot cannot search with {unknown[0]!r}", column="--search", hint=hint)
        if ModelName.read(self.model).provider not in KEYS:
            raise InputError(f"{self.model} cannot be reached from GitHub", column="--model", hint="openrouter:NAME")
        if PriceList().of(self.model) is None:
            hint = "choose one that is priced: a budget in dollars cannot hold otherwise"
            raise InputError(f"the price of {self.model} is not known", column="--model", hint=hint)

    @property
    def runs(self) -> int:
        """A day."""
        return 24 // self.hours

    @property
    def secrets(self) -> dict[str, str]:
        """By the name of the variable: what it is."""
        services = ["metaculus", ModelName.read(self.model).provider, *self.search]
        return {
            KEYS[service][0]: FIELD_MEANINGS.get(service, f"a key of {service}")
            for service in dict.fromkeys(services)
            if service in KEYS
        }

    def words(self) -> dict[str, str]:
        """What stands for the marks in the templates."""
        run = int(self.dollars_per_day / self.runs * 100) / 100
        return {
            "NAME": self.name,
            "TOURNAMENT": self.tournament,
            "MODEL": self.model,
            "SEARCH": ", ".join(self.search),
            "TRIALS": str(self.trials),
            "HOURS": str(self.hours),
            "RUNS": str(self.runs),
            "CRON": f"{MINUTE} */{self.hours} * * *" if self.hours < 24 else f"{MINUTE} 6 * * *",
            "DAY_BUDGET": f"{self.dollars_per_day:.2f}",
            "RUN_BUDGET": f"{run:.2f}",
            "QUESTION_BUDGET": f"{max(0.05, run / 4):.2f}",
            "CHECK_BUDGET": f"{min(0.25, run):.2f}",
            "SECRET_ENV": "\n".join(f"          {name}: ${{{{ secrets.{name} }}}}" for name in self.secrets),
            "SECRET_ROWS": "\n".join(f"   | `{name}` | {told} |" for name, told in self.secrets.items()),
            "VERSION": version("foretell"),
        }


def bot_files(bot: BotSettings) -> dict[str, str]:
    """Every file of the bot by its path."""
    words = bot.words()
    templates = files("foretell.operations").joinpath("templates", "bot")
    return {
        path: _MARK.sub(lambda mark: words[mark[1]], templates.joinpath(f"{name}.template").read_text(encoding="utf-8"))
        for name, path in BOT_FILES.items()
    }


def write_bot(bot: BotSettings, folder: Path) -> list[Path]:
    """Write them all; a file that is there already stops everything before anything is written."""
    made = {folder / path: text for path, text in bot_files(bot).items()}
    for path in made:
        if path.exists():
            raise InputError("is there already", path=path, hint="name a new folder")
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    (folder / "bot.sh").chmod(0o755)
    return list(made)


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

    def to_dict(self) -> Any:
        """The files, and the secrets they need."""
        return {"files": [str(path) for path in self.files], "secrets": list(self.secrets)}

    def __str__(self) -> str:
        """A line for each file."""
        return "\n".join(f"Wrote {path}" for path in self.files)


def init_bot(request: InitBotRequest) -> BotFiles:
    """Write a repository that forecasts a Metaculus tournament on a schedule."""
    if request.budget_per_day * request.interval / 24 < 0.01:
        raise InputError("less than a cent a run", column="--budget-per-day", hint="allow more, or run less often")
    bot = BotSettings(
        name=request.folder.resolve().name,
        tournament=request.tournament,
        model=request.model,
        search=request.search,
        dollars_per_day=request.budget_per_day,
        hours=request.interval,
        trials=request.trials,
    )
    return BotFiles(folder=request.folder, files=tuple(write_bot(bot, request.folder)), secrets=tuple(bot.secrets))
