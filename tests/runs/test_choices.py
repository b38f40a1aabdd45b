"""Defaults for the models of a run: effort by role, service tiers, time limits and prices."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foretell.forecasters.forecaster import TracedModel
from foretell.models.facts import facts_of, known_facts
from foretell.models.limits import ModelLimits
from foretell.models.model import ModelSettings, Reply, Request, ServiceTier, TokenCount, UserMessage
from foretell.models.names import MODEL_ROLES, ModelName, ModelRoles, default_effort, default_efforts
from foretell.models.prices import PriceList
from foretell.operations.ask import prepare_ask
from foretell.operations.requests.asking import AskRequest
from foretell.operations.requests.runs import RunRequest
from foretell.operations.run import prepare
from foretell.questions.errors import InputError
from foretell.questions.trace import ModelCalled, TraceEvent
from foretell.runs import runner
from foretell.runs.runner import begin_run, check_run, open_answers
from foretell.runs.runtime import forecaster_options, models_of_run, prices_of, tool_seconds
from foretell.runs.settings import Settings
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec, spec_from_json, spec_from_mapping
from foretell.runs.store import RunStore

NOW = datetime(2026, 11, 15, tzinfo=UTC)
UNKNOWN = "openrouter:nobody/knows-this-model"


def spec_of(agent: str, **rest: Any) -> RunSpec:
    models = {"agent": agent, **rest.pop("models", {})}
    return RunSpec(questions=QuestionsSpec(dataset="demo"), models=models, **rest)


def test_default_effort_depends_on_the_role():
    named = [entry.name for table in known_facts() for entry in table.models if entry.name]
    assert len(named) > 20
    for model in named:
        facts = facts_of(ModelName.read(model).name)
        agent, cheap = default_effort(model, "agent", ModelSettings()), default_effort(model, "filter", ModelSettings())
        assert facts.thinks(agent) == bool(set(facts.efforts) - {"none"}), model
        assert cheap in (None, "none", "minimal", "low"), model
        assert {agent, cheap} - {None} <= {*facts.efforts, "none"}, model
        if not facts.efforts:
            assert (agent, cheap) == (None, None), model
    for unheard in ("local:qwen3.gguf", "compat:gpt-5.4@http://127.0.0.1:1/v1", UNKNOWN, "scripted:gpt-5.4"):
        assert default_efforts(ModelRoles(agent=unheard)) == {}


def test_stated_effort_overrides_the_default():
    def chosen(model: str, **sampling: Any) -> Any:
        return default_efforts(ModelRoles(agent=model, settings={"agent": ModelSettings(**sampling)}))

    assert chosen("openai:gpt-5.4") == {"agent": "medium", "filter": "none", "summariser": "none"}
    assert chosen("openai:gpt-5.4", effort="high") == {"filter": "none", "summariser": "none"}
    assert chosen("openai:gpt-5.4", effort="none") == {}
    # It accepts no temperature while it reasons.
    assert chosen("openai:gpt-5.4", temperature=0.7) == {}
    other = ModelRoles(agent="openai:gpt-6-sol", others={"filter": "mistral:mistral-small-latest"})
    assert default_efforts(other) == {"summariser": "low"}


def test_chosen_efforts_are_stored_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    spec = spec_of("openai:gpt-5.4", sampling={"max_tokens": 900})
    with closing(RunStore(tmp_path / "new.db")) as store:
        begun = begin_run(store, spec, NOW)
        assert begun.id == spec.id
        assert begun.efforts == {"agent": "medium", "filter": "none", "summariser": "none"}
        monkeypatch.delattr(runner, "default_efforts")
        assert begin_run(store, spec, NOW) == begun
        row = store.run(spec.id)
        assert row is not None
        stored = spec_from_json(row.spec)
    assert (stored, stored.id) == (begun, spec.id)
    roles = models_of_run(stored)
    assert {role: roles.setting(role).effort for role in MODEL_ROLES} == {
        **dict.fromkeys(MODEL_ROLES, "medium"),
        "filter": "none",
        "summariser": "none",
    }
    assert {roles.setting(role).max_tokens for role in MODEL_ROLES} == {900}
    with pytest.raises(InputError, match="chosen when a run is made"):
        spec_from_mapping(row.spec)


def test_older_runs_continue_without_efforts_and_marks(tmp_path: Path):
    spec = spec_of("openai:gpt-5.4")
    with closing(RunStore(tmp_path / "old.db")) as store:
        store.begin(spec.id, spec.to_json(), NOW.isoformat())
        assert begin_run(store, spec, NOW) == spec
    with closing(RunStore(tmp_path / "aside.db")) as store:
        assert begin_run(store, spec, NOW, again=True) == spec
    with closing(RunStore(tmp_path / "new.db")) as store:
        assert begin_run(store, spec, NOW).marked
    assert models_of_run(spec).setting("agent") == ModelSettings()


# Service tiers.


def charged(model: str, wanted: Any, **reply: Any) -> float | None:
    request = Request(model=model, messages=(UserMessage(text="?"),), settings=ModelSettings(tier=wanted))
    dollars = PriceList().charged(request, Reply(tokens=TokenCount(input=100_000), **reply))
    return None if dollars is None else round(10 * dollars, 6)


def test_service_tier_changes_the_price_if_the_provider_has_it():
    assert (charged("openai:gpt-6-sol", None), charged("openai:gpt-6-sol", "flex")) == (2.0, 1.0)
    assert charged("google:gemini-3.8-flash", "flex") == 0.375
    assert charged("anthropic:claude-opus-5-5", "batch") == 2.0
    # Anthropic has no such tier, and a tier that was not granted does not change the price.
    assert charged("anthropic:claude-opus-5-5", "flex") == charged("anthropic:claude-opus-5-5", None) == 4.0
    assert charged("openai:gpt-6-sol", "flex", tier="standard") == 2.0
    assert charged("openai:gpt-6-sol", None, tier="priority") == 4.0


def test_trace_has_the_charged_price():
    events: list[TraceEvent] = []

    class Stated:
        async def complete(self, request: Request) -> Reply:
            return Reply(text="x", dollars=0.75 if "own" in request.slot else None, tokens=TokenCount(input=100_000))

    model = TracedModel(Stated(), events.append, "agent", PriceList())
    request = Request(model="openai:gpt-6-sol", messages=(), settings=ModelSettings(tier="flex"))
    for slot in ("own", "flex"):
        asyncio.run(model.complete(replace(request, slot=slot)))
    assert [event.dollars for event in events if isinstance(event, ModelCalled)] == [0.75, 0.1]


def test_tier_option_halves_the_price_and_says_so(tmp_path: Path):
    settings = Settings(home=tmp_path, keys={"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})
    spec = {"questions": "demo", "models": {"agent": "openai:gpt-6-sol", "filter": "anthropic:claude-haiku-5-5"}}
    usual = prepare(RunRequest(spec=spec), settings)
    (waiting,) = usual.notices
    assert "flex halves the price of openai:gpt-6-sol;" in waiting
    assert "batch halves the price of openai:gpt-6-sol, anthropic:claude-haiku-5-5" in waiting
    cheap = prepare(RunRequest(spec=spec, set={"sampling.tier": "flex"}), settings)
    assert cheap.spec.sampling == {"tier": "flex"}
    offered, missing = cheap.notices
    assert "openai:gpt-6-sol costs half" in offered
    assert "anthropic:claude-haiku-5-5 has no such tier" in missing
    # The time limit allows for slow replies.
    assert forecaster_options(cheap.spec) == {"seconds": 9000.0}
    assert forecaster_options(replace(cheap.spec, options={"seconds": 60})) == {"seconds": 60}
    assert forecaster_options(usual.spec) == {}
    slow = prepare(RunRequest(spec=spec, set={"sampling.tier": "batch"}), settings)
    assert all("costs half; replies come together, within a day" in notice for notice in slow.notices)
    assert forecaster_options(slow.spec) == {"seconds": 900_000.0}
    # The filter drops material without a verdict, so it waits as long as its replies take.
    tiers: tuple[ServiceTier | None, ...] = (None, "standard", "flex", "batch")
    waits = [tool_seconds(usual.spec, ModelSettings(tier=tier), 120.0) for tier in tiers]
    assert waits == [120.0, 120.0, 900.0, 90_000.0]
    patient = replace(usual.spec, sampling={"reply_seconds": 1000})
    assert tool_seconds(patient, ModelSettings(), 120.0) == 1000.0
    with pytest.raises(InputError, match="a tree makes too many requests to wait a day for each reply"):
        prepare(RunRequest(spec={**spec, "forecaster": "tree"}, set={"sampling.tier": "batch"}), settings)


@pytest.mark.parametrize(
    ("sampling", "seconds"),
    [({}, 300.0), ({"reply_seconds": 7}, 7.0), ({"tier": "flex"}, 900.0), ({"tier": "batch"}, 90_000.0)],
)
def test_reply_seconds_sets_how_long_a_run_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampling: dict[str, Any], seconds: float
):
    seen: list[ModelLimits] = []

    @asynccontextmanager
    async def opened(*_: Any, limits: ModelLimits, **__: Any) -> AsyncGenerator[None]:
        seen.append(limits)
        raise InputError("far enough")
        yield

    async def main() -> None:
        with closing(RunStore(tmp_path / "r.db")) as store:
            async with open_answers(spec_of("openai:m", sampling=sampling), Settings(home=tmp_path), object(), store):  # pyright: ignore
                pass

    monkeypatch.setattr(runner, "open_runtime", opened)
    with pytest.raises(InputError, match="far enough"):
        asyncio.run(main())
    assert [limits.seconds for limits in seen] == [seconds]


# Unknown prices.


def test_prices_can_be_stated_by_role(tmp_path: Path):
    settings = Settings(home=tmp_path, keys={"OPENROUTER_API_KEY": "k", "OPENAI_API_KEY": "k"})
    fields: dict[str, Any] = {"question": "Will it rain?", "model": "openai:gpt-6-sol"}

    def request(prices: dict[str, str], budget: float | None = 1.0) -> AskRequest:
        chosen = {"models.filter": UNKNOWN, **{f"prices.{who}": price for who, price in prices.items()}}
        return AskRequest(**fields, budget=budget, set=chosen)

    with pytest.raises(InputError, match="knows-this-model is unknown"):
        prepare_ask(request({"agent": "1/2"}), settings)
    for prices in ({"filter": "0.1/0.4"}, {UNKNOWN: "0.1/0.4"}, {"agent": "3/9", "filter": "0.1/0.4"}):
        spec = prepare_ask(request(prices), settings).spec
        price = prices_of(spec).of(UNKNOWN)
        assert price is not None
        assert (price.input, price.output) == (0.1, 0.4)
    assert json.loads(spec.to_json())["prices"] == {"openai:gpt-6-sol": "3/9", UNKNOWN: "0.1/0.4"}
    with pytest.raises(InputError, match="is not a price"):
        prepare_ask(request({"filter": "cheap"}), settings)
    (notice,) = prepare_ask(request({}, budget=None), settings).notices
    assert f"no price is known for {UNKNOWN}" in notice
    assert f"--set prices.{UNKNOWN}=0.5/2" in notice
    deep = spec_of("openai:gpt-6-sol", forecaster="tree", options={"deep_model": UNKNOWN}, budget=BudgetSpec(run=1.0))
    with pytest.raises(InputError, match="knows-this-model is unknown"):
        check_run(deep, settings)
