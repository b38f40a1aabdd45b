"""Reading the arguments of a tool call; what is wrong is told to the model."""

from collections.abc import Mapping
from typing import Any, cast

from foretell.tools.tool import ToolFailed


def needed_text(arguments: Mapping[str, Any], name: str) -> str:
    """A text that must be there."""
    text = text_if_any(arguments, name)
    if text is None:
        raise ToolFailed(f"The argument {name!r} is missing: give it as a text.")
    return text


def text_if_any(arguments: Mapping[str, Any], name: str) -> str | None:
    """A text, or None where it is absent or empty."""
    value = arguments.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str | int):
        raise ToolFailed(f"The argument {name!r} must be a text, not {type(value).__name__}.")
    return str(value).strip() or None


def needed_texts(arguments: Mapping[str, Any], name: str) -> list[str]:
    """A list of texts; a single text counts as a list of one."""
    value = arguments.get(name)
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found:
        raise ToolFailed(f"The argument {name!r} must be a list of texts with at least one entry.")
    return [str(one).strip().strip("[]") for one in cast("list[Any]", found)]
