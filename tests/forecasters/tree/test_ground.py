"""Leaves side by side: retries, failures that stay with their leaf, shares of the budget; and the simple grounders."""

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.forecasters.tree.scripted_tree import GivenGrounder, TreeSetup, cannot_ground, playing, reply_of

from foretell.forecasters import Context
from foretell.forecasters.tree import (
    AdaptiveGrounder,
    AgentGrounder,
    CannotGround,
    Grounding,
    GroundingPool,
    GroundingResult,
    GroundSettings,
    Leaf,
    LeafBudget,
    PlainGrounder,
    SearchGrounder,
)
from foretell.forecasters.tree.grounders.adaptive import claim_kind
from foretell.models import BudgetExceeded, ModelError, PriceList, Reply, Request, TokenPrice
from foretell.models.providers import ScriptedModel
from foretell.practice.models import ScriptedCall, ScriptedReply
from foretell.questions import BeliefRevised, ForecastMade, InputError, LeakBlocked, ModelCalled, ToolUsed


@dataclass
class Moody:
    """Fails so many times before it answers, and counts how many are at work."""

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


def test_a_failed_leaf_is_tried_again_under_another_slot():
    moody = Moody(fails=3)
    found = grounded(moody)
    assert (found.p, found.attempts) == (0.3, 4)
    assert moody.slots == [f"slot/P1/attempt {n}" for n in (1, 2, 3, 4)]


@pytest.mark.parametrize("error", [CannotGround("no luck"), ModelError("down"), RuntimeError("a bug"), KeyError("x")])
def test_a_leaf_that_fails_for_good_holds_its_error(error: Exception):
    found = grounded(Moody(fails=9, error=error), retries=2)
    assert (found.p, found.attempts) == (None, 3)
    assert str(error) in found.grounding.error
    assert "3 attempts" in found.grounding.error


def test_a_simpler_grounder_takes_over_and_the_reasons_are_kept():
    dead = Moody(fails=9, error=ModelError("engine down"), name="search")
    found = grounded(Moody(fails=9, error=CannotGround("no kernel"), name="notebook"), dead, Moody(name="plain"))
    assert (found.p, found.grounding.grounder) == (0.3, "plain")
    assert found.grounding.route == (
        "notebook failed: no kernel (4 attempts)",
        "search failed: engine down",
        "plain took over",
    )
    assert dead.slots == ["slot/P1/instead by search"]
    lost = grounded(Moody(fails=9, name="notebook"), Moody(fails=9, error=InputError("no key"), name="plain"))
    assert lost.p is None
    assert lost.grounding.error == "no luck (4 attempts)"
    assert lost.grounding.route == ("plain failed: no key",)


def test_several_trials_of_a_leaf_are_its_mean_and_its_spread():
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
    found = grounded(unsure, trials=4, retries=0)
    assert found.p == pytest.approx(0.5)
    assert found.grounding.trials == (0.2, 0.4, 0.9)
    assert found.grounding.sources == ("s0", "s1", "s2")
    assert found.grounding.route == ("1 of 4 trials failed: lost",)
    assert unsure.seen[0] == ("slot/P1/attempt 1", 0), "the first is what a single one would be"
    assert len(set(unsure.seen)) == 4
    with pytest.raises(InputError, match="trials at least 1"):
        GroundSettings(trials=0)


def test_a_spent_budget_is_not_tried_again():
    moody = Moody(fails=9, error=BudgetExceeded("no money"))
    assert grounded(moody).grounding.error == "no money"
    assert len(moody.slots) == 1


def test_what_a_person_must_mend_is_raised():
    with pytest.raises(InputError, match="no sandbox"):
        grounded(Moody(fails=1, error=InputError("no sandbox")))


def test_a_leaf_that_takes_too_long_fails():
    class Slow(Moody):
        async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
            await asyncio.sleep(60)
            raise AssertionError

    error = grounded(Slow(), leaf_seconds=0.01, retries=0).grounding.error
    assert "no answer within 0.01 s; --set options.leaf_seconds" in error


def test_no_more_leaves_at_once_than_allowed():
    setup, moody = TreeSetup(), Moody()

    async def run() -> None:
        hands = GroundingPool(moody, GroundSettings(concurrency=3))
        await asyncio.gather(*(hands.ground(setup.leaf(f"Claim {n}."), setup.context) for n in range(20)))

    asyncio.run(run())
    assert moody.peak == 3
    for wrong in (0, 1001):
        with pytest.raises(InputError, match="concurrency"):
            GroundSettings(concurrency=wrong)


def test_a_leaf_keeps_the_fence_of_its_question():
    leaf = TreeSetup().leaf()
    assert leaf.fenced.id == leaf.tree_question.question.id
    assert leaf.fenced.text == leaf.claim
    assert leaf.fenced.as_of == leaf.tree_question.question.as_of
    assert "port authority" in leaf.fenced.background
    assert leaf.question.id == "q#yes#P1"
    assert [target.id for target in leaf.question.targets] == ["yes"]


def ground(grounder: Any, setup: TreeSetup, **leaf: Any) -> GroundingResult:
    return asyncio.run(grounder.ground(setup.leaf(**leaf), setup.context))


def test_the_search_grounder_searches_and_cites_what_it_saw():
    setup = TreeSetup()
    found = ground(SearchGrounder(), setup)
    assert found.p is not None
    assert found.grounding.sources == (
        "[search_1_result_1] Article of 2025-10-01 (2025-10-01) https://news.example/2025-10-01",
    )
    assert found.grounding.grounder == "search"
    assert setup.search.queries == ["The bridge is painted by 31 December 2025."]
    assert [event.tool for event in setup.of(ToolUsed)] == ["web_search"]


def test_leaks_are_kept_from_the_search_grounder():
    setup = TreeSetup()
    ground(SearchGrounder(), setup)
    assert {event.layer for event in setup.of(LeakBlocked)} == {"date", "content"}
    seen = "\n".join(message.text for request in setup.requests for message in request.messages)
    assert "2025-11-05" not in seen
    assert "LEAK ME" not in seen


def test_sources_that_nobody_showed_are_taken_out():
    said = {"report": "r", "key_factor": "k", "sources": ["search_9_result_9", "https://made.up"], "p": 0.2}
    setup = TreeSetup(
        model=ScriptedModel(
            [reply_of(ScriptedReply(calls=(ScriptedCall(name="conclude", arguments=said),)), _request())]
        )
    )
    assert ground(SearchGrounder(), setup).grounding.sources == ()


def _request() -> Request:
    return Request(model="scripted:x", messages=())


def test_the_last_round_has_only_the_conclusion():
    def insists(request: Request) -> Reply:
        return reply_of(ScriptedReply(calls=(ScriptedCall(name="web_search", arguments={"query": "more"}),)), request)

    setup = TreeSetup(model=playing(lambda request: None if request.force == "conclude" else insists(request)))
    found = ground(SearchGrounder(steps=3), setup)
    assert found.p is not None
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
def test_unusable_replies_are_asked_for_again(bad: Any, reason: str):
    replies = [bad]
    setup = TreeSetup(model=playing(lambda request: replies.pop() if replies else None))
    assert ground(SearchGrounder(), setup).p is not None
    assert reason in setup.requests[1].messages[-1].text


def test_a_conclusion_written_out_is_taken():
    said = json.dumps({"report": "r", "key_factor": "k", "sources": [], "p": 0.2})
    assert ground(SearchGrounder(), TreeSetup(model=ScriptedModel([said]))).p == 0.2


def test_a_model_that_never_concludes_fails_the_leaf():
    with pytest.raises(ModelError, match="no usable reply in round 1"):
        ground(SearchGrounder(), TreeSetup(model=ScriptedModel(lambda request: "words")))


def test_the_plain_grounder_asks_once_and_needs_no_tools():
    setup = TreeSetup()
    found = ground(PlainGrounder(), setup)
    assert found.p is not None
    assert not setup.requests[0].tools
    assert not setup.search.queries


def test_the_belief_agent_as_a_grounder():
    setup = TreeSetup()
    found = ground(AgentGrounder(), setup)
    assert found.p is not None
    assert found.grounding.grounder == "agent"
    assert setup.of(BeliefRevised)
    assert not setup.of(ForecastMade), "a leaf's number is no forecast of the question"
    assert any("https://news.example/2025-10-01" in source for source in found.grounding.sources)


def test_the_belief_agent_works_with_the_grounders_model():
    setup = TreeSetup()
    context = replace(setup.context, models=setup.context.models.with_model("grounder", "scripted:other"))
    asyncio.run(AgentGrounder().ground(setup.leaf(), context))
    assert {event.model for event in setup.of(ModelCalled)} == {"scripted:other"}


def test_a_belief_agent_without_an_answer_cannot_ground():
    with pytest.raises(CannotGround):
        ground(AgentGrounder(), TreeSetup(model=ScriptedModel(lambda request: ModelError("down"))))


NUMERIC = "The unemployment rate of France for May 2026 is above 7.5 %."
HARD = "The regime falls because its generals would desert it in 2026."


def test_claims_go_to_the_grounder_that_suits_them_and_the_budget():
    made = {name: GivenGrounder(p=lambda leaf: 0.5, name=name) for name in ("search", "notebook", "deep", "plain")}
    auto = AdaptiveGrounder(grounders=made)
    assert [claim_kind(claim) for claim in (NUMERIC, "The Senate votes on 3 May 2026.", HARD)] == [
        "numeric",
        "news",
        "hard",
    ]
    assert ground(auto, TreeSetup(), claim=NUMERIC).grounding.grounder == "notebook"
    assert ground(auto, TreeSetup(), claim=HARD).grounding.grounder == "deep"
    assert ground(auto, TreeSetup(), claim=HARD, budget=LeafBudget(0.05)).grounding.grounder == "search"
    assert ground(auto, TreeSetup(), claim=HARD, budget=LeafBudget(0.001)).grounding.grounder == "plain"
    assert AdaptiveGrounder(grounders={"search": made["search"]}).choice("numeric", None) == "search"
    with pytest.raises(InputError, match="grounders to choose from"):
        AdaptiveGrounder(grounders={})


PRICES = PriceList({"scripted:planner": TokenPrice(input=100, output=1000)})
"""A call of 100 and 20 tokens costs 3 cents."""


def searches(request: Request) -> Reply | None:
    """Searches as long as it may; every reply costs 3 cents."""
    if request.force == "conclude":
        return None
    return reply_of(ScriptedReply(calls=(ScriptedCall(name="web_search", arguments={"query": "more"}),)), request)


@pytest.mark.parametrize(("share", "rounds"), [(None, 5), (1.0, 5), (0.1, 3), (0.01, 2)])
def test_a_budget_that_runs_low_brings_the_conclusion_forward(share: float | None, rounds: int):
    setup = TreeSetup(model=playing(searches), prices=PRICES)
    budget = LeafBudget(share)
    found = asyncio.run(SearchGrounder().ground(setup.leaf(budget=budget), budget.metered(setup.context)))
    assert found.p is not None
    assert len(setup.requests) == rounds
    assert setup.requests[-1].force == "conclude"


def test_a_model_routes_words_stand_in_for_it_and_failures_are_handed_on_with_their_reasons():
    made = {name: GivenGrounder(p=lambda leaf: 0.5, name=name) for name in ("search", "notebook", "plain")}
    known = '{"examine_by": "plain", "reason": "It is known."}'
    chosen = playing(lambda request: known if "/route/" in request.slot else None)
    found = ground(AdaptiveGrounder(grounders=made), TreeSetup(model=chosen), claim=NUMERIC)
    assert found.grounding.grounder == "plain", "the model's word counts, not the claim's"
    assert found.grounding.route == ("plain: It is known.",)
    for said in (ModelError("down"), "nonsense"):

        def mute(request: Request, said: ModelError | str = said) -> ModelError | str | None:
            return said if "/route/" in request.slot else None

        found = ground(AdaptiveGrounder(grounders=made), TreeSetup(model=playing(mute)), claim=NUMERIC)
        assert found.grounding.grounder == "notebook"
        assert found.grounding.route[0].startswith("notebook: by its words a numeric claim, since no model chose")
    made["notebook"] = GivenGrounder(p=cannot_ground("no kernel"), name="notebook")
    made["search"] = GivenGrounder(p=cannot_ground("no results"), name="search")
    found = ground(AdaptiveGrounder(grounders=made), TreeSetup(), claim=NUMERIC)
    assert found.grounding.grounder == "plain"
    assert found.grounding.route[1:] == ("notebook failed: no kernel", "search failed: no results")
    made["plain"] = GivenGrounder(p=cannot_ground("no model"), name="plain")
    pool = GroundingPool(AdaptiveGrounder(grounders=made), GroundSettings(retries=0))
    setup = TreeSetup()
    dead = asyncio.run(pool.ground(setup.leaf(claim=NUMERIC), setup.context))
    assert dead.p is None
    assert "notebook failed: no kernel; search failed: no results; plain failed: no model" in dead.grounding.error
    poor = playing(lambda request: BudgetExceeded("spent") if "/route/" in request.slot else None)
    with pytest.raises(BudgetExceeded):
        ground(AdaptiveGrounder(grounders=made), TreeSetup(model=poor), claim=NUMERIC)
