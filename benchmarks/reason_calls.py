"""Calls and input tokens of the forecaster `reason` against the tree planned before research.

Practice models play every role. They use every round that they are allowed: the scout searches until its last reply,
and every open leaf until its last round. A page has 1,500 characters, and a search finds five. `reason` grows a tree of
six leaves, of which the evidence answers three; the tree planned before research has ten leaves, all researched.
Tokens are estimated from the length of the requests, as budgets do.

    python benchmarks/reason_calls.py
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from foretell.forecasters.forecaster import AdmitAll, Context, Forecaster, Models, attempt
from foretell.forecasters.reason.forecaster import ReasonForecaster
from foretell.forecasters.reason.settings import ReasonSettings
from foretell.forecasters.tree.forecaster import TreeForecaster
from foretell.forecasters.tree.settings import TreeSettings
from foretell.models.budget import estimate_tokens
from foretell.models.canonical import request_key
from foretell.models.model import AssistantMessage, Reply, Request, TokenCount, ToolCall, ToolSpec
from foretell.models.names import ModelRoles
from foretell.practice.models.formats import ModelQuery, RequestedTool, ScriptedCall, ScriptedReply
from foretell.practice.models.scripts import replies_so_far, tree_script
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import SourceItem, ToolMaterial
from foretell.tools.web import SEARCH_SPEC

PASSAGE = "The council met on the matter and will meet again before the recess, its speaker said. "
SCOUT, OTHERS, TEN = "gatherer-4", "planner-6", "planner-10"
QUESTION = Question(
    id="q",
    source="own",
    text="Will the harbour bridge open to traffic?",
    criteria="YES if the port authority opens the bridge to all traffic by 31 December 2026.",
    background="The bridge was closed in June 2025 after cracks had been found.",
    due=instant("2026-07-01"),
    targets=(Target(id="yes"),),
)


@dataclass
class Search:
    """Returns five pages for every query, new ones each time."""

    queries: int = 0
    spec: ToolSpec = SEARCH_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return pages."""
        self.queries += 1
        pages = tuple(
            SourceItem(
                title=f"Report {self.queries}.{n}",
                text=(PASSAGE * 20)[:1500],
                url=f"https://news.example/{self.queries}/{n}",
                published=instant("2026-06-01"),
                dating="published",
            )
            for n in range(5)
        )
        return ToolMaterial(heading="Results", items=pages)


@dataclass
class Counted:
    """Plays every role, and counts calls and tokens by what is asked."""

    children: str
    calls: Counter[str] = field(default_factory=Counter[str])
    tokens: Counter[str] = field(default_factory=Counter[str])

    async def complete(self, request: Request) -> Reply:
        """Count and answer."""
        query, tools = self._query(request), {tool.name for tool in request.tools}
        what = "scout" if "submit" in tools else "leaf" if "conclude" in tools else request.slot.split("/")[-2]
        self.calls[what] += 1
        self.tokens[what] += estimate_tokens(request).input
        scripted = self._scripted(query, tools)
        calls = tuple(
            ToolCall(id=f"call_{self.calls.total()}_{n}", name=call.name, arguments=call.text)
            for n, call in enumerate(scripted.calls)
        )
        return Reply(text=scripted.text, calls=calls, tokens=TokenCount(input=1, output=1))

    def _scripted(self, query: ModelQuery, tools: set[str]) -> ScriptedReply:
        if "conclude" in tools and query.force != "conclude":
            words = {"query": f"round {replies_so_far(query)} of {query.hash}"}
            return ScriptedReply(calls=(ScriptedCall(name=SEARCH_SPEC.name, arguments=words),))
        return tree_script(query)

    def _query(self, request: Request) -> ModelQuery:
        texts = [message.text for message in request.messages]
        roles = ["assistant" if isinstance(message, AssistantMessage) else "user" for message in request.messages]
        scouting = any(tool.name == "submit" for tool in request.tools)
        return ModelQuery(
            format="none",
            hash=request_key(request),
            json={"messages": [{"role": role} for role in roles]},
            model=SCOUT if scouting else self.children,
            words="\n".join(texts),
            last=texts[-1],
            tools=tuple(RequestedTool(name=tool.name, schema=tool.parameters) for tool in request.tools),
            force=request.force,
            schema=request.schema,
        )


def measured(forecaster: Forecaster, children: str) -> Counted:
    """Forecast the question and return what was counted."""
    model, search = Counted(children), Search()

    def tools(question: Question, context: Context) -> FilteredTools:
        rules = LeakageRules(as_of=context.as_of, question=question, emit=context.emit)
        return FilteredTools.around([search], rules, AdmitAll())

    context = Context(
        as_of=QUESTION.as_of, models=Models(roles=ModelRoles(agent="scripted:any"), model=model), tools=tools
    )
    forecast = asyncio.run(attempt(forecaster, QUESTION, context))
    assert isinstance(forecast, Forecast), forecast
    return model


def main() -> None:
    reason = ReasonForecaster(settings=ReasonSettings(take_apart="always"))
    alone = replace(reason, settings=ReasonSettings(take_apart="never"))
    rows = {
        "reason, not taken apart": measured(alone, OTHERS),
        "reason, 6 leaves, 3 open": measured(reason, OTHERS),
        "tree planned before research, 10 leaves": measured(TreeForecaster(settings=TreeSettings(leaves=10)), TEN),
    }
    for name, counted in rows.items():
        print(f"{name}: {counted.calls.total()} calls, {counted.tokens.total():,} input tokens")
        print("   " + json.dumps({what: [n, counted.tokens[what]] for what, n in counted.calls.items()}))


if __name__ == "__main__":
    main()
