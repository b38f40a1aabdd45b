"""A dry run with a real model, over HTTP and in this process: every trial has an answer or a reason.

The model is so small that it rarely answers well, and a thousand tokens take half a minute. So most questions go to a
server with a tiny context, which rejects them at once. Only the pilot gets real answers, over HTTP and in this process.
With FORETELL_REHEARSAL set, all tests do, which takes about ten minutes.
"""

import json
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fakes.stored_run import run_id_of
from foretell.questions.forecast import Failure, Forecast
from foretell.runs.store import RunStore

SHORT, WHOLE, IN_PROCESS = 256, 4096, 0
"""Context size of the server in tokens; 0 runs the model in the command's own process."""
IN_EARNEST = [WHOLE, IN_PROCESS] if os.environ.get("FORETELL_REHEARSAL") else []
QUESTIONS: dict[str, dict[str, Any]] = {
    "yes or no": {"targets": [{"id": "yes"}]},
    "options": {"targets": [{"id": "Ann"}, {"id": "Bob"}, {"id": "Carl"}], "exclusivity": "exactly one"},
    "number": {"targets": [{"id": ">3"}, {"id": "<1"}], "subtype": "numeric"},
}
BRIEF = {"sampling": {"max_tokens": 24, "temperature": 0.0}}


@pytest.fixture(scope="module")
def gguf() -> Path:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    path = os.environ.get("FORETELL_TEST_GGUF")
    if not path:
        pytest.skip("set FORETELL_TEST_GGUF to the path of a small .gguf file")
    return Path(path).resolve()


@pytest.fixture(scope="module")
def serve(gguf: Path) -> Iterator[Callable[[int], str]]:
    """Start llama.cpp's server with a context size, or none, and return the name of the model."""
    llama: Any = import_module("xllamacpp")
    servers: dict[int, Any] = {}

    def start(context: int) -> str:
        if context == IN_PROCESS:
            return f"local:{gguf}"
        if context not in servers:
            wanted = llama.CommonParams()
            wanted.model.path = str(gguf)
            wanted.n_ctx, wanted.n_parallel, wanted.verbosity, wanted.warmup = context, 1, -1, False
            wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
            servers[context] = llama.Server(wanted)
        return f"compat:small@{servers[context].listening_address}/v1"

    yield start
    servers.clear()


@pytest.fixture
def workspace(build_workspace: Callable[..., Any]) -> Any:
    return build_workspace("http://127.0.0.1:9", count=1).with_environment(OPENAI_API_KEY="")


def write_questions(workspace: Any, *kinds: str) -> None:
    usual = {"source": "own", "text": "What becomes of the bridge?", "due": "2026-07-01"}
    rows = [{**usual, "id": f"own/{kind}", **QUESTIONS[kind]} for kind in kinds]
    (workspace.folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def answered(workspace: Any, *, model: str, **fields: Any) -> list[Forecast | Failure]:
    """Return the answers of a run, after checking its output."""
    spec = workspace.spec(models={"agent": model}, search=[], **{**BRIEF, **fields})
    foretell = workspace.foretell("run", spec.name)
    store = RunStore(workspace.home / "runs.db")
    answers = list(store.answers(run_id_of(spec)))
    store.close()
    assert answers
    for answer in answers:
        if isinstance(answer, Failure):
            is_readable(answer.error)
        else:
            assert all(0 <= p <= 1 for p in answer.p.values())
            assert answer.rationale
    whole = all(isinstance(answer, Forecast) and answer.ending != "fallback" for answer in answers)
    assert foretell.returncode == (0 if whole else 3), foretell.stdout + foretell.stderr
    is_readable(foretell.stdout + foretell.stderr)
    return answers


def is_readable(text: str) -> None:
    assert text.strip()
    assert "Traceback" not in text


@pytest.mark.parametrize("context", [SHORT, *IN_EARNEST])
def test_every_kind_of_question_has_an_answer_or_a_reason(workspace: Any, serve: Callable[[int], str], context: int):
    write_questions(workspace, *QUESTIONS)
    answers = answered(workspace, model=serve(context), options={"variant": "zero-shot"})
    assert len(answers) == len(QUESTIONS)
    if context == SHORT:
        assert all(isinstance(answer, Failure) and "context size (256 tokens)" in answer.error for answer in answers)


def test_model_without_tools_answers_by_schema(workspace: Any, serve: Callable[[int], str]):
    """The server accepts tools and a forced choice but ignores both, because this model's template has no tools."""
    foretell = workspace.foretell(
        *("ask", "Will it rain in Paris?", "--closes", "2026-12-31", "--model", serve(WHOLE), "--search", "none"),
        *("--set", "options.variant=zero-shot", "--set", "sampling.max_tokens=40"),
        *("--set", "sampling.temperature=0", "--json"),
    )
    assert foretell.returncode in (0, 3), foretell.stderr
    is_readable(foretell.stdout)
    assert json.loads(foretell.stdout)


@pytest.mark.parametrize("context", [SHORT, *IN_EARNEST])
def test_tree_has_an_answer_or_a_reason(workspace: Any, serve: Callable[[int], str], context: int):
    foretell = workspace.foretell(
        *("tree", "grow", "The bridge opens.", "--as-of", "2026-07-01", "--model", serve(context), "--search", "none"),
        *("--leaves", "2", "--grounder", "plain", "--set", "options.depth=1", "--set", "options.steps=1"),
        *("--set", "options.retries=0", "--set", "sampling.max_tokens=60"),
    )
    assert foretell.returncode in (0, 3), foretell.stderr
    is_readable(foretell.stdout + foretell.stderr)


@pytest.mark.parametrize("context", [SHORT, WHOLE, IN_PROCESS])
def test_pilot_gives_the_same_verdict_over_http_and_in_process(
    workspace: Any, serve: Callable[[int], str], context: int
):
    """With room for one short answer, the model submits it itself, over HTTP and in this process."""
    write_questions(workspace, "yes or no")
    options = {"variant": "zero-shot", "reply_format": "schema"}
    answers = answered(
        workspace, model=serve(context), options=options, sampling={"max_tokens": 72, "temperature": 0.0}
    )
    # The pilot sends the same requests, and reuses the replies of the run.
    foretell = workspace.foretell("run", "run.yaml", "--pilot", "10", "--json")
    good = all(isinstance(answer, Forecast) and answer.ending == "submitted" for answer in answers)
    assert good == (context != SHORT)
    assert foretell.returncode == (0 if good else 1), foretell.stderr
    assert json.loads(foretell.stdout)["pilot"]["passed"] == good
    if not good:
        return
    # Sampling differs each time, but a replay uses the journal and needs no model.
    again = workspace.foretell("replay", run_id_of(workspace.folder / "run.yaml"))
    assert again.returncode == 0, again.stdout + again.stderr


def test_arena_entry_with_a_local_model_answers(workspace: Any, gguf: Path):
    write_questions(workspace, "yes or no")
    options = {"view": "none", "attempts": 2}
    assert len(answered(workspace, model=f"local:{gguf}", forecaster="context", options=options)) == 1
