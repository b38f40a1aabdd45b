"""What a plug-in that reads the outside world is opened with, the same for search engines, series and markets."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from foretell.data.http import AsyncHttpClient
from foretell.plugins import describe, load
from foretell.questions.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ServiceConfig:
    """The connection, the key and the place of one service."""

    http: AsyncHttpClient
    """Shared by all services of a run; tell it the pace of your host (`pace`) and your key (`keep_secret`)."""
    key: str = field(default="", repr=False)
    """From the first of the plug-in's `key_variables` that is set; empty where none is."""
    address: str | None = None
    """Replaces the public address, from FORETELL_<NAME>_URL: a mirror, a proxy or a test server."""
    home: Path = Path()
    """Where files of this program are kept."""
    corpus: Path = Path("corpus.db")
    """The local corpus."""


def needs_key(plugin: Any) -> bool:
    """Whether a plug-in is of no use without a key: it names variables and does not say that they are optional."""
    return bool(getattr(plugin, "key_variables", ())) and bool(getattr(plugin, "key_required", True))


def open_service(kind: str, name: str, config: ServiceConfig) -> Any:
    """The plug-in, opened: by its `open(config)`, or called with the config where it has none.

    A plug-in without the key it needs is an `InputError` now, not in the middle of a run.
    """
    plugin = load(kind, name)
    if needs_key(plugin) and not config.key:
        hint = f"set {' or '.join(plugin.key_variables)}"
        if kind == "search_engines":
            hint += ", or use --search local"
        raise InputError(f"the {describe(kind)} {name} needs a key", hint=hint)
    return cast("Callable[[ServiceConfig], Any]", getattr(plugin, "open", plugin))(config)
