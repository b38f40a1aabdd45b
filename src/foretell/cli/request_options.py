"""Options of a command made from the fields of its request."""

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from foretell.questions.errors import InputError
from foretell.request import OperationRequest, hints, is_list, plain_type

Command = TypeVar("Command", bound=Callable[..., Any])


def request_options(kind: type[OperationRequest], *, leave_out: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Give a command one option or argument for each field of a request; the command receives `request`.

    Further options of the command itself, such as `--json`, are passed on beside it.

    Args:
        kind: The request.
        leave_out: Fields that this command does not offer.
    """

    def decorate(command: Command) -> Command:
        fields = {name: info for name, info in kind.model_fields.items() if name not in leave_out}

        @wraps(command)
        def called(**values: Any) -> Any:
            given = {name: _value(values.pop(name), info) for name, info in fields.items()}
            try:
                request = kind.read(given)
            except InputError as error:
                raise _in_flags(error, fields) from None
            return command(request=request, **values)

        for name, info in reversed(fields.items()):
            called = _parameter(name, info)(called)
        return called  # pyright: ignore[reportReturnType]

    return decorate


def flags(name: str, info: FieldInfo) -> tuple[str, ...]:
    """How a field is spelled on the command line, the short form first.

    >>> from foretell.request import setting
    >>> flags("as_of", setting(None, "Ask as of then."))
    ('--as-of',)
    """
    spelled = hints(info).get("flag") or f"--{name.replace('_', '-')}"
    return tuple(spelled.split("/")) if spelled.startswith("-") else (spelled,)


def _parameter(name: str, info: FieldInfo) -> Callable[[Any], Any]:
    shown = hints(info)
    kind, many = _click_type(plain_type(info), info)
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    if shown.get("argument"):
        return click.argument(
            name, type=kind, required=info.is_required(), nargs=-1 if many else 1, metavar=shown.get("metavar")
        )
    text = info.description or ""
    if not isinstance(default, bool | Mapping) and default not in (None, "", ()):
        usual = ", ".join(map(str, default)) if isinstance(default, tuple) else default
        text = f"{text}  [default: {usual}]"
    if shown.get("env"):
        # Not click's own envvar: the request reads the variable, so that every door does it alike.
        text = f"{text}  [env: {shown['env']}]"
    if kind is bool:
        spelled = flags(name, info)[-1]
        both = f"{spelled}/--no-{spelled.removeprefix('--')}" if default else spelled
        return click.option(both, name, default=None, is_flag=True, help=text)
    alone: dict[str, Any] = {"is_flag": False, "flag_value": shown["alone"]} if "alone" in shown else {}
    return click.option(
        *flags(name, info),
        name,
        type=kind,
        multiple=many,
        nargs=_pair_length(info),
        default=None,
        required=info.is_required(),
        metavar=shown.get("metavar") or ("NAME=VALUE" if _by_name(info) else None),
        help=text,
        **alone,
    )


def _click_type(annotation: Any, info: FieldInfo) -> tuple[Any, bool]:
    """The click type of a field, and whether it may be repeated."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return str, False
    if origin is Literal:
        return click.Choice([str(one) for one in arguments]), False
    if origin in (tuple, list):
        return _click_type(arguments[0], info)[0], is_list(info)
    if _by_name(info):
        return str, True
    if annotation is Path:
        return click.Path(path_type=Path), False
    return (annotation if annotation in (int, float, bool) else str), False


def _pair_length(info: FieldInfo) -> int:
    """How many words an option takes: two for a pair of numbers."""
    annotation = plain_type(info)
    return len(get_args(annotation)) if get_origin(annotation) is tuple and not is_list(info) else 1


def _value(value: Any, info: FieldInfo) -> Any:
    """What click gives, as the request takes it; nothing where nothing was said."""
    if value is None or value == ():
        return None
    return dict(map(_name_and_value, value)) if _by_name(info) else value


def _name_and_value(written: str) -> tuple[str, str]:
    """`name=value`, for fields that hold values by name."""
    name, equals, value = written.partition("=")
    if not equals or not name:
        raise InputError(f"{written!r} is not of the form NAME=VALUE")
    return name, value


def _by_name(info: FieldInfo) -> bool:
    origin = get_origin(info.annotation)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _in_flags(error: InputError, fields: Mapping[str, FieldInfo]) -> InputError:
    """The same problem, named as the user spelled it."""
    name, _, rest = (error.column or "").partition(".")
    if name not in fields:
        return error
    shown = name.upper() if hints(fields[name]).get("argument") else flags(name, fields[name])[-1]
    return error.at(column=f"{shown} {rest}".strip())
