"""Pages as the Internet Archive kept them, at or before a cutoff."""

import asyncio
import json
import re
from datetime import UTC, datetime
from typing import Any

from foretell.questions.clock import AsOf
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.http import Answer, SourceError
from foretell.sources.page import Page, PageUnavailable
from foretell.sources.readable import read

WAYBACK_URL = "https://web.archive.org"
_STAMP = "%Y%m%d%H%M%S"
_REPLAY = re.compile(r"/web/(?P<at>\d{14})[a-z_]*/(?P<url>.+)")


class WaybackPages:
    """Fetches the newest archived version that is not younger than the cutoff.

    The archive answers with a neighbour where it cannot replay what was asked for, so every step is checked again.
    """

    def __init__(self, client: AsyncHttpClient, base_url: str = WAYBACK_URL) -> None:
        self._client = client
        self._url = base_url

    async def fetch(self, url: str, as_of: AsOf) -> Page:
        """The archived page with the moment of its capture, or `PageUnavailable`."""
        if not url.startswith(("http://", "https://")):
            raise PageUnavailable(f"{url}: only http and https addresses are archived")
        try:
            stamp, original = await self._newest(url, as_of)
            answer = await self._client.get(f"{self._url}/web/{stamp}id_/{original}")
        except SourceError as error:
            raise PageUnavailable(str(error)) from None
        steps = [_step(hop) for hop in answer.hops]
        late = [at for at, _ in steps if not as_of.admits(at)]
        if late:
            raise PageUnavailable(f"{url}: the archive led to a version of {max(late):%Y-%m-%d}, after the cutoff")
        kind = answer.headers.get("content-type", "")
        found = await asyncio.to_thread(read, answer.body, kind, url)
        return Page(
            url=url,
            hops=tuple(dict.fromkeys((url, *(address for _, address in steps)))),
            title=found.title,
            text=found.text,
            published=found.published,
            captured=steps[-1][0],
        )

    async def _newest(self, url: str, as_of: AsOf) -> tuple[str, str]:
        params = {"url": url, "filter": "statuscode:200", "output": "json", "fl": "timestamp,original", "limit": "-1"}
        if as_of.mode == "backtest":
            params["to"] = as_of.at.strftime(_STAMP)
        rows = _rows(await self._client.get(f"{self._url}/cdx/search/cdx", params=params))
        if not rows:
            raise PageUnavailable(f"{url}: no version is archived at or before {as_of.at:%Y-%m-%d}")
        stamp, original = rows[-1]
        return stamp, original


def _rows(answer: Answer) -> list[list[str]]:
    """The index's rows without their heading; no capture at all is an empty list."""
    try:
        rows: Any = json.loads(answer.body or b"[]")
        return [[str(stamp), str(original)] for stamp, original in rows[1:]]
    except (ValueError, TypeError, KeyError):
        raise SourceError("the index of captures is not a JSON table of two columns", url=answer.hops[-1]) from None


def _step(hop: str) -> tuple[datetime, str]:
    found = _REPLAY.search(hop)
    if found is None:
        raise PageUnavailable(f"{hop}: the archive led outside itself")
    return datetime.strptime(found["at"], _STAMP).replace(tzinfo=UTC), found["url"]
