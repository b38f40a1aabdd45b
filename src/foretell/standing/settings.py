"""Settings of a standing question: the section `watch` of a settings file."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

from foretell.questions.errors import InputError, known_names
from foretell.request import OperationRequest, setting, split_section
from foretell.runs.spec import WATCH as SECTION


class WatchSettings(OperationRequest):
    """Keys of the section `watch`."""

    day_budget: float | None = setting(None, "Hard limit in dollars per day (UTC), for all watched questions.", gt=0)
    budget: float | None = setting(None, "Hard limit in dollars for one question over its whole life.", gt=0)
    minimum_gap_hours: float = setting(6.0, "Scheduled looks stop this many hours before the close.", gt=0, le=8760)
    every_hours: float = setting(4.0, "Look this often between the scheduled times.", gt=0, le=8760)
    price_steps: float = setting(2.0, "A price that moves by this many of its usual steps is news.", gt=0, le=100)
    searches: tuple[str, ...] = setting((), "Saved searches (default: the words of the question).", max_length=20)
    feed: Path | None = setting(None, "Write notices to this Atom feed.")
    webhook: str | None = setting(None, "Post notices to this address.", max_length=2000)
    webhook_secret_env: str | None = setting(None, "Environment variable with the secret that signs them.")
    confirm: Literal["ask", "proposed"] = setting("ask", "Whether a proposed outcome counts without your answer.")
    related: tuple[str, ...] = setting((), "Declared relations to other watched questions.", max_length=50)


def read_watch_settings(values: Mapping[str, Any]) -> WatchSettings:
    """Return the keys of the section `watch`. Raises `InputError` for a key that does not exist or has a wrong value.

    >>> read_watch_settings({"day_budget": 0.1}).day_budget
    0.1
    """
    for name in values:
        if name not in WatchSettings.model_fields:
            hint = known_names(f"{SECTION}.{name}", [f"{SECTION}.{key}" for key in WatchSettings.model_fields])
            raise InputError("there is no such setting", column=f"{SECTION}.{name}", hint=hint)
    try:
        return WatchSettings.read(values)
    except InputError as error:
        raise error.at(column=f"{SECTION}.{error.column}") from None


def watch_changes(changes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split changed settings into the keys of the section `watch`, without their first part, and all others."""
    return split_section(changes, SECTION)


def watch_keys(settings: Mapping[str, Any]) -> WatchSettings:
    """Return the keys of a standing question from its stored settings."""
    return _keys(json.dumps(settings.get(SECTION) or {}, sort_keys=True, default=str))


@lru_cache(maxsize=1000)
def _keys(section: str) -> WatchSettings:
    """Read the keys. Cached, because every look needs them several times."""
    return read_watch_settings(cast("dict[str, Any]", json.loads(section)))
