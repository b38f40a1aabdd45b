"""A folder of Google Cloud Storage that a benchmark gave a team: one file is put there, over nobody else's.

Requests are those of the storage's JSON API: an upload names the generation of the file that it replaces (0 where there
is none yet), so that sending twice after a lost answer cannot overwrite what came in between.
"""

import hashlib
import re
from base64 import b64encode
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from foretell.data.http import AsyncHttpClient, NotFound, SourceError
from foretell.data.payload import Payload
from foretell.questions.errors import InputError
from foretell.submit.sending import Poster, SubmissionRefused

HOST = "https://storage.googleapis.com"
TOKEN_VARIABLE = "FORECASTBENCH_TOKEN"
NOT_THERE = "0"
"""The generation of a file that is not there."""
ROUND = "{round}"
"""In the address of a folder: stands for the due date."""
_FOLDER = re.compile(r"gs://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])((?:/[^/\s?#*\[\]\\]{1,200}){0,20})/?")


@dataclass(frozen=True, kw_only=True)
class BucketFolder:
    """Where a team may upload.

    >>> BucketFolder.read("gs://forecasts/{round}/our-team/", "2026-08-02").address("a.json")
    'gs://forecasts/2026-08-02/our-team/a.json'
    """

    bucket: str
    folder: str = ""

    @classmethod
    def read(cls, written: str, day: str) -> "BucketFolder":
        """From an address such as `gs://BUCKET/FOLDER`; `{round}` in it stands for the due date."""
        found = _FOLDER.fullmatch(written.strip().replace(ROUND, day)[:2000])
        if found is None or ".." in found[2].split("/"):
            raise InputError(
                f"{written[:200]!r} is no folder of a bucket", column="--bucket", hint="gs://BUCKET/FOLDER"
            )
        return cls(bucket=found[1], folder=found[2].strip("/"))

    def place(self, name: str) -> str:
        """The name of a file within the bucket."""
        return f"{self.folder}/{name}" if self.folder else name

    def address(self, name: str) -> str:
        """Where a file is, as people write it."""
        return f"gs://{self.bucket}/{self.place(name)}"


def md5_of(content: bytes) -> str:
    """The checksum by which the storage names a content."""
    return b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


class BucketUploader:
    """Puts files into a folder, and looks what is there. The token travels in a header and is never shown."""

    def __init__(
        self,
        *,
        folder: BucketFolder,
        reading: AsyncHttpClient,
        writing: AsyncHttpClient,
        token: str,
        host: str = HOST,
        wait_seconds: float = 4.0,
    ) -> None:
        """`writing` must not repeat requests by itself."""
        self.folder = folder
        self._reading = reading
        self._host = host.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        headers = {**self._headers, "Content-Type": "application/json"}
        self._poster = Poster(http=writing, headers=headers, secret=token, wait_seconds=wait_seconds)
        reading.keep_secret(token)

    def __repr__(self) -> str:
        return f"BucketUploader(folder={self.folder!r})"

    async def found(self, name: str) -> Payload | None:
        """What the storage tells of a file; None where it is not there."""
        place = quote(self.folder.place(name), safe="")
        try:
            answer = await self._reading.get(
                f"{self._host}/storage/v1/b/{self.folder.bucket}/o/{place}", headers=self._headers
            )
        except NotFound:
            return None
        return Payload.of(answer)

    async def holds(self, name: str, md5: str) -> bool:
        """Whether just this content is there; a team that may only write is told nothing, and nothing is assumed."""
        try:
            there = await self.found(name)
        except SourceError as error:
            if error.status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise
            return False
        return there is not None and there.words("md5Hash") == md5

    async def upload(self, name: str, content: bytes, generation: str) -> dict[str, Any]:
        """Put it there in place of that generation; what the storage says of it.

        A file that is there in another generation is not touched: where it holds just this content all is well, else
        it is refused.
        """
        place = quote(self.folder.place(name), safe="")
        address = f"{self._host}/upload/storage/v1/b/{self.folder.bucket}/o"
        url = f"{address}?uploadType=media&name={place}&ifGenerationMatch={quote(generation, safe='')}"
        try:
            row = Payload.of(await self._poster.post(url, content=content))
        except SubmissionRefused as error:
            if error.status != HTTPStatus.PRECONDITION_FAILED:
                raise
            if await self.holds(name, md5_of(content)):
                there = await self.found(name)
                return self._told(name, there)
            problem = f"{self.folder.address(name)} is there already and was not written by this machine"
            raise SubmissionRefused(
                f"{problem}: look at it, then say --again to replace it", url=error.url, status=error.status
            ) from None
        if row.words("md5Hash") not in ("", md5_of(content)):
            raise SubmissionRefused("what arrived is not what was sent", url=address)
        return self._told(name, row)

    async def generation(self, name: str) -> str:
        """The generation of what is there now, to replace it; 0 where nothing is, or where that may not be read."""
        try:
            there = await self.found(name)
        except SourceError as error:
            if error.status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise
            return NOT_THERE
        return NOT_THERE if there is None else there.words("generation") or NOT_THERE

    def _told(self, name: str, row: Payload | None) -> dict[str, Any]:
        known = {} if row is None else {key: row.words(key) for key in ("generation", "md5Hash") if row.words(key)}
        return {"address": self.folder.address(name), **known}
