import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.tools.doubles import CUTOFF, Engine, Pages, Plugin, at

from foretell.data.pages import PageUnavailable
from foretell.models.journal import Journal
from foretell.models.model import NotInJournal
from foretell.questions.as_of import AsOf
from foretell.questions.trace import LeakBlocked, TraceEvent
from foretell.tools.journal import JournaledTool, material_from_json, material_to_json, note_event
from foretell.tools.tool import LeakRefused, SourceItem, ToolFailed, ToolMaterial
from foretell.tools.web import LookupUrl, WebSearch

ITEMS = (
    SourceItem(title="A", text="a", hops=("https://a.example/",), published=at("2025-10-01"), dating="crawled"),
    SourceItem(title="B", text="b", snippet="s", captured=at("2025-09-01"), clamped=True),
)


def test_material_survives_the_journal_unchanged() -> None:
    material = ToolMaterial(heading="H", items=ITEMS)
    assert material_from_json(material_to_json(material)) == material


class Withholding:
    """A tool that records an event for withheld material."""

    spec = Plugin(items=()).spec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        note_event(LeakBlocked(layer="data", reason=f"late: {arguments['query']}"))
        return ToolMaterial(heading="H", items=ITEMS)


def test_events_of_a_tool_are_emitted_again_with_stored_material(tmp_path: Path) -> None:
    trace_events: list[TraceEvent] = []
    journal = Journal(tmp_path / "j.db")
    journaled_tool = JournaledTool(tool=Withholding(), journal=journal, emit=trace_events.append)
    for _ in range(2):
        asyncio.run(journaled_tool.use({"query": "x"}, CUTOFF))
    journal.close()
    assert trace_events == [LeakBlocked(layer="data", reason="late: x")] * 2


def test_tool_is_called_once_and_replayed_from_the_journal(tmp_path: Path) -> None:
    tool = Plugin(items=ITEMS, heading="H")
    journal = Journal(tmp_path / "j.db")
    journaled_tool = JournaledTool(tool=tool, journal=journal, scope="q1")
    first, second = (asyncio.run(journaled_tool.use({"query": "x"}, CUTOFF)) for _ in range(2))
    assert first == second
    assert len(tool.seen) == 1
    asyncio.run(journaled_tool.use({"query": "y"}, CUTOFF))
    asyncio.run(JournaledTool(tool=tool, journal=journal, scope="q2").use({"query": "x"}, CUTOFF))
    assert len(tool.seen) == 3
    journal.close()
    replay = Journal(tmp_path / "j.db", mode="replay")
    assert asyncio.run(JournaledTool(tool=tool, journal=replay, scope="q1").use({"query": "x"}, CUTOFF)) == first
    with pytest.raises(NotInJournal):
        asyncio.run(JournaledTool(tool=tool, journal=replay, scope="q1").use({"query": "z"}, CUTOFF))
    replay.close()
    assert len(tool.seen) == 3


def test_failures_and_refusals_are_stored_with_their_details() -> None:
    journal = Journal(":memory:")
    page = JournaledTool(tool=LookupUrl(pages=Pages(page=PageUnavailable("404"))), journal=journal)
    blind = JournaledTool(tool=WebSearch(engine=Engine(hits=(), filters_dates=False)), journal=journal)
    for _ in range(2):
        with pytest.raises(ToolFailed, match="404") as failed:
            asyncio.run(page.use({"url": "https://n.example/"}, CUTOFF))
        assert failed.value.__cause__ is not None
        with pytest.raises(LeakRefused) as refused:
            asyncio.run(blind.use({"query": "x"}, CUTOFF))
        assert refused.value.refusal.layer == "date"
    with pytest.raises(ToolFailed, match="url") as missing:
        asyncio.run(page.use({}, CUTOFF))
    assert missing.value.__cause__ is None
    journal.close()
