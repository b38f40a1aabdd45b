"""What the practice servers know: a handful of dated pages and encyclopedia articles, the same for all of them."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from urllib.parse import urlsplit

from foretell.data.search.engine import Dating
from foretell.questions.as_of import instant


@dataclass(frozen=True, kw_only=True)
class PageVersion:
    """A page or an article as it was from a moment on."""

    at: datetime
    text: str


@dataclass(frozen=True, kw_only=True)
class SampleWebPage:
    """A page of the practice web."""

    url: str
    title: str
    text: str
    """As it is now."""
    published: datetime | None = None
    updated: datetime | None = None
    shown: Dating = "published"
    """How engines show its date: stated, as an age, or not at all."""
    crawled: datetime | None = None
    versions: tuple[PageVersion, ...] = ()
    """What archives hold of it, oldest first."""

    @property
    def path(self) -> str:
        """Where it lies on its site."""
        return urlsplit(self.url).path

    def html(self, text: str | None = None) -> str:
        """As a web page, with its dates in the head."""
        dates = (("article:published_time", self.published), ("article:modified_time", self.updated))
        metas = "".join(f'<meta property="{name}" content="{at.isoformat()}">' for name, at in dates if at is not None)
        paragraphs = "".join(f"<p>{escape(part)}</p>" for part in (text or self.text).split("\n"))
        return (
            f'<!doctype html><html><head><meta charset="utf-8"><title>{escape(self.title)}</title>{metas}</head>'
            f"<body><article><h1>{escape(self.title)}</h1>{paragraphs}</article></body></html>"
        )


@dataclass(kw_only=True)
class SampleWorld:
    """Pages and articles, and the day it is there."""

    now: datetime
    pages: list[SampleWebPage] = field(default_factory=list[SampleWebPage])
    articles: dict[str, list[PageVersion]] = field(default_factory=dict[str, list[PageVersion]])
    """Encyclopedia articles by title, versions oldest first."""

    def find(self, query: str, *, until: datetime | None = None) -> list[SampleWebPage]:
        """Pages sharing a word with the query, the most words first; with `until`, none that is dated later."""
        words = set(re.findall(r"\w+", query.casefold()))
        scored = [
            (len(words & set(re.findall(r"\w+", f"{page.title} {page.text}".casefold()))), page) for page in self.pages
        ]
        found = [page for score, page in sorted(scored, key=lambda one: -one[0]) if score]
        return [page for page in found if until is None or page.published is None or page.published <= until]

    def age(self, page: SampleWebPage) -> str:
        """How long ago it was published, as engines put it."""
        days = (self.now - page.published).days if page.published else 0
        return f"{days} days ago"


def version_at(versions: list[PageVersion] | tuple[PageVersion, ...], at: datetime | None) -> PageVersion | None:
    """The newest version not later than a moment."""
    fitting = [one for one in versions if at is None or one.at <= at]
    return fitting[-1] if fitting else None


def small_world() -> SampleWorld:
    """A few pages around one topic, with every kind of date an engine can meet."""
    return SampleWorld(now=instant("2026-10-01"), pages=_pages("https://news.example"), articles=_articles())


def _pages(site: str) -> list[SampleWebPage]:
    return [
        SampleWebPage(
            url=f"{site}/rates-held",
            title="Norges Bank holds rates",
            text="The central bank of Norway kept its rate at four per cent — «som ventet». More in September.",
            published=instant("2026-06-18T09:30:00Z"),
            crawled=instant("2026-06-18T10:00:00Z"),
            versions=(
                PageVersion(at=instant("2026-06-18T12:00:00Z"), text="The central bank kept its rate. First version."),
                PageVersion(at=instant("2026-09-20T12:00:00Z"), text="Update: the bank has since cut its rate."),
            ),
        ),
        SampleWebPage(
            url=f"{site}/rates-cut",
            title="Norges Bank cuts its rate",
            text="The central bank of Norway cut its rate to three and a half per cent in September.",
            published=instant("2026-09-17T08:00:00Z"),
            crawled=instant("2026-09-17T09:00:00Z"),
        ),
        SampleWebPage(
            url=f"{site}/rates-aged",
            title="Analysts on the rate path",
            text="Analysts expect the central bank to cut its rate once this year.",
            published=instant("2026-05-02"),
            crawled=instant("2026-05-03"),
            shown="relative",
        ),
        SampleWebPage(
            url=f"{site}/rates-undated",
            title="What is a policy rate?",
            text="A policy rate is the rate a central bank sets. Nobody dated this page.",
            shown="none",
        ),
    ]


def _articles() -> dict[str, list[PageVersion]]:
    return {
        "Norges Bank": [
            PageVersion(
                at=instant("2020-01-01T00:00:00Z"), text="'''Norges Bank''' is the [[central bank]] of Norway.\n"
            ),
            PageVersion(
                at=instant("2026-06-20T00:00:00Z"),
                text="'''Norges Bank''' held its rate.\n== Policy ==\nHeld.\n"
                "=== Meetings ===\nJune.\n== History ==\n1816.\n",
            ),
            PageVersion(
                at=instant("2026-09-18T00:00:00Z"), text="'''Norges Bank''' cut its rate.\n== Policy ==\nCut.\n"
            ),
        ],
        "2026 rate cut": [PageVersion(at=instant("2026-09-17T12:00:00Z"), text="The '''2026 rate cut''' surprised.")],
        "Bank of Norway": [PageVersion(at=instant("2019-01-01T00:00:00Z"), text="#REDIRECT [[Norges Bank]]")],
    }
