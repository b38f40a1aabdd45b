import json

import pytest

from foretell.data.datasets.prophet_arena import read_arena_file
from foretell.questions.errors import InputError
from foretell.runs.question_sets import open_benchmark
from foretell.scoring.arena_rows import arena_table_from_prophet_arena


def csv_file(folder):
    info = {"Yes": {"yes_ask": 62, "no_ask": 40, "last_price": 61, "close_time": "2025-07-02T00:00:00Z"}}
    row = {
        "event_ticker": "KX-1",
        "title": "Will it?",
        "category": "World",
        "markets": '["Yes"]',
        "close_time": "2025-07-02 00:00:00+00:00",
        "market_outcome": "{'Yes': 1}",
        "sources": "[]",
        "market_info": repr(info),
        "snapshot_time": "2025-07-01 12:00:00+00:00",
    }
    cells = ['"' + value.replace('"', '""') + '"' for value in row.values()]
    path = folder / "events.csv"
    path.write_text(",".join(row) + "\n" + ",".join(cells) + "\n", encoding="utf-8")
    return path


def jsonl_file(folder):
    event = {
        "slug": "kx-1",
        "title": "Will it?",
        "outcomes": [{"name": "Yes", "resolution": "yes"}],
        "windows": [{"taken_at": "2025-07-01T12:00:00Z", "crowd": {"Yes": 0.6}, "context": []}],
    }
    path = folder / "events.jsonl"
    path.write_text(json.dumps(event) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("made", [csv_file, jsonl_file])
def test_both_kinds_are_recognised_by_their_first_line(made, tmp_path):
    path = made(tmp_path)
    found = read_arena_file(path)
    assert found is not None
    assert [q.text for q in found.questions] == ["Will it?"]
    assert open_benchmark(str(path)).questions.questions == found.questions
    assert len(arena_table_from_prophet_arena(path).markets) == 1


@pytest.mark.parametrize("text", ["text,id\nWill it?,1\n", "", "not,an\narena", "[1]", '{"slug": "x"}'])
def test_other_files_are_not(text, tmp_path):
    for name in ("file.csv", "file.jsonl", "file.yaml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert read_arena_file(tmp_path / name) is None
        with pytest.raises(InputError, match="no file of Prophet Arena"):
            arena_table_from_prophet_arena(tmp_path / name)
