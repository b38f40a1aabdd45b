"""A provider that keeps its own bill, for tests of budgets."""

import random
from dataclasses import replace
from typing import Any

from fakes.models import FakeModels
from foretell.models import PriceList, TokenCount
from foretell.practice import ServerRequest, ServerResponse, json_response
from foretell.practice.models import ModelQuery, ProviderFormat, ScriptedReply

MODEL = "openai:gpt-6-sol"
PRICES = PriceList()
LENGTHS = ("max_tokens", "max_output_tokens", "max_completion_tokens")


class BillingModels(FakeModels):
    """Sends a bill for every token it writes, up to the limit that it is given, whether or not the reply arrives."""

    def __init__(self, script: Any = None, *, wants: int = 900, faults: dict[str, float] | None = None) -> None:
        super().__init__(script)
        self.wants, self.shares, self.rng = wants, faults or {}, random.Random(0)
        self.bill, self.longest, self.tier = 0.0, 0.0, 1.0

    def respond(self, request: ServerRequest) -> ServerResponse:
        drawn, below = self.rng.random(), 0.0
        for status in ("429", "500"):
            below += self.shares.get(status, 0.0)
            if drawn < below and request.method == "POST":
                return json_response({"error": {"message": "try again", "type": "server_error"}}, int(status))
        return super().respond(request)

    def _answer_one(self, path: str, body: dict[str, Any]) -> ServerResponse:
        self.tier = 0.5
        try:
            return super()._answer_one(path, body)
        finally:
            self.tier = 1.0

    def complete(self, format: ProviderFormat, query: ModelQuery) -> ServerResponse:
        body = {**query.json, **(query.json.get("generationConfig") or {})}
        limit = next((body[name] for name in (*LENGTHS, "maxOutputTokens") if body.get(name)), 10**9)
        written, read = min(self.wants, limit), len(query.words) // 4 + 1
        cost = PRICES.dollars(MODEL, TokenCount(input=read, output=written)) or 0.0
        cost *= 0.5 if body.get("service_tier") == "flex" else self.tier
        self.bill += cost
        self.longest = max(self.longest, cost)
        reply = replace(self.script(query), input=read, output=written)
        if written < self.wants:
            reply = ScriptedReply(text="I was about to", finish="length", input=read, output=written)
        answer = json_response(format.reply(reply, query))
        if self.rng.random() < self.shares.get("cut", 0.0):
            return replace(answer, cut=len(answer.body) // 2)
        return answer
