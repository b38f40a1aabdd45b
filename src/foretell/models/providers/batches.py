"""The batch tier: requests that can wait are collected, submitted as one batch at half the price, and awaited.

The journal records which batch holds a request before anyone waits for it, so a killed process finds the batch again
and pays only once.
"""

import asyncio
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast
from urllib.parse import quote

from foretell.frozen import frozen
from foretell.models.canonical import content_key, quick_json, request_key
from foretell.models.journal import Journal, JournalEntry, JournalRequest
from foretell.models.ledger import batch_key
from foretell.models.model import BatchDeferred, ModelBusy, ModelError, ReplyLost, ReplyTooLong, Request
from foretell.models.providers.api_format import ERROR_STATUS, HttpFailure, Json, count, odd_json
from foretell.models.waiting import WaitingReply
from foretell.outgoing.retry import RetryRule

GATHER_SECONDS = 2.0
"""A batch is submitted when nothing has been added to it for this many seconds."""
FIRST_POLL, LONGEST_POLL = 5.0, 60.0
"""Seconds between checks whether a batch has ended."""
MOST_REQUESTS = 1_000
MOST_BYTES = 15 * 2**20
"""Maximum size of one batch. Google accepts 20 MB per request, the others more."""
FIRST_WAIT, LONGEST_WAIT = 30.0, 600.0
"""Seconds before a refused batch is submitted again. They double with every refusal."""
REFUSALS_BEFORE_HALVING = 3
"""A batch that is refused this often although no other is running is too large, and is submitted in halves."""
JSON_TYPE = "application/json"
NO_ROOM = frozenset({429, 503, 529})
"""Status codes of a provider that is at its limit."""
LONGEST_RESULTS = 256 * 2**20
"""Maximum size of one batch's results in bytes."""
LONGEST_LINE = 16 * 2**20
"""Maximum size of one reply in bytes, the same as outside of batches."""


@frozen
class BatchItem:
    """How one request of a batch ended."""

    status: int = 200
    body: bytes = b""
    expired: bool = False
    """Whether the provider did not process it in time. It is not billed then."""


@frozen
class BatchResults:
    """How the requests of a batch ended, by key."""

    items: Mapping[str, BatchItem]
    rest: BatchItem | None = None
    """How all requests without an entry ended."""

    def of(self, key: str) -> BatchItem | None:
        """How one request ended; None if the provider lost it."""
        return self.items.get(key, self.rest)


class SendBatch(Protocol):
    """Posts to the provider, or sends a GET without a body. Raises `ModelError` on failure."""

    def __call__(self, path: str, data: bytes | None = None, *, content_type: str = ...) -> Awaitable[bytes]:
        """The body of the response."""
        ...


class BatchFormat(Protocol):
    """A provider's API for batches."""

    async def submit(self, send: SendBatch, name: str, bodies: Mapping[str, Json]) -> str:
        """Submit requests to one model, by key, and return the provider's id of the batch."""
        ...

    async def results(self, send: SendBatch, id: str) -> BatchResults | None:
        """How each request ended; None while the batch is running."""
        ...


def _loaded(body: bytes) -> Json:
    """Parse a response as a JSON object."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise ReplyLost("the provider's response about a batch is not a JSON object")
    return cast("Json", parsed)


def _lines(body: bytes) -> list[Json]:
    """The objects of a JSON Lines file. A line that is not an object counts as a missing reply."""
    lines: list[Json] = []
    for line in body.split(b"\n"):
        if line.strip():
            try:
                lines.append(_loaded(line))
            except ReplyLost:
                continue
    return lines


def _object(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _failed(message: str, *, status: int = 400, code: str = "") -> BatchItem:
    return BatchItem(status=status, body=quick_json({"error": {"message": message, "code": code}}))


CANCELLED = _failed("the batch was cancelled at the provider")
EXPIRED = BatchItem(expired=True)


@frozen
class OpenAIBatches:
    """OpenAI batches: an uploaded file of requests and files of results."""

    async def submit(self, send: SendBatch, name: str, bodies: Mapping[str, Json]) -> str:
        """Upload the requests and create a batch from them."""
        lines = [
            {"custom_id": key, "method": "POST", "url": "/v1/responses", "body": body} for key, body in bodies.items()
        ]
        boundary = f"foretell-{content_key(list(bodies))[:40]}"
        data = b"\n".join(quick_json(line) for line in lines)
        form = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--{boundary}\r\n'
            'Content-Disposition: form-data; name="file"; filename="batch.jsonl"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        ).encode() + data
        file = _loaded(
            await send(
                "/files",
                form + f"\r\n--{boundary}--\r\n".encode(),
                content_type=f"multipart/form-data; boundary={boundary}",
            )
        )
        batch = {"input_file_id": file["id"], "endpoint": "/v1/responses", "completion_window": "24h"}
        return str(_loaded(await send("/batches", quick_json(batch)))["id"])

    async def results(self, send: SendBatch, id: str) -> BatchResults | None:
        """Read the output and error files."""
        batch = _loaded(await send(f"/batches/{quote(id, safe='')}"))
        status = batch.get("status")
        if status == "failed":
            errors: list[Any] = _object(batch.get("errors")).get("data") or []
            error = _object(errors[0] if errors else None)
            code = str(error.get("code") or "")
            text = str(error.get("message") or "the batch was refused")
            # The provider limits the enqueued tokens. There is room again when another batch has ended.
            busy = code in ("token_limit_exceeded", "rate_limit_exceeded") or "enqueued token limit" in text.lower()
            return BatchResults(items={}, rest=_failed(text, status=429 if busy else 400, code=code))
        if status not in ("completed", "expired", "cancelled"):
            return None
        batch_items: dict[str, BatchItem] = {}
        for name in ("output_file_id", "error_file_id"):
            if batch.get(name):
                for line in _lines(await send(f"/files/{quote(str(batch[name]), safe='')}/content")):
                    batch_items[str(line.get("custom_id"))] = self._item(line)
        return BatchResults(items=batch_items, rest={"cancelled": CANCELLED, "expired": EXPIRED}.get(str(status)))

    def _item(self, line: Json) -> BatchItem:
        answer, error = _object(line.get("response")), _object(line.get("error"))
        if error.get("code") == "batch_expired":
            return EXPIRED
        if error.get("code") == "batch_cancelled":
            return CANCELLED
        if not answer:
            return _failed(str(error.get("message") or "no reply"), code=str(error.get("code") or ""))
        return BatchItem(status=count(answer, "status_code") or 500, body=quick_json(answer.get("body")))


@frozen
class AnthropicBatches:
    """Anthropic's Message Batches."""

    async def submit(self, send: SendBatch, name: str, bodies: Mapping[str, Json]) -> str:
        """Submit all requests in one call."""
        requests = [{"custom_id": key, "params": body} for key, body in bodies.items()]
        return str(_loaded(await send("/v1/messages/batches", quick_json({"requests": requests})))["id"])

    async def results(self, send: SendBatch, id: str) -> BatchResults | None:
        """Read the results once the batch has ended."""
        path = f"/v1/messages/batches/{quote(id, safe='')}"
        if _loaded(await send(path)).get("processing_status") != "ended":
            return None
        lines = _lines(await send(f"{path}/results"))
        return BatchResults(items={str(line.get("custom_id")): self._item(line) for line in lines})

    def _item(self, line: Json) -> BatchItem:
        result = _object(line.get("result"))
        match result.get("type"):
            case "succeeded":
                return BatchItem(body=quick_json(result.get("message")))
            case "expired":
                return EXPIRED
            case "canceled":
                return CANCELLED
            case _:
                error = _object(result.get("error"))
                kind = str(_object(error.get("error")).get("type") or "")
                return BatchItem(status=ERROR_STATUS.get(kind, 400), body=quick_json(error))


@frozen
class GeminiBatches:
    """Batches of the Gemini API, with requests and replies inline."""

    async def submit(self, send: SendBatch, name: str, bodies: Mapping[str, Json]) -> str:
        """Submit all requests in one call to the model."""
        requests = [{"request": body, "metadata": {"key": key}} for key, body in bodies.items()]
        batch = {"displayName": "foretell", "inputConfig": {"requests": {"requests": requests}}}
        response = await send(f"/v1beta/models/{name}:batchGenerateContent", quick_json({"batch": batch}))
        return str(_loaded(response)["name"])

    async def results(self, send: SendBatch, id: str) -> BatchResults | None:
        """Read the results from the operation once it is done."""
        operation = _loaded(await send(f"/v1beta/{quote(id, safe='/')}"))
        state = str(_object(operation.get("metadata")).get("state") or "").rpartition("_STATE_")[2]
        rest = {"EXPIRED": EXPIRED, "CANCELLED": CANCELLED}.get(state)
        if not operation.get("done") and rest is None:
            return None
        if rest is None and operation.get("error"):
            return BatchResults(items={}, rest=self._item(operation))
        answers: Any = _object(operation.get("response")).get("inlinedResponses")
        inline: Any = answers.get("inlinedResponses") if isinstance(answers, dict) else answers
        lines: list[Any] = cast("list[Any]", inline) if isinstance(inline, list) else []
        items = {str(_object(_object(line).get("metadata")).get("key")): self._item(_object(line)) for line in lines}
        return BatchResults(items=items, rest=rest)

    def _item(self, line: Json) -> BatchItem:
        if line.get("response") is not None:
            return BatchItem(body=quick_json(line["response"]))
        error = _object(line.get("error"))
        # gRPC codes: 4 deadline, 8 exhausted, 13 internal, 14 unavailable. All others are errors in the request.
        status = {4: 504, 8: 429, 13: 500, 14: 503}.get(count(error, "code") or 3, 400)
        return BatchItem(status=status, body=quick_json({"error": {**error, "code": status}}))


class SubmittedBatches:
    """Records in the journal which batch holds which request."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def _entry(self, key: str) -> JournalRequest:
        return JournalRequest(key=batch_key(key), kind="batch")

    async def find(self, key: str) -> str:
        """The batch that already holds a request; empty if there is none."""
        return await self._journal.database.aside(self._find, key)

    def _find(self, key: str) -> str:
        batch_id = self._journal.find(self._entry(key).key)
        if batch_id is None:
            return ""
        # Nothing is sent again, so the send that was just recorded is withdrawn.
        self._journal.database.write(
            "UPDATE sent SET sends = sends - 1 WHERE key = ? AND sends > 1", (bytes.fromhex(key),)
        )
        return batch_id.decode()

    async def add(self, keys: Sequence[str], id: str) -> None:
        """Record the requests of a submitted batch."""
        database = self._journal.database

        def write() -> None:
            for key in keys:
                self._journal.keep(self._entry(key), JournalEntry(body=id.encode()))

        await database.grouped_durably(write)

    async def posting(self, keys: Sequence[str]) -> None:
        """Record that a batch with these requests is being submitted: from now on they may be billed."""
        await self._journal.database.aside(self._journal.posting, keys)

    async def not_posted(self, keys: Sequence[str]) -> None:
        """Record that the provider did not take the batch: nothing is billed."""
        await self._journal.database.aside(self._journal.not_posted, keys)

    async def forget(self, key: str) -> None:
        """Forget a request that came back unanswered, so that it can be submitted again."""
        entry = bytes.fromhex(self._entry(key).key)
        database = self._journal.database
        await database.aside(database.write, "DELETE FROM kept WHERE key = ? AND kind = 'batch'", (entry,))


@dataclass(kw_only=True)
class _Gathering:
    """Requests to one model that are waiting to be submitted."""

    send: SendBatch
    bodies: dict[str, Json]
    size: int
    submitted: "asyncio.Future[str]"
    callers: Counter[str] = field(default_factory=Counter[str])
    """Number of callers that wait for each request."""
    closed: bool = False
    """Whether it is being submitted, so that nothing can be taken out of it."""

    def leave(self, key: str) -> None:
        """Remove a caller. A request without callers is not submitted."""
        self.callers[key] -= 1
        if not self.closed and not self.callers[key]:
            self.bodies.pop(key, None)


@dataclass(kw_only=True)
class _Room:
    """How much room a provider has for batches of a model, judged by its refusals."""

    refusals: int = 0
    """Refusals since a batch was answered."""
    opens: float = 0.0
    """The time of the event loop before which nothing is submitted."""
    most: int | None = None
    """Maximum number of requests in one batch; None for the usual number."""
    deferred: set[str] = field(default_factory=set[str])
    """Batches already counted, because each of their requests reports the refusal."""


class BatchQueue:
    """Collects requests, submits batches and waits for them, on one event loop."""

    def __init__(self, form: BatchFormat, submitted: SubmittedBatches | None = None) -> None:
        self._form = form
        self._submitted = submitted
        self._gathering: dict[str, _Gathering] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._results: dict[str, asyncio.Task[BatchResults]] = {}
        self._waiting: Counter[str] = Counter()
        self._sizes: dict[str, int] = {}
        self._rooms: defaultdict[str, _Room] = defaultdict(_Room)

    async def close(self) -> None:
        """Stop waiting. Batches continue at the provider and are found again by the next process that asks."""
        tasks: list[asyncio.Task[Any]] = [*self._tasks, *self._results.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def ask(self, request: Request, name: str, body: Json, send: SendBatch) -> BatchItem:
        """How the request ended, in the form of a normal response.

        Raises `BatchDeferred` if the provider had no room for it or did not process it in time. A caller that asks
        again joins the next batch, which is submitted after a pause.
        """
        key = request_key(request)
        with WaitingReply():
            id = await self._submitted.find(key) if self._submitted else ""
            id = id or await self._handed_in(key, name, body, send)
            results = await self._ended(id, send)
        item = results.of(key)
        if self._submitted and (item is None or item.expired or item.status != 200):
            await self._submitted.forget(key)
        if item is None:
            raise ReplyLost(f"{request.model}: the batch {id} holds no reply to this request")
        if item.expired:
            self._defer(name, id)
            raise BatchDeferred(f"{request.model}: the batch {id} expired before this request was answered; no charge")
        if item.status in NO_ROOM:
            failure = HttpFailure(status=item.status, headers={}, body=odd_json(item.body)).error(request, "")
            if isinstance(failure, ModelBusy):  # Otherwise waiting does not help, for example without credit.
                self._defer(name, id, size=self._sizes.get(id, 0))
                raise BatchDeferred(str(failure))
        if item.status == 200:
            self._rooms[name].refusals = 0
        if len(item.body) > LONGEST_LINE:
            raise ReplyTooLong(f"{request.model}: the reply is larger than {LONGEST_LINE // 2**20} MiB")
        return item

    def _defer(self, name: str, id: str, *, size: int = 0, wait: float | None = None) -> None:
        """Pause submissions after a refusal. Submit smaller batches if the refused one must have been too large."""
        room = self._rooms[name]
        if id in room.deferred:
            return
        room.deferred.update([id] if id else [])
        now = asyncio.get_running_loop().time()
        if now >= room.opens:  # Batches that were refused together share one pause.
            room.refusals += 1
            pause = FIRST_WAIT * 2 ** min(room.refusals - 1, 20)
            room.opens = now + min(LONGEST_WAIT, max(pause, wait or 0.0))
        alone = all(other == id for other in self._results)
        if size > 1 and alone and room.refusals >= REFUSALS_BEFORE_HALVING:
            room.most = size // 2

    async def _handed_in(self, key: str, name: str, body: Json, send: SendBatch) -> str:
        size = len(quick_json(body))
        most = self._rooms[name].most or MOST_REQUESTS
        open_ = self._gathering.get(name)
        if open_ is not None and (len(open_.bodies) >= most or open_.size + size > MOST_BYTES):
            self._gathering.pop(name)  # The batch is full and is being submitted; start the next one.
            open_ = None
        if open_ is None:
            future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            open_ = self._gathering[name] = _Gathering(send=send, bodies={}, size=0, submitted=future)
            self._start(self._gather(name, open_))
        open_.bodies[key] = body
        open_.size += size
        open_.callers[key] += 1
        try:
            return await asyncio.shield(open_.submitted)
        except asyncio.CancelledError:
            open_.leave(key)
            raise

    def _start(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _gather(self, name: str, batch: _Gathering) -> None:
        """Submit a batch when no more requests arrive or when it is full."""
        try:
            before = 0
            while self._gathering.get(name) is batch and len(batch.bodies) != before:
                before = len(batch.bodies)
                await asyncio.sleep(GATHER_SECONDS)
            await self._wait_for_room(name)
            if self._gathering.get(name) is batch:
                del self._gathering[name]
            batch.closed = True
            if not batch.bodies:
                return
            id = await self._submit(name, batch)
            self._sizes[id] = len(batch.bodies)
            if self._submitted:
                await self._submitted.add(list(batch.bodies), id)
            batch.submitted.set_result(id)
        except BaseException as error:
            if isinstance(error, KeyError):
                error = ReplyLost(f"{name}: the provider's response contains no batch id")
            if not batch.submitted.done():
                if isinstance(error, Exception):
                    batch.submitted.set_exception(error)
                    batch.submitted.exception()  # Mark it as retrieved: there may be no caller left.
                else:
                    batch.submitted.cancel()
            if not isinstance(error, Exception):
                raise

    async def _wait_for_room(self, name: str) -> None:
        while (pause := self._rooms[name].opens - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(pause)

    async def _submit(self, name: str, batch: _Gathering) -> str:
        """Submit a batch, after recording in the journal that it may be billed."""
        submitted, keys, recorded = self._submitted, list(batch.bodies), False

        async def send(path: str, data: bytes | None = None, *, content_type: str = JSON_TYPE) -> bytes:
            nonlocal recorded
            # Uploading a file is free.
            if submitted is not None and data is not None and content_type == JSON_TYPE and not recorded:
                recorded = True
                await submitted.posting(keys)
            return await batch.send(path, data, content_type=content_type)

        try:
            return await self._form.submit(send, name, batch.bodies)
        except ModelError as error:
            if submitted is not None and recorded and not isinstance(error, ReplyLost):
                await submitted.not_posted(keys)
            if isinstance(error, BatchDeferred):
                self._defer(name, "", size=len(batch.bodies), wait=error.wait)
            raise

    async def _ended(self, id: str, send: SendBatch) -> BatchResults:
        """The results, fetched once for all callers and dropped when no caller is left."""
        if id not in self._results:
            self._results[id] = asyncio.ensure_future(self._poll(id, send))
        self._waiting[id] += 1
        try:
            return await asyncio.shield(self._results[id])
        finally:
            self._waiting[id] -= 1
            if not self._waiting[id]:
                del self._waiting[id]
                self._results.pop(id).cancel()

    async def _poll(self, id: str, send: SendBatch) -> BatchResults:
        polls = RetryRule(first_pause=FIRST_POLL, longest_pause=LONGEST_POLL)
        for attempt in itertools.count(1):
            try:
                poll = await self._form.results(send, id)
            except ModelBusy:
                poll = None  # The batch continues even if its state cannot be read.
            if poll is not None:
                return poll
            await asyncio.sleep(polls.doubled(attempt))
        raise AssertionError("unreachable")
