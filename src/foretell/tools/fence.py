"""The fence: in a backtest nothing reaches a model unless every layer admits it. Whatever is not understood is dropped.

Address, date and data layers are rules; the content layer asks a model. Live there is no future to leak, so all are
off. A clairvoyant run switches them off on purpose, as an upper bound, and says so in everything it returns.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from foretell.llm.message import ToolSpec
from foretell.questions.clock import AsOf
from foretell.questions.event import LeakBlocked
from foretell.tools.addresses import UnreadableAddress, address_of
from foretell.tools.admission import Admission
from foretell.tools.blocklist import is_encyclopedia
from foretell.tools.leaks import ContentFilter
from foretell.tools.names import FETCH_WIKIPEDIA, PREFIXES, WEB_SEARCH
from foretell.tools.refusal import Refused
from foretell.tools.rules import Fence
from foretell.tools.shelf import Admitted, Shelf
from foretell.tools.tool import Tool, ToolFailed

__all__ = ["Fence", "Fenced", "Observation"]

CLAIRVOYANT = "(Clairvoyant run: nothing was withheld.)"


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What a model may see of a tool's answer."""

    text: str
    source_ids: tuple[str, ...] = ()
    """Ids that may be cited from now on."""
    failed: bool = False
    clairvoyant: bool = False


_KEY = object()


@final
class Fenced:
    """Tools behind a fence: the only thing an agent accepts. Made by `Fenced.around`, for one trial of one question."""

    def __init__(self, key: object, tools: Mapping[str, Tool], fence: Fence, admit: "Admission") -> None:
        if key is not _KEY:
            raise TypeError("tools are fenced by Fenced.around(tools, fence, leak_filter)")
        self._tools = tools
        self._fence = fence
        self._admission = admit
        self._calls: dict[str, int] = {}

    @classmethod
    def around(
        cls, tools: Iterable[Tool], fence: Fence, leak_filter: ContentFilter | None, *, shelf: Shelf | None = None
    ) -> "Fenced":
        """Put tools behind a fence. A backtest needs a content filter: without one it is refused here."""
        if fence.active and leak_filter is None:
            raise ValueError("a backtest needs a content filter; pass one, or mark the run clairvoyant")
        shelf = Shelf() if shelf is None else shelf
        admission = Admission(fence=fence, leak_filter=leak_filter, shelf=shelf)
        shelf.guard(admission.vet)
        named: dict[str, Tool] = {}
        for tool in tools:
            if named.setdefault(tool.spec.name, tool) is not tool:
                raise ValueError(f"two tools are called {tool.spec.name!r}")
        return cls(_KEY, named, fence, admission)

    @property
    def as_of(self) -> AsOf:
        """The cutoff, also of a clairvoyant run."""
        return self._fence.as_of

    @property
    def clairvoyant(self) -> bool:
        """Whether the layers were switched off on purpose: such a run is no forecast."""
        return self._fence.clairvoyant

    @property
    def shelf(self) -> Shelf:
        """Everything admitted so far."""
        return self._admission.shelf

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools on offer, always in the same order."""
        return tuple(tool.spec for tool in self._tools.values())

    async def use(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Call a tool and return what of its answer may be seen. Failures come back as text to act on."""
        tool = self._tools.get(name)
        if tool is None:
            offered = ", ".join(self._tools) or "none"
            return self._failed(f"There is no tool {name!r}. Tools on offer: {offered}.")
        if (told := self._turned_away(name, arguments)) is not None:
            return self._failed(told)
        ids = self._ids(name)  # Before anything is waited for: of calls side by side any may come back first.
        try:
            material = await tool.use(arguments, self._fence.sees)
        except Refused as error:
            self._fence.emit(LeakBlocked(layer=error.refusal.layer, reason=error.refusal.reason))
            return self._failed(str(error) if name in PREFIXES else self._nothing(name))
        except ToolFailed as error:
            return self._failed(self._told(name, error))
        admitted = await self._admission.pass_through(name, material, ids)
        if not admitted:
            return self._seen(self._nothing(name), ())
        text = "\n\n".join([self._admission.heading(material.heading), *map(_entry, admitted)]).strip()
        return self._seen(text, tuple(one.id for one in admitted))

    def _ids(self, name: str) -> Callable[[int, int], str]:
        """`search_{i}_result_{j}` for the j-th admitted result of the i-th search; `page_{i}` for single results."""
        prefix = PREFIXES.get(name, name)
        call = self._calls[name] = self._calls.get(name, 0) + 1

        def named(place: int, of: int) -> str:
            alone = of == 1 and name != WEB_SEARCH
            return f"{prefix}_{call}" if alone else f"{prefix}_{call}_result_{place}"

        return named

    def _turned_away(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        for key, value in arguments.items():
            if not isinstance(value, str) or not (key == "url" or ("://" in value and " " not in value.strip())):
                continue
            blocked = self._fence.door(name, value)
            if blocked is not None:
                self._fence.emit(LeakBlocked(layer="address", reason=blocked.reason, url=value))
                return self._closed(value)
        return None

    def _closed(self, url: str) -> str:
        if is_encyclopedia(url) and FETCH_WIKIPEDIA in self._tools:
            return f"Encyclopedia pages are read as of the cutoff: call {FETCH_WIKIPEDIA} with this address instead."
        return f"{url} is closed in this exercise and will stay so. Do not try it again: search for reports instead."

    def _told(self, name: str, error: ToolFailed) -> str:
        """Why a source failed can tell the future (a page that will exist, a market that closed): it is kept back.

        Our own words about wrong arguments are harmless; a stranger's words are not known to be.
        """
        if not self._fence.active or (error.__cause__ is None and name in PREFIXES):
            return str(error)
        self._fence.emit(LeakBlocked(layer="data", reason=f"why it failed is kept back: {error}"))
        return self._nothing(name)

    def _nothing(self, name: str) -> str:
        day = self._fence.as_of.at.date().isoformat()
        return f"{name}: nothing could be admitted as of {day}. Try other words, another address or another tool."

    def _failed(self, text: str) -> Observation:
        return replace(self._seen(text, ()), failed=True)

    def _seen(self, text: str, ids: tuple[str, ...]) -> Observation:
        marked = f"{CLAIRVOYANT}\n{text}" if self.clairvoyant else text
        return Observation(text=marked, source_ids=ids, clairvoyant=self.clairvoyant)


def _entry(admitted: Admitted) -> str:
    when = admitted.published.date().isoformat() if admitted.published is not None else ""
    where = _host(admitted.url)
    place = ", ".join(filter(None, (where, when)))
    head = f"[{admitted.id}] {admitted.title}" + (f" ({place})" if place else "")
    rest = len(admitted.item.text) - len(admitted.shown)
    more = f"\n({rest} more characters: summarize_results reads them)" if rest > 0 and not admitted.item.snippet else ""
    return f"{head}\n{admitted.shown}{more}".strip()


def _host(url: str) -> str:
    try:
        address = address_of(url) if url else None
    except UnreadableAddress:
        return ""
    return address.host if address is not None else ""
