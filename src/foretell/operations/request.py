"""The base of all requests: typed fields with a description and a default, checked once, whichever door they came by.

A field is declared with `setting`. The command line makes its options from it, the web application its form, MCP its
schema and Python its signature, so that a new option is one field.
"""

from collections.abc import Mapping
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from foretell.questions.errors import InputError


class Request(BaseModel):
    """What a user asks for. Frozen; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """A request from plain values; the first wrong one raises an `InputError` that names the field.

        Args:
            values: Field → value. What is None stands for the field's default.
        """
        given = {name: value for name, value in values.items() if value is not None}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            column = ".".join(str(part) for part in first["loc"]) or None
            hint = _known_fields(cls) if first["type"] == "extra_forbidden" else None
            problem = "there is no such option" if hint else first["msg"].removeprefix("Value error, ")
            raise InputError(problem, column=column, hint=hint) from None


def _known_fields(request: type[Request]) -> str:
    return f"there are {', '.join(request.model_fields)}"


def setting(  # noqa: PLR0913 - a field has as many sides
    default: Any = PydanticUndefined,
    help: str = "",
    *,
    flag: str | None = None,
    argument: bool = False,
    metavar: str | None = None,
    env: str | None = None,
    alone: str | None = None,
    **limits: Any,
) -> Any:
    """A field of a request.

    Args:
        default: Its value where nothing is said; without one it must be given.
        help: One sentence for people: option help, form label and schema description.
        flag: How the command line spells it, such as "--closes" or "-f/--forecasts"; else made from the name.
        argument: Given by position on the command line instead of by a flag.
        metavar: What the command line calls the value, such as DATE.
        env: Environment variable that stands in where nothing is given, in every door.
        alone: What a flag that is given without a value stands for.
        limits: What `pydantic.Field` takes: ge, le, gt, min_length, pattern, default_factory, …
    """
    cli = {"flag": flag, "argument": argument, "metavar": metavar, "env": env, "alone": alone}
    extra: dict[str, Any] = {"cli": {name: value for name, value in cli.items() if value}}
    if "default_factory" in limits:
        return Field(description=help, json_schema_extra=extra, **limits)
    return Field(default, description=help, json_schema_extra=extra, **limits)


def cli_hints(field: FieldInfo) -> Mapping[str, Any]:
    """How the command line is to show a field: flag, argument, metavar, env."""
    extra = field.json_schema_extra
    return cast("Mapping[str, Any]", extra.get("cli", {})) if isinstance(extra, dict) else {}
