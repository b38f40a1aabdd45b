"""Python literals as found in published CSV cells, read without running anything."""

import ast
import re
from typing import Any

_CALL = re.compile(r"\b(?:UUID|Decimal)\(\s*('[^'\\]*'|\"[^\"\\]*\")\s*\)")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def literal(text: str) -> Any:
    r"""The value of a literal in which `UUID('…')` and `Decimal('…')` stand for their text.

    Quoted passages are left alone, so a summary that happens to mention UUID('x') is not touched. Anything that is
    not a plain literal (a name, a call, an operator) raises a `ValueError`.

    >>> literal("[{'id': UUID('040df6a5'), 'title': \"A's UUID('x')\", 'n': 1}]")
    [{'id': '040df6a5', 'title': "A's UUID('x')", 'n': 1}]
    >>> literal("__import__('os').getcwd()")
    Traceback (most recent call last):
    ...
    ValueError: not a plain Python literal
    """
    try:
        return ast.literal_eval(_unwrapped(text.strip()))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("not a plain Python literal") from None


def _unwrapped(text: str) -> str:
    """The text with each wrapping call outside quotes replaced by its argument."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        if call := _CALL.match(text, at):
            parts.append(call.group(1))
            at = call.end()
        elif quoted := _QUOTED.match(text, at):
            parts.append(quoted.group())
            at = quoted.end()
        else:
            parts.append(text[at])
            at += 1
    return "".join(parts)
