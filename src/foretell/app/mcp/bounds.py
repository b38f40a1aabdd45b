"""Answers of a bounded size: long texts and lists are cut, and what was cut is told."""

import json
from collections.abc import Mapping
from typing import Any, cast

MOST = 60_000
"""Characters of one answer."""
STEPS = ((20_000, 500), (6_000, 200), (2_000, 100), (600, 40), (200, 15), (60, 5))
"""Longest text and longest list, tried from the widest to the narrowest."""


def fitted(answer: Mapping[str, Any], most: int = MOST) -> dict[str, Any]:
    """The answer, cut as far as it takes; `shortened` says that it was.

    >>> fitted({"p": 0.4, "reasons": "because " * 20_000})["shortened"]
    True
    """
    whole = dict(answer)
    if _size(whole) <= most:
        return whole
    for text, items in STEPS:
        cut = {**_cut(whole, text, items), "shortened": True}
        if _size(cut) <= most:
            return cut
    return {"shortened": True, "problem": f"the answer is longer than {most:,} characters; ask for less"}


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _cut(value: Any, text: int, items: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= text else f"{value[:text]}… ({len(value) - text:,} more characters)"
    if isinstance(value, Mapping):
        entries = list(cast("Mapping[str, Any]", value).items())
        kept = {name: _cut(inner, text, items) for name, inner in entries[:items]}
        return kept if len(entries) <= items else {**kept, "…": f"{len(entries) - items:,} more"}
    if isinstance(value, list):
        rows = cast("list[Any]", value)
        kept = [_cut(inner, text, items) for inner in rows[:items]]
        return kept if len(rows) <= items else [*kept, f"… {len(rows) - items:,} more"]
    return value
