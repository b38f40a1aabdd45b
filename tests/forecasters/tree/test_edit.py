"""Edits of a tree file: claims are judged again only if something below them has changed."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.forecasters.tree.random_trees import claim, tree_of
from tests.forecasters.tree.scripted_tree import playing

from foretell import update_tree
from foretell.api import edit_tree
from foretell.cli.commands import operation_command
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.tree_file import read_tree, read_tree_file, write_tree
from foretell.models.model import ModelError
from foretell.models.providers.function import model_name
from foretell.models.providers.scripted import ScriptedModel
from foretell.operations.tree_edit import TreeEditResult
from foretell.questions.errors import InputError
from foretell.runs.settings import Settings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    nodes = (
        claim("P0", children=("P1", "P2"), link=JudgedLink(p=0.6)),
        claim("P1", children=("P1.1", "P1.2"), link=JudgedLink(p=0.7)),
        claim("P2", p=0.5),
        claim("P1.1", p=0.4),
        claim("P1.2", p=0.4),
    )
    write_tree(tmp_path / "t.json", evaluated(tree_of(*nodes)))
    return tmp_path / "t.json"


def edited(file: Path, model: ScriptedModel, **fields: Any) -> TreeEditResult:
    settings = Settings(home=file.parent / "home")
    edit_tree(file, settings=settings, **fields)
    return update_tree(file, research=False, model=model_name(model), settings=settings)


def test_only_claims_above_a_change_are_judged_again(file: Path):
    model = playing()
    assert edited(file, model).changes == ()
    assert not model.requests
    result = edited(file, model, set={"P1.1": 0.9})
    assert result.stale == ()
    slots = [request.slot.removeprefix("claim Claim P0./trial 0/rejudge/") for request in model.requests]
    assert slots == ["P1/synthesis/0", "P0/synthesis/0"]
    assert f"{result.tree.nodes['P1'].p:.3f}" in model.requests[1].messages[1].text, "the new probability is judged"
    assert "# What is asked\n\nClaim P0." in model.requests[0].messages[1].text, "the root claim is the question"
    assert result.tree.nodes["P0"].p != 0.6
    assert read_tree(file) == result.tree
    again = playing()
    edited(file, again, set={"P2": 0.9})
    assert len(again.requests) == 1


@pytest.mark.parametrize("part", ["P1", "P0"])
def test_a_failed_judgement_keeps_the_old_probability(file: Path, part: str):
    before = read_tree(file)
    down = playing(lambda request: ModelError("down") if f"/{part}/" in request.slot else None)
    result = edited(file, down, set={"P1.1": 0.9})
    assert result.tree.nodes[part].p == before.nodes[part].p
    assert part in result.stale


def test_edits_from_files_with_a_byte_order_mark_are_applied_and_mark_judgements_as_stale(file: Path, tmp_path: Path):
    edits = [
        {"edit": "add_node", "parent": "P1", "node": {"id": "P1.3", "claim": "Third.", "p": 0.5}},
        {"edit": "set_claim", "id": "P2", "claim": "Other words."},
    ]
    (tmp_path / "edits.json").write_text(json.dumps(edits), encoding="utf-8-sig")
    file.write_text(file.read_text(encoding="utf-8"), encoding="utf-8-sig")
    done = CliRunner().invoke(
        operation_command("tree edit"), [str(file), "--edits", str(tmp_path / "edits.json"), "--set", "P2=0.2"]
    )
    assert done.exit_code == 0, done.output
    assert "P2 50.0 % → 20.0 % (claim)" in done.output
    assert "judged before a change beneath them: P1, P0" in done.output
    assert read_tree_file(file).tree.nodes["P1"].children == ("P1.1", "P1.2", "P1.3")
    shown = CliRunner().invoke(operation_command("tree edit"), [str(file), "--set", "P2=0.3", "--json"])
    assert json.loads(shown.stdout)["changes"][0]["is"] == 0.3
    assert read_tree(file).nodes["P2"].p == 0.3


def test_invalid_edits_change_nothing(file: Path, tmp_path: Path):
    before = file.read_bytes()
    (tmp_path / "bad.json").write_text('[{"edit": "set_q"}]')
    (tmp_path / "none.json").write_text("{")
    for fields, problem in (
        ({"set": {"P9": 0.5}}, "node P9: is not in the tree"),
        ({"edits": tmp_path / "bad.json"}, "'set_q' is not an edit"),
        ({"edits": tmp_path / "none.json"}, "cannot be read as JSON"),
        ({"restore": 9}, "there is no version 9"),
    ):
        with pytest.raises(InputError, match=problem):
            edit_tree(file, settings=Settings(home=tmp_path / "home"), **fields)
    assert file.read_bytes() == before
