"""A source of data that a notebook may ask by a path: its documentation, its parameters, and the call."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from math import isfinite
from typing import Any, Literal, Protocol

from foretell.questions.clock import AsOf

Kind = Literal["text", "number", "date"]


class EndpointFailed(Exception):
    """The call did not work; the text, in our own words, reaches the notebook.

    One that was raised from another error is withheld in a backtest: why a source fails can tell the future.
    """


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One argument of an endpoint."""

    name: str
    meaning: str
    kind: Kind = "text"
    needed: bool = False

    def read(self, value: Any) -> str | float | date:
        """The value as it should be, or `EndpointFailed`."""
        if self.kind == "number":
            if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
                return value
        elif isinstance(value, str | int) and not isinstance(value, bool):
            text = str(value).strip()
            if self.kind == "text" and 0 < len(text) <= 1_000:
                return text
            if self.kind == "date":
                try:
                    return date.fromisoformat(text)
                except ValueError:
                    pass
        like = {"text": "a text", "number": "a number", "date": "a date such as '2025-10-26'"}[self.kind]
        raise EndpointFailed(f"the parameter {self.name!r} must be {like}")


class Endpoint(Protocol):
    """Answers one path. Whatever it returns was known at the cutoff: this is where plug-ins are held to it."""

    @property
    def path(self) -> str:
        """Such as `/series/observations`."""
        ...

    @property
    def documentation(self) -> str:
        """What it answers with, whence, and an example; the first line says what it is for."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes."""
        ...

    async def call(self, params: Mapping[str, Any], as_of: AsOf) -> Any:
        """The answer as JSON can hold it, with nothing later than the cutoff, or `EndpointFailed`."""
        ...


def checked(endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters an endpoint asked for, read; anything else is an error that says what would be right."""
    known = {parameter.name: parameter for parameter in endpoint.parameters}
    takes = ", ".join(known) or "none"
    for name in params:
        if name not in known:
            raise EndpointFailed(f"{endpoint.path} has no parameter {name!r}; it takes: {takes}")
    for name, parameter in known.items():
        if parameter.needed and params.get(name) is None:
            raise EndpointFailed(f"{endpoint.path} needs the parameter {name!r} ({parameter.meaning})")
    return {name: known[name].read(value) for name, value in params.items() if value is not None}


def described(endpoint: Endpoint) -> str:
    """Its documentation in full."""
    rows = [
        f"  {parameter.name} ({parameter.kind}{', needed' if parameter.needed else ''}): {parameter.meaning}"
        for parameter in endpoint.parameters
    ]
    return "\n".join([endpoint.path, endpoint.documentation.strip(), "Parameters:", *(rows or ["  none"])])


def summary(endpoint: Endpoint) -> str:
    """One line on it."""
    return f"{endpoint.path}: {endpoint.documentation.strip().splitlines()[0]}"
