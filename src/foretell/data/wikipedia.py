"""Wikipedia as it stood at a date: pages by revision, read from their source."""

import asyncio
import html
import re
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, unquote, urlsplit

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.pages import Page, PageUnavailable
from foretell.data.payload import Payload
from foretell.data.search.engine import SearchHit
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf

# Wikitext to readable text, from the source alone: what a template would show today is never looked up.

_TOKENS = re.compile(r"\{\{|\}\}|\[\[|\]\]")
_PAIR = {"}}": "{{", "]]": "[["}
HEADING = re.compile(r"^(={2,6})[ \t]{0,9}(\S.{0,250}?)[ \t]{0,9}\1[ \t]*(?:<!--.{0,200}?-->[ \t]*)?$", re.MULTILINE)
_DROPPED_TAGS = ("ref", "gallery", "timeline", "imagemap", "score")
_DROPPED_LINKS = ("file:", "image:", "category:", "media:")
_SHOWN_FIRST = frozenset(
    {
        "nowrap", "small", "big", "nobr", "em", "strong", "nobold", "flag", "flagcountry", "flagu", "abbr",
        "tooltip", "val", "nts", "number", "formatnum", "url", "center",
    }
)  # fmt: skip
_SHOWN_SECOND = frozenset(
    {
        "lang", "transl", "color", "font color", "sort",
    }
)  # fmt: skip
_JOINED = frozenset(
    {
        "convert", "cvt", "start date", "end date", "start date and age", "end date and age", "birth date",
        "birth date and age", "death date", "death date and age", "dts", "date", "as of", "us$", "usd", "eur", "gbp",
        "hlist", "flatlist", "unbulleted list", "ubl", "plainlist", "sortname",
    }
)  # fmt: skip


def wikitext_to_text(source: str) -> str:
    """The text of a page: links by their label, infoboxes as lines, tables as rows of cells between bars.

    >>> print(wikitext_to_text("'''Oslo''' is the [[capital city|capital]] of Norway.<ref>x</ref> {{Clear}}"))
    Oslo is the capital of Norway.
    """
    text = _without(source, re.compile("<!--"), re.compile("-->"))
    for name in _DROPPED_TAGS:
        text = _without(
            text, re.compile(rf"<{name}\b[^<>]*>", re.IGNORECASE), re.compile(rf"</{name}\s*>", re.IGNORECASE)
        )
    text = _tables(_expand_templates_and_links(text))
    text = re.sub(r"\[(?:https?:)?//[^\s\[\]]+\s+([^\[\]\n]*)\]", r"\1", text)
    text = re.sub(r"\[(?:https?:)?//[^\s\[\]]*\]|__[A-Z]+__|'{2,}", "", text)
    text = re.sub(r"<br\s*/?>", "\n", text, flags=re.IGNORECASE)
    text = re.sub(r"</?[a-zA-Z][^<>]*>", "", text)
    text = re.sub(r"^[*#:;]+[ \t]*", "- ", text, flags=re.MULTILINE)
    text = HEADING.sub(lambda m: f"{'#' * len(m[1])} {m[2]}", text)
    return _tidy(html.unescape(text))


def _without(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """Without what stands between two marks. Where one is never closed the rest stays, so that time stays linear."""
    kept: list[str] = []
    at = 0
    while (begun := opening.search(text, at)) is not None:
        ended = begun if begun[0].endswith("/>") else closing.search(text, begun.end())
        if ended is None:
            break
        kept.append(text[at : begun.start()])
        at = ended.end()
    return "".join(kept) + text[at:]


def _expand_templates_and_links(text: str) -> str:
    """Templates and links from the inside out, each replaced by what can be read of it."""
    open_: list[tuple[str, list[str]]] = [("", [])]
    at = 0
    for token in _TOKENS.finditer(text):
        open_[-1][1].append(text[at : token.start()])
        at = token.end()
        kind = token[0]
        if kind in _PAIR.values():
            open_.append((kind, []))
        elif open_[-1][0] == _PAIR[kind]:
            inside = "".join(open_.pop()[1])
            open_[-1][1].append(_template(inside) if kind == "}}" else _link(inside))
        else:
            open_[-1][1].append(kind)
    open_[-1][1].append(text[at:])
    return "".join(opener + "".join(parts) for opener, parts in open_)


def _link(inside: str) -> str:
    target, *labels = inside.split("|")
    if target.strip().lower().startswith(_DROPPED_LINKS):
        return ""
    return (labels[-1] if labels else target).strip().lstrip(":")


def _template(inside: str) -> str:
    name, *given = inside.split("|")
    name = " ".join(name.split()).lower()
    if name.startswith("infobox"):
        return _infobox(given)
    values = [one.strip() for one in given if "=" not in one and one.strip()]
    if name in _SHOWN_FIRST:
        return "".join(values[:1])
    if name in _SHOWN_SECOND:
        return "".join(values[1:2])
    return " ".join(values) if name in _JOINED else ""


def _infobox(given: list[str]) -> str:
    pairs = (one.split("=", 1) for one in given if "=" in one)
    rows = [(key.strip().replace("_", " "), " ".join(value.split())) for key, value in pairs]
    return "\n" + "".join(f"{key}: {value}\n" for key, value in rows if value and len(value) < 500)


def _tables(text: str) -> str:
    """Every table, innermost first, as one line per row."""
    while (end := text.find("\n|}")) >= 0 and (start := text.rfind("{|", 0, end)) >= 0:
        text = text[:start] + _rows(text[start + 2 : end]) + text[end + 3 :]
    return text


def _rows(table: str) -> str:
    rows: list[list[str]] = [[]]
    for line in table.split("\n")[1:]:
        mark, rest = line.lstrip()[:1], line.lstrip()[1:]
        if line.lstrip().startswith("|-"):
            rows.append([])
        elif line.lstrip().startswith("|+"):
            rows[-1:] = [[_cell(rest[1:])], []]
        elif mark in ("|", "!") and mark:
            rows[-1] += [_cell(one) for one in re.split(r"\|\||!!" if mark == "!" else r"\|\|", rest)]
        elif rows[-1] and line.strip():
            rows[-1][-1] += " " + line.strip()
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows if any(cells))


def _cell(text: str) -> str:
    """Without the attributes that may stand before a single bar."""
    attributes, bar, rest = text.partition("|")
    return (rest if bar and "=" in attributes else text).strip()


def _tidy(text: str) -> str:
    lines = (re.sub(r"[ \t\u00a0]+", " ", line).strip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


WIKIPEDIA_URL = "https://en.wikipedia.org"
MAX_REDIRECTS = 3
_REDIRECT = re.compile(r"\s*#redirect\s*:?\s*\[\[([^\]|#]+)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ArticleRevision:
    """One version of a page, as its authors wrote it."""

    title: str
    revid: int
    at: datetime
    wikitext: str


@dataclass(frozen=True, kw_only=True)
class ArticleHeading:
    """A line of the table of contents."""

    number: str
    """As in a book: 2, 2.1, 2.1.3. The text before the first heading is 0."""
    heading: str
    start: int
    end: int
    """Where the section with all its subsections ends in the wikitext."""


class Wikipedia:
    """Reads revisions through the API. Rendered pages are never used: they show today's templates."""

    def __init__(self, client: AsyncHttpClient, base_url: str = WIKIPEDIA_URL) -> None:
        config = ServiceConfig(http=client, address=base_url)
        self._service = JsonService(config, WIKIPEDIA_URL, per_second=20.0, burst=10)

    async def revision(self, title: str, as_of: AsOf) -> ArticleRevision:
        """The newest version at or before the cutoff, following redirects as they stood then."""
        for _ in range(MAX_REDIRECTS + 1):
            found = await self._revision(title, as_of)
            led = _REDIRECT.match(found.wikitext)
            if led is None:
                return found
            title = led[1].strip()
        raise PageUnavailable(f"{title}: more than {MAX_REDIRECTS} redirects")

    async def contents(self, title: str, as_of: AsOf) -> list[ArticleHeading]:
        """The table of contents, beginning with the introduction as number 0."""
        return article_headings((await self.revision(title, as_of)).wikitext)

    async def section(self, title: str, which: str | int, as_of: AsOf) -> str:
        """The text of a section with its subsections, by number or by heading."""
        found = await self.revision(title, as_of)
        listed = article_headings(found.wikitext)
        wanted = str(which).strip().casefold()
        for one in listed:
            if wanted in (one.number, one.heading.casefold()):
                return wikitext_to_text(found.wikitext[one.start : one.end])
        known = ", ".join(f"{one.number} {one.heading}" for one in listed[:40])
        raise PageUnavailable(f"{found.title} has no section {which}; it has: {known}")

    async def fetch(self, url: str, as_of: AsOf) -> Page:
        """An article by its address, as a page that cannot have changed since its capture."""
        parts = urlsplit(url)
        if not parts.path.startswith("/wiki/") or parts.path == "/wiki/":
            raise PageUnavailable(f"{url}: not the address of an article")
        title = unquote(parts.path.removeprefix("/wiki/")).replace("_", " ")
        found = await self.revision(title, as_of)
        return Page(
            url=url,
            hops=(url,) if found.title == title else (url, self._address(found.title)),
            title=found.title,
            text=wikitext_to_text(found.wikitext),
            published=found.at,
            captured=found.at,
        )

    async def search(self, query: str, as_of: AsOf, limit: int = 5) -> list[SearchHit]:
        """Articles that existed at the cutoff. Ranking and titles are today's; in a backtest no snippet is given."""
        asked = {"list": "search", "srsearch": query, "srlimit": str(limit), "srprop": "snippet"}
        rows = (await self._ask(asked)).need("query", "search").items()
        known = await asyncio.gather(*(self._known_since(row.need("title").text(), as_of) for row in rows))
        return [
            SearchHit(
                url=self._address(row.need("title").text()),
                title=row.need("title").text(),
                snippet="" if as_of.mode == "backtest" else wikitext_to_text(row.need("snippet").text()),
                published=at,
            )
            for row, at in zip(rows, known, strict=True)
            if at is not None
        ]

    async def _revision(self, title: str, as_of: AsOf) -> ArticleRevision:
        page = await self._page(title, as_of, "ids|timestamp|content")
        revisions = page.rows("revisions")
        if not revisions:
            reason = "is not there" if page.get("missing") else f"did not exist at {as_of.at:%Y-%m-%d}"
            raise PageUnavailable(f"the article {title!r} {reason}")
        revision = revisions[0]
        content = revision.need("slots", "main").get("content")
        if content is None:
            raise PageUnavailable(f"the version of {title!r} at that date is hidden")
        return ArticleRevision(
            title=page.need("title").text(),
            revid=int(revision.need("revid").number()),
            at=revision.need("timestamp").time(),
            wikitext=content.text(),
        )

    async def _known_since(self, title: str, as_of: AsOf) -> datetime | None:
        """When the version current at the cutoff was written; None where there was no version yet."""
        revisions = (await self._page(title, as_of, "ids|timestamp")).rows("revisions")
        return revisions[0].need("timestamp").time() if revisions else None

    async def _page(self, title: str, as_of: AsOf, what: str) -> Payload:
        asked = {
            "prop": "revisions",
            "titles": title,
            "rvlimit": "1",
            "rvdir": "older",
            "rvprop": what,
            "rvslots": "main",
        }
        if as_of.mode == "backtest":
            asked["rvstart"] = f"{as_of.at:%Y-%m-%dT%H:%M:%S}Z"
        pages = (await self._ask(asked)).need("query", "pages")
        return pages.items()[0] if pages.items() else pages.missing()

    async def _ask(self, asked: dict[str, str]) -> Payload:
        params = {"action": "query", "format": "json", "formatversion": "2", **asked}
        answer = await self._service.read("/w/api.php", params)
        if (error := answer.get("error")) is not None:
            message = self._service.http.redact(error.need("info").text()[:200])
            raise SourceError(f"Wikipedia refused: {message}", url=answer.url)
        return answer

    def _address(self, title: str) -> str:
        return f"{self._service.host}/wiki/{quote(title.replace(' ', '_'), safe='/:(),')}"


def article_headings(wikitext: str) -> list[ArticleHeading]:
    r"""The sections of a page in order, numbered as in a table of contents.

    >>> [(one.number, one.heading) for one in article_headings("Lead\n== A ==\n=== B ===\n== C ==\n")]
    [('0', 'Introduction'), ('1', 'A'), ('1.1', 'B'), ('2', 'C')]
    """
    found = [(len(m[1]) - 1, wikitext_to_text(m[2]), m.start()) for m in HEADING.finditer(wikitext)]
    ends = [
        next((start for depth, _, start in found[i + 1 :] if depth <= level), len(wikitext))
        for i, (level, _, _) in enumerate(found)
    ]
    counts: list[int] = []
    listed = [ArticleHeading(number="0", heading="Introduction", start=0, end=found[0][2] if found else len(wikitext))]
    for (level, heading, start), end in zip(found, ends, strict=True):
        counts = [*counts[:level], *[0] * (level - len(counts))]
        counts[level - 1] += 1
        listed.append(ArticleHeading(number=".".join(map(str, counts)), heading=heading, start=start, end=end))
    return listed
