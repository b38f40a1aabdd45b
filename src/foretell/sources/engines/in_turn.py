"""Several engines as one: the next is asked where one fails."""

from collections.abc import Sequence

from foretell.questions.clock import AsOf
from foretell.sources.http import SourceError
from foretell.sources.search import CannotSearch, SearchEngine, SearchHit


class InTurn:
    """Asks engines in their order until one answers. In a backtest only those that can filter by date are asked."""

    def __init__(self, engines: Sequence[SearchEngine]) -> None:
        if not engines:
            raise ValueError("at least one engine is needed")
        self._engines = tuple(engines)

    @property
    def name(self) -> str:
        """All names, in order."""
        return "+".join(engine.name for engine in self._engines)

    @property
    def filters_dates(self) -> bool:
        """Whether any of them can."""
        return any(engine.filters_dates for engine in self._engines)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """The first answer that holds anything; the last failure where all fail."""
        failure: Exception | None = None
        answered = False
        for engine in self._engines:
            if as_of.mode == "backtest" and not engine.filters_dates:
                continue
            try:
                hits = await engine.search(query, as_of, limit)
            except (CannotSearch, SourceError) as error:
                failure = error
                continue
            answered = True
            if hits:
                return hits
        if failure is not None and not answered:
            raise failure
        return []
