"""Wikipedia as of a date: pages by revision, parsed from their wikitext."""

import html
import re
from datetime import datetime
from urllib.parse import quote, unquote, urlsplit

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.pages import Page, PageUnavailable
from foretell.data.payload import Payload, readable
from foretell.data.search.engine import SearchHit, SearchHits
from foretell.data.service import JsonService, ServiceConfig
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf

# Wikitext to readable text, from the source alone: templates are never looked up, because they are today's.

_TOKENS = pattern(r"\{\{|\}\}|\[\[|\]\]")
_PAIR = {"}}": "{{", "]]": "[["}
HEADING = pattern(r"^(={2,6})[ \t]{0,9}(\S.{0,250}?)[ \t]{0,9}\1[ \t]*(?:<!--.{0,200}?-->[ \t]*)?$", re.MULTILINE)
_DROPPED_TAGS = ("ref", "gallery", "timeline", "imagemap", "score")
_DROPPED_LINKS = ("file:", "image:", "category:", "media:")
_SHOWN_FIRST = frozenset(
    {
        "nowrap", "small", "big", "nobr", "em", "strong", "nobold", "flag", "flagcountry", "flagu", "flagathlete",
        "abbr", "tooltip", "val", "nts", "number", "formatnum", "url", "center",
    }
)  # fmt: skip
_SHOWN_BY_NAME = frozenset({"yes", "no", "partial", "maybe", "pending", "n/a"})
"""Table templates that show their own name if no text is given."""
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
    """Convert wikitext to plain text: links as their labels, infoboxes as lines, tables as rows of cells between bars.

    >>> print(wikitext_to_text("'''Oslo''' is the [[capital city|capital]] of Norway.<ref>x</ref> {{Clear}}"))
    Oslo is the capital of Norway.
    """
    return _plain(_tables(_expanded(source)))


def _expanded(source: str) -> str:
    """Remove comments and references, and replace templates and links with their readable text."""
    text = _without(source, re.compile("<!--"), re.compile("-->"))
    for name in _DROPPED_TAGS:
        text = _without(
            text, re.compile(rf"<{name}\b[^<>]*>", re.IGNORECASE), re.compile(rf"</{name}\s*>", re.IGNORECASE)
        )
    return _expand_templates_and_links(text)


def _plain(text: str) -> str:
    """Remove the remaining markup."""
    text = re.sub(r"\[(?:https?:)?//[^\s\[\]]+\s+([^\[\]\n]*)\]", r"\1", text)
    text = re.sub(r"\[(?:https?:)?//[^\s\[\]]*\]|__[A-Z]+__|'{2,}", "", text)
    text = re.sub(r"<br\s*/?>", "\n", text, flags=re.IGNORECASE)
    text = re.sub(r"</?[a-zA-Z][^<>]*>", "", text)
    text = re.sub(r"^[*#:;]+[ \t]*", "- ", text, flags=re.MULTILINE)
    text = HEADING.sub(lambda m: f"{'#' * len(m[1])} {m[2]}", text)
    return _tidy(html.unescape(text))


def _without(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """Remove everything between two markers. If one is never closed, the rest stays, so that time stays linear."""
    parts: list[str] = []
    at = 0
    while (begun := opening.search(text, at)) is not None:
        ended = begun if begun[0].endswith("/>") else closing.search(text, begun.end())
        if ended is None:
            break
        parts.append(text[at : begun.start()])
        at = ended.end()
    return "".join(parts) + text[at:]


def _expand_templates_and_links(text: str) -> str:
    """Replace templates and links, innermost first, with their readable text."""
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
    name, *arguments = inside.split("|")
    name = " ".join(name.split()).lower()
    if name.startswith("infobox"):
        return _infobox(arguments)
    values = [argument.strip() for argument in arguments if "=" not in argument and argument.strip()]
    if name in _SHOWN_FIRST:
        return "".join(values[:1])
    if name in _SHOWN_BY_NAME:
        return values[0] if values else name.capitalize()
    if name in _SHOWN_SECOND:
        return "".join(values[1:2])
    return " ".join(values) if name in _JOINED else ""


def _infobox(arguments: list[str]) -> str:
    pairs = (argument.split("=", 1) for argument in arguments if "=" in argument)
    rows = [(key.strip().replace("_", " "), " ".join(value.split())) for key, value in pairs]
    return "\n" + "".join(f"{key}: {value}\n" for key, value in rows if value and len(value) < 500)


def _tables(text: str) -> str:
    """Replace every table, innermost first, with one line per row."""
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
            rows[-1] += [_cell(cell) for cell in re.split(r"\|\||!!" if mark == "!" else r"\|\|", rest)]
        elif rows[-1] and line.strip():
            rows[-1][-1] += " " + line.strip()
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows if any(cells))


def _cell(text: str) -> str:
    """Remove the attributes that may precede a single bar in a cell."""
    attributes, bar, rest = text.partition("|")
    return (rest if bar and "=" in attributes else text).strip()


def _tidy(text: str) -> str:
    lines = (re.sub(r"[ \t\u00a0]+", " ", line).strip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


# Tables of an article as rows: rating lists, records, rankings.

_SPAN = pattern(r"\b(row|col)span\s*=\s*[\"']?\s*(\d{1,3})", re.IGNORECASE)
MAX_SPAN = 200


@frozen
class ArticleTable:
    """One table of an article. Every row is as long as the columns; a cell that spans several is repeated in each."""

    section: str
    """The heading above the table; empty in the introduction."""
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> int | None:
        """Return the index of a column by its name, or else by the beginning of its name."""
        wanted = name.casefold()
        names = [column.casefold() for column in self.columns]
        fitting = [
            *(i for i, name in enumerate(names) if name == wanted),
            *(i for i, name in enumerate(names) if wanted and name.startswith(wanted)),
        ]
        return fitting[0] if fitting else None


def article_tables(wikitext: str) -> list[ArticleTable]:
    r"""Return the tables of a page in order, without tables nested in others.

    >>> (table,) = article_tables("== Men ==\n{|\n! Rank !! Player\n|-\n| rowspan=2 | 1 || [[A]]\n|-\n| B\n|}")
    >>> table.section, table.columns, table.rows
    ('Men', ('Rank', 'Player'), (('1', 'A'), ('1', 'B')))
    """
    tables: list[ArticleTable] = []
    lines: list[str] = []
    section, depth = "", 0
    for line in _expanded(wikitext).split("\n"):
        bare = line.lstrip()
        if depth == 0 and (heading := HEADING.fullmatch(line)) is not None:
            section = _plain(heading[2])
        if bare.startswith("{|"):
            depth += 1
        elif bare.startswith("|}") and depth:
            depth -= 1
            if depth == 0:
                tables += [table] if (table := _article_table(section, lines)) is not None else []
                lines = []
        elif depth == 1:
            lines.append(line)
    return tables


def _article_table(section: str, lines: list[str]) -> ArticleTable | None:
    caption, rows = _marked_rows(lines)
    grid = _filled_grid(rows)
    heads = [i for i, row in enumerate(rows) if row and all(head for _, head in row)]
    if not heads or not any(grid):
        return None
    columns = tuple(text for text in grid[heads[0]])
    body = [row for i, row in enumerate(grid) if i > heads[0] and i not in heads and row]
    width = len(columns)
    return ArticleTable(
        section=section,
        caption=caption,
        columns=columns,
        rows=tuple(tuple([*row, *[""] * width][:width]) for row in body),
    )


def _marked_rows(lines: list[str]) -> tuple[str, list[list[tuple[str, bool]]]]:
    """Return the caption, and rows of raw cells, each with whether it is a header cell."""
    caption = ""
    rows: list[list[tuple[str, bool]]] = [[]]
    for line in lines:
        bare = line.strip()
        if bare.startswith("|-"):
            rows.append([])
        elif bare.startswith("|+"):
            caption = _plain(_cell(bare[2:]))
        elif bare[:1] in ("|", "!"):
            cells = re.split(r"\|\||!!" if bare[0] == "!" else r"\|\|", bare[1:])
            rows[-1] += [(cell, bare[0] == "!") for cell in cells]
        elif rows[-1] and bare:
            text, head = rows[-1][-1]
            rows[-1][-1] = (f"{text} {bare}", head)
    return caption, [row for row in rows if row]


def _filled_grid(rows: list[list[tuple[str, bool]]]) -> list[list[str]]:
    """Return the cells by position; those that span several rows or columns are repeated in each."""
    reaching: dict[int, tuple[int, str]] = {}
    grid: list[list[str]] = []
    for row in rows:
        filled: list[str] = []
        waiting = list(row)
        while waiting or len(filled) in reaching:
            place = len(filled)
            if place in reaching:
                left, text = reaching.pop(place)
                filled.append(text)
                if left > 1:
                    reaching[place] = (left - 1, text)
                continue
            raw, _ = waiting.pop(0)
            spans = {kind.lower(): min(int(count), MAX_SPAN) for kind, count in _SPAN.findall(raw.partition("|")[0])}
            text = " ".join(_plain(_cell(raw)).split())
            for _ in range(max(1, spans.get("col", 1))):
                if spans.get("row", 1) > 1:
                    reaching[len(filled)] = (spans["row"] - 1, text)
                filled.append(text)
        grid.append(filled)
    return grid


WIKIPEDIA_URL = "https://en.wikipedia.org"
MAX_REDIRECTS = 3
_REDIRECT = pattern(r"\s*#redirect\s*:?\s*\[\[([^\]|#]+)", re.IGNORECASE)


@frozen
class ArticleRevision:
    """One revision of a page, as wikitext."""

    title: str
    revid: int
    at: datetime
    wikitext: str


@frozen
class ArticleHeading:
    """An entry of the table of contents."""

    number: str
    """Section number: 2, 2.1, 2.1.3. The text before the first heading is 0."""
    heading: str
    start: int
    end: int
    """Offset in the wikitext at which the section ends, with all its subsections."""


class Wikipedia:
    """Reads revisions through the API. Rendered pages are never used, because they show today's templates."""

    facts = "recorded responses of March 2026, Wikimedia's rules for user agents of April 2026"

    def __init__(self, client: AsyncHttpClient, base_url: str = WIKIPEDIA_URL) -> None:
        config = ServiceConfig(http=client, address=base_url)
        self._service = JsonService(config, WIKIPEDIA_URL)

    async def revision(self, title: str, as_of: AsOf) -> ArticleRevision:
        """Return the newest revision at or before the cutoff, following redirects as of then."""
        for _ in range(MAX_REDIRECTS + 1):
            revision = await self._revision(title, as_of)
            led = _REDIRECT.match(revision.wikitext)
            if led is None:
                return revision
            title = led[1].strip()
        raise PageUnavailable(f"{title}: more than {MAX_REDIRECTS} redirects")

    async def section(self, title: str, which: str | int, as_of: AsOf) -> str:
        """Return the text of a section with its subsections, by number or by heading."""
        revision = await self.revision(title, as_of)
        listed = article_headings(revision.wikitext)
        wanted = str(which).strip().casefold()
        for heading in listed:
            if wanted in (heading.number, heading.heading.casefold()):
                return wikitext_to_text(revision.wikitext[heading.start : heading.end])
        known = ", ".join(f"{heading.number} {heading.heading}" for heading in listed[:40])
        raise PageUnavailable(f"{revision.title} has no section {which}; it has: {known}")

    async def tables(self, title: str, as_of: AsOf) -> list[ArticleTable]:
        """Return the tables of an article as of the cutoff."""
        return article_tables((await self.revision(title, as_of)).wikitext)

    async def fetch(self, url: str, as_of: AsOf) -> Page:
        """Return an article by its address, as a page that cannot have changed since its capture."""
        parts = urlsplit(url)
        if not parts.path.startswith("/wiki/") or parts.path == "/wiki/":
            raise PageUnavailable(f"{url}: not the address of an article")
        title = unquote(parts.path.removeprefix("/wiki/")).replace("_", " ")
        revision = await self.revision(title, as_of)
        return Page(
            url=url,
            hops=(url,) if revision.title == title else (url, self._address(revision.title)),
            title=revision.title,
            text=wikitext_to_text(revision.wikitext),
            published=revision.at,
            captured=revision.at,
        )

    async def search(self, query: str, as_of: AsOf, limit: int = 5) -> list[SearchHit]:
        """Find articles that existed at the cutoff. Ranking and titles are today's; a backtest gets no snippets."""
        query_params = {"list": "search", "srsearch": query, "srlimit": str(limit), "srprop": "snippet|timestamp"}
        articles, notes = found_articles(await self._ask(query_params))
        hits: list[SearchHit] = []
        # One after another, as Wikimedia asks clients to do.
        for title, snippet, changed in articles:
            at = changed if as_of.mode == "live" and changed is not None else await self._known_since(title, as_of)
            if at is not None:
                shown = "" if as_of.mode == "backtest" else snippet
                hits.append(SearchHit(url=self._address(title), title=title, snippet=shown, published=at))
        return SearchHits(hits, notes)

    async def _revision(self, title: str, as_of: AsOf) -> ArticleRevision:
        page = await self._page(title, as_of, "ids|timestamp|content")
        revisions = page.rows("revisions")
        if not revisions:
            reason = "does not exist" if page.get("missing") else f"did not exist at {as_of.at:%Y-%m-%d}"
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
        """Return when the revision current at the cutoff was written; None if there was none yet."""
        revisions = (await self._page(title, as_of, "ids|timestamp")).rows("revisions")
        return revisions[0].need("timestamp").time() if revisions else None

    async def _page(self, title: str, as_of: AsOf, what: str) -> Payload:
        query_params = {
            "prop": "revisions",
            "titles": title,
            "rvlimit": "1",
            "rvdir": "older",
            "rvprop": what,
            "rvslots": "main",
        }
        if as_of.mode == "backtest":
            query_params["rvstart"] = f"{as_of.at:%Y-%m-%dT%H:%M:%S}Z"
        return found_page(await self._ask(query_params))

    async def _ask(self, query_params: dict[str, str]) -> Payload:
        params = {"action": "query", "format": "json", "formatversion": "2", **query_params}
        answer = await self._service.read("/w/api.php", params)
        check_refusal(answer)
        return answer

    def _address(self, title: str) -> str:
        return f"{self._service.host}/wiki/{quote(title.replace(' ', '_'), safe='/:(),')}"


def check_refusal(answer: Payload) -> None:
    """Raise `SourceError` with Wikipedia's message if it refused the request, which it does with status 200."""
    if (error := answer.get("error")) is not None:
        raise SourceError(f"Wikipedia refused: {error.optional_text('info')[:200]}", url=answer.url)


def found_page(answer: Payload) -> Payload:
    """Return the only page of a response; older responses list pages under their numbers."""
    pages = answer.need("query", "pages")
    listed = list(pages.members().values()) if isinstance(pages.value, dict) else pages.items()
    return listed[0] if listed else pages.missing()


def found_articles(answer: Payload) -> tuple[list[tuple[str, str, datetime | None]], tuple[str, ...]]:
    """Return title, excerpt and last change of every article found, and a note on rows that cannot be read."""

    def article(row: Payload) -> tuple[str, str, datetime | None]:
        snippet = wikitext_to_text(row.optional_text("snippet"))
        return row.need("title").text(), snippet, row.optional_time("timestamp")

    return readable(answer.need("query", "search").items(), article)


def article_headings(wikitext: str) -> list[ArticleHeading]:
    r"""Return the sections of a page in order, numbered as in a table of contents.

    >>> [(section.number, section.heading) for section in article_headings("Lead\n== A ==\n=== B ===\n== C ==\n")]
    [('0', 'Introduction'), ('1', 'A'), ('1.1', 'B'), ('2', 'C')]
    """
    headings = [(len(m[1]) - 1, wikitext_to_text(m[2]), m.start()) for m in HEADING.finditer(wikitext)]
    ends = [
        next((start for depth, _, start in headings[i + 1 :] if depth <= level), len(wikitext))
        for i, (level, _, _) in enumerate(headings)
    ]
    counts: list[int] = []
    listed = [
        ArticleHeading(number="0", heading="Introduction", start=0, end=headings[0][2] if headings else len(wikitext))
    ]
    for (level, heading, start), end in zip(headings, ends, strict=True):
        counts = [*counts[:level], *[0] * (level - len(counts))]
        counts[level - 1] += 1
        listed.append(ArticleHeading(number=".".join(map(str, counts)), heading=heading, start=start, end=end))
    return listed
