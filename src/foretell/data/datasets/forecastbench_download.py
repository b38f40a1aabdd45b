"""Downloads of public question sets. Finished files are skipped, so an interrupted pull can simply be run again."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

from foretell.data.datasets.dataset import Dataset, DatasetRequest, Online
from foretell.data.datasets.forecastbench import (
    question_file,
    read_resolution_set,
    read_round,
    resolution_file,
    resolution_revisions,
)
from foretell.data.datasets.question_set import QuestionSet, union
from foretell.data.files import DownloadCache, home_folder
from foretell.data.http import AsyncHttpClient, Progress, SourceError
from foretell.data.service import ServiceConfig
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.question import Question, Snapshot, Target

FORECASTBENCH_URL = (
    "https://raw.githubusercontent.com/forecastingresearch/forecastbench-datasets/refs/heads/main/datasets"
)
FIRST_ROUND = date(2025, 3, 2)
"""Due date of the first round; since then there has been one every other Sunday."""
ROUND_DAYS = 14
_ROUND_FILE = pattern(r"(\d{4}-\d{2}-\d{2})-llm\.json")


@frozen
class PulledFile:
    """Result of downloading one file."""

    name: str
    state: str
    """'downloaded', 'updated', 'unchanged', 'not published yet', or the number of markets with a price."""
    bytes: int = 0
    revised: int = 0
    """Number of outcomes that the new version changed."""


class ForecastBenchDownload:
    """The public ForecastBench files and their local copies."""

    def __init__(self, cache: DownloadCache, client: AsyncHttpClient, *, url: str = FORECASTBENCH_URL) -> None:
        self.cache = cache
        self.client = client
        self.url = url.rstrip("/")

    async def latest(self) -> str:
        """Return the newest round's due date. The published file is a git symlink: its body is another file's name."""
        url = f"{self.url}/question_sets/latest-llm.json"
        body = (await self.client.get(url)).body[:200].decode("utf-8", "replace").strip()
        named = _ROUND_FILE.fullmatch(body) or re.search(r'"question_set":\s*"(\d{4}-\d{2}-\d{2})-llm\.json"', body)
        if named is None:
            raise SourceError(f"does not name a round: {body[:60]!r}", url=url)
        return named.group(1)

    async def pull(self, days: Sequence[str], watch: Callable[[str], Progress] | None = None) -> list[PulledFile]:
        """Download rounds: questions once, outcomes in their newest version."""
        for day in days:
            _check_day(day)
        done: list[PulledFile] = []
        for day in days:
            done.append(await self._questions(day, watch))
            done.append(await self._outcomes(day, watch))
        return done

    async def _questions(self, day: str, watch: Callable[[str], Progress] | None) -> PulledFile:
        """Download the questions. Published question sets never change, so an intact copy stays valid."""
        name = question_file(day)
        entry = self.cache.entry(name)
        if entry is not None:
            return PulledFile(name=name, state="unchanged", bytes=entry.bytes)
        try:
            return await self._fetch(name, "questions", watch)
        except SourceError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            raise InputError(f"there is no round {day}", hint=await self._known(day)) from None

    async def _outcomes(self, day: str, watch: Callable[[str], Progress] | None) -> PulledFile:
        name = resolution_file(day)
        try:
            return await self._fetch(name, "resolutions", watch)
        except SourceError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return PulledFile(name=name, state="not published yet")

    async def _fetch(self, name: str, list_name: str, watch: Callable[[str], Progress] | None) -> PulledFile:
        entry = self.cache.entry(name)
        url = f"{self.url}/{name}"
        condition = {"If-None-Match": entry.etag} if entry is not None and entry.etag else {}
        answer = await self.client.get(url, headers=condition, progress=watch(name) if watch else None)
        if entry is not None and answer.status == HTTPStatus.NOT_MODIFIED:
            return PulledFile(name=name, state="unchanged", bytes=entry.bytes)
        _check_body(answer.body, list_name, url)
        before = read_resolution_set(self.cache.root / name) if entry and list_name == "resolutions" else None
        same = entry is not None and (self.cache.root / name).read_bytes() == answer.body
        path = self.cache.put(name, answer.body, url=url, etag=answer.headers.get("etag", ""))
        if entry is None or same:
            return PulledFile(name=name, state="unchanged" if same else "downloaded", bytes=len(answer.body))
        changed = (
            0
            if before is None
            else len(resolution_revisions(before.resolutions, read_resolution_set(path).resolutions))
        )
        return PulledFile(name=name, state="updated", bytes=len(answer.body), revised=changed)

    async def _known(self, day: str) -> str:
        """Return a hint with the rounds near a day, for a round that does not exist."""
        try:
            known = rounds_until(await self.latest())
        except SourceError:
            known = pulled_rounds(self.cache)
        near = sorted(known, key=lambda other: abs(date.fromisoformat(other) - date.fromisoformat(day)))[:4]
        nearest = f"rounds near it: {', '.join(sorted(near))}"
        return f"{nearest}; latest {known[-1]}" if known else "without --round, the newest is pulled"


def rounds_cache(home: Path | None = None) -> DownloadCache:
    """Return where this machine keeps downloaded rounds."""
    return DownloadCache((home or home_folder()) / "forecastbench")


def pulled_rounds(cache: DownloadCache) -> list[str]:
    """Return the due dates of the rounds whose questions are downloaded."""
    matches = (_ROUND_FILE.fullmatch(Path(name).name) for name in cache.names("question_sets"))
    return [match.group(1) for match in matches if match]


def price_file(day: str) -> str:
    """Return the path, below the folder of rounds, of the market prices at a round's due time."""
    return f"prices/{day}.json"


def read_pulled(cache: DownloadCache, day: str) -> QuestionSet:
    """Read a downloaded round; each file is verified against its checksum first."""
    outcomes, here = resolution_file(day), cache.entries()
    question_set = read_round(cache.path(question_file(day)), cache.path(outcomes) if outcomes in here else None)
    return _with_prices(question_set, cache.path(price_file(day))) if price_file(day) in here else question_set


def _with_prices(question_set: QuestionSet, path: Path) -> QuestionSet:
    """Replace prices in the round with those closer to its due time."""
    try:
        prices: dict[str, dict[str, tuple[str, float]]] = json.loads(path.read_bytes())["prices"]
        newer = {
            (question, target): Snapshot(at=instant(at), last_price=price)
            for question, targets in prices.items()
            for target, (at, price) in targets.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError("contains no prices", path=path, hint="delete it and run foretell data pull again") from None

    def priced(question: Question, target: Target) -> Target:
        own, new = target.snapshot, newer.get((question.id, target.id))
        unusable = new is None or not question.as_of.admits(new.at) or (own is not None and own.at >= new.at)
        return target if unusable else replace(target, snapshot=new)

    questions = (
        replace(question, targets=tuple(priced(question, target) for target in question.targets))
        for question in question_set.questions
    )
    return replace(question_set, questions=tuple(questions))


def rounds_until(latest: str) -> list[str]:
    """Return the due dates of all rounds, one every two weeks, up to the latest.

    >>> rounds_until("2025-04-01")
    ['2025-03-02', '2025-03-16', '2025-03-30']
    """
    days = (date.fromisoformat(latest) - FIRST_ROUND).days
    return [(FIRST_ROUND + timedelta(days=n)).isoformat() for n in range(0, days + 1, ROUND_DAYS)]


def _check_day(day: str) -> None:
    try:
        known = date.fromisoformat(day).isoformat() == day
    except ValueError:
        known = False
    if not known:
        raise InputError(f"{day!r} is not a round", hint="write its due date, e.g. 2025-10-26")


def _check_body(body: bytes, list_name: str, url: str) -> None:
    """Raise if the body is truncated or an error page, which must never replace a good file."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"the response is not complete JSON ({error})", url=url) from None
    if not isinstance(value, dict) or not isinstance(value.get(list_name), list):
        raise SourceError(f"the response has no list named {list_name!r}", url=url)


def forecastbench(request: DatasetRequest) -> Dataset:
    """Open the data set `forecastbench` or `forecastbench:2026-03-15`; missing rounds are downloaded."""
    rounds = (*request.rounds, *filter(None, request.argument.split(",")))
    for day in rounds:
        _check_day(day)
    cache = rounds_cache() if request.folder is None else DownloadCache(request.folder)
    pulled = pulled_rounds(cache)
    missing = [day for day in rounds if day not in pulled]
    if missing or not pulled:
        _fetch_missing(cache, missing, request.online)
        pulled = pulled_rounds(cache)
    history = union("forecastbench", [read_pulled(cache, day) for day in pulled])
    return Dataset.rounds_of(history, rounds, path=cache.root)


def _fetch_missing(cache: DownloadCache, missing: Sequence[str], online: Online | None) -> None:
    """Download the named rounds, or the newest if none is named; on failure, an `InputError` says what to do."""
    wanted = f"round {', '.join(missing)}" if missing else "any round"
    command = " ".join(["foretell data pull forecastbench", *(f"--round {day}" for day in missing)])

    async def fetch(config: ServiceConfig) -> None:
        source = ForecastBenchDownload(cache, config.http, url=config.address or FORECASTBENCH_URL)
        await source.pull(missing or [await source.latest()])

    if online is None:
        raise InputError(f"{cache.root} does not contain {wanted} of ForecastBench", hint=command)
    try:
        online(fetch)
    except SourceError as error:
        problem = f"{wanted} of ForecastBench is not on this machine and could not be fetched: {error}"
        hint = f"with a network, {command}; or copy the folder {cache.root} from a machine that has it"
        raise InputError(problem, hint=hint) from None
