"""A function or object of a program as a tool of an agent, behind the leakage filter like every tool.

The name, the docstring and the annotated parameters of a function are what the model sees. A parameter called `as_of`
gets the date of the forecast, and the model does not see it. In a backtest only dated material can pass the filter, so
a function whose annotations do not promise it is refused.
"""

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError

from foretell.data.untrusted import for_prompt
from foretell.frozen import frozen
from foretell.models.model import ToolSpec
from foretell.own_objects import name_object, own_object
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.tools.tool import PREFIXES, SUBMIT, SourceItem, Tool, ToolFailed, ToolMaterial

ToolFunction = Callable[..., Any] | Callable[..., Awaitable[Any]]
"""A function with annotated parameters. It may be `async`. It returns text, JSON data, a `SourceItem` or several."""
AnyTool = ToolFunction | Tool
"""A function, or an object with `spec` and `async use(arguments, as_of)`."""
AS_OF = "as_of"
"""The parameter that gets the date of the forecast."""
RESERVED = frozenset({*PREFIXES, SUBMIT, "conclude"})
"""Names of tools that the model already has."""
_NAME = pattern(r"[A-Za-z_]\w{0,63}", re.ASCII)
_SECTION = pattern(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?):\s*$", re.MULTILINE)
_ARGUMENT = pattern(r"^\s+(\w+)(?:\s*\([^)]*\))?:\s*(.+(?:\n\s{6,}.+)*)", re.MULTILINE)


def tool_name(tool: AnyTool) -> str:
    """Return the name of a tool in the settings of a run, `python:NAME`. Raises `InputError` if it cannot be a tool."""
    as_tool(tool)
    return name_object("tools", tool)


def own_tools(names: Sequence[str], *, backtest: bool) -> dict[str, Tool]:
    """Return the tools that a program gave these names.

    Raises `InputError` if one belongs to another program, if two have the same name for the model, or if a backtest
    could not use what one returns.
    """
    tools = {name: as_tool(own_object("tools", name)) for name in names}
    seen = set[str]()
    for tool in tools.values():
        shown = tool.spec.name
        if shown in seen:
            raise InputError(f"two tools are called {shown!r}", column="tools", hint="rename one of the functions")
        seen.add(shown)
        if backtest and isinstance(tool, FunctionTool) and not tool.dated:
            problem = f"the tool {shown!r} does not say when what it returns was published"
            hint = "in a backtest, undated material is withheld: return foretell.types.SourceItem with `published`, and"
            raise InputError(problem, column="tools", hint=f"{hint} annotate the function so")
    return tools


def as_tool(tool: Any) -> Tool:
    """Return a function or object as a tool. Raises `InputError` if it cannot be one."""
    if hasattr(tool, "use") and hasattr(tool, "spec"):
        name = cast("Tool", tool).spec.name
    elif callable(tool):
        tool = FunctionTool.of(tool)
        name = tool.spec.name
    else:
        hint = "give a function, or an object with `spec` and `async use(arguments, as_of)`"
        raise InputError(f"{tool!r} is not a tool", column="tools", hint=hint)
    if name in RESERVED or not _NAME.fullmatch(name):
        problem = f"{name!r} is the name of a built-in tool" if name in RESERVED else f"{name!r} cannot name a tool"
        raise InputError(problem, column="tools", hint="define it with `def` and a name of its own")
    return cast("Tool", tool)


@frozen
class FunctionTool:
    """Calls a function with the arguments of the model, checked. Unless it is `async`, it runs in a thread."""

    function: Callable[..., Any]
    spec: ToolSpec
    arguments: type[BaseModel]
    takes_as_of: bool
    dated: bool
    """Whether its annotations promise dated material."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "FunctionTool":
        """Read name, description and arguments of a function."""
        name = getattr(function, "__name__", type(function).__name__)
        called = function if inspect.isroutine(function) else function.__call__
        try:
            parameters = inspect.signature(function).parameters
            types = get_type_hints(called, include_extras=True)
        except (NameError, TypeError, ValueError) as error:
            raise InputError(f"the signature of the tool {name!r} cannot be read: {error}", column="tools") from None
        if odd := [each.name for each in parameters.values() if each.kind not in NAMED]:
            raise InputError(f"the tool {name!r} takes *{odd[0]}", column="tools", hint="name its parameters")
        summary, described = _described(inspect.getdoc(function) or "")
        shown: dict[str, Any] = {}
        for parameter in parameters.values():
            if parameter.name != AS_OF:
                default = ... if parameter.default is inspect.Parameter.empty else parameter.default
                about = Field(default, description=described.get(parameter.name))
                shown[parameter.name] = (types.get(parameter.name, Any), about)
        try:
            arguments = create_model(name, __config__=ConfigDict(extra="forbid"), **shown)
            schema = arguments.model_json_schema()
        except (PydanticUserError, TypeError, NameError) as error:
            problem = f"the parameters of the tool {name!r} cannot be described to a model: {error}"
            hint = "annotate them with types of JSON, such as str, float or list[str]"
            raise InputError(problem.partition("\n")[0], column="tools", hint=hint) from None
        schema = {key: value for key, value in schema.items() if key not in ("title", "description")}
        for each in schema.get("properties", {}).values():
            each.pop("title", None)
        return cls(
            function=function,
            spec=ToolSpec(name=name, description=summary or name.replace("_", " "), parameters=schema),
            arguments=arguments,
            takes_as_of=AS_OF in parameters,
            dated=_promises_dates(types.get("return")),
        )

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return what the function returns as material. If it raises, the model is told that the call failed."""
        try:
            checked = self.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            wrong = error.errors()[0]
            place = ".".join(map(str, wrong["loc"])) or "arguments"
            raise ToolFailed(f"The argument {place!r} cannot be used: {wrong['msg']}.") from None
        values = {name: getattr(checked, name) for name in self.arguments.model_fields}
        if self.takes_as_of:
            values[AS_OF] = as_of
        try:
            if inspect.iscoroutinefunction(self.function):
                result = await self.function(**values)
            else:
                result = await asyncio.to_thread(self.function, **values)
                result = await result if inspect.isawaitable(result) else result
        except ToolFailed:
            raise
        except Exception as error:
            raise ToolFailed(f"{self.spec.name} failed: {type(error).__name__}: {error}") from error
        return self._material(result, arguments)

    def _material(self, result: Any, arguments: Mapping[str, Any]) -> ToolMaterial:
        heading = f"{self.spec.name}:"
        if isinstance(result, ToolMaterial):
            return replace(result, items=tuple(_dated(item, self.spec.name) for item in result.items))
        if result is None:
            return ToolMaterial(heading=heading, items=())
        items = [result] if isinstance(result, SourceItem) else result
        if isinstance(items, list | tuple) and all(isinstance(item, SourceItem) for item in cast("list[Any]", items)):
            found = cast("list[SourceItem]", items)
            return ToolMaterial(heading=heading, items=tuple(_dated(item, self.spec.name) for item in found))
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
        about = ", ".join(f"{name}={value}" for name, value in arguments.items())
        title = for_prompt(f"{self.spec.name}({about[:200]})")
        return ToolMaterial(heading=heading, items=(SourceItem(title=title, text=text),))


NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _dated(item: SourceItem, tool: str) -> SourceItem:
    """Return an item with its dates in UTC. A date that is stated counts as published."""
    try:
        moments = {
            name: None if getattr(item, name) is None else instant(getattr(item, name))
            for name in ("published", "captured")
        }
    except ValueError as error:
        raise InputError(f"the tool {tool!r} returned an item with a wrong date: {error}") from None
    dating = "published" if item.dating == "none" and moments["published"] is not None else item.dating
    return replace(item, dating=dating, **moments)


def _promises_dates(returned: Any) -> bool:
    """Whether an annotation is `SourceItem`, `ToolMaterial`, or a list, tuple or choice with one of them."""
    return returned in (SourceItem, ToolMaterial) or any(map(_promises_dates, get_args(returned)))


def _described(docstring: str) -> tuple[str, dict[str, str]]:
    r"""Return the text of a docstring above its sections, and the descriptions of its arguments.

    >>> _described("Look up a price.\n\nArgs:\n    name: The good,\n        in English.\n    day: When.")
    ('Look up a price.', {'name': 'The good, in English.', 'day': 'When.'})
    """
    first = _SECTION.search(docstring)
    if first is None:
        return docstring.strip(), {}
    described: dict[str, str] = {}
    marks = [*_SECTION.finditer(docstring)]
    for number, mark in enumerate(marks):
        end = marks[number + 1].start() if number + 1 < len(marks) else len(docstring)
        if mark[1] in ("Args", "Arguments", "Parameters"):
            body = docstring[mark.end() : end]
            described |= {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(body)}
    return docstring[: first.start()].strip(), described
