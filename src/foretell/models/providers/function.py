"""A plain Python function as a model: for models that foretell does not know, for experiments and for tests.

The first parameter decides what the function receives: the prompt as text (annotated `str`, or named `prompt` or
`text`), the whole `Request` (annotated so, or named `request`), or otherwise the messages. The text ends with the form
of the answer, so that it can be passed on to any language model. The function may be `async`. It returns text, a
dictionary (JSON, or the arguments of a tool) or a `Reply`. An object with a method `complete`, which takes the
`Request`, works the same way.

The model is journalled, limited and budgeted like any other. It is free unless it has an attribute `price`. A model
with a price should return a `Reply` with the tokens it used, or it is charged the most that the call can cost.
"""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from foretell.models.model import Model, ModelError, Reply, Request, ToolCall
from foretell.models.provider import Provider, ProviderClient
from foretell.models.providers.api_format import counted
from foretell.models.structured_output import UnusableReply, read_object
from foretell.models.token_price import TokenPrice
from foretell.own_objects import find_own, name_object, own_object
from foretell.plugins import signature_of, takes_arguments
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError, WrongValue

ModelFunction = Callable[[Any], Any]
TOOL = "tool"
"""The field of an answer that names the tool to call."""
OTHER_FORMS = (TOOL, "name", "action", "actions")
"""Fields of a dictionary that is more than the arguments of a tool; the forecaster reads it."""


def model_name(model: "str | ModelFunction | Model", name: str | None = None) -> str:
    """Return the name under which a model can be used in this process; that of a function is `python:NAME`.

    Replies are journalled under this name, so a changed function is asked again; see `name_object`.
    """
    if isinstance(model, str):
        return model
    if not callable(model) and not hasattr(model, "complete"):
        raise InputError(f"{model!r} is not a model", hint="give provider:name, or a function of the prompt")
    _client(model)  # Raises now instead of in every trial.
    return name_object("models", model, name)


class FunctionModel:
    """Calls a function, or the method `complete` of an object. Unless it is `async`, it runs in threads."""

    def __init__(self, function: ModelFunction, *, wants: str = "", close: Callable[[], Any] | None = None) -> None:
        self._function = function
        self._wants = wants or _wanted_argument(function)
        self._close = close
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - whether the call of an object is async
        )

    async def complete(self, request: Request) -> Reply:
        """The function's return value as a reply; its exceptions count as failures of the model."""
        argument: Any = request.messages
        if self._wants == "text":
            argument = "\n\n".join(
                filter(None, (*(message.text for message in request.messages), _answer_form(request)))
            )
        elif self._wants == "request":
            argument = request
        try:
            result = self._function(argument) if self._is_async else await asyncio.to_thread(self._function, argument)
            if inspect.isawaitable(result):
                result = await result
        except Exception as error:
            if isinstance(error, ModelError | InputError) and not isinstance(error, WrongValue):
                raise
            raise ModelError(f"{request.model}: {type(error).__name__}: {error}") from error
        return _reply(result, request)

    async def close(self) -> None:
        """Close what the object holds open, if anything."""
        closed = None if self._close is None else self._close()
        if inspect.isawaitable(closed):
            await closed


def _wanted_argument(function: ModelFunction) -> str:
    try:
        parameters = list(signature_of(function).parameters.values())
    except (TypeError, ValueError):
        return "text"
    if not takes_arguments(function, 1):
        raise InputError(f"the function {function!r} cannot be a model", hint="it takes the prompt or the messages")
    first = parameters[0]
    written: Any = first.annotation
    if not isinstance(written, str):
        written = getattr(written, "__forward_arg__", getattr(written, "__name__", ""))
    kind = written.rpartition(".")[2]
    if kind == "str" or first.name in ("prompt", "text"):
        return "text"
    return "request" if kind == "Request" or first.name == "request" else "messages"


def _reply(result: Any, request: Request) -> Reply:
    reply = _result_as_reply(result, request)
    tokens = reply.tokens
    return counted(
        request,
        reply,
        input_tokens=tokens.input or None,
        output_tokens=tokens.output or None,
        cached=tokens.cached,
        stored=tokens.stored,
        reasoning=tokens.reasoning,
        odd=tokens.estimated,
    )


def _result_as_reply(result: Any, request: Request) -> Reply:
    if isinstance(result, Reply):
        return replace(result)  # The function may return the same one again.
    if not isinstance(result, str | Mapping):
        raise ModelError(f"{request.model} returned {type(result).__name__}, not text, a dictionary or a Reply")
    fields = _object_in(result) if isinstance(result, str) else dict(cast("Mapping[str, Any]", plain_data(result)))
    tool = _tool_in(fields, request, named=isinstance(result, str))
    if tool is None:
        text = result if isinstance(result, str) else json.dumps(fields, ensure_ascii=False)
        return Reply(text=text, model=request.model)
    arguments = json.dumps({name: value for name, value in fields.items() if name != TOOL}, ensure_ascii=False)
    call = ToolCall(id=f"call_{len(request.messages)}", name=tool, arguments=arguments)
    return Reply(calls=(call,), finish="tool", model=request.model)


def _object_in(text: str) -> dict[str, Any]:
    try:
        return read_object(text)
    except UnusableReply:
        return {}


def _tool_in(fields: Mapping[str, Any], request: Request, *, named: bool) -> str | None:
    """Return the tool that an answer calls: the one it names, else the demanded one, else the last, which answers.

    With `named`, only one that it names.
    """
    if fields.get(TOOL) in [tool.name for tool in request.tools]:
        return fields[TOOL]
    if named or not request.tools or any(name in fields for name in OTHER_FORMS):
        return None
    return request.tools[-1].name if request.force in (None, "*") else request.force


def _answer_form(request: Request) -> str:
    """Return the form of the answer as text, for a function that sees neither tools nor schema; "" if it is free."""
    if request.schema is not None:
        return f"Answer with one JSON object of this schema:\n{json.dumps(request.schema, ensure_ascii=False)}"
    if not request.tools:
        return ""
    offered = [tool for tool in request.tools if request.force in (None, "*", tool.name)]
    schemas = [f"{tool.name}: {tool.description} {json.dumps(tool.parameters, ensure_ascii=False)}" for tool in offered]
    head = f"Call a tool with one JSON object: its name as `{TOOL}`, and its arguments. The schemas of the arguments:"
    return "\n".join((head, *schemas))


def _client(model: "ModelFunction | Model") -> ProviderClient:
    if not hasattr(model, "complete"):
        return FunctionModel(cast("ModelFunction", model))
    return FunctionModel(cast("Model", model).complete, wants="request", close=getattr(model, "close", None))


def _price(model: Any) -> TokenPrice:
    return getattr(model, "price", None) or TokenPrice(input=0.0, output=0.0)


def function_provider(name: str, plugin: "ModelFunction | Mapping[str, Any] | Model") -> Provider:
    """Wraps a function, a model, or several of them by name as a provider."""
    if not isinstance(plugin, Mapping):
        if not callable(plugin) and not hasattr(plugin, "complete"):
            raise InputError(f"the plugin of the model {name!r} is not a model", hint="see docs/plugins.md")
        return Provider(open=lambda config: _client(plugin), form=name, price=lambda model: _price(plugin))
    models = cast("Mapping[str, ModelFunction | Model]", plugin)

    def chosen(model: str) -> "ModelFunction | Model":
        if model not in models:
            hint = f"there are {', '.join(f'{name}:{model_id}' for model_id in models)}"
            raise InputError(f"there is no model {name}:{model}", hint=hint)
        return models[model]

    return Provider(
        open=lambda config: _client(chosen(config.name.name)),
        form=f"{name}:NAME",
        per_model=True,
        price=lambda model: _price(chosen(model)),
    )


PYTHON = Provider(
    open=lambda config: _client(own_object("models", config.name.name)),
    form="python:NAME",
    per_model=True,
    price=lambda name: _price(find_own("models", name)),
)
"""Functions passed to `foretell.ask(..., model=function)` and similar calls."""
