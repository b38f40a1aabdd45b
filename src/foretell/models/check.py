"""Probes what a model can do with a few short requests and stores the result for later runs."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from foretell.models.facts import UNKNOWN, ModelFacts, facts_of, read_facts
from foretell.models.journal import CHECK_SLOT
from foretell.models.model import (
    KeyRefused,
    Model,
    ModelError,
    ModelRefused,
    ModelSettings,
    OutOfCredit,
    Reply,
    Request,
    SystemMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from foretell.models.names import ModelName, is_loopback
from foretell.models.prices import PriceList
from foretell.models.providers.loading import load_provider
from foretell.models.waiting import WorkClock

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
"""Maximum tokens of a probe's reply: reasoning models need some before they answer."""


@dataclass(kw_only=True)
class CapabilityCheck:
    """The probe of one model."""

    model: Model
    name: str
    seconds: float
    """Longest time to wait for one reply."""
    replies: list[Reply] = field(default_factory=list[Reply])
    sure: bool = True
    """False if a reply was lost or never arrived, so that the capabilities are not known."""
    force: str = "named"
    schema: str = "yes"

    def request(self, text: str = "", **fields: Any) -> Request:
        """One of the short probe requests."""
        settings = ModelSettings(max_tokens=LONGEST_REPLY)
        messages = (SYSTEM, UserMessage(text=text))
        return Request(model=self.name, messages=messages, settings=settings, slot=CHECK_SLOT, **fields)

    async def run(self, *, turns: bool = True) -> list[tuple[str, str]]:
        """Return each check with its result. Without `turns`, only checks that affect later requests are made."""
        checks = [("answers", await self._plain())]
        self.sure = checks[0][1] == "yes"
        if not self.sure:
            return checks
        checks.append(("calls a tool it is told to", await self._forced("submit")))
        if self.force == "no":
            result = await self._forced("*")
            self.force = "required" if result == "yes" else "no"
            checks.append(("calls some tool if it must", result))
        if turns:
            checks.append(("goes on after a tool", await self._second_turn()))
        checks.append(("answers by a JSON schema", await self._by_schema()))
        thought = any(reply.tokens.reasoning or reply.thinking for reply in self.replies)
        checks.append(("thinks before it answers", "yes" if thought else "not seen"))
        return checks

    def found(self, learned: ModelFacts | None = None) -> dict[str, str]:
        """The capabilities worth storing, including what the client learned from refusals."""
        known = learned or facts_of(ModelName.read(self.name).name)
        force = max(self.force, known.force, key=("named", "required", "no").index)
        schema = max(self.schema, known.schema, key=("yes", "object", "no").index)
        return {"force": force, "schema": schema}

    async def _ask(self, request: Request) -> Reply:
        async with WorkClock(self.seconds, replies=1):
            reply = await self.model.complete(request)
        self.replies.append(reply)
        return reply

    def _failed(self, error: Exception) -> str:
        """Record a failure. Only a refused request proves that the model lacks a capability."""
        if isinstance(error, ModelRefused) and not isinstance(error, KeyRefused | OutOfCredit):
            return f"no: {error}"
        self.sure = False
        return f"not known: {error}" if str(error) else f"not known: no answer within {self.seconds:g} s"

    async def _plain(self) -> str:
        try:
            reply = await self._ask(self.request("Say yes."))
        except TimeoutError:
            return f"no answer within {self.seconds:g} s; allow more seconds"
        except ModelError as error:
            return str(error)
        return "yes" if reply.text.strip() else f"an empty reply, which ended by {reply.finish}"

    async def _forced(self, force: str) -> str:
        request = self.request("Oslo is a city.", tools=(LOOK_UP, SUBMIT), force=force)
        try:
            reply = await self._ask(request)
        except (ModelError, TimeoutError) as error:
            self.force = "no"
            return self._failed(error)
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
            return self._failed(error)
        with suppress(ValueError):
            answer = json.loads(reply.text)
            if isinstance(answer, dict) and isinstance(answer.get("city"), str):
                return "yes"
        self.schema = "no"
        return "no, the text is other JSON or none"


def unknown_models(names: Sequence[str], prices: PriceList) -> list[str]:
    """Paid models whose capabilities are in no table: the ones worth probing before a run."""

    def is_unknown(model: str) -> bool:
        name = ModelName.read(model)
        if not (name.url or load_provider(name.provider).address) or facts_of(name.name) is not UNKNOWN:
            return False
        # Models on this machine are free, and refusals are handled when they are used.
        return not is_loopback(name.url) if prices.of(model) is None else not prices.free(model)

    return [name for name in names if is_unknown(name)]


def with_capabilities(path: Path, name: str, capabilities: Mapping[str, str]) -> bytes:
    """The text of the file of probed models with this model's entry first and any older entry removed."""
    pattern = f"^{re.escape(name.lower())}$"
    entries = [entry for entry in (read_facts(path).models if path.exists() else ()) if entry.pattern != pattern]
    entries.insert(0, replace(facts_of(name), pattern=pattern, name="", **capabilities))  # pyright: ignore[reportArgumentType]
    return _as_toml(entries, date.today()).encode()  # noqa: DTZ011 - a day for people


def _as_toml(entries: Sequence[ModelFacts], day: date) -> str:
    lines = [f"date = {day.isoformat()}", 'source = "foretell models check"', ""]
    for entry in entries:
        lines.append("[[model]]")
        for name, value in vars(entry).items():
            if value in (None, "", ()):
                continue
            text = value.isoformat() if isinstance(value, date) else json.dumps(value)
            lines.append(f"{name} = {text}")
        lines.append("")
    return "\n".join(lines)
