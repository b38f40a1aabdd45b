"""A provider that counts what it bills, for tests of budgets: in this process, or in its own.

It bills the tokens it has written, up to the limit of the request, whether or not the reply arrives and whatever usage
the reply reports.
"""

import asyncio
import json
import random
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Self, get_args

from fakes.models import FakeModels, script_named
from fakes.processes import forks
from foretell.models.model import TokenCount
from foretell.models.prices import PriceList
from foretell.models.token_price import TokenPrice
from foretell.practice.models.formats import ModelQuery, ProviderFormat, ScriptedReply, format_of
from foretell.practice.models.server import Script
from foretell.practice.server import ServerRequest, ServerResponse, json_response

MODEL = "openai:gpt-6-sol"
LENGTHS = ("max_tokens", "max_output_tokens", "max_completion_tokens", "maxOutputTokens")
UsageReport = Literal["honest", "missing", "zero", "negative", "nan", "small", "text", "mixed"]
"""The usage that a reply reports; `mixed` draws one of the others for every reply."""
_REPORTS: Mapping[str, Callable[[int], Any]] = {
    "zero": lambda _: 0,
    "negative": lambda count: -count,
    "nan": lambda _: float("nan"),
    "small": lambda _: 1,
    "text": str,
}


@dataclass(frozen=True, kw_only=True)
class Bill:
    """What a provider has billed so far."""

    dollars: float = 0.0
    longest: float = 0.0
    """Dollars of the most expensive reply."""
    answered: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often each request was answered, by the hash of everything in it but the limit of its length."""
    by_model: Mapping[str, float] = field(default_factory=dict[str, float])
    """Dollars by the name of the model."""
    refused: int = 0
    """Requests answered with an error, which cost nothing."""

    @property
    def calls(self) -> int:
        """Replies that were billed."""
        return sum(self.answered.values())

    @property
    def again(self) -> int:
        """Replies to requests that had been answered before."""
        return self.calls - len(self.answered)


class BillingModels(FakeModels):
    """Bills every token it writes, up to the limit of the request, whether or not the reply arrives."""

    def __init__(
        self,
        script: Script | None = None,
        *,
        wants: int = 900,
        usage: UsageReport = "honest",
        faults: Mapping[str, float] | None = None,
        price: TokenPrice | None = None,
        bytes_per_token: float = 4.0,
        slow: float = 0.5,
        latency: float = 0.0,
        seed: int = 0,
    ) -> None:
        """`wants` are the tokens of a whole reply, most of them hidden reasoning.

        `faults` are shares of requests: of statuses "429" and "500", of replies "cut" in the middle, and of replies
        that are `slow` seconds late ("slow"). Without a price, that of `MODEL` is used.
        """
        super().__init__(script, latency=latency)
        self.wants, self.usage, self.shares, self.rng = wants, usage, dict(faults or {}), random.Random(seed)
        self.price = price or PriceList().of(MODEL) or TokenPrice(input=0.0, output=0.0)
        self.bytes_per_token, self.slow = bytes_per_token, slow
        self.bill, self.longest, self.tier, self.refused = 0.0, 0.0, 1.0, 0
        self.by_model: dict[str, float] = {}
        self.route("GET", "/bill", lambda _: json_response(self.stated_bill()))

    def stated_bill(self) -> dict[str, Any]:
        """The fields of a `Bill`."""
        counted = {"answered": self.billed, "by_model": self.by_model, "refused": self.refused}
        return {"dollars": self.bill, "longest": self.longest, **counted}

    def respond(self, request: ServerRequest) -> ServerResponse:
        drawn, below = self.rng.random(), 0.0
        for status in ("429", "500"):
            below += self.shares.get(status, 0.0)
            if drawn < below and request.method == "POST":
                self.refused += 1
                format = format_of(request.path)
                error = {"error": {"message": "try again", "type": "server_error"}}
                body = error if format is None else format.error(int(status), "try again")
                return json_response(body, int(status), {"Retry-After": "0"})
        return super().respond(request)

    def _answer_one(self, path: str, body: dict[str, Any]) -> ServerResponse:
        self.tier = 0.5
        try:
            return super()._answer_one(path, body)
        finally:
            self.tier = 1.0

    def complete(self, format: ProviderFormat, query: ModelQuery) -> ServerResponse:
        body = {**query.json, **(query.json.get("generationConfig") or {})}
        limit = next((body[name] for name in LENGTHS if body.get(name)), 10**9)
        reply = self.script(query)
        wanted_tokens = max(self.wants, reply.tokens(query)[1])
        read, written_tokens = int(len(query.words.encode()) / self.bytes_per_token) + 1, min(wanted_tokens, limit)
        cost = self.price.dollars(TokenCount(input=read, output=written_tokens))
        cost *= 0.5 if body.get("service_tier") == "flex" else self.tier
        self.billed[query.hash] += 1
        self.bill += cost
        self.by_model[query.model] = self.by_model.get(query.model, 0.0) + cost
        self.longest = max(self.longest, cost)
        reply = replace(reply, input=read, output=written_tokens)
        if written_tokens < wanted_tokens:
            reply = ScriptedReply(text="I was about to", finish="length", input=read, output=written_tokens)
        answer = json_response(self._reported(format.reply(reply, query)))
        if self.rng.random() < self.shares.get("slow", 0.0):
            answer = replace(answer, delay=self.slow)
        if self.rng.random() < self.shares.get("cut", 0.0):
            return replace(answer, cut=len(answer.body) // 2)
        return answer

    def _reported(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the reply with the usage that this provider reports, which may differ from what it bills."""
        usage = self.usage
        if usage == "mixed":
            usage = self.rng.choice([arg for arg in get_args(UsageReport) if arg != "mixed"])
        if usage == "honest":
            return body
        place = "usageMetadata" if "usageMetadata" in body else "usage"
        counts = {name: count for name, count in body.pop(place).items() if isinstance(count, int)}
        return (
            body
            if usage == "missing"
            else {**body, place: {n: _REPORTS[usage](tokens) for n, tokens in counts.items()}}
        )


class BillingProcess:
    """A billing provider in its own process. Its address is `url`."""

    def __init__(self, script: str, **how: Any) -> None:
        """`script` names a function as module:name; the rest are the settings of `BillingModels`."""
        ours, theirs = forks().Pipe()
        self._process, self._end = forks().Process(target=_serve, args=(theirs, script, how)), ours
        self._process.start()
        theirs.close()
        self.url: str = ours.recv()
        # Do not use a proxy, because it is on this machine.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def bill(self) -> Bill:
        """Return what it has billed so far, by its own count."""
        with self._opener.open(f"{self.url}/bill", timeout=30) as answer:
            return Bill(**json.load(answer))

    def close(self) -> None:
        """End the process."""
        self._end.close()
        self._process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(end: Any, script: str, how: dict[str, Any]) -> None:
    """Send the address, and listen until the other end of the pipe is closed. Runs in the new process."""
    asyncio.run(_listen(end, partial(BillingModels, script_named(script), **how)))


async def _listen(end: Any, make: Callable[[], BillingModels]) -> None:
    closed, loop = asyncio.Event(), asyncio.get_running_loop()
    async with make() as models:
        end.send(models.url)
        loop.add_reader(end.fileno(), closed.set)
        await closed.wait()
        loop.remove_reader(end.fileno())
