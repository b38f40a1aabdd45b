"""ForecastBench submissions: one file per round, checked against the round's questions, written and uploaded."""

import hashlib
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, date, datetime
from http import HTTPStatus
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import quote

from foretell.data.datasets.forecastbench import question_file
from foretell.data.files import write_atomically
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.payload import Payload
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, QuestionKind, Target
from foretell.tournaments.submission import (
    ItemResult,
    OutgoingRequest,
    Poster,
    SubmissionItem,
    SubmissionPlan,
    SubmissionRefused,
    newest_forecasts,
    send_one,
)

# Uploading to the team's folder on Google Cloud Storage, through its JSON API. An upload has the generation of the
# file that it replaces (0 for a new file), so a repeated upload after a lost answer cannot overwrite a newer file.

HOST = "https://storage.googleapis.com"
TOKEN_VARIABLE = "FORECASTBENCH_TOKEN"
NOT_THERE = "0"
"""The generation of a file that does not exist."""
ROUND = "{round}"
"""Placeholder for the round's due date in the address of a folder."""
_FOLDER = pattern(r"gs://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])((?:/[^/\s?#*\[\]\\]{1,200}){0,20})/?")


@frozen
class BucketFolder:
    """A folder in a bucket that a team may upload to.

    >>> BucketFolder.read("gs://forecasts/{round}/our-team/", "2026-08-02").address("a.json")
    'gs://forecasts/2026-08-02/our-team/a.json'
    """

    bucket: str
    folder: str = ""

    @classmethod
    def read(cls, address: str, day: str) -> "BucketFolder":
        """Parse an address such as `gs://BUCKET/FOLDER`; `{round}` in it is replaced by the due date."""
        match = _FOLDER.fullmatch(address.strip().replace(ROUND, day)[:2000])
        if match is None or ".." in match[2].split("/"):
            raise InputError(
                f"{address[:200]!r} is not a folder in a bucket",
                column="tournament.bucket",
                hint="e.g. gs://my-bucket/my-team, in lower case",
            )
        return cls(bucket=match[1], folder=match[2].strip("/"))

    def place(self, name: str) -> str:
        """Return the path of a file within the bucket."""
        return f"{self.folder}/{name}" if self.folder else name

    def address(self, name: str) -> str:
        """Return the full `gs://` address of a file."""
        return f"gs://{self.bucket}/{self.place(name)}"


def md5_of(content: bytes) -> str:
    """Return the MD5 checksum of a file in base64, as the storage service reports it."""
    return b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


class BucketUploader:
    """Uploads files to a folder and checks what it contains. The token is sent in a header and never shown."""

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
        """Create an uploader. The client `writing` must not retry requests by itself."""
        self.folder = folder
        self._reading = reading
        self._host = host.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        headers = {**self._headers, "Content-Type": "application/json"}
        self._poster = Poster(http=writing, headers=headers, secret=token, wait_seconds=wait_seconds)
        reading.keep_secret(token)

    def __repr__(self) -> str:
        return f"BucketUploader(folder={self.folder!r})"

    async def metadata(self, name: str) -> Payload | None:
        """Return the storage service's metadata of a file; None if it does not exist or this team may not read it."""
        place = quote(self.folder.place(name), safe="")
        try:
            answer = await self._reading.get(
                f"{self._host}/storage/v1/b/{self.folder.bucket}/o/{place}", headers=self._headers
            )
        except SourceError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise
            return None
        return Payload.of(answer)

    async def holds(self, name: str, md5: str) -> bool:
        """Return whether the file exists with exactly this content, as far as this team can see."""
        metadata = await self.metadata(name)
        return metadata is not None and metadata.words("md5Hash") == md5

    async def upload(self, name: str, content: bytes, generation: str) -> dict[str, Any]:
        """Upload a file, replacing that generation, and return its address, generation and checksum.

        A file with another generation is not overwritten. The upload counts as done if that file has the same content.
        Otherwise it raises `SubmissionRefused`.
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
                return self._answer(name, await self.metadata(name))
            problem = f"{self.folder.address(name)} exists already and was not written by this machine"
            raise SubmissionRefused(
                f"{problem}: look at it, then replace it with --overwrite", url=error.url, status=error.status
            ) from None
        if row.words("md5Hash") not in ("", md5_of(content)):
            raise SubmissionRefused("the file that arrived differs from the one that was sent", url=address)
        return self._answer(name, row)

    async def generation(self, name: str) -> str:
        """Return the current generation of the file, in order to replace it; "0" if no file is visible."""
        metadata = await self.metadata(name)
        return NOT_THERE if metadata is None else metadata.words("generation") or NOT_THERE

    def _answer(self, name: str, row: Payload | None) -> dict[str, Any]:
        known = {} if row is None else {key: row.words(key) for key in ("generation", "md5Hash") if row.words(key)}
        return {"address": self.folder.address(name), **known}


# The file.


NEEDED_PERCENT = 95
"""Percentage of the market forecasts, and of the data-set forecasts, that a submission must answer to be ranked."""
MOST_FILES = 3
MAX_NAMED_QUESTIONS = 20
"""Maximum number of missing questions that an error lists."""
KINDS: tuple[QuestionKind, ...] = ("market", "dataset")
HEAD_FIELDS = ("organization", "model", "model_organization", "question_set")
ROW_FIELDS = ("id", "source", "forecast", "resolution_date")
"""The fields that every row needs; the reasoning is optional."""

SubmissionRowKey = tuple[str, str, str | None]
"""Source, id and resolution date: the target that one row of a submission answers."""


@frozen
class ForecastBenchTeam:
    """The submitting team and the name of its entry.

    >>> ForecastBenchTeam(organization="Example A.I.", model="full", number=2).file_name("2026-08-02")
    '2026-08-02.Example AI.2.json'
    """

    organization: str
    model: str
    model_organization: str = ""
    """The organization that made the model; if empty, the team's own organization."""
    number: int = 1
    """Number of the file, from 1 to 3, because a team may submit three files per round."""

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise InputError("the model has no name", column="tournament.entry")
        if not self._stem or any(mark in self.organization for mark in "/\\\0"):
            problem = f"{self.organization!r} cannot be used in a file name"
            raise InputError(problem, column="tournament.organization", hint="write a name of letters, without slashes")
        if not 1 <= self.number <= MOST_FILES:
            raise InputError(f"{self.number} is not 1 to {MOST_FILES}", column="tournament.file_number")

    @property
    def _stem(self) -> str:
        return self.organization.replace(".", "").strip()

    def file_name(self, day: str) -> str:
        """Return the required file name: due date, organization without dots, and file number."""
        return f"{day}.{self._stem}.{self.number}.json"


@frozen
class RoundCoverage:
    """How much of one kind of question a submission answers.

    >>> print(RoundCoverage(kind="dataset", asked=40, missing={"fred/DAAA": 3}))
    dataset forecasts: 37 of 40 (92.5 %); missing: fred/DAAA (3 dates)
    """

    kind: QuestionKind
    asked: int
    missing: Mapping[str, int]
    """Question id → number of missing rows."""

    @property
    def given(self) -> int:
        """The number of rows of this kind in the submission."""
        return self.asked - sum(self.missing.values())

    @property
    def enough(self) -> bool:
        """Whether the coverage is high enough to be ranked."""
        return 100 * self.given >= NEEDED_PERCENT * self.asked

    def __str__(self) -> str:
        """Describe the coverage in one line."""
        share = 100 * self.given / self.asked if self.asked else 100.0
        summary = f"{self.kind} forecasts: {self.given} of {self.asked} ({share:.1f} %)"
        if not self.missing:
            return summary
        names = [f"{id} ({n} dates)" if n > 1 else id for id, n in list(self.missing.items())[:MAX_NAMED_QUESTIONS]]
        rest = len(self.missing) - len(names)
        return f"{summary}; missing: {', '.join(names)}" + (f" and {rest} more questions" if rest else "")


def build_submission(
    forecasts: Iterable[Forecast], questions: Sequence[Question], sender: ForecastBenchTeam, *, reasoning: bool = False
) -> dict[str, Any]:
    """Build the content of the file, in the order of the question set; targets without a forecast get no row.

    `questions` is the complete question set of one round. Raises `InputError` if a forecast is of anything else.
    """
    by_question = _by_question(forecasts, questions)
    rows = [
        _row(question, target, forecast, reasoning=reasoning)
        for question in questions
        if (forecast := by_question.get(question.id)) is not None
        for target in question.targets
        if target.id in forecast.p
    ]
    return {
        "organization": sender.organization,
        "model": sender.model,
        "model_organization": sender.model_organization or sender.organization,
        "question_set": question_file(round_of(questions)).rpartition("/")[2],
        "forecasts": rows,
    }


def round_of(questions: Sequence[Question]) -> str:
    """Return the due date of a question set; all its questions must belong to one round."""
    days = {question.due.date().isoformat() for question in questions}
    if len(days) != 1:
        raise ValueError(f"questions must be those of one round, got {sorted(days) or 'none'}")
    return days.pop()


def check_submission(body: Mapping[str, Any], questions: Sequence[Question]) -> tuple[RoundCoverage, ...]:
    """Check a submission as the benchmark does, and return how much of each kind of question it covers.

    Raises `InputError` for a row that the benchmark would reject. It also works for files made elsewhere.
    """
    _check_head(body, question_file(round_of(questions)).rpartition("/")[2])
    by_key = {key: question for question in questions for key in _keys(question)}
    answered: set[SubmissionRowKey] = set()
    for number, row in enumerate(body["forecasts"], start=1):
        if not isinstance(row, Mapping) or any(field not in row for field in ROW_FIELDS):
            raise InputError(f"needs the fields {', '.join(ROW_FIELDS)}", row=number, column="forecasts")
        key = (row["source"], row["id"], row["resolution_date"])
        if problem := _problem(key, row["forecast"], by_key, answered):
            name = " ".join(str(part) for part in key if part is not None)
            raise InputError(f"{name}: {problem}", row=number, column="forecasts")
        answered.add(key)
    return tuple(_coverage(kind, questions, answered) for kind in KINDS)


def _check_head(body: Mapping[str, Any], question_set: str) -> None:
    """Check the fields outside the rows: who submits, and which question set is answered."""
    for field_name in HEAD_FIELDS:
        if not isinstance(body.get(field_name), str) or not body[field_name].strip():
            raise InputError("is missing", column=field_name, hint=f"write {', '.join(HEAD_FIELDS)} as texts")
    if body["question_set"] != question_set:
        raise InputError(f"{body['question_set']} is not {question_set}", column="question_set")
    if not isinstance(body.get("forecasts"), list):
        raise InputError("is not a list", column="forecasts")


def require_coverage(coverages: Iterable[RoundCoverage]) -> None:
    """Raise an `InputError` that lists what is missing if the submission would not be ranked."""
    short = [str(coverage) for coverage in coverages if not coverage.enough]
    if short:
        problem = f"{NEEDED_PERCENT} % of each kind are needed to be ranked; {'; '.join(short)}"
        hint = "start the run again to fill the gaps, or write it anyway: --set tournament.incomplete=true"
        raise InputError(problem, hint=hint)


def _by_question(forecasts: Iterable[Forecast], questions: Sequence[Question]) -> dict[str, Forecast]:
    targets = {question.id: {target.id for target in question.targets} for question in questions}
    by_question: dict[str, Forecast] = {}
    for forecast in forecasts:
        stray = sorted(set(forecast.p) - targets.get(forecast.question_id, set()))
        if stray:
            problem = f"{forecast.question_id} {stray[0]} was forecast, but is not in the question set"
            raise InputError(problem, hint="is this the version of the round that was asked?")
        if by_question.setdefault(forecast.question_id, forecast) is not forecast:
            raise ValueError(f"there are two forecasts of {forecast.question_id}; combine the trials first")
    return by_question


def _row(question: Question, target: Target, forecast: Forecast, *, reasoning: bool) -> dict[str, Any]:
    source, id, day = _key(question, target)
    text = forecast.rationale if reasoning and forecast.rationale else None
    return {"id": id, "source": source, "forecast": forecast.p[target.id], "resolution_date": day, "reasoning": text}


def _key(question: Question, target: Target) -> SubmissionRowKey:
    own = question.id.removeprefix(f"{question.source}/")
    return question.source, own, None if question.kind == "market" else target.id


def _keys(question: Question) -> Iterator[SubmissionRowKey]:
    return (_key(question, target) for target in question.targets)


def _problem(
    key: tuple[Any, Any, Any], p: Any, by_key: Mapping[SubmissionRowKey, Question], answered: set[SubmissionRowKey]
) -> str:
    if any(not isinstance(part, str) for part in key[:2]) or not isinstance(key[2], str | None) or key not in by_key:
        return "is not asked in this round"
    if key in answered:
        return "is forecast twice"
    if isinstance(p, bool) or not isinstance(p, int | float) or not isfinite(p) or not 0 <= p <= 1:
        return f"{p!r} is not a probability in [0, 1]"
    return ""


def _coverage(kind: QuestionKind, questions: Sequence[Question], answered: set[SubmissionRowKey]) -> RoundCoverage:
    of_kind = [question for question in questions if question.kind == kind]
    missing = Counter(question.id for question in of_kind for key in _keys(question) if key not in answered)
    return RoundCoverage(kind=kind, asked=sum(len(question.targets) for question in of_kind), missing=dict(missing))


def checked_submission(
    forecasts: Iterable[Forecast],
    questions: Sequence[Question],
    sender: ForecastBenchTeam,
    *,
    reasoning: bool,
    incomplete: bool,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Build and check a submission; return its content and a description of the coverage of each kind.

    Raises `InputError` if the submission would not be ranked, unless `incomplete` is set.
    """
    body = build_submission(forecasts, questions, sender, reasoning=reasoning)
    coverages = check_submission(body, questions)
    if not incomplete:
        require_coverage(coverages)
    return body, tuple(map(str, coverages))


# Writing the file and uploading it to the team's folder.

PLATFORM = "forecastbench"
MAX_NAMED_FILES = 3


def closed_round(day: str, now: datetime) -> str:
    """Return why the benchmark accepts no files for a round at this time; empty if it does."""
    today, due = now.astimezone(UTC).date(), date.fromisoformat(day)
    if today < due:
        return f"the round of {day} begins on that day (UTC)"
    return f"the round of {day} was closed at the end of that day (UTC)" if today > due else ""


def files_of(folder: Path, day: str) -> dict[str, bytes]:
    """Return the files of a round in a folder: name → content."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob(f"{day}.*.json"))}


@frozen
class ForecastBenchSubmitter:
    """Plans, writes and uploads a team's file for a round."""

    sender: ForecastBenchTeam
    folder: Path
    now: datetime
    found: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """The files of the round that the folder already contains: name → content."""
    reasoning: bool = False
    incomplete: bool = False
    """Whether to write the file even if too many forecasts are missing for it to be ranked."""
    uploader: BucketUploader | None = None
    """Uploads the file; if None, the user uploads it by hand."""
    replaces: str = NOT_THERE
    """The generation of the uploaded file that may be replaced."""
    platform: str = PLATFORM

    def plan(self, forecasts: Sequence[Forecast], questions: Sequence[Question]) -> SubmissionPlan:
        """Plan one file and its upload, with their problems. `questions` is the round's complete set."""
        day = round_of(questions)
        name = self.sender.file_name(day)
        closed = closed_round(day, self.now)
        hint = "foretell submit --out FILE only writes such a file"
        problems = [*([f"{closed}; {hint}"] if closed else []), *_of_another_day(forecasts, day), *self._rivals(name)]
        body, notes = dict[str, Any](), list[str]()
        try:
            body = build_submission(newest_forecasts(forecasts), questions, self.sender, reasoning=self.reasoning)
            coverages = check_submission(body, questions)
            notes += [str(coverage) for coverage in coverages]
            short = [] if self.incomplete else [coverage.kind for coverage in coverages if not coverage.enough]
            problems += [
                f"less than {NEEDED_PERCENT} % of the {kind} forecasts: it would not be ranked" for kind in short
            ]
        except InputError as error:
            problems.append(str(error))
        item = SubmissionItem(
            question=f"{PLATFORM}/{day}#{self.sender.number}",
            part="file",
            content=body,
            title=name,
            problems=tuple(problems),
            notes=tuple(notes),
            standing=name in self.found and self.found[name] == file_bytes(body),
            record=ledger_record(name, body) if body else None,
        )
        items = (item,) if self.uploader is None else (item, self._upload_item(item, self.uploader.folder))
        return SubmissionPlan(platform=PLATFORM, account=self.sender.organization, items=items)

    def requests(self, items: Sequence[SubmissionItem]) -> list[OutgoingRequest]:
        """Return the file to write and its upload, as requests."""
        return [
            OutgoingRequest(method="POST", address=item.kept["address"], body=item.content)
            if item.part == "upload"
            else OutgoingRequest(method="WRITE", address=str(self.folder / item.title), body=item.content)
            for item in items
        ]

    async def stands(self, items: Sequence[SubmissionItem]) -> list[bool]:
        """Return whether each file already exists with this content, on this machine or in the team's folder."""
        return [
            self.uploader is not None and await self.uploader.holds(item.kept["file"], item.kept["md5"])
            if item.part == "upload"
            else self._there(item.kept)
            for item in items
        ]

    async def send(self, items: Sequence[SubmissionItem]) -> list[ItemResult]:
        """Write each file atomically, or upload it."""
        return [await self._send(item) for item in items]

    async def _send(self, item: SubmissionItem) -> ItemResult:
        content = file_bytes(item.content)
        if item.part == "upload" and self.uploader is not None:
            return await send_one(item, self.uploader.upload(item.title, content, self.replaces))
        write_atomically(self.folder / item.title, content)
        return ItemResult(item=item, fate="sent", answer={"file": str(self.folder / item.title)})

    def _upload_item(self, item: SubmissionItem, folder: BucketFolder) -> SubmissionItem:
        """Return the item for uploading a file, which is sent after the file is written."""
        sent: dict[str, Any] = {"md5": md5_of(file_bytes(item.content)), "address": folder.address(item.title)}
        record = None if item.record is None else {**item.record, **sent}
        return replace(item, part="upload", standing=False, notes=(), follows=(item.question,), record=record)

    def _rivals(self, name: str) -> list[str]:
        """Return conflicts with the round's other files: a model has one file, and a file name belongs to one model."""
        rivals: list[str] = []
        for other, text in self.found.items():
            organization, model = _signed(text)
            if other == name and model != self.sender.model:
                rivals.append(f"{name} has another model, {model!r}: use another file number")
            elif other != name and (organization, model) == (self.sender.organization, self.sender.model):
                rivals.append(f"{other} has this model already: a model has one file")
        return rivals

    def _there(self, record: Mapping[str, Any]) -> bool:
        path = self.folder / str(record["file"])
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == record["sha256"]


def file_bytes(body: Mapping[str, Any]) -> bytes:
    """Encode a submission as the bytes of its file."""
    return json.dumps(body, ensure_ascii=False, indent=1).encode()


def ledger_record(name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the ledger records of a file: its hash and every forecast, but no reasoning."""
    rows = [[row["source"], row["id"], row["resolution_date"], row["forecast"]] for row in body["forecasts"]]
    signed = {field: body[field] for field in HEAD_FIELDS}
    return {"file": name, "sha256": hashlib.sha256(file_bytes(body)).hexdigest(), **signed, "forecasts": rows}


def _of_another_day(forecasts: Sequence[Forecast], day: str) -> list[str]:
    stray = [forecast for forecast in forecasts if forecast.as_of.at.date().isoformat() != day]
    tested = sum(forecast.as_of.mode == "backtest" for forecast in forecasts)
    problems = [f"{tested} forecasts were made in a backtest, not live"] if tested else []
    if stray:
        named = ", ".join(
            f"{forecast.question_id} ({forecast.as_of.at.date()})" for forecast in stray[:MAX_NAMED_FILES]
        )
        problems.append(f"{len(stray)} forecasts were made as of another day than {day}: {named}")
    return problems


def _signed(text: bytes) -> tuple[Any, Any]:
    """Return the organization and the model of a file; None for both if it cannot be parsed."""
    try:
        body = json.loads(text)
    except ValueError:
        return None, None
    return (body.get("organization"), body.get("model")) if isinstance(body, dict) else (None, None)
