"""Trees that are edited, researched again, expanded and judged again, with a version history."""

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

import foretell
from foretell import grow_tree, update_tree
from foretell.api import edit_tree, show_tree, tree_log
from foretell.cli.commands import operation_command
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.edits import SetP
from foretell.forecasters.tree.exports import stale_parts, tree_failures
from foretell.forecasters.tree.grow.analyze import child_id
from foretell.forecasters.tree.history import (
    ConflictingEdits,
    TreeAuthor,
    commit_edits,
    history_path,
    open_version,
    read_history,
    tree_at,
)
from foretell.forecasters.tree.links import AverageLink, FormulaLink, JudgedLink, LinearLink, Link
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.forecasters.tree.tree_file import check_file, read_tree, write_tree
from foretell.forecasters.tree.what_if import what_if
from foretell.mcp.permissions import ServerPermissions
from foretell.mcp.tools import TOOLS, available_tools
from foretell.models.model import ModelError, Request
from foretell.models.providers.function import model_name
from foretell.models.providers.scripted import ScriptedModel
from foretell.operations.tree_edit import TreeEditResult
from foretell.questions.errors import InputError
from foretell.runs.settings import Settings

NEWS = "The operator of the harbour bridge is paid by 1 June 2026."


@pytest.fixture
def file(tmp_path: Path) -> Path:
    grounding = Grounding(grounder="plain", report="Old facts.")
    nodes = (
        claim("P0", children=("P1", "P2"), link=LinearLink(weights={"P1": 0.5, "P2": 0.4}, intercept=0.05)),
        claim("P1", children=("P1.1", "P1.2"), link=FormulaLink(expression="P1.1 AND P1.2"), rule="logic"),
        claim("P2", p=0.5, grounding=grounding),
        claim("P1.1", p=0.4, grounding=grounding),
        claim("P1.2", p=0.8, grounding=grounding),
    )
    tree = tree_of(*nodes)
    top = replace(tree.nodes["P0"], claim="The harbour bridge opens to traffic in 2026.")
    write_tree(tmp_path / "t.json", evaluated(replace(tree, nodes={**tree.nodes, "P0": top})))
    return tmp_path / "t.json"


def do(
    operation: Callable[..., Any], file: Path, *named: str, model: ScriptedModel | None = None, **fields: Any
) -> Any:
    options = {"model": model_name(model)} if model is not None else {}
    return operation(file, *named, settings=Settings(home=file.parent / "home"), author="ann", **options, **fields)


def researched(file: Path, *ids: str, **fields: Any) -> Any:
    return do(update_tree, file, claims=ids, grounder="plain", **fields)


def judged(file: Path, *ids: str, **fields: Any) -> Any:
    return do(update_tree, file, claims=ids, research=False, **fields)


def asked_for(model: ScriptedModel) -> list[str]:
    return [request.slot.split("/")[-3] for request in model.requests if "/synthesis" in request.slot]


def test_rewording_a_claim_makes_only_its_own_and_its_parents_judgement_stale(file: Path):
    before = read_tree(file)
    done = do(edit_tree, file, text={"P1.2": NEWS}, message="postponed")
    tree = read_tree(file)
    assert {id for id, node in tree.nodes.items() if node.stale} == {"P1.2", "P1"}
    assert tree.nodes["P0"].p == before.nodes["P0"].p
    assert done.stale == ("P1",)
    assert any("P1.2 is stale: its statement was changed" in stale_part for stale_part in stale_parts(tree))
    assert sum("is stale" in str(problem) for problem in check_file(file)) == 2
    model = playing()
    judged(file, model=model)
    assert asked_for(model) == ["P1"], "P0 uses only the probability of P1, whose wording did not change"
    tree = read_tree(file)
    assert (tree.nodes["P1"].stale, tree.nodes["P1"].rule) == ("", "logic")
    assert isinstance(tree.nodes["P1"].link, FormulaLink)
    researched(file, model=playing())
    assert stale_parts(read_tree(file)) == []
    assert read_tree(file).nodes["P2"] == before.nodes["P2"]
    versions = tree_log(file, settings=Settings(home=file.parent / "home")).versions
    assert [version.message for version in versions] == [
        "as it was found",
        "postponed",
        "judged P1 again",
        "researched P1.2 by plain",
    ]
    assert versions[1].changed == ("P1.2",)
    assert tree_at(file, 1) == before
    assert tree_at(file, 4) == read_tree(file)
    do(edit_tree, file, restore=1)
    assert read_tree(file) == before
    assert len(read_history(file)) == 5


def test_setting_a_probability_requires_new_judgements_only_for_judged_claims(file: Path):
    do(edit_tree, file, set={"P1.1": 0.9})
    model = playing()
    assert "nothing is stale" in judged(file, model=model).warnings[0]
    assert model.requests == []
    links: dict[str, Link] = {"P0": JudgedLink(p=0.3)}
    tree = read_tree(file)
    judged_nodes = {id: _with(tree, id, link=link) for id, link in links.items()}
    write_tree(file, Tree(root="P0", nodes={**tree.nodes, **judged_nodes}))
    do(edit_tree, file, set={"P1.1": 0.1})
    assert "P0 was judged before something below it changed" in stale_parts(read_tree(file))
    judged(file, model=model)
    assert asked_for(model) == ["P0"]


def _with(tree: Tree, id: str, **fields: Any) -> Proposition:
    return replace(tree.nodes[id], **fields)


def test_one_edit_in_a_thousand_claims_judges_one_link(tmp_path: Path):
    nodes: dict[str, Proposition] = {}
    below = {"P0": [child_id("P0", n) for n in range(1, 11)]}
    for depth in (1, 2):
        for id in [child for children in list(below.values()) for child in children if child not in below]:
            below[id] = [child_id(id, n) for n in range(1, 11)]
        assert depth
    for id in [*below, *(child for children in below.values() for child in children if child not in below)]:
        children = tuple(below.get(id, ()))
        link = LinearLink(weights=dict.fromkeys(children, 0.09)) if children else None
        nodes[id] = claim(
            id, children=children, link=link, p=None if children else 0.5, rule="linear" if children else ""
        )
    assert len(nodes) == 1111
    file = tmp_path / "large.json"
    write_tree(file, Tree(root="P0", nodes=nodes))
    do(edit_tree, file, text={"P3.4.5": NEWS}, set={"P7.1.1": 0.9})
    model = playing()
    plan = judged(file, model=model, plan=True).plan
    assert [(step.claim, step.calls) for step in plan.steps] == [("P3.4", 1), ("P3", 0), ("P0", 0)]
    assert model.requests == []
    judged(file, model=model)
    assert asked_for(model) == ["P3.4"]
    last = read_history(file)[-1]
    assert set(last.delta["nodes"]) == {"P3.4", "P3", "P0"}, "a version contains only the changed claims"
    changed = what_if(read_tree(file), {"P9.9.9": 0.1}).changes
    assert {child.id for child in changed} == {"P9.9.9", "P9.9", "P9", "P0"}


def test_a_leaf_is_grounded_in_several_trials_and_a_failed_grounding_changes_nothing(file: Path):
    done = researched(file, "P2", trials=3, model=playing())
    leaf = read_tree(file).nodes["P2"]
    assert leaf.grounding is not None
    assert len(leaf.grounding.trials) == 3
    assert leaf.p == pytest.approx(sum(leaf.grounding.trials) / 3)
    assert isinstance(done, TreeEditResult)
    before = read_tree(file)
    failing = playing(lambda request: ModelError("down") if "grounding" in request.slot else None)
    failed = researched(file, "P2", set={"options.retries": 0}, model=failing)
    assert failed.exit_code == 3
    assert "P2 could not be researched: down" in failed.warnings
    assert read_tree(file) == before
    assert "nothing is stale, failed or open" in researched(file, model=playing()).warnings[0]
    with pytest.raises(InputError, match="not in the tree"):
        researched(file, "P9", model=playing())
    with pytest.raises(InputError, match="no rule is judged again"):
        researched(file, "P2", rule="logic", model=playing())
    with pytest.raises(InputError, match="P2 is a leaf"):
        judged(file, "P2", model=playing())


def test_an_update_researches_stale_leaves_and_then_judges_the_links_above(file: Path):
    do(edit_tree, file, text={"P1.2": NEWS})
    plan = do(update_tree, file, plan=True).plan
    assert [(step.claim, step.do) for step in plan.steps] == [
        ("P1.2", "research by search"),
        ("P1", "judge the rule logic"),
        ("P0", "compute"),
    ]
    assert plan.dollars is None, "no model is named, so no price is known"
    with pytest.raises(InputError, match="no model is named"):
        do(update_tree, file)
    model = playing()
    done = do(update_tree, file, grounder="plain", model=model)
    assert asked_for(model) == ["P1"]
    assert done.stale == ()
    assert stale_parts(read_tree(file)) == []
    assert read_history(file)[-1].message == "researched P1.2 by plain; judged P1 again"


def test_an_update_of_named_claims_leaves_other_stale_claims_unchanged(file: Path):
    do(edit_tree, file, text={"P1.2": NEWS, "P2": "The bank of Oslo agrees by 1 May 2026."})
    model = playing()
    researched(file, "P1.2", model=model)
    assert asked_for(model) == ["P1", "P0"], "only the stale links above the claim"
    assert {id for id, node in read_tree(file).nodes.items() if node.stale} == {"P2"}


def test_a_leaf_is_expanded_within_its_tree(file: Path):
    model = playing()
    plan = do(update_tree, file, expand="P2", model=model, plan=True).plan
    assert plan.calls > 3
    assert (model.requests, history_path(file).exists()) == ([], False)
    done = do(update_tree, file, expand="P2", model=model, grounder="plain", set={"options.leaves": 4})
    assert done.failed == ()
    tree = read_tree(file)
    assert tree.nodes["P2"].children[0] == "P2.1"
    assert tree.nodes["P2"].grounding is None
    assert tree.nodes["P2"].causality
    assert tree.nodes["P0"].p == pytest.approx(0.05 + 0.5 * 0.32 + 0.4 * (tree.nodes["P2"].p or 0))
    assert done.failed == ()
    assert tree_failures(tree) == []
    assert "Claim P1." in next(r for r in model.requests if "/P2/analysis" in r.slot).messages[1].text, (
        "the siblings are in the prompt"
    )
    with pytest.raises(InputError, match="only leaves"):
        do(update_tree, file, expand="P2", model=model)
    mute = playing(lambda request: ModelError("down") if "analysis" in request.slot else None)
    before = read_tree(file)
    stays = do(update_tree, file, expand="P1.1", model=mute, grounder="plain")
    assert stays.exit_code == 3
    assert "P1.1 stays a leaf" in stays.failed[0]
    assert read_tree(file) == before


def test_failed_judgements_keep_the_old_ones(file: Path):
    do(edit_tree, file, text={"P1.2": NEWS})
    before = read_tree(file)
    stubborn = playing(lambda request: '{"formula": "P9"}' if "/synthesis" in request.slot else None)
    done = judged(file, model=stubborn)
    assert (done.exit_code, len(stubborn.requests)) == (3, 3)
    assert "P1 could not be judged again" in done.failed[0]
    assert read_tree(file) == before
    assert check_file(file)
    again = playing()
    judged(file, "P1", model=again)
    assert asked_for(again) == ["P1"], "a named claim is requested again instead of read from the journal"


def moved(id: str, to: str) -> dict[str, str]:
    return {"edit": "move_node", "id": id, "to": to}


def test_a_rule_is_set_by_name_or_formula(file: Path):
    do(edit_tree, file, rule={"P0": "P1 OR P2"})
    assert read_tree(file).nodes["P0"].link == FormulaLink(expression="P1 OR P2")
    do(edit_tree, file, rule={"P0": "average"})
    assert read_tree(file).nodes["P0"].link == AverageLink()
    before = read_tree(file).nodes["P0"].p
    done = do(edit_tree, file, rule={"P0": "noisy-or"})
    assert (done.stale, read_tree(file).nodes["P0"].p) == (("P0",), before), "a model has to judge it first"
    judged(file, model=playing())
    assert read_tree(file).nodes["P0"].rule == "noisy-or"
    with pytest.raises(InputError, match="has no children to combine"):
        do(edit_tree, file, rule={"P2": "linear"})


def test_an_override_is_kept_until_it_is_cleared(file: Path):
    before = read_tree(file)
    do(edit_tree, file, set={"P1": 0.9})
    assert read_tree(file).nodes["P1"].pinned == 0.9
    assert "(override)" in str(show_tree(file))
    do(edit_tree, file, set={"P1": "auto"})
    assert read_tree(file) == before


def test_children_are_added_removed_and_moved(file: Path):
    do(edit_tree, file, add=[f"P0={NEWS}", "P1=The council of Oslo agrees by 1 May 2026."], message="new parts")
    tree = read_tree(file)
    assert tree.nodes["P0"].children == ("P1", "P2", "P3")
    assert tree.nodes["P0"].stale == "P3 was added"
    assert tree.nodes["P0"].p == pytest.approx(0.05 + 0.5 * 0.32 + 0.2), "a child without a weight has no effect yet"
    assert isinstance(tree.nodes["P1"].link, JudgedLink), "a formula cannot omit a child, so p is kept"
    assert tree.nodes["P1"].p == pytest.approx(0.32)
    model = playing()
    judged(file, model=model)
    assert asked_for(model) == ["P1", "P0"]
    assert isinstance(read_tree(file).nodes["P1"].link, FormulaLink), "judged by its previous rule"
    do(edit_tree, file, remove=["P1.1"], rule={"P0": "0.05 + 0.4*P1 − 0.2*P2 + 0.1*P3"})
    tree = read_tree(file)
    assert "P1.1" not in tree.nodes
    assert tree.nodes["P0"].link == LinearLink(intercept=0.05, weights={"P1": 0.4, "P2": -0.2, "P3": 0.1})
    assert stale_parts(tree) == ["P1 was judged before something below it changed"]
    do(edit_tree, file, edits=[moved("P1.2", "P0")], rule={"P1": "P1.3"})
    assert read_tree(file).nodes["P0"].children == ("P1", "P2", "P3", "P1.2")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"add": ["P9=x"]}, "PARENT=TEXT"),
        ({"rule": {"P0": "0.4 P1"}}, "not a term"),
        ({"edits": [moved("P0", "P2")]}, "cannot be moved below itself"),
        ({"remove": ["P0"]}, "is the root"),
    ]
    for fields, problem in wrong:
        with pytest.raises(InputError, match=problem):
            do(edit_tree, file, **fields)


def test_concurrent_edits_are_merged_or_raise_a_conflict(file: Path):
    _, base = open_version(file)
    do(edit_tree, file, text={"P2": NEWS}, message="first")
    merged = edit_tree(file, set={"P1.1": 0.9}, base_version=base, author="bob")
    assert [version.version for version in merged.merged] == [2]
    tree = read_tree(file)
    assert (tree.nodes["P2"].claim, tree.nodes["P1.1"].p) == (NEWS, 0.9)
    before = file.read_bytes()
    with pytest.raises(ConflictingEdits, match=r"P2 by ann in version 2: first\. Nothing was written"):
        edit_tree(file, set={"P2": 0.1}, base_version=base, author="bob")
    do(edit_tree, file, remove=["P1.2"])
    with pytest.raises(ConflictingEdits, match=r"P1\.2"):
        edit_tree(file, edits=[{"edit": "set_report", "id": "P1.2", "report": "Seen."}], base_version=base)
    assert before != file.read_bytes()
    # A link that was judged while another author reworded a child is stale immediately.
    _, base = open_version(file)
    do(edit_tree, file, text={"P1.1": "The bank of Oslo agrees by 1 May 2026."})
    edit_tree(file, rule={"P1": "0.9*P1.1"}, base_version=base)
    assert read_tree(file).nodes["P1"].stale == "the statement of P1.1 was changed in the meantime"


def test_concurrent_commits_lose_no_version(file: Path):
    def edit(number: int) -> None:
        for turn in range(3):
            commit_edits(
                file, [SetP(id="P2", p=round(0.1 + number / 20 + turn / 100, 3))], TreeAuthor(name=str(number))
            )

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = read_history(file)
    assert [version.version for version in versions] == list(range(1, 20))
    assert tree_at(file, 19) == read_tree(file)
    assert sorted(version.author for version in versions[1:]) == sorted("012345" * 3)


def test_a_truncated_history_and_a_file_changed_by_hand_are_continued(file: Path):
    do(edit_tree, file, set={"P2": 0.2})
    history = history_path(file)
    history.write_bytes(history.read_bytes() + b'{"version": 3, "at": "20')
    file.write_text(file.read_text().replace('"p": 0.4', '"p": 0.45'))
    do(edit_tree, file, set={"P2": 0.3})
    assert [version.message for version in read_history(file)] == [
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


def test_a_history_of_version_0_2_is_read_and_continued(file: Path):
    do(edit_tree, file, set={"P2": 0.2}, message="first")
    history = history_path(file)
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    former = [{**line, "who": line["author"], "why": line["message"]} for line in lines]
    former = [{name: value for name, value in line.items() if name not in ("author", "message")} for line in former]
    history.write_text("".join(json.dumps(line) + "\n" for line in former))
    do(edit_tree, file, set={"P2": 0.3}, message="second")
    assert [(version.author, version.message) for version in read_history(file)] == [
        ("", "as it was found"),
        ("ann", "first"),
        ("ann", "second"),
    ]


def test_a_grown_tree_can_be_passed_to_every_other_function(tmp_path: Path):
    settings = Settings(home=tmp_path / "home")
    model = model_name(playing())
    fields: dict[str, Any] = {"model": model, "grounder": "plain", "leaves": 4, "settings": settings}
    claim = "The harbour bridge opens by 31 December 2026."
    plan = grow_tree(claim, plan=True, **fields)
    assert (plan.p, plan.path.exists(), plan.plan.calls > 4) == (None, False, True)
    grown = grow_tree(claim, **fields)
    assert grown.run == plan.run, "the plan has the id of the run"
    (listed,) = foretell.list_trees(settings=settings).trees
    for tree in (grown, grown.path, grown.run, grown.run[:6], listed.name, grown.to_dict()):
        assert show_tree(tree, settings=settings).p == grown.p
        assert foretell.what_if(tree, set={"P0": 1.0}, settings=settings).p == 1
        edited = edit_tree(tree, set={"P1": 0.5}, settings=settings)
        assert tree_log(tree, settings=settings).versions
        assert update_tree(tree, ["P1"], plan=True, model=model, settings=settings).plan is not None
        assert show_tree(edited, settings=settings).path == grown.path
        edit_tree(tree, restore=1, settings=settings)
    with pytest.raises(InputError, match="there is no such tree"):
        show_tree("nothing", settings=settings)
    with pytest.raises(InputError, match="did you mean children"):
        grow_tree(claim, set={"options.childs": 3}, model=model, settings=settings)


def test_tree_commands_edit_log_show_and_plan(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("FORETELL_HOME", str(file.parent / "home"))

    def run(*words: str) -> Result:
        return CliRunner().invoke(operation_command("tree"), [*words[:1], str(file), *words[1:]])

    planned = run("edit", "--text", f"P2={NEWS}", "--plan")
    assert "Nothing was written" in planned.output
    assert "P2 is stale: its statement was changed" in planned.output
    assert not history_path(file).exists()
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    assert run("edit", "--text", f"P2={NEWS}", "--set", "P1.1=0.9", "-m", "why not").exit_code == 0
    assert "ann  why not  (P1.1, P2)" in run("log").output.replace("(P2, P1.1)", "(P1.1, P2)")
    shown = run("log", "--diff").output
    assert "P1.1 40.0 % → 90.0 %" in shown
    assert f"    claim: Claim P2. → {NEWS}" in shown
    assert json.loads(run("log", "--diff", "1..2", "--json").stdout)["changes"]
    assert run("log", "--diff", "1..").output.replace("as it is", "version 2") == run("log", "--diff", "1..2").output
    assert "stale: its statement was changed" in run("show").output
    plan = run("update", "--trials", "4", "--plan", "--model", "practice:x", "--set", "prices.agent=1/2", "--json")
    assert json.loads(plan.stdout)["plan"][0]["claim"] == "P2"
    assert json.loads(plan.stdout)["dollars"] > 0
    compared = tree_log(file, file).diff
    assert compared is not None
    assert compared.changes == []


def test_mcp_tools_edit_only_the_trees_of_their_server(file: Path):
    home = file.parent / "home"
    (home / "trees").mkdir(parents=True)
    (home / "trees" / "t.json").write_bytes(file.read_bytes())
    permissions = ServerPermissions(settings=Settings(home=home))
    tools = {tool.name: tool for tool in TOOLS}

    def use(name: str, **fields: Any) -> dict[str, Any]:
        tool = tools[name]
        return asyncio.run(tool.use(permissions, tool.read(permissions, fields)))  # pyright: ignore[reportArgumentType]

    done = use("edit_tree", tree="t", set={"P2": 0.9}, message="asked")
    assert (done["version"], done["changes"][-1]["is"]) == (2, 0.9)
    assert [version["author"] for version in use("tree_log", tree="t")["versions"]] == ["", "over MCP"]
    assert use("tree_log", tree="t", diff="1..")["changes"]
    assert use("what_if", tree="t", set={"P2": 0.1})["scenarios"][0]["changes"]
    assert "# The harbour bridge" in use("show", tree="t")["report"]
    for name, fields, problem in (
        ("edit_tree", {"tree": str(file), "set": {"P2": 0.1}}, "not a tree of this server"),
        ("edit_tree", {"tree": "../../t", "set": {"P2": 0.1}}, "not a tree of this server"),
        ("edit_tree", {"tree": "t", "edits": str(file)}, "no file is read"),
        ("edit_tree", {"tree": "t", "rejudge": True}, "no such argument"),
        ("edit_tree", {"tree": "t", "restore": 1, "set": {"P2": 0.1}}, "cannot be combined with"),
        ("tree_log", {"tree": str(file)}, "no file may be read"),
        ("tree_log", {"tree": "t", "other": str(file)}, "no file may be read"),
        ("show", {"tree": str(file)}, "no file may be read"),
    ):
        with pytest.raises(InputError, match=problem):
            use(name, **fields)
    assert "update_tree" not in {tool.name for tool in available_tools(permissions)}


def test_faults_end_in_a_valid_tree_and_are_reported(file: Path, tmp_path: Path):
    """Faults: a cycle by an edit, too many leaves, invalid coefficients, and failing grounders."""
    before = file.read_bytes()
    with pytest.raises(InputError, match=r"P1, children: cannot be moved below itself: P1\.1 is below it"):
        do(edit_tree, file, edits=[moved("P1", "P1.1")])
    assert file.read_bytes() == before

    def faulty(request: Request) -> str | ModelError | None:
        slot = request.slot
        if "/P0/analysis" in slot:
            below = [{"claim": f"Pier {n} of the harbour bridge is repaired by 1 May 2026."} for n in range(14)]
            part = {"parent": "P0", "causality": "All carry it.", "children": below}
            return json.dumps({"plan": "", "expansions": [part], "complete": True})
        if "/P3/grounding" in slot:
            return ModelError("the grounder failed")
        if "/P0/synthesis" in slot:
            return json.dumps({"report": "r", "key_factor": "k", "base": 7, "children": []})
        return None

    model = playing(faulty)
    grown = grow_tree(
        "The harbour bridge opens by 31 December 2026.",
        model=model_name(model),
        grounder="search",
        set={"options.retries": 1, "forecaster": "tree"},
        settings=Settings(home=tmp_path / "home"),
    )
    assert grown.exit_code == 3
    assert not [problem for problem in check_file(grown.path) if not problem.warning]
    tree = read_tree(grown.path)
    assert 5 < len(tree.nodes) <= 11, "claims beyond the limit are left out"
    assert (tree.nodes["P0"].link, tree.nodes["P0"].incomplete) == (AverageLink(), ("P3",))
    failed = tree.nodes["P3"].grounding
    assert failed is not None
    assert "the grounder failed (2 attempts)" in failed.error
    assert failed.route == ("plain failed: the grounder failed",), "the fallback grounder failed too"
    assert [failure.partition(":")[0] for failure in grown.failures] == ["P0", "P3"]
    report = show_tree(grown)
    assert report.exit_code == 3
    for words in ("synthesis failed, the mean of its children is used", "grounding failed, 50 % is used"):
        assert words in report.to_markdown()
