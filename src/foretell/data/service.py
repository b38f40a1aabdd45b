"""What a plug-in that reads the outside world is opened with, and how it speaks to its server."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from foretell.data.http import AsyncHttpClient
from foretell.data.payload import Payload
from foretell.plugins import describe, load, variables_in_words
from foretell.questions.errors import InputError

Params = Mapping[str, str] | Iterable[tuple[str, str]]
"""What is asked for in an address; as pairs where a name is repeated."""


@dataclass(frozen=True, kw_only=True)
class ServiceConfig:
    """The connection, the key and the place of one service."""

    http: AsyncHttpClient
    """Shared by all services of a run; tell it the pace of your host (`pace`), unless `known_services` has it, and your
    key (`keep_secret`)."""
    key: str = field(default="", repr=False)
    """From the first of the plug-in's `key_variables` that is set; empty where none is."""
    address: str | None = None
    """Replaces the public address, from FORETELL_<NAME>_URL: a mirror, a proxy or a test server."""
    per_second: float | None = None
    """The pace of a server that `known_services` does not have."""
    home: Path = Path()
    """Where files of this program are kept."""
    corpus: Path = Path("corpus.db")
    """The local corpus."""
    series: Path | None = None
    """A CSV file, or a folder of them, with series of the user's own."""


class JsonService:
    """A server that answers in JSON: its address, its key, which is never shown, and its pace, if no table has it."""

    def __init__(
        self,
        config: ServiceConfig,
        host: str,
        *,
        per_second: float | None = None,
        burst: int = 1,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.http = config.http
        self.host = config.address or host
        self._headers = dict(headers or {})
        self.http.keep_secret(config.key)
        self.http.stand_in(self.host, host)
        rate = config.per_second or per_second
        if rate is not None:
            self.http.pace(self.host, per_second=rate, burst=burst)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(host={self.host!r})"

    async def read(self, path: str, params: Params = ()) -> Payload:
        """What stands at a path."""
        pairs = tuple(cast("Mapping[str, str]", params).items() if isinstance(params, Mapping) else params)
        return Payload.of(await self.http.get(f"{self.host}{path}", params=pairs or None, headers=self._headers))

    async def post(self, path: str, body: Any) -> Payload:
        """The answer to what is sent to a path."""
        return Payload.of(await self.http.post(f"{self.host}{path}", json=body, headers=self._headers))


def needs_key(plugin: Any) -> bool:
    """Whether a plug-in is of no use without a key: it names variables and does not say that they are optional."""
    return bool(getattr(plugin, "key_variables", ())) and bool(getattr(plugin, "key_required", True))


def load_with_key(kind: str, name: str, key: str) -> Any:
    """The plug-in of this name; one without the key it needs is an `InputError` now, not in the middle of a run."""
    plugin = load(kind, name)
    if needs_key(plugin) and not key:
        hint = f"set {variables_in_words(plugin.key_variables)}"
        if kind == "search_engines":
            hint += ", or use --search local"
        raise InputError(f"the {describe(kind)} {name} needs a key", hint=hint)
    return plugin


def open_service(kind: str, name: str, config: ServiceConfig) -> Any:
    """The plug-in, opened: by its `open(config)`, or called with the config where it has none."""
    plugin = load_with_key(kind, name, config.key)
    return cast("Callable[[ServiceConfig], Any]", getattr(plugin, "open", plugin))(config)
