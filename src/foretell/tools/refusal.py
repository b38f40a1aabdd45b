"""Why something is kept from a model."""

from dataclasses import dataclass
from typing import Literal

from foretell.questions.event import LeakBlocked
from foretell.tools.tool import Item, ToolFailed

Layer = Literal["address", "date", "data", "content"]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The layer that said no, and its reason. The reason is for people: the model never reads it."""

    layer: Layer
    reason: str

    def of(self, item: Item) -> LeakBlocked:
        """The event to record for an item."""
        published = item.published.isoformat() if item.published is not None else ""
        return LeakBlocked(
            layer=self.layer, reason=self.reason, url=item.url, title=item.title[:200], published=published
        )


class Refused(ToolFailed):
    """A tool noticed by itself that an answer would leak. The text is for the model, the refusal for the record."""

    def __init__(self, text: str, refusal: Refusal) -> None:
        super().__init__(text)
        self.refusal = refusal
