"""Trees in real processes against providers on real sockets: run, killed, resumed, replayed and limited by a budget."""

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
from foretell.forecasters.tree.arithmetic.evaluation import evaluate, evaluated
from foretell.forecasters.tree.proposition import leaves
from foretell.forecasters.tree.tree_file import read_tree, tree_from_dict
from foretell.questions.trace import LeakBlocked, TreeGrown
from foretell.runs.store import RunStore

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
def workspace(planner: BackgroundModels, build_workspace: Callable[..., Any]) -> Any:
    planner.reset()
    return build_workspace(planner.url)


def billed(provider: BackgroundModels) -> dict[str, int]:
    return provider.stats()["billed"]


def answers_kept(workspace: Any) -> int:
    """Return the number of replies in the journal; 0 if there is no journal yet."""
    if not (workspace.home / "journal.db").is_file():
        return 0
    with closing(workspace.journal()) as journal:
        return sum(spend.calls for spend in journal.spent().values())


def test_claim_becomes_a_tree_in_a_file_and_in_the_store(workspace: Any):
    foretell = workspace.foretell(
        "tree", "grow", CLAIM, *ASKED, "--out", "bridge.json", "--leaves", "4", "--out", "bridge.html"
    )
    assert foretell.returncode == 0, foretell.stderr
    assert CLAIM in (workspace.folder / "bridge.html").read_text(encoding="utf-8")
    lines = foretell.stdout.splitlines()
    assert re.match(r"P0 \d+\.\d % ", lines[0])
    assert CLAIM in lines[0]
    assert re.match(r"  P1 \d+\.\d % ", lines[1])
    assert "model calls" in foretell.stdout
    tree = read_tree(workspace.folder / "bridge.json")
    assert evaluate(tree).p == tree.nodes["P0"].p
    shown = workspace.foretell("tree", "show", "bridge.json")
    assert shown.stdout.splitlines()[0] == lines[0]
    run = re.search(r"foretell show (\w+) (\S+)", " ".join(foretell.stdout.split()))
    assert run
    steps = workspace.foretell("show", run[1], run[2])
    assert "was broken down into" in steps.stdout
    assert "grounded by search" in steps.stdout


def test_repeated_tree_pays_nothing(workspace: Any, planner: BackgroundModels):
    first = workspace.foretell(*GROW, *ASKED, "--out", "one.json")
    before = billed(planner)
    second = workspace.foretell(*GROW, *ASKED, "--out", "two.json")
    assert first.returncode == second.returncode == 0
    assert billed(planner) == before
    assert (workspace.folder / "one.json").read_text() == (workspace.folder / "two.json").read_text()
    assert second.stdout.splitlines()[0] == first.stdout.splitlines()[0]


def test_killed_tree_resumes(build_workspace: Callable[..., Any]):
    """Also live: the time at which it was first asked stays its cutoff."""
    with BackgroundModels(script=BRAIN, latency=0.05) as provider:
        workspace = build_workspace(provider.url)
        command = [*GROW, *ASKED[2:], "--set", "options.rounds=2", "--out", "tree.json"]
        rng = random.Random(5)
        for point in (4, 30):
            child = workspace.start(*command)
            while child.poll() is None and answers_kept(workspace) < point:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.05))
            assert child.poll() is None, "it should be killed before its end"
            child.kill()
            child.wait()
        end = workspace.foretell(*command)
        assert end.returncode == 0, end.stderr
        once, paid = set(billed(provider)), sum(billed(provider).values())
        with closing(workspace.journal()) as journal:
            assert paid - len(once) <= journal.ledger.lost_calls()
        assert len(once) == 52, "the calls of one tree without kills"
        tree = read_tree(workspace.folder / "tree.json")
        assert all(node.p is not None for node in tree.nodes.values())


def test_killed_run_of_trees_has_the_same_answers(build_workspace: Callable[..., Any]):
    options = {"leaves": 4, "rule": "logic"}
    fields: dict[str, Any] = {"options": options, "trials": 2}
    with BackgroundModels(script=BRAIN, latency=0.02) as provider:
        calm = build_workspace(provider.url, name="calm")
        run = run_inside(calm, **fields)
        once = billed(provider)
        assert set(once.values()) == {1}
        provider.reset()
        workspace = build_workspace(provider.url, name="killed")
        spec = workspace.spec(forecaster="tree", **fields)
        for point in (10, 45):
            child = workspace.start("run", spec.name)
            while child.poll() is None and answers_kept(workspace) < point:
                time.sleep(0.01)
            child.kill()
            child.wait()
        assert run_inside(workspace, **fields) == run
        again = billed(provider)
    assert again.keys() == once.keys()
    with closing(workspace.journal()) as journal:
        assert sum(again.values()) - len(again) <= journal.ledger.lost_calls()
    assert len(workspace.forecasts(run)) == 6
    assert workspace.answers(run) == calm.answers(run)
    assert workspace.events(run) == calm.events(run)
    replayed = workspace.foretell("replay", run)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def run_inside(workspace: Any, *, ends: tuple[int, ...] = (0,), **fields: Any) -> str:
    """Run trees in this process and return the run's id."""
    spec = workspace.spec(forecaster="tree", **fields)
    foretell = workspace.foretell("run", spec.name)
    assert foretell.returncode in ends, foretell.stderr
    return run_id_of(spec)


def trees(workspace: Any, run: str) -> list[Any]:
    with closing(RunStore(workspace.home / "runs.db")) as store:
        documents = [event.document for _, _, event in store.events(run) if isinstance(event, TreeGrown)]
    return [evaluated(tree_from_dict(document).tree) for document in documents]


def test_trees_of_a_run_are_kept_as_files_and_as_events(workspace: Any):
    run = run_inside(workspace, options={"grounder": "plain"})
    files = sorted((workspace.home / "trees" / run).glob("*.json"))
    assert len(files) == 3
    roots = {tree.nodes["P0"].p for tree in trees(workspace, run)}
    assert {read_tree(path).nodes["P0"].p for path in files} == roots
    assert {forecast.p["yes"] for forecast in workspace.forecasts(run)} == roots


def test_leaks_are_dropped_before_any_grounder_sees_them(workspace: Any):
    run = run_inside(workspace, models={"agent": "openai:searcher"})
    with closing(RunStore(workspace.home / "runs.db")) as store:
        blocked = [event for _, _, event in store.events(run) if isinstance(event, LeakBlocked)]
    assert {event.layer for event in blocked} >= {"content"}
    with closing(workspace.journal()) as journal:
        rows = journal.database.read("select answer from kept where kind = 'model'")
    assert not any(b"It was approved" in answer for (answer,) in rows)


def test_malformed_replies_are_requested_again(workspace: Any, planner: BackgroundModels):
    asked = ("--as-of", "2026-07-01", "--model", "openai:clumsy", "--grounder", "plain")
    foretell = workspace.foretell("tree", "grow", CLAIM, *asked, "--set", "forecaster=tree")
    assert foretell.returncode == 0, foretell.stderr
    assert "the mean of the children stands in" not in foretell.stdout + foretell.stderr
    assert sum(billed(planner).values()) == 2 * (2 + 4 + 2)
    reasoned = workspace.foretell("tree", "grow", CLAIM, *asked)
    assert reasoned.returncode == 0, reasoned.stderr


def test_a_small_budget_makes_a_small_tree(workspace: Any):
    foretell = workspace.foretell(
        "tree", "grow", CLAIM, *ASKED, "--set", "options.rounds=3", "--budget", "0.04", "--out", "small.json"
    )
    assert foretell.returncode == 0, foretell.stderr
    tree = read_tree(workspace.folder / "small.json")
    assert 3 <= len(tree.nodes) <= 8
    assert not tree.nodes["P0"].incomplete


def test_budget_spent_midway_marks_the_trees(workspace: Any):
    """The limit applies to the whole run."""
    # 3 if a tree has no leaf when the budget is spent.
    limited = {"budget": {"run": 0.05}, "sampling": {"max_tokens": 1500}}
    run = run_inside(workspace, ends=(0, 3), options={"rounds": 2}, **limited)
    saved = trees(workspace, run)
    marked = [tree for tree in saved if tree.nodes["P0"].incomplete]
    assert marked
    for tree in marked:
        failed = [node for node in tree.nodes.values() if not node.children and node.p is None]
        assert failed
        assert all("the budget of the run" in node.grounding.error for node in failed if node.grounding)


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_invalid_options_are_reported_in_one_line(workspace: Any, arguments: tuple[str, ...], message: str):
    end = workspace.foretell(*GROW, *arguments)
    assert end.returncode == 2
    assert message in end.stderr
    assert "Traceback" not in end.stderr


def test_an_unknown_option_of_a_run_is_named(workspace: Any):
    path: Path = workspace.spec(forecaster="tree", options={"leafs": 3})
    end = workspace.foretell("run", path.name)
    assert end.returncode == 2
    assert "the forecaster 'tree' has no option 'leafs'" in end.stderr


def test_tree_prints_json(workspace: Any):
    end = workspace.foretell(*GROW, *ASKED, "--grounder", "plain", "--json")
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


def test_deep_research_model_uses_our_search_server(build_workspace: Callable[..., Any]):
    pytest.importorskip("mcp")
    with InThread(FakeDeepResearch()) as fake:
        workspace = build_workspace(fake.url)
        deep = ("--grounder", "deep", "--set", "options.deep_model=openai:gpt-6.1-sol", "--leaves", "3")
        foretell = workspace.foretell(*GROW, *ASKED, *deep, "--out", "deep.json")
        assert foretell.returncode == 0, foretell.stderr
        requests_before = len(fake.asked)
        again = workspace.foretell(*GROW, *ASKED, *deep, "--out", "deep.json")
        assert again.returncode == 0, again.stderr
        assert len(fake.asked) == requests_before == 3
    tree = read_tree(workspace.folder / "deep.json")
    assert {tree.nodes[id].grounding.grounder for id in leaves(tree)} == {"deep"}
    assert any(tree.nodes[id].grounding.sources for id in leaves(tree))
    assert "LEAK ME" not in "".join(fake.read)
    assert "It was approved" not in "".join(fake.read)


def test_remote_deep_research_needs_a_search_server_address(workspace: Any):
    away = workspace.with_environment(FORETELL_OPENAI_URL="https://api.openai.com/v1")
    deep = ("--grounder", "deep", "--set", "options.deep_model=openai:gpt-6.1-sol")
    foretell = away.foretell(*GROW, *ASKED, *deep)
    assert foretell.returncode == 2
    assert "search_server in settings.toml" in foretell.stderr


def test_leaves_in_notebooks_are_saved_beside_the_tree(workspace: Any):
    foretell = workspace.foretell(
        "tree", "grow", CLAIM, *ASKED, "--grounder", "notebook", "--leaves", "3", "--out", "with_books.json"
    )
    if "sandbox" in foretell.stderr and foretell.returncode == 2:
        pytest.skip(foretell.stderr)
    assert foretell.returncode == 0, foretell.stderr
    tree = read_tree(workspace.folder / "with_books.json")
    for id in leaves(tree):
        assert tree.nodes[id].grounding.notebook == f"with_books_notebooks/{id}.ipynb"
        notebook = json.loads((workspace.folder / tree.nodes[id].grounding.notebook).read_text())
        assert notebook["nbformat"] == 4
    # The tree in the home has its own notebooks.
    (listed,) = json.loads(workspace.foretell("tree", "list", "--json").stdout)["trees"]
    assert listed["claim"] == CLAIM
    own = read_tree(workspace.home / "trees" / f"{listed['name']}.json")
    assert all((workspace.home / "trees" / own.nodes[id].grounding.notebook).is_file() for id in leaves(own))


def test_auto_chooses_a_grounder_for_each_leaf(workspace: Any):
    foretell = workspace.foretell(*GROW, *ASKED, "--grounder", "auto", "--leaves", "3", "--out", "auto.json")
    assert foretell.returncode == 0, foretell.stderr
    tree = read_tree(workspace.folder / "auto.json")
    assert {tree.nodes[id].grounding.grounder for id in leaves(tree)} == {"search"}
