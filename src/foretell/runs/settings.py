"""Where things are kept and which keys there are: from the environment, never printed."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from foretell.data.datasets.cache import cache_home
from foretell.models.facts import use_facts_from
from foretell.models.limits import ModelLimits, parse_limits
from foretell.plugins import KeyVariables, key_in
from foretell.questions.as_of import Clock, instant
from foretell.questions.errors import InputError

if TYPE_CHECKING:
    from foretell.models.budget import Budget


KNOWN_MODELS = "known_models.toml"
"""In the home: a newer table of models than the one that came with the package."""
CHECKED_MODELS = "checked_models.toml"
"""In the home: what models turned out to be able to do when they were tried."""
KEYS = KeyVariables()
"""Service → environment variables that may hold its key, the first that is set wins; from the plug-ins themselves."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What this machine knows. Keys are hidden from every printed form."""

    home: Path
    """Runs, journals, pulled data and corpora live here."""
    keys: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """By the name of the environment variable; may hold other variables as well, since plug-ins name their own."""
    addresses: Mapping[str, str] = field(default_factory=dict[str, str])
    """By service: a mirror, a proxy or a test server instead of the public address."""
    corpus_file: Path | None = None
    """The local corpus, where it is not in the home."""
    database: str | None = field(default=None, repr=False)
    """The address of a PostgreSQL database that keeps runs and journal for many machines; it may hold a password."""
    limits: Mapping[str, ModelLimits] = field(default_factory=dict[str, ModelLimits], repr=False)
    """By provider: what all processes together may ask of it."""
    shared_budget: bool = field(default=False, repr=False)
    """Whether this process is one of many that work at the same runs: their budgets are shared then."""
    clock: str = field(default="", repr=False)
    """Where a simulation tells what time it is, `file:PATH`; empty: this machine's clock."""
    budget: "Budget | None" = field(default=None, repr=False, compare=False)
    """Around the budgets of all runs of this process, as where a server answers for others."""

    def key(self, service: str) -> str:
        """The key of a service, empty where there is none."""
        return next((key for name in KEYS.get(service, ()) if (key := key_in(name, self.keys))), "")

    @property
    def services(self) -> tuple[str, ...]:
        """Services that there is a key for: they decide which tools an agent is offered."""
        return tuple(service for service in KEYS if self.key(service))

    @property
    def store(self) -> Path | str:
        """The file of runs, or the database that keeps them."""
        return self.database or self.home / "runs.db"

    @property
    def journal(self) -> Path | str:
        """The file of paid replies and tool results, or the database that keeps them."""
        return self.database or self.home / "journal.db"

    @property
    def corpus(self) -> Path:
        """The local dated corpus."""
        return self.corpus_file or self.home / "corpus.db"


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """From environment variables: keys by their usual names, FORETELL_HOME, FORETELL_CORPUS, FORETELL_<SERVICE>_URL.

    FORETELL_DATABASE_URL puts runs and journal into PostgreSQL, FORETELL_LIMITS says what providers allow.

    >>> load_settings({"FORETELL_HOME": "/tmp/f", "OPENAI_API_KEY": "sk-secret", "FORETELL_BRAVE_URL": "http://x"})
    Settings(home=PosixPath('/tmp/f'), addresses={'brave': 'http://x'}, corpus_file=None)
    """
    values = os.environ if environment is None else environment
    home = cache_home(values)
    use_facts_from(home / CHECKED_MODELS, home / KNOWN_MODELS)
    addresses = {
        name.removeprefix("FORETELL_").removesuffix("_URL").lower(): value
        for name, value in values.items()
        if name.startswith("FORETELL_") and name.endswith("_URL") and name != "FORETELL_DATABASE_URL"
    }
    return Settings(
        home=home,
        keys={name: value for name, value in values.items() if value},
        addresses=addresses,
        corpus_file=Path(values["FORETELL_CORPUS"]) if values.get("FORETELL_CORPUS") else None,
        database=values.get("FORETELL_DATABASE_URL") or None,
        limits=parse_limits(values.get("FORETELL_LIMITS", "")),
        clock=values.get("FORETELL_CLOCK", ""),
    )


# What time it is: this machine's clock, or for simulations a file that whoever drives them writes.

CLOCK_FILE_PREFIX = "file:"


def clock_of(settings: Settings) -> Clock:
    """The clock that FORETELL_CLOCK names: `file:PATH` for a file with an ISO moment, read anew at every look."""
    if not settings.clock:
        return lambda: datetime.now(UTC)
    if not settings.clock.startswith(CLOCK_FILE_PREFIX):
        raise InputError(f"cannot read the clock {settings.clock!r}", path="FORETELL_CLOCK", hint="write file:PATH")
    path = Path(settings.clock.removeprefix(CLOCK_FILE_PREFIX))

    def told() -> datetime:
        try:
            return instant(path.read_text(encoding="utf-8").strip())
        except FileNotFoundError:
            raise InputError("no such file", path=path, hint="FORETELL_CLOCK names it") from None
        except ValueError as error:
            raise InputError(str(error), path=path, hint="FORETELL_CLOCK names it") from None

    told()
    return told
