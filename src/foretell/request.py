"""The base class of all requests: typed fields with a description and a default, validated once for every interface.

A field is declared with `setting`. The command line derives its options from it, the web application its form, MCP its
schema and Python its signature, so adding an option means adding one field.
"""

import json
import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Self, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from foretell.patterns import pattern
from foretell.plugins import NO_CHOICE, load_object
from foretell.questions.errors import InputError, known_names, plain_problem, validator_error


class OperationRequest(BaseModel):
    """A user's request to an operation. Frozen; unknown fields are rejected."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        str_strip_whitespace=True,
        allow_inf_nan=False,
        defer_build=True,  # A module holds the requests of several commands, and only one of them is read.
    )

    ONLY_WITH: ClassVar[Mapping[str, str]] = {}
    """Condition → the fields that have no effect unless it holds. Setting one of them without it is an error, so that
    nothing that a user sets is silently ignored. A condition is the name of another field or "field=value", or
    several of them separated by " or "."""

    @model_validator(mode="after")
    def _refuse_unused(self) -> Self:
        known = type(self).model_fields
        for condition, names in self.ONLY_WITH.items():
            unused = [] if self._holds(condition) else [name for name in names.split() if self._is_set(name)]
            if unused:
                needed = condition
                for part in condition.split(" or "):
                    other, equals, value = part.partition("=")
                    positional = hints(known[other]).get("argument")
                    spelled = other.upper() if positional else flags(other, known[other])[-1]
                    needed = needed.replace(part, f"{spelled}{equals and ' '}{value}")
                column = flags(unused[0], known[unused[0]])[-1]
                raise InputError(f"has no effect without {needed}", column=column, hint="add that, or leave this out")
        return self

    def refuse_set(self, names: Sequence[str], problem: str) -> None:
        """Raise an `InputError` with this problem for the first of these fields that the user has set."""
        for name in names:
            if self._is_set(name):
                column = flags(name, type(self).model_fields[name])[-1]
                raise InputError(problem, column=column, hint="leave it out")

    def _is_set(self, name: str) -> bool:
        """Whether the user set a field, to something other than its default and not through the environment."""
        info = type(self).model_fields[name]
        changed = name in self.model_fields_set and getattr(self, name) != info.get_default(call_default_factory=True)
        return changed and name not in environment_values(type(self))

    def _holds(self, condition: str) -> bool:
        for part in condition.split(" or "):
            name, equals, wanted = part.partition("=")
            value = getattr(self, name)
            if value == wanted if equals else value not in (None, False, (), "", {}):
                return True
        return False

    @model_validator(mode="before")
    @classmethod
    def _from_environment(cls, values: Any) -> Any:
        """Fill missing fields from their environment variables, and convert values that Python programs may pass."""
        if not isinstance(values, dict):
            return values
        passed = cast("dict[str, Any]", values)
        return {**environment_values(cls), **{name: cls._as_written(name, value) for name, value in passed.items()}}

    @classmethod
    def _as_written(cls, name: str, value: Any) -> Any:
        """Convert a date to text and a single string to a tuple of one, if the field expects that."""
        info = cls.model_fields.get(name)
        if info is not None and isinstance(value, date) and hints(info).get("metavar") == "DATE":
            return value.isoformat()
        if info is None:
            return value
        if isinstance(value, Path) and plain_type(info) is str:
            return str(value)
        if is_list(info) and isinstance(value, str | Path):
            value = (value,)
        if isinstance(value, list | tuple) and get_args(plain_type(info))[:1] == (str,):
            return tuple(str(part) if isinstance(part, Path) else part for part in cast("list[Any]", value))
        return value

    def changed(self, group: str) -> dict[str, Any]:
        """Return the fields of a group that differ from their default, by name, as a run spec has to state them."""
        fields = type(self).model_fields
        chosen = {name: getattr(self, name) for name, info in fields.items() if hints(info).get("group") == group}
        return {name: value for name, value in chosen.items() if value != fields[name].get_default()}

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Build a request from plain values; the first invalid value raises an `InputError` that names its field.

        Args:
            values: Field → value. None means the field's default.
        """
        present = {name: value for name, value in values.items() if value is not None}
        try:
            return cls.model_validate(present)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            if own := validator_error(errors):
                raise own from None
            first = errors[0]
            info = cls.model_fields.get(str(first["loc"][0])) if first["loc"] else None
            if info is not None and first["type"] != "missing" and get_origin(plain_type(info)) is Union:
                # Pydantic reports one error per type of the union, located under the type's name.
                reasons = [
                    UNION_WORDS.get(detail["type"]) or detail["msg"].removeprefix("Input should be ")
                    for detail in errors
                    if detail["loc"][0] == first["loc"][0]
                ]
                raise InputError(
                    f"should be {' or '.join(dict.fromkeys(reasons))}", column=str(first["loc"][0])
                ) from None
            column = ".".join(str(part) for part in first["loc"]) or None
            unknown = first["type"] == "extra_forbidden"
            hint = known_names(str(first["loc"][-1]), list(cls.model_fields)) if unknown else None
            problem = "there is no such option" if unknown else plain_problem(first)
            raise InputError(problem, column=column, hint=hint) from None

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], **fixed: Any) -> Self:
        """Build a request from the KEY=VALUE pairs of `--set`; a list is written with commas.

        Fields in `fixed` have their own options, so they are not keys. Raises InputError that names the key, and the
        nearest known key if there is no such key.

        >>> class Drawing(OperationRequest):
        ...     seed: int = setting(0, "Seed.")
        ...     series: tuple[str, ...] = setting((), "Series.")
        >>> Drawing.from_settings({"seed": "3", "series": "a,b"})
        Drawing(seed=3, series=('a', 'b'))
        >>> Drawing.from_settings({"sead": "3"})
        Traceback (most recent call last):
        foretell.questions.errors.InputError: --set sead: there is no such setting (did you mean seed?)
        """
        values, keys = dict(fixed), [name for name in cls.model_fields if name not in fixed]
        for name, value in settings.items():
            if name not in keys:
                hint = known_names(name, keys) if keys else "there are no settings here"
                raise InputError("there is no such setting", column=f"--set {name}", hint=hint)
            split = isinstance(value, str) and is_list(cls.model_fields[name])
            values[name] = tuple(part.strip() for part in value.split(",") if part.strip()) if split else value
        try:
            return cls.read(values)
        except InputError as error:
            name = (error.column or "").partition(".")[0]
            raise error.at(column=f"--set {name}") if name in keys else error from None


UNION_WORDS = {"path_type": "a path", "dict_type": "a mapping", "string_type": "text", "callable_type": "a function"}
"""What a value of a type is called, by pydantic's name of the problem."""


def split_section(changes: Mapping[str, Any], section: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split changed settings into the keys of a section, without their first part, and all others.

    >>> split_section({"watch.budget": 1, "trials": 3}, "watch")
    ({'budget': 1}, {'trials': 3})
    """
    if section in changes:
        raise InputError("is a section", column=f"--set {section}", hint=f"write {section}.KEY=VALUE")
    start = f"{section}."
    keys = {name.removeprefix(start): value for name, value in changes.items() if name.startswith(start)}
    return keys, {name: value for name, value in changes.items() if not name.startswith(start)}


def environment_values(request: type[OperationRequest]) -> dict[str, Any]:
    """Return the values that environment variables set, by field; a list field is split at commas.

    No model is the default, so `none` as the model is left out.
    """
    values: dict[str, Any] = {}
    for name, info in request.model_fields.items():
        text = os.environ.get(hints(info).get("env", ""), "").strip()
        if text and (name, text) != ("model", NO_CHOICE):
            values[name] = tuple(filter(None, text.split(","))) if is_list(info) else text
    return values


def is_list(info: FieldInfo) -> bool:
    """Whether a field is a list of any length."""
    annotation = plain_type(info)
    arguments = get_args(annotation)
    return get_origin(annotation) is list or (get_origin(annotation) is tuple and Ellipsis in arguments)


def plain_type(info: FieldInfo) -> Any:
    """Return the type of a field without None."""
    if get_origin(info.annotation) in (Union, UnionType):
        others = [arg for arg in get_args(info.annotation) if arg is not NoneType]
        return others[0] if len(others) == 1 else Union[tuple(others)]  # noqa: UP007 - built at run time
    return info.annotation


def setting(  # noqa: PLR0913 - one parameter per property of a field
    default: Any = PydanticUndefined,
    help: str = "",
    *,
    flag: str | None = None,
    argument: bool = False,
    metavar: str | None = None,
    env: str | None = None,
    group: str | None = None,
    alone: str | None = None,
    names: str | None = None,
    interface: str | None = None,
    **limits: Any,
) -> Any:
    """Declare a field of a request.

    Args:
        default: Its value if none is given; without a default the field is required.
        help: One sentence for users: option help, form label and schema description.
        flag: Spelling on the command line, such as "--closes" or "-f/--forecasts"; derived from the name if not given.
        argument: Whether it is a positional argument on the command line instead of an option.
        metavar: Placeholder for the value on the command line, such as DATE.
        env: Environment variable to use if no value is given, in every interface.
        group: Its group, such as "agent"; forms collapse groups, and `OperationRequest.changed` returns one of them.
        alone: The value of a flag that is given without a value.
        names: "module:attribute" of the allowed names; help and schemas list them.
        interface: "api" if only programs set it (Python, web and MCP), so that it is no option of the command.
        limits: Arguments of `pydantic.Field`: ge, le, gt, min_length, pattern, …
    """
    properties = {"flag": flag, "argument": argument, "metavar": metavar, "env": env, "group": group}
    properties |= {"alone": alone, "names": names, "interface": interface}
    shown: Any = {name: value for name, value in properties.items() if value}
    return Field(default, description=help, json_schema_extra={"hints": shown}, **limits)


def hints(field: FieldInfo) -> Mapping[str, Any]:
    """Return how to present a field: flag, argument, metavar, env, group, alone, names and interface."""
    extra = field.json_schema_extra
    return cast("Mapping[str, Any]", extra.get("hints", {})) if isinstance(extra, dict) else {}


def flags(name: str, info: FieldInfo) -> tuple[str, ...]:
    """Return the spellings of a field on the command line, the short form first.

    >>> flags("as_of", setting(None, "Ask as of then."))
    ('--as-of',)
    """
    spelled = hints(info).get("flag") or f"--{name.replace('_', '-')}"
    return tuple(spelled.split("/"))


def on_command_line(info: FieldInfo) -> bool:
    """Return whether a field is an option or argument of the command."""
    return hints(info).get("interface") != "api"


def title_of(name: str, info: FieldInfo) -> str:
    """Return the label of a field in forms.

    >>> title_of("as_of", setting(None, "Ask as of then."))
    'As of'
    """
    return info.title or name.replace("_", " ").capitalize()


QUOTED = r"""(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|"(?:[^"\\]|\\.)*\""""
"""Text in quotation marks, as Python writes it: what a user or a file says. It is never rewritten."""
COMMAND_OR_FLAG = pattern(
    rf"""{QUOTED} | \b(?:foretell|pip)\ [a-z][^;:,()]*
    | (?<![\w-])(?P<flag>--[a-z][a-z-]*|-[a-zA-Z](?![\w-]))
      (?P<value>
        \ [\w.:]+=[^\s;()]*[^\s;,().:]
        | \ (?=\S*[A-Z0-9_]|\S*[:./]\w|[a-z-]+(?:$|[;,)]|\ or\ ))[^\s;,()]*[^\s;,().:]
      )?""",
    re.VERBOSE,
)
"""Quoted text, a whole command, or a flag with its value if the next word is one: a placeholder, a name with a sign, or
the last."""


def name_fields(text: str, request: type[OperationRequest], *, titles: bool = False) -> str:
    """Write the flags in a text as the request's fields, as programs set them, or, with `titles`, as labels in forms.

    A whole command, such as `foretell doctor --repair`, and quoted text stay as they are.

    >>> class AskRequest(OperationRequest):
    ...     network: bool = setting(True, "Use the network.")
    ...     runs: tuple[str, ...] = setting((), "A run.", flag="-r/--run")
    ...     set: dict[str, str] = setting({}, "Settings.")
    ...     files: tuple[str, ...] = setting((), "Files.", argument=True, metavar="[FILE]...")
    >>> name_fields("--run needs the network, so not with --no-network", AskRequest)
    '`runs` needs the network, so not with `network=False`'
    >>> name_fields("give FILE, -r RUN or --set trials=3", AskRequest)
    'give `files`, `runs=[RUN]` or `set={"trials": 3}`'
    >>> name_fields("there is no run 'FILE --run x', so give FILE", AskRequest)
    "there is no run 'FILE --run x', so give `files`"
    >>> name_fields("--run needs the network, so not with --no-network", AskRequest, titles=True)
    '“Runs” needs the network, so not with “Network” set to no'
    """
    fields = request.model_fields
    known = {flag: name for name, info in fields.items() for flag in flags(name, info)}
    arguments = {word: name for name, info in fields.items() for word in _argument_words(name, info)}

    def respelled(match: re.Match[str]) -> str:
        flag, value = match["flag"], match["value"] or ""
        if flag is None or (len(flag) == len("-f") and flag not in known):
            return match[0]
        name, negated = field_of(flag, request)
        if titles:
            shown = (
                f"“{title_of(name, fields[name])}”{' set to no' if negated else ''}" if name in fields else f"`{name}`"
            )
            return shown + value
        info = fields.get(name)
        if negated or (info is not None and plain_type(info) is bool):
            return (f"`{name}=False`" if negated else f"`{name}`") + value
        return f"`{name}={as_python(value[1:], info)}`" if value else f"`{name}`"

    spelled = COMMAND_OR_FLAG.sub(respelled, text)
    if titles or not arguments:
        return spelled
    words = re.compile(rf"{QUOTED}|{COMMAND.pattern}|(?<![\w`=:./-])(?P<word>{'|'.join(arguments)})(?![\w`=:/])")
    return words.sub(lambda match: f"`{arguments[match['word']]}`" if match["word"] else match[0], spelled)


COMMAND = pattern(r"\b(?:foretell|pip) [a-z][^;:,()]*|`[^`]*`")
"""What is already as it should be: a whole command, or a field."""


def _argument_words(name: str, info: FieldInfo) -> tuple[str, ...]:
    """Return how texts name a positional argument: its placeholder, or one of those that it combines.

    >>> _argument_words("sources", setting((), argument=True, metavar="[RUN_OR_FILE]..."))
    ('RUN', 'FILE', 'RUN_OR_FILE')
    """
    if not hints(info).get("argument"):
        return ()
    shown = re.findall("[A-Z][A-Z_]+", hints(info).get("metavar", name.upper()))
    return tuple(dict.fromkeys([part for word in shown for part in word.split("_OR_")] + shown))


def as_python(text: str, info: FieldInfo | None) -> str:
    """Write the value of a flag as Python; what is in capitals stands for something else.

    >>> [as_python(text, None) for text in ("openai:NAME", "FILE", "0.5", "trials=3", "p=mine,yours")]
    ['"openai:NAME"', 'FILE', '0.5', '{"trials": 3}', '{"p": ["mine", "yours"]}']
    """
    if re.fullmatch(r"[A-Z][A-Z_]*|\d*\.?\d+", text):
        plain = text
    elif re.fullmatch("[a-zA-Z][^=]*=.*", text):
        key, _, value = text.partition("=")
        parts = [as_python(part, None) for part in value.split(",")]
        written = parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
        plain = f"{{{key if key.isupper() else json.dumps(key)}: {written}}}"
    else:
        plain = json.dumps(text, ensure_ascii=False)
    return f"[{plain}]" if info is not None and is_list(info) else plain


def field_of(flag: str, request: type[OperationRequest]) -> tuple[str, bool]:
    """Return the field that a flag sets, and whether the flag negates it, as --no-network does."""
    names = {spelled: name for name, info in request.model_fields.items() for spelled in flags(name, info)}
    positive = names.get(flag.replace("--no-", "--", 1)) if flag not in names else None
    return positive or names.get(flag, flag.lstrip("-").replace("-", "_")), positive is not None


@contextmanager
def errors_name_fields(
    request: type[OperationRequest] = OperationRequest,
    *,
    titles: bool = False,
    rename: Callable[[str, type[OperationRequest]], str] | None = None,
) -> Generator[None]:
    """Name the fields of a request in the errors raised inside, for callers that do not type commands.

    Errors name options as the command line spells them, because flags are easy to recognise in a text. With `titles`,
    fields are named by their label in forms; with `rename`, texts are what it returns. Without a request, `--as-of`
    becomes `as_of`.

    >>> class AskRequest(OperationRequest):
    ...     runs: tuple[str, ...] = setting((), "A run.", flag="--run")
    >>> with errors_name_fields(AskRequest):
    ...     raise InputError("is empty", column="--run", hint="foretell data pull")
    Traceback (most recent call last):
    foretell.questions.errors.InputError: field runs: is empty (foretell data pull)
    >>> with errors_name_fields(AskRequest, titles=True):
    ...     raise InputError("is empty", column="--run")
    Traceback (most recent call last):
    foretell.questions.errors.InputError: Runs: is empty
    """
    try:
        yield
    except InputError as error:
        rename = rename or partial(name_fields, titles=titles)
        error.problem = rename(error.problem, request)
        error.hint = error.hint and rename(error.hint, request)
        error.table_problems = tuple(
            replace(
                table_problem,
                problem=rename(table_problem.problem, request),
                hint=table_problem.hint and rename(table_problem.hint, request),
            )
            for table_problem in error.table_problems
        )
        if error.column and error.column.startswith("-"):
            flag, *rest = error.column.split()
            error.column = ".".join([field_of(flag.rpartition("/")[2], request)[0], *rest])
        elif error.column:
            words = {word: name for name, info in request.model_fields.items() for word in _argument_words(name, info)}
            error.column = words.get(error.column, error.column)
        if titles and error.column in request.model_fields:
            title = title_of(error.column, request.model_fields[error.column])
            error.problem, error.column = f"{title}: {error.problem}", None
        raise


def allowed_names(field: FieldInfo) -> tuple[str, ...]:
    """Return the names that a field may hold, including plug-ins; empty if any value is allowed."""
    place = hints(field).get("names")
    return tuple(load_object(place)) if place else ()


def request_schema(request: type[OperationRequest]) -> dict[str, Any]:
    """Return a compact JSON schema of a request: no titles, and optional fields do not also allow null."""
    schema = cast("dict[str, Any]", _simplified(request.model_json_schema()))
    return {name: part for name, part in schema.items() if name != "description"}


def _simplified(value: Any) -> Any:
    if isinstance(value, list):
        return [_simplified(part) for part in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    schema = cast("dict[str, Any]", value)
    choices = [part for part in schema.get("anyOf", ()) if part != {"type": "null"}]
    if len(choices) == 1:
        rest = {name: part for name, part in schema.items() if name not in ("anyOf", "default")}
        schema = {**choices[0], **rest}
    elif choices:
        schema = {**schema, "anyOf": choices}
    # A property may also be called title or hints. The schema's own title is a text, and its own hints have no type.
    return {
        name: _simplified(part)
        for name, part in schema.items()
        if not (name == "title" and isinstance(part, str)) and not (name == "hints" and "type" not in part)
    }
