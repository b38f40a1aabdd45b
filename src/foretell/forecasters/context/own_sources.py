"""The sources of a context as the only thing that can be searched: for forecasters whose parts do not all read it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from foretell.forecasters.context.context import Context, Source
from foretell.forecasters.context.extract import words
from foretell.llm.message import ToolSpec
from foretell.questions.clock import AsOf
from foretell.questions.event import Emit
from foretell.tools.arguments import needed_text
from foretell.tools.fence import Fence, Fenced
from foretell.tools.leaks import Excerpt, Verdict
from foretell.tools.names import WEB_SEARCH
from foretell.tools.tool import Item, Material

INSTANT = timedelta(microseconds=1)
SPEC = ToolSpec(
    name=WEB_SEARCH,
    description=(
        "Search the sources that were gathered for this question; nothing else can be reached. Returns those that "
        "share words with the query, the closest first, or all of them where none does."
    ),
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "The words to search for."}},
        "required": ["query"],
        "additionalProperties": False,
    },
)


class _Vetted:
    """What a context holds passed every layer when it was made."""

    async def judge(self, excerpts: Sequence[Excerpt], as_of: AsOf, question: str) -> list[Verdict]:
        return [Verdict(word="KEEP", reason="part of the context")] * len(excerpts)


@dataclass(frozen=True, kw_only=True)
class OwnSources:
    """Searches a context and nothing else."""

    context: Context

    @property
    def spec(self) -> ToolSpec:
        """As shown to the model."""
        return SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> Material:
        """The sources that fit, as they stood when the context was made."""
        wanted = words(needed_text(arguments, "query"))
        shared = [(len(wanted & words(f"{one.title} {one.summary}")), one) for one in self.context.sources]
        fitting = [(n, one) for n, one in shared if n] or shared
        ordered = sorted(fitting, key=lambda pair: (-pair[0], pair[1].rank))
        return Material(heading="Sources:", items=tuple(self._item(source) for _, source in ordered))

    def _item(self, source: Source) -> Item:
        """Without its address, which today may lead to another page; stored just before the moment."""
        captured = self.context.as_of.at - INSTANT
        return Item(title=source.title, text=f"{source.summary} ({source.url})", captured=captured)


def only_sources(context: Context, emit: Emit, *, searchable: bool = True) -> Fenced:
    """A toolbox over the sources of a context; without any tool where nothing of it may be searched."""
    tools = (OwnSources(context=context),) if searchable and context.sources else ()
    return Fenced.around(tools, Fence(as_of=context.as_of, question=context.question, emit=emit), _Vetted())
