from pathlib import Path
from typing import Any

import pytest

from foretell.arena import arena_from_json, arena_of, read_arena
from foretell.questions import InputError

USUAL: dict[str, Any] = {"name": "cup", "entries": {"market": "market"}}


def test_short_and_long_ways_to_name_an_entry():
    entries = {"a": "market", "b": {"model": "openai:x"}, "c": {"forecaster": "agent", "models": {"agent": "openai:x"}}}
    found = arena_from_json({"name": "cup", "entries": entries})
    assert found.runs["a"].forecaster == "market"
    assert found.runs["b"].forecaster == "context"
    assert found.runs["b"].models == {"agent": "openai:x"}
    assert all(run.mode == "live" and arena_of(run) == "cup" for run in found.runs.values())


def test_a_context_for_any_forecaster():
    entries = {
        "bare": {"forecaster": "agent", "model": "openai:x"},
        "shown": {"forecaster": "agent", "model": "openai:x", "context": True},
        "closed": {"forecaster": "agent", "model": "openai:x", "context": {"tools": False, "view": "sources"}},
    }
    runs = arena_from_json({"name": "cup", "entries": entries}).runs
    assert "context" not in runs["bare"].options
    assert runs["shown"].options == {"context": {}}
    assert runs["closed"].options == {"context": {"tools": False, "view": "sources"}}


def test_the_same_entry_is_the_same_run_and_a_changed_one_is_not():
    ids = [arena_from_json({**USUAL, "entries": {"m": {"model": name}}}).runs["m"].id for name in ("a:x", "a:x", "a:y")]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"name": "My Cup"}, "use small letters"),
        ({"entries": {}}, "name at least one"),
        ({"entries": {"a": "market", "b": "market"}}, "entries.b is the same as entries.a"),
        ({"entries": {"a": {"forecastr": "market"}}}, "entries.a.forecastr"),
        ({"entries": {"a": {"forecaster": "context", "context": True}}}, "always shown the context"),
        ({"platforms": ["kashi"]}, "platforms.0"),
        ({"select": {"volum": 3}}, "select.volum"),
        ({"select": {"volume": "much"}}, "select.volume"),
        ({"schedule": {"minimum_gap_hours": -1}}, "minimum_gap_hours"),
        ({"collect": {"every_hours": 0}}, "every_hours"),
        ({"shedule": {}}, "shedule"),
    ],
)
def test_what_is_wrong_is_named(wrong: dict[str, Any], told: str, tmp_path: Path):
    with pytest.raises(InputError, match=told):
        arena_from_json({**USUAL, **wrong})


def test_a_file_or_its_folder(tmp_path: Path):
    (tmp_path / "arena.yaml").write_text("name: cup\nentries: {m: market}\n")
    assert read_arena(tmp_path) == read_arena(tmp_path / "arena.yaml")
    (tmp_path / "arena.yaml").write_text("name: cup\nentries: {m: markt\n")
    with pytest.raises(InputError, match=r"arena\.yaml.*YAML"):
        read_arena(tmp_path)
    with pytest.raises(InputError, match="init arena"):
        read_arena(tmp_path / "none.yaml")


def test_a_file_that_is_no_text_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "arena.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(InputError, match=r"arena\.yaml.*UTF-8"):
        read_arena(tmp_path)
