"""Every interface excludes and counts questions whose own text was written after the forecast date."""

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
from foretell.cli.main import cli
from foretell.data.untrusted import question_for_prompt
from foretell.mcp.permissions import ServerPermissions
from foretell.mcp.server import run_tool
from foretell.operations.requests.runs import RunRequest
from foretell.operations.run import prepare
from foretell.questions.errors import InputError
from foretell.questions.question import NumericRange, Question, Target
from foretell.runs.question_sets import questions_of_run
from foretell.runs.runner import begin_run
from foretell.runs.settings import load_settings
from foretell.runs.spec import QuestionsSpec, RunSpec, spec_from_json
from foretell.runs.store import RunStore
from foretell.scoring.run_scores import questions_of_runs
from foretell.tools.post_cutoff_text import CUT_MARK, post_cutoff_passages, without_post_cutoff_passages

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


def run_command(*words: str) -> str:
    done = CliRunner().invoke(cli, list(words), env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def as_json(*words: str) -> Any:
    done = CliRunner().invoke(cli, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_data_show_lists_leaky_questions_with_sentence_and_date(here: Path) -> None:
    shown = run_command("data", "show", "mine.jsonl")
    assert "1 excluded: its own text was written after the forecast date" in shown
    assert "late, asked 2024-04-01" in shown
    assert "background: “Updated June 7, 2024” in “Updated June 7, 2024: the bank cut its rate.”" in shown
    rows = {row["id"]: row for row in as_json("data", "show", "mine.jsonl")}
    (passage,) = rows["late"]["excluded"]
    assert passage == {
        "field": "background",
        "found": "Updated June 7, 2024",
        "sentence": "Updated June 7, 2024: the bank cut its rate.",
    }
    assert not any("excluded" in rows[id] for id in ("fine", "then"))
    assert "excluded" not in run_command("data", "show", "mine.jsonl", "--set", "questions.leaky_questions=keep")
    cut = {row["id"]: row for row in as_json("data", "show", "mine.jsonl", "--set", "questions.leaky_questions=redact")}
    assert cut["late"]["background"] == f"It meets on 6 June 2024.\n\n{CUT_MARK}"


def test_a_backtest_excludes_leaky_questions_and_the_board_counts_them(here: Path) -> None:
    shown = run_command("backtest", "mine.jsonl", "-F", "always", "--out", "run")
    assert "1 excluded" in shown
    assert "late" not in (here / "run/forecasts.csv").read_text(encoding="utf-8")
    table = (here / "run/outcomes.csv").read_text(encoding="utf-8").splitlines()
    assert table[0].endswith(",excluded")
    assert [line.split(",")[0] for line in table if line.endswith(",1")] == ["late"]
    # The table is scored as written, with outcomes filled in.
    outcomes = {row.split(",")[0]: row.split(",")[2] for row in OUTCOMES.splitlines()[1:]}
    place = table[0].split(",").index("outcome")
    filled = [table[0]]
    for line in table[1:]:
        columns = line.split(",")
        columns[place] = outcomes[columns[0]]
        filled.append(",".join(columns))
    (here / "run/outcomes.csv").write_text("\n".join(filled) + "\n", encoding="utf-8")
    board = run_command("score", "-f", "run/forecasts.csv", "-o", "run/outcomes.csv")
    assert "1 excluded: its own text was written after the forecast date" in board
    scored = as_json("score", "-f", "run/forecasts.csv", "-o", "run/outcomes.csv")
    assert {entry["n"] for entry in scored["scores"] if entry["forecaster"].startswith("always")} == {2}
    for how, n in (("keep", 3), ("redact", 3)):
        done = as_json("backtest", "mine.jsonl", "-F", "always", "--set", f"questions.leaky_questions={how}")
        assert (done["questions"], done["excluded"]) == (n, [])
    assert as_json("backtest", "mine.jsonl", "-F", "always")["excluded"] == ["late"]


def _spec(**questions: Any) -> dict[str, Any]:
    return {"questions": {"dataset": "mine.jsonl", **questions}, "forecaster": "always"}


def test_a_run_excludes_leaky_questions_and_every_list_counts_them(here: Path) -> None:
    (here / "spec.json").write_text(json.dumps(_spec()), encoding="utf-8")
    done = as_json("run", "spec.json")
    assert (done["questions"], done["excluded"]) == (2, 1)
    assert "1 excluded" in done["notes"][0]
    assert "1 excluded" in run_command("runs")
    assert ", 1 excluded" in run_command("show", done["run"])
    # Notes on the file are not part of a run's name, and the run continues when it is started again.
    assert as_json("run", "spec.json")["run"] == done["run"]
    with closing(RunStore(load_settings().store)) as store:
        rows = questions_of_runs(store, [done["run"]])[1]
    assert {row["question"]: row["excluded"] for row in rows} == {"fine": None, "then": None, "late": 1}
    for how in ("keep", "redact"):
        (here / "spec.json").write_text(json.dumps(_spec(leaky_questions=how)), encoding="utf-8")
        again = as_json("run", "spec.json")
        assert (again["questions"], again["excluded"]) == (3, 0)
        assert again["run"] != done["run"]


def test_pages_count_excluded_questions(here: Path) -> None:
    testing = pytest.importorskip("fastapi.testclient")
    from foretell.web.app import create_app

    (here / "spec.json").write_text(json.dumps(_spec()), encoding="utf-8")
    run = as_json("run", "spec.json")["run"]
    with testing.TestClient(create_app(load_settings()), base_url="http://127.0.0.1") as client:
        assert client.get(f"/api/runs/{run}").json()["run"]["excluded"] == 1
        assert "Excluded" in client.get(f"/runs/{run}").text
        assert "1 excluded" in client.get("/runs").text


def test_runs_of_older_versions_are_scored_without_leaky_questions(here: Path) -> None:
    """An older version asked all three. Its run keeps its id and answers, and the board leaves the leaky one out."""
    settings = load_settings()
    spec = spec_from_json(_spec(leaky_questions="keep"))
    before = prepare(RunRequest.read({"spec": json.loads(spec.to_json())}), settings)
    bare = RunSpec(questions=QuestionsSpec(dataset="mine.jsonl"), forecaster="always")
    old = bare.with_digest(before.spec.questions.digest)
    with closing(RunStore(settings.store)) as store:
        begin_run(store, old, before.now or pytest.fail("a run knows when it was prepared"))
        store.keep_questions(old.id, before.questions)
        questions = questions_of_run(store, old.id)
    assert [question.id for question in questions.questions] == ["fine", "late", "then"]
    assert [entry.id for entry in questions.excluded] == ["late"]
    assert "leaky_questions" not in old.to_json()
    assert "excluded" not in old.to_json()


def test_leaky_typed_questions_are_refused_or_redacted(here: Path) -> None:
    words: dict[str, Any] = {
        "question": "Will it?",
        "criteria": LATE,
        "as_of": "2024-04-01",
        "price": 0.4,
    }
    with pytest.raises(InputError, match=r"field as_of: question .* criteria: “Updated June 7, 2024”"):
        foretell.ask(**words, model="none")
    cut = foretell.ask(**words, model="none", set={"questions.leaky_questions": "redact"})
    assert cut.question.criteria == CUT_MARK
    unchanged = foretell.ask(**words, model="none", set={"questions.leaky_questions": "keep"})
    assert unchanged.question.criteria == LATE
    assert foretell.ask("Will it?", criteria=LATE, price=0.4, model="none").question.criteria == LATE
    permissions = ServerPermissions(settings=load_settings(), models=(), search=())
    answer, worked = asyncio.run(run_tool(permissions, "ask", {**words, "model": "none"}))
    assert not worked
    assert "Updated June 7, 2024" in json.dumps(answer, ensure_ascii=False)


def test_units_options_and_trees_are_checked_for_leaks(here: Path) -> None:
    typed = ["ask", "How much?", "--range", f"0:9 {LATE}", "--as-of", "2024-04-01"]
    done = CliRunner().invoke(cli, [*typed, "--model", "none"])
    assert isinstance(done.exception, InputError)
    assert "its own text was written later: " in str(done.exception)
    question = Question(
        id="q",
        source="own",
        text="How much?",
        due=datetime(2024, 4, 1, tzinfo=UTC),
        targets=(Target(id=LATE), Target(id=">5", label=f"above 5 {LATE}")),
        range=NumericRange(minimum=0, maximum=9, unit=LATE),
    )
    assert [passage.field for passage in post_cutoff_passages(question)] == [f"option {LATE}", "unit"]
    cut = without_post_cutoff_passages(question)
    assert [target.label for target in cut.targets] == [CUT_MARK, f"above 5 {CUT_MARK}"]
    assert [target.id for target in cut.targets] == [target.id for target in question.targets]
    forged = replace(
        question, targets=(Target(id="[page_1] x"),), range=NumericRange(minimum=0, maximum=9, unit="[page_1]")
    )
    shown = question_for_prompt(forged)
    assert (shown.targets[0].label, shown.targets[0].id) == ("‹page_1] x", "[page_1] x")
    assert shown.range is not None
    assert shown.range.unit == "‹page_1]"
    tree = {"schema": "foretell/tree/1", "root": "P0", "nodes": {"P0": {"claim": f"The bank cuts. {LATE}", "p": 0.5}}}
    Path("t.json").write_text(json.dumps(tree))
    model, problem = (
        "compat:x@http://127.0.0.1:9/v1",
        "claim P0 contains text from after 2024-04-01: “Updated June 7, 2024” in",
    )
    for fields in ({"expand": "P0"}, {"claims": ["P0"]}):
        with pytest.raises(InputError, match=problem):
            foretell.update_tree("t.json", as_of="2024-04-01", model=model, **fields)


def test_leaky_text_of_a_tree_is_redacted_for_the_model_but_not_in_the_file(here: Path) -> None:
    claim = f"The bank cuts. {LATE}"
    tree = {"schema": "foretell/tree/1", "root": "P0", "nodes": {"P0": {"claim": claim, "p": 0.5}}}
    Path("t.json").write_text(json.dumps(tree))
    answer = {"report": "Seen.", "key_factor": "Votes.", "p": 0.6}
    Path("brain.jsonl").write_text(json.dumps({"when": CUT_MARK, "text": json.dumps(answer)}) + "\n")
    changes = {"questions.leaky_questions": "redact"}
    fields: dict[str, Any] = {
        "as_of": "2024-04-01",
        "grounder": "plain",
        "model": "scripted:brain.jsonl",
        "set": changes,
    }
    foretell.update_tree("t.json", ["P0"], **fields)
    (node,) = json.loads(Path("t.json").read_text())["nodes"].values()
    assert (node["claim"], node["p"]) == (claim, 0.6)


def test_a_set_with_only_leaky_questions_is_an_error(here: Path) -> None:
    (here / "mine.jsonl").write_text(json.dumps(ROWS[0]) + "\n", encoding="utf-8")
    with pytest.raises(
        InputError, match="question 'late' is asked as of 2024-04-01, but its own text was written later"
    ):
        run_command("backtest", "mine.jsonl", "-F", "always")
    assert "1 excluded" in run_command("data", "show", "mine.jsonl")


def test_inspect_tasks_exclude_leaky_questions(here: Path) -> None:
    pytest.importorskip("inspect_ai")
    from foretell.inspect_tasks.tasks import foretell_questions

    task = foretell_questions("mine.jsonl", outcomes="outcomes.csv")
    assert {str(sample.id) for sample in task.dataset} == {"fine@2024-04-01", "then@2024-06-08"}
    assert (task.metadata or {})["foretell_excluded"] == 1
    cut = foretell_questions("mine.jsonl", outcomes="outcomes.csv", leaky_questions="redact")
    texts = "".join(str(sample.input) for sample in cut.dataset if str(sample.id).startswith("late"))
    assert CUT_MARK in texts
    assert "cut its rate" not in texts
