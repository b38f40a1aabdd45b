"""Watch questions: ask each once, keep looking for news, and update the answer when they bear on it."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from typing import Any

from foretell.forecasters.forecaster import CannotForecast
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.number_text import percent, plural
from foretell.operations.ask import AskResult, names_model, prepare_ask, stored_answer
from foretell.operations.requests.asking import AskRequest
from foretell.operations.sharpen import accepted, sharpen_typed, sharpening_lines
from foretell.operations.typed_question import typed_question
from foretell.questions.errors import InputError
from foretell.questions.forecast import Numeric
from foretell.questions.question import Question, Snapshot
from foretell.questions.trace import BeliefRevised, EvidenceFound
from foretell.report.result import Result
from foretell.runs.costs import cost_in_errors
from foretell.runs.executor import WatchEvents
from foretell.runs.public_answer import answer_without_model
from foretell.runs.question_sets import typed_questions
from foretell.runs.runner import check_run, execute_run, prepare_run
from foretell.runs.runtime import refuse_unpriced
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.runs.spec import WATCH, RunSpec
from foretell.runs.store import RunStore
from foretell.standing.after_look import LookNotifier, coherent_with_related, public_proposals
from foretell.standing.budget import question_account, unopened_budget
from foretell.standing.learning import keep_outcomes
from foretell.standing.look import PublicLook, Sighting
from foretell.standing.news import content_key
from foretell.standing.notices import check_notices
from foretell.standing.opening import open_standing
from foretell.standing.question_checks import unresolvable_note
from foretell.standing.question_look import look_at
from foretell.standing.record import NewEvidence, Sharpening, StandingBelief, StandingQuestion
from foretell.standing.settings import read_watch_settings
from foretell.standing.store import StandingStore
from foretell.standing.watch import POLL_SECONDS, watch
from foretell.standing.watcher import FirstAnswer, LookReport, Watcher, public_models, run_settings

SIMULATED_POLL = 0.2
"""Seconds between checks of a clock that may jump."""


@frozen
class WatchedQuestion:
    """The state of a watched question."""

    id: str
    question: str
    state: str
    p: Mapping[str, float]
    """Target → probability; empty before the first answer."""
    looks: int
    beliefs: int
    next_look: datetime | None
    billed: float


@frozen
class WatchResult(Result):
    """What a watch did, and the state of the questions."""

    questions: tuple[WatchedQuestion, ...]
    looks: tuple[LookReport, ...] = ()
    """Those of this time."""
    failures: tuple[str, ...] = ()
    """Looks of this time that failed as a whole, and are tried again later."""
    paid: Money = field(default_factory=Money)
    """What the questions have cost so far."""
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """3 if a look failed."""
        return 3 if self.failures else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the questions, and the looks of this time."""
        looks = [
            {
                "question": report.standing.id,
                "number": report.look.number,
                "at": report.look.at.isoformat(),
                "triggers": list(report.look.triggers),
                "why": report.look.why,
                "news": len(report.look.news),
                "billed": report.look.billed,
                "p": None if report.belief is None else dict(report.belief.p),
            }
            for report in self.looks
        ]
        ends = {"failures": list(self.failures), "notes": list(self.notes)}
        return {"questions": self.rows(), "looks": looks, **self.paid.to_dict(), **ends}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per question."""
        return [
            {**vars(row), "p": dict(row.p), "next_look": None if row.next_look is None else row.next_look.isoformat()}
            for row in self.questions
        ]

    def __str__(self) -> str:
        if not self.questions:
            return 'No question is watched: foretell ask "Will …?" --watch opens one.'
        lines = [
            f"{row.id}: {', '.join(f'{target} {percent(p)}' for target, p in row.p.items()) or 'no answer yet'}; "
            f"{plural(row.looks, 'look')}, {plural(row.beliefs, 'belief')}, {row.state}"
            + ("" if row.next_look is None else f", next look {row.next_look:%Y-%m-%d %H:%M}")
            for row in self.questions
        ]
        return "\n".join([*lines, f"{plural(len(self.looks), 'look')} this time; {self.paid} so far"])


# The first look asks the question.


@frozen
class AskByRun:
    """Asks a watched question for the first time, as `foretell ask` does."""

    settings: Settings
    on_event: WatchEvents | None = None

    async def first(self, standing: StandingQuestion, sighting: Sighting, budget: Budget) -> FirstAnswer:
        """Return the answer of a run. It has the same id whenever it is begun, and continues after a crash."""
        spec, question = run_settings(standing), with_prices_of(standing.question, sighting)
        if spec is None:
            answer = await answer_without_model(question, self.settings, past=False)
            distribution = answer.forecast.distribution
            return FirstAnswer(
                p=answer.forecast.p,
                ranges=answer.ranges,
                rationale=answer.forecast.rationale,
                distribution=distribution if isinstance(distribution, Numeric) else None,
            )
        prepared = prepare_run(spec, typed_questions([question]))
        within = unopened_budget(standing, self.settings, budget.id)
        done = await execute_run(prepared, replace(self.settings, budget=within), on_event=self.on_event)
        with closing(RunStore(self.settings.store)) as store, cost_in_errors(done.money):
            answer = stored_answer(store, prepared.spec, question)
            evidence = _evidence(store, prepared.spec, question)
            rates = store.rates(prepared.spec.id)
        return _first_answer(answer, evidence, done.money, {target: p for (_, _, target), p in rates.items()})


def _first_answer(
    answer: AskResult, evidence: tuple[NewEvidence, ...], money: Money, rates: Mapping[str, float]
) -> FirstAnswer:
    if answer.forecast.fallback:
        raise CannotForecast(f"the first answer would be a fallback: {answer.forecast.problem}")
    distribution = answer.forecast.distribution
    return FirstAnswer(
        p=answer.forecast.p,
        # Before the price and the estimate without a model were counted.
        own={} if answer.combined is None else answer.combined.steps[0].p,
        ranges=answer.ranges,
        rationale=answer.rationale,
        base_rates=rates,
        distribution=distribution if isinstance(distribution, Numeric) else None,
        evidence=evidence,
        run=answer.run or "",
        billed=money.billed,
    )


def with_prices_of(question: Question, sighting: Sighting) -> Question:
    """Return the question with the fresh prices of markets that ask the same, unless its own were given."""
    targets = tuple(
        replace(target, snapshot=Snapshot(at=sighting.at, last_price=sighting.prices[target.id]))
        if target.snapshot is None and target.id in sighting.prices
        else target
        for target in question.targets
    )
    return replace(question, targets=targets)


def _evidence(store: RunStore, spec: RunSpec, question: Question) -> tuple[NewEvidence, ...]:
    """Return what the trials found, so that a later document with the same fact is no news."""
    found: dict[str, NewEvidence] = {}
    for _, _, event in store.events(spec.id, question.id):
        if isinstance(event, EvidenceFound):
            for item in event.items:
                text, source = item.get("fact", ""), item.get("source", "").rpartition(" ")[2]
                url = source if source.startswith(("http://", "https://")) else ""
                favours = question.targets[0].id if item.get("direction") == "for" else ""
                key = content_key(text)
                found.setdefault(key, NewEvidence(key=key, text=text, url=url, favours=favours))
    return tuple(found.values())


# The operation.


async def watch_questions(
    request: AskRequest,
    settings: Settings | None,
    *,
    watch: WatchEvents | None,
    tell: Callable[[str], None],
    begin: Callable[[asyncio.Event], None],
) -> WatchResult:
    """Watch the questions of a request; see `ask_or_watch`."""
    settings = settings or load_settings()
    sharpening = None
    if request.sharpen is not None:
        request, sharpening = await _sharpened(request, settings, tell)
    stop = asyncio.Event()
    begin(stop)
    operation = WatchOperation(request=request, settings=settings, sharpening=sharpening, on_event=watch, tell=tell)
    return await operation.run(stop)


async def _sharpened(
    request: AskRequest, settings: Settings, tell: Callable[[str], None]
) -> tuple[AskRequest, Sharpening]:
    """Return the request with the wording that the model proposes, and what was changed."""
    if not request.question or request.names_watched:
        raise InputError("applies to a new question", column="--sharpen", hint="leave it out")
    prepare_ask(request, settings)  # What cannot be asked is refused before anything is paid.
    with closing(Journal(settings.journal)) as journal:
        proposal, _ = await sharpen_typed(request, settings, journal)
    for line in ("asked with this wording:", *sharpening_lines(proposal.sharpening)):
        tell(line)
    return accepted(request, proposal.sharpening), proposal.sharpening


@frozen
class WatchOperation:
    """One call of `ask --watch`."""

    request: AskRequest
    settings: Settings
    sharpening: Sharpening | None = None
    """How the wording of a new question was changed."""
    on_event: WatchEvents | None
    tell: Callable[[str], None]

    async def run(self, stop: asyncio.Event) -> WatchResult:
        """Open or find the questions, and watch them until they are no longer open or `stop` is set."""
        request, settings, looks, failures = self.request, self.settings, list[LookReport](), list[str]()
        clock = clock_of(settings)
        opening = self._opening()
        with closing(RunStore(settings.store)) as runs, closing(Journal(settings.journal)) as journal:
            store = StandingStore(runs.database)

            def told(report: LookReport) -> None:
                looks.append(report)
                self.tell(str(report))
                if report.belief is not None and self.on_event is not None:
                    self.on_event(0, _event(report.belief, report.look.why))

            def failed(line: str) -> None:
                failures.append(line)
                self.tell(line)

            notifier = LookNotifier(store=store, settings=settings, tell=self.tell)
            watcher = Watcher(
                settings=settings,
                store=store,
                journal=journal,
                clock=clock,
                sources=PublicLook(settings=settings),
                asker=AskByRun(settings=settings, on_event=self.on_event),
                models=public_models(settings, journal),
                propose=public_proposals(settings, journal),
                coherent=coherent_with_related(store),
                learn=partial(keep_outcomes, runs),
                notify=notifier.send,
                deliver=notifier.deliver,
                tell=told,
                warn=self.tell,
                failed=failed,
            )
            ids = await self._ids(watcher, opening)
            if opening is not None and not (await store.db.aside(store.record, ids[0])).beliefs:
                # Unlike later looks, what is wrong with the first answer ends the command.
                await look_at(watcher, ids[0], clock())
            poll = SIMULATED_POLL if settings.clock else POLL_SECONDS
            await watch(watcher, once=request.once, ids=ids or None, stop=stop, poll_seconds=poll)
            states = [_state(store, standing) for standing in store.questions() if not ids or standing.id in ids]
            accounts = [question_account(standing) for standing in store.questions() if not ids or standing.id in ids]
            paid = sum(journal.ledger.money_of(accounts).values(), Money())
        return WatchResult(questions=tuple(states), looks=tuple(looks), failures=tuple(failures), paid=paid)

    def _opening(self) -> tuple[Question, dict[str, Any]] | None:
        """Return the question to open and its settings, checked; None if the request names none."""
        request, settings = self.request, self.settings
        if not request.question or request.names_watched:
            return None
        section = request.watch_section()
        check_notices(section, settings)
        if not names_model(request):
            return typed_question(request, clock_of(settings)()), {WATCH: section}
        prepared = prepare_ask(request, settings, self.sharpening)
        check_run(prepared.spec, settings)
        keys = read_watch_settings(section)
        if keys.budget is not None or keys.day_budget is not None:
            refuse_unpriced(prepared.spec, Budget("question", dollars=keys.budget or keys.day_budget))
        for notice in prepared.notices:
            self.tell(notice)
        return prepared.questions[0], {**json.loads(prepared.spec.to_json()), WATCH: section}

    async def _ids(self, watcher: Watcher, opening: tuple[Question, dict[str, Any]] | None) -> list[str]:
        """Return the questions to watch; empty for all that are open."""
        store, request = watcher.store, self.request
        if opening is not None:
            question, settings = opening
            known = {standing.id for standing in store.questions()}
            standing = open_standing(store, question, settings, watcher.clock(), self.sharpening)
            what = "goes on with" if standing.id in known else "opened"
            self.tell(f"{what} {standing.id}: foretell ask {standing.id} --watch watches it again")
            for note in unresolvable_note(standing.question):
                self.tell(note)
            if standing.id not in known:
                return [standing.id]
        elif not request.question:
            return []
        else:
            standing = store.find(request.question)
        if section := request.watch_section():
            stated = {**standing.settings, WATCH: {**standing.settings.get(WATCH, {}), **section}}
            check_notices(stated[WATCH], self.settings)
            store.update(replace(standing, settings=stated))
        if standing.state != "open":
            hint = f"foretell record {standing.id} --state open" if standing.state == "paused" else "ask it anew"
            raise InputError(f"{standing.id} is {standing.state}", column="QUESTION", hint=hint)
        return [standing.id]


def _event(belief: StandingBelief, why: str) -> BeliefRevised:
    return BeliefRevised(step=belief.look, p=belief.p, reason=why, belief={})


def _state(store: StandingStore, standing: StandingQuestion) -> WatchedQuestion:
    record = store.record(standing.id)
    return WatchedQuestion(
        id=standing.id,
        question=standing.question.text,
        state=standing.state,
        p=record.beliefs[-1].p if record.beliefs else {},
        looks=len(record.looks),
        beliefs=len(record.beliefs),
        next_look=store.next_look(standing.id),
        billed=sum(look.billed for look in record.looks),
    )
