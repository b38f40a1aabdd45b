"""The settings of this machine, from environment variables and from settings.toml in the home."""

import logging
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.data.clock import CLOCK_VARIABLE, open_clock
from foretell.data.files import home_folder
from foretell.data.known_services import KNOWN_SERVICES, parse_rate_limits
from foretell.data.service_limits import ServiceAccess
from foretell.frozen import frozen
from foretell.models.facts import use_facts_from
from foretell.models.limits import ModelLimits, parse_model_limits
from foretell.models.rate_limits import RateLimit
from foretell.patterns import pattern
from foretell.plugins import KeyVariables, key_in
from foretell.questions.as_of import Clock
from foretell.questions.errors import InputError, known_names
from foretell.questions.field_checks import check_fields

if TYPE_CHECKING:
    from foretell.models.budget import Budget


KNOWN_MODELS = "known_models.toml"
"""File in the home: a newer table of models than the one shipped with the package."""
CHECKED_MODELS = "checked_models.toml"
"""File in the home: capabilities found by probing models."""
SETTINGS_FILE = "settings.toml"
"""File in the home: the settings that `SETTINGS_TEMPLATE` explains."""
EXAMPLE_FILE = "example.json"
"""Marks a home that holds an example instead of the user's own runs."""
KEYS = KeyVariables()
"""Environment variables that may hold a service's key, by service. The first one that is set counts."""


@frozen
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
    """Clock of a simulation, `file:PATH`; empty for this machine's clock."""
    contact: str = field(default="", repr=False)
    """E-mail or web address of the user; some services ask for it."""
    user_agents: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """User agent by service, or under "" for all, instead of foretell's own."""
    rate_limits: Mapping[str, tuple[RateLimit, ...]] = field(
        default_factory=dict[str, tuple[RateLimit, ...]], repr=False
    )
    """Rate limits by service, if they differ from the table of services."""
    network: bool = field(default_factory=lambda: DEFAULTS["network"], repr=False)
    """Whether public markets and series may be read to answer a question without a model."""
    check_models: bool = field(default=False, repr=False)
    """Whether unknown models are probed with a few short requests before a run pays for them."""
    workers_concurrency: int | None = field(default=None, repr=False)
    """How many trials all workers of the shared database together run at the same time; None for no limit."""
    budget: "Budget | None" = field(default=None, repr=False, compare=False)
    """The budget that includes all runs: of a grid, an arena, a tournament or a server."""

    def __post_init__(self) -> None:
        for name in ("home", "corpus_file", "series_file"):
            if isinstance(value := getattr(self, name), str):
                object.__setattr__(self, name, Path(value))
        check_fields(self)

    def key(self, service: str) -> str:
        """The key of a service; empty if there is none."""
        return next((key for name in KEYS.get(service, ()) if (key := key_in(name, self.keys))), "")

    @property
    def services(self) -> tuple[str, ...]:
        """Services with a key. They determine which tools an agent has."""
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
            rate_limits=self.rate_limits,
            simulated=bool(self.clock),
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
        """Whether the home is an example instead of the user's own."""
        return (self.home / EXAMPLE_FILE).is_file()

    @property
    def practice_home(self) -> Path:
        """The home of practice, which is separate from real runs and journals."""
        return (self.home / "practice").absolute()

    @property
    def corpus(self) -> Path:
        """The local dated corpus."""
        return self.corpus_file or self.home / "corpus.db"


def check_settings(settings: Any) -> Settings:
    """Return settings that a program passed. Raises InputError if they are something else."""
    if not isinstance(settings, Settings):
        hint = "such as foretell.types.Settings(home=…)"
        raise InputError("must be a foretell.types.Settings", column="settings", hint=hint)
    return settings


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings from environment variables and from settings.toml in the home.

    The variables are FORETELL_HOME, FORETELL_DATABASE_URL, FORETELL_<SERVICE>_URL and the keys of services by their
    usual names. A variable of an earlier version that is now a key of settings.toml still counts, with a note.

    Raises:
        InputError: If settings.toml or an old variable cannot be used.

    >>> load_settings({"FORETELL_HOME": "/tmp/f", "OPENAI_API_KEY": "sk-secret", "FORETELL_BRAVE_URL": "http://x"})
    Settings(home=PosixPath('/tmp/f'), addresses={'brave': 'http://x'}, corpus_file=None)
    """
    values = os.environ if environment is None else environment
    home = home_folder(values)
    use_facts_from(home / CHECKED_MODELS, home / KNOWN_MODELS)
    saved = {**DEFAULTS, **read_settings_file(home), **_old_variables(values)}
    addresses = {"mcp": saved["search_server"]} if saved.get("search_server") else {}
    addresses |= {
        name.removeprefix("FORETELL_").removesuffix("_URL").lower(): value
        for name, value in values.items()
        if name.startswith("FORETELL_") and name.endswith("_URL") and name not in ("FORETELL_DATABASE_URL", *OLD)
    }
    return Settings(
        home=home,
        keys={name: value for name, value in values.items() if value},
        addresses=addresses,
        corpus_file=saved.get("corpus"),
        series_file=saved.get("series"),
        database=values.get("FORETELL_DATABASE_URL") or None,
        limits=saved.get("model_limits", {}),
        clock=values.get(CLOCK_VARIABLE, ""),
        contact=saved.get("contact", ""),
        user_agents=saved.get("user_agents", {}),
        rate_limits=saved.get("rate_limits", {}),
        network=saved["network"],
        check_models=saved["check_models"],
        workers_concurrency=saved.get("workers_concurrency"),
    )


# The file of settings, and the environment variables of earlier versions.

DEFAULTS: dict[str, Any] = {"network": True, "check_models": True}
"""Default settings."""
SETTINGS_TEMPLATE = """\
# Settings of foretell on this machine. Remove the # before a line to use it.

# Your e-mail or web address, sent to services that want to know who is asking, such as Wikipedia.
# contact = "you@example.org"

# false: answer questions without a model from what is on this machine; read no public markets and series.
# network = true

# false: do not try an unknown model with a few short requests before a run pays for it.
# check_models = true

# A file with your own dated documents, and a CSV file or a folder of them with your own series. By default, corpus.db
# and series in this folder.
# corpus = "corpus.db"
# series = "series"

# How many trials all workers of a shared database together run at the same time.
# workers_concurrency = 200

# The public address of a tunnel to this machine, through which a deep-research model of OpenAI can search.
# search_server = "https://example.org/mcp"

# How often a service may be asked, instead of the built-in limit. foretell doctor --services shows names and limits.
# [rate_limits]
# gdelt = "1/10s"
# "wayback/pages" = "100/min"
# kalshi = "none"

# What a provider of models allows all processes together: requests and tokens per minute, and calls at the same time.
# [model_limits]
# openai = {requests = 500, tokens = 2000000, at_once = 64}

# The user agent that services see, for all of them and for one.
# [user_agents]
# all = "my-bot/1.0"
# yahoo = "my-bot/1.0"
"""
"""A settings.toml in which every key is explained and none is set."""


def read_settings_file(home: Path) -> dict[str, Any]:
    """Return the values of settings.toml in a home, each as `Settings` needs it; empty if there is no such file.

    Raises:
        InputError: If the file cannot be read, or a key in it is unknown or has a value that cannot be used.
    """
    path = home / SETTINGS_FILE
    if not path.is_file():
        return {}
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(str(error), path=path, hint='write contact = "you@example.org"') from None
    saved: dict[str, Any] = {}
    for key, value in data.items():
        if key not in _READERS:
            raise InputError("is no setting", path=path, column=key, hint=known_names(key, list(_READERS)))
        kind, read = _READERS[key]
        if not isinstance(value, kind):
            names = {str: "text in quotes", bool: "true or false", int: "a whole number", dict: "a table"}
            raise InputError(f"should be {names[kind]}", path=path, column=key)
        try:
            saved[key] = read(value)
        except InputError as error:
            raise error.at(path=path, column=key) from None
    return saved | {key: home / saved[key] for key in ("corpus", "series") if key in saved}


def _rate_limits(table: Mapping[str, Any]) -> dict[str, tuple[RateLimit, ...]]:
    return parse_rate_limits(",".join(f"{service}={limit}" for service, limit in table.items()))


def _model_limits(table: Mapping[str, Any]) -> dict[str, ModelLimits]:
    for provider, limits in table.items():
        if not isinstance(limits, dict):
            hint = "write openai = {requests = 500, tokens = 2000000, at_once = 64}"
            raise InputError(f"the limits of {provider} should be a table", hint=hint)
    words = (
        " ".join([provider, *(f"{name}={number}" for name, number in limits.items())])
        for provider, limits in table.items()
    )
    return parse_model_limits("; ".join(words))


def _user_agents(table: Mapping[str, Any]) -> dict[str, str]:
    services = ("all", *KNOWN_SERVICES)
    for service, text in table.items():
        if service not in services:
            raise InputError(f"there is no service {service!r}", hint=known_names(service, services))
        if not isinstance(text, str) or not text.isascii() or not text.isprintable():
            raise InputError("a user agent is one line of plain characters")
    return {"" if service == "all" else service: text for service, text in table.items()}


_CONTACT = pattern(r"[\w.+-]+@[\w-]+(\.[\w-]+)+|https?://[\w-]+(\.[\w-]+)+[^\s()<>]*", re.ASCII)


def read_contact(text: str) -> str:
    """Return an e-mail or web address, or nothing. Raises an `InputError` for anything else."""
    if text and not _CONTACT.fullmatch(text):
        raise InputError(f"{text!r} is neither an e-mail address nor a web address", hint="e.g. you@example.org")
    return text


def _positive(number: int) -> int:
    if number < 1:
        raise InputError("must be a whole number above 0")
    return number


_READERS: Mapping[str, tuple[type, Callable[[Any], Any]]] = {
    "contact": (str, read_contact),
    "network": (bool, bool),
    "check_models": (bool, bool),
    "workers_concurrency": (int, _positive),
    "corpus": (str, lambda text: Path(text).expanduser()),
    "series": (str, lambda text: Path(text).expanduser()),
    "search_server": (str, str),
    "rate_limits": (dict, _rate_limits),
    "model_limits": (dict, _model_limits),
    "user_agents": (dict, _user_agents),
}
"""Key of settings.toml → its TOML type, and how its value is read."""
log = logging.getLogger("foretell.settings")


def _old_agent(service: str, text: str) -> dict[str, str]:
    return _user_agents({service: text})


_OFF = ("0", "no", "off", "false")
OLD: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "FORETELL_CONTACT": ("contact", read_contact),
    "FORETELL_NETWORK": ("network", lambda text: text.lower() not in _OFF),
    "FORETELL_CHECK_MODELS": ("check_models", lambda text: text.lower() not in _OFF),
    "FORETELL_CORPUS": ("corpus", Path),
    "FORETELL_SERIES": ("series", Path),
    "FORETELL_MCP_URL": ("search_server", str),
    "FORETELL_PACE": ("rate_limits", parse_rate_limits),
    "FORETELL_LIMITS": ("model_limits", parse_model_limits),
    "FORETELL_USER_AGENT": ("user_agents", partial(_old_agent, "all")),
    **{
        f"FORETELL_{service.upper()}_USER_AGENT": ("user_agents", partial(_old_agent, service))
        for service in KNOWN_SERVICES
    },
}
"""Environment variable of version 0.2 → the key of settings.toml that replaces it, and how its text is read."""
_noted: set[str] = set()


def _old_variables(values: Mapping[str, str]) -> dict[str, Any]:
    """Return settings from variables of earlier versions, by key. They take precedence over the file."""
    saved: dict[str, Any] = {}
    for name, (key, read) in OLD.items():
        if not values.get(name):
            continue
        try:
            value = read(values[name])
        except InputError as error:
            raise error.at(path=name) from None
        saved[key] = {**saved.get(key, {}), **value} if key == "user_agents" else value
        if name not in _noted:
            _noted.add(name)
            log.warning("%s is now %s in settings.toml; the variable still counts in this version", name, key)
    return saved


def clock_of(settings: Settings) -> Clock:
    """The clock of these settings."""
    return open_clock(settings.clock)
