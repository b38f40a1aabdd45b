"""Growing trees: concurrency, determinism, limits, budgets and failures."""

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
    FixedGrounder,
    TreeSetup,
    cannot_ground,
    playing,
    question,
    reply_of,
)

from foretell.forecasters.combine.clamp import Clamp
from foretell.forecasters.forecaster import CannotForecast, Context, EventLog, attempt
from foretell.forecasters.tree.arithmetic.evaluation import evaluate
from foretell.forecasters.tree.forecaster import TreeForecaster, claim_of_target
from foretell.forecasters.tree.grounders.search import SearchGrounder
from foretell.forecasters.tree.grow.ground import CannotGround, Grounder, GroundingPool, GroundingResult, Leaf
from foretell.forecasters.tree.grow.grow import TreeGrowth, TreeJob, tree_job_order
from foretell.forecasters.tree.links import AverageLink, LinearLink
from foretell.forecasters.tree.proposition import Tree, leaves
from foretell.forecasters.tree.settings import TreeSettings
from foretell.forecasters.tree.tree_file import tree_from_dict
from foretell.models.budget import Budget, BudgetedModel
from foretell.models.canonical import request_key
from foretell.models.model import ModelError, Reply, Request
from foretell.models.prices import PriceList
from foretell.models.token_price import TokenPrice
from foretell.practice.models.formats import ScriptedCall, ScriptedReply
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Target
from foretell.questions.trace import (
    Failed,
    ForecastMade,
    LeakBlocked,
    ModelCalled,
    NodeAnalyzed,
    NodeGrounded,
    NodeSynthesized,
    TraceEvent,
    TreeGrown,
)
from foretell.tools.tool import ToolMaterial

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


def test_a_tree_is_grown_from_a_question():
    tree, log = grown(TreeSetup())
    assert list(tree.nodes) == ["P0", "P1", "P1.1", "P1.2", "P2", "P3"]
    assert leaves(tree) == ["P1.1", "P1.2", "P2", "P3"]
    assert all(isinstance(tree.nodes[id].link, LinearLink) for id in ("P0", "P1"))
    assert evaluate(tree).p == tree.nodes["P0"].p
    assert tree.nodes["P0"].report
    assert tree.nodes["P2"].grounding
    assert tree.nodes["P2"].grounding.sources
    assert log.usage().calls == 2 + 4 * 2 + 2


def test_events_are_in_the_order_of_the_tree():
    tree, log = grown(TreeSetup())
    events = [
        event
        for event in log.events(tree_job_order(tree))
        if isinstance(event, NodeAnalyzed | NodeGrounded | NodeSynthesized)
    ]
    assert [(type(event).__name__, event.node) for event in events] == [
        ("NodeAnalyzed", "P0"),
        ("NodeGrounded", "P1.1"),
        ("NodeGrounded", "P1.2"),
        ("NodeGrounded", "P2"),
        ("NodeGrounded", "P3"),
        ("NodeSynthesized", "P1"),
        ("NodeSynthesized", "P0"),
    ]


class Shuffled:
    """A model that answers after random delays."""

    def __init__(self, seed: int) -> None:
        self.inner = playing()
        self._rng = random.Random(seed)

    async def complete(self, request: Request) -> Reply:
        for _ in range(self._rng.randrange(40)):
            await asyncio.sleep(0)
        return await self.inner.complete(request)


def test_timing_changes_neither_requests_nor_events_nor_the_tree():
    def run(seed: int) -> tuple[Tree, list[TraceEvent], set[str]]:
        model = Shuffled(seed)
        tree, log = grown(TreeSetup(model=model), rounds=3, nodes=150)
        return tree, log.events(tree_job_order(tree)), {request_key(request) for request in model.inner.requests}

    first, second = run(1), run(2)
    assert first[0] == second[0]
    assert first[1] == second[1]
    assert first[2] == second[2]
    assert len(first[0].nodes) > 50


def test_events_of_concurrent_calls_within_a_leaf_have_a_fixed_order():
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
def test_leaves_are_broken_down_again_in_every_round(rounds: int, nodes: int):
    tree, _ = grown(TreeSetup(name="scripted:planner-4"), rounds=rounds)
    assert len(tree.nodes) == nodes
    assert "P4.4" in tree.nodes or rounds == 1


def test_the_node_budget_is_split_equally():
    tree, _ = grown(TreeSetup(name="scripted:planner-4"), rounds=3, nodes=30)
    assert len(tree.nodes) <= 30
    assert {len(tree.nodes[f"P{n}"].children) for n in (1, 2, 3, 4)} == {4}


def test_the_leaf_limit_and_the_depth_limit_are_respected():
    tree, _ = grown(TreeSetup(name="scripted:planner-4"), rounds=4, max_leaves=20)
    assert len(leaves(tree)) <= 20
    tree, _ = grown(TreeSetup(name="scripted:planner-4"), rounds=4, depth=1)
    assert len(tree.nodes) == 5
    tree, _ = grown(TreeSetup(), depth=0)
    assert list(tree.nodes) == ["P0"]
    assert tree.nodes["P0"].grounding


def test_request_length_does_not_grow_with_the_tree():
    setup = TreeSetup(name="scripted:planner-4")
    grown(setup, rounds=4)
    sizes = [sum(len(message.text) for message in request.messages) for request in setup.requests]
    small = TreeSetup(name="scripted:planner-4")
    grown(small)
    usual = max(sum(len(message.text) for message in request.messages) for request in small.requests)
    assert max(sizes) < usual + 1500


def test_a_failed_leaf_marks_only_its_ancestors_as_incomplete():
    def broken(leaf: Leaf) -> float:
        if leaf.id == "P1.2":
            raise CannotGround("nothing found")
        return 0.25

    tree, log = grown(TreeSetup(), FixedGrounder(p=broken))
    assert tree.nodes["P1.2"].p is None
    assert "nothing found (4 attempts)" in tree.nodes["P1.2"].grounding.error
    assert {id: node.incomplete for id, node in tree.nodes.items() if node.incomplete} == {
        "P1.2": ("P1.2",),
        "P1": ("P1.2",),
        "P0": ("P1.2",),
    }
    assert tree.nodes["P1"].notes == ("0.5 is used for P1.2",)
    assert any("could not be grounded: P1.2" in note for note in tree.notes)
    failed = [
        event for event in log.events(tree_job_order(tree)) if isinstance(event, NodeGrounded) and event.p is None
    ]
    assert [(event.node, event.attempts) for event in failed] == [("P1.2", 4)]


def test_a_branch_without_probabilities_gets_no_link_and_no_request():
    setup = TreeSetup()

    def broken(leaf: Leaf) -> float:
        if leaf.id.startswith("P1"):
            raise CannotGround("no")
        return 0.25

    tree, _ = grown(setup, FixedGrounder(p=broken))
    assert tree.nodes["P1"].link is None
    assert isinstance(tree.nodes["P0"].link, LinearLink)
    assert not [request for request in setup.requests if "P1/synthesis" in request.slot]


def test_an_input_error_stops_the_growth_immediately():
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


def test_a_claim_that_is_not_broken_down_is_grounded_itself():
    def silent(request: Request) -> Exception | None:
        return ModelError("down") if "analysis" in request.slot else None

    tree, _ = grown(TreeSetup(model=playing(silent)))
    assert list(tree.nodes) == ["P0"]
    assert tree.nodes["P0"].p is not None
    assert "ended early" in tree.notes[0]


def test_every_rule_grows_a_valid_tree():
    for rule in ("linear", "logic", "vanilla", "average", "random", "noisy-or", "inhibited-noisy-or"):
        tree, _ = grown(TreeSetup(), rule=rule)
        assert evaluate(tree).p == tree.nodes["P0"].p, rule


def test_correlated_siblings_are_noted():
    tree, _ = grown(TreeSetup(), correlations=True)
    assert any("judged to move together" in note for note in tree.notes)


def test_a_clumsy_model_is_corrected_and_grows_a_valid_tree():
    setup = TreeSetup(name="scripted:clumsy")
    tree, _ = grown(setup)
    assert evaluate(tree).p == tree.nodes["P0"].p
    assert not any(isinstance(node.link, AverageLink) for node in tree.nodes.values())
    again = [request for request in setup.requests if "could not be used" in request.messages[-1].text]
    assert {request.slot.split("/")[4].split()[0] for request in again} == {"analysis", "grounding", "synthesis"}


def forecast(setup: TreeSetup, **fields: Any) -> Forecast | Failure:
    return asyncio.run(attempt(TreeForecaster(**fields), setup.question, setup.context))


def test_the_forecaster_forecasts_and_stores_the_tree():
    setup, stored = TreeSetup(), []
    answer = forecast(
        setup, store_tree=lambda question, trial, target, tree: stored.append((question.id, trial, target, tree))
    )
    assert isinstance(answer, Forecast)
    (document,) = [event.document for event in setup.of(TreeGrown)]
    tree = tree_from_dict(document).tree
    assert answer.p == {"yes": tree.nodes["P0"].p}
    assert stored[0][:3] == ("q", 0, "yes")
    assert evaluate(stored[0][3]).p == answer.p["yes"]
    assert answer.forecaster == "tree analytica-linear search"
    assert answer.usage.calls == len(setup.of(ModelCalled)) == len(setup.requests)
    assert setup.events[-1] == ForecastMade(p=answer.p, how="root of a tree")
    assert "P1.1" in answer.rationale
    assert "https://news.example/2025-10-01" in answer.rationale


def test_leaks_are_blocked_and_reported_in_every_leaf():
    setup = TreeSetup()
    forecast(setup)
    assert len(setup.of(LeakBlocked)) == 8
    seen = "\n".join(message.text for request in setup.requests for message in request.messages)
    assert "2025-11-05" not in seen
    assert "LEAK ME" not in seen


def test_only_one_of_two_exclusive_options_gets_a_tree():
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
        setup, grounder=FixedGrounder(p=lambda leaf: 0.4), settings=TreeSettings(clamp=Clamp(low=0, high=1))
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


def test_a_tree_without_grounded_leaves_is_a_failure():
    setup = TreeSetup()
    answer = forecast(setup, grounder=FixedGrounder(p=cannot_ground("no tools")))
    assert isinstance(answer, Failure)
    assert "no tools" in answer.error
    assert setup.of(Failed)


def test_a_budget_exceeded_midway_leaves_an_incomplete_tree():
    setup = TreeSetup(prices=PRICES)
    inner = setup.model
    # Every call costs 3 cents; calls are made as long as the budget covers a short reply.
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
def test_the_size_of_a_tree_is_limited_by_its_budget(dollars: float, nodes: int):
    """A leaf costs 2.6 dollars at these prices, and three quarters of the budget are for leaves."""
    setup = TreeSetup(prices=PRICES, name="scripted:planner-4")
    prices = PriceList({setup.name: TokenPrice(input=100, output=1000)})
    setup.prices = prices
    tree, _ = grown(setup, rounds=2, dollars=dollars)
    assert len(tree.nodes) <= nodes
    assert len(leaves(tree)) * 2.6 <= max(0.75 * dollars + 4 * 2.6, 2.6)


def test_an_insufficient_budget_is_a_failure():
    setup = TreeSetup(prices=PRICES)
    setup.model = BudgetedModel(setup.model, PRICES, Budget("question", dollars=0.01))
    answer = forecast(setup)
    assert isinstance(answer, Failure)
    assert "budget" in answer.error


def test_the_forecast_is_clamped_and_the_tree_is_not():
    setup = TreeSetup()
    plainly = TreeSettings(rule="average")
    answer = forecast(setup, grounder=FixedGrounder(p=lambda leaf: 0.0), settings=plainly)
    assert isinstance(answer, Forecast)
    assert answer.p == {"yes": 0.05}
    (document,) = [event.document for event in setup.of(TreeGrown)]
    assert document["nodes"]["P1.1"]["p"] == 0.0


def test_a_tree_without_a_model_cannot_forecast():
    with pytest.raises(CannotForecast, match="asks a model"):
        asyncio.run(TreeForecaster().forecast(TreeSetup().question, Context(as_of=TreeSetup().question.as_of)))


def test_trials_have_their_own_seeds_and_slots():
    setup = TreeSetup(extra={"seed": 7})
    asyncio.run(attempt(TreeForecaster(), setup.question, replace(setup.context, trial=2)))
    assert {request.settings.seed for request in setup.requests} == {9}
    assert all(request.slot.startswith("q/trial 2/tree yes/") for request in setup.requests)


def test_events_can_be_converted_to_json_and_back():
    setup = TreeSetup()
    forecast(setup)
    for event in setup.events:
        assert type(event)(**json.loads(json.dumps(vars(event)))).__class__ is type(event)


def test_the_listener_receives_all_events_immediately():
    events: list[TraceEvent] = []
    setup = TreeSetup()
    forecast(setup, on_event=events.append)
    assert len(events) == len(setup.events) - 2


def test_the_example_of_the_guide_runs(capsys: pytest.CaptureFixture[str]):
    page = (Path(__file__).parents[3] / "docs" / "trees.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    exec(compile(snippet, "trees.md", "exec"), {})
    assert capsys.readouterr().out.strip() == "{'yes': 0.8}"
