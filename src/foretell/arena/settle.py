"""The fourth stage: how events came out, from the platforms that know."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from foretell.arena.collect import close_event
from foretell.arena.live import LiveArena
from foretell.arena.store import SelectedEventRow
from foretell.data.http import SourceError
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution


@dataclass(kw_only=True)
class SettleReport:
    """What came of asking for results, filled on the way."""

    asked: int = 0
    """Events whose results were sought."""
    outcomes: int = 0
    """Results of single targets that were new or amended."""
    settled: int = 0
    """Events of which everything is known now."""
    problems: list[str] = field(default_factory=list[str])

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
    report, by_platform = SettleReport(), dict[str, list[SelectedEventRow]]()
    for row in (await arena.book.db.aside(arena.book.selected, unsettled=True)).values():
        if row.closes_at <= now or row.status != "open":
            by_platform.setdefault(row.platform, []).append(row)
            report.asked += 1
    await asyncio.gather(*(_platform(arena, name, rows, now, report) for name, rows in by_platform.items()))
    return report


async def _platform(
    arena: LiveArena, platform: str, rows: Sequence[SelectedEventRow], now: datetime, report: SettleReport
) -> None:
    book, aside = arena.book, arena.book.db.aside
    if platform not in arena.settlements:
        report.problems.append(f"{platform}: nobody here reads its results")
        return
    asked = {row.event: await aside(_whole, arena, row) for row in rows}
    try:
        results = await arena.settlements[platform].settlements(list(asked.values()))
    except SourceError as error:
        report.problems.append(f"{platform}: {error}")
        return
    skipped = getattr(arena.settlements[platform], "skipped", ())
    if skipped:
        report.problems.append(f"{platform}: {len(skipped)} entries could not be read; {skipped[0].reason}")
    before = [one for event in asked for one in await aside(book.outcomes, event)]
    known = {(one.question_id, one.target_id): _result(one) for one in before}
    new = [one for one in results if known.get((one.question_id, one.target_id)) != _result(one)]
    await aside(book.add_outcomes, new, now)
    resolved = Counter(event for event, _ in {*known, *((one.question_id, one.target_id) for one in results)})
    settled = [event for event, question in asked.items() if resolved[event] >= len(question.targets)]
    for event in settled:
        await close_event(arena, event, "resolved", now)
        await aside(book.settle, event)
    report.outcomes += len(new)
    report.settled += len(settled)


def _result(one: Resolution) -> tuple[int | None, float | None, datetime | None]:
    return one.outcome, one.payoff, one.resolved_at


def _whole(arena: LiveArena, row: SelectedEventRow) -> Question:
    """The event with every target that was ever asked about: some end before others and leave the list."""
    listed = {target.id: target for target in row.question.targets}
    for moment in arena.book.moments.of_event(row.event):
        for id in moment.targets:
            listed.setdefault(id, Target(id=id))
    return replace(row.question, targets=tuple(listed.values()), exclusivity="independent")
