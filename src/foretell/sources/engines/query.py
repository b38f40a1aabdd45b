"""What every engine does with a question before it is sent, and with pages of results after."""

from collections.abc import Awaitable, Callable

from foretell.sources.search import CannotSearch, SearchHit


def sendable(query: str, *, max_chars: int, max_words: int | None = None) -> str:
    """The query on one line, or `CannotSearch` with what to change.

    >>> sendable("  rate  cut ", max_chars=400)
    'rate cut'
    """
    words = query.split()
    line = " ".join(words)
    if not line:
        raise CannotSearch("the query is empty; write what to look for")
    if len(line) > max_chars:
        raise CannotSearch(f"the query has {len(line)} characters and at most {max_chars} are allowed; shorten it")
    if max_words is not None and len(words) > max_words:
        raise CannotSearch(f"the query has {len(words)} words and at most {max_words} are allowed; shorten it")
    return line


async def gathered(
    page: Callable[[int], Awaitable[list[SearchHit]]], *, limit: int, size: int, most: int
) -> list[SearchHit]:
    """Pages one after another, each address once, until `limit` hits are there or the engine has no more.

    `size` is how many a full page holds and `most` how many pages may be asked for.
    """
    hits: dict[str, SearchHit] = {}
    for number in range(most):
        found = await page(number)
        for hit in found:
            hits.setdefault(hit.url, hit)
        if len(hits) >= limit or len(found) < size:
            break
    return list(hits.values())[:limit]
