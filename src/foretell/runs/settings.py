"""Where things are stored and which keys exist: from the environment, never printed."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.data.clock import CLOCK_VARIABLE, open_clock
from foretell.data.files import home_folder
from foretell.data.known_services import KNOWN_SERVICES, ServiceLimit, parse_pace
from foretell.data.pace import ServiceAccess
from foretell.models.facts import use_facts_from
from foretell.models.limits import ModelLimits, parse_limits
from foretell.plugins import KeyVariables, key_in
from foretell.questions.as_of import Clock
from foretell.questions.errors import InputError

if TYPE_CHECKING:
    from foretell.models.budget import Budget


KNOWN_MODELS = "known_models.toml"
"""In the home: a newer table of models than the one shipped with the package."""
CHECKED_MODELS = "checked_models.toml"
"""In the home: capabilities found by probing models."""
SWITCHED_OFF = ("0", "no", "off", "false")
SETTINGS_FILE = "settings.toml"
"""In the home: who runs this program, instead of an environment variable."""
EXAMPLE_FILE = "example.json"
"""Marks a home that holds an example instead of the user's own runs."""
KEYS = KeyVariables()
"""Environment variables that may hold a service's key, first one wins; taken from the plug-ins."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of this machine. Keys are hidden in every printed form."""

    home: Path
    """Folder of runs, journals, downloaded data and corpora."""
    keys: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Keys by environment variable; may contain other variables, because plug-ins name their own."""
    addresses: Mapping[str, str] = field(default_factory=dict[str, str])
    """By service: a mirror, proxy or test server instead of the public address."""
    corpus_file: Path | None = None
    """The local corpus, if it is not in the home."""
    series_file: Path | None = field(default=None, repr=False)
    """The user's own series, if not in the home: a CSV file or a folder of them."""
    database: str | None = field(default=None, repr=False)
    """Address of a PostgreSQL database with runs and journal for many machines; may contain a password."""
    limits: Mapping[str, ModelLimits] = field(default_factory=dict[str, ModelLimits], repr=False)
    """By provider: limits for all processes together."""
    clock: str = field(default="", repr=False)
    """Where a simulation says what time it is, `file:PATH`; empty for this machine's clock."""
    contact: str = field(default="", repr=False)
    """E-mail or web address of whoever runs this program; some services ask for it."""
    user_agents: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """User agent by service, or under "" for all, instead of foretell's own."""
    pace: Mapping[str, tuple[ServiceLimit, ...]] = field(
        default_factory=dict[str, tuple[ServiceLimit, ...]], repr=False
    )
    """Rate by service, if it differs from the table of services."""
    check_models: bool = field(default=False, repr=False)
    """Whether unknown models are probed with a few short requests before a run pays for them."""
    network: bool = field(default=True, repr=False)
    """Whether a question without a model looks up public markets and series."""
    workers_concurrency: int | None = field(default=None, repr=False)
    """How many trials all workers of the shared database together run at the same time; None for no limit."""
    budget: "Budget | None" = field(default=None, repr=False, compare=False)
    """The budget around all runs: of a grid, an arena, a tournament, or a server that answers for others."""

    def key(self, service: str) -> str:
        """The key of a service; empty if there is none."""
        return next((key for name in KEYS.get(service, ()) if (key := key_in(name, self.keys))), "")

    @property
    def services(self) -> tuple[str, ...]:
        """Services with a key; they determine which tools an agent is offered."""
        return tuple(service for service in KEYS if self.key(service))

    @property
    def access(self) -> ServiceAccess:
        """How to access external services."""
        return ServiceAccess(
            home=self.home,
            database=self.database,
            addresses=self.addresses,
            contact=self.contact,
            user_agents=self.user_agents,
            pace=self.pace,
        )

    @property
    def store(self) -> Path | str:
        """The file or database of runs."""
        return self.database or self.home / "runs.db"

    @property
    def journal(self) -> Path | str:
        """The file or database of paid replies and tool results."""
        return self.database or self.home / "journal.db"

    @property
    def is_example(self) -> bool:
        """Whether this is a complete example instead of the user's own home."""
        return (self.home / EXAMPLE_FILE).is_file()

    @property
    def corpus(self) -> Path:
        """The local dated corpus."""
        return self.corpus_file or self.home / "corpus.db"


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from environment variables: keys by their usual names, FORETELL_HOME, FORETELL_<SERVICE>_URL and others.

    FORETELL_CORPUS names the local corpus and FORETELL_SERIES CSV files with the user's own series.
    FORETELL_DATABASE_URL puts runs and journal into PostgreSQL. FORETELL_LIMITS sets what providers allow.
    FORETELL_CHECK_MODELS=no starts runs without probing unknown models. FORETELL_NETWORK=off answers questions without
    a model from this machine alone. FORETELL_CONTACT, FORETELL_PACE,
    FORETELL_USER_AGENT and FORETELL_<SERVICE>_USER_AGENT set who asks external services and how fast. The file
    settings.toml in the home may hold the contact, `network` and `workers_concurrency`.

    >>> load_settings({"FORETELL_HOME": "/tmp/f", "OPENAI_API_KEY": "sk-secret", "FORETELL_BRAVE_URL": "http://x"})
    Settings(home=PosixPath('/tmp/f'), addresses={'brave': 'http://x'}, corpus_file=None)
    """
    values = os.environ if environment is None else environment
    home = home_folder(values)
    saved = _file_settings(home)
    use_facts_from(home / CHECKED_MODELS, home / KNOWN_MODELS)
    addresses = {
        name.removeprefix("FORETELL_").removesuffix("_URL").lower(): value
        for name, value in values.items()
        if name.startswith("FORETELL_") and name.endswith("_URL") and name != "FORETELL_DATABASE_URL"
    }
    agents = {
        service: values[variable]
        for service in ("", *KNOWN_SERVICES)
        if values.get(variable := "_".join(filter(None, ("FORETELL", service.upper(), "USER_AGENT"))))
    }
    return Settings(
        home=home,
        keys={name: value for name, value in values.items() if value},
        addresses=addresses,
        corpus_file=Path(values["FORETELL_CORPUS"]) if values.get("FORETELL_CORPUS") else None,
        series_file=Path(values["FORETELL_SERIES"]) if values.get("FORETELL_SERIES") else None,
        database=values.get("FORETELL_DATABASE_URL") or None,
        limits=parse_limits(values.get("FORETELL_LIMITS", "")),
        clock=values.get(CLOCK_VARIABLE, ""),
        contact=read_contact(values.get("FORETELL_CONTACT") or saved.get("contact", "")),
        user_agents={service: _header(name) for service, name in agents.items()},
        pace=parse_pace(values.get("FORETELL_PACE", "")),
        check_models=values.get("FORETELL_CHECK_MODELS", "").lower() not in SWITCHED_OFF,
        network=values.get("FORETELL_NETWORK", "").lower() not in SWITCHED_OFF and bool(saved.get("network", True)),
        workers_concurrency=_read_concurrency(saved.get("workers_concurrency"), home / SETTINGS_FILE),
    )


# Who asks.

_CONTACT = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+|https?://[\w-]+(\.[\w-]+)+[^\s()<>]*", re.ASCII)


def read_contact(text: str) -> str:
    """An e-mail or web address, or nothing; anything else raises an `InputError`."""
    if text and not _CONTACT.fullmatch(text):
        raise InputError(f"{text!r} is neither an e-mail address nor a web address", hint="e.g. you@example.org")
    return text


def _header(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise InputError("a user agent is one line of plain characters", path="FORETELL_USER_AGENT")
    return text


def _file_settings(home: Path) -> dict[str, Any]:
    path = home / SETTINGS_FILE
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(str(error), path=path, hint='write contact = "you@example.org"') from None


def _read_concurrency(value: Any, path: Path) -> int | None:
    if value is not None and (not isinstance(value, int) or value < 1):
        raise InputError("must be a whole number above 0", path=path, column="workers_concurrency")
    return value


def clock_of(settings: Settings) -> Clock:
    """The clock of these settings."""
    return open_clock(settings.clock)
