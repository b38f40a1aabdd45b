"""What a configuration's name says: base model, effort, search, what it was shown, and which variant it is."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

PATTERN = re.compile(
    r"^(?P<model>.+?)-(?P<effort>[a-z]+)-(?P<search>[a-z]+)-c(?P<crowd>[01])(?:-p(?P<prior>[01]))?-t(?P<tools>[01])"
    r"(?:-(?P<variant>[\w-]+))?$"
)


@dataclass(frozen=True, kw_only=True)
class ConfigName:
    """One configuration, e.g. pro-high-brave-c1-p1-t1-nobelief.

    >>> found = parsed("kimi-k2.5-high-brave-c1-t1-nobelief")
    >>> found.model, found.search, found.crowd, found.prior, found.variant
    ('kimi-k2.5', 'brave', True, False, 'nobelief')
    """

    model: str
    effort: str
    search: str
    """The engine, or none."""
    crowd: bool
    """The prompt shows the crowd's price of market questions."""
    prior: bool
    """The prompt shows the base rate of data-set questions."""
    tools: bool
    """Tools for the question's own source: series, market history, pages."""
    variant: str = ""
    """Empty for the agent with a belief state; nobelief for the one that only gathers text."""

    @property
    def regime(self) -> str:
        """c=0 or c=1, as the paper writes it."""
        return f"c={int(self.crowd)}"


def parsed(name: str) -> ConfigName | None:
    """The parts of a name; None for one that is written otherwise."""
    found = PATTERN.match(name)
    if found is None:
        return None
    return ConfigName(
        model=found["model"],
        effort=found["effort"],
        search=found["search"],
        crowd=found["crowd"] == "1",
        prior=found["prior"] == "1",
        tools=found["tools"] == "1",
        variant=found["variant"] or "",
    )


def readable(names: Iterable[str]) -> dict[str, ConfigName]:
    """The names that can be read, with their parts."""
    return {name: parts for name in names if (parts := parsed(name)) is not None}


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A change of one thing: the values before and after it, everything else being equal."""

    name: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    def pairs(self, names: Mapping[str, ConfigName]) -> list[tuple[str, str]]:
        """All (before, after) among the names that differ in this alone."""
        by_parts = {parts: name for name, parts in names.items()}
        found: list[tuple[str, str]] = []
        for name, parts in names.items():
            if all(getattr(parts, key) == value for key, value in self.before.items()):
                other = by_parts.get(replace(parts, **self.after))
                if other is not None:
                    found.append((name, other))
        return found


def axes(engine: str = "brave") -> tuple[Axis, ...]:
    """Single changes of which real runs hold both sides, searches being made with that engine."""
    bare, full = {"search": engine, "variant": "nobelief"}, {"variant": ""}
    return (
        Axis(
            name="zero-shot → search, tools, no belief",
            before={"search": "none", "tools": False, "variant": ""},
            after={**bare, "tools": True},
        ),
        Axis(name="no belief → belief state", before=bare, after=full),
        Axis(name="no search → search", before={"search": "none", **full}, after={"search": engine}),
        Axis(name="no tools → tools for the source", before={"tools": False, **full}, after={"tools": True}),
        Axis(name="no price → price in the prompt", before={"crowd": False}, after={"crowd": True}),
        Axis(
            name="neither → price and base rate in the prompt",
            before={"crowd": False, "prior": False},
            after={"crowd": True, "prior": True},
        ),
        Axis(name="price → price and base rate", before={"crowd": True, "prior": False}, after={"prior": True}),
        Axis(name="default → high effort", before={"effort": "default"}, after={"effort": "high"}),
    )


@dataclass(frozen=True, kw_only=True)
class Family:
    """The configurations of one base model in one regime that the paper's tables set side by side."""

    model: str
    regime: str
    zero_shot: str | None
    no_belief: str | None
    belief: str | None

    @property
    def name(self) -> str:
        """As tables write it."""
        return f"{self.model} {self.regime}"


def families(names: Mapping[str, ConfigName]) -> list[Family]:
    """One family per base model and regime, models in the order of the names; of two candidates the one with prior."""
    found: list[Family] = []
    for model in dict.fromkeys(parts.model for parts in names.values()):
        for crowd in (False, True):
            mine = {n: p for n, p in names.items() if p.model == model and p.crowd == crowd and p.effort == "high"}
            zero = _first(mine, search=False, tools=False, variant="")
            bare = _first(mine, search=True, tools=True, variant="nobelief")
            full = _first(mine, search=True, tools=True, variant="")
            if bare or full:
                regime = f"c={int(crowd)}"
                found.append(Family(model=model, regime=regime, zero_shot=zero, no_belief=bare, belief=full))
    return found


def _first(names: Mapping[str, ConfigName], *, search: bool, tools: bool, variant: str) -> str | None:
    fits = [
        name
        for name, parts in names.items()
        if (parts.search != "none") == search and parts.tools == tools and parts.variant == variant
    ]
    return max(fits, key=lambda name: names[name].prior, default=None)
