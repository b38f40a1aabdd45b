"""The list of models, the check of a model against a strict server, and newer tables of facts."""

import asyncio
import json
from contextlib import closing
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner
from rich.console import Console

from fakes.models import BackgroundModels
from foretell import ask
from foretell.cli.main import cli
from foretell.models.check import unknown_models
from foretell.models.facts import facts_of, known_facts, use_facts_from
from foretell.models.journal import Journal
from foretell.models.prices import PriceList
from foretell.operations import models as operations
from foretell.operations.model_check import check_model
from foretell.operations.models import ModelsResult, list_models, show_models
from foretell.operations.requests.setup import ModelsCheckRequest, ModelsListRequest
from foretell.questions.errors import InputError
from foretell.runs.settings import CHECKED_MODELS, KNOWN_MODELS, Settings, load_settings
from models import strict_servers as strict


@pytest.fixture
def home(tmp_path: Path):
    use_facts_from(tmp_path / CHECKED_MODELS, tmp_path / KNOWN_MODELS)
    yield tmp_path
    use_facts_from()


def test_another_home_reads_its_own_tables_and_not_the_shipped_one_again(home: Path):
    shipped = known_facts()[-1]
    use_facts_from(home / "another" / KNOWN_MODELS)
    assert known_facts()[-1] is shipped


def test_models_with_a_key_come_first_and_missing_keys_are_named(tmp_path: Path):
    settings = Settings(home=tmp_path, keys={"ANTHROPIC_API_KEY": "k"})
    result = list_models(ModelsListRequest(), settings)
    providers = [row["model"].partition(":")[0] for row in result.rows()]
    assert providers[0] == "anthropic"
    assert {"openai", "google", "xai", "deepseek", "mistral"} <= set(providers)
    assert result.missing_keys["openai"] == "OPENAI_API_KEY"
    assert "k" not in result.missing_keys.values()
    row = next(row for row in result.rows() if row["model"] == "openai:gpt-6-sol")
    assert (row["input"], row["cached"], row["output"], row["cutoff"]) == (2, 0.2, 10, "2026-04-20")
    usable = list_models(ModelsListRequest(usable=True), settings)
    assert {row["model"].partition(":")[0] for row in usable.rows()} == {"anthropic"}
    printed = StringIO()
    nothing = list_models(ModelsListRequest(usable=True), Settings(home=tmp_path))
    nothing.print(Console(file=printed, width=200))
    assert "such as OPENAI_API_KEY" in printed.getvalue()
    assert any("openai: set OPENAI_API_KEY" in note for note in nothing.warnings)


@pytest.mark.parametrize(("kind", "force"), [("lmstudio", "required"), ("ollama", "required"), ("llama", "named")])
def test_capabilities_of_a_server_are_checked_once_and_stored(home: Path, kind: str, force: str):
    class Talkative(strict.Script):
        """Answers in words where it has no tools."""

        def step(self, results, tools, forced):
            if forced and forced != "*":
                return forced, {"city": "Oslo"}
            return "look_up", {"city": "Oslo"}

    def handler(script):
        answer = strict.chat(script, kind)

        def post(body):
            if not body.get("tools"):
                text = '{"city": "Oslo"}' if "response_format" in body else "yes"
                usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
                choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
                return {"model": body["model"], "choices": [choice], "usage": usage}
            return answer(body)

        return post

    async def main():
        script = Talkative()
        runner, address = await strict.serve(handler(script), script)
        try:
            return await check_model(ModelsCheckRequest(model=f"compat:m@{address}"), Settings(home=home))
        finally:
            await runner.cleanup()

    result = asyncio.run(main())
    checks = dict(result.checks)
    assert result.ok
    assert checks["answers"] == checks["goes on after a tool"] == checks["answers by a JSON schema"] == "yes"
    assert facts_of("m").force == force
    assert result.dollars is None, "nobody knows what a server costs"


def test_an_unreachable_server_is_reported_and_nothing_is_stored(home: Path):
    result = asyncio.run(check_model(ModelsCheckRequest(model="compat:m@http://127.0.0.1:9/v1"), Settings(home=home)))
    assert not result.ok
    assert "no connection" in result.checks["answers"]
    assert not (home / CHECKED_MODELS).exists()


def test_newer_facts_take_precedence_and_bad_ones_are_refused(home: Path, tmp_path: Path):
    newer = tmp_path / "newer.toml"
    newer.write_text('date = 2027-01-01\n[[model]]\npattern = "gpt-7"\nname = "openai:gpt-7"\nprice = [1, 0.1, 4]\n')
    result = asyncio.run(show_models(ModelsListRequest(update=str(newer), find="gpt-7"), Settings(home=home)))
    assert [row["model"] for row in result.models] == ["openai:gpt-7"]
    assert result.warnings[0].startswith("1 entries as of 2027-01-01 installed in")
    assert facts_of("gpt-7-large").price == (1, 0.1, 4)
    assert facts_of("gpt-6-sol").price == (2, 0.2, 10)
    for text, problem in (
        ("[[model]]\npattern = 'x'\n", "does not say its date"),
        ("date = 2027-01-01\n[[model]]\npattern = '('\n", "cannot be used"),
        ("date = 2027-01-01\n[[model]]\npatern = 'x'\n", "no field 'patern'"),
        ("date = 2027-01-01\n", "the table has no models"),
        ("not toml", "cannot be read"),
    ):
        newer.write_text(text)
        with pytest.raises(InputError, match=problem):
            asyncio.run(show_models(ModelsListRequest(update=str(newer)), Settings(home=home)))
    assert facts_of("gpt-7-large").price == (1, 0.1, 4)


def test_newer_facts_can_be_downloaded(home: Path, monkeypatch: pytest.MonkeyPatch):
    table = 'date = 2027-01-01\n[[model]]\npattern = "gpt-7"\nname = "openai:gpt-7"\nprice = [1, 0.1, 4]\n'

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/away":
            raise web.HTTPFound("http://203.0.113.1/models.toml")
        return web.Response(text=table, status=404 if request.path == "/gone" else 200)

    async def update(path: str) -> ModelsResult:
        app = web.Application()
        app.router.add_get("/{path}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            return await show_models(ModelsListRequest(update=f"http://127.0.0.1:{port}{path}"), Settings(home=home))
        finally:
            await runner.cleanup()

    assert "2027-01-01" in asyncio.run(update("/models.toml")).dates
    assert facts_of("gpt-7-large").price == (1, 0.1, 4)
    for path, problem in (("/gone", "404"), ("/away", "only downloaded over https")):
        with pytest.raises(InputError, match=problem):
            asyncio.run(update(path))
    with pytest.raises(InputError, match="only downloaded over https"):
        asyncio.run(show_models(ModelsListRequest(update="http://203.0.113.1/m.toml"), Settings(home=home)))
    monkeypatch.setattr(operations, "LARGEST_TABLE", 20)
    with pytest.raises(InputError, match="cannot be read"):
        asyncio.run(update("/models.toml"))
    assert (home / KNOWN_MODELS).read_text() == table


def test_the_built_in_table_can_be_read():
    assert facts_of("claude-opus-5-5").force == "no"
    assert facts_of("gemini-2.5-flash").effort("none") == "none"
    assert facts_of("gpt-6-astra").effort("none") == "low"


def test_an_unknown_model_is_checked_once_before_use(home: Path, caplog: pytest.LogCaptureFixture):
    settings = Settings(home=home, keys={"OPENAI_API_KEY": "k"}, check_models=True)
    with BackgroundModels() as fake:
        model = f"compat:unheard-of@{fake.url}/v1"

        def calls_for(question: str, **fields: Any) -> int:
            before = sum(fake.stats()["billed"].values())
            done = replace(settings, **fields)
            chosen = {"prices.agent": "1/2", "options.steps": 1}
            result = ask(question, model=model, set=chosen, trials=1, budget=1.0, settings=done)
            assert result.p
            return sum(fake.stats()["billed"].values()) - before

        without = calls_for("Will it snow in Oslo?", check_models=False)
        assert not (home / CHECKED_MODELS).exists()
        first = calls_for("Will it rain in Oslo?")
        assert without < first <= without + 4
        assert "unheard-of" in caplog.text
        assert "check_models = false in settings.toml" in caplog.text
        assert facts_of("unheard-of") is not facts_of("never-named")
        assert calls_for("Will it hail in Oslo?") == without
    with closing(Journal(settings.journal)) as journal:
        assert journal.spent()[model].calls == 2 * without + first
        billed = journal.spent()[model].dollars
    stdout = CliRunner(env={"FORETELL_HOME": str(home)}).invoke(cli, ["runs", "--json"]).stdout
    # The cost of the check is included in what is shown as billed.
    assert sum(run["billed"] for run in json.loads(stdout)["runs"]) == pytest.approx(billed)
    known = [*unknown_models(["openai:gpt-6-sol", f"compat:else@{fake.url}/v1", "scripted:x"], PriceList())]
    assert known == []
    (home / "settings.toml").write_text("check_models = true")
    assert load_settings({"FORETELL_HOME": str(home)}).check_models
