"""Cases decided by addresses: platforms and pages named by a question, in all spellings, and redirects to them."""

from collections.abc import Iterator
from typing import Any

from tests.tools.doubles import Articles, Engine, Pages, at, question
from tests.tools.planted.case import Case, Decider, Must

from foretell.data.pages import Page
from foretell.data.search.engine import SearchHit
from foretell.data.wikipedia import ArticleRevision
from foretell.questions.question import Question
from foretell.tools.web import FetchWikipedia, LookupUrl, WebSearch

WORDS = "The market page with everything on it."
PAGE = "https://stats.example.org/tables/cpi-2025"
NAMING = question(
    source="metaculus",
    text="Will CPI exceed 3 %?",
    criteria=f"Resolves by the table at [{PAGE}]({PAGE}) or by www.agency.example/releases/cpi.",
    background="Compare https://www.reuters.com/markets/cpi-guide and https://lmboard.example/.",
    url="https://www.metaculus.com/questions/20925/cpi/",
)
SPELLINGS = (
    "https://polymarket.com/event/bill",
    "http://www.polymarket.com/event/bill",
    "https://POLYMARKET.com:443/event/bill",
    "https://polymarket.com./event/bill",
    "https://gamma-api.polymarket.com/markets?slug=bill",
    "https://reuters.com@polymarket.com/event/bill",
    "https://user:secret@polymarket.com/event/bill",
    "https://%70olymarket.com/event/bill",
    "https://ｐｏｌｙｍａｒｋｅｔ.com/event/bill",
    "https://polymarket。com/event/bill",
    "https://pоlymarket.com/event/bill",
    f"https://xn--{'pоlymarket'.encode('punycode').decode()}.com/event/bill",
    "https://web.archive.org/web/20260105000000/https://polymarket.com/event/bill",
    "https://web.archive.org/web/2026id_/polymarket.com/event/bill",
    "https://webcache.googleusercontent.com/search?q=cache:abc:polymarket.com/event/bill",
    "https://www.google.com/url?q=https%3A%2F%2Fpolymarket.com%2Fevent%2Fbill&sa=D",
    "https://www.google.com/url?q=https%253A%252F%252Fpolymarket.com%252Fevent",
    "https://www.google.com/amp/s/polymarket.com/event/bill",
    "https://polymarket-com.cdn.ampproject.org/v/s/x/event/bill",
    "https://polymarket-com.translate.goog/event/bill?_x_tr_sl=en",
    "https://translate.google.com/translate?u=https://polymarket.com/event/bill",
    "https://r.jina.ai/https://polymarket.com/event/bill",
    "https://12ft.io/proxy?q=polymarket.com",
    "https://archive.ph/AbC12",
    "https://104.18.34.205/event/bill",
    "https://1746018253/event/bill",
    "https://0x68.0x12.34.205/event/bill",
    "https://[2606:4700::6812:22cd]/event/bill",
    "https://reuters.com\\@polymarket.com/event/bill",
    "https://poly\u200bmarket.com/event/bill",
    "https://poly\u00admarket.com/event/bill",
    "https://polymarket\u2024com/event/bill",
    "https://duckduckgo.com/l/?uddg=https%3A%2F%2Fpolymarket.com%2Fevent",
    "https://kalshi.com/markets/bill",
    "https://manifold.markets/someone/bill",
    "https://www.metaculus.com/questions/1/",
    "https://www.randforecastinginitiative.org/questions/1",
    "https://www.gjopen.com/questions/1",
    "https://raw.githubusercontent.com/forecastingresearch/forecastbench-datasets/main/x.json",
)
NAMED = (
    PAGE,
    PAGE + "/",
    PAGE.replace("https", "http") + "?utm_source=x#table",
    "https://stats.example.org/tables/cpi-2025/november",
    "https://stats.example.org/Tables/CPI%2D2025",
    "https://web.archive.org/web/2026/" + PAGE,
    "https://agency.example/releases/cpi",
    "https://m.agency.example/releases/cpi/amp",
    "https://lmboard.example/overall",
)
ELSEWHERE = (
    "https://stats.example.org/tables/ppi-2025",
    "https://www.reuters.com/markets/another-story",
    "https://agency.example/press/2025",
    "https://www.reuters.com/markets/why-polymarket-traders-care",
    "https://example.org/compare?with=cpi",
)
LIVE_PAGES = {
    "acled": "https://acleddata.com/explorer/",
    "fred": "https://fred.stlouisfed.org/series/DGS10",
    "yfinance": "https://finance.yahoo.com/quote/AAPL/history",
    "dbnomics": "https://db.nomics.world/meteofrance/TEMPERATURE/celsius.07607.D",
    "wikipedia": "https://ratings.fide.com/top_lists.phtml",
}


def opened(kind: str, name: str, must: Must, url: str, about: Question, **fields: Any) -> Case:
    by: Decider = fields.pop("by", "address")
    page = Page(**{**_page(url), **fields})
    tool = LookupUrl(pages=Pages(page=page))
    return Case(
        kind=kind, name=name, must=must, by=by, tool=tool, arguments={"url": url}, needle=WORDS[:30], about=about
    )


def _page(url: str) -> dict[str, Any]:
    return {"url": url, "hops": (url,), "title": "Page", "text": WORDS, "published": at("2025-10-20")}


def search_hit(kind: str, name: str, must: Must, url: str, about: Question, **fields: Any) -> Case:
    by: Decider = fields.pop("by", "address")
    defaults: dict[str, Any] = {"url": url, "title": "Hit", "snippet": WORDS, "published": at("2025-10-20")}
    tool = WebSearch(engine=Engine(hits=(SearchHit(**{**defaults, **fields}),)))
    return Case(
        kind=kind, name=name, must=must, by=by, tool=tool, arguments={"query": "x"}, needle=WORDS[:30], about=about
    )


def platforms() -> Iterator[Case]:
    kind = "platform address"
    for url in SPELLINGS:
        yield search_hit(kind, f"found {url}", "drop", url, NAMING)
        yield opened(kind, f"opened {url}", "drop", url, NAMING)


def named_pages() -> Iterator[Case]:
    kind = "resolution address in the text"
    for url in NAMED:
        yield search_hit(kind, f"found {url}", "drop", url, NAMING)
        yield opened(kind, f"opened {url}", "drop", url, NAMING)
    for url in ELSEWHERE:
        yield search_hit(kind, f"found {url}", "keep", url, NAMING)
        yield opened(kind, f"opened {url}", "keep", url, NAMING)
    yield opened(kind, "stored before the cutoff", "keep", PAGE, NAMING, captured=at("2025-10-01"))
    for source, url in LIVE_PAGES.items():
        about = question(source=source)
        yield search_hit(kind, f"live data of {source}, found", "drop", url, about)
        yield opened(kind, f"live data of {source}, opened", "drop", url, about)
    yield search_hit(
        kind, "a weekly report of acled", "keep", "https://acleddata.com/2025/10/20/week", question(source="acled")
    )


def redirects() -> Iterator[Case]:
    kind = "redirect"
    start = "https://short.example/x"
    for url in (*SPELLINGS[:6], SPELLINGS[12], SPELLINGS[24], "https://kalshi.com/markets/bill", PAGE, NAMED[6]):
        hops = (start, url)
        yield opened(kind, f"to {url}", "drop", start, NAMING, hops=hops)
        passing = (start, url, "https://calm.example/end")
        yield opened(kind, f"by way of {url}", "drop", start, NAMING, hops=passing)
    for short in ("https://bit.ly/3abc", "https://t.co/abc", "https://news.google.com/rss/articles/CBMiabc"):
        yield search_hit(kind, f"unresolved {short}", "drop", short, NAMING)
    for url in ELSEWHERE[:3]:
        yield opened(kind, f"to {url}", "keep", start, NAMING, hops=(start, url))
    yield opened(
        kind,
        "a short link that led somewhere",
        "keep",
        "https://bit.ly/3abc",
        NAMING,
        hops=("https://bit.ly/3abc", ELSEWHERE[0]),
    )
    yield opened(
        kind,
        "to a page dated after the cutoff",
        "drop",
        start,
        NAMING,
        hops=(start, "https://n.example/2026/01/05/x"),
        by="date",
    )


def encyclopedia() -> Iterator[Case]:
    kind = "template transclusion"
    rendered = (
        "https://en.wikipedia.org/w/index.php?title=Elo&oldid=123",
        "https://en.m.wikipedia.org/w/index.php?oldid=123",
        "https://en.wikipedia.org/api/rest_v1/page/html/Elo/123",
        "https://de.wikipedia.org/w/index.php?title=Elo&oldid=77",
    )
    for url in rendered:
        old = {"captured": at("2025-10-01"), "published": at("2025-10-01")}
        yield opened(kind, f"revision drawn today, opened {url}", "drop", url, question(), **old)
        stored = {"text": WORDS, "text_as_of": at("2025-10-01")}
        yield search_hit(kind, f"revision drawn today, found {url}", "drop", url, question(), by="date", **stored)
    for url in (
        "https://en.wikipedia.org/wiki/Elo",
        "https://www.wikiwand.com/en/Elo",
        "https://chess.fandom.com/wiki/Elo",
    ):
        yield search_hit(kind, f"living page {url}", "drop", url, question(), by="date")
    article = "https://en.wikipedia.org/wiki/FIDE_rankings"
    about = question(source="wikipedia", url=article, criteria=f"See {article}.")
    for day, must in (
        ("2025-10-20", "keep"),
        ("2025-10-26T23:59:00Z", "keep"),
        ("2025-10-27T00:01:00Z", "drop"),
        ("2026-02-01", "drop"),
    ):
        revision = ArticleRevision(
            title="FIDE rankings", revid=1, at=at(day), wikitext=WORDS + " {{Current Elo|Carlsen}}"
        )
        tool = FetchWikipedia(wikipedia=Articles(revision_=revision))
        for name, arguments in (("by title", {"title": "FIDE rankings"}), ("by address", {"url": article})):
            yield Case(
                kind=kind,
                name=f"source text of {day} {name}",
                must=must,
                by="date" if name == "by title" and must == "keep" else "address",
                tool=tool,
                arguments=arguments,
                needle=WORDS[:30],
                about=about,
            )


def address_cases() -> Iterator[Case]:
    for make in (platforms, named_pages, redirects, encyclopedia):
        yield from make()
