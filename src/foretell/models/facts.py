"""What models can do, what they cost and their knowledge cutoffs: a dated table that a newer file can replace."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal

from foretell.frozen import frozen
from foretell.models.model import EFFORTS, ReasoningEffort
from foretell.questions.errors import InputError

FILE = Path(__file__).with_name("known_models.toml")


@frozen
class ModelFacts:
    """Capabilities, prices and knowledge cutoff of one model. The defaults suit an unknown model."""

    pattern: str = ""
    """Regular expression, searched in the lower-case name without its provider."""
    name: str = ""
    """The name to write in a command; empty for families and for models not worth suggesting."""
    efforts: tuple[ReasoningEffort, ...] = ()
    """Accepted effort levels, lowest first; empty if the model has no such setting."""
    default: ReasoningEffort | None = None
    """The level used if none is sent."""
    thinking: Literal["effort", "adaptive", "budget", "level", "tokens", "none"] = "none"
    """How the level is sent."""
    off: Literal["none", "disabled", "between_tools", "zero", "no"] = "none"
    """How thinking is switched off, or "no" if it cannot be."""
    sampling: Literal["yes", "without_thinking", "no"] = "yes"
    force: Literal["named", "required", "no"] = "named"
    """Which forms of tool choice it accepts."""
    while_thinking: bool = True
    """Whether it may think when a tool is forced."""
    schema: Literal["yes", "object", "no"] = "yes"
    """Whether its answer can be constrained to a JSON schema or only to a JSON object."""
    max_output: int | None = None
    """Maximum output tokens, reasoning included."""
    price: tuple[float, ...] = ()
    """Dollars per million tokens: input, cached input, output."""
    request: float = 0.0
    """Dollars per request, besides its tokens."""
    cache_write: float = 1.0
    """Price of writing to the cache, as a multiple of the input price."""
    long: tuple[float, ...] = ()
    """Input tokens above which the whole request costs more, with the multipliers for input and output."""
    cutoff: date | None = None
    """The last day it may know about."""
    source: str = ""
    """Where the facts come from, if not from the provider's own page."""
    ends: date | None = None
    """The day on which its provider switches it off."""

    def effort(self, wanted: ReasoningEffort | None) -> ReasoningEffort | None:
        """The level to send: the wanted one, else the nearest lower one at which it thinks, else the lowest.

        >>> always = ModelFacts(efforts=("low", "high"), off="no")
        >>> always.effort("max"), always.effort("none")
        ('high', 'low')
        >>> ModelFacts(efforts=("none", "high")).effort("medium")
        'high'
        """
        if wanted is None or not self.efforts:
            return None
        if wanted == "none" and self.off != "no":
            return "none"
        silent = wanted in ("none", "minimal")
        levels: list[ReasoningEffort] = [effort for effort in self.efforts if silent or effort != "none"] or ["none"]
        below: list[ReasoningEffort] = [level for level in levels if EFFORTS.index(level) <= EFFORTS.index(wanted)]
        return below[-1] if below else levels[0]

    def thinks(self, wanted: ReasoningEffort | None) -> bool:
        """Whether the model reasons before it answers at this effort."""
        return (self.effort(wanted) or self.default or "none") != "none"

    def samples(self, wanted: ReasoningEffort | None) -> bool:
        """Whether the model accepts a temperature at this effort."""
        return self.sampling == "yes" or (self.sampling == "without_thinking" and not self.thinks(wanted))


UNKNOWN = ModelFacts()


@frozen
class FactTable:
    """All entries of a file, and their date."""

    models: tuple[ModelFacts, ...]
    date: date
    source: str = ""


def read_facts(path: Path) -> FactTable:
    """Read the entries of a file. Raises InputError, which names the invalid entry."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"the table of models cannot be read: {error}", path=path) from None
    return parse_facts(content, path)


def parse_facts(content: bytes, path: Path | str) -> FactTable:
    """Parse a table that was read from a file or an address."""
    try:
        document = tomllib.loads(content.decode())
    except ValueError as error:
        raise InputError(f"the table of models cannot be read: {error}", path=path) from None
    bases: Mapping[str, Any] = document.get("base", {})
    known = {field.name for field in fields(ModelFacts)}
    models: list[ModelFacts] = []
    for number, entry in enumerate(document.get("model", ())):
        place = f"model[{number}]"
        values = {**bases.get(entry.get("base", ""), {}), **entry}
        values.pop("base", None)
        if unknown := sorted(values.keys() - known):
            raise InputError(
                f"there is no field {unknown[0]!r}", path=path, column=place, hint=", ".join(sorted(known))
            )
        fixed: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        try:
            re.compile(fixed["pattern"])
            models.append(ModelFacts(**fixed))
        except (KeyError, TypeError, re.error) as error:
            raise InputError(f"the entry cannot be used: {error}", path=path, column=place) from None
    when = document.get("date")
    if not isinstance(when, date):
        raise InputError("the file does not say its date", path=path, column="date", hint="write date = 2026-11-15")
    return FactTable(models=tuple(models), date=when, source=str(document.get("source", "")))


@cache
def known_facts(*newer: Path) -> tuple[FactTable, ...]:
    """Tables in search order: files in the user's home, then the table shipped with the package."""
    return (*(read_facts(path) for path in newer if path.exists()), _shipped_facts())


@cache
def _shipped_facts() -> FactTable:
    """The table of the package, which does not change while a process runs."""
    return read_facts(FILE)


def facts_of(name: str) -> ModelFacts:
    """What is known about a model, by its name without the provider.

    >>> facts_of("gpt-5.6-sol").efforts[-1], facts_of("anthropic/claude-opus-4.6").thinking, facts_of("mine").force
    ('xhigh', 'adaptive', 'named')
    """
    return _search_tables(name, tuple(_HOME_FILES))


@cache
def _search_tables(name: str, files: tuple[Path, ...]) -> ModelFacts:
    entries = (entry for table in known_facts(*files) for entry in table.models)
    return next((entry for entry in entries if re.search(entry.pattern, name.lower())), UNKNOWN)


_HOME_FILES: list[Path] = []


def use_facts_from(*paths: Path) -> None:
    """Search these files, if they exist, before the table shipped with the package; other files are read anew."""
    if list(paths) != _HOME_FILES:
        _HOME_FILES[:] = paths
        forget_facts()


def forget_facts() -> None:
    """Read the files again on next use."""
    known_facts.cache_clear()
    _search_tables.cache_clear()
