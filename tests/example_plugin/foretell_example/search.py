"""A search engine with a key."""

from datetime import UTC, datetime

from foretell.data.search.engine import SearchHit
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf


class ExampleNews:
    """Returns the query itself; a real engine would use `config.http`."""

    name = "example_news"
    filters_dates = True
    key_variables = ("EXAMPLE_NEWS_KEY",)

    def __init__(self, config: ServiceConfig) -> None:
        config.http.keep_secret(config.key)
        self._address = config.address or "https://news.example.org"

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return at most `limit` results that were published by the cutoff."""
        published = datetime(2025, 1, 1, tzinfo=UTC)
        hit = SearchHit(url=f"{self._address}/1", title=query, snippet="news", published=published)
        return [hit][:limit] if as_of.admits(published) else []
