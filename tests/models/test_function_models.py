"""Plain functions as models: their arguments, return values, names, journal entries and prices."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from foretell import plugins
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.model import (
    BudgetExceeded,
    Message,
    ModelError,
    Reply,
    Request,
    SystemMessage,
    TokenCount,
    ToolSpec,
    UserMessage,
)
from foretell.models.names import ModelName
from foretell.models.providers.function import model_name
from foretell.models.router import ModelRouter
from foretell.models.token_price import TokenPrice
from foretell.questions.errors import InputError

MESSAGES = (SystemMessage(text="Be brief."), UserMessage(text="Rain?"))
SUBMIT = ToolSpec(name="submit", description="", parameters={})
LOOK = ToolSpec(name="look", description="Look it up.", parameters={})


def ask(name: str, *, router: dict[str, Any] | None = None, **fields: Any) -> Reply:
    async def main() -> Reply:
        async with ModelRouter({}, **(router or {})) as exchange:
            exchange.check([name])
            return await exchange.complete(Request(model=name, messages=MESSAGES, **fields))

    return asyncio.run(main())


def by_text(prompt: str) -> str:
    return prompt.replace("\n\n", "|")


def by_messages(messages: Sequence[Message]) -> str:
    return messages[-1].text


async def by_request(request: Request) -> Reply:
    return Reply(text=request.model, tokens=TokenCount(input=3))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (by_text, "Be brief.|Rain?"),
        (by_messages, "Rain?"),
        (lambda text: text[:2], "Be"),
        (lambda m: m[0].text, "Be brief."),
    ],
)
def test_function_receives_the_argument_its_parameter_names(function: Callable[[Any], Any], text: str) -> None:
    assert ask(model_name(function)).text == text


def test_an_async_function_of_the_request_returns_a_reply() -> None:
    name = model_name(by_request)
    assert (ask(name).text, ask(name).tokens.input) == (name, 3)


def test_tokens_that_a_function_does_not_state_are_estimates() -> None:
    reply = Reply(text="Rain", tokens=TokenCount(input=30, output=2))
    assert ask(model_name(lambda request: reply)).tokens == TokenCount(input=30, output=2)
    for result in ("Rain", Reply(text="Rain"), Reply(text="Rain " * 99, tokens=TokenCount(input=30, output=2))):
        tokens = ask(model_name(lambda request, result=result: result)).tokens
        assert tokens.estimated
        assert tokens.input > 0
        assert tokens.output > 1


class Oracle:
    closed = False

    def complete(self, request: Request) -> str:
        return request.messages[-1].text

    def close(self) -> None:
        self.closed = True


def test_complete_method_may_be_synchronous_and_return_text() -> None:
    oracle = Oracle()
    assert ask(model_name(oracle)).text == "Rain?"
    assert oracle.closed


def test_function_without_parameters_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be a model"):
        model_name(lambda: "0.4")


def test_dictionary_becomes_json_or_the_forced_call() -> None:
    name = model_name(lambda prompt: {"p": 0.5})
    assert ask(name).text == '{"p": 0.5}'
    for force in ("submit", "*"):
        reply = ask(name, tools=(SUBMIT,), force=force)
        assert [(call.name, call.arguments) for call in reply.calls] == [("submit", '{"p": 0.5}')]
        assert reply.finish == "tool"
    named = model_name(lambda prompt: {"tool": "look", "p": 0.5})
    for model, tool in ((name, "submit"), (named, "look")):
        (call,) = ask(model, tools=(LOOK, SUBMIT)).calls
        assert (call.name, call.arguments) == (tool, '{"p": 0.5}')


def test_text_ends_with_the_form_of_the_answer() -> None:
    name = model_name(lambda prompt: prompt)
    assert ask(name, schema={"type": "object"}).text.endswith('of this schema:\n{"type": "object"}')
    text = ask(name, tools=(LOOK, SUBMIT)).text
    assert "its name as `tool`" in text
    assert text.endswith("look: Look it up. {}\nsubmit:  {}")
    assert "look:" not in ask(name, tools=(LOOK, SUBMIT), force="submit").text


def test_exceptions_in_a_function_are_model_errors() -> None:
    def broken(prompt: str) -> str:
        raise KeyError("oops")

    with pytest.raises(ModelError, match="KeyError: 'oops'"):
        ask(model_name(broken))
    with pytest.raises(ModelError, match="returned int"):
        ask(model_name(lambda prompt: 1))
    with pytest.raises(InputError, match="cannot be a model"):
        ask(model_name(lambda: "x"))
    with pytest.raises(InputError, match="is not a model"):
        model_name(7)


def test_function_replies_are_journalled_by_name(tmp_path: Path) -> None:
    prompts: list[str] = []

    def counting(prompt: str) -> str:
        prompts.append(prompt)
        return "yes"

    name = model_name(counting, name="counting")
    assert name == "python:counting"
    for _ in range(2):
        journal = Journal(tmp_path / "journal.db")
        assert ask(name, router={"journal": journal}).text == "yes"
        journal.close()
    assert len(prompts) == 1


def test_different_functions_have_different_names() -> None:
    assert model_name(by_text) == model_name(by_text)
    assert model_name(lambda prompt: "a") != model_name(lambda prompt: "a"), "a lambda is new every time"
    assert model_name("openai:x") == "openai:x"
    with pytest.raises(InputError, match="a function of another program"):
        ask("python:os.system")


def test_function_is_free_unless_it_has_a_price() -> None:
    def priced(request: Request) -> Reply:
        return Reply(text="x", tokens=TokenCount(input=1_000_000, output=1))

    async def spent(name: str, dollars: float) -> float:
        async with ModelRouter({}) as exchange:
            budget = Budget("run", dollars=dollars)
            await exchange.within(budget).complete(Request(model=name, messages=MESSAGES))
            return budget.billed.dollars

    assert asyncio.run(spent(model_name(priced, name="free"), 0.0)) == 0
    priced.price = TokenPrice(input=2.0, output=0.0)
    assert asyncio.run(spent(model_name(priced, name="paid"), 1.0)) == 2.0
    with pytest.raises(BudgetExceeded):
        asyncio.run(spent(model_name(priced, name="paid"), 0.0))


def test_functions_are_registered_as_providers() -> None:
    plugins.register("models", "echo", by_messages)
    plugins.register("models", "house", {"small": by_messages, "large": by_text})
    try:
        assert ask("echo").text == ask("echo:any").text == ask("house:small").text == "Rain?"
        assert ModelName.read("house:large").place == "house:large"
        with pytest.raises(InputError, match="there are house:small, house:large"):
            ask("house:medium")
        with pytest.raises(InputError, match="echo, house:NAME"):
            ModelName.read("nobody:x")
    finally:
        plugins.unregister("models", "echo")
        plugins.unregister("models", "house")
