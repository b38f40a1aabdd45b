"""Pages of the live web, as text."""

import asyncio

from foretell.questions.clock import AsOf
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.http import SourceError
from foretell.sources.page import Page, PageUnavailable
from foretell.sources.reach import PublicWeb, Resolve
from foretell.sources.readable import read


class WebPages:
    """Fetches a page as it is now, wherever it leads, but never from a private network.

    It always brings today's text, in a backtest too: whether that may be shown is for the fence to say.
    """

    def __init__(self, client: AsyncHttpClient, *, allow_private: bool = False, resolve: Resolve | None = None) -> None:
        self._client = client
        self._web = PublicWeb(allow_private=allow_private, resolve=resolve)

    async def fetch(self, url: str, as_of: AsOf) -> Page:
        """The page, or `PageUnavailable`."""
        headers = {"Accept": "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.1"}
        try:
            answer = await self._client.get(url, headers=headers, admit=self._web.admit)
        except SourceError as error:
            raise PageUnavailable(str(error)) from None
        kind = answer.headers.get("content-type", "")
        found = await asyncio.to_thread(read, answer.body, kind, answer.hops[-1])
        return Page(url=url, hops=answer.hops, title=found.title, text=found.text, published=found.published)
