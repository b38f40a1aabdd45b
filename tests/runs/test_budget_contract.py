"""Budgets, through all interfaces and over HTTP: they are not overspent, and sufficient ones complete everything."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.background import Background
from fakes.billing import MODEL, BillingModels
from foretell import ask, replay, run, show
from foretell.models.journal import Journal
from foretell.models.limits import ModelLimits
from foretell.models.providers import batches
from foretell.operations.grid import run_grid
from foretell.operations.requests.runs import GridRequest
from foretell.practice.models.scripts import arena_script, tree_script
from foretell.practice.server import ServerRequest, ServerResponse, json_response
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure
from foretell.runs import runtime
from foretell.runs.event_loop import run_sync
from foretell.runs.settings import Settings


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes a provider and settings with its address."""
    for name in ("GATHER_SECONDS", "FIRST_POLL", "FIRST_WAIT"):
        monkeypatch.setattr(batches, name, 0.05)
    providers: list[Background[BillingModels]] = []

    def make(**how: Any) -> tuple[BillingModels, Settings]:
        background = Background(lambda: BillingModels(**how))
        providers.append(background)
        home = tmp_path / str(len(providers))
        home.mkdir()
        usual = {"due": "2026-01-01", "source": "own", "targets": [{"id": "yes"}]}
        rows = [{**usual, "id": f"own/{n}", "text": f"Will {n} win?"} for n in range(60)]
        (home / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        keys = {"OPENAI_API_KEY": "k"}
        return background.server, Settings(home=home, keys=keys, addresses={"openai": f"{background.url}/v1"})

    yield make
    for provider in providers:
        provider.close()


def spec_of(settings: Settings, budget: float | None, questions: int = 60, **fields: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "questions": {"dataset": str(settings.home / "questions.jsonl"), "limit": questions},
        "models": {"agent": MODEL},
        "search": [],
        "options": {"variant": "zero-shot"},
        "mode": "backtest",
    }
    return {**spec, **fields, **({"budget": {"run": budget}} if budget is not None else {})}


@pytest.mark.parametrize("faults", [{}, {"429": 0.2, "500": 0.1}, {"cut": 0.3}], ids=["calm", "busy", "cut off"])
@pytest.mark.parametrize("dollars", [0.02, 0.5])
def test_budget_is_not_overspent(opened: Any, dollars: float, faults: dict[str, float]) -> None:
    models, settings = opened(wants=40_000, faults=faults)
    progress = run(spec_of(settings, dollars), settings=settings).progress
    assert models.bill <= dollars
    assert models.bill <= progress.money.billed + progress.money.unknown + 1e-6
    assert progress.money.reserved == pytest.approx(0)
    run(spec_of(settings, dollars), settings=settings)  # When resumed, it has no more money than before.
    assert models.bill <= dollars


@pytest.mark.parametrize("wants", [120, 900])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"trials": 2},
        {"sampling": {"tier": "flex"}},
        {"sampling": {"tier": "batch"}},
        {"sampling": {"max_tokens": 5000}},
        {"forecaster": "tree", "options": {"grounder": "plain", "leaves": 3}, "questions": 3},
    ],
    ids=["plain", "trials", "flex", "batch", "capped", "trees"],
)
def test_sufficient_budget_completes_everything(opened: Any, fields: dict[str, Any], wants: int) -> None:
    """A budget with room for the cautious estimate of one input pays for everything else."""
    fields = dict(fields)
    questions, script = fields.pop("questions", 15), tree_script if fields.get("forecaster") == "tree" else None
    free, unlimited = opened(script=script, wants=wants)
    whole = run(spec_of(unlimited, None, questions, **fields), settings=unlimited).progress
    assert whole.money.billed == pytest.approx(free.bill)
    models, settings = opened(script=script, wants=wants, faults={"429": 0.1, "500": 0.05})
    progress = run(spec_of(settings, whole.money.billed * 1.05, questions, **fields), settings=settings).progress
    assert (progress.done, progress.failed, progress.fallback) == (whole.done, 0, 0)
    assert models.bill <= whole.money.billed * 1.05


def test_retry_without_a_refused_tier_uses_the_same_budget(opened: Any) -> None:
    class NoFlex(BillingModels):
        def respond(self, request: ServerRequest) -> ServerResponse:
            if request.method == "POST" and request.json().get("service_tier"):
                return json_response({"error": {"message": "service_tier is not supported", "code": "x"}}, 400)
            return super().respond(request)

    _, settings = opened()
    with closing(Background(lambda: NoFlex(wants=40_000))) as background:
        settings = replace(settings, addresses={"openai": f"{background.url}/v1"})
        run(spec_of(settings, 0.5, sampling={"tier": "flex"}), settings=settings)
        models = background.server
        assert 0.4 < models.bill <= 0.5


def test_grid_budget_applies_to_all_runs_and_restarts(opened: Any, tmp_path: Path) -> None:
    models, settings = opened(wants=900)
    base = {name: value for name, value in spec_of(settings, None, 20).items() if name != "budget"}
    grid_file = {"name": "g", "base": base, "factors": {"seed": [1, 2, 3]}, "budget": 0.4}
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(grid_file))
    for _ in range(3):
        sync = run_sync(run_grid(GridRequest(grid=tmp_path / "grid.yaml"), settings))
        assert models.bill <= 0.4
    assert sum(row.money.billed for row in sync.planned) == pytest.approx(models.bill)
    with closing(Journal(settings.journal)) as journal:
        assert journal.spent()[MODEL].dollars == pytest.approx(models.bill)
    dearer = {**grid_file, "budget": 5.0}
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(dearer))
    sync = run_sync(run_grid(GridRequest(grid=tmp_path / "grid.yaml"), settings))
    assert all(row.trials == row.done for row in sync.planned)


def test_truncated_reply_is_requested_again_with_a_larger_budget(opened: Any) -> None:
    models, settings = opened(wants=900)
    results = [run(spec_of(settings, dollars, 6), settings=settings) for dollars in (0.031, 0.0312, 5.0, 5.0)]
    cut_off, _, whole, again = results
    assert cut_off.progress.failed > 0
    assert (whole.progress.done, whole.progress.failed, whole.progress.fallback) == (6, 0, 0)
    assert again.progress.skipped == 6
    with closing(Journal(settings.journal)) as journal:
        spent = journal.spent()[MODEL]
        assert spent.dollars == pytest.approx(models.bill)  # The truncated reply was paid for too and stays recorded.
        # A few cents more allow a few more tokens. No budget sends stored requests again.
        assert 6 < spent.calls <= 6 + 2
    answers = show(whole.run, settings=settings).answers
    assert sum(answer.usage.calls for answer in answers) == 6 + 1
    for result in (whole, cut_off):
        replayed = replay(result.run, settings=settings)
        assert (replayed.same, replayed.total) == (6, 6), replayed.notes


def test_replay_repeats_refusals_and_lost_replies_with_their_reasons(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "patience_of", lambda _: ModelLimits(attempts=2, first_pause=0.01))
    broken = True

    class Faulty(BillingModels):
        def respond(self, request: ServerRequest) -> ServerResponse:
            text = request.body.decode() if broken and request.method == "POST" else ""
            errors = {
                "Will 1 win?": (400, {"message": "not allowed", "code": "policy"}),
                "Will 2 win?": (500, {"message": "the machine is broken", "code": "x"}),
                "Will 3 win?": (400, {"message": "too long", "code": "context_length_exceeded"}),
            }
            for question, (status, error) in errors.items():
                if question in text:
                    return json_response({"error": error}, status)
            return json_response({"nothing": 1}) if "Will 4 win?" in text else super().respond(request)

    _, settings = opened()
    with closing(Background(Faulty)) as background:
        settings = replace(settings, addresses={"openai": f"{background.url}/v1"})
        first = run(spec_of(settings, None, 6), settings=settings)
        reasons = [answer.error for answer in show(first.run, settings=settings).answers if isinstance(answer, Failure)]
        for reason in ("not allowed", "the machine is broken", "too long", "no readable answer"):
            assert sum(reason in text for text in reasons) == 1
        assert str(replay(first.run, settings=settings)).startswith("6 of 6")
        # Another run gets the replies that this one did not get, and the recorded failures stay what they were.
        broken = False
        second = run(spec_of(settings, None, 6, trials=2), settings=settings)
        assert second.progress.failed == 0
        for name, total in ((first.run, 6), (second.run, 12)):
            replayed = replay(name, settings=settings)
            assert (replayed.same, replayed.total) == (total, total), replayed.notes
        # After a successful retry, the answers of the retry are replayed.
        assert run(first.run, only_failed="any", settings=settings).progress.failed == 0
        assert str(replay(first.run, settings=settings)).startswith("6 of 6")


@pytest.mark.parametrize("wants", [300, 40_000])
def test_small_budget_is_not_overspent(opened: Any, wants: int) -> None:
    models, settings = opened(script=arena_script, wants=wants)
    how: dict[str, Any] = {"model": MODEL, "budget": 0.05, "as_of": "2026-01-01", "settings": settings}
    how["set"] = {"options.variant": "zero-shot"}
    try:
        assert ask("Will it rain?", **how).p
    except InputError:
        assert wants == 40_000
    assert 0 < models.bill <= 0.05 + 1e-9
