from pathlib import Path
from typing import Any

import pytest

from foretell.arena.opening import check_entries
from foretell.arena.spec import arena_from_json, arena_of, read_arena
from foretell.questions.errors import InputError
from foretell.runs.settings import load_settings

USUAL: dict[str, Any] = {"name": "cup", "entries": {"market": "market"}}


def test_entries_have_short_and_long_forms():
    entries = {"a": "market", "b": {"model": "openai:x"}, "c": {"forecaster": "agent", "models": {"agent": "openai:x"}}}
    arena = arena_from_json({"name": "cup", "entries": entries})
    assert arena.runs["a"].forecaster == "market"
    assert arena.runs["b"].forecaster == "prompt"
    assert arena.runs["b"].models == {"agent": "openai:x"}
    assert all(run.mode == "live" and arena_of(run) == "cup" for run in arena.runs.values())


def test_context_can_be_shown_to_any_forecaster():
    entries = {
        "bare": {"forecaster": "agent", "model": "openai:x"},
        "shown": {"forecaster": "agent", "model": "openai:x", "context": True},
        "closed": {"forecaster": "agent", "model": "openai:x", "context": {"tools": False, "view": "sources"}},
    }
    runs = arena_from_json({"name": "cup", "entries": entries}).runs
    assert "context" not in runs["bare"].options
    assert runs["shown"].options == {"context": {}}
    assert runs["closed"].options == {"context": {"tools": False, "view": "sources"}}


def test_a_view_of_sources_needs_search_engines(tmp_path: Path):
    settings = load_settings({"FORETELL_HOME": str(tmp_path)})

    def check(**spec: object) -> None:
        check_entries(arena_from_json({"name": "cup", **spec}), settings, here=False)

    for entry, column in (
        ({"model": "python:x", "options": {"view": "both"}}, "entries.a.options.view"),
        ({"forecaster": "market", "context": {"view": "sources"}}, "entries.a.options.context.view"),
    ):
        with pytest.raises(InputError, match="the arena gathers no sources") as error:
            check(entries={"a": entry})
        assert error.value.column == column
        check(entries={"a": entry}, context={"search": ["local"]})
    check(entries={"a": {"model": "python:x"}})


def test_same_entry_has_the_same_run_and_changed_entry_has_another():
    ids = [arena_from_json({**USUAL, "entries": {"m": {"model": name}}}).runs["m"].id for name in ("a:x", "a:x", "a:y")]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": "My Cup"}, "use small letters"),
        ({"entries": {}}, "name at least one"),
        ({"entries": {"a": "market", "b": "market"}}, "entries.b is the same as entries.a"),
        ({"entries": {"a": {"forecastr": "market"}}}, "entries.a.forecastr"),
        ({"entries": {"a": {"forecaster": "prompt", "context": True}}}, "always shown the context"),
        ({"platforms": ["kashi"]}, "platforms.0"),
        ({"select": {"volum": 3}}, "select.volum"),
        ({"select": {"volume": "much"}}, "select.volume"),
        ({"schedule": {"minimum_gap_hours": -1}}, "minimum_gap_hours"),
        ({"collect": {"every_hours": 0}}, "every_hours"),
        ({"shedule": {}}, "shedule"),
    ],
)
def test_invalid_spec_names_the_field(wrong: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises(InputError, match=message):
        arena_from_json({**USUAL, **wrong})


def test_spec_is_read_from_a_file_or_its_folder(tmp_path: Path):
    (tmp_path / "arena.yaml").write_text("name: cup\nentries: {m: market}\n")
    assert read_arena(tmp_path) == read_arena(tmp_path / "arena.yaml")
    (tmp_path / "arena.yaml").write_text("name: cup\nentries: {m: markt\n")
    with pytest.raises(InputError, match=r"arena\.yaml.*YAML"):
        read_arena(tmp_path)
    with pytest.raises(InputError, match="init arena"):
        read_arena(tmp_path / "none.yaml")


def test_file_that_is_not_text_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "arena.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(InputError, match=r"arena\.yaml.*UTF-8"):
        read_arena(tmp_path)
