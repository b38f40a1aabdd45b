"""The contract of a budget, through the doors and over HTTP: it is not overspent, and one that suffices does it all."""

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
from foretell.models import Journal
from foretell.models.providers import batches
from foretell.operations import GridRequest, run_grid
from foretell.practice import ServerRequest, ServerResponse, json_response
from foretell.practice.models import arena_script, tree_script
from foretell.questions import InputError
from foretell.runs import Settings, run_sync


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes a provider and settings that lead to it."""
    monkeypatch.setattr(batches, "GATHER_SECONDS", 0.05)
    monkeypatch.setattr(batches, "FIRST_POLL", 0.05)
    providers: list[Background[BillingModels]] = []

    def make(**how: Any) -> tuple[BillingModels, Settings]:
        found = Background(lambda: BillingModels(**how))
        providers.append(found)
        home = tmp_path / str(len(providers))
        home.mkdir()
        usual = {"due": "2026-01-01", "source": "own", "targets": [{"id": "yes"}]}
        rows = [{**usual, "id": f"own/{n}", "text": f"Will {n} win?"} for n in range(60)]
        (home / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        keys = {"OPENAI_API_KEY": "k"}
        return found.server, Settings(home=home, keys=keys, addresses={"openai": f"{found.url}/v1"})

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
def test_a_budget_is_not_overspent(opened: Any, dollars: float, faults: dict[str, float]) -> None:
    models, settings = opened(wants=40_000, faults=faults)
    found = run(spec_of(settings, dollars), settings=settings).progress
    assert models.bill <= dollars
    assert models.bill <= found.money.billed + found.money.unknown + 1e-6
    assert found.money.reserved == pytest.approx(0)
    run(spec_of(settings, dollars), settings=settings)  # Gone on with, it has no more money than it had.
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
def test_a_budget_that_suffices_completes_everything(opened: Any, fields: dict[str, Any], wants: int) -> None:
    """A budget that leaves room for the cautious estimate of one input pays for everything else."""
    fields = dict(fields)
    questions, script = fields.pop("questions", 15), tree_script if fields.get("forecaster") == "tree" else None
    free, unlimited = opened(script=script, wants=wants)
    whole = run(spec_of(unlimited, None, questions, **fields), settings=unlimited).progress
    assert whole.money.billed == pytest.approx(free.bill)
    models, settings = opened(script=script, wants=wants, faults={"429": 0.1, "500": 0.05})
    found = run(spec_of(settings, whole.money.billed * 1.05, questions, **fields), settings=settings).progress
    assert (found.done, found.failed, found.degraded) == (whole.done, 0, 0)
    assert models.bill <= whole.money.billed * 1.05


def test_a_tier_that_the_provider_refuses_is_paid_for_from_the_same_budget(opened: Any) -> None:
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


def test_one_budget_of_a_grid_holds_over_its_runs_and_starts(opened: Any, tmp_path: Path) -> None:
    models, settings = opened(wants=900)
    base = {name: value for name, value in spec_of(settings, None, 20).items() if name != "budget"}
    written = {"name": "g", "base": base, "factors": {"seed": [1, 2, 3]}, "budget": 0.4}
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(written))
    for _ in range(3):
        found = run_sync(run_grid(GridRequest(grid=tmp_path / "grid.yaml"), settings))
        assert models.bill <= 0.4
    assert sum(one.money.billed for one in found.planned) == pytest.approx(models.bill)
    with closing(Journal(settings.journal)) as journal:
        assert journal.spent()[MODEL].dollars == pytest.approx(models.bill)
    dearer = {**written, "budget": 5.0}
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(dearer))
    found = run_sync(run_grid(GridRequest(grid=tmp_path / "grid.yaml"), settings))
    assert all(one.cells == one.done for one in found.planned)


def test_a_reply_that_a_budget_cut_off_is_asked_for_anew_when_there_is_more_money(opened: Any) -> None:
    models, settings = opened(wants=900)
    results = [run(spec_of(settings, dollars, 6), settings=settings) for dollars in (0.031, 0.0312, 5.0, 5.0)]
    cut_off, _, whole, again = results
    assert cut_off.progress.failed > 0
    assert (whole.progress.done, whole.progress.failed, whole.progress.degraded) == (6, 0, 0)
    assert again.progress.skipped == 6
    with closing(Journal(settings.journal)) as journal:
        spent = journal.spent()[MODEL]
        assert spent.dollars == pytest.approx(models.bill)  # What was cut off was paid for too, and stays booked.
        # A few cents more buy a few tokens more: neither that nor the larger budget sends what is stored.
        assert 6 < spent.calls <= 6 + 2
    answers = show(whole.run, settings=settings).answers
    assert sum(one.usage.calls for one in answers) == 6 + 1
    for one in (whole, cut_off):
        found = replay(one.run, settings=settings)
        assert (found.same, found.total) == (6, 6), found.notes


@pytest.mark.parametrize("wants", [300, 40_000])
def test_five_cents_are_enough_for_a_question_or_are_not_overspent(opened: Any, wants: int) -> None:
    models, settings = opened(script=arena_script, wants=wants)
    how: dict[str, Any] = {"model": MODEL, "budget": 0.05, "as_of": "2026-01-01", "settings": settings}
    how["set"] = {"options.variant": "zero-shot"}
    try:
        assert ask("Will it rain?", **how).p
    except InputError:
        assert wants == 40_000
    assert 0 < models.bill <= 0.05 + 1e-9
