import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.tools.doubles import CUTOFF, Engine, Pages, Plugin, at

from foretell.data import PageUnavailable
from foretell.models import Journal, NotInJournal
from foretell.questions import AsOf, LeakBlocked, TraceEvent
from foretell.tools import (
    JournaledTool,
    LeakRefused,
    LookupUrl,
    SourceItem,
    ToolFailed,
    ToolMaterial,
    WebSearch,
    material_from_json,
    material_to_json,
    note_event,
)

ITEMS = (
    SourceItem(title="A", text="a", hops=("https://a.example/",), published=at("2025-10-01"), dating="crawled"),
    SourceItem(title="B", text="b", snippet="s", captured=at("2025-09-01"), clamped=True),
)


def test_material_survives_the_journal_unchanged() -> None:
    material = ToolMaterial(heading="H", items=ITEMS)
    assert material_from_json(material_to_json(material)) == material


class Withholding:
    """A tool that notes what it kept back."""

    spec = Plugin(items=()).spec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        note_event(LeakBlocked(layer="data", reason=f"late: {arguments['query']}"))
        return ToolMaterial(heading="H", items=ITEMS)


def test_what_a_tool_withheld_is_told_again_with_its_kept_material(tmp_path: Path) -> None:
    told: list[TraceEvent] = []
    journal = Journal(tmp_path / "j.db")
    kept = JournaledTool(tool=Withholding(), journal=journal, emit=told.append)
    for _ in range(2):
        asyncio.run(kept.use({"query": "x"}, CUTOFF))
    journal.close()
    assert told == [LeakBlocked(layer="data", reason="late: x")] * 2


def test_a_tool_is_asked_once_and_replayed_without_it(tmp_path: Path) -> None:
    tool = Plugin(items=ITEMS, heading="H")
    journal = Journal(tmp_path / "j.db")
    kept = JournaledTool(tool=tool, journal=journal, scope="q1")
    first, second = (asyncio.run(kept.use({"query": "x"}, CUTOFF)) for _ in range(2))
    assert first == second
    assert len(tool.seen) == 1
    asyncio.run(kept.use({"query": "y"}, CUTOFF))
    asyncio.run(JournaledTool(tool=tool, journal=journal, scope="q2").use({"query": "x"}, CUTOFF))
    assert len(tool.seen) == 3
    journal.close()
    replay = Journal(tmp_path / "j.db", mode="replay")
    assert asyncio.run(JournaledTool(tool=tool, journal=replay, scope="q1").use({"query": "x"}, CUTOFF)) == first
    with pytest.raises(NotInJournal):
        asyncio.run(JournaledTool(tool=tool, journal=replay, scope="q1").use({"query": "z"}, CUTOFF))
    replay.close()
    assert len(tool.seen) == 3


def test_failures_and_refusals_are_kept_with_what_the_fence_needs_to_know() -> None:
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
