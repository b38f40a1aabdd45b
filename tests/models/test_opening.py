import asyncio
import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from foretell.models import (
    MODEL_ROLES,
    ModelBusy,
    ModelError,
    ModelName,
    ModelRoles,
    ModelRouter,
    ModelSettings,
    Reply,
    Request,
    ToolCall,
    UserMessage,
    check_knowledge_cutoff,
    knowledge_cutoff,
    open_provider,
)
from foretell.models.model import load_provider
from foretell.models.providers import ScriptCue, ScriptedModel
from foretell.questions import InputError, MissingExtra, instant


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("openai:gpt-5.4", ("openai", "gpt-5.4", "", "openai")),
        ("openrouter:moonshotai/kimi-k2.5:free", ("openrouter", "moonshotai/kimi-k2.5:free", "", "openrouter")),
        ("local:/models/a b.gguf", ("local", "/models/a b.gguf", "", "local:/models/a b.gguf")),
        ("compat:a@b@https://h/v1/", ("compat", "a@b", "https://h/v1", "compat@https://h/v1")),
    ],
)
def test_names(written: str, expected: tuple[str, str, str, str]):
    name = ModelName.read(written)
    assert (name.provider, name.name, name.url, name.place) == expected


@pytest.mark.parametrize(
    "written", ["gpt-5.4", "openai:", "nobody:x", "", "compat:x", "compat:@http://h", "compat:x@h:1"]
)
def test_unreadable_names_say_how_to_write_them(written: str):
    with pytest.raises(InputError, match="compat:NAME@http://HOST:PORT/v1"):
        ModelName.read(written)


def test_roles_fall_back_to_the_agent():
    cast = ModelRoles(
        agent="openai:a",
        others={"filter": "openai:b"},
        settings={"agent": ModelSettings(effort="high"), "judge": ModelSettings(temperature=0.0)},
    )
    assert {role: cast.name(role) for role in MODEL_ROLES} == dict.fromkeys(MODEL_ROLES, "openai:a") | {
        "filter": "openai:b"
    }
    assert cast.setting("auditor") == ModelSettings(effort="high")
    assert cast.setting("filter") == ModelSettings()  # Another model: the agent's settings are not meant for it.
    assert cast.setting("judge") == ModelSettings(temperature=0.0)
    assert cast.names() == ["openai:a", "openai:b"]
    request = cast.request("judge", [UserMessage(text="q")], slot="s")
    assert (request.model, request.settings.temperature, request.slot) == ("openai:a", 0.0, "s")
    assert cast.with_model("filter", "openai:c").name("filter") == "openai:c"
    with pytest.raises(InputError, match="there is no role 'oracle'"):
        ModelRoles(agent="openai:a", others={"oracle": "openai:b"})


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:m", "OPENAI_API_KEY"),
        ("anthropic:m", "ANTHROPIC_API_KEY"),
        ("google:m", "GOOGLE_API_KEY or GEMINI_API_KEY"),
        ("openrouter:m", "OPENROUTER_API_KEY"),
    ],
)
def test_missing_key_names_the_variable_and_the_way_without(name: str, variable: str):
    with pytest.raises(InputError) as caught:
        open_provider(name, {})
    assert str(caught.value) == (
        f"{name} needs a key: set {variable}, "
        "or take a model on this machine: local:PATH.gguf or compat:NAME@http://localhost:11434/v1"
    )
    with pytest.raises(InputError):
        ModelRouter({}).check([name])
    ModelRouter({variable.split()[-1]: "k"}).check([name])


def test_missing_extras_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("foretell.models.providers.llama_cpp.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"foretell\[local\]"):
        open_provider(f"local:{tmp_path}/x.gguf", {})
    needing = replace(load_provider("openai"), requires="no_such_module")
    monkeypatch.setattr("foretell.models.router.load_provider", lambda _: needing)
    with pytest.raises(MissingExtra, match=r"foretell\[llm\]"):
        ModelRouter({"OPENAI_API_KEY": "k"}).check(["openai:m"])


def test_scripted_model_from_a_file(tmp_path: Path):
    script = tmp_path / "script.jsonl"
    rows = [
        {"text": "first"},
        {"calls": [{"name": "submit", "arguments": {"p": 0.5}}], "tokens": {"input": 5, "output": 2}},
        {"error": "busy", "text": "later"},
        {"when": "weather", "text": "rain"},
    ]
    script.write_text("\n".join(map(json.dumps, rows)) + "\n")
    name = f"scripted:{script}"

    async def main() -> list[Reply | str]:
        async with ModelRouter({}) as exchange:
            asked = [
                Request(model=name, messages=(UserMessage(text=text),)) for text in ("a", "the weather?", "b", "c", "d")
            ]
            replies: list[Reply | str] = []
            for request in asked[:3]:
                replies.append(await exchange.complete(request))
            model = open_provider(name, {})
            await model.complete(asked[0])
            await model.complete(asked[2])
            with pytest.raises(ModelBusy, match="later"):
                await model.complete(asked[3])
            with pytest.raises(ModelError, match="has no line left for request 4"):
                await model.complete(asked[4])
            return replies

    first, weather, submit = asyncio.run(main())
    assert isinstance(first, Reply)
    assert isinstance(weather, Reply)
    assert isinstance(submit, Reply)
    assert (first.text, weather.text) == ("first", "rain")
    assert submit.calls == (ToolCall(id="call_0", name="submit", arguments='{"p": 0.5}'),)
    assert (submit.finish, submit.tokens.input) == ("tool", 5)


@pytest.mark.parametrize("line", ["no json", '{"error": "explode"}', '{"nonsense": 1}', "[1]", '{"calls": [{}]}'])
def test_bad_script_is_named_by_line(tmp_path: Path, line: str):
    script = tmp_path / "script.jsonl"
    script.write_text('{"text": "fine"}\n\n' + line)
    with pytest.raises(InputError, match="row 3: not a line of a script"):
        ScriptedModel.from_file(script)
    with pytest.raises(InputError, match="cannot be read"):
        ScriptedModel.from_file(tmp_path / "none.jsonl")


def test_scripted_model_by_function_and_cue():
    async def main() -> None:
        by_function = ScriptedModel(lambda request: request.messages[-1].text.upper())
        assert (await by_function.complete(Request(model="scripted:x", messages=(UserMessage(text="a"),)))).text == "A"
        by_cue = ScriptedModel([ScriptCue(when="a", say=ModelError("cue"))])
        with pytest.raises(ModelError, match="cue"):
            await by_cue.complete(Request(model="scripted:x", messages=(UserMessage(text="a"),)))

    asyncio.run(main())


def test_cutoffs():
    # Two sources differ: the later date is the careful one.
    assert knowledge_cutoff("openai:gpt-5.4-2026-03-05") == date(2025, 8, 31)
    assert knowledge_cutoff("openrouter:openai/gpt-6-sol") == date(2026, 4, 20)
    assert knowledge_cutoff("openai:never-heard-of") is None


def test_backtest_on_what_a_model_may_remember():
    model = "openrouter:moonshotai/kimi-k2.5"
    assert check_knowledge_cutoff(model, instant("2025-07-01")) is None
    warning = check_knowledge_cutoff(model, instant("2025-06-30T12:00:00Z"))
    assert warning is not None
    assert "may know the world up to 2025-06-30" in warning.text
    assert "Table 2" in warning.text
    with pytest.raises(InputError, match="opened on 2025-06-30"):
        check_knowledge_cutoff(model, instant("2025-06-30"), strict=True)
    unknown = check_knowledge_cutoff("local:x.gguf", instant("2026-01-01"))
    assert unknown is not None
    assert unknown.text == "the knowledge cutoff of local:x.gguf is unknown"
    assert check_knowledge_cutoff("openai:gpt-5.4", None) is not None
    assert check_knowledge_cutoff("scripted:x.jsonl", None) is None
