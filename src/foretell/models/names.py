"""Model names (`provider:name`), the roles of models, and their default efforts and knowledge cutoffs."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import date, datetime
from difflib import get_close_matches
from functools import cache
from ipaddress import ip_address
from typing import Literal, get_args
from urllib.parse import urlsplit

from foretell.frozen import frozen
from foretell.models.facts import facts_of
from foretell.models.model import EFFORTS, Message, ModelSettings, ReasoningEffort, Request
from foretell.models.provider import Provider
from foretell.models.providers.loading import load_provider
from foretell.plugins import BUILT_IN, added, exists, load
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError


@frozen
class ModelName:
    """A model and its provider.

    >>> ModelName.read("compat:qwen3:8b@http://localhost:11434/v1")
    ModelName(provider='compat', name='qwen3:8b', url='http://localhost:11434/v1')
    """

    provider: str
    name: str
    """The provider's name for it; a path for `local` and `scripted`, empty if the provider is a plain function."""
    url: str = ""
    """The server's address, if the name contains one."""

    @staticmethod
    @cache
    def read(text: str) -> "ModelName":
        """Parse a name. Raises InputError, which shows how names are written."""
        provider, colon, name = text.partition(":")
        if not exists("models", provider) or (not name and (colon or isinstance(load("models", provider), Provider))):
            known = [] if exists("models", provider) else [*BUILT_IN["models"], *added("models")]
            near = get_close_matches(provider, known, n=1)
            hint = f"did you mean {near[0]}{colon}{name}?" if near else f"write {', '.join(model_name_forms())}"
            raise InputError(f"cannot read the model name {text!r}", hint=hint)
        entry = load_provider(provider)
        if not entry.named_with_address:
            return ModelName(provider=provider, name=name)
        name, at, url = name.rpartition("@")
        if not at or not name or urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise InputError(f"the model name {text!r} has no server address", hint=f"write {entry.form}")
        return ModelName(provider=provider, name=name, url=url.rstrip("/"))

    @property
    def place(self) -> str:
        """The provider, or the address of a server. Models with the same place share a client, limits and a bill."""
        if self.url:
            return f"{self.provider}@{self.url}"
        return f"{self.provider}:{self.name}" if load_provider(self.provider).per_model else self.provider

    @property
    def free(self) -> bool:
        """Whether it runs in this process and so costs nothing. A server may pass requests on to a paid provider."""
        return load_provider(self.provider).free


def model_name_forms() -> list[str]:
    """How model names are written, for built-in and added providers."""
    written_by_people = [name for name in BUILT_IN["models"] if name != "python"]
    return [load_provider(name).form or f"{name}:NAME" for name in (*written_by_people, *added("models"))]


def is_loopback(url: str) -> bool:
    """Whether an address leads to this machine.

    >>> is_loopback("http://127.0.0.1:8080/v1"), is_loopback("https://api.openai.com/v1")
    (True, False)
    """
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


# The model and settings of each role. The default is the agent's model.

ModelRole = Literal["agent", "filter", "summariser", "auditor", "analyzer", "grounder", "synthesizer", "judge"]
MODEL_ROLES: tuple[ModelRole, ...] = get_args(ModelRole)


@frozen
class ModelRoles:
    """The model of each role in a run."""

    agent: str
    others: Mapping[ModelRole, str] = field(default_factory=dict[ModelRole, str])
    settings: Mapping[ModelRole, ModelSettings] = field(default_factory=dict[ModelRole, ModelSettings])

    def __post_init__(self) -> None:
        for role in (*self.others, *self.settings):
            if role not in MODEL_ROLES:
                raise InputError(f"there is no role {role!r}", hint=f"roles are {', '.join(MODEL_ROLES)}")
        for name in self.names():
            ModelName.read(name)

    def name(self, role: ModelRole) -> str:
        """The model for a role."""
        return self.others.get(role, self.agent)

    def setting(self, role: ModelRole) -> ModelSettings:
        """The sampling settings of a role: its own, or the agent's if it uses the same model."""
        if role in self.settings:
            return self.settings[role]
        return self.settings.get("agent", ModelSettings()) if self.name(role) == self.agent else ModelSettings()

    def names(self) -> list[str]:
        """Every model that may be asked, once each."""
        return list(dict.fromkeys([self.agent, *self.others.values()]))

    def request(self, role: ModelRole, messages: Iterable[Message], *, slot: str = "") -> Request:
        """The start of a request in a role; add tools or a schema with `dataclasses.replace`."""
        return Request(model=self.name(role), messages=tuple(messages), settings=self.setting(role), slot=slot)

    def with_model(self, role: ModelRole, name: str) -> "ModelRoles":
        """The same roles with one of them given to another model."""
        if role == "agent":
            return replace(self, agent=name)
        return replace(self, others={**self.others, role: name})


# Default reasoning effort: on for roles that reason, low for the filter and the summarizer.

CHEAP_ROLES: tuple[ModelRole, ...] = ("filter", "summariser")


def default_effort(model: str, role: ModelRole, settings: ModelSettings) -> ReasoningEffort | None:
    """Return the effort to send in a role; None keeps the user's setting or the model's default.

    Only models that are known to reason get an effort setting.

    >>> [default_effort("openai:gpt-5.4", role, ModelSettings()) for role in ("agent", "filter")]
    ['medium', None]
    >>> [default_effort("openai:gpt-6-sol", role, ModelSettings()) for role in ("agent", "filter")]
    [None, 'low']
    """
    name = ModelName.read(model)
    facts = facts_of(name.name)
    if name.free or name.url or not facts.efforts:
        return None
    if role in CHEAP_ROLES:
        most: ReasoningEffort = "none" if facts.default == "none" else "low"
        now = settings.effort or facts.default or "none"
        return facts.effort(most) if EFFORTS.index(now) > EFFORTS.index(most) else None
    # Some models accept no temperature while they think. A temperature set by the user has priority.
    if (
        settings.effort is not None
        or facts.thinks(None)
        or (settings.temperature is not None and facts.sampling != "yes")
    ):
        return None
    level = facts.effort("medium")
    return next(effort for effort in facts.efforts if effort != "none") if level == "none" else level


def default_efforts(models: ModelRoles) -> dict[ModelRole, ReasoningEffort]:
    """The choices of `default_effort` for every role of a run where they change the settings."""
    agent = default_effort(models.agent, "agent", models.setting("agent"))
    chosen: dict[ModelRole, ReasoningEffort] = {} if agent is None else {"agent": agent}
    for role in MODEL_ROLES:
        # A role with the agent's model also has its settings.
        own = models.setting(role)
        inherited = replace(own, effort=agent) if agent and models.name(role) == models.agent else own
        if (level := default_effort(models.name(role), role, inherited)) is not None:
            chosen[role] = level
    return chosen


# A question that opened before a model's knowledge cutoff is not a fair test of the model.


@frozen
class KnowledgeCutoffWarning:
    """Explains why a backtest with this model may be contaminated by what the model remembers."""

    model: str
    cutoff: date | None
    """None if the cutoff is unknown."""
    text: str


def knowledge_cutoff(model: str) -> date | None:
    """The last day a model may know about, or None if unknown. A month counts to its end."""
    return facts_of(ModelName.read(model).name).cutoff


def check_knowledge_cutoff(
    model: str, question_opened: datetime | None, *, strict: bool = False
) -> KnowledgeCutoffWarning | None:
    """Warn if a model may have read about a question's outcome; with `strict`, raise an error instead."""
    if ModelName.read(model).provider == "scripted":
        return None
    cutoff = knowledge_cutoff(model)
    if cutoff is None:
        text = f"the knowledge cutoff of {model} is unknown"
    elif question_opened is None:
        text = f"the question does not say when it opened, and {model} knows the world up to {cutoff}"
    elif AsOf.day(cutoff).admits(question_opened):
        opened = f"the question opened on {question_opened.date()}"
        source = facts_of(ModelName.read(model).name).source
        text = f"{opened}, but {model} may know the world up to {cutoff} ({source or 'by its provider'})"
    else:
        return None
    if strict:
        raise InputError(text, hint="choose later questions or an older model, or turn strict off")
    return KnowledgeCutoffWarning(model=model, cutoff=cutoff, text=text)
