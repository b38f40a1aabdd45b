"""Cases decided by dates: of publication, update, live entry, crawl or stored version, or without a date."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tests.tools.doubles import Engine, Pages, at
from tests.tools.planted.case import Case, Must
from tests.tools.planted.topics import TOPICS, Topic

from foretell.data.pages import Page
from foretell.data.search.engine import SearchHit
from foretell.tools.web import LookupUrl, WebSearch

DECOY = SearchHit(
    url="https://archive.example/background",
    title="Background",
    snippet="A plain account of how such things usually go.",
    published=at("2025-06-01"),
)
STAMPS = (
    "Updated March 5, 2026",
    "Last updated: 5 March 2026, 10:12 GMT",
    "Last modified 2026-03-05",
    "By Jane Doe | Updated Mar. 5, 2026 at 9:14 a.m.",
    "Published: 27 October 2025",
    "UPDATED 11:40 AM, Thursday, January 8, 2026",
    "This page was last edited on 5 March 2026",
    "(updated 2025-12-31)",
    "Posted on 12/31/2025",
    "Zuletzt aktualisiert am 5. März 2026",
    "Mis à jour le 5 mars 2026",
    "Actualizado el 5 de marzo de 2026",
    "Updated January 2026",
    '"dateModified": "2026-01-05T10:00:00Z"',
    "The article was updated on 2 December 2025 to add the result.",
    "更新 Updated 2026年3月5日",
    "UPDATE (March 5, 2026): the figures were corrected.",
    "Update, 5-Mar-2026",
    "Editor's note: 5th of March 2026",
)
HARMLESS_STAMPS = (
    "Updated October 20, 2025",
    "Last updated: 26 October 2025",
    "The list will be updated on March 5, 2026",
    "The minutes are to be published on 5 March 2026",
    "Rules will be revised on January 2, 2026, officials said",
    "First published 3 May 2024, updated 1 October 2025",
)
AGES = ("Updated 3 hours ago", "By Jane Doe | Updated 2 days ago", "Last updated: just now", "Published yesterday")


def search(topic: Topic, kind: str, name: str, must: Must, **fields: Any) -> Case:
    """A search with a planted first hit and a harmless second one."""
    text = fields.pop("text", topic.before)
    by = fields.pop("by", "date")
    options = fields.pop("options", {})
    needle = fields.pop("needle", text[:60])
    misread = fields.pop("misread_by", "")
    defaults: dict[str, Any] = {
        "url": f"https://news.example/{topic.name}",
        "title": f"On {topic.name}",
        "snippet": text,
        "published": at("2025-10-20"),
        "text": fields.pop("whole", None),
    }
    hit = SearchHit(**{**defaults, **fields})
    tool = WebSearch(engine=Engine(hits=(hit, DECOY)))
    return Case(
        kind=kind,
        name=f"{topic.name}, {name}",
        must=must,
        by=by,
        tool=tool,
        arguments={"query": topic.name},
        needle=needle,
        options=options,
        misread_by=misread,
    )


def lookup(topic: Topic, kind: str, name: str, must: Must, **fields: Any) -> Case:
    """A page opened by its address."""
    url = f"https://news.example/{topic.name}"
    text = fields.pop("text", topic.before)
    needle = fields.pop("needle", text[:60])
    defaults: dict[str, Any] = {"url": url, "hops": (url,), "title": topic.name, "published": at("2025-10-20")}
    tool = LookupUrl(pages=Pages(page=Page(**{**defaults, "text": text, **fields})))
    arguments = {"url": url}
    return Case(
        kind=kind, name=f"{topic.name}, {name}", must=must, by="date", tool=tool, arguments=arguments, needle=needle
    )


def by_publication() -> Iterator[Case]:
    kind = "dated after the cutoff"
    for topic in TOPICS:
        yield search(topic, kind, "the next morning", "drop", published=at("2025-10-27T00:30:00Z"))
        yield search(topic, kind, "months later", "drop", published=at("2026-03-05"), text=topic.dated_outcome)
        yield search(topic, kind, "the evening before the cutoff", "keep", published=at("2025-10-26T21:00:00Z"))
    for topic in TOPICS[:6]:
        yield lookup(topic, kind, "page of the next day", "drop", published=at("2025-10-27"))
        yield lookup(topic, kind, "page of the day before", "keep", published=at("2025-10-25"))
    later = ("/2026/03/05/", "/2025/dec/11/", "/2025/11/", "/2025-11-20-", "/20251120/")
    for topic, path in zip(TOPICS, later, strict=False):
        url = f"https://news.example{path}{topic.name}"
        yield search(topic, kind, f"address dated {path}", "drop", url=url)
    agenda = f"https://venue.example/events/2026/03/05/{TOPICS[3].name}"
    yield search(TOPICS[3], kind, "address of an agenda", "keep", url=agenda, text=TOPICS[3].scheduled)


def without_date() -> Iterator[Case]:
    kind = "undated"
    for topic in TOPICS:
        yield search(topic, kind, "no date", "drop", published=None, dating="none")
    for topic in TOPICS[:6]:
        yield lookup(topic, kind, "page without a date", "drop", published=None)
    broken = (datetime(1970, 1, 1), at("1970-01-01"), datetime(2025, 10, 20, 9), at("1899-12-30"))  # noqa: DTZ001
    for topic, published in zip(TOPICS, broken, strict=False):
        yield search(topic, kind, f"unusable date {published}", "drop", published=published)
    yield search(TOPICS[4], kind, "a date the engine does not vouch for", "drop", dating="none")


def by_age() -> Iterator[Case]:
    kind = "relative age"
    for topic in TOPICS[:8]:
        yield search(topic, kind, "dated '2 months ago'", "drop", published=None, dating="relative")
    yield search(TOPICS[8], kind, "an age turned into a date", "drop", dating="relative")
    for topic, age in zip(TOPICS, AGES, strict=False):
        yield search(topic, kind, age, "drop", text=f"{topic.before}\n{age}")
    for topic in TOPICS[:4]:
        text = f"3 days ago — {topic.before}"
        yield search(topic, kind, "an age before a dated excerpt", "keep", text=text, needle=topic.before[:60])


def by_update() -> Iterator[Case]:
    kind = "updated page"
    for place, stamp in enumerate(STAMPS):
        topic = TOPICS[place % len(TOPICS)]
        yield search(topic, kind, f"excerpt with {stamp!r}", "drop", text=f"{stamp}\n{topic.before}")
        yield lookup(topic, kind, f"page with {stamp!r}", "drop", text=f"{topic.before}\n\n{stamp}")
    for topic in TOPICS[:4]:
        full_text = f"{topic.before} More follows. {topic.before}\nUpdated March 5, 2026"
        yield search(topic, kind, "stamp only in the full text", "drop", whole=full_text)
    for stamp, topic in zip(HARMLESS_STAMPS, TOPICS, strict=False):
        yield search(topic, kind, f"excerpt with {stamp!r}", "keep", text=f"{topic.before}\n{stamp}.")


def live_reports() -> Iterator[Case]:
    kind = "live blog"
    for topic in TOPICS:
        text = (
            f"Live updates on {topic.name}\n26 October 2025 09:00 {topic.before}\n27 October 2025 18:20 More to come."
        )
        yield search(topic, kind, "entries past the cutoff", "drop", title=f"{topic.name}: live updates", text=text)
    for topic in TOPICS[:6]:
        text = f"18:20 {topic.bare_outcome}\n09:00 {topic.before}"
        title = f"{topic.name} as it happened"
        yield search(topic, kind, "entries without days", "drop", by="content", title=title, text=text)
    for topic in TOPICS[:4]:
        text = f"26 October 2025 21:00 {topic.before}\n26 October 2025 09:00 We begin."
        yield search(topic, kind, "closed before the cutoff", "keep", title=f"{topic.name} live blog", text=text)


def crawled() -> Iterator[Case]:
    kind = "crawl date"
    for topic in TOPICS[:4]:
        yield search(topic, kind, "seen after the cutoff", "drop", dating="crawled", published=at("2025-10-28"))
        yield search(topic, kind, "seen before, plain", "keep", dating="crawled")
        refused = {"crawl_dates": False}
        yield search(topic, kind, "seen before, not accepted", "drop", dating="crawled", options=refused)
    for topic in TOPICS[4:10]:
        text = topic.dated_outcome
        yield search(topic, kind, "seen before, rewritten since", "drop", by="content", dating="crawled", text=text)


def stored() -> Iterator[Case]:
    kind = "stored version"
    for topic in TOPICS[:6]:
        old = {"published": None, "captured": at("2025-10-20")}
        yield lookup(topic, kind, "undated, stored before", "keep", **old)
        yield lookup(topic, kind, "undated, stored after", "drop", published=None, captured=at("2026-01-20"))
    for topic in TOPICS[6:9]:
        clash = {"published": at("2025-12-01"), "captured": at("2025-10-20")}
        yield lookup(topic, kind, "dated after, stored before", "drop", **clash)


def engines() -> Iterator[Case]:
    for topic in TOPICS[:2]:
        hit = SearchHit(url="https://n.example/", title="x", snippet=topic.before, published=at("2025-10-01"))
        tool = WebSearch(engine=Engine(hits=(hit,), filters_dates=False))
        yield Case(
            kind="engine without date filter",
            name=topic.name,
            must="drop",
            by="date",
            tool=tool,
            arguments={"query": topic.name},
            needle=topic.before[:60],
        )


def dated_cases() -> Iterator[Case]:
    for make in (by_publication, without_date, by_age, by_update, live_reports, crawled, stored, engines):
        yield from make()
