"""Answer a question once, or watch it. What only a watch needs is loaded when there is one."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from foretell.operations.ask import AskResult, answer_question
from foretell.operations.requests.asking import AskRequest
from foretell.operations.sharpen import SharpenedQuestion
from foretell.report.run_plan import RunPlan
from foretell.runs.executor import WatchEvents
from foretell.runs.settings import Settings

if TYPE_CHECKING:
    from foretell.operations.watch import WatchResult


async def ask_or_watch(
    request: AskRequest,
    settings: Settings | None = None,
    *,
    watch: WatchEvents | None = None,
    tell: Callable[[str], None] = lambda _: None,
    begin: Callable[[asyncio.Event], None] = lambda _: None,
) -> "AskResult | RunPlan | WatchResult | SharpenedQuestion":
    """Answer a question, or watch questions if the request says so.

    `watch` is called with every event of a trial and every change of a watched question, `tell` with a line for every
    look, and `begin` with the event that ends watching after the looks that are under way.
    """
    if not request.watch or request.sharpen == "propose":
        return await answer_question(request, settings, watch=watch, tell=tell)
    from foretell.operations.watch import watch_questions

    return await watch_questions(request, settings, watch=watch, tell=tell, begin=begin)
