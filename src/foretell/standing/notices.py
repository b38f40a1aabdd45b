"""Notices of changed forecasts: a line in the terminal, an entry of an Atom feed, a signed POST to a webhook.

Every notice has an id that depends only on the question and its look. It is stored before it is sent, and afterwards
how that went, so that a look gives one notice. If the process dies in between, it is sent once more with the same id.
What a webhook does not accept stays in a queue and is posted again later, so that no look waits for it.
"""

import asyncio
import hashlib
import hmac
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree

from foretell.data.files import write_atomically
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.pages import PageUnavailable, PublicAddressGuard
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.outgoing.public_address import leads_inside
from foretell.patterns import pattern
from foretell.questions.as_of import Clock
from foretell.questions.errors import InputError
from foretell.questions.file_lock import locked
from foretell.runs.settings import Settings, clock_of
from foretell.standing.record import Look, QuestionRecord, StandingBelief, StandingQuestion
from foretell.standing.store import DAMAGED, NoticeChannel, QueuedNotice, StandingStore

ID_HEADER = "Foretell-Notice"
TIME_HEADER = "Foretell-Timestamp"
SIGNATURE_HEADER = "Foretell-Signature"
LARGEST_AGE = 600.0
"""Seconds after which a receiver should reject a signature. Every attempt is signed anew."""
WEBHOOK_LIMITS = HttpLimits(connect_seconds=5.0, read_seconds=10.0, total_seconds=20.0, max_bytes=100_000, attempts=1)
"""Limits of one attempt."""
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 480, 1440))
"""Pause after each attempt at a webhook; a notice that fails once more is given up."""
FINAL = range(300, 500)
BUSY = (408, 425, 429)
"""Answers of a server that repeating the notice does not change, but for those that only ask to wait."""
AWAY = (None, *BUSY, 502, 503, 504)
"""No answer, or one that is no answer to this notice: another would get the same now."""
MOST_NEWS = 10
LONGEST_TEXT = 1000
"""Maximum number of characters of a text in a notice."""


class NoticeWatcher(Protocol):
    """What notices need of the process that watches."""

    @property
    def store(self) -> StandingStore:
        """The standing questions."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings of this machine; `keys` holds the environment variables."""
        ...

    def say(self, line: str) -> None:
        """Show a line in the terminal, if there is one."""
        ...


@frozen
class Notice:
    """What is told of a look that changed a forecast."""

    standing: StandingQuestion
    look: Look
    belief: StandingBelief
    previous: StandingBelief | None

    @property
    def id(self) -> str:
        """The same for the same look of the same question, whenever and wherever it is sent."""
        opened = self.standing.opened_at.isoformat()
        return str(uuid5(NAMESPACE_URL, f"foretell:{self.standing.id}:{opened}:{self.look.number}"))

    @property
    def headline(self) -> str:
        """One line: the question, its probabilities and those before."""
        before = self.previous.p if self.previous is not None else {}
        labels = {target.id: target.short_label for target in self.standing.question.targets}
        parts: list[str] = []
        for target, p in self.belief.p.items():
            was = f" (was {percent(before[target])})" if target in before else ""
            agreed = self.belief.coherent.get(target)
            made = "" if agreed is None else f", {percent(agreed)} with related questions"
            name = f"{labels.get(target, target)} " if len(self.belief.p) > 1 else ""
            parts.append(f"{name}{percent(p)}{was}{made}")
        return _plain(f"{self.standing.id}: {'; '.join(parts)}")

    @property
    def text(self) -> str:
        """The question, why the forecast changed, and the news that moved it."""
        lines = [self.standing.question.text, self.look.why]
        for news in self.belief.evidence[:MOST_NEWS]:
            lines.append(f"- {news.text}" + (f" ({news.url})" if news.url else ""))
        return "\n\n".join(_plain(line) for line in lines if line)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON that is posted to a webhook."""
        previous, belief, look = self.previous, self.belief, self.look
        return {
            "id": self.id,
            "question": self.standing.id,
            "text": _plain(self.standing.question.text),
            "look": look.number,
            "at": belief.at.isoformat(),
            "triggers": list(look.triggers),
            "p": dict(belief.p),
            "previous": None if previous is None else dict(previous.p),
            "coherent": dict(belief.coherent),
            "ranges": {target: list(ends) for target, ends in belief.ranges.items()},
            "prices": dict(look.prices),
            "why": _plain(look.why),
            "news": [
                {
                    "text": _plain(news.text),
                    "url": news.url[:LONGEST_TEXT],
                    "published": news.published.isoformat() if news.published else None,
                }
                for news in belief.evidence[:MOST_NEWS]
            ],
        }


_ILLEGAL = pattern("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that XML forbids, and those that change how a terminal shows a text."""


def _plain(text: str) -> str:
    """Return a text of limited length on one line, without control characters."""
    plain = " ".join(_ILLEGAL.sub(" ", text).split())
    return plain if len(plain) <= LONGEST_TEXT else f"{plain[: LONGEST_TEXT - 1]}…"


async def notify(
    watcher: NoticeWatcher,
    standing: StandingQuestion,
    look: Look,
    belief: StandingBelief | None,
    previous: StandingBelief | None,
) -> None:
    """Send the notices of a look once, to the webhook by its queue. With `belief` None, nothing changed: none is sent.

    A notice that cannot be sent is stored with the reason, and nothing is raised.
    """
    if belief is None:
        return
    for row in watcher.store.notices(standing.id):
        if row.get("state") == DAMAGED:
            watcher.say(_plain(str(row["problem"])))
    notice = Notice(standing=standing, look=look, belief=belief, previous=previous)
    how = _watch_settings(standing)
    clock = clock_of(watcher.settings)
    if _begin(watcher, notice, "terminal", clock):
        watcher.say(notice.headline)
        _end(watcher, notice, "terminal", clock)
    if how.get("feed") and _begin(watcher, notice, "feed", clock):
        problem = ""
        try:
            write_feed(watcher.store, feed_path(str(how["feed"]), watcher.settings), watcher.settings)
        except OSError as error:
            problem = f"{how['feed']}: {error.strerror or error}"
        _end(watcher, notice, "feed", clock, problem)
    if how.get("webhook"):
        watcher.store.queue_notice(QueuedNotice(id=notice.id, standing=standing.id, look=look.number, due=clock()))


async def deliver(watcher: NoticeWatcher) -> None:
    """Post the notices that are due, each once. Those that fail stay in the queue, for longer each time.

    An address that does not answer costs one attempt for all notices to it, but none is given up without a last attempt
    of its own. A notice whose look is missing or damaged is given up with the reason.
    """
    clock = clock_of(watcher.settings)
    now, by_address = clock(), dict[str, list[tuple[QueuedNotice, Notice]]]()
    for queued in watcher.store.queued_notices():
        if queued.due > now:
            continue
        try:
            notice = _queued(watcher.store, queued)
        except InputError as error:
            if watcher.store.take_notice(queued, now + PAUSES[0]):
                _give_up(watcher, queued, str(error), now)
            continue
        address = str(_watch_settings(notice.standing).get("webhook") or "")
        by_address.setdefault(address, []).append((queued, notice))
    await asyncio.gather(*(_deliver_to(watcher, notices, clock) for notices in by_address.values()))


async def _deliver_to(watcher: NoticeWatcher, notices: Sequence[tuple[QueuedNotice, Notice]], clock: Clock) -> None:
    unreachable = ""
    for queued, notice in notices:
        last = queued.attempts >= len(PAUSES)
        if not watcher.store.take_notice(queued, clock() + PAUSES[min(queued.attempts, len(PAUSES) - 1)]):
            continue  # Another process posts it.
        tried = last or not unreachable
        problem, again, away = await _posted(watcher, notice, clock) if tried else (unreachable, True, True)
        unreachable = problem if away else ""
        if not problem or not again or last:
            _end(watcher, notice, "webhook", clock, problem, queued)
        elif tried and not queued.attempts:
            _tell(watcher, notice, f"{problem}; it is posted again later")


async def _posted(watcher: NoticeWatcher, notice: Notice, clock: Clock) -> tuple[str, bool, bool]:
    """Post a notice; return what went wrong, if anything, whether it may go well later, and whether nobody answers."""
    try:
        await _post(read_webhook(_watch_settings(notice.standing), watcher.settings), notice, clock)
    except InputError as error:
        again = bool(_watch_settings(notice.standing).get("webhook"))
        return str(error), again, again
    except SourceError as error:
        return error.problem, error.status not in FINAL or error.status in BUSY, error.status in AWAY
    return "", False, False


def _queued(store: StandingStore, queued: QueuedNotice) -> Notice:
    """Return a queued notice. Raises `InputError` if what it tells of is missing or damaged."""
    try:
        record = store.record(queued.standing)
    except KeyError:
        raise InputError(f"the watched question {queued.standing} is missing") from None
    for notice in _notices(record):
        if notice.look.number == queued.look:
            return notice
    raise InputError(f"look {queued.look} of the watched question {queued.standing}, or its forecast, is missing")


def _give_up(watcher: NoticeWatcher, queued: QueuedNotice, problem: str, now: datetime) -> None:
    row: dict[str, object] = {"id": queued.id, "channel": "webhook", "look": queued.look}
    watcher.store.add_notice(queued.standing, now, row | {"state": "failed", "problem": problem}, ends=queued)
    watcher.say(_plain(f"{queued.standing}: no notice to the webhook: {problem}"))


def check_notices(watch: Mapping[str, Any], settings: Settings) -> None:
    """Raise `InputError` if the settings of notices cannot be used, such as a webhook without a secret."""
    if watch.get("webhook"):
        read_webhook(watch, settings)


def _watch_settings(standing: StandingQuestion) -> Mapping[str, Any]:
    return standing.settings.get("watch") or {}


def _begin(watcher: NoticeWatcher, notice: Notice, channel: NoticeChannel, clock: Clock) -> bool:
    return watcher.store.begin_notice(notice.standing.id, notice.id, channel, notice.look.number, clock())


def _end(
    watcher: NoticeWatcher,
    notice: Notice,
    channel: NoticeChannel,
    clock: Clock,
    problem: str = "",
    queued: QueuedNotice | None = None,
) -> None:
    row: dict[str, object] = {"id": notice.id, "channel": channel, "look": notice.look.number}
    row |= {"state": "failed", "problem": problem} if problem else {"state": "sent"}
    watcher.store.add_notice(notice.standing.id, clock(), row, ends=queued)
    if problem:
        _tell(watcher, notice, problem, channel)


def _tell(watcher: NoticeWatcher, notice: Notice, problem: str, channel: NoticeChannel = "webhook") -> None:
    watcher.say(_plain(f"{notice.standing.id}: no notice to the {channel}: {problem}"))


# The webhook.


@frozen
class Webhook:
    """An address that receives notices, and the secret they are signed with. Neither is shown."""

    url: str
    secret: str
    private: bool
    """Whether the user named a private address. Any other must lead to the public internet."""

    def __repr__(self) -> str:
        return f"Webhook({self.host})"

    @property
    def host(self) -> str:
        """The host; the rest of an address may be a key."""
        return urlsplit(self.url).hostname or ""

    @property
    def hidden(self) -> tuple[str, ...]:
        """What is hidden in errors and logs."""
        parts = urlsplit(self.url)
        return tuple(text for text in (self.secret, parts.path, parts.query) if len(text) > 1)


_LOCAL_NAME = pattern(r"[a-z0-9-]+|.+\.(?:local|lan|internal|home\.arpa)", re.IGNORECASE)
"""Names that exist only in a private network."""


def read_webhook(watch: Mapping[str, Any], settings: Settings) -> Webhook:
    """Return the webhook of the section `watch`. Raises `InputError` if it cannot be used.

    An address in a private network counts only if it is written as one: a private IP address, localhost, or a name that
    only exists in such a network. Others need https.
    """
    url = str(watch.get("webhook") or "")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise InputError("is not a web address", column="watch.webhook") from None
    host = (parts.hostname or "").rstrip(".")
    if not usable or parts.username or parts.password or not url.isascii() or not url.isprintable() or " " in url:
        hint = "write https://HOST/PATH, without a user name"
        raise InputError("is not an address that notices can be posted to", column="watch.webhook", hint=hint)
    private = leads_inside(host) or bool(_LOCAL_NAME.fullmatch(host))
    if not private and parts.scheme != "https":
        raise InputError("is not encrypted", column="watch.webhook", hint="use https:// on the public internet")
    name = str(watch.get("webhook_secret_env") or "")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        # Not repeated, because it may be the secret itself.
        hint = "write the name of the environment variable that holds the secret, such as WEBHOOK_SECRET"
        raise InputError("names no environment variable", column="watch.webhook_secret_env", hint=hint)
    secret = settings.keys.get(name, "")
    if not secret:
        raise InputError("names a variable that is not set", column="watch.webhook_secret_env", hint=f"export {name}=…")
    return Webhook(url=url, secret=secret, private=private)


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a notice: HMAC-SHA256 over the timestamp, a full stop and the body.

    >>> sign("secret", "1784000000", b"{}")[:18]
    'sha256=46669dc4cdc'
    """
    return f"sha256={hmac.new(secret.encode(), timestamp.encode() + b'.' + body, hashlib.sha256).hexdigest()}"


def is_signed(headers: Mapping[str, str], body: bytes, secret: str, now: datetime | None = None) -> bool:
    """Return whether a request is a notice that was signed with the secret in the last ten minutes."""
    named = {name.lower(): value for name, value in headers.items()}
    timestamp, signature = named.get(TIME_HEADER.lower(), ""), named.get(SIGNATURE_HEADER.lower(), "")
    genuine = hmac.compare_digest(signature.encode(), sign(secret, timestamp, body).encode())
    if not genuine or not re.fullmatch(r"\d{1,12}", timestamp, re.ASCII):
        return False
    return abs((now or datetime.now(UTC)).timestamp() - int(timestamp)) <= LARGEST_AGE


async def _post(webhook: Webhook, notice: Notice, clock: Clock) -> None:
    """Post a notice. Raises `SourceError` if it was not accepted. Redirects are not followed."""
    body = json.dumps(notice.to_dict(), ensure_ascii=False, separators=(",", ":")).encode()
    timestamp = str(int(clock().timestamp()))
    headers = {
        "Content-Type": "application/json",
        ID_HEADER: notice.id,
        TIME_HEADER: timestamp,
        SIGNATURE_HEADER: sign(webhook.secret, timestamp, body),
    }
    guard = PublicAddressGuard(allow_private=webhook.private)
    async with AsyncHttpClient(limits=WEBHOOK_LIMITS, secrets=webhook.hidden) as client:
        try:
            await client.post(webhook.url, content=body, headers=headers, admit=guard.admit)
        except PageUnavailable:
            problem = f"{webhook.host} is unknown or not on the public internet; write a private address as a number"
            raise SourceError(problem, url=webhook.host) from None


# The feed.

ATOM = "http://www.w3.org/2005/Atom"
MOST_ENTRIES = 100


def feed_path(feed: str, settings: Settings) -> Path:
    """Return the file of a feed; a relative path is in the home."""
    return settings.home / Path(feed).expanduser()


def write_feed(store: StandingStore, path: Path, settings: Settings) -> None:
    """Write the newest beliefs of all questions with this feed, atomically. The same record gives the same file.

    Raises:
        OSError: If the file cannot be written.
    """
    # One process at a time, so that none replaces a newer feed by an older one.
    with locked(settings.home / "locks" / f"feed-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"):
        ids = [
            standing.id
            for standing in store.questions()
            if (feed := _watch_settings(standing).get("feed")) and feed_path(str(feed), settings) == path
        ]
        write_atomically(path, atom_feed(store.readable_records(ids), name=str(path)))


def atom_feed(records: Sequence[QuestionRecord], *, name: str) -> bytes:
    """Return an Atom feed (RFC 4287) of the newest beliefs, newest first. `name` identifies the feed."""
    notices = sorted(
        (notice for record in records for notice in _notices(record)),
        key=lambda notice: (notice.belief.at, notice.id),
        reverse=True,
    )[:MOST_ENTRIES]
    ElementTree.register_namespace("", ATOM)
    feed = ElementTree.Element(f"{{{ATOM}}}feed")
    _add(feed, "id", f"urn:uuid:{uuid5(NAMESPACE_URL, f'foretell feed:{name}')}")
    _add(feed, "title", "Changed forecasts")
    newest = notices[0].belief.at if notices else datetime.fromtimestamp(0, UTC)
    _add(feed, "updated", newest.isoformat())
    _add(ElementTree.SubElement(feed, f"{{{ATOM}}}author"), "name", "foretell")
    for notice in notices:
        entry = ElementTree.SubElement(feed, f"{{{ATOM}}}entry")
        _add(entry, "id", f"urn:uuid:{notice.id}")
        _add(entry, "title", notice.headline)
        _add(entry, "updated", notice.belief.at.isoformat())
        _add(entry, "published", notice.belief.at.isoformat())
        url = notice.standing.question.url
        if urlsplit(url).scheme in ("http", "https") and not _ILLEGAL.search(url):
            ElementTree.SubElement(entry, f"{{{ATOM}}}link", rel="alternate", href=url)
        _add(entry, "content", notice.text)
    return ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)


def _add(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, f"{{{ATOM}}}{name}").text = text


def _notices(record: QuestionRecord) -> Iterator[Notice]:
    looks = {look.number: look for look in record.looks}
    for previous, belief in zip((None, *record.beliefs), record.beliefs, strict=False):
        if belief.look in looks:
            yield Notice(standing=record.standing, look=looks[belief.look], belief=belief, previous=previous)
