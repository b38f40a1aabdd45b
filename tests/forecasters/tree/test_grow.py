"""Growing: everything possible is under way, nothing depends on who is quicker, and no failure takes the tree along."""

import asyncio
import json
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.forecasters.tree.scripted_tree import (
    CannedSearch,
    GivenGrounder,
    TreeSetup,
    cannot_ground,
    playing,
    question,
    reply_of,
)

from foretell.forecasters import CannotForecast, Context, EventLog, attempt
from foretell.forecasters.agent import Clamp
from foretell.forecasters.tree import (
    AverageLink,
    CannotGround,
    Grounder,
    GroundingPool,
    GroundingResult,
    Leaf,
    LinearLink,
    SearchGrounder,
    Tree,
    TreeForecaster,
    TreeGrowth,
    TreeJob,
    TreeSettings,
    claim_of_target,
    evaluate,
    leaves,
    tree_from_dict,
)
from foretell.forecasters.tree.grow.grow import tree_job_order
from foretell.models import Budget, BudgetedModel, ModelError, PriceList, Reply, Request, TokenPrice, request_key
from foretell.practice.models import ScriptedCall, ScriptedReply
from foretell.questions import (
    AsOf,
    Failed,
    Failure,
    Forecast,
    ForecastMade,
    InputError,
    LeakBlocked,
    ModelCalled,
    NodeAnalyzed,
    NodeGrounded,
    NodeSynthesized,
    Target,
    TraceEvent,
    TreeGrown,
)
from foretell.tools import ToolMaterial

PRICES = PriceList({"scripted:planner": TokenPrice(input=100, output=1000)})


def grown(
    setup: TreeSetup, grounder: Grounder | None = None, dollars: float | None = None, **fields: Any
) -> tuple[Tree, EventLog[TreeJob]]:
    log = EventLog[TreeJob]()
    settings = TreeSettings(**fields)

    async def run() -> Tree:
        claim = claim_of_target(setup.question, setup.question.targets[0])
        growth = TreeGrowth(
            about=replace(setup.tree_question, claim=claim, slot="q/trial 0/tree yes"),
            context=setup.context,
            pool=GroundingPool(grounder or SearchGrounder(), settings),
            log=log,
            settings=settings,
            dollars=dollars,
        )
        return await growth.run()

    return asyncio.run(run()), log


def test_a_tree_from_a_question():
    tree, log = grown(TreeSetup())
    assert list(tree.nodes) == ["P0", "P1", "P1.1", "P1.2", "P2", "P3"]
    assert leaves(tree) == ["P1.1", "P1.2", "P2", "P3"]
    assert all(isinstance(tree.nodes[id].link, LinearLink) for id in ("P0", "P1"))
    assert evaluate(tree).p == tree.nodes["P0"].p
    assert tree.nodes["P0"].report
    assert tree.nodes["P2"].grounding
    assert tree.nodes["P2"].grounding.sources
    assert log.usage().calls == 2 + 4 * 2 + 2


def test_events_come_in_the_order_of_the_tree():
    tree, log = grown(TreeSetup())
    told = [
        event
        for event in log.events(tree_job_order(tree))
        if isinstance(event, NodeAnalyzed | NodeGrounded | NodeSynthesized)
    ]
    assert [(type(event).__name__, event.node) for event in told] == [
        ("NodeAnalyzed", "P0"),
        ("NodeGrounded", "P1.1"),
        ("NodeGrounded", "P1.2"),
        ("NodeGrounded", "P2"),
        ("NodeGrounded", "P3"),
        ("NodeSynthesized", "P1"),
        ("NodeSynthesized", "P0"),
    ]


class Shuffled:
    """A model whose answers take their time, each time another."""

    def __init__(self, seed: int) -> None:
        self.inner = playing()
        self._rng = random.Random(seed)

    async def complete(self, request: Request) -> Reply:
        for _ in range(self._rng.randrange(40)):
            await asyncio.sleep(0)
        return await self.inner.complete(request)


def test_who_is_quicker_changes_neither_requests_nor_events_nor_the_tree():
    def run(seed: int) -> tuple[Tree, list[TraceEvent], set[str]]:
        model = Shuffled(seed)
        tree, log = grown(TreeSetup(model=model), rounds=3, nodes=150)
        return tree, log.events(tree_job_order(tree)), {request_key(request) for request in model.inner.requests}

    first, second = run(1), run(2)
    assert first[0] == second[0]
    assert first[1] == second[1]
    assert first[2] == second[2]
    assert len(first[0].nodes) > 50


def test_calls_side_by_side_within_a_leaf_are_told_in_one_order():
    def eager(request: Request) -> Reply | None:
        if request.force == "conclude" or not request.tools or len(request.messages) > 2:
            return None
        calls = tuple(ScriptedCall(name="web_search", arguments={"query": f"words {n}"}) for n in range(4))
        return reply_of(ScriptedReply(calls=calls), request)

    class Late(CannedSearch):
        async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
            for _ in range(rng.randrange(30)):
                await asyncio.sleep(0)
            return await super().use(arguments, as_of)

    runs: list[list[TraceEvent]] = []
    for seed in (1, 2, 3):
        rng = random.Random(seed)
        tree, log = grown(TreeSetup(model=playing(eager), search=Late()))
        runs.append(log.events(tree_job_order(tree)))
    assert runs[0] == runs[1] == runs[2]
    assert sum(isinstance(event, LeakBlocked) for event in runs[0]) == 4 * 4 * 2


@pytest.mark.parametrize(("rounds", "nodes"), [(1, 5), (2, 21), (3, 85)])
def test_leaves_are_taken_apart_again_round_by_round(rounds: int, nodes: int):
    tree, _ = grown(TreeSetup(name="scripted:planner-4"), rounds=rounds)
    assert len(tree.nodes) == nodes
    assert "P4.4" in tree.nodes or rounds == 1


def test_the_budget_of_nodes_is_shared_out_equally():
    tree, _ = grown(TreeSetup(name="scripted:planner-4"), rounds=3, nodes=30)
    assert len(tree.nodes) <= 30
    assert {len(tree.nodes[f"P{n}"].children) for n in (1, 2, 3, 4)} == {4}


def test_the_budget_of_leaves_and_the_depth_are_kept():
    tree, _ = grown(TreeSetup(name="scripted:planner-4"), rounds=4, max_leaves=20)
    assert len(leaves(tree)) <= 20
    tree, _ = grown(TreeSetup(name="scripted:planner-4"), rounds=4, depth=1)
    assert len(tree.nodes) == 5
    tree, _ = grown(TreeSetup(), depth=0)
    assert list(tree.nodes) == ["P0"]
    assert tree.nodes["P0"].grounding


def test_no_request_grows_with_the_tree():
    setup = TreeSetup(name="scripted:planner-4")
    grown(setup, rounds=4)
    sizes = [sum(len(message.text) for message in request.messages) for request in setup.requests]
    small = TreeSetup(name="scripted:planner-4")
    grown(small)
    usual = max(sum(len(message.text) for message in request.messages) for request in small.requests)
    assert max(sizes) < usual + 1500


def test_a_failed_leaf_is_marked_all_the_way_up_and_nothing_else_is():
    def broken(leaf: Leaf) -> float:
        if leaf.id == "P1.2":
            raise CannotGround("nothing found")
        return 0.25

    tree, log = grown(TreeSetup(), GivenGrounder(p=broken))
    assert tree.nodes["P1.2"].p is None
    assert "nothing found (4 attempts)" in tree.nodes["P1.2"].grounding.error
    assert {id: node.incomplete for id, node in tree.nodes.items() if node.incomplete} == {
        "P1.2": ("P1.2",),
        "P1": ("P1.2",),
        "P0": ("P1.2",),
    }
    assert tree.nodes["P1"].notes == ("0.5 stands in for P1.2",)
    assert any("could not be grounded: P1.2" in note for note in tree.notes)
    failed = [
        event for event in log.events(tree_job_order(tree)) if isinstance(event, NodeGrounded) and event.p is None
    ]
    assert [(event.node, event.attempts) for event in failed] == [("P1.2", 4)]


def test_a_branch_without_numbers_gets_no_link_and_no_question():
    setup = TreeSetup()

    def broken(leaf: Leaf) -> float:
        if leaf.id.startswith("P1"):
            raise CannotGround("no")
        return 0.25

    tree, _ = grown(setup, GivenGrounder(p=broken))
    assert tree.nodes["P1"].link is None
    assert isinstance(tree.nodes["P0"].link, LinearLink)
    assert not [request for request in setup.requests if "P1/synthesis" in request.slot]


def test_what_a_person_must_mend_ends_everything_at_once():
    class Broken:
        name = "broken"
        started = 0

        async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
            self.started += 1
            await asyncio.sleep(0)
            raise InputError("no key")

    broken = Broken()
    with pytest.raises(InputError, match="no key"):
        grown(TreeSetup(name="scripted:planner-8"), broken, rounds=2, concurrency=1)
    assert broken.started < 64


def test_a_claim_that_is_not_taken_apart_is_grounded_itself():
    def silent(request: Request) -> Exception | None:
        return ModelError("down") if "analysis" in request.slot else None

    tree, _ = grown(TreeSetup(model=playing(silent)))
    assert list(tree.nodes) == ["P0"]
    assert tree.nodes["P0"].p is not None
    assert "ended early" in tree.notes[0]


def test_every_rule_grows_a_sound_tree():
    for rule in ("linear", "logic", "vanilla", "average", "random", "noisy-or", "inhibited-noisy-or"):
        tree, _ = grown(TreeSetup(), rule=rule)
        assert evaluate(tree).p == tree.nodes["P0"].p, rule


def test_siblings_that_move_together_are_in_the_notes():
    tree, _ = grown(TreeSetup(), correlations=True)
    assert any("judged to move together" in note for note in tree.notes)


def test_a_clumsy_model_costs_more_and_ends_in_a_sound_tree():
    setup = TreeSetup(name="scripted:clumsy")
    tree, _ = grown(setup)
    assert evaluate(tree).p == tree.nodes["P0"].p
    assert not any(isinstance(node.link, AverageLink) for node in tree.nodes.values())
    again = [request for request in setup.requests if "could not be used" in request.messages[-1].text]
    assert {request.slot.split("/")[4].split()[0] for request in again} == {"analysis", "grounding", "synthesis"}


def forecast(setup: TreeSetup, **fields: Any) -> Forecast | Failure:
    return asyncio.run(attempt(TreeForecaster(**fields), setup.question, setup.context))


def test_the_forecaster_answers_and_keeps_the_tree():
    setup, kept = TreeSetup(), []
    answer = forecast(
        setup, store_tree=lambda question, trial, target, tree: kept.append((question.id, trial, target, tree))
    )
    assert isinstance(answer, Forecast)
    (document,) = [event.document for event in setup.of(TreeGrown)]
    tree = tree_from_dict(document).tree
    assert answer.p == {"yes": tree.nodes["P0"].p}
    assert kept[0][:3] == ("q", 0, "yes")
    assert evaluate(kept[0][3]).p == answer.p["yes"]
    assert answer.forecaster == "tree linear search"
    assert answer.usage.calls == len(setup.of(ModelCalled)) == len(setup.requests)
    assert setup.events[-1] == ForecastMade(p=answer.p, how="root of a tree")
    assert "P1.1" in answer.rationale
    assert "https://news.example/2025-10-01" in answer.rationale


def test_leaks_are_dropped_in_every_leaf_and_told():
    setup = TreeSetup()
    forecast(setup)
    assert len(setup.of(LeakBlocked)) == 8
    seen = "\n".join(message.text for request in setup.requests for message in request.messages)
    assert "2025-11-05" not in seen
    assert "LEAK ME" not in seen


def test_of_two_exclusive_options_one_gets_a_tree():
    two = question(exclusivity="exactly one", targets=(Target(id="a", label="Ajax"), Target(id="b", label="Bruges")))
    setup = TreeSetup(question=two)
    answer = forecast(setup)
    assert isinstance(answer, Forecast)
    assert [event.tree for event in setup.of(TreeGrown)] == ["a"]
    assert sum(answer.p.values()) == pytest.approx(1)
    setup = TreeSetup(question=two)
    answer = forecast(setup, settings=TreeSettings(shortcut=False))
    assert [event.tree for event in setup.of(TreeGrown)] == ["a", "b"]
    assert isinstance(answer, Forecast)
    assert sum(answer.p.values()) == pytest.approx(1)


def test_several_options_are_all_analysed_and_divided_by_their_sum():
    three = question(exclusivity="exactly one", targets=tuple(Target(id=id) for id in ("a", "b", "c")))
    setup = TreeSetup(question=three)
    answer = forecast(
        setup, grounder=GivenGrounder(p=lambda leaf: 0.4), settings=TreeSettings(clamp=Clamp(low=0, high=1))
    )
    assert isinstance(answer, Forecast)
    assert answer.p == {id: pytest.approx(1 / 3) for id in ("a", "b", "c")}
    assert answer.distribution is not None
    assert len({event.key for event in setup.of(ModelCalled)}) == len(setup.of(ModelCalled))


def test_separate_targets_get_separate_trees():
    dates = question(targets=(Target(id="d1", resolves_at="2025-11-02"), Target(id="d2", resolves_at="2025-12-02")))
    setup = TreeSetup(question=dates)
    answer = forecast(setup)
    assert isinstance(answer, Forecast)
    assert set(answer.p) == {"d1", "d2"}
    roots = [event.document["nodes"]["P0"]["claim"] for event in setup.of(TreeGrown)]
    assert [claim[-11:] for claim in roots] == ["2025-11-02.", "2025-12-02."]


def test_no_leaf_at_all_is_a_failure_and_never_one_half():
    setup = TreeSetup()
    answer = forecast(setup, grounder=GivenGrounder(p=cannot_ground("no tools")))
    assert isinstance(answer, Failure)
    assert "no tools" in answer.error
    assert setup.of(Failed)


def test_a_budget_that_ends_midway_leaves_a_tree_with_marks():
    setup = TreeSetup(prices=PRICES)
    inner = setup.model
    # Every call costs 3 cents, and a call is made as long as there is room for a short reply.
    setup.model = BudgetedModel(inner, PRICES, Budget("question", dollars=1.0))
    answer = forecast(setup, settings=TreeSettings(rounds=2))
    assert isinstance(answer, Forecast)
    (document,) = [event.document for event in setup.of(TreeGrown)]
    tree = tree_from_dict(document).tree
    spent = [id for id in leaves(tree) if tree.nodes[id].p is None]
    assert 0 < len(spent) < len(leaves(tree))
    assert all("the budget of the question" in tree.nodes[id].grounding.error for id in spent)
    assert "without a number" in setup.of(ForecastMade)[0].how
    assert evaluate(tree).p == pytest.approx(answer.p["yes"])


@pytest.mark.parametrize(("dollars", "nodes"), [(100.0, 21), (20.0, 9), (4.0, 1)])
def test_a_tree_is_no_larger_than_its_money_is_enough_for(dollars: float, nodes: int):
    """A leaf costs 2.6 dollars at these prices, and three quarters of the money go to leaves."""
    setup = TreeSetup(prices=PRICES, name="scripted:planner-4")
    prices = PriceList({setup.name: TokenPrice(input=100, output=1000)})
    setup.prices = prices
    tree, _ = grown(setup, rounds=2, dollars=dollars)
    assert len(tree.nodes) <= nodes
    assert len(leaves(tree)) * 2.6 <= max(0.75 * dollars + 4 * 2.6, 2.6)


def test_no_money_at_all_is_a_failure():
    setup = TreeSetup(prices=PRICES)
    setup.model = BudgetedModel(setup.model, PRICES, Budget("question", dollars=0.01))
    answer = forecast(setup)
    assert isinstance(answer, Failure)
    assert "budget" in answer.error


def test_the_forecast_is_clamped_and_the_tree_is_not():
    setup = TreeSetup()
    plainly = TreeSettings(rule="average")
    answer = forecast(setup, grounder=GivenGrounder(p=lambda leaf: 0.0), settings=plainly)
    assert isinstance(answer, Forecast)
    assert answer.p == {"yes": 0.05}
    (document,) = [event.document for event in setup.of(TreeGrown)]
    assert document["nodes"]["P1.1"]["p"] == 0.0


def test_a_tree_needs_models():
    with pytest.raises(CannotForecast, match="asks a model"):
        asyncio.run(TreeForecaster().forecast(TreeSetup().question, Context(as_of=TreeSetup().question.as_of)))


def test_trials_are_asked_and_seeded_apart():
    setup = TreeSetup(extra={"seed": 7})
    asyncio.run(attempt(TreeForecaster(), setup.question, replace(setup.context, trial=2)))
    assert {request.settings.seed for request in setup.requests} == {9}
    assert all(request.slot.startswith("q/trial 2/tree yes/") for request in setup.requests)


def test_events_are_plain_json():
    setup = TreeSetup()
    forecast(setup)
    for event in setup.events:
        assert type(event)(**json.loads(json.dumps(vars(event)))).__class__ is type(event)


def test_whoever_watches_hears_at_once_and_everything():
    heard: list[TraceEvent] = []
    setup = TreeSetup()
    forecast(setup, on_event=heard.append)
    assert len(heard) == len(setup.events) - 2


def test_the_example_of_the_guide_runs(capsys: pytest.CaptureFixture[str]):
    page = (Path(__file__).parents[3] / "docs" / "trees.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    exec(compile(snippet, "trees.md", "exec"), {})
    assert capsys.readouterr().out.strip() == "{'yes': 0.8}"
