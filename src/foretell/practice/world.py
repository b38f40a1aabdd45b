"""What the practice servers know: a handful of dated pages and encyclopedia articles, the same for all of them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from html import escape
from importlib.resources import files
from urllib.parse import urlsplit

from pydantic import TypeAdapter

from foretell.data.search.engine import Dating


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
    return _stored_world()[0]


def sample_world(now: datetime, site: str = "https://news.example", more: Sequence[SampleWebPage] = ()) -> SampleWorld:
    """The same and more; the dates of pages do not move, only ages are counted from `now`."""
    small, stored = _stored_world()
    pages = [*(replace(page, url=site + page.path) for page in [*small.pages, *stored]), *more]
    return SampleWorld(now=now, pages=pages, articles=small.articles)


def _stored_world() -> tuple[SampleWorld, list[SampleWebPage]]:
    """What `sample_world.json` holds: a world, and more pages."""
    body = json.loads(files("foretell.practice").joinpath("sample_world.json").read_text(encoding="utf-8"))
    more = TypeAdapter(list[SampleWebPage]).validate_python(body.pop("more_pages"))
    return TypeAdapter(SampleWorld).validate_python(body), more
