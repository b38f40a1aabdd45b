"""`foretell.ask`: offline, in a notebook, and researched against a fake."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foretell
from fakes.models import BackgroundModels
from foretell.models.budget import Budget
from foretell.questions.errors import InputError
from foretell.runs.event_loop import run_sync
from foretell.runs.settings import Settings

BRIDGE = "Will the harbour bridge be approved?"


@pytest.fixture(scope="module")
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script="foretell.practice.models.scripts:agent_script") as fake:
        yield fake


@pytest.fixture
def settings(tmp_path: Path, provider: BackgroundModels) -> Settings:
    return Settings(home=tmp_path, keys={"OPENAI_API_KEY": "x"}, addresses={"openai": f"{provider.url}/v1"})


def test_ask_without_a_model_gives_the_outside_view(tmp_path: Path):
    nowhere = Settings(home=tmp_path, network=False)
    forecast = foretell.ask(BRIDGE, closes="2027-06-30", settings=nowhere)
    assert 0 < forecast.p["yes"] < 1
    assert forecast.rationale
    assert forecast.usage.calls == 0
    assert foretell.ask(BRIDGE, price=0.3, settings=nowhere).p == {"yes": 0.3}
    several = foretell.ask("Who wins?", options=["A", "B", "C"], settings=nowhere)
    assert list(several.p) == ["A", "B", "C"]


def test_ask_works_while_an_event_loop_is_running(tmp_path: Path):
    async def notebook() -> float:
        return foretell.ask(BRIDGE, settings=Settings(home=tmp_path, network=False)).p["yes"]

    assert 0 < asyncio.run(notebook()) < 1


def test_errors_are_raised_through_the_thread():
    async def broken() -> None:
        raise InputError("no")

    async def notebook() -> None:
        run_sync(broken())

    with pytest.raises(InputError, match="no"):
        asyncio.run(notebook())


def test_repeated_ask_with_a_model_reuses_replies(settings: Settings, provider: BackgroundModels):
    provider.reset()
    details: dict[str, Any] = {"closes": "2027-06-30", "as_of": "2026-07-01", "trials": 2}
    forecast = foretell.ask(BRIDGE, model="openai:gpt-5-mini", search=(), settings=settings, **details)
    assert forecast.usage.calls > 0
    arrived = provider.stats()["arrived"]
    assert arrived > 0
    again = foretell.ask(BRIDGE, model="openai:gpt-5-mini", search=(), settings=settings, **details)
    assert again.p == forecast.p
    assert provider.stats()["arrived"] == arrived


def test_budget_of_the_settings_includes_every_run(settings: Settings):
    from dataclasses import replace

    purse = Budget("server", dollars=5.0)
    held = replace(settings, budget=purse)
    first = foretell.ask(BRIDGE, model="openai:gpt-5-mini", search=(), settings=held)
    second = foretell.ask("Will the wolf come back?", model="openai:gpt-5-mini", search=(), settings=held)
    assert purse.billed.dollars == pytest.approx(first.usage.dollars + second.usage.dollars)
    with pytest.raises(InputError, match="needs a known price"):
        foretell.ask(BRIDGE, model="compat:unheard@http://203.0.113.1/v1", settings=held)


def test_unknown_option_is_named(tmp_path: Path):
    with pytest.raises(TypeError, match="'colour'"):
        foretell.ask(BRIDGE, settings=Settings(home=tmp_path), colour="red")
    with pytest.raises(InputError, match="`closes` must be later"):
        foretell.ask(BRIDGE, as_of="2026-07-01", closes="2026-01-01", settings=Settings(home=tmp_path))
