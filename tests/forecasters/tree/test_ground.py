"""The grounding pool (retries, failures, budgets) and the grounders plain, search, agent and auto."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.forecasters.tree.scripted_tree import (
    CannedSearch,
    FixedGrounder,
    TreeSetup,
    cannot_ground,
    playing,
    reply_of,
)

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.exports import tree_caveats
from foretell.forecasters.tree.grounders.adaptive import AdaptiveGrounder, claim_kind
from foretell.forecasters.tree.grounders.search import AgentGrounder, PlainGrounder, SearchGrounder
from foretell.forecasters.tree.grow.ground import CannotGround, GroundingPool, GroundingResult, Leaf, LeafBudget
from foretell.forecasters.tree.links import LinearLink
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.forecasters.tree.settings import GroundSettings
from foretell.models.model import BudgetExceeded, ModelError, Reply, Request
from foretell.models.prices import PriceList
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.token_price import TokenPrice
from foretell.practice.models.formats import ScriptedCall, ScriptedReply
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.trace import BeliefRevised, ForecastMade, LeakBlocked, ModelCalled, ToolUsed
from foretell.report.tree_report import tree_report
from foretell.tools.tool import ToolFailed, ToolMaterial


@dataclass
class Moody:
    """Fails a number of times before it answers, and counts concurrent calls."""

    fails: int = 0
    error: Exception = field(default_factory=lambda: CannotGround("no luck"))
    slots: list[str] = field(default_factory=list)
    at_work: int = 0
    peak: int = 0
    name: str = "moody"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        self.slots.append(leaf.slot)
        self.at_work += 1
        self.peak = max(self.peak, self.at_work)
        await asyncio.sleep(0)
        self.at_work -= 1
        if len(self.slots) <= self.fails:
            raise self.error
        return GroundingResult(p=0.3, grounding=Grounding(grounder=self.name))


def grounded(grounder: Any, *others: Any, **settings: Any) -> GroundingResult:
    setup = TreeSetup()

    async def run() -> GroundingResult:
        pool = GroundingPool(grounder, GroundSettings(**settings), others)
        return await pool.ground(setup.leaf(), setup.context)

    return asyncio.run(run())


def test_a_failed_leaf_is_retried_with_another_slot():
    moody = Moody(fails=3)
    result = grounded(moody)
    assert (result.p, result.attempts) == (0.3, 4)
    assert moody.slots == [f"slot/P1/attempt {n}" for n in (1, 2, 3, 4)]


@pytest.mark.parametrize("error", [CannotGround("no luck"), ModelError("down"), RuntimeError("a bug"), KeyError("x")])
def test_a_leaf_that_fails_all_attempts_holds_its_error(error: Exception):
    result = grounded(Moody(fails=9, error=error), retries=2)
    assert (result.p, result.attempts) == (None, 3)
    assert str(error) in result.grounding.error
    assert "3 attempts" in result.grounding.error


def test_a_fallback_grounder_takes_over_and_the_route_lists_the_failures():
    failing = Moody(fails=9, error=ModelError("engine down"), name="search")
    result = grounded(Moody(fails=9, error=CannotGround("no kernel"), name="notebook"), failing, Moody(name="plain"))
    assert (result.p, result.grounding.grounder) == (0.3, "plain")
    assert result.grounding.route == (
        "notebook failed: no kernel (4 attempts)",
        "search failed: engine down",
        "plain took over",
    )
    assert failing.slots == ["slot/P1/instead by search"]
    lost = grounded(Moody(fails=9, name="notebook"), Moody(fails=9, error=InputError("no key"), name="plain"))
    assert lost.p is None
    assert lost.grounding.error == "no luck (4 attempts)"
    assert lost.grounding.route == ("plain failed: no key",)


def test_several_trials_of_a_leaf_are_combined_to_their_mean():
    @dataclass
    class Unsure:
        seen: list[tuple[str, int]] = field(default_factory=list)
        name: str = "unsure"

        async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
            self.seen.append((leaf.slot, context.trial))
            place = len({trial for _, trial in self.seen}) - 1
            if place == 3:
                raise CannotGround("lost")
            numbers = (0.2, 0.4, 0.9)
            return GroundingResult(p=numbers[place], grounding=Grounding(grounder=self.name, sources=(f"s{place}",)))

    unsure = Unsure()
    result = grounded(unsure, trials=4, retries=0)
    assert result.p == pytest.approx(0.5)
    assert result.grounding.trials == (0.2, 0.4, 0.9)
    assert result.grounding.sources == ("s0", "s1", "s2")
    assert result.grounding.route == ("1 of 4 trials failed: lost",)
    assert unsure.seen[0] == ("slot/P1/attempt 1", 0), "the first trial has the slot of a single trial"
    assert len(set(unsure.seen)) == 4
    with pytest.raises(InputError, match="trials: is 0; expected at least 1"):
        GroundSettings(trials=0)


def test_an_exceeded_budget_is_not_retried():
    moody = Moody(fails=9, error=BudgetExceeded("no money"))
    assert grounded(moody).grounding.error == "no money"
    assert len(moody.slots) == 1


def test_input_errors_are_raised():
    with pytest.raises(InputError, match="no sandbox"):
        grounded(Moody(fails=1, error=InputError("no sandbox")))


def test_a_leaf_that_takes_too_long_fails():
    class Slow(Moody):
        async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
            await asyncio.sleep(60)
            raise AssertionError

    error = grounded(Slow(), leaf_seconds=0.01, retries=0).grounding.error
    assert "no answer within 0.01 s; --set options.leaf_seconds" in error


def test_the_concurrency_limit_is_respected():
    setup, moody = TreeSetup(), Moody()

    async def run() -> None:
        pool = GroundingPool(moody, GroundSettings(concurrency=3))
        await asyncio.gather(*(pool.ground(setup.leaf(f"Claim {n}."), setup.context) for n in range(20)))

    asyncio.run(run())
    assert moody.peak == 3
    for wrong in (0, 1001):
        with pytest.raises(InputError, match="concurrency"):
            GroundSettings(concurrency=wrong)


def test_a_leaf_keeps_the_id_and_cutoff_of_its_question():
    leaf = TreeSetup().leaf()
    assert leaf.tool_question.id == leaf.tree_question.question.id
    assert leaf.tool_question.text == leaf.claim
    assert leaf.tool_question.as_of == leaf.tree_question.question.as_of
    assert "port authority" in leaf.tool_question.background
    assert leaf.question.id == "q#yes#P1"
    assert [target.id for target in leaf.question.targets] == ["yes"]


def ground(grounder: Any, setup: TreeSetup, **leaf: Any) -> GroundingResult:
    return asyncio.run(grounder.ground(setup.leaf(**leaf), setup.context))


def test_the_search_grounder_searches_and_cites_its_results():
    setup = TreeSetup()
    result = ground(SearchGrounder(), setup)
    assert result.p is not None
    assert result.grounding.sources == (
        "[search_1_result_1] Article of 2025-10-01 (2025-10-01) https://news.example/2025-10-01",
    )
    assert result.grounding.grounder == "search"
    assert setup.search.queries == ["The bridge is painted by 31 December 2025."]
    assert [event.tool for event in setup.of(ToolUsed)] == ["web_search"]


@dataclass
class ClosedSearch(CannedSearch):
    """A search engine that does not answer."""

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        raise ToolFailed("the engine is out of service")


def test_a_number_without_evidence_says_that_no_search_worked():
    setup = TreeSetup(search=ClosedSearch())

    async def run() -> GroundingResult:
        return await GroundingPool(SearchGrounder(), GroundSettings()).ground(setup.leaf(), setup.context)

    result = asyncio.run(run())
    assert result.p is not None
    assert "no search or other request for evidence worked" in result.grounding.caveat
    assert grounded(Moody()).grounding.caveat == ""
    leaf = Proposition(id="P1", claim="c", p=result.p, grounding=result.grounding)
    link = LinearLink(weights={"P1": 1.0})
    tree = evaluated(
        Tree(root="P0", nodes={"P0": Proposition(id="P0", claim="b", children=("P1",), link=link), "P1": leaf})
    )
    (caveat,) = tree_caveats(tree)
    assert "out of service" in caveat
    assert "rests on the model alone" in caveat
    assert caveat in tree_report(tree).lead
    (alone,) = tree_caveats(evaluated(Tree(root="P0", nodes={"P0": replace(leaf, id="P0", grounding=None)})))
    assert "nothing was broken down" in alone


def test_the_search_grounder_never_sees_leaks():
    setup = TreeSetup()
    ground(SearchGrounder(), setup)
    assert {event.layer for event in setup.of(LeakBlocked)} == {"date", "content"}
    seen = "\n".join(message.text for request in setup.requests for message in request.messages)
    assert "2025-11-05" not in seen
    assert "LEAK ME" not in seen


def test_sources_that_no_tool_returned_are_removed():
    conclusion = {"report": "r", "key_factor": "k", "sources": ["search_9_result_9", "https://made.up"], "p": 0.2}
    setup = TreeSetup(
        model=ScriptedModel(
            [reply_of(ScriptedReply(calls=(ScriptedCall(name="conclude", arguments=conclusion),)), _request())]
        )
    )
    assert ground(SearchGrounder(), setup).grounding.sources == ()


def _request() -> Request:
    return Request(model="scripted:x", messages=())


def test_the_last_round_forces_the_conclusion():
    def insists(request: Request) -> Reply:
        return reply_of(ScriptedReply(calls=(ScriptedCall(name="web_search", arguments={"query": "more"}),)), request)

    setup = TreeSetup(model=playing(lambda request: None if request.force == "conclude" else insists(request)))
    result = ground(SearchGrounder(steps=3), setup)
    assert result.p is not None
    assert len(setup.search.queries) == 2
    assert [request.force for request in setup.requests] == [None, None, "conclude"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("just words", "JSON"),
        (reply_of(ScriptedReply(calls=(ScriptedCall(name="teleport"),)), _request()), "no tool 'teleport'"),
        (
            reply_of(ScriptedReply(calls=(ScriptedCall(name="web_search", arguments="{}"),)), _request()),
            "query is missing",
        ),
        (
            reply_of(ScriptedReply(calls=(ScriptedCall(name="conclude", arguments={"p": 0.3}),)), _request()),
            "report is missing",
        ),
        (Reply(), "called no tool"),
        (Reply(text="no", finish="refusal"), "declined"),
    ],
)
def test_unusable_replies_are_requested_again(bad: Any, reason: str):
    replies = [bad]
    setup = TreeSetup(model=playing(lambda request: replies.pop() if replies else None))
    assert ground(SearchGrounder(), setup).p is not None
    assert reason in setup.requests[1].messages[-1].text


def test_a_conclusion_in_the_reply_text_is_accepted():
    reply = json.dumps({"report": "r", "key_factor": "k", "sources": [], "p": 0.2})
    assert ground(SearchGrounder(), TreeSetup(model=ScriptedModel([reply]))).p == 0.2


def test_a_model_that_never_concludes_fails_the_leaf():
    with pytest.raises(ModelError, match="no usable reply in round 1"):
        ground(SearchGrounder(), TreeSetup(model=ScriptedModel(lambda request: "words")))


def test_the_plain_grounder_asks_once_and_needs_no_tools():
    setup = TreeSetup()
    result = ground(PlainGrounder(), setup)
    assert result.p is not None
    assert not setup.requests[0].tools
    assert not setup.search.queries


def test_the_belief_agent_grounds_a_claim_without_emitting_a_forecast():
    setup = TreeSetup()
    result = ground(AgentGrounder(), setup)
    assert result.p is not None
    assert result.grounding.grounder == "agent"
    assert setup.of(BeliefRevised)
    assert not setup.of(ForecastMade), "a leaf's probability is not a forecast of the question"
    assert any("https://news.example/2025-10-01" in source for source in result.grounding.sources)


def test_the_belief_agent_uses_the_model_of_the_grounder_role():
    setup = TreeSetup()
    context = replace(setup.context, models=setup.context.models.with_model("grounder", "scripted:other"))
    asyncio.run(AgentGrounder().ground(setup.leaf(), context))
    assert {event.model for event in setup.of(ModelCalled)} == {"scripted:other"}


def test_a_belief_agent_without_an_answer_cannot_ground():
    with pytest.raises(CannotGround):
        ground(AgentGrounder(), TreeSetup(model=ScriptedModel(lambda request: ModelError("down"))))


NUMERIC = "The unemployment rate of France for May 2026 is above 7.5 %."
HARD = "The regime falls because its generals would desert it in 2026."


def test_claims_are_routed_by_their_kind_and_budget():
    grounders = {name: FixedGrounder(p=lambda leaf: 0.5, name=name) for name in ("search", "notebook", "deep", "plain")}
    auto = AdaptiveGrounder(grounders=grounders)
    assert [claim_kind(claim) for claim in (NUMERIC, "The Senate votes on 3 May 2026.", HARD)] == [
        "numeric",
        "news",
        "hard",
    ]
    assert ground(auto, TreeSetup(), claim=NUMERIC).grounding.grounder == "notebook"
    assert ground(auto, TreeSetup(), claim=HARD).grounding.grounder == "deep"
    assert ground(auto, TreeSetup(), claim=HARD, budget=LeafBudget(0.05)).grounding.grounder == "search"
    assert ground(auto, TreeSetup(), claim=HARD, budget=LeafBudget(0.001)).grounding.grounder == "plain"
    assert AdaptiveGrounder(grounders={"search": grounders["search"]}).choice("numeric", None) == "search"
    with pytest.raises(InputError, match="grounders to choose from"):
        AdaptiveGrounder(grounders={})


PRICES = PriceList({"scripted:planner": TokenPrice(input=100, output=1000)})
"""A call of 100 and 20 tokens costs 3 cents."""


def searches(request: Request) -> Reply | None:
    """Searches until it must conclude; every reply costs 3 cents."""
    if request.force == "conclude":
        return None
    return reply_of(ScriptedReply(calls=(ScriptedCall(name="web_search", arguments={"query": "more"}),)), request)


@pytest.mark.parametrize(("share", "rounds"), [(None, 5), (1.0, 5), (0.1, 3), (0.01, 2)])
def test_a_low_budget_forces_an_earlier_conclusion(share: float | None, rounds: int):
    setup = TreeSetup(model=playing(searches), prices=PRICES)
    budget = LeafBudget(share)
    result = asyncio.run(SearchGrounder().ground(setup.leaf(budget=budget), budget.metered(setup.context)))
    assert result.p is not None
    assert len(setup.requests) == rounds
    assert setup.requests[-1].force == "conclude"


def test_routing_falls_back_to_the_wording_and_reports_failed_grounders():
    grounders = {name: FixedGrounder(p=lambda leaf: 0.5, name=name) for name in ("search", "notebook", "plain")}
    known = '{"examine_by": "plain", "reason": "It is known."}'
    chosen = playing(lambda request: known if "/route/" in request.slot else None)
    result = ground(AdaptiveGrounder(grounders=grounders), TreeSetup(model=chosen), claim=NUMERIC)
    assert result.grounding.grounder == "plain", "the model's choice takes precedence over the wording"
    assert result.grounding.route == ("plain, for a claim about numbers: It is known.",)
    for reply in (ModelError("down"), "nonsense"):

        def unusable(request: Request, reply: ModelError | str = reply) -> ModelError | str | None:
            return reply if "/route/" in request.slot else None

        result = ground(AdaptiveGrounder(grounders=grounders), TreeSetup(model=playing(unusable)), claim=NUMERIC)
        assert result.grounding.grounder == "notebook"
        assert result.grounding.route[0].startswith(
            "notebook, for a claim about numbers: its wording decides, because no"
        )
    grounders["notebook"] = FixedGrounder(p=cannot_ground("no kernel"), name="notebook")
    grounders["search"] = FixedGrounder(p=cannot_ground("no results"), name="search")
    result = ground(AdaptiveGrounder(grounders=grounders), TreeSetup(), claim=NUMERIC)
    assert result.grounding.grounder == "plain"
    assert result.grounding.route[1:] == ("notebook failed: no kernel", "search failed: no results")
    grounders["plain"] = FixedGrounder(p=cannot_ground("no model"), name="plain")
    pool = GroundingPool(AdaptiveGrounder(grounders=grounders), GroundSettings(retries=0))
    setup = TreeSetup()
    failed = asyncio.run(pool.ground(setup.leaf(claim=NUMERIC), setup.context))
    assert failed.p is None
    assert "notebook failed: no kernel; search failed: no results; plain failed: no model" in failed.grounding.error
    poor = playing(lambda request: BudgetExceeded("spent") if "/route/" in request.slot else None)
    with pytest.raises(BudgetExceeded):
        ground(AdaptiveGrounder(grounders=grounders), TreeSetup(model=poor), claim=NUMERIC)
