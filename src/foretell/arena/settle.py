"""The fourth stage: how events came out, from the platforms that know."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from foretell.arena.collect import close_event
from foretell.arena.live import LiveArena
from foretell.arena.store import SelectedEventRow
from foretell.data.http import SourceError
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution


@dataclass(frozen=True, kw_only=True)
class SettleReport:
    """What came of asking for results."""

    asked: int
    """Events whose results were sought."""
    outcomes: int = 0
    """Results of single targets that were new or amended."""
    settled: int = 0
    """Events of which everything is known now."""
    problems: tuple[str, ...] = ()

    @property
    def telling(self) -> bool:
        """Whether anything happened."""
        return bool(self.outcomes or self.settled or self.problems)

    def __str__(self) -> str:
        """For people."""
        head = f"{self.asked} events asked for, {self.outcomes} new results, {self.settled} settled"
        return "\n".join([head, *(f"problem: {one}" for one in self.problems)])


async def settle(arena: LiveArena, now: datetime) -> SettleReport:
    """Seek the results of events whose close has passed or that have left the list of open ones."""
    book = arena.book
    rows = (await book.db.aside(book.selected, unsettled=True)).values()
    over = [row for row in rows if row.closes_at <= now or row.status != "open"]
    by_platform: dict[str, list[SelectedEventRow]] = {}
    for row in over:
        by_platform.setdefault(row.platform, []).append(row)
    found = await asyncio.gather(*(_platform(arena, name, group, now) for name, group in by_platform.items()))
    outcomes, settled = sum(one[0] for one in found), sum(one[1] for one in found)
    return SettleReport(
        asked=len(over), outcomes=outcomes, settled=settled, problems=tuple(one[2] for one in found if one[2])
    )


async def _platform(
    arena: LiveArena, platform: str, rows: Sequence[SelectedEventRow], now: datetime
) -> tuple[int, int, str]:
    book = arena.book
    if platform not in arena.settlements:
        return 0, 0, f"{platform}: nobody here reads its results"
    asked = {row.event: await book.db.aside(_whole, arena, row) for row in rows}
    try:
        told = await arena.settlements[platform].settlements(list(asked.values()))
    except SourceError as error:
        return 0, 0, f"{platform}: {error}"
    before = [one for event in asked for one in await book.db.aside(book.outcomes, event)]
    known = {(one.question_id, one.target_id): one for one in before}
    new = [one for one in told if _differs(known.get((one.question_id, one.target_id)), one)]
    await book.db.aside(book.add_outcomes, new, now)
    resolved = Counter(event for event, _ in {*known, *((one.question_id, one.target_id) for one in told)})
    settled = [event for event, question in asked.items() if resolved[event] >= len(question.targets)]
    for event in settled:
        await close_event(arena, event, "resolved", now)
        await book.db.aside(book.settle, event)
    return len(new), len(settled), ""


def _differs(known: Resolution | None, told: Resolution) -> bool:
    if known is None:
        return True
    return (known.outcome, known.payoff, known.resolved_at) != (told.outcome, told.payoff, told.resolved_at)


def _whole(arena: LiveArena, row: SelectedEventRow) -> Question:
    """The event with every target that was ever asked about: some end before others and leave the list."""
    listed = {target.id: target for target in row.question.targets}
    for moment in arena.book.moments.of_event(row.event):
        for id in moment.targets:
            listed.setdefault(id, Target(id=id))
    return replace(row.question, targets=tuple(listed.values()), exclusive=False)
