"""A context with the story of its making, and the numbers that steer it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foretell.forecasters.context.context import Context
from foretell.forecasters.forecaster import CannotForecast
from foretell.questions.forecast import Usage


class CannotBuild(CannotForecast):
    """No context came about, for a reason that may pass: try again later."""


@dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """How a context is made; part of what identifies it."""

    queries: int = 4
    per_query: int = 10
    compared: int = 24
    """Finds that the summariser ranks; those below are not looked at."""
    attempts: int = 3
    closing_time: bool = False
    """See `Context.closing_time`."""

    def __post_init__(self) -> None:
        if min(self.queries, self.per_query, self.compared, self.attempts) < 1:
            raise ValueError("queries, per_query, compared and attempts must be at least 1")


@dataclass(frozen=True, kw_only=True)
class Built:
    """A context and how it came about. Every result found is either a source or counted among the dropped."""

    context: Context
    found: int
    dropped: Mapping[str, int]
    """By reason."""
    queries: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What did not go as planned."""
    usage: Usage = field(default_factory=Usage)
    """What making it cost, whenever that was."""

    def __str__(self) -> str:
        """One line for people."""
        why = ", ".join(f"{n} {reason}" for reason, n in sorted(self.dropped.items(), key=lambda one: -one[1]))
        told = f"{len(self.context.sources)} sources of {self.found} results" + (f" ({why})" if why else "")
        return "; ".join([told, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        told: dict[str, Any] = {name: getattr(self, name) for name in ("found", "dropped", "queries", "notes")}
        return {**told, "context": self.context.to_json(), "usage": vars(self.usage)}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "Built":
        """The same again."""
        return cls(
            context=Context.from_json(found["context"]),
            found=found["found"],
            dropped=dict(found["dropped"]),
            queries=tuple(found["queries"]),
            notes=tuple(found["notes"]),
            usage=Usage(**found["usage"]),
        )
