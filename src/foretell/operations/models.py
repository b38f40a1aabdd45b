"""Which models can be asked here, what they cost and can do, and what a server says when it is tried."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.models.facts import (
    FactTable,
    ModelFacts,
    facts_of,
    forget_facts,
    known_facts,
    parse_facts,
    read_facts,
)
from foretell.models.model import (
    ModelError,
    ModelSettings,
    Reply,
    Request,
    SystemMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from foretell.models.names import ModelName, default_effort, is_loopback
from foretell.models.prices import PriceList
from foretell.models.provider import load_provider
from foretell.models.providers.client import HttpModel
from foretell.models.router import open_provider
from foretell.operations.requests import ModelsCheckRequest, ModelsListRequest, ModelsUpdateRequest
from foretell.operations.result import Result
from foretell.questions.errors import InputError
from foretell.runs.settings import CHECKED_MODELS, KNOWN_MODELS, Settings, load_settings

if TYPE_CHECKING:
    from foretell.models.provider import ProviderClient

# The list.


@dataclass(frozen=True, kw_only=True)
class ModelsResult(Result):
    """Known models, the usable ones first."""

    models: tuple[dict[str, Any], ...]
    dates: tuple[str, ...]
    """Of the tables they come from."""
    missing_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Provider → the variable that would hold its key."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """How old the list is, and which keys are missing."""
        keys = [f"{provider}: set {variable}" for provider, variable in self.missing_keys.items()]
        notes = [f"facts and prices as of {', '.join(self.dates)}; foretell models update brings newer ones"]
        return (*notes, *([f"no key for {'; '.join(keys)}"] if keys else []))

    def rows(self) -> list[dict[str, Any]]:
        """One row for each model."""
        return list(self.models)

    def to_dict(self) -> dict[str, Any]:
        """The rows, and what goes with them."""
        return {"models": self.rows(), "dates": list(self.dates), "missing_keys": dict(self.missing_keys)}

    def __str__(self) -> str:
        lines = [f"{'model':32} {'$ in/out per M':>14}  {'knows to':10}  {'agent/filter':15}  can think"]
        for row in self.models:
            price = "-" if row["input"] is None else f"{row['input']:g}/{row['output']:g}"
            mark = "" if row["key"] else "  (no key)"
            chosen = f"{row['agent'] or '-'}/{row['filter'] or '-'}"
            known = f"{row['model']:32} {price:>14}  {row['cutoff'] or '-':10}"
            lines.append(f"{known}  {chosen:15}  {row['efforts'] or '-'}{mark}")
        return "\n".join(lines)


def list_models(request: ModelsListRequest, settings: Settings | None = None) -> ModelsResult:
    """Models that a newcomer may choose from, with prices, cutoffs and capabilities; with a key or without."""
    settings = settings or load_settings()
    tables = known_facts(settings.home / CHECKED_MODELS, settings.home / KNOWN_MODELS)
    rows: dict[str, dict[str, Any]] = {}
    missing: dict[str, str] = {}
    for entry in (entry for table in tables for entry in table.models if entry.name):
        name = ModelName.read(entry.name)
        provider = load_provider(name.provider)
        has_key = any(settings.keys.get(variable) for variable in provider.key_variables)
        if not has_key:
            missing.setdefault(name.provider, provider.key_variables[0])
        if request.provider in (None, name.provider) and (has_key or not request.usable):
            rows.setdefault(entry.name, _row(entry, has_key))
    ordered = sorted(rows.values(), key=lambda row: not row["key"])
    dates = tuple(dict.fromkeys(table.date.isoformat() for table in tables))
    return ModelsResult(models=tuple(ordered), dates=dates, missing_keys=missing)


def _row(entry: ModelFacts, has_key: bool) -> dict[str, Any]:
    price = PriceList().of(entry.name)
    return {
        "model": entry.name,
        "key": has_key,
        "input": price.input if price else None,
        "cached": price.cached if price else None,
        "output": price.output if price else None,
        "cutoff": entry.cutoff.isoformat() if entry.cutoff else None,
        "ends": entry.ends.isoformat() if entry.ends else None,
        "efforts": " ".join(entry.efforts),
        # How long it thinks where nobody says: what foretell asks for, else what the model does by itself.
        "agent": default_effort(entry.name, "agent", ModelSettings()) or entry.default,
        "filter": default_effort(entry.name, "filter", ModelSettings()) or entry.default,
        "tiers": " ".join(load_provider(ModelName.read(entry.name).provider).tiers),
        "tool_choice": entry.force,
        "schema": entry.schema,
        "temperature": entry.sampling,
    }


# The check.

LOOK_UP = ToolSpec(
    name="look_up",
    description="Looks up the weather of a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
SUBMIT = replace(LOOK_UP, name="submit", description="Hands in the city.")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
SYSTEM = SystemMessage(text="You test a connection. Be as brief as you can.")
LONGEST_REPLY = 2_000
"""Tokens: thinking models need some before they say a word."""


@dataclass(frozen=True, kw_only=True)
class ModelCheck(Result):
    """What a model did when it was tried."""

    model: str
    checks: tuple[tuple[str, str], ...]
    """What was tried, and what came of it."""
    dollars: float | None
    file: Path | None = None
    """Where it is kept for later runs."""

    @property
    def ok(self) -> bool:
        """Whether it answered at all."""
        return self.checks[0][1] == "yes"

    def rows(self) -> list[dict[str, Any]]:
        """One row for each thing that was tried."""
        return [{"check": check, "result": result} for check, result in self.checks]

    def to_dict(self) -> dict[str, Any]:
        """The checks as an object."""
        file = str(self.file) if self.file else None
        return {"model": self.model, "checks": dict(self.checks), "dollars": self.dollars, "file": file}

    def __str__(self) -> str:
        lines = [f"{check:28} {result}" for check, result in self.checks]
        cost = "of unknown price" if self.dollars is None else f"${self.dollars:.4f}"
        lines.append(f"Cost: {cost}" + (f". Kept in {self.file}" if self.file else ""))
        return "\n".join(lines)


async def check_model(request: ModelsCheckRequest, settings: Settings | None = None) -> ModelCheck:
    """Ask a model five short things, and keep what it can do for later runs."""
    settings = settings or load_settings()
    name = ModelName.read(request.model)
    client = open_provider(request.model, settings.keys, address=settings.addresses.get(name.provider))
    try:
        trial = _Check(client=client, model=request.model, seconds=request.seconds)
        checks = await trial.run()
    finally:
        await client.close()
    dollars = [PriceList().charged(trial.request(), reply) for reply in trial.replies]
    path = settings.home / CHECKED_MODELS
    kept = checks[0][1] == "yes"
    if kept:
        _keep(path, name.name, trial.found())
    return ModelCheck(
        model=request.model,
        checks=tuple(checks),
        dollars=None if None in dollars else sum(one for one in dollars if one is not None),
        file=path if kept else None,
    )


@dataclass(kw_only=True)
class _Check:
    client: "ProviderClient"
    model: str
    seconds: float
    replies: list[Reply] = field(default_factory=list[Reply])
    force: str = "named"
    schema: str = "yes"

    def request(self, text: str = "", **fields: Any) -> Request:
        settings = ModelSettings(max_tokens=LONGEST_REPLY)
        return Request(model=self.model, messages=(SYSTEM, UserMessage(text=text)), settings=settings, **fields)

    async def run(self) -> list[tuple[str, str]]:
        checks = [("answers", await self._plain())]
        if checks[0][1] != "yes":
            return checks
        checks.append(("calls a tool it is told to", await self._forced("submit")))
        if self.force == "no":
            result = await self._forced("*")
            self.force = "required" if result == "yes" else "no"
            checks.append(("calls some tool if it must", result))
        checks.append(("goes on after a tool", await self._second_turn()))
        checks.append(("answers by a JSON schema", await self._by_schema()))
        thought = any(reply.tokens.reasoning or reply.thinking for reply in self.replies)
        checks.append(("thinks before it answers", "yes" if thought else "not seen"))
        return checks

    def found(self) -> dict[str, str]:
        """What is worth remembering, with what the client has learned by being refused."""
        name = ModelName.read(self.model).name
        learned = self.client.facts(name) if isinstance(self.client, HttpModel) else facts_of(name)
        forces = ("named", "required", "no")
        force = max(self.force, learned.force, key=forces.index)
        schema = max(self.schema, learned.schema, key=("yes", "object", "no").index)
        return {"force": force, "schema": schema}

    async def _ask(self, request: Request) -> Reply:
        async with asyncio.timeout(self.seconds):
            reply = await self.client.complete(request)
        self.replies.append(reply)
        return reply

    async def _plain(self) -> str:
        try:
            reply = await self._ask(self.request("Say yes."))
        except TimeoutError:
            return f"no answer within {self.seconds:g} s; give it more with --seconds"
        except ModelError as error:
            return str(error)
        return "yes" if reply.text.strip() else f"an empty reply, which ended by {reply.finish}"

    async def _forced(self, force: str) -> str:
        request = self.request("Oslo is a city.", tools=(LOOK_UP, SUBMIT), force=force)
        try:
            reply = await self._ask(request)
        except (ModelError, TimeoutError) as error:
            self.force = "no"
            return f"no: {error}"
        names = [call.name for call in reply.calls]
        if names and (force == "*" or names[0] == force):
            return "yes"
        self.force = "no"
        return f"no, it {'called ' + names[0] if names else 'wrote text'}"

    async def _second_turn(self) -> str:
        request = self.request("How is the weather in Oslo? Look it up.", tools=(LOOK_UP,))
        try:
            reply = await self._ask(request)
            if not reply.calls:
                return "it did not look anything up"
            results = [ToolResult(call_id=call.id, name=call.name, text="rain") for call in reply.calls]
            messages = (*request.messages, reply.as_message(), *results)
            again = await self._ask(replace(request, messages=messages))
        except (ModelError, TimeoutError) as error:
            return f"no: {error}"
        return "yes" if again.text.strip() or again.calls else "an empty reply"

    async def _by_schema(self) -> str:
        try:
            reply = await self._ask(self.request("Name the capital of Norway as `city`, in JSON.", schema=SCHEMA))
        except (ModelError, TimeoutError) as error:
            self.schema = "no"
            return f"no: {error}"
        with suppress(ValueError):
            if isinstance(json.loads(reply.text).get("city"), str):
                return "yes"
        self.schema = "no"
        return "no, the text is other JSON or none"


def _keep(path: Path, name: str, found: Mapping[str, str]) -> None:
    """Put a model's entry first in the file of checked models, and drop an older one."""
    import re

    from foretell.data.atomic_file import write_atomically

    pattern = f"^{re.escape(name.lower())}$"
    entries = [entry for entry in (read_facts(path).models if path.exists() else ()) if entry.pattern != pattern]
    known = facts_of(name)
    entries.insert(0, replace(known, pattern=pattern, name="", **found))  # pyright: ignore[reportArgumentType]
    write_atomically(path, _as_toml(entries, date.today()).encode())  # noqa: DTZ011 - a day for people
    forget_facts()


def _as_toml(entries: Sequence[ModelFacts], day: date) -> str:
    lines = [f"date = {day.isoformat()}", 'source = "foretell models check"', ""]
    for entry in entries:
        lines.append("[[model]]")
        for name, value in vars(entry).items():
            if value in (None, "", ()):
                continue
            written = value.isoformat() if isinstance(value, date) else json.dumps(value)
            lines.append(f"{name} = {written}")
        lines.append("")
    return "\n".join(lines)


# The update.


@dataclass(frozen=True, kw_only=True)
class ModelsUpdate(Result):
    """A newer table of models."""

    file: Path
    models: int
    date: str

    def to_dict(self) -> dict[str, Any]:
        """Where it is, and what it holds."""
        return {"file": str(self.file), "models": self.models, "date": self.date}

    def __str__(self) -> str:
        return f"{self.models} entries as of {self.date}, kept in {self.file}"


LARGEST_TABLE = 2_000_000
"""Bytes."""


async def update_models(request: ModelsUpdateRequest, settings: Settings | None = None) -> ModelsUpdate:
    """Check a table of models and put it into the home, where it goes before the one that came with the package."""
    from foretell.data.atomic_file import write_atomically

    settings = settings or load_settings()
    written = await _downloaded(request.source, settings) if "://" in request.source else _read(Path(request.source))
    table: FactTable = parse_facts(written, request.source)
    if not table.models:
        raise InputError("there is no model in it", path=request.source, hint="entries begin with [[model]]")
    path = settings.home / KNOWN_MODELS
    write_atomically(path, written)
    forget_facts()
    return ModelsUpdate(file=path, models=len(table.models), date=table.date.isoformat())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"the table of models cannot be read: {error}", path=path) from None


async def _downloaded(url: str, settings: Settings) -> bytes:
    """The table at an address, which nobody may have changed on its way."""
    from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError

    async def admit(address: str) -> None:
        if not address.startswith("https://") and not is_loopback(address):
            raise InputError("prices are read over https alone", path=address, hint="give an https address or a file")

    limits = HttpLimits(total_seconds=60.0, max_bytes=LARGEST_TABLE)
    async with AsyncHttpClient(limits=limits, access=settings.access) as client:
        try:
            return (await client.get(url, admit=admit)).body
        except SourceError as error:
            raise InputError(f"the table of models cannot be read: {error.problem}", path=url) from None
