"""The way through the fence: rules first, then the content filter over what they admitted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foretell.questions.event import LeakBlocked
from foretell.tools.clamp import clamp_text
from foretell.tools.leaks import ContentFilter, Excerpt
from foretell.tools.names import FETCH_PRICES, FETCH_SERIES, PREFIXES
from foretell.tools.refusal import Refusal
from foretell.tools.rules import Fence
from foretell.tools.shelf import READ_LIMIT, Admitted, Shelf
from foretell.tools.stamps import without_age
from foretell.tools.tool import Item, Material

SNIPPET_LIMIT = 2_000
SHOWN_LIMIT = 6_000


@dataclass(frozen=True, kw_only=True)
class Admission:
    """One trial's way through the fence; every refusal is an event."""

    fence: Fence
    leak_filter: ContentFilter | None
    shelf: Shelf

    async def pass_through(self, tool: str, material: Material, name: Callable[[int, int], str]) -> list[Admitted]:
        """The items that pass every layer, put on the shelf under their ids."""
        admitted = [item for item in (self._by_rule(item, tool) for item in material.items) if item is not None]
        # Our own headings only repeat the question; a stranger's is judged along with what it stands above.
        above = "" if tool in PREFIXES else f"{material.heading}\n"
        excerpts = [Excerpt(title=above + item.title, text=_shown(item)) for item in admitted]
        numbers = tool in (FETCH_SERIES, FETCH_PRICES)
        kept = await self._by_content(admitted, excerpts, numbers=numbers)
        passed = [(item, excerpt.text) for item, excerpt, keep in zip(admitted, excerpts, kept, strict=True) if keep]
        for place, (item, shown) in enumerate(passed, start=1):
            whole = not self.fence.active or (numbers and item.clamped) or item.text in ("", shown)
            self.shelf.put(Admitted(id=name(place, len(passed)), item=item, shown=shown, whole=whole))
        return [self.shelf[name(place, len(passed))] for place in range(1, len(passed) + 1)]

    async def vet(self, admitted: Sequence[Admitted]) -> list[bool]:
        """Whether the whole text of each may be read."""
        items = [one.item for one in admitted]
        return await self._by_content(items, [Excerpt(title=item.title, text=item.text[:READ_LIMIT]) for item in items])

    def heading(self, text: str) -> str:
        """The tool's own words above its results, without anything told later."""
        if not self.fence.active:
            return text
        known, late = clamp_text(text, self.fence.as_of)
        if late:
            self.fence.emit(LeakBlocked(layer="data", reason=f"{len(late)} lines told later", title=late[0][:200]))
        return known

    def _by_rule(self, item: Item, tool: str) -> Item | None:
        found = self.fence.admit(item, tool)
        if isinstance(found, Refusal):
            self.fence.emit(found.of(item))
            return None
        return found

    async def _by_content(
        self, items: Sequence[Item], excerpts: Sequence[Excerpt], *, numbers: bool = False
    ) -> list[bool]:
        """Clamped numbers of our own tools hold no words to judge; everything else needs an explicit KEEP."""
        if not self.fence.active:
            return [True] * len(items)
        kept = [numbers and item.clamped for item in items]
        asked = [place for place, known in enumerate(kept) if not known]
        if not asked or self.leak_filter is None:
            return kept
        chosen = [excerpts[place] for place in asked]
        verdicts = await self.leak_filter.judge(chosen, self.fence.as_of, self.fence.question.text)
        if len(verdicts) != len(asked):
            verdicts = []
        for order, place in enumerate(asked):
            verdict = verdicts[order] if verdicts else None
            kept[place] = verdict is not None and verdict.keeps
            if not kept[place]:
                reason = verdict.reason if verdict is not None else "the filter lost count"
                self.fence.emit(Refusal(layer="content", reason=reason).of(items[place]))
        return kept


def _shown(item: Item) -> str:
    return without_age(item.snippet)[:SNIPPET_LIMIT] if item.snippet else item.text[:SHOWN_LIMIT]
