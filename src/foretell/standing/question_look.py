"""One look at a standing question: what is new is judged, and the belief is updated only if it bears on the question.

A look is stored in one transaction with the belief it led to, the evidence it saw and the time of the next look. What a
model is to judge is in the journal before the model is asked, so a look that is killed at any point is repeated with
the same requests and their stored replies.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from foretell.data.http import SourceError
from foretell.data.markets.market import PricePoint
from foretell.data.untrusted import for_log, question_for_prompt
from foretell.forecasters.combine.clamp import Clamp
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.forecasters.news.judge import NewsText, judge_news
from foretell.forecasters.news.revise import PriorForecast, RevisedForecast, revise_forecast
from foretell.frozen import frozen
from foretell.metrics.transforms import logit, sigmoid
from foretell.models.budget import Budget
from foretell.models.canonical import content_key
from foretell.models.model import BudgetExceeded, ModelError
from foretell.number_text import percent, plural
from foretell.questions.codec import checked_fields, parse_json, plain_data
from foretell.questions.errors import InputError
from foretell.runs.combine import answer_clamp
from foretell.standing.budget import look_budget
from foretell.standing.confirm import confirm_by_itself, last_day
from foretell.standing.look import MOST_NEW, Sighting, new_value, price_points
from foretell.standing.news import address_key, unseen, waiting_news
from foretell.standing.record import (
    Look,
    NewEvidence,
    QuestionRecord,
    StandingBelief,
    StandingQuestion,
    Trigger,
)
from foretell.standing.schedule import interval, is_scheduled, next_look
from foretell.standing.settings import watch_keys
from foretell.standing.time_left import after_time, has_to_happen
from foretell.standing.update import LEAST_STEP, bounded, has_moved, with_prices
from foretell.standing.watcher import LookReport, Watcher, run_settings

MOST_JUDGED = 40
"""Texts that are judged together; what is left waits for the next look."""
CLAIM = "watched question"


async def look_at(watcher: Watcher, standing_id: str, now: datetime, *, if_due: bool = False) -> Look | None:
    """Look at a question: read what is new, judge it, and store the look with the belief it led to.

    The first look asks the question. A second process does nothing while one is at it; with `if_due`, also not if one
    has looked since the look was found to be due.

    Returns:
        The look; None if another process is looking at the question, or it is no longer open or due.

    Raises:
        NoAnswer: If the question could not be answered for the first time.
        InputError: If its settings cannot be used on this machine.
    """
    async with watcher.claims.claim(CLAIM, standing_id) as ours:
        if not ours:
            return None
        planned = await watcher.store.db.aside(watcher.store.next_look, standing_id)
        if if_due and (planned is None or planned > now):
            return None
        while True:
            record = await watcher.store.db.aside(watcher.store.record, standing_id)
            if record.standing.state != "open":
                return None
            question_look = _QuestionLook(watcher=watcher, record=record, now=now)
            look = await question_look.take()
            # A look that a killed process began is finished with what that saw; what is new since then comes next.
            if look.at + interval(record.standing, look.at) > now:
                return look


@frozen
class _Outcome:
    """What a look concluded."""

    why: str
    bears: bool | None = None
    news: tuple[NewEvidence, ...] = ()
    waits: tuple[NewEvidence, ...] = ()
    evidence: tuple[NewEvidence, ...] = ()
    revised: RevisedForecast | None = None


@frozen
class _QuestionLook:
    """One look at one question."""

    watcher: Watcher
    record: QuestionRecord
    now: datetime

    @property
    def standing(self) -> StandingQuestion:
        return self.record.standing

    @property
    def number(self) -> int:
        return self.record.looks[-1].number + 1 if self.record.looks else 1

    @property
    def prior(self) -> StandingBelief | None:
        return self.record.beliefs[-1] if self.record.beliefs else None

    async def take(self) -> Look:
        """Take the look and store it. Its time is that of what it saw, and a belief's the time when it was made."""
        watcher, store, id = self.watcher, self.watcher.store, self.standing.id
        await self._notify_again()
        seen = await store.db.aside(store.seen, id)
        key = content_key(["look", id, self.standing.opened_at.isoformat(), self.number])
        kept = await watcher.journal.database.aside(watcher.journal.find, key)
        if kept is not None:
            sighting = checked_fields(parse_json(kept.decode()), Sighting)
        else:
            sighting = self._compared(await watcher.sources.read(self.standing, self.now), seen)
        news, marks = self._news(sighting, seen)
        waiting = waiting_news(self.record.looks, self.record.beliefs)
        if kept is None and (self.prior is None or news or waiting):
            # A repeated look must send the same requests, so that their replies are found.
            stored = await watcher.journal.once_json(key, "look", lambda: _at_once(plain_data(sighting)))
            sighting = checked_fields(stored, Sighting)
            news, marks = self._news(sighting, seen)
        pays = self.prior is None or bool(news or waiting) or self._has_closed(sighting.at)
        budget = await self._budget(self.now) if pays else Budget("look")
        triggers = self._triggers(sighting, news)
        if self.prior is None:
            look, belief = await self._first(sighting, news, budget)
        else:
            look, belief = await self._later(self.prior, sighting, triggers, news, waiting, budget)
        planned = next_look(self.standing, sighting.at)
        marks = [*marks, *look.waits]
        if not await self._stored(look, belief, planned, marks):
            return look  # By a process that took over, with the same contents.
        report = LookReport(standing=self.standing, look=look, belief=belief, previous=self.prior, next_look=planned)
        watcher.tell(report)
        if watcher.notify is not None:
            await watcher.notify(report)
        if self._has_closed(sighting.at):
            await self._propose(sighting.at, budget)
        return look

    async def _propose(self, at: datetime, budget: Budget) -> None:
        """Propose the outcome; the next look tries again if that fails."""
        watcher, store, id = self.watcher, self.watcher.store, self.standing.id
        if watcher.propose is None:
            return
        record = await store.db.aside(store.record, id)
        try:
            proposal = await watcher.propose(record, at, budget)
        except (ModelError, SourceError, CannotForecast, TimeoutError, InputError) as error:
            watcher.warn(f"no outcome of {id} could be proposed: {for_log(str(error) or type(error).__name__)}")
            return
        if proposal is not None:
            await store.db.aside(store.add_proposal, id, proposal)
            watcher.warn(for_log(f"{id}, outcome: {proposal.status}. {proposal.why}"))
        if await store.db.aside(confirm_by_itself, store, id, at) and watcher.learn is not None:
            await store.db.aside(watcher.learn, await store.db.aside(store.record, id))

    async def _budget(self, now: datetime) -> Budget:
        """Return the budget of the day on which the look is taken, whenever its evidence was first seen."""
        journal, settings = self.watcher.journal, self.watcher.settings
        return await journal.database.aside(look_budget, self.standing, now, settings, journal.ledger)

    async def _stored(
        self, look: Look, belief: StandingBelief | None, planned: datetime, marks: Sequence[NewEvidence]
    ) -> bool:
        store = self.watcher.store
        return await store.db.aside(store.add_look, self.standing.id, look, planned, belief=belief, seen=marks)

    async def _notify_again(self) -> None:
        """Send the notices of the last belief if the process was killed before it could."""
        notify, belief = self.watcher.notify, self.prior
        if notify is None or belief is None or belief.look != self.record.looks[-1].number:
            return
        previous = self.record.beliefs[-2] if len(self.record.beliefs) > 1 else None
        last = self.record.looks[-1]
        await notify(LookReport(standing=self.standing, look=last, belief=belief, previous=previous, next_look=None))

    def _has_closed(self, at: datetime) -> bool:
        closes = last_day(self.standing.question)
        return closes is not None and at >= closes

    # What is new.

    def _compared(self, sighting: Sighting, seen: Collection[str]) -> Sighting:
        """Return what was seen, without the documents that were seen before and with the prices that moved."""
        documents = [
            item
            for item in sighting.documents
            if item.key not in seen and (item.sentences or address_key(item.url) not in seen)
        ]
        moved = [target for target in sighting.prices if self._moved(target, sighting)]
        return replace(sighting, documents=tuple(documents), history=(), moved=tuple(moved))

    def _moved(self, target: str, sighting: Sighting) -> bool:
        prior = self.prior
        if prior is None or target not in prior.prices:
            return prior is not None and bool(sighting.prices)
        own = [PricePoint(at=look.at, p=look.prices[target]) for look in self.record.looks if target in look.prices]
        points = [*price_points(sighting, target), *own]
        steps = watch_keys(self.standing.settings).price_steps
        return has_moved(sighting.prices[target], prior.prices[target], points, sighting.at - prior.at, steps)

    def _news(self, sighting: Sighting, seen: Collection[str]) -> tuple[list[NewEvidence], list[NewEvidence]]:
        """Return what is new, and what is only to be marked as seen."""
        earlier = [item for look in self.record.looks for item in (*look.news, *look.waits)]
        earlier += [item for belief in self.record.beliefs for item in belief.evidence]
        news, marks = unseen(sighting.documents, seen, earlier)
        old = [item for item in news if self._is_old(item, sighting.at)]
        fresh = [item for item in news if not self._is_old(item, sighting.at)]
        if self.prior is not None and len(fresh) > MOST_NEW:
            later = {address_key(item.url) for item in fresh[MOST_NEW:] if item.url}
            marks = [mark for mark in marks if not mark.url or address_key(mark.url) not in later]
            fresh = fresh[:MOST_NEW]
        if sighting.value is not None and sighting.series_key not in seen:
            value = new_value(sighting)
            first = all(look.value is None for look in self.record.looks)
            if first:
                marks.append(value)
            else:
                fresh.insert(0, value)
        return fresh, [*marks, *(NewEvidence(key=item.key, text="") for item in old)]

    def _is_old(self, item: NewEvidence, at: datetime) -> bool:
        """Whether a document was there when the question was asked for the first time."""
        began = min([self.standing.opened_at, *(look.at for look in self.record.looks)])
        if self.prior is None or item.published is None or at < began:
            return False  # If the clock was set back, it is not known when the question was opened.
        # Many sources only state the day, so what has that day may be newer.
        return item.published.date() < began.date()

    def _triggers(self, sighting: Sighting, news: Sequence[NewEvidence]) -> tuple[Trigger, ...]:
        if self.prior is None:
            return ("first",)
        triggers: list[Trigger] = []
        if is_scheduled(self.standing, self.record.looks[-1].at, sighting.at):
            triggers.append("clock")
        if sighting.moved:
            triggers.append("price")
        if any(item.key == sighting.series_key for item in news):
            triggers.append("series")
        if any(item.key != sighting.series_key for item in news):
            triggers.append("document")
        return tuple(triggers)

    # What follows from it.

    async def _first(
        self, sighting: Sighting, news: Sequence[NewEvidence], budget: Budget
    ) -> tuple[Look, StandingBelief]:
        """Ask the question. What the searches find now counts as seen, because the answer had the same sources."""
        answer = await self.watcher.asker.first(self.standing, sighting, budget)
        belief = StandingBelief(number=1, look=self.number, at=self.now, prices=sighting.prices, **vars(answer))
        belief = replace(belief, coherent=await self._coherent(belief))
        look = self._look(sighting, ("first",), _Outcome(why="It was asked for the first time.", news=tuple(news)))
        return replace(look, billed=answer.billed), belief

    def _look(self, sighting: Sighting, triggers: Sequence[Trigger], outcome: _Outcome, billed: float = 0.0) -> Look:
        problems = f" Not read: {'; '.join(sighting.problems)[:400]}." if sighting.problems else ""
        return Look(
            number=self.number,
            at=sighting.at,
            triggers=tuple(triggers),
            prices=sighting.prices,
            value=sighting.value,
            value_day=sighting.value_day,
            news=outcome.news,
            waits=outcome.waits,
            bears=outcome.bears,
            why=f"{outcome.why}{problems}",
            billed=billed,
        )

    async def _later(
        self,
        prior: StandingBelief,
        sighting: Sighting,
        triggers: tuple[Trigger, ...],
        news: Sequence[NewEvidence],
        waiting: Sequence[NewEvidence],
        budget: Budget,
    ) -> tuple[Look, StandingBelief | None]:
        outcome = await self._judged(prior, sighting, news, waiting, budget)
        # A reply that a killed process paid for was paid for this look: its slot is in no other request.
        billed = round(budget.billed.dollars + budget.unknown.dollars + budget.reused.dollars, 9)
        by_time = self._by_time(prior, sighting, outcome, waiting)
        belief = self._belief(prior, sighting, triggers, outcome, billed, by_time)
        if belief is not None:
            belief = replace(belief, coherent=await self._coherent(belief))
            if by_time:
                triggers = (*triggers, "time")
            if outcome.revised is None:
                outcome = replace(outcome, why=f"{belief.moved_by} {outcome.why}".strip())
        return self._look(sighting, triggers, outcome, billed), belief

    async def _judged(
        self,
        prior: StandingBelief,
        sighting: Sighting,
        news: Sequence[NewEvidence],
        waiting: Sequence[NewEvidence],
        budget: Budget,
    ) -> _Outcome:
        """Return what the news means. If it cannot be judged, it waits for the next look."""
        asked = (*waiting, *news)[:MOST_JUDGED]
        left = _Outcome(why="", news=tuple(news))
        if self._has_closed(sighting.at):
            return replace(left, why="It has closed, and its outcome is not confirmed yet.")
        if not asked:
            return _Outcome(why="Nothing new was found.")
        if run_settings(self.standing) is None:
            values = [item.text for item in news if item.key == sighting.series_key]
            texts = len(news) - len(values)
            unread = f"{plural(texts, 'new text')} cannot be judged, because no model is named." if texts else ""
            return replace(left, why=" ".join(filter(None, [*values, unread])) or "Nothing new was found.")
        try:
            async with self.watcher.models(self.standing, sighting.at, budget) as context:
                outcome = await self._by_models(prior, sighting, asked, context)
                return replace(outcome, waits=tuple(item for item in news if item not in asked))
        except (BudgetExceeded, ModelError, CannotForecast, TimeoutError, SourceError) as error:
            problem = str(error) or type(error).__name__
            when = "tomorrow" if "budget of the day" in problem else "at the next look"
            count = plural(len(asked), "new text")
            return replace(left, why=f"{count} will be judged {when}, and the last belief stands: {for_log(problem)}.")

    async def _by_models(
        self, prior: StandingBelief, sighting: Sighting, asked: Sequence[NewEvidence], context: Context
    ) -> _Outcome:
        question = replace(question_for_prompt(self.standing.question), due=sighting.at)
        slot = f"watched {self.standing.id}/look {self.number}"
        texts = {item.key: NewsText(text=item.text, url=item.url, published=item.published) for item in asked}
        # A new value of the series that decides bears on the question by definition.
        doubtful = [item for item in asked if not item.key.startswith("series ")]
        verdicts = (
            await judge_news(question, [texts[item.key] for item in doubtful], context, slot=f"{slot}/news")
            if doubtful
            else ()
        )
        by_key = {item.key: verdict for item, verdict in zip(doubtful, verdicts, strict=True)}
        counted = [item for item in asked if item.key not in by_key or by_key[item.key].bears]
        if not counted:
            reasons = "; ".join(dict.fromkeys(verdict.why for verdict in verdicts if verdict.why))[:600]
            why = f"{plural(len(asked), 'new text')} without bearing on the question: {reasons or 'no reason given'}."
            return _Outcome(why=why, bears=False, news=tuple(asked))
        revised = await revise_forecast(
            question,
            PriorForecast(p=prior.own or prior.p, at=prior.at, reason=prior.rationale, distribution=prior.distribution),
            [texts[item.key] for item in counted],
            context,
            slot=f"{slot}/belief",
        )
        evidence = tuple(replace(item, favours=favours) for item, favours in zip(counted, revised.favours, strict=True))
        return _Outcome(why=revised.reason, bears=True, news=tuple(asked), evidence=evidence, revised=revised)

    def _belief(
        self,
        prior: StandingBelief,
        sighting: Sighting,
        triggers: Sequence[Trigger],
        outcome: _Outcome,
        billed: float,
        by_time: Mapping[str, float],
    ) -> StandingBelief | None:
        """Return the new belief; None if nothing changed."""
        question, revised, spec = self.standing.question, outcome.revised, run_settings(self.standing)
        own = dict(revised.p if revised is not None else prior.own or prior.p)
        if self._has_closed(sighting.at):
            return None
        if spec is None and (free := self._without_model(sighting, triggers)):
            own = free
        elif by_time:
            own = dict(by_time)
        elif revised is None and not ({"price", "clock"} & set(triggers) and sighting.prices):
            return None
        clamp: Clamp | None = None if spec is None else answer_clamp(spec)
        p = own if spec is None else with_prices(own, sighting.prices, question.exclusivity)
        if question.range is None:
            p = bounded(p, question.exclusivity, clamp)
        least = LEAST_STEP if by_time else LEAST_STEP / 2
        if revised is None and max(abs(p[target] - prior.p[target]) for target in p) < least:
            return None
        moved_by = _time_change(prior, p, sighting, last_day(question)) if by_time else _price_change(prior, sighting)
        return StandingBelief(
            number=prior.number + 1,
            look=self.number,
            at=self.now,
            p=p,
            ranges=_moved_ranges(prior, p),
            evidence=outcome.evidence,
            rationale=prior.rationale if revised is None else revised.reason,
            prices=sighting.prices,
            base_rates=prior.base_rates,
            run=prior.run,
            billed=billed,
            moved_by=moved_by if revised is None else "",
            own=own,
            distribution=prior.distribution if revised is None else revised.distribution,
        )

    def _by_time(
        self, prior: StandingBelief, sighting: Sighting, outcome: _Outcome, waiting: Sequence[NewEvidence]
    ) -> dict[str, float]:
        """Return the probabilities by time alone; empty if it does not apply.

        It does not if anything else says more: a model that has read news, news that nobody has judged yet, or a price.
        """
        standing, deadline = self.standing, last_day(self.standing.question)
        unjudged = outcome.bears is None and (outcome.news or waiting)
        priced = sighting.prices or prior.prices  # A price that cannot be read now is still part of the belief.
        idle = sighting.searched and not (outcome.revised or unjudged or outcome.waits or priced)
        if not idle or deadline is None or run_settings(standing) is None or not has_to_happen(standing.question):
            return {}
        return after_time(prior.own or prior.p, prior.at, sighting.at, deadline)

    def _without_model(self, sighting: Sighting, triggers: Sequence[Trigger]) -> dict[str, float]:
        """Return the probabilities of a market or else of a series, for a question that names no model."""
        targets = {target.id for target in self.standing.question.targets}
        for p, trigger in ((sighting.prices, "price"), (sighting.series_p, "series")):
            if set(p) == targets:
                return dict(p) if {trigger, "clock"} & set(triggers) else {}
        return {}

    async def _coherent(self, belief: StandingBelief) -> Mapping[str, float]:
        coherent = self.watcher.coherent
        return {} if coherent is None else await coherent(self.standing, belief)


async def _at_once(value: Any) -> Any:
    return value


def _time_change(prior: StandingBelief, p: Mapping[str, float], sighting: Sighting, deadline: datetime | None) -> str:
    assert deadline is not None
    left, before = ((deadline - at) / timedelta(days=1) for at in (sighting.at, prior.at))
    change = f"Time alone changed it from {percent(prior.p['yes'])} to {percent(p['yes'])}"
    return f"{change}: {left:.0f} of {before:.0f} days are left, and nothing that bears on it was found."


def _price_change(prior: StandingBelief, sighting: Sighting) -> str:
    moves = [
        f"{'' if target == 'yes' else f'of {target[:40]} '}from {percent(prior.prices[target])} to {percent(price)}"
        for target, price in sighting.prices.items()
        if target in prior.prices and price != prior.prices[target]
    ]
    return f"The price went {', '.join(moves[:4])}." if moves else "There is a price now." * bool(sighting.prices)


def _moved_ranges(prior: StandingBelief, p: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return the last ranges, moved by as much as the belief: in log-odds they are as wide as before."""
    ranges: dict[str, tuple[float, float]] = {}
    for target, ends in prior.ranges.items():
        if target in p and target in prior.p:
            low, high, new, old = logit([*ends, p[target], prior.p[target]], 1e-4)
            ranges[target] = (float(sigmoid(low + new - old)), float(sigmoid(high + new - old)))
    return ranges
