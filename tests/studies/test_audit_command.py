"""`foretell audit` on real runs: scripted models, a local corpus, and the journal and the store of a temporary home."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from foretell.cli.main import cli
from foretell.data.corpus import Corpus, CorpusDocument
from foretell.operations.audit import bare_name, chosen_auditor
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.runs.runner import execute_run, prepare_run
from foretell.runs.settings import load_settings
from foretell.runs.spec import QuestionsSpec, RunSpec

REMEMBERED = "It was approved on 3 September 2026."
DOCUMENTS = {
    "alpha": "The council discussed the ferry in alpha detail and expects a vote in autumn.",
    "beta": "Beta report, zebra edition: the ferry was approved by the council after the holidays.",
    "gamma": "Gamma report, quagga edition: the approval came after the summer.",
    "delta": "Delta notes on the ferry and its costs. Updated September 1, 2026",
}


def call(tool: str, because: str = "r", **arguments: object) -> dict[str, object]:
    belief = {"p": 0.6, "reason": because}
    return {"calls": [{"name": tool, "arguments": {"updated_belief": belief, **arguments}}]}


def verdicts(word: str, quote: str = "") -> dict[str, str]:
    rows = [{"id": "t1", "verdict": word, "quote": quote, "reason": f"looks {word}"}]
    return {"text": json.dumps({"verdicts": rows})}


def filtered(word: str) -> dict[str, str]:
    return {"text": json.dumps({"verdicts": [{"id": "r1", "verdict": word, "reason": "so it seems"}]})}


SCRIPTS = {
    "agent": [
        {"when": "(Step 4 of", **call("submit", REMEMBERED, p=0.6, reason="Enough.")},
        {"when": "(Step 3 of", **call("web_search", query="delta")},
        {"when": "(Step 2 of", **call("web_search", query="gamma")},
        {"when": "(Step 1 of", **call("web_search", query="beta")},
        {"when": "ferry", **call("web_search", query="alpha")},
    ],
    "filter": [{"when": "quagga", **filtered("DROP")}, {"when": "Texts:", **filtered("KEEP")}],
    "auditor": [
        # It cannot judge several texts at once, so it must be asked about them one by one.
        {"when": '"id": "t2"', "text": "They all look fine to me."},
        {"when": "none of its sources says so", **verdicts("leak")},
        {"when": "examine the notes", **verdicts("clean")},
        {"when": "zebra", **verdicts("leak", "the ferry was approved")},
        {"when": "quagga", **verdicts("leak", "the approval came")},
        {"when": "Texts:", **verdicts("clean")},
    ],
    "closed": [{"when": "ferry", **call("submit", p=0.5)}],
    "seer": [
        {"when": "(Step 1 of", **call("submit", p=0.95)},
        {"when": "ferry", **call("web_search", query="gamma")},
    ],
    "mute": [{"when": "Texts:", "text": "no"}],
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    # The application's loop changes the garbage collector of the whole process; do not change that of the tests.
    monkeypatch.setattr("foretell.runs.event_loop.run", asyncio.run)
    (tmp_path / "home").mkdir()
    for name, lines in SCRIPTS.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    question = {"id": "own/1", "text": "Will the ferry be approved?", "due": "2026-07-01", "by": "2026-12-31"}
    (tmp_path / "questions.jsonl").write_text(json.dumps(question) + "\n")
    (tmp_path / "outcomes.csv").write_text("question,target,outcome\nown/1,yes,1\n")
    corpus = Corpus(load_settings().corpus)
    corpus.add(
        CorpusDocument(
            url=f"https://news.example/{name}", title=f"On {name}", text=text, published=instant("2026-06-01")
        )
        for name, text in DOCUMENTS.items()
    )
    corpus.close()
    return tmp_path


def spec(agent: str = "agent", **fields: object) -> RunSpec:
    models = {"agent": f"scripted:{agent}.jsonl", "filter": "scripted:filter.jsonl"}
    settings = {"models": models, "search": ("local",), "trials": 2, "options": {"crowd": False, "prior": False}}
    return RunSpec(questions=QuestionsSpec(dataset="questions.jsonl"), **{**settings, **fields})


def run(run_spec: RunSpec) -> str:
    prepared = prepare_run(run_spec)
    progress = asyncio.run(execute_run(prepared, load_settings()))
    assert (progress.done, progress.failed) == (run_spec.trials, 0)
    return prepared.spec.id


def audited(*arguments: str) -> tuple[str, dict]:
    result = CliRunner().invoke(cli, ["audit", *arguments, "--out", "audit.json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    report = json.loads(Path("audit.json").read_text())
    return result.output, {**report, **report["details"]}


def test_audit_of_a_run_reports_leaks_and_memory(home: Path):
    text, report = audited(run(spec()), "--auditor", "scripted:auditor.jsonl")
    assert report["schema"] == "foretell/study/2"
    material = report["material"]
    assert material["whole"]["kept"] == {"clean": 1, "leak": 1, "undecided": 0}, "alpha and beta, each in two trials"
    assert material["whole"]["dropped"] == {"clean": 1, "leak": 1, "undecided": 0}, (
        "gamma by reading, delta by its stamp"
    )
    assert {layer: (t["clean"], t["leak"]) for layer, t in material["by_layer"].items()} == {
        "content": (0, 1),
        "date": (1, 0),
    }
    assert material["without_text"] == {}
    (leak,) = material["undetected"]
    assert leak["passage"]["title"] == "On beta"
    assert [(location["trial"], location["step"]) for location in leak["passage"]["seen"]] == [(0, 2), (1, 2)]
    remembered = {suspicion["statement"] for suspicion in report["memory"]["confirmed"]}
    assert remembered == {REMEMBERED}
    assert report["memory"]["replies_missing"] == 0
    assert report["leakage"] is None
    assert "1 of 2 texts the agent saw are leaks, 50.0 %" in text
    assert "On beta" in text
    assert REMEMBERED in text


def test_repeated_audit_makes_no_model_calls(home: Path):
    run_id = run(spec())
    first = audited(run_id, "--auditor", "scripted:auditor.jsonl")[1]
    assert first["cost"]["calls"] > 0
    (home / "auditor.jsonl").write_text("")
    again = audited(run_id, "--auditor", "scripted:auditor.jsonl")[1]
    assert again["material"] == first["material"]
    assert again["memory"] == first["memory"]
    assert again["cost"]["calls"] == 0


def test_three_arms_give_an_estimate_in_score_units(home: Path):
    filtered = run(spec())
    closed = run(spec("closed", options={"variant": "zero-shot", "crowd": False, "prior": False}))
    unfiltered = run(spec("seer", leakage_filter=False))
    arms = ["--no-tools", closed, "--no-filter", unfiltered[:8], "--outcomes", "outcomes.csv"]
    text, report = audited(filtered, "--auditor", "scripted:auditor.jsonl", *arms)
    leakage = report["leakage"]
    assert leakage["n"] == 1
    assert leakage["lead"]["brier"]["diff"] == pytest.approx(0.16 - 0.25)
    assert leakage["gain"]["brier"]["diff"] == pytest.approx(0.0025 - 0.16)
    assert leakage["exposure"]["share"] == 1
    assert leakage["bound"]["brier"] > 0.2
    assert leakage["meaning"] in " ".join(text.split())
    with pytest.raises(InputError, match="had tools"):
        audited(filtered, "--auditor", "scripted:auditor.jsonl", "--no-tools", unfiltered)
    with pytest.raises(InputError, match="had the leakage filter"):
        audited(filtered, "--auditor", "scripted:auditor.jsonl", "--no-filter", closed)
    with pytest.raises(InputError, match="outcomes of the questions are unknown"):
        audited(filtered, "--auditor", "scripted:auditor.jsonl", "--no-tools", closed)


def test_an_unfiltered_run_and_a_lost_question_file_are_reported(home: Path):
    seer = run(spec("seer", leakage_filter=False))
    (home / "questions.jsonl").unlink()
    text, report = audited(seer, "--auditor", "scripted:auditor.jsonl")
    assert report["material"]["whole"]["dropped"] == {"clean": 0, "leak": 0, "undecided": 0}
    assert "This run had no leakage filter" in text
    assert "The question set cannot be opened" in text


def test_audit_fails_if_the_auditor_gives_no_usable_verdict(home: Path):
    with pytest.raises(InputError, match="gave no usable verdict"):
        audited(run(spec()), "--auditor", "scripted:mute.jsonl")
    assert not Path("audit.json").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "an audit needs a run or a filter"),
        (("abc", "--filter", "rules"), "an audit needs a run or a filter"),
        (("--filter", "rules", "--auditor", "a:b"), "--auditor: has no effect without RUN"),
        (("abc", "--bootstrap", "draws=200"), "--bootstrap: has no effect without --no-tools or --no-filter"),
    ],
)
def test_incompatible_options_are_refused(arguments: tuple[str, ...], problem: str):
    with pytest.raises(InputError, match=problem):
        CliRunner().invoke(cli, ["audit", *arguments], catch_exceptions=False)


def test_the_rules_alone_are_tested_on_synthetic_texts(home: Path):
    result = CliRunner().invoke(cli, ["audit", "--filter", "rules", "--json"], catch_exceptions=False)
    report = json.loads(result.stdout)
    assert report["cost"] is None
    assert [table["title"] for table in report["tables"]] == ["Stopped, in all", "Stopped, by kind"]


def test_filter_model_of_the_run_may_not_audit():
    models = {"agent": "openai:gpt-5.4", "filter": "google:gemini-3-flash-preview"}
    run_spec = spec(models=models)
    with pytest.raises(InputError, match="repeat its own mistakes"):
        chosen_auditor(run_spec, "openrouter:google/gemini-3-flash-preview", same=False)
    assert chosen_auditor(run_spec, models["filter"], same=True) == models["filter"]
    assert chosen_auditor(run_spec, "openai:gpt-5.4", same=False) == "openai:gpt-5.4"
    with pytest.raises(InputError, match="no auditor is named"):
        chosen_auditor(run_spec, None, same=False)
    assert chosen_auditor(spec(models={**models, "auditor": "anthropic:x"}), None, same=False) == "anthropic:x"
    without = spec(models={"agent": "openai:gpt-5.4"})
    with pytest.raises(InputError, match="was the filter"):
        chosen_auditor(without, "openai:gpt-5.4", same=False)
    with pytest.raises(InputError, match="live run"):
        chosen_auditor(spec(mode="live"), "anthropic:x", same=False)
    assert bare_name("scripted:a/x.jsonl") != bare_name("scripted:b/x.jsonl")
