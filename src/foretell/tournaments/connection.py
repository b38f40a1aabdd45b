"""Connections to the platforms and the upload folder, and the ledger of this machine."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from foretell.data.http import AsyncHttpClient
from foretell.data.markets.metaculus import MetaculusClient
from foretell.data.markets.prophet_arena import ProphetArenaClient
from foretell.frozen import frozen
from foretell.questions.errors import InputError
from foretell.runs.settings import KEYS, Settings, clock_of
from foretell.tournaments.forecastbench import (
    NOT_THERE,
    PLATFORM,
    TOKEN_VARIABLE,
    BucketFolder,
    BucketUploader,
    ForecastBenchSubmitter,
    ForecastBenchTeam,
    files_of,
)
from foretell.tournaments.ledger import SubmissionHistory, SubmissionLedger, open_ledger
from foretell.tournaments.metaculus import MetaculusWriter
from foretell.tournaments.prophet_arena import ProphetArenaWriter
from foretell.tournaments.settings import ForecastBenchSettings
from foretell.tournaments.submission import SEND_ONCE, SendOptions, SubmissionSender, Submitter

SERVICES = {"metaculus": "metaculus", "prophet-arena": "prophet_arena"}
"""Platform → its name in the settings."""
BUCKETS = "buckets"
"""The name of the storage in the settings: FORETELL_BUCKETS_URL."""


def open_sender(submitter: Submitter, settings: Settings, platform: str, *, resend: bool = False) -> SubmissionSender:
    """Return what sends with this submitter and records it in the ledger of this machine."""
    # No need to wait long for a server on this machine.
    pause = 0.1 if SERVICES.get(platform) in settings.addresses else SendOptions.pause
    options = SendOptions(resend=resend, pause=pause)
    return SubmissionSender(submitter, open_ledger(settings), clock_of(settings), options)


@frozen
class PlatformConnection:
    """A key, an address if it is not the public one, and two clients."""

    key: str = field(repr=False)
    host: dict[str, Any]
    reading: Any
    writing: Any

    def metaculus(self) -> tuple[MetaculusClient, MetaculusWriter]:
        """Return a reader and a writer for Metaculus."""
        client = MetaculusClient(http=self.reading, token=self.key, **self.host)
        return client, MetaculusWriter(client=client, http=self.writing, token=self.key, **self.host)

    def prophet_arena(self) -> tuple[ProphetArenaClient, ProphetArenaWriter]:
        """Return a reader and a writer for Prophet Arena."""
        client = ProphetArenaClient(http=self.reading, key=self.key, **self.host)
        return client, ProphetArenaWriter(client=client, http=self.writing, key=self.key, **self.host)


@asynccontextmanager
async def open_platform(platform: str, settings: Settings) -> AsyncGenerator[PlatformConnection]:
    """Connect to a platform with one client that reads and one that writes and never retries by itself."""
    service = SERVICES[platform]
    key = settings.key(service)
    if not key:
        raise InputError(f"{platform} needs a key", hint=f"set {KEYS[service][0]}")
    host = {"host": settings.addresses[service]} if service in settings.addresses else {}
    access = settings.access
    async with AsyncHttpClient(access=access) as reading, AsyncHttpClient(limits=SEND_ONCE, access=access) as writing:
        yield PlatformConnection(key=key, host=host, reading=reading, writing=writing)


@asynccontextmanager
async def open_bucket(bucket: str | None, settings: Settings, day: str) -> AsyncGenerator[BucketUploader | None]:
    """Connect to a team's upload folder; None if no folder is named."""
    if bucket is None:
        yield None
        return
    folder, token = BucketFolder.read(bucket, day), settings.keys.get(TOKEN_VARIABLE, "")
    if not token:
        hint = f"export {TOKEN_VARIABLE}=$(gcloud auth print-access-token); without a bucket only the file is written"
        raise InputError("uploading needs a token", column="tournament.bucket", hint=hint)
    own: dict[str, Any] = {}
    if BUCKETS in settings.addresses:
        own = {"host": settings.addresses[BUCKETS], "wait_seconds": 0.1}
    access = settings.access
    async with AsyncHttpClient(access=access) as reading, AsyncHttpClient(limits=SEND_ONCE, access=access) as writing:
        yield BucketUploader(folder=folder, reading=reading, writing=writing, token=token, **own)


@asynccontextmanager
async def open_round(
    team: ForecastBenchTeam, day: str, own: ForecastBenchSettings, settings: Settings, folder: Path
) -> AsyncGenerator[ForecastBenchSubmitter]:
    """Open a submitter of a team's file for a round, which also uploads it if the settings name a bucket."""
    async with open_bucket(own.bucket, settings, day) as uploader:
        yield ForecastBenchSubmitter(
            sender=team,
            folder=folder,
            now=clock_of(settings)(),
            found=files_of(folder, day),
            reasoning=own.reasoning,
            incomplete=own.incomplete,
            uploader=uploader,
            replaces=await replaced_upload(team, day, uploader, open_ledger(settings), overwrite=own.overwrite),
        )


async def replaced_upload(
    team: ForecastBenchTeam, day: str, uploader: BucketUploader | None, ledger: SubmissionLedger, *, overwrite: bool
) -> str:
    """Return the generation of the uploaded file that may be replaced: this machine's own, or with `overwrite` any."""
    if uploader is None:
        return NOT_THERE
    name, key = team.file_name(day), (PLATFORM, team.organization, f"{PLATFORM}/{day}#{team.number}", "upload")
    own = SubmissionHistory.of(ledger.entries()).taken.get(key, [])
    if overwrite or (own and await uploader.holds(name, str(own[-1].content.get("md5")))):
        return await uploader.generation(name)
    generations = [
        cast("dict[str, Any]", entry.content.get("answer") or {}).get("generation")
        for entry in ledger.entries()
        if entry.kind == "receipt" and entry.key == key
    ]
    # A team without read access uses the generation of its last upload.
    return str(generations[-1]) if generations and generations[-1] else NOT_THERE
