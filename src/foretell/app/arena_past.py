"""What an arena has seen come true, for those who learn from it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from foretell.arena import history
from foretell.arena.live.book import Book
from foretell.forecasters.priors import Rates
from foretell.questions.clock import AsOf
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution


class ArenaPast:
    """Questions and outcomes of the arena's own book, read anew when there are more of them."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._made: dict[str, tuple[int, Any]] = {}

    def rate(self, question: Question, target: Target, as_of: AsOf) -> float | None:
        """The base rate of a target; None before anything like it came true."""
        rates: Rates | None = self._known("rates", history.base_rates)
        return None if rates is None else rates.rate(question, target, as_of)

    @property
    def resources(self) -> Mapping[str, Callable[[], Any]]:
        """What forecasters may ask for, each made when the first of them does."""
        return {
            "rates": lambda: self,
            "past": lambda: self._known("past", history.past),
            "bank": lambda: self._known("bank", history.past_questions),
        }

    def _known(self, name: str, make: Callable[[list[Question], list[Resolution]], Any]) -> Any:
        """Made of the first question about every event, and of how it came out."""
        count = self._book.outcome_count()
        if name not in self._made or self._made[name][0] != count:
            settled = {event: row.question for event, row in self._book.selected().items() if row.settled}
            told = [one for one in self._book.outcomes() if one.outcome is not None and one.question_id in settled]
            answered = [replace(one, due=settled[one.question_id].due) for one in told]
            self._made[name] = (count, make(list(settled.values()), answered))
        return self._made[name][1]
