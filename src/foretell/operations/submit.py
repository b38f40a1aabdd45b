"""From what a person names to a platform: which forecasts, under which name, through which connection."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.runs.settings import KEYS, Settings
from foretell.submit.ledger import SubmissionLedger
from foretell.submit.sending import SendOptions
from foretell.submit.submission import Submitter

SERVICES = {"metaculus": "metaculus", "prophet-arena": "prophet_arena"}
"""Platform → its name in settings."""
SENDER = ("organization", "model", "model_organization", "number")


@dataclass(frozen=True, kw_only=True)
class SubmitRequest:
    """How forecasts are to be handed in. Every platform reads what concerns it."""

    to: str
    comment: str | None = None
    clip: bool = False
    named: str | None = None
    """The post that the only question answers."""
    agent: str = ""
    window: str | None = None
    sender: dict[str, Any] = field(default_factory=dict[str, Any])
    """Whose ForecastBench file it is."""
    folder: Path = field(default_factory=Path)
    reasoning: bool = False
    incomplete: bool = False

    @classmethod
    def of(cls, to: str, options: Mapping[str, Any]) -> "SubmitRequest":
        """From options of the command line, of which four describe the sender."""
        sender = {name: options[name] for name in SENDER}
        return cls(to=to, sender=sender, **{name: told for name, told in options.items() if name not in SENDER})


@dataclass(frozen=True, kw_only=True)
class SubmissionForecasts:
    """Forecasts, one for each question, and the questions as far as they are known."""

    forecasts: tuple[Forecast, ...]
    questions: tuple[Question, ...] = ()

    def only(self, ids: Sequence[str]) -> "SubmissionForecasts":
        """Of these questions alone."""
        known = {f.question_id for f in self.forecasts} | {q.id for q in self.questions}
        if strays := [id for id in ids if id not in known]:
            raise InputError(f"there is no question {strays[0]!r}", column="--question", hint=", ".join(sorted(known)))
        return SubmissionForecasts(
            forecasts=tuple(f for f in self.forecasts if f.question_id in ids),
            questions=tuple(q for q in self.questions if q.id in ids),
        )


def retry_policy(order: SubmitRequest, settings: Settings, *, again: bool) -> SendOptions:
    """How hard to try; a server of one's own need not be given time."""
    own = SERVICES.get(order.to) in settings.addresses
    return SendOptions(again=again, pause=0.1) if own else SendOptions(again=again)


def open_ledger(settings: Settings) -> SubmissionLedger:
    """This machine's ledger of what was handed in."""
    return SubmissionLedger(settings.home / "ledger.jsonl")


def forecasts_to_submit(settings: Settings, what: str, *, combine: str | None, at: datetime) -> SubmissionForecasts:
    """The forecasts of a file, or of the run whose id begins so, its trials combined."""
    if Path(what).is_file():
        from foretell.submit.forecast_file import read_forecasts

        forecasts, questions = read_forecasts(Path(what), at)
        return SubmissionForecasts(forecasts=tuple(forecasts), questions=tuple(questions))
    return _of_run(settings, what, combine)


def _of_run(settings: Settings, start: str, combine: str | None) -> SubmissionForecasts:
    from foretell.runs.combine import combining_by_name, one_forecast_per_question
    from foretell.runs.spec import spec_from_json
    from foretell.runs.store import RunStore, find_run

    with closing(RunStore(settings.store)) as store:
        run = find_run(store, start)
        spec = spec_from_json(next(row.spec for row in store.runs() if row.id == run))
        answers, questions = list(store.answers(run)), store.questions(run)
    if spec.mode != "live":
        hint = "forecasts for a live platform come from a run with mode: live"
        raise InputError(f"run {run} is a backtest: it pretends that it is another day", hint=hint)
    if spec.clairvoyant:
        raise InputError(f"run {run} was clairvoyant: it saw the future, so it is no forecast")
    if not answers:
        raise InputError(f"run {run} has no answers yet", hint="start it again")
    found = one_forecast_per_question(answers, questions, combining_by_name(combine or spec.aggregate))
    return SubmissionForecasts(forecasts=tuple(found), questions=tuple(questions))


def forecasts_of_round(settings: Settings, found: SubmissionForecasts, day: str | None) -> SubmissionForecasts:
    """The forecasts of one round, with the whole question set of that round."""
    from foretell.data.datasets.cache import DownloadCache
    from foretell.data.datasets.forecastbench_download import read_pulled

    days = sorted({forecast.as_of.at.date().isoformat() for forecast in found.forecasts})
    if day is None and len(days) > 1:
        raise InputError(f"forecasts are of {len(days)} days: {', '.join(days)}", hint="name one with --round DATE")
    day = day or days[0]
    forecasts = tuple(f for f in found.forecasts if f.as_of.at.date().isoformat() == day) or found.forecasts
    questions = read_pulled(DownloadCache(settings.home / "forecastbench"), day).questions
    return SubmissionForecasts(forecasts=forecasts, questions=tuple(questions))


def relevant(
    order: SubmitRequest, found: SubmissionForecasts, at: datetime
) -> tuple[SubmissionForecasts, tuple[str, ...]]:
    """What of many questions concerns a platform now, and what was left out: nobody need ask about the rest."""
    if order.named is not None or order.to == "forecastbench":
        return found, ()
    away = {question.id for question in found.questions if not _belongs(order.to, question)}
    over = {q.id for q in found.questions if q.id not in away and q.closes_at is not None and q.closes_at <= at}
    kept = [f.question_id for f in found.forecasts if f.question_id not in away | over]
    if not kept:
        return found, ()
    notes = [f"{len(away)} questions of other platforms are left out"] if away else []
    notes += [f"{len(over)} questions are closed"] if over else []
    silent = [q.id for q in found.questions if q.id not in away | over]
    return found.only([*kept, *silent]), tuple(notes)


def _belongs(platform: str, question: Question) -> bool:
    from foretell.data.markets.prices import market_ref

    ref = market_ref(question, question.targets[0])
    return SERVICES[platform] in (question.source, None if ref is None else ref.platform)


@asynccontextmanager
async def open_submitter(
    order: SubmitRequest, settings: Settings, found: SubmissionForecasts, at: datetime
) -> AsyncGenerator[Submitter]:
    """A submitter that has looked at what the platform asks now."""
    if order.to == "forecastbench":
        yield _round(order, found, at)
        return
    async with open_platform(order.to, settings) as wire:
        open_ = _metaculus if order.to == "metaculus" else _prophet_arena
        yield await open_(order, found, at, wire)


@asynccontextmanager
async def open_platform(platform: str, settings: Settings) -> "AsyncGenerator[PlatformConnection]":
    """A way to a platform: one client that reads, and one that writes and never repeats by itself."""
    from foretell.data.http import AsyncHttpClient
    from foretell.submit.sending import SEND_ONCE

    service = SERVICES[platform]
    key = settings.key(service)
    if not key:
        raise InputError(f"{platform} needs a key", hint=f"set {KEYS[service][0]}")
    host = {"host": settings.addresses[service]} if service in settings.addresses else {}
    async with AsyncHttpClient() as reading, AsyncHttpClient(limits=SEND_ONCE) as writing:
        yield PlatformConnection(key=key, host=host, reading=reading, writing=writing)


@dataclass(frozen=True, kw_only=True)
class PlatformConnection:
    """A key, an address where it is not the public one, and two clients."""

    key: str = field(repr=False)
    host: dict[str, Any]
    reading: Any
    writing: Any

    @property
    def paces(self) -> dict[str, Any]:
        """A server of one's own need not be spared."""
        return {"per_second": 100.0} if self.host else {}


async def _metaculus(
    order: SubmitRequest, found: SubmissionForecasts, at: datetime, wire: PlatformConnection
) -> Submitter:
    from foretell.data.markets.metaculus import MetaculusClient
    from foretell.submit.metaculus import MetaculusOptions, MetaculusSubmitter, read_posts
    from foretell.submit.metaculus_client import MetaculusWriter

    named = _named(order, found)
    comment = order.comment if order.comment in ("private", "public") else None
    wishes = MetaculusOptions(comment=comment, clip=order.clip, named=named)
    client = MetaculusClient(http=wire.reading, token=wire.key, **wire.host, **wire.paces)
    desk = MetaculusWriter(client=client, http=wire.writing, token=wire.key, **wire.host, **wire.paces)
    account, seen = await read_posts(desk, found.forecasts, found.questions, wishes)
    return MetaculusSubmitter(desk=desk, account=account, seen=seen, now=at, wishes=wishes)


def _named(order: SubmitRequest, found: SubmissionForecasts) -> dict[str, str]:
    ids = {forecast.question_id for forecast in found.forecasts}
    if order.named is None:
        return {}
    if len(ids) != 1:
        raise InputError(f"one post cannot be the answer to {len(ids)} questions", column="--as", hint="--question ID")
    return {ids.pop(): order.named}


async def _prophet_arena(
    order: SubmitRequest, found: SubmissionForecasts, at: datetime, wire: PlatformConnection
) -> Submitter:
    from foretell.data.markets.prophet_arena import ProphetArenaClient
    from foretell.submit.prophet_arena import (
        ProphetArenaOptions,
        ProphetArenaSubmitter,
        ProphetArenaWriter,
        read_events,
    )

    if not order.agent:
        raise InputError("Prophet Arena wants to know which agent this is", column="--agent")
    client = ProphetArenaClient(http=wire.reading, key=wire.key, **wire.host, **wire.paces)
    desk = ProphetArenaWriter(client=client, http=wire.writing, key=wire.key, **wire.host, **wire.paces)
    entrant = ProphetArenaOptions(agent=order.agent, rationale=order.comment is not None, window=order.window)
    return ProphetArenaSubmitter(desk=desk, entrant=entrant, seen=await read_events(desk, found.forecasts), now=at)


def _round(order: SubmitRequest, found: SubmissionForecasts, at: datetime) -> Submitter:
    from foretell.submit.forecastbench import ForecastBenchSubmitter, ForecastBenchTeam, files_of, round_of

    missing = [name for name in ("organization", "model") if not order.sender.get(name)]
    if missing:
        raise InputError("ForecastBench wants to know whose file it is", column=f"--{missing[0]}")
    submitter = ForecastBenchSubmitter(
        sender=ForecastBenchTeam(**order.sender),
        folder=order.folder,
        now=at,
        reasoning=order.reasoning,
        incomplete=order.incomplete,
    )
    return replace(submitter, found=files_of(order.folder, round_of(found.questions)))
