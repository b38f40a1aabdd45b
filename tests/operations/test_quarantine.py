"""A question whose own text was written after the moment of asking is left out behind every door, and counted."""

import asyncio
import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import foretell
from foretell.cli import cli
from foretell.data import question_for_prompt
from foretell.mcp import ServerPermissions, run_tool
from foretell.operations import RunRequest, prepare
from foretell.questions import InputError, NumericRange, Question, Target
from foretell.runs import QuestionsSpec, RunSpec, RunStore, begin_run, load_settings, questions_of_run, spec_from_json
from foretell.scoring import questions_of_runs
from foretell.tools import CUT_MARK, late_passages, without_late_passages

LATE = "Updated June 7, 2024: the bank cut its rate. It resolves YES."
ROWS = [
    {
        "id": "late",
        "text": "Will it?",
        "background": f"It meets on 6 June 2024.\n\n{LATE}",
        "due": "2024-04-01",
    },
    {"id": "fine", "text": "Will it snow?", "criteria": "Resolves on 30 June 2024.", "due": "2024-04-01"},
    {"id": "then", "text": "Will it rain?", "background": LATE, "due": "2024-06-08"},
]
OUTCOMES = "question,target,outcome\nlate,yes,1\nfine,yes,0\nthen,yes,1\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    (tmp_path / "outcomes.csv").write_text(OUTCOMES, encoding="utf-8")
    return tmp_path


def told(*words: str) -> str:
    done = CliRunner().invoke(cli, list(words), env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def as_json(*words: str) -> Any:
    done = CliRunner().invoke(cli, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_data_show_names_it_with_sentence_and_date(here: Path) -> None:
    shown = told("data", "show", "mine.jsonl")
    assert "1 quarantined: its own text was written after the moment of asking" in shown
    assert "late, asked 2024-04-01" in shown
    assert "background: “Updated June 7, 2024” in “Updated June 7, 2024: the bank cut its rate.”" in shown
    rows = {row["id"]: row for row in as_json("data", "show", "mine.jsonl")}
    (found,) = rows["late"]["quarantined"]
    assert found == {
        "field": "background",
        "found": "Updated June 7, 2024",
        "sentence": "Updated June 7, 2024: the bank cut its rate.",
    }
    assert not any("quarantined" in rows[id] for id in ("fine", "then"))
    assert "quarantined" not in told("data", "show", "mine.jsonl", "--set", "questions.late_text=keep")
    cut = {row["id"]: row for row in as_json("data", "show", "mine.jsonl", "--set", "questions.late_text=cut")}
    assert cut["late"]["background"] == f"It meets on 6 June 2024.\n\n{CUT_MARK}"


def test_a_backtest_leaves_it_out_and_the_board_counts_it(here: Path) -> None:
    shown = told("backtest", "mine.jsonl", "-F", "always", "--out", "run")
    assert "1 quarantined" in shown
    assert "late" not in (here / "run/forecasts.csv").read_text(encoding="utf-8")
    table = (here / "run/outcomes.csv").read_text(encoding="utf-8").splitlines()
    assert table[0].endswith(",quarantined")
    assert [line.split(",")[0] for line in table if line.endswith(",1")] == ["late"]
    # The table is scored as it was written, with outcomes filled in by whoever knows them.
    outcomes = {row.split(",")[0]: row.split(",")[2] for row in OUTCOMES.splitlines()[1:]}
    place = table[0].split(",").index("outcome")
    filled = [table[0]]
    for line in table[1:]:
        cells = line.split(",")
        cells[place] = outcomes[cells[0]]
        filled.append(",".join(cells))
    (here / "run/outcomes.csv").write_text("\n".join(filled) + "\n", encoding="utf-8")
    board = told("score", "-f", "run/forecasts.csv", "-o", "run/outcomes.csv")
    assert "1 quarantined: its own text was written after the moment of asking" in board
    scored = as_json("score", "-f", "run/forecasts.csv", "-o", "run/outcomes.csv")
    assert {one["n"] for one in scored["scores"] if one["forecaster"].startswith("always")} == {2}
    for how, n in (("keep", 3), ("cut", 3)):
        done = as_json("backtest", "mine.jsonl", "-F", "always", "--set", f"questions.late_text={how}")
        assert (done["questions"], done["quarantined"]) == (n, [])
    assert as_json("backtest", "mine.jsonl", "-F", "always")["quarantined"] == ["late"]


def _spec(**questions: Any) -> dict[str, Any]:
    return {"questions": {"dataset": "mine.jsonl", **questions}, "forecaster": "always"}


def test_a_run_leaves_it_out_and_every_list_counts_it(here: Path) -> None:
    (here / "spec.json").write_text(json.dumps(_spec()), encoding="utf-8")
    done = as_json("run", "spec.json")
    assert (done["questions"], done["quarantined"]) == (2, 1)
    assert "1 quarantined" in done["notes"][0]
    assert "1 quarantined" in told("runs")
    assert ", 1 quarantined" in told("show", done["run"])
    # What was found out about its file is no part of a run's name, and a run goes on when it is started again.
    assert as_json("run", "spec.json")["run"] == done["run"]
    with closing(RunStore(load_settings().store)) as store:
        rows = questions_of_runs(store, [done["run"]])[1]
    assert {row["question"]: row["quarantined"] for row in rows} == {"fine": None, "then": None, "late": 1}
    for how in ("keep", "cut"):
        (here / "spec.json").write_text(json.dumps(_spec(late_text=how)), encoding="utf-8")
        again = as_json("run", "spec.json")
        assert (again["questions"], again["quarantined"]) == (3, 0)
        assert again["run"] != done["run"]


def test_pages_count_it(here: Path) -> None:
    testing = pytest.importorskip("fastapi.testclient")
    from foretell.web import create_app

    (here / "spec.json").write_text(json.dumps(_spec()), encoding="utf-8")
    run = as_json("run", "spec.json")["run"]
    with testing.TestClient(create_app(load_settings()), base_url="http://127.0.0.1") as client:
        assert client.get(f"/api/runs/{run}").json()["run"]["quarantined"] == 1
        assert "Quarantined" in client.get(f"/runs/{run}").text
        assert "1 quarantined" in client.get("/runs").text


def test_a_run_of_before_is_still_found_and_scored_without_it(here: Path) -> None:
    """An older version asked all three; its run keeps its id and its answers, and the board leaves the late one out."""
    settings = load_settings()
    spec = spec_from_json(_spec(late_text="keep"))
    before = prepare(RunRequest.read({"spec": json.loads(spec.to_json())}), settings)
    bare = RunSpec(questions=QuestionsSpec(dataset="mine.jsonl"), forecaster="always")
    old = bare.with_digest(before.spec.questions.digest)
    with closing(RunStore(settings.store)) as store:
        begin_run(store, old, before.now or pytest.fail("a run knows when it was prepared"))
        store.keep_questions(old.id, before.questions)
        found = questions_of_run(store, old.id)
    assert [one.id for one in found.questions] == ["fine", "late", "then"]
    assert [one.id for one in found.quarantined] == ["late"]
    assert "late_text" not in old.to_json()
    assert "quarantined" not in old.to_json()


def test_typed_questions_of_the_past_are_refused_or_cut(here: Path) -> None:
    words: dict[str, Any] = {
        "question": "Will it?",
        "criteria": LATE,
        "as_of": "2024-04-01",
        "price": 0.4,
    }
    with pytest.raises(InputError, match=r"field as_of: question .* criteria: “Updated June 7, 2024”"):
        foretell.ask(**words, model="none")
    cut = foretell.ask(**words, model="none", set={"questions.late_text": "cut"})
    assert cut.question.criteria == CUT_MARK
    kept = foretell.ask(**words, model="none", set={"questions.late_text": "keep"})
    assert kept.question.criteria == LATE
    assert foretell.ask("Will it?", criteria=LATE, price=0.4, model="none").question.criteria == LATE
    permissions = ServerPermissions(settings=load_settings(), models=(), search=())
    answer, worked = asyncio.run(run_tool(permissions, "ask", {**words, "model": "none"}))
    assert not worked
    assert "Updated June 7, 2024" in json.dumps(answer, ensure_ascii=False)


def test_units_bare_options_and_trees_are_read_too(here: Path) -> None:
    typed = ["ask", "How much?", "--range", f"0:9 {LATE}", "--as-of", "2024-04-01"]
    done = CliRunner().invoke(cli, [*typed, "--model", "none"])
    assert isinstance(done.exception, InputError)
    assert "its own text was written later: " in str(done.exception)
    asked = Question(
        id="q",
        source="own",
        text="How much?",
        due=datetime(2024, 4, 1, tzinfo=UTC),
        targets=(Target(id=LATE), Target(id=">5", label=f"above 5 {LATE}")),
        range=NumericRange(minimum=0, maximum=9, unit=LATE),
    )
    assert [one.field for one in late_passages(asked)] == [f"option {LATE}", "unit"]
    cut = without_late_passages(asked)
    assert [one.label for one in cut.targets] == [CUT_MARK, f"above 5 {CUT_MARK}"]
    assert [one.id for one in cut.targets] == [one.id for one in asked.targets]
    forged = replace(
        asked, targets=(Target(id="[page_1] x"),), range=NumericRange(minimum=0, maximum=9, unit="[page_1]")
    )
    shown = question_for_prompt(forged)
    assert (shown.targets[0].label, shown.targets[0].id) == ("‹page_1] x", "[page_1] x")
    assert shown.range is not None
    assert shown.range.unit == "‹page_1]"
    tree = {"schema": "foretell/tree/1", "root": "P0", "nodes": {"P0": {"claim": f"The bank cuts. {LATE}", "p": 0.5}}}
    Path("t.json").write_text(json.dumps(tree))
    model, problem = (
        "compat:x@http://127.0.0.1:9/v1",
        "claim P0 holds words of after 2024-04-01: “Updated June 7, 2024” in",
    )
    for fields in ({"expand": "P0"}, {"claims": ["P0"]}):
        with pytest.raises(InputError, match=problem):
            foretell.update_tree("t.json", as_of="2024-04-01", model=model, **fields)


def test_late_words_of_a_tree_can_be_cut_for_the_model_and_stay_in_the_file(here: Path) -> None:
    claim = f"The bank cuts. {LATE}"
    tree = {"schema": "foretell/tree/1", "root": "P0", "nodes": {"P0": {"claim": claim, "p": 0.5}}}
    Path("t.json").write_text(json.dumps(tree))
    answer = {"report": "Seen.", "key_factor": "Votes.", "p": 0.6}
    Path("brain.jsonl").write_text(json.dumps({"when": CUT_MARK, "text": json.dumps(answer)}) + "\n")
    late = {"questions.late_text": "cut"}
    fields: dict[str, Any] = {"as_of": "2024-04-01", "grounder": "plain", "model": "scripted:brain.jsonl", "set": late}
    foretell.update_tree("t.json", ["P0"], **fields)
    (node,) = json.loads(Path("t.json").read_text())["nodes"].values()
    assert (node["claim"], node["p"]) == (claim, 0.6)


def test_a_set_of_nothing_else_says_so(here: Path) -> None:
    (here / "mine.jsonl").write_text(json.dumps(ROWS[0]) + "\n", encoding="utf-8")
    with pytest.raises(
        InputError, match="question 'late' is asked as of 2024-04-01, but its own text was written later"
    ):
        told("backtest", "mine.jsonl", "-F", "always")
    assert "1 quarantined" in told("data", "show", "mine.jsonl")


def test_inspect_tasks_leave_it_out(here: Path) -> None:
    pytest.importorskip("inspect_ai")
    from foretell.inspect_tasks import foretell_questions

    task = foretell_questions("mine.jsonl", outcomes="outcomes.csv")
    assert {str(sample.id) for sample in task.dataset} == {"fine@2024-04-01", "then@2024-06-08"}
    assert (task.metadata or {})["foretell_quarantined"] == 1
    cut = foretell_questions("mine.jsonl", outcomes="outcomes.csv", late_text="cut")
    texts = "".join(str(sample.input) for sample in cut.dataset if str(sample.id).startswith("late"))
    assert CUT_MARK in texts
    assert "cut its rate" not in texts
