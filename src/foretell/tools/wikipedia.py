"""Reads Wikipedia articles as they stood at the cutoff, from their wikitext."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from foretell.data.http import SourceError
from foretell.data.pages import PageUnavailable
from foretell.data.wikipedia import ArticleRevision, Wikipedia, article_headings, wikitext_to_text
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf
from foretell.tools.addresses import UnreadableAddress, plain_host
from foretell.tools.names import FETCH_WIKIPEDIA
from foretell.tools.tool import SourceItem, ToolFailed, ToolMaterial, optional_text

SITE = "en.wikipedia.org"
MAX_HEADINGS = 60
SPEC = ToolSpec(
    name=FETCH_WIKIPEDIA,
    description=(
        "Read an English Wikipedia article as it stands today. Without a section you get the introduction and the "
        "table of contents; name a section from it to read that part, tables included."
    ),
    parameters={
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "url": {"type": "string", "description": "Its address, instead of the title."},
            "section": {"type": "string", "description": "Number or heading from the table of contents."},
        },
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, kw_only=True)
class FetchWikipedia:
    """Reads revisions. Templates stay unexpanded, because they would be filled with today's values."""

    wikipedia: Wikipedia

    spec = SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the introduction with the table of contents, or one section."""
        title = _title(arguments)
        try:
            revision = await self.wikipedia.revision(title, as_of)
        except (PageUnavailable, SourceError) as error:
            raise ToolFailed(f"The article could not be read: {error}") from error
        item = SourceItem(
            title=revision.title,
            text=_section(revision, optional_text(arguments, "section")),
            url=f"https://{SITE}/wiki/{quote(revision.title.replace(' ', '_'), safe='/:(),')}",
            published=revision.at,
            dating="published",
            captured=revision.at,
        )
        return ToolMaterial(heading=f"Wikipedia, version of {revision.at:%Y-%m-%d %H:%M} UTC:", items=(item,))


def _title(arguments: Mapping[str, Any]) -> str:
    given = optional_text(arguments, "title") or optional_text(arguments, "url")
    if given is None:
        raise ToolFailed("Name the article: give its title or its url.")
    if "://" not in given:
        return given.replace("_", " ")
    parts = urlsplit(given)
    try:
        host = plain_host(parts.hostname or "")
    except UnreadableAddress:
        host = ""
    if host != SITE or not parts.path.startswith("/wiki/"):
        raise ToolFailed(f"Only articles of {SITE} can be read here; give a title or https://{SITE}/wiki/….")
    return unquote(parts.path.removeprefix("/wiki/")).replace("_", " ")


def _section(revision: ArticleRevision, which: str | None) -> str:
    """Return a section by number or heading; without one, the introduction and the table of contents."""
    headings = article_headings(revision.wikitext)
    listed = [f"{one.number} {one.heading}" for one in headings[:MAX_HEADINGS]]
    wanted = which.casefold().strip() if which is not None else ""
    for one in headings:
        names = (one.number, one.heading.casefold(), f"{one.number} {one.heading}".casefold())
        if which is None or wanted in names:
            text = wikitext_to_text(revision.wikitext[one.start : one.end])
            return text if which is not None else "\n".join([f"{text}\n\nSections:", *listed])
    raise ToolFailed(f"The article has no section {which!r}; it has: {', '.join(listed)}.")
