import asyncio
import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from foretell.models.model import ModelBusy, ModelError, ModelSettings, Reply, Request, ToolCall, UserMessage
from foretell.models.names import MODEL_ROLES, ModelName, ModelRoles, check_knowledge_cutoff, knowledge_cutoff
from foretell.models.providers.loading import load_provider
from foretell.models.providers.scripted import ScriptCue, ScriptedModel
from foretell.models.router import ModelRouter, open_provider
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError, MissingExtra


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("openai:gpt-5.4", ("openai", "gpt-5.4", "", "openai")),
        ("openrouter:moonshotai/kimi-k2.5:free", ("openrouter", "moonshotai/kimi-k2.5:free", "", "openrouter")),
        ("local:/models/a b.gguf", ("local", "/models/a b.gguf", "", "local:/models/a b.gguf")),
        ("compat:a@b@https://h/v1/", ("compat", "a@b", "https://h/v1", "compat@https://h/v1")),
    ],
)
def test_model_names_are_parsed(text: str, expected: tuple[str, str, str, str]):
    name = ModelName.read(text)
    assert (name.provider, name.name, name.url, name.place) == expected


@pytest.mark.parametrize("text", ["gpt-5.4", "openai:", "nobody:x", "", "compat:x", "compat:@http://h", "compat:x@h:1"])
def test_invalid_names_raise_an_error_with_a_hint(text: str):
    with pytest.raises(InputError, match="compat:NAME@http://HOST:PORT/v1"):
        ModelName.read(text)


def test_a_similar_provider_is_suggested():
    with pytest.raises(InputError, match=r"did you mean openrouter:a/b\?"):
        ModelName.read("openruter:a/b")


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
    assert cast.setting("filter") == ModelSettings()  # Another model does not get the agent's settings.
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
def test_missing_key_error_names_the_variable_and_local_models(name: str, variable: str):
    with pytest.raises(InputError) as caught:
        open_provider(name, {})
    assert str(caught.value) == (
        f"{name} needs a key: set {variable}, "
        "or use a model on this machine: local:PATH.gguf or compat:NAME@http://localhost:11434/v1"
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
            requests = [
                Request(model=name, messages=(UserMessage(text=text),)) for text in ("a", "the weather?", "b", "c", "d")
            ]
            replies: list[Reply | str] = []
            for request in requests[:3]:
                replies.append(await exchange.complete(request))
            model = open_provider(name, {})
            await model.complete(requests[0])
            await model.complete(requests[2])
            with pytest.raises(ModelBusy, match="later"):
                await model.complete(requests[3])
            with pytest.raises(ModelError, match="has no line left for request 4"):
                await model.complete(requests[4])
            return replies

    first, weather, submit = asyncio.run(main())
    assert isinstance(first, Reply)
    assert isinstance(weather, Reply)
    assert isinstance(submit, Reply)
    assert (first.text, weather.text) == ("first", "rain")
    assert submit.calls == (ToolCall(id="call_0", name="submit", arguments='{"p": 0.5}'),)
    assert (submit.finish, submit.tokens.input) == ("tool", 5)


@pytest.mark.parametrize("line", ["no json", '{"error": "explode"}', '{"nonsense": 1}', "[1]", '{"calls": [{}]}'])
def test_invalid_script_error_names_the_line(tmp_path: Path, line: str):
    script = tmp_path / "script.jsonl"
    script.write_text('{"text": "fine"}\n\n' + line)
    with pytest.raises(InputError, match="row 3: not a line of a script"):
        ScriptedModel.from_file(script)
    with pytest.raises(InputError, match="cannot be read"):
        ScriptedModel.from_file(tmp_path / "none.jsonl")


def test_scripted_model_with_function_and_with_cues():
    async def main() -> None:
        by_function = ScriptedModel(lambda request: request.messages[-1].text.upper())
        assert (await by_function.complete(Request(model="scripted:x", messages=(UserMessage(text="a"),)))).text == "A"
        by_cue = ScriptedModel([ScriptCue(when="a", say=ModelError("cue"))])
        with pytest.raises(ModelError, match="cue"):
            await by_cue.complete(Request(model="scripted:x", messages=(UserMessage(text="a"),)))

    asyncio.run(main())


def test_knowledge_cutoff_uses_the_later_date():
    # Two sources differ, and the later date is the safe one.
    assert knowledge_cutoff("openai:gpt-5.4-2026-03-05") == date(2025, 8, 31)
    assert knowledge_cutoff("openrouter:openai/gpt-6-sol") == date(2026, 4, 20)
    assert knowledge_cutoff("openai:never-heard-of") is None


def test_knowledge_cutoff_check_warns_or_raises():
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
