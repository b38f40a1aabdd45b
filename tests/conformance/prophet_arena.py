"""Prophet Arena: answers made with its official client's models, and that client against practice."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import pytest

from conformance.reading import body_of, config_on, sweep
from conformance.recordings import Check, answer, recording, spec_file
from fakes.answers import respond
from foretell.data.datasets.prophet_arena import download_events, read_events_jsonl
from foretell.data.http import AsyncHttpClient, NotFound
from foretell.data.markets.listing import ListedEvent, ListingFilter, ListingReport
from foretell.data.markets.prophet_arena import (
    ProphetArenaClient,
    ProphetArenaListing,
    ProphetArenaWeekly,
    ProphetArenaWindows,
)
from foretell.data.payload import Payload
from foretell.data.settlements.prophet_arena import ProphetArenaSettlements
from foretell.outgoing.client import Answer, HttpRequest
from foretell.practice.services import data_services
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Forecast
from foretell.tournaments.prophet_arena import (
    ProphetArenaEvent,
    ProphetArenaOptions,
    ProphetArenaSubmitter,
    ProphetArenaWriter,
    read_events,
    signature_fits,
)
from foretell.tournaments.submission import SEND_ONCE

SERVICE = "prophet_arena"
NOW = AsOf(at=instant("2026-11-15T12:00:00Z"), mode="live")
KEY = "practice"
OPEN, RESOLVED, OWN = "constructed_event_open", "constructed_event_resolved", "constructed_own_forecasts"


def _client(seen: list[HttpRequest] | None = None, **answers: Answer) -> ProphetArenaClient:
    paths = {path.replace("__", "/"): response for path, response in answers.items()}
    return ProphetArenaClient(http=config_on(paths, seen).http, key=KEY)


async def _event(row: Payload) -> ListedEvent:
    return await ProphetArenaListing(_client()).read(row, NOW, ListingReport())


async def _open_event() -> None:
    event = await _event(body_of(SERVICE, OPEN))
    question = event.question
    assert (question.id, question.text) == ("prophet_arena/fed-dec", "Fed decision in December?")
    assert (event.status, event.closes_at, question.criteria) == (
        "open",
        instant("2026-12-10T19:00Z"),
        "Resolves by FOMC",
    )
    assert {t.id: t.snapshot and t.snapshot.last_price for t in question.targets} == {
        "Cut": 0.5,
        "Hold": 0.45,
        "Hike": 0.05,
    }
    assert question.exclusivity == "at most one"


async def _resolved_event() -> None:
    event = await _event(body_of(SERVICE, RESOLVED))
    assert (event.status, event.question.criteria, event.question.exclusivity) == ("resolved", "", "exactly one")
    client = _client(events__done=answer(SERVICE, RESOLVED))
    settlements = await ProphetArenaSettlements(client).settlements([event.question])
    assert {settlement.target_id: settlement.outcome for settlement in settlements} == {"Yes": 1, "No": 0}
    assert {settlement.resolved_at for settlement in settlements} == {instant("2026-11-01")}


async def _own_forecasts() -> None:
    seen: list[HttpRequest] = []
    client = _client(seen, forecasts=answer(SERVICE, OWN))
    http = AsyncHttpClient(limits=SEND_ONCE)
    writer = ProphetArenaWriter(client=client, http=http, key=KEY)
    assert await writer.stands("fed-dec", "me") == {"Cut": 0.5, "Hold": 0.4, "Hike": 0.1}
    assert await writer.stands("another", "me") is None
    assert dict(seen[0].url.query) == {"agent": "me", "event": "fed-dec"}


# Requests of the adapter, and the arena's list of endpoints.


async def _requests() -> None:
    seen: list[HttpRequest] = []
    page = respond(200, json={"data": [], "next_cursor": None})
    bare = respond(200, json=[])
    event = answer(SERVICE, OPEN)
    client = _client(seen, v1__events=page, events__x=event, windows__open=bare, forecasts=bare)
    for status in ("open", "closed", "resolved"):
        await ProphetArenaListing(client).events(ListingFilter(as_of=NOW, status=status, category="Economics")).all()
    await client.event("x")
    await client.open_windows("me")
    await client.own_forecasts("me", "x")
    for week in ("current", "2026-11-15"):
        with pytest.raises(NotFound):
            await client.release(week)
    endpoints = json.loads(spec_file(SERVICE, "endpoints.json").read_text())["endpoints"]
    known = {path: endpoint for line, endpoint in endpoints.items() for path in line.removeprefix("GET ").split(", ")}
    for request in seen:
        path = request.url.path.removeprefix("/api/v1")
        place = next(pattern for pattern in known if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path))
        endpoint = known[place]
        params = {name.partition("=")[0]: name.partition("=")[2].split("|") for name in _params(endpoint)}
        for name, value in request.url.query.items():
            assert name in params, f"{place} has no parameter {name}"
            assert params[name] == [""] or value in params[name]
        assert request.headers["authorization"] == f"Bearer {KEY}"


def _params(endpoint: Any) -> list[str]:
    return endpoint["params"] if isinstance(endpoint, dict) else []


# The official client and practice.


def _served(use: Callable[[str], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        async with data_services(datetime.now(UTC), KEY)[SERVICE].server() as server:
            await use(f"{server.url}/api/v1")

    return run


def _official_reads(url: str) -> None:
    from arena.client import ArenaAPIError

    from arena import Client

    with Client(api_key=KEY, api_url=url) as client:
        (event,) = client.iter_events(status="open")
        assert (event.slug, event.state, event.crowd) == ("cup-final", "open", {"Red": 0.6, "Blue": 0.4})
        assert client.get_event("cup-final") == event
        assert client.event_windows("cup-final")[0]["round"] == 1
        assert client.event_crowd("cup-final")[0]["crowd"]["Red"] == 0.6
        assert client.event_forecasts("cup-final") == []
        (window,) = client.open_windows("me")
        assert (window.event, window.round, window.to_event().outcome_names) == ("cup-final", 1, ["Red", "Blue"])
        release = client.current_release()
        assert client.get_release(release.week) == release
        assert [listed.week for listed in client.list_releases()] == [release.week]
        assert [event.slug for event in release.open_events()] == ["weekly-rate", "weekly-snow"]
        assert client.weekly_entry().agent == "practice-agent"
        with pytest.raises(ArenaAPIError, match="not_found"):
            client.get_event("nothing")


def _official_submits(url: str) -> None:
    from arena import Client

    with Client(api_key=KEY, api_url=url) as client:
        first = client.submit_forecast("me", "cup-final", {"RED": 0.7, "blue": 0.2}, rationale="Why.")
        assert (first.window, first.probabilities, first.replaces_previous) == (1, {"Red": 0.7, "Blue": 0.2}, False)
        assert client.submit_forecast("me", "cup-final", {"Red": 0.6, "Blue": 0.3}).replaces_previous
        newest, _ = client.list_forecasts(agent="me", event="cup-final")
        assert newest.probabilities == {"Red": 0.6, "Blue": 0.3}
        assert first.receipt is not None
        assert client.check_receipt(first.receipt.key).matched
        report = client.submit_week({"KXRATE-W": {"Yes": 0.6, "No": 0.4}, "weekly-snow": {"Above 5 cm": 0.6}})
        assert (report.agent, report.submitted, report.failed, report.listed) == ("practice-agent", 1, 1, True)
        assert client.open_windows("me") == []


def _official_signatures(url: str) -> None:
    """Check valid and forged receipts of practice with the official client and with foretell."""
    from arena.seals import check_signature

    from arena import Client

    key = httpx2.get(f"{url}/verify/key", headers={"Authorization": f"Bearer {KEY}"}).json()["public_key"]
    with Client(api_key=KEY, api_url=url) as client:
        issued = client.submit_forecast("me", "cup-final", {"Red": 0.7, "Blue": 0.2}).receipt
    assert issued is not None
    good = issued.model_dump(mode="json")
    other = {**good, "seal": "0" * 64}
    later = {**good, "recorded_at": "2030-01-01T00:00:00Z"}
    forged = {**good, "signature": "A" * 86}
    for receipt, public, fits in (
        (good, key, True),
        (other, key, False),
        (later, key, False),
        (forged, key, False),
        (good, "B" * 43, False),
        (good, "no key", False),
    ):
        theirs = check_signature(receipt["seal"], receipt["recorded_at"], receipt["signature"], public)
        assert theirs is signature_fits(Payload(url="", value=receipt), public) is fits
    assert signature_fits(Payload(url="", value={**good, "signature": None}), key) is None


def _official_dataset(url: str) -> None:
    from arena import Client, datasets

    with TemporaryDirectory() as folder, Client(api_key=KEY, api_url=url) as client:
        dataset = datasets.load("cups@1", client=client, cache_dir=folder)
        (event,) = dataset.events
        assert (event.slug, event.resolutions) == ("cup-2025", {"Red": "yes", "Blue": "no"})
        ours = asyncio.run(_our_dataset(url, Path(folder)))
        assert ours == event.resolutions


async def _our_dataset(url: str, folder: Path) -> dict[str, str]:
    async with AsyncHttpClient() as http:
        path = await download_events(ProphetArenaClient(http=http, key=KEY, host=url), "cups", folder)
    words = {1: "yes", 0: "no", None: "void"}
    return {resolution.target_id: words[resolution.outcome] for resolution in read_events_jsonl(path).resolutions}


async def _we_submit(url: str) -> None:
    """Check that the official client reads back the forecasts that foretell submits, live and weekly."""
    stated = {"cup-final": {"Red": 0.7, "Blue": 0.2}, "weekly-rate": {"Yes": 0.3, "No": 0.7}}
    now = AsOf(at=datetime.now(UTC), mode="live")
    forecasts = [
        Forecast(question_id=f"{SERVICE}/{slug}", forecaster="f", as_of=now, p=p) for slug, p in stated.items()
    ]
    async with AsyncHttpClient() as reading, AsyncHttpClient(limits=SEND_ONCE) as writing:
        client = ProphetArenaClient(http=reading, key=KEY, host=url)
        writer = ProphetArenaWriter(client=client, http=writing, key=KEY, host=url)
        seen = await read_events(writer, forecasts)
        options = ProphetArenaOptions(agent="me")
        submitter = ProphetArenaSubmitter(writer=writer, entrant=options, seen=seen, now=now.at)
        items = submitter.plan(forecasts, ()).ready
        sent = await submitter.send(items)
        assert [submission.fate for submission in sent] == ["sent", "sent"]
        assert (sent[0].answer["seal_fits"], sent[0].answer["signature_fits"]) == (True, True)
        assert await submitter.stands(items) == [True, True]
    await asyncio.to_thread(_official_finds, url, stated)


def _official_finds(url: str, stated: dict[str, dict[str, float]]) -> None:
    from arena import Client

    with Client(api_key=KEY, api_url=url) as client:
        assert {forecast.event: forecast.probabilities for forecast in client.list_forecasts(agent="me")} == stated


async def _official_models() -> None:
    """Read answers that are written by the official models."""
    from arena.client import WeeklyEvent, WeeklyRelease
    from arena.types import Event, Outcome

    closes = NOW.at + timedelta(days=3)
    bare = Event(slug="bare", title="Bare?", close_at=closes, outcomes=[Outcome(name="A"), Outcome(name="B")])
    for body in (bare.model_dump(mode="json"), bare.model_dump(mode="json", exclude_defaults=True)):
        event = await _event(Payload(url="", value=body))
        assert (event.status, event.question.exclusivity, event.closes_at) == ("open", "independent", closes)
    rules = [{"name": name, "criteria": "By the bank."} for name in ("Yes", "No")]
    weekly = WeeklyEvent(event="w", title="W?", close_at=closes + timedelta(days=9), window=2, outcomes=rules)
    times: dict[str, Any] = {"opens_at": NOW.at, "closes_at": closes, "results_at": closes}
    release = WeeklyRelease(week="2026-11-15", status="published", event_count=1, events=[weekly], **times)
    client = _client(releases__current=respond(200, json=release.model_dump(mode="json")))
    (listed,) = await ProphetArenaWeekly(client).events(ListingFilter(as_of=NOW)).all()
    assert (listed.question.criteria, listed.closes_at) == ("By the bank.", closes)


def _any(name: str) -> None:
    body = body_of(SERVICE, name)
    if (recording(SERVICE, name)["status"] or 200) >= 400:
        return
    rows = body.items() if isinstance(body.value, list) else body.rows("data") if body.has("data") else [body]
    for row in rows:
        if row.has("slug") and row.has("outcomes"):
            event = asyncio.run(_event(row))
            assert event.question.targets
            assert ProphetArenaEvent.live(row).outcomes == tuple(t.id for t in event.question.targets)
        elif row.has("events"):
            client = _client(releases__current=respond(200, json=row.value))
            listing = ProphetArenaWeekly(client).events(ListingFilter(as_of=NOW))
            assert asyncio.run(listing.all()) is not None
        elif row.has("probabilities"):
            assert all(p.probability() >= 0 for p in row.need("probabilities").members().values())
        elif row.has("round") and row.has("outcomes"):
            window = asyncio.run(ProphetArenaWindows(_client()).read(row, NOW, ListingReport()))
            assert [target.id for target in window.question.targets] == list(row.texts("outcomes"))
        else:
            # Other answers, such as histories of market prices, must at least be objects.
            assert row.members(), name


OFFICIAL = "arena"
CHECKS = [
    Check(
        service=SERVICE,
        what="an open event: state, criteria, crowd, at most one outcome",
        recordings=(OPEN,),
        function=_open_event,
    ),
    Check(
        service=SERVICE,
        what="a resolved event without criteria, and how it came out",
        recordings=(RESOLVED,),
        function=_resolved_event,
    ),
    Check(service=SERVICE, what="one's own forecasts, read back", recordings=(OWN,), function=_own_forecasts),
    Check(service=SERVICE, what="our requests fit the list of its endpoints", recordings=(OPEN,), function=_requests),
    Check(
        service=SERVICE,
        what="answers written by the official client's models, whole and with everything optional left out",
        function=_official_models,
        module=OFFICIAL,
    ),
    Check(
        service=SERVICE,
        what="the official client reads events, windows, the week and the entry of our practice server",
        function=_served(lambda url: asyncio.to_thread(_official_reads, url)),
        module=OFFICIAL,
    ),
    Check(
        service=SERVICE,
        what="the official client submits to our practice server, live and weekly, and its receipts open their seals",
        function=_served(lambda url: asyncio.to_thread(_official_submits, url)),
        module=OFFICIAL,
    ),
    Check(
        service=SERVICE,
        what="signatures of receipts (Ed25519) are checked as the official client does it, forged ones too",
        function=_served(lambda url: asyncio.to_thread(_official_signatures, url)),
        module=OFFICIAL,
    ),
    Check(
        service=SERVICE,
        what="the official client finds what we submitted, live and weekly",
        function=_served(_we_submit),
        module=OFFICIAL,
    ),
    Check(
        service=SERVICE,
        what="a data set is downloaded, checked and read as the official client does it",
        function=_served(lambda url: asyncio.to_thread(_official_dataset, url)),
        module=OFFICIAL,
    ),
    Check(
        service=SERVICE,
        what="whatever was recorded is read or refused with a reason",
        recordings=("*",),
        function=lambda: sweep(SERVICE, _any),
    ),
]
