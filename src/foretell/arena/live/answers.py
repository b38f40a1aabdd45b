"""The rules that hold for every entry: what it is shown, by when it must have answered, and that it adds up."""

from collections import OrderedDict
from dataclasses import replace
from datetime import datetime

from foretell.arena.cells import Cell
from foretell.arena.executor import Answer
from foretell.arena.live.book import Book
from foretell.arena.live.schedule import Clock
from foretell.forecasters.context.context import Context
from foretell.forecasters.context.prompt import fit
from foretell.forecasters.forecaster import CannotForecast
from foretell.questions.clock import AsOf
from foretell.questions.event import Emit, Failed
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question

MISSED = "missed: "
"""Begins every failure that is only a matter of time."""
REMEMBERED = 64
"""Contexts kept at hand."""


class BookContexts:
    """What everybody is shown, from the book: by question and the moment it was asked, checked by its digest."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._near: OrderedDict[str, Context] = OrderedDict()

    async def of(self, question: Question, as_of: AsOf) -> Context:
        """The context that was gathered then."""
        book = self._book
        moment = await book.db.aside(book.moments.at, question.id, question.due.isoformat())
        if moment is None or moment.context is None:
            raise CannotForecast(f"no context is kept for question {question.id} at {as_of}")
        if moment.context not in self._near:
            found = await book.db.aside(book.context, moment.context)
            if found is None:
                raise CannotForecast(f"context {moment.context[:12]} of question {question.id} is lost")
            self._near[moment.context] = found
            if len(self._near) > REMEMBERED:
                self._near.popitem(last=False)
        return self._near[moment.context]


def under_the_rules(answer: Answer, book: Book, clock: Clock) -> Answer:
    """The same answer, refused where it comes too late, and coherent where exactly one outcome comes true."""

    async def ruled(cell: Cell, emit: Emit) -> Forecast | Failure:
        if (late := await _late(book, cell.question, clock(), "no forecast was made by then")) is not None:
            return _refused(cell, late, emit)
        found = await answer(cell, emit)
        if isinstance(found, Failure):
            return found
        # Whatever was asked for in time and came too late is not taken for what was said in time.
        if (late := await _late(book, cell.question, clock(), "the forecast came later")) is not None:
            return _refused(cell, late, emit)
        if set(found.p) != {target.id for target in cell.question.targets}:
            return _refused(cell, "it answered about other outcomes than were asked", emit)
        return replace(coherent_and_stated(found, cell.question), trial=cell.trial)

    return ruled


def coherent_and_stated(said: Forecast, question: Question) -> Forecast:
    """Exclusive outcomes sum to one, with what was said beside them; all others stay as they are."""
    if said.stated is not None:
        return said
    fitted = fit(question, said.p)
    return said if fitted.p == said.p else replace(said, p=fitted.p, stated=said.p)


async def _late(book: Book, question: Question, now: datetime, told: str) -> str | None:
    moment = await book.db.aside(book.moments.at, question.id, question.due.isoformat())
    if moment is None or moment.deadline is None:
        return f"{MISSED}{question.id} was not asked at {question.due.isoformat()}"
    if now < moment.deadline:
        return None
    return f"{MISSED}the deadline was {moment.deadline.isoformat()}, and {told}"


def _refused(cell: Cell, error: str, emit: Emit) -> Failure:
    emit(Failed(error=error))
    as_of = cell.question.as_of_in("live")
    return Failure(question_id=cell.question.id, forecaster="refused", as_of=as_of, trial=cell.trial, error=error)
