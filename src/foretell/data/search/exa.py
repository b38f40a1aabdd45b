"""Exa: results by meaning with their text, on request as the page stood at a past moment."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from foretell.data.dates import parse_stated_date
from foretell.data.http import AsyncHttpClient
from foretell.data.payload import Payload
from foretell.data.search.engine import (
    SearchHit,
    address_field,
    clean_query,
    optional_text_field,
    text_field,
    text_list_field,
)
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf

EXA_URL = "https://api.exa.ai"
MAX_RESULTS = 100
SNIPPET = 600
SNAPSHOT_WINDOW = timedelta(days=150)
"""How far back stored versions of pages reach."""


class ExaSearch:
    """Search with page text. Its date filter leaves out pages that state no date."""

    name = "exa"
    filters_dates = True
    key_variables = ("EXA_API_KEY",)

    def __init__(
        self,
        client: AsyncHttpClient,
        key: str,
        base_url: str = EXA_URL,
        *,
        snapshots: bool = False,
        now: Callable[[], datetime] | None = None,
        max_characters: int = 10_000,
    ) -> None:
        """With `snapshots`, backtests read stored versions; `now` tells which cutoffs are recent enough for that."""
        client.keep_secret(key)
        if snapshots:
            client.pace(base_url, per_second=10.0, burst=5)
        self._client = client
        self._key = key
        self._url = f"{base_url}/search"
        self._snapshots = snapshots
        self._now = now
        self._max_characters = max_characters

    @classmethod
    def open(cls, config: ServiceConfig) -> "ExaSearch":
        """As the registry opens it."""
        return cls(config.http, config.key, config.address or EXA_URL, snapshots=True, now=lambda: datetime.now(UTC))

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in Exa's order."""
        body = self._body(clean_query(query, max_chars=2_000), as_of, min(limit, MAX_RESULTS))
        answer = Payload.of(await self._client.post(self._url, json=body, headers={"x-api-key": self._key}), self._url)
        missing = _not_stored(answer)
        return [_hit(one, missing) for one in answer.need("results").items()][:limit]

    def _body(self, query: str, as_of: AsOf, limit: int) -> dict[str, Any]:
        contents: dict[str, Any] = {"text": {"maxCharacters": self._max_characters}}
        body: dict[str, Any] = {"query": query, "numResults": limit, "type": "auto", "contents": contents}
        if as_of.mode == "live":
            return body
        moment = f"{as_of.at:%Y-%m-%dT%H:%M:%S}.{as_of.at.microsecond // 1000:03d}Z"
        body["endPublishedDate"] = moment
        if self._stored_versions_reach(as_of):
            contents["snapshotAsOf"] = moment
        else:
            # Never fetch the page anew: today's text is further from the cutoff than a cached one.
            contents["maxAgeHours"] = -1
        return body

    def _stored_versions_reach(self, as_of: AsOf) -> bool:
        return self._snapshots and (self._now is None or as_of.at >= self._now() - SNAPSHOT_WINDOW)


def _not_stored(answer: Payload) -> set[str]:
    found = answer.get("statuses")
    if found is None:
        return set()
    return {
        optional_text_field(one, "id") or "" for one in found.items() if optional_text_field(one, "status") == "error"
    }


def _hit(one: Payload, missing: set[str]) -> SearchHit:
    published, dating = parse_stated_date(optional_text_field(one, "publishedDate"))
    url = address_field(one, "url")
    body = None if missing & {url, optional_text_field(one, "id")} else optional_text_field(one, "text") or None
    captured = (
        parse_stated_date(optional_text_field(one, "snapshotAt"))[0]
        or parse_stated_date(optional_text_field(one, "crawlDate"))[0]
    )
    highlights = "\n".join(text_list_field(one, "highlights"))
    return SearchHit(
        url=url,
        title=text_field(one, "title"),
        snippet=highlights or (body or "")[:SNIPPET],
        published=published,
        dating=dating,
        text=body,
        text_as_of=captured if body is not None else None,
    )
