"""A tree as a living document: edited, examined again, taken apart, judged anew, with every version kept."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.forecasters.tree.random_trees import claim, tree_of
from tests.forecasters.tree.scripted_tree import playing

from foretell.cli import operation_command
from foretell.forecasters.tree import (
    AverageLink,
    ConflictingEdits,
    FormulaLink,
    Grounding,
    JudgedLink,
    LinearLink,
    Link,
    Proposition,
    SetP,
    Tree,
    TreeAuthor,
    check_file,
    child_id,
    commit_edits,
    evaluated,
    history_path,
    open_version,
    read_history,
    read_tree,
    stale_parts,
    tree_at,
    tree_failures,
    write_tree,
)
from foretell.forecasters.tree.what_if import what_if
from foretell.mcp import TOOLS, ServerPermissions, available_tools
from foretell.models import ModelError, Request
from foretell.models.providers import ScriptedModel, model_name
from foretell.operations import (
    TreeEditResult,
    diff_trees,
    edit_tree,
    expand_leaf,
    ground_leaves,
    grow_tree,
    report_tree,
    resynthesize_tree,
    tree_history,
)
from foretell.questions import InputError
from foretell.runs import Settings

NEWS = "The operator of the harbour bridge is paid by 1 June 2026."


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = Grounding(grounder="plain", report="Old facts.")
    nodes = (
        claim("P0", children=("P1", "P2"), link=LinearLink(weights={"P1": 0.5, "P2": 0.4}, intercept=0.05)),
        claim("P1", children=("P1.1", "P1.2"), link=FormulaLink(expression="P1.1 AND P1.2"), rule="logic"),
        claim("P2", p=0.5, grounding=found),
        claim("P1.1", p=0.4, grounding=found),
        claim("P1.2", p=0.8, grounding=found),
    )
    tree = tree_of(*nodes)
    top = replace(tree.nodes["P0"], claim="The harbour bridge opens to traffic in 2026.")
    write_tree(tmp_path / "t.json", evaluated(replace(tree, nodes={**tree.nodes, "P0": top})))
    return tmp_path / "t.json"


def do(
    operation: Callable[..., Any], file: Path, *named: str, model: ScriptedModel | None = None, **fields: Any
) -> Any:
    given = {"model": model_name(model)} if model is not None else {}
    return operation(file, *named, settings=Settings(home=file.parent / "home"), who="ann", **given, **fields)


def grounded(file: Path, *ids: str, **fields: Any) -> Any:
    return do(ground_leaves, file, claims=ids, grounder="plain", **fields)


def asked_for(model: ScriptedModel) -> list[str]:
    return [request.slot.split("/")[-3] for request in model.requests if "/synthesis" in request.slot]


def test_other_words_make_stale_what_was_judged_from_the_old_ones_and_nothing_else(file: Path):
    before = read_tree(file)
    done = do(edit_tree, file, claim={"P1.2": NEWS}, why="postponed")
    tree = read_tree(file)
    assert {id for id, node in tree.nodes.items() if node.stale} == {"P1.2", "P1"}
    assert tree.nodes["P0"].p == before.nodes["P0"].p
    assert done.stale == ("P1",)
    assert any("P1.2 is stale: its statement was changed" in one for one in stale_parts(tree))
    assert sum("is stale" in str(one) for one in check_file(file)) == 2
    model = playing()
    do(resynthesize_tree, file, model=model)
    assert asked_for(model) == ["P1"], "P0 reads P1 by its number, and its own words did not change"
    tree = read_tree(file)
    assert (tree.nodes["P1"].stale, tree.nodes["P1"].rule) == ("", "logic")
    assert isinstance(tree.nodes["P1"].link, FormulaLink)
    grounded(file, model=playing())
    assert stale_parts(read_tree(file)) == []
    assert read_tree(file).nodes["P2"] == before.nodes["P2"]
    versions = tree_history(file, settings=Settings(home=file.parent / "home")).versions
    assert [one.why for one in versions] == [
        "as it was found",
        "postponed",
        "judged P1 anew",
        "examined P1.2 by plain",
    ]
    assert versions[1].changed == ("P1.2",)
    assert tree_at(file, 1) == before
    assert tree_at(file, 4) == read_tree(file)
    do(tree_history, file, restore=1)
    assert read_tree(file) == before
    assert len(read_history(file)) == 5


def test_a_number_asks_no_model_and_a_judged_claim_above_it_is_asked(file: Path):
    do(edit_tree, file, set={"P1.1": 0.9})
    model = playing()
    do(resynthesize_tree, file, model=model)
    assert model.requests == []
    links: dict[str, Link] = {"P0": JudgedLink(p=0.3)}
    tree = read_tree(file)
    write_tree(file, Tree(root="P0", nodes={**tree.nodes, **{i: _with(tree, i, link=one) for i, one in links.items()}}))
    do(edit_tree, file, set={"P1.1": 0.1})
    assert "P0 was judged before something beneath it changed" in stale_parts(read_tree(file))
    do(resynthesize_tree, file, model=model)
    assert asked_for(model) == ["P0"]


def _with(tree: Tree, id: str, **fields: Any) -> Proposition:
    return replace(tree.nodes[id], **fields)


def test_one_edit_in_a_thousand_claims_asks_for_one_rule(tmp_path: Path):
    nodes: dict[str, Proposition] = {}
    below = {"P0": [child_id("P0", n) for n in range(1, 11)]}
    for depth in (1, 2):
        for id in [one for ones in list(below.values()) for one in ones if one not in below]:
            below[id] = [child_id(id, n) for n in range(1, 11)]
        assert depth
    for id in [*below, *(one for ones in below.values() for one in ones if one not in below)]:
        children = tuple(below.get(id, ()))
        link = LinearLink(weights=dict.fromkeys(children, 0.09)) if children else None
        nodes[id] = claim(
            id, children=children, link=link, p=None if children else 0.5, rule="linear" if children else ""
        )
    assert len(nodes) == 1111
    file = tmp_path / "large.json"
    write_tree(file, Tree(root="P0", nodes=nodes))
    do(edit_tree, file, claim={"P3.4.5": NEWS}, set={"P7.1.1": 0.9})
    model = playing()
    plan = do(resynthesize_tree, file, model=model, plan=True)
    assert isinstance(plan, TreeEditResult)
    assert [(step.claim, step.calls) for step in plan.steps] == [("P3.4", 1), ("P3", 0), ("P0", 0)]
    assert model.requests == []
    do(resynthesize_tree, file, model=model)
    assert asked_for(model) == ["P3.4"]
    last = read_history(file)[-1]
    assert set(last.delta["nodes"]) == {"P3.4", "P3", "P0"}, "a version holds what changed"
    changed = what_if(read_tree(file), {"P9.9.9": 0.1}).changes
    assert {one.id for one in changed} == {"P9.9.9", "P9.9", "P9", "P0"}


def test_a_leaf_is_examined_several_times_and_a_dead_grounder_costs_nothing(file: Path):
    done = grounded(file, "P2", trials=3, model=playing())
    leaf = read_tree(file).nodes["P2"]
    assert leaf.grounding is not None
    assert len(leaf.grounding.trials) == 3
    assert leaf.p == pytest.approx(sum(leaf.grounding.trials) / 3)
    assert isinstance(done, TreeEditResult)
    grounded(file, "P2", trials=2, keep_trials=True, model=playing())
    more = read_tree(file).nodes["P2"].grounding
    assert more is not None
    assert more.trials[:3] == leaf.grounding.trials
    assert len(more.trials) == 5
    before = read_tree(file)
    dead = playing(lambda request: ModelError("down") if "grounding" in request.slot else None)
    failed = grounded(file, "P2", retries=0, model=dead)
    assert failed.exit_code == 3
    assert "P2 could not be examined: down" in failed.warnings
    assert read_tree(file) == before
    for fields, problem in (
        ({"claims": ("P1",)}, "only leaves can be researched"),
        ({"claims": ("P9",)}, "not in the tree"),
        ({"claims": ()}, "no leaf is stale"),
    ):
        with pytest.raises(InputError, match=problem):
            do(ground_leaves, file, model=playing(), **fields)


def test_a_leaf_is_taken_apart_within_its_tree(file: Path):
    model = playing()
    plan = do(expand_leaf, file, "P2", model=model, plan=True)
    assert plan.calls > 3
    assert (model.requests, history_path(file).exists()) == ([], False)
    done = do(expand_leaf, file, "P2", model=model, grounder="plain", leaves=4)
    assert done.failed == ()
    tree = read_tree(file)
    assert tree.nodes["P2"].children[0] == "P2.1"
    assert tree.nodes["P2"].grounding is None
    assert tree.nodes["P2"].causality
    assert tree.nodes["P0"].p == pytest.approx(0.05 + 0.5 * 0.32 + 0.4 * (tree.nodes["P2"].p or 0))
    assert done.failed == ()
    assert tree_failures(tree) == []
    assert "Claim P1." in next(r for r in model.requests if "/P2/analysis" in r.slot).messages[1].text, "what is beside"
    with pytest.raises(InputError, match="only leaves"):
        do(expand_leaf, file, "P2", model=model)
    mute = playing(lambda request: ModelError("down") if "analysis" in request.slot else None)
    before = read_tree(file)
    stays = do(expand_leaf, file, "P1.1", model=mute, grounder="plain")
    assert stays.exit_code == 3
    assert "P1.1 stays a leaf" in stays.failed[0]
    assert read_tree(file) == before


def test_judgements_that_cannot_be_had_leave_the_old_ones_standing(file: Path):
    do(edit_tree, file, claim={"P1.2": NEWS})
    before = read_tree(file)
    stubborn = playing(lambda request: '{"formula": "P9"}' if "/synthesis" in request.slot else None)
    done = do(resynthesize_tree, file, model=stubborn)
    assert (done.exit_code, len(stubborn.requests)) == (3, 3)
    assert "P1 could not be judged again" in done.failed[0]
    assert read_tree(file) == before
    assert check_file(file)
    again = playing()
    do(resynthesize_tree, file, claims=("P1",), model=again)
    assert asked_for(again) == ["P1"], "named, it is asked anew and not read from the journal"


def test_children_come_go_and_move(file: Path):
    do(edit_tree, file, add=[f"P0={NEWS}", "P1=The council of Oslo agrees by 1 May 2026."], why="new parts")
    tree = read_tree(file)
    assert tree.nodes["P0"].children == ("P1", "P2", "P3")
    assert tree.nodes["P0"].stale == "P3 was added"
    assert tree.nodes["P0"].p == pytest.approx(0.05 + 0.5 * 0.32 + 0.2), "a child without a weight does not count yet"
    assert isinstance(tree.nodes["P1"].link, JudgedLink), "a formula cannot leave a child out: its number stands"
    assert tree.nodes["P1"].p == pytest.approx(0.32)
    model = playing()
    do(resynthesize_tree, file, model=model)
    assert asked_for(model) == ["P1", "P0"]
    assert isinstance(read_tree(file).nodes["P1"].link, FormulaLink), "by the rule it had"
    do(edit_tree, file, remove=["P1.1"], weights={"P0": "0.05 + 0.4*P1 − 0.2*P2 + 0.1*P3"})
    tree = read_tree(file)
    assert "P1.1" not in tree.nodes
    assert tree.nodes["P0"].link == LinearLink(intercept=0.05, weights={"P1": 0.4, "P2": -0.2, "P3": 0.1})
    assert stale_parts(tree) == ["P1 was judged before something beneath it changed"]
    do(edit_tree, file, move={"P1.2": "P0"}, formula={"P1": "P1.3"})
    assert read_tree(file).nodes["P0"].children == ("P1", "P2", "P3", "P1.2")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"add": ["P9=x"]}, "PARENT=TEXT"),
        ({"weights": {"P0": "0.4 P1"}}, "not a term"),
        ({"move": {"P0": "P2"}}, "cannot rest on itself"),
        ({"remove": ["P0"]}, "is the root"),
    ]
    for fields, problem in wrong:
        with pytest.raises(InputError, match=problem):
            do(edit_tree, file, **fields)


def test_two_people_edit_one_tree(file: Path):
    _, base = open_version(file)
    do(edit_tree, file, claim={"P2": NEWS}, why="first")
    merged = edit_tree(file, set={"P1.1": 0.9}, base_version=base, who="bob")
    assert [one.version for one in merged.merged] == [2]
    tree = read_tree(file)
    assert (tree.nodes["P2"].claim, tree.nodes["P1.1"].p) == (NEWS, 0.9)
    written = file.read_bytes()
    with pytest.raises(ConflictingEdits, match=r"P2 by ann in version 2: first\. Nothing was written"):
        edit_tree(file, set={"P2": 0.1}, base_version=base, who="bob")
    do(edit_tree, file, remove=["P1.2"])
    with pytest.raises(ConflictingEdits, match=r"P1\.2"):
        edit_tree(file, report={"P1.2": "Seen."}, base_version=base)
    assert written != file.read_bytes()
    # A rule that was judged while somebody reworded a child is stale from the start.
    _, base = open_version(file)
    do(edit_tree, file, claim={"P1.1": "The bank of Oslo agrees by 1 May 2026."})
    edit_tree(file, weights={"P1": "0.9*P1.1"}, base_version=base)
    assert read_tree(file).nodes["P1"].stale == "the statement of P1.1 was changed in the meantime"


def test_many_at_once_lose_nothing(file: Path):
    def edit(number: int) -> None:
        for turn in range(3):
            commit_edits(file, [SetP(id="P2", p=round(0.1 + number / 20 + turn / 100, 3))], TreeAuthor(who=str(number)))

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = read_history(file)
    assert [one.version for one in versions] == list(range(1, 20))
    assert tree_at(file, 19) == read_tree(file)
    assert sorted(one.who for one in versions[1:]) == sorted("012345" * 3)


def test_a_history_that_was_cut_off_and_a_file_changed_by_hand(file: Path):
    do(edit_tree, file, set={"P2": 0.2})
    history = history_path(file)
    history.write_bytes(history.read_bytes() + b'{"version": 3, "at": "20')
    file.write_text(file.read_text().replace('"p": 0.4', '"p": 0.45'))
    do(edit_tree, file, set={"P2": 0.3})
    assert [one.why for one in read_history(file)] == [
        "as it was found",
        "",
        "changed by other means than foretell",
        "",
    ]
    assert tree_at(file, 3).nodes["P1.1"].p == 0.45
    assert tree_at(file, 4) == read_tree(file)
    with pytest.raises(InputError, match="there is no version 9"):
        tree_at(file, 9)
    history.write_text("nonsense\n")
    with pytest.raises(InputError, match="is not a history"):
        read_history(file)


def test_commands(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("FORETELL_HOME", str(file.parent / "home"))

    def run(*words: str) -> Result:
        return CliRunner().invoke(operation_command("tree"), [*words[:1], str(file), *words[1:]])

    planned = run("edit", "--claim", f"P2={NEWS}", "--plan")
    assert "Nothing was written" in planned.output
    assert "P2 is stale: its statement was changed" in planned.output
    assert not history_path(file).exists()
    assert run("edit", "--claim", f"P2={NEWS}", "--set", "P1.1=0.9", "--who", "ann", "--why", "why not").exit_code == 0
    assert "ann  why not  (P1.1, P2)" in run("history").output.replace("(P2, P1.1)", "(P1.1, P2)")
    shown = run("diff").output
    assert "P1.1 0.400 → 0.900" in shown
    assert f"    claim: Claim P2. → {NEWS}" in shown
    assert json.loads(run("diff", "--json").stdout)["changes"]
    assert "stale: its statement was changed" in run("show").output
    plan = run("ground", "--trials", "4", "--plan", "--model", "practice:x", "--model-price", "1/2", "--json")
    assert json.loads(plan.stdout)["plan"][0]["claim"] == "P2"
    assert json.loads(plan.stdout)["dollars"] > 0
    assert diff_trees(file, file).changes == []


def test_an_assistant_edits_the_trees_of_its_server_and_no_others(file: Path):
    home = file.parent / "home"
    (home / "trees").mkdir(parents=True)
    (home / "trees" / "t.json").write_bytes(file.read_bytes())
    permissions = ServerPermissions(settings=Settings(home=home))
    tools = {tool.name: tool for tool in TOOLS}

    def use(name: str, **fields: Any) -> dict[str, Any]:
        tool = tools[name]
        return asyncio.run(tool.use(permissions, tool.read(permissions, fields)))  # pyright: ignore[reportArgumentType]

    done = use("edit_tree", tree="t", set={"P2": 0.9}, why="asked")
    assert (done["version"], done["changes"][-1]["is"]) == (2, 0.9)
    assert [one["who"] for one in use("tree_history", tree="t")["versions"]] == ["", "over MCP"]
    assert use("diff_trees", tree="t")["changes"]
    for name, fields, problem in (
        ("edit_tree", {"tree": str(file), "set": {"P2": 0.1}}, "not a tree of this server"),
        ("edit_tree", {"tree": "../../t", "set": {"P2": 0.1}}, "not a tree of this server"),
        ("edit_tree", {"tree": "t", "edits": str(file)}, "does not offer it"),
        ("edit_tree", {"tree": "t", "rejudge": True}, "spending is off"),
        ("diff_trees", {"tree": str(file)}, "no file may be read"),
    ):
        with pytest.raises(InputError, match=problem):
            use(name, **fields)
    assert "ground_leaves" not in {tool.name for tool in available_tools(permissions)}


def test_scripted_faults_end_in_a_valid_tree_and_a_clear_statement(file: Path, tmp_path: Path):
    """A cycle by an edit, more leaves than are wanted, coefficients that never fit, and grounders that are dead."""
    before = file.read_bytes()
    with pytest.raises(InputError, match=r"P1, children: cannot rest on itself: P1\.1 is beneath it"):
        do(edit_tree, file, move={"P1": "P1.1"})
    assert file.read_bytes() == before

    def faulty(request: Request) -> str | ModelError | None:
        slot = request.slot
        if "/P0/analysis" in slot:
            below = [{"claim": f"Pier {n} of the harbour bridge is repaired by 1 May 2026."} for n in range(14)]
            part = {"parent": "P0", "causality": "All carry it.", "children": below}
            return json.dumps({"plan": "", "expansions": [part], "complete": True})
        if "/P3/grounding" in slot:
            return ModelError("the grounder is dead")
        if "/P0/synthesis" in slot:
            return json.dumps({"report": "r", "key_factor": "k", "base": 7, "children": []})
        return None

    model, out = playing(faulty), tmp_path / "grown.json"
    grown = grow_tree(
        "The harbour bridge opens by 31 December 2026.",
        model=model_name(model),
        grounder="search",
        retries=1,
        out=[out],
        settings=Settings(home=tmp_path / "home"),
    )
    assert grown.exit_code == 3
    assert not [one for one in check_file(out) if not one.warning]
    tree = read_tree(out)
    assert 5 < len(tree.nodes) <= 11, "what goes beyond the limit is left out"
    assert (tree.nodes["P0"].link, tree.nodes["P0"].incomplete) == (AverageLink(), ("P3",))
    dead = tree.nodes["P3"].grounding
    assert dead is not None
    assert "the grounder is dead (2 attempts)" in dead.error
    assert dead.route == ("plain failed: the grounder is dead",), "also by the simpler one"
    assert [one.partition(":")[0] for one in grown.failures] == ["P0", "P3"]
    report = report_tree(out)
    assert report.exit_code == 3
    for words in ("synthesis failed, the mean of its children stands in", "grounding failed, 0.500 stands in"):
        assert words in report.to_markdown()
