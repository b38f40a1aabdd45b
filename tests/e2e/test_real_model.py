"""A rehearsal with real weights, over the compatible wire and in this process: every trial ends honestly.

The model is so small that it rarely answers well, and every thousand tokens take it half a minute. So most questions go
to a server that can read next to nothing: it refuses at once, as servers do when a conversation is too long. The
pilot is run in earnest by either route. With FORETELL_REHEARSAL set, everything is, which takes some ten minutes.
"""

import json
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fakes.stored_run import run_id_of
from foretell.questions import Failure, Forecast
from foretell.runs import RunStore

SHORT, WHOLE, IN_PROCESS = 256, 4096, 0
"""Tokens that the server can read; none where there is no server, and the model runs in the command's own process."""
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
    """Starts llama.cpp's own server with a context of so many tokens, or none; the name of the model."""
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
def house(build_house: Callable[..., Any]) -> Any:
    return build_house("http://127.0.0.1:9", count=1).with_environment(OPENAI_API_KEY="")


def write_questions(house: Any, *kinds: str) -> None:
    usual = {"source": "own", "text": "What becomes of the bridge?", "due": "2026-07-01"}
    rows = [{**usual, "id": f"own/{kind}", **QUESTIONS[kind]} for kind in kinds]
    (house.folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def answered(house: Any, *, model: str, **fields: Any) -> list[Forecast | Failure]:
    """What a run comes to, after a look at how it says so."""
    spec = house.spec(models={"agent": model}, search=[], **{**BRIEF, **fields})
    told = house.foretell("run", spec.name)
    store = RunStore(house.home / "runs.db")
    found = list(store.answers(run_id_of(spec)))
    store.close()
    assert found
    for answer in found:
        if isinstance(answer, Failure):
            is_readable(answer.error)
        else:
            assert all(0 <= p <= 1 for p in answer.p.values())
            assert answer.rationale
    whole = all(isinstance(answer, Forecast) and answer.ending != "degraded" for answer in found)
    assert told.returncode == (0 if whole else 3), told.stdout + told.stderr
    is_readable(told.stdout + told.stderr)
    return found


def is_readable(text: str) -> None:
    assert text.strip()
    assert "Traceback" not in text


@pytest.mark.parametrize("context", [SHORT, *IN_EARNEST])
def test_every_kind_of_question_ends_in_an_answer_or_says_why_not(
    house: Any, serve: Callable[[int], str], context: int
):
    write_questions(house, *QUESTIONS)
    found = answered(house, model=serve(context), options={"variant": "zero-shot"})
    assert len(found) == len(QUESTIONS)
    if context == SHORT:
        assert all(isinstance(one, Failure) and "context size (256 tokens)" in one.error for one in found)


def test_a_model_without_tools_is_asked_by_schema_and_answers(house: Any, serve: Callable[[int], str]):
    """The server takes tools and a forced choice, and drops both in silence: this model's template knows no tools."""
    told = house.foretell(
        *("ask", "Will it rain in Paris?", "--closes", "2026-12-31", "--model", serve(WHOLE), "--search", "none"),
        *("--set", "options.variant=zero-shot", "--set", "sampling.max_tokens=40"),
        *("--set", "sampling.temperature=0", "--json"),
    )
    assert told.returncode in (0, 3), told.stderr
    is_readable(told.stdout)
    assert json.loads(told.stdout)


@pytest.mark.parametrize("context", [SHORT, *IN_EARNEST])
def test_a_tree_ends_in_a_number_or_says_why_not(house: Any, serve: Callable[[int], str], context: int):
    told = house.foretell(
        *("tree", "grow", "The bridge opens.", "--as-of", "2026-07-01", "--model", serve(context), "--search", "none"),
        *("--leaves", "2", "--grounder", "plain", "--set", "options.depth=1", "--set", "options.steps=1"),
        *("--set", "options.retries=0", "--set", "sampling.max_tokens=60"),
    )
    assert told.returncode in (0, 3), told.stderr
    is_readable(told.stdout + told.stderr)


@pytest.mark.parametrize("context", [SHORT, WHOLE, IN_PROCESS])
def test_a_pilot_gives_the_verdict_of_the_run_by_either_route(house: Any, serve: Callable[[int], str], context: int):
    """With room for one short answer, the model hands it in itself, over HTTP as in this process."""
    write_questions(house, "yes or no")
    options = {"variant": "zero-shot", "reply_format": "schema"}
    found = answered(house, model=serve(context), options=options, sampling={"max_tokens": 72, "temperature": 0.0})
    # The pilot asks in the same words, and reads the replies of the run.
    told = house.foretell("run", "run.yaml", "--pilot", "10", "--json")
    good = all(isinstance(one, Forecast) and one.ending == "submitted" for one in found)
    assert good == (context != SHORT)
    assert told.returncode == (0 if good else 1), told.stderr
    assert json.loads(told.stdout)["pilot"]["passed"] == good
    if not good:
        return
    # Sampling is not the same twice, but the journal is: a replay needs no model at all.
    again = house.foretell("replay", run_id_of(house.folder / "run.yaml"))
    assert again.returncode == 0, again.stdout + again.stderr


def test_an_entry_of_an_arena_answers_in_this_process(house: Any, gguf: Path):
    write_questions(house, "yes or no")
    options = {"view": "none", "attempts": 2}
    assert len(answered(house, model=f"local:{gguf}", forecaster="context", options=options)) == 1
