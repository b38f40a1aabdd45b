"""Trees as a real process against providers on real sockets: run, killed, resumed, replayed, short of money."""

import asyncio
import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fakes.models import BackgroundModels, FakeDeepResearch
from fakes.stored_run import run_id_of
from foretell.forecasters.tree import evaluate, evaluated, leaves, read_tree, tree_from_dict
from foretell.questions import LeakBlocked, TreeGrown
from foretell.runs import RunStore

BRAIN = "foretell.practice.models.scripts:tree_script"
CLAIM = "The harbour bridge number 0 opens by 31 December 2026."
GROW = ("tree", "grow", CLAIM)
ASKED = ("--as-of", "2026-07-01", "--model", "openai:gpt-5-mini", "--search", "local")
MARK = re.compile(r"#([0-9a-f]{12})")


@pytest.fixture(scope="module")
def planner() -> Iterator[BackgroundModels]:
    with BackgroundModels(script=BRAIN, latency=0.02) as fake:
        yield fake


@pytest.fixture
def house(planner: BackgroundModels, build_house: Callable[..., Any]) -> Any:
    planner.reset()
    return build_house(planner.url)


def billed(provider: BackgroundModels) -> dict[str, int]:
    return provider.stats()["billed"]


def answers_kept(house: Any) -> int:
    """Replies in the journal so far; none where there is no journal yet."""
    if not (house.home / "journal.db").is_file():
        return 0
    with closing(house.journal()) as journal:
        return sum(spend.calls for spend in journal.spent().values())


def test_a_claim_becomes_a_tree_on_paper_and_in_the_store(house: Any):
    told = house.foretell(
        "tree", "grow", CLAIM, *ASKED, "--out", "bridge.json", "--leaves", "4", "--out", "bridge.html"
    )
    assert told.returncode == 0, told.stderr
    assert CLAIM in (house.folder / "bridge.html").read_text(encoding="utf-8")
    lines = told.stdout.splitlines()
    assert lines[0].startswith("P0 0.")
    assert CLAIM in lines[0]
    assert lines[1].startswith("  P1 0.")
    assert "model calls" in told.stdout
    tree = read_tree(house.folder / "bridge.json")
    assert evaluate(tree).p == tree.nodes["P0"].p
    shown = house.foretell("tree", "show", "bridge.json")
    assert shown.stdout.splitlines()[0] == lines[0]
    run = re.search(r"foretell show (\w+) (\S+)", " ".join(told.stdout.split()))
    assert run
    steps = house.foretell("show", run[1], run[2])
    assert "was broken down into" in steps.stdout
    assert "grounded by search" in steps.stdout


def test_nothing_is_paid_twice_when_a_tree_is_asked_for_again(house: Any, planner: BackgroundModels):
    first = house.foretell(*GROW, *ASKED, "--out", "one.json")
    before = billed(planner)
    second = house.foretell(*GROW, *ASKED, "--out", "two.json")
    assert first.returncode == second.returncode == 0
    assert billed(planner) == before
    assert (house.folder / "one.json").read_text() == (house.folder / "two.json").read_text()
    assert second.stdout.splitlines()[0] == first.stdout.splitlines()[0]


def test_a_killed_tree_goes_on_where_it_was(build_house: Callable[..., Any]):
    """Live, too: the moment it was first asked stays its cutoff."""
    with BackgroundModels(script=BRAIN, latency=0.05) as provider:
        house = build_house(provider.url)
        command = [*GROW, *ASKED[2:], "--set", "options.rounds=2", "--out", "tree.json"]
        rng = random.Random(5)
        for point in (4, 30):
            child = house.start(*command)
            while child.poll() is None and answers_kept(house) < point:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.05))
            assert child.poll() is None, "it was to be killed before its end"
            child.kill()
            child.wait()
        end = house.foretell(*command)
        assert end.returncode == 0, end.stderr
        once, paid = set(billed(provider)), sum(billed(provider).values())
        with closing(house.journal()) as journal:
            assert paid - len(once) <= journal.maybe_paid()
        assert len(once) == 52, "the calls of one undisturbed tree"
        tree = read_tree(house.folder / "tree.json")
        assert all(node.p is not None for node in tree.nodes.values())


def test_a_run_of_trees_killed_or_not_ends_the_same(build_house: Callable[..., Any]):
    options = {"leaves": 4, "rule": "logic"}
    fields: dict[str, Any] = {"options": options, "trials": 2}
    with BackgroundModels(script=BRAIN, latency=0.02) as provider:
        calm = build_house(provider.url, name="calm")
        run = run_inside(calm, **fields)
        once = billed(provider)
        assert set(once.values()) == {1}
        provider.reset()
        house = build_house(provider.url, name="killed")
        spec = house.spec(forecaster="tree", **fields)
        for point in (10, 45):
            child = house.start("run", spec.name)
            while child.poll() is None and answers_kept(house) < point:
                time.sleep(0.01)
            child.kill()
            child.wait()
        assert run_inside(house, **fields) == run
        again = billed(provider)
    assert again.keys() == once.keys()
    with closing(house.journal()) as journal:
        assert sum(again.values()) - len(again) <= journal.maybe_paid()
    assert len(house.forecasts(run)) == 6
    assert house.answers(run) == calm.answers(run)
    assert house.events(run) == calm.events(run)
    replayed = house.foretell("replay", run)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def run_inside(house: Any, *, ends: tuple[int, ...] = (0,), **fields: Any) -> str:
    """A run of trees within this process; its id."""
    spec = house.spec(forecaster="tree", **fields)
    told = house.foretell("run", spec.name)
    assert told.returncode in ends, told.stderr
    return run_id_of(spec)


def trees(house: Any, run: str) -> list[Any]:
    with closing(RunStore(house.home / "runs.db")) as store:
        found = [event.document for _, _, event in store.events(run) if isinstance(event, TreeGrown)]
    return [evaluated(tree_from_dict(document).tree) for document in found]


def test_trees_of_a_run_are_kept_as_files_and_as_events(house: Any):
    run = run_inside(house, options={"grounder": "plain"})
    files = sorted((house.home / "trees" / run).glob("*.json"))
    assert len(files) == 3
    kept = {tree.nodes["P0"].p for tree in trees(house, run)}
    assert {read_tree(path).nodes["P0"].p for path in files} == kept
    assert {forecast.p["yes"] for forecast in house.forecasts(run)} == kept


def test_leaks_are_dropped_before_any_grounder_sees_them(house: Any):
    run = run_inside(house, models={"agent": "openai:searcher"})
    with closing(RunStore(house.home / "runs.db")) as store:
        blocked = [event for _, _, event in store.events(run) if isinstance(event, LeakBlocked)]
    assert {event.layer for event in blocked} >= {"content"}
    with closing(house.journal()) as journal:
        rows = journal.database.read("select answer from kept where kind = 'model'")
    assert not any(b"It was approved" in answer for (answer,) in rows)


def test_a_clumsy_model_over_the_wire_is_asked_again(house: Any, planner: BackgroundModels):
    told = house.foretell(
        "tree", "grow", CLAIM, "--as-of", "2026-07-01", "--model", "openai:clumsy", "--grounder", "plain"
    )
    assert told.returncode == 0, told.stderr
    assert "the mean of the children stands in" not in told.stdout + told.stderr
    assert sum(billed(planner).values()) == 2 * (2 + 4 + 2)


def test_a_small_budget_makes_a_small_tree(house: Any):
    told = house.foretell(
        "tree", "grow", CLAIM, *ASKED, "--set", "options.rounds=3", "--budget", "0.04", "--out", "small.json"
    )
    assert told.returncode == 0, told.stderr
    tree = read_tree(house.folder / "small.json")
    assert 3 <= len(tree.nodes) <= 8
    assert not tree.nodes["P0"].incomplete


def test_a_budget_that_ends_midway_leaves_marked_trees(house: Any):
    """The limit is that of the whole run, which no tree knows of."""
    # 3 where a tree has no leaf at all when the money is gone.
    limited = {"budget": {"run": 0.05}, "sampling": {"max_tokens": 1500}}
    run = run_inside(house, ends=(0, 3), options={"rounds": 2}, **limited)
    found = trees(house, run)
    marked = [tree for tree in found if tree.nodes["P0"].incomplete]
    assert marked
    for tree in marked:
        failed = [node for node in tree.nodes.values() if not node.children and node.p is None]
        assert failed
        assert all("the budget of the run" in node.grounding.error for node in failed if node.grounding)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--model", "openai:gpt-5-mini", "--search", "altavista"), "no search engine is called 'altavista'"),
        (("--model", "gpt-5-mini"), "cannot read the model name"),
        (("--model", "openai:gpt-5-mini", "--set", "models.boss=x"), "no role"),
        (("--model", "openai:gpt-5-mini", "--closes", "soon"), "--closes"),
        (
            ("--model", "openai:m", "--grounder", "deep", "--set", "options.deep_model=anthropic:x"),
            "",
        ),
    ],
)
def test_what_cannot_work_is_told_in_one_line(house: Any, arguments: tuple[str, ...], told: str):
    end = house.foretell(*GROW, *arguments)
    assert end.returncode == 2
    assert told in end.stderr
    assert "Traceback" not in end.stderr


def test_an_unknown_option_of_a_run_is_named(house: Any):
    path: Path = house.spec(forecaster="tree", options={"leafs": 3})
    end = house.foretell("run", path.name)
    assert end.returncode == 2
    assert "the forecaster 'tree' has no option 'leafs'" in end.stderr


def test_json_for_programs(house: Any):
    end = house.foretell(*GROW, *ASKED, "--grounder", "plain", "--json")
    assert json.loads(end.stdout)["tree"]["nodes"]["P0"]["claim"] == CLAIM
    assert MARK.search(end.stdout)


class InThread:
    """A fake provider on a loop of its own."""

    def __init__(self, fake: Any) -> None:
        self.fake = fake
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Any:
        self._thread.start()
        self._run(self.fake.__aenter__())
        return self.fake

    def __exit__(self, *_: object) -> None:
        self._run(self.fake.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)


def test_a_deep_research_model_searches_through_us(build_house: Callable[..., Any]):
    pytest.importorskip("mcp")
    with InThread(FakeDeepResearch()) as fake:
        house = build_house(fake.url)
        deep = ("--grounder", "deep", "--set", "options.deep_model=openai:gpt-6.1-sol", "--leaves", "3")
        told = house.foretell(*GROW, *ASKED, *deep, "--out", "deep.json")
        assert told.returncode == 0, told.stderr
        asked = len(fake.asked)
        again = house.foretell(*GROW, *ASKED, *deep, "--out", "deep.json")
        assert again.returncode == 0, again.stderr
        assert len(fake.asked) == asked == 3
    tree = read_tree(house.folder / "deep.json")
    assert {tree.nodes[id].grounding.grounder for id in leaves(tree)} == {"deep"}
    assert any(tree.nodes[id].grounding.sources for id in leaves(tree))
    assert "LEAK ME" not in "".join(fake.read)
    assert "It was approved" not in "".join(fake.read)


def test_a_provider_elsewhere_needs_a_way_to_the_search(house: Any):
    away = house.with_environment(FORETELL_OPENAI_URL="https://api.openai.com/v1")
    deep = ("--grounder", "deep", "--set", "options.deep_model=openai:gpt-6.1-sol")
    told = away.foretell(*GROW, *ASKED, *deep)
    assert told.returncode == 2
    assert "search_server in settings.toml" in told.stderr


def test_leaves_in_notebooks_are_saved_beside_the_tree(house: Any):
    told = house.foretell(
        "tree", "grow", CLAIM, *ASKED, "--grounder", "notebook", "--leaves", "3", "--out", "with_books.json"
    )
    if "sandbox" in told.stderr and told.returncode == 2:
        pytest.skip(told.stderr)
    assert told.returncode == 0, told.stderr
    tree = read_tree(house.folder / "with_books.json")
    for id in leaves(tree):
        assert tree.nodes[id].grounding.notebook == f"with_books_notebooks/{id}.ipynb"
        book = json.loads((house.folder / tree.nodes[id].grounding.notebook).read_text())
        assert book["nbformat"] == 4
    # The tree in the home has notebooks of its own.
    (listed,) = json.loads(house.foretell("tree", "list", "--json").stdout)["trees"]
    assert listed["claim"] == CLAIM
    own = read_tree(house.home / "trees" / f"{listed['name']}.json")
    assert all((house.home / "trees" / own.nodes[id].grounding.notebook).is_file() for id in leaves(own))


def test_each_leaf_to_the_grounder_that_suits_it(house: Any):
    told = house.foretell(*GROW, *ASKED, "--grounder", "auto", "--leaves", "3", "--out", "auto.json")
    assert told.returncode == 0, told.stderr
    tree = read_tree(house.folder / "auto.json")
    assert {tree.nodes[id].grounding.grounder for id in leaves(tree)} == {"search"}
