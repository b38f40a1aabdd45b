"""Which model does what: a name and settings by role, with the agent's model wherever none is named."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from foretell.llm.message import Message, Request, Settings
from foretell.llm.names import ModelName
from foretell.questions.problems import InputError

Role = Literal["agent", "filter", "summariser", "auditor", "analyzer", "grounder", "synthesizer", "judge"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, kw_only=True)
class Models:
    """The cast of a run.

    >>> cast = Models(agent="openai:gpt-5.4", others={"filter": "google:gemini-3-flash-preview"})
    >>> cast.name("filter"), cast.name("judge")
    ('google:gemini-3-flash-preview', 'openai:gpt-5.4')
    """

    agent: str
    others: Mapping[Role, str] = field(default_factory=dict[Role, str])
    settings: Mapping[Role, Settings] = field(default_factory=dict[Role, Settings])

    def __post_init__(self) -> None:
        for role in (*self.others, *self.settings):
            if role not in ROLES:
                raise InputError(f"there is no role {role!r}", hint=f"roles are {', '.join(ROLES)}")
        for name in self.names():
            ModelName.read(name)

    def name(self, role: Role) -> str:
        """The model for a role."""
        return self.others.get(role, self.agent)

    def setting(self, role: Role) -> Settings:
        """How to sample in a role: its own settings, or the agent's where it is the same model."""
        if role in self.settings:
            return self.settings[role]
        return self.settings.get("agent", Settings()) if self.name(role) == self.agent else Settings()

    def names(self) -> list[str]:
        """Every model that may be asked, once each."""
        return list(dict.fromkeys([self.agent, *self.others.values()]))

    def request(self, role: Role, messages: Iterable[Message], *, slot: str = "") -> Request:
        """The start of a request in a role; add tools or a schema with `dataclasses.replace`."""
        return Request(model=self.name(role), messages=tuple(messages), settings=self.setting(role), slot=slot)

    def with_model(self, role: Role, name: str) -> "Models":
        """The same cast with one part given to another model."""
        if role == "agent":
            return replace(self, agent=name)
        return replace(self, others={**self.others, role: name})
