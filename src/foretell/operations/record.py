"""The record of one's own questions, and the history of one; confirm outcomes, pause questions and open them again."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, field, replace
from datetime import datetime
from typing import Any

from rich.console import Console

from foretell.frozen import frozen
from foretell.number_text import dollars, number, percent, plural, signed
from foretell.operations.requests.record import RecordRequest
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.report.document import ReportDocument
from foretell.report.numbers import estimate
from foretell.report.result import DocumentResult, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.runs.store import RunStore
from foretell.scoring.baselines import ALWAYS_HALF, BASE_RATE, MARKET_PRICE
from foretell.standing.confirm import confirm, look_again
from foretell.standing.history import QuestionHistory, answer_line, outcome_text, question_history, what_moved
from foretell.standing.learning import LearntWeight, keep_outcomes, learnt_weights
from foretell.standing.own_record import FIRST_ANSWER, OWN, OwnRecord, Update, own_record
from foretell.standing.post_mortem import PostMortem, PostMortems, post_mortems
from foretell.standing.record import QuestionRecord
from foretell.standing.record_report import history_report, learnt_text, record_report, record_sentence
from foretell.standing.store import StandingStore

MOST_SHOWN = 5
"""Maximum number of rows of each part in a terminal."""


@frozen
class RecordResult(DocumentResult):
    """The record of one's own questions."""

    own: OwnRecord
    post_mortems: PostMortems
    learnt: tuple[LearntWeight, ...] = ()
    next_looks: Mapping[str, datetime | None] = field(default_factory=dict[str, "datetime | None"])
    """Question → when it is looked at next."""

    @property
    def document(self) -> ReportDocument:
        """The report on the record."""
        return record_report(self.own, self.post_mortems, self.learnt)

    @property
    def sentence(self) -> str:
        """How good the forecasts are, in a sentence."""
        return record_sentence(self.own, self.post_mortems)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per question, with its forecast, price, outcome and score as far as they are known."""
        return [self._row(record) for record in self.own.records]

    def _row(self, record: QuestionRecord) -> dict[str, Any]:
        result = self.post_mortems.of(record.standing.id)
        question = result.question if result is not None else None
        last = question.last if question is not None else record.beliefs[-1] if record.beliefs else None
        looks = [look.prices for look in record.looks if look.prices]
        return {
            "id": record.standing.id,
            "question": record.standing.question.text,
            "state": record.standing.state,
            "waits_for_answer": record in self.own.waiting,
            "next_look": self.next_looks.get(record.standing.id),
            "p": dict(last.answer) if last is not None else None,
            "first": dict(record.beliefs[0].answer) if record.beliefs else None,
            "price": dict(question.prices) if question is not None else dict(looks[-1]) if looks else None,
            "outcome": dict(question.outcome) if question is not None else None,
            "known_at": question.known_at if question is not None else None,
            "brier": question.brier if question is not None else None,
            "price_brier": question.price_brier if question is not None else None,
            "brier_over_time": question.over_time if question is not None else None,
            "updates": max(len(record.beliefs) - 1, 0),
            "looks": len(record.looks),
            "fault": result.fault if result is not None else None,
            "fact_found": result.found if result is not None else None,
            "why": result.why if result is not None else self.own.left_out.get(record.standing.id),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return scores, verdicts, what updates were worth, post-mortems, what was learnt, and every question."""
        own, worth, research = self.own, self.own.updates, self.post_mortems.research
        names = (OWN, FIRST_ANSWER, MARKET_PRICE, BASE_RATE, ALWAYS_HALF)
        return plain_data(
            {
                "sentence": self.sentence,
                "scored": len(own.scored),
                "open": len(own.open),
                "waiting": [record.standing.id for record in own.waiting],
                "completion": own.completion,
                "brier_index": {name: own.metric("brier_index", name) for name in names if own.count(name)},
                "against": [verdict for verdict in (own.against_price, own.against_rate, own.against_first) if verdict],
                "updates": {
                    **{name: getattr(worth, name) for name in ("count", "better", "gain")},
                    "money": {"billed": worth.billed, "each": worth.each},
                },
                "over_time": own.over_time,
                "points": own.points,
                "research": {**asdict(research), "findable": research.findable},
                "faults": self.post_mortems.faults,
                "worst": [result.question.id for result in self.post_mortems.worst],
                "best": [result.question.id for result in self.post_mortems.best],
                "learnt": self.learnt,
                "how_resolved": own.how_resolved,
                "left_out": own.left_out,
                "questions": self.rows(),
            }
        )

    def print(self, console: Console) -> None:
        """Print the verdict, the scores, the worst and why, and what is open."""
        from rich.text import Text

        console.print(Text(self.sentence, style="bold"))
        own = self.own
        if not own.records:
            show_text(console, 'No question is watched. foretell ask "Will …?" --watch opens one.\n')
            return
        show_text(console, "\n" + "\n".join(self._facts()) + "\n")
        for title, results in (("Worst", self.post_mortems.worst), ("Best", self.post_mortems.best)):
            if results:
                console.print()
                show_table(console, results[:MOST_SHOWN], _columns(title))
        if own.open:
            console.print()
            columns: dict[TextColumn, Callable[[QuestionRecord], object]] = {
                TextColumn(head="Open", shrink=24): lambda record: record.standing.question.text,
                TextColumn(head="id"): lambda record: record.standing.id,
                TextColumn(head="now", right=True): _now,
                TextColumn(head="next", shrink=10, drop=1): self._next,
            }
            waiting = {record.standing.id for record in own.waiting}
            open_questions = sorted(own.open, key=lambda record: record.standing.id not in waiting)
            show_table(console, open_questions, columns)
        if own.waiting:
            show_text(console, "\nConfirm an outcome: foretell record ID --confirm proposed\n")

    def _next(self, record: QuestionRecord) -> str:
        if record in self.own.waiting:
            return "your answer"
        at = self.next_looks.get(record.standing.id)
        return record.standing.state if at is None else f"{at.day} {at:%b %H:%M}"

    def _facts(self) -> list[str]:
        own, worth, research = self.own, self.own.updates, self.post_mortems.research
        confirmed = len(own.scored) + len(own.left_out)
        lines = [f"{len(own.scored)} of {plural(confirmed, 'confirmed question')} scored, {len(own.open)} open"]
        if (index := own.metric("brier_index")) is not None:
            named = (("price", MARKET_PRICE), ("base rate", BASE_RATE), ("first answers", FIRST_ANSWER))
            others = [
                f"{name} {score.estimate:.1f} on {own.count(who)}"
                for name, who in named
                if (score := own.metric("brier_index", who)) is not None
            ]
            lines += [f"Brier index {estimate(index, 1)}", f"  {', '.join(others)}"]
        if worth.count:
            gain = "" if worth.gain is None else f", Brier score {signed(-worth.gain.estimate, 3)} each"
            way = f"{worth.better} the right way{gain}, {dollars(worth.each)} each"
            lines.append(f"{plural(worth.count, 'update')}: {way}")
        if research.findable:
            lines.append(f"research found the deciding fact in {research.found} of {research.findable}")
        return lines + [f"{weight.name}: {learnt_text(weight)}" for weight in self.learnt]


def _columns(title: str) -> dict[TextColumn, Callable[[PostMortem], object]]:
    """Return the columns of the worst questions, with what went wrong, or of the best, with the score of the price."""

    def price(result: PostMortem) -> str:
        return "" if result.question.price_brier is None else number(result.question.price_brier, 3)

    last: dict[TextColumn, Callable[[PostMortem], object]] = {
        TextColumn(head="why", drop=1): lambda result: result.fault
    }
    if title == "Best":
        last = {TextColumn(head="of the price", right=True, drop=1): price}
    return {
        TextColumn(head=title, shrink=24): lambda result: result.question.record.standing.question.text,
        TextColumn(head="said", right=True): lambda result: percent(
            result.question.last.answer[result.question.leading]
        ),
        TextColumn(head="was"): lambda result: outcome_text(result.question.record, result.question.outcome),
        TextColumn(head="Brier", right=True): lambda result: number(result.question.brier, 3),
        **last,
    }


def _now(record: QuestionRecord) -> str:
    return percent(max(record.beliefs[-1].answer.values())) if record.beliefs else "–"


@frozen
class HistoryResult(DocumentResult):
    """The history of one standing question."""

    history: QuestionHistory
    done: str = ""
    """What the request changed, in a sentence."""

    @property
    def document(self) -> ReportDocument:
        """The report on the question."""
        return history_report(self.history)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per look."""
        beliefs = {belief.look: belief for belief in self.history.record.beliefs}
        return [
            {
                "look": look.number,
                "at": look.at,
                "triggers": ", ".join(look.triggers),
                **{f"price {target}": price for target, price in look.prices.items()},
                "news": len(look.news),
                "bears": look.bears,
                "why": look.why,
                **{
                    f"p {target}": p
                    for target, p in (beliefs[look.number].answer if look.number in beliefs else {}).items()
                },
                "billed": look.billed + (beliefs[look.number].billed if look.number in beliefs else 0.0),
            }
            for look in self.history.record.looks
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the whole record of the question, and what follows from it."""
        return plain_data({**self.history.to_dict(), "done": self.done or None})

    def print(self, console: Console) -> None:
        """Print where the question stands, what was proposed, and what moved the forecast, newest first."""
        from rich.text import Text

        history = self.history
        console.print(Text(history.record.standing.question.text, style="bold"))
        lines = [self.done] if self.done else []
        lines += [answer_line(history), history.sentence]
        if history.outcome:
            lines.append(f"It was {outcome_text(history.record, history.outcome)}. {self._scored()}".rstrip())
        elif history.proposal is not None:
            lines.append(f"Proposed outcome: {history.proposed_text}. {history.proposal.why}")
            lines += [
                f"  “{reading.quote}” {reading.url}".rstrip() for reading in history.proposal.readings if reading.quote
            ]
            lines.append(f"Confirm it: foretell record {history.id} --confirm proposed")
        elif history.next_look is not None:
            lines.append(f"Next look: {history.next_look:%Y-%m-%d %H:%M} UTC at the latest")
        spent = history.spent
        lines.append(f"Billed {dollars(spent.total)}{f' of {dollars(spent.limit)}' if spent.limit is not None else ''}")
        show_text(console, "\n".join(lines) + "\n")
        columns: dict[TextColumn, Callable[[Update], object]] = {
            TextColumn(head="Update", right=True): lambda update: update.number,
            TextColumn(head="day"): lambda update: f"{update.belief.at.day} {update.belief.at:%b}",
            TextColumn(head="what happened", shrink=20): what_moved,
            TextColumn(head="to", right=True): lambda update: percent(update.belief.answer[update.target]),
            TextColumn(head="points", right=True): lambda update: signed(100 * update.move, 0),
            TextColumn(head="cost", right=True, drop=1): lambda update: dollars(update.belief.billed),
        }
        if history.updates:
            console.print()
            show_table(console, tuple(reversed(history.updates)), columns)

    def _scored(self) -> str:
        result: PostMortem | None = self.history.post_mortem
        if self.history.scored is None or result is None:
            return self.history.unscored
        return f"Brier score {number(self.history.scored.brier, 3)}. {result.why}"


def record(request: RecordRequest, settings: Settings | None = None) -> RecordResult | HistoryResult:
    """Return the record of one's own questions, or the history of one, after confirming or changing it."""
    settings = settings or load_settings()
    now = clock_of(settings)()
    with closing(RunStore(settings.store)) as runs:
        store = StandingStore(runs.database)
        if request.id is None:
            return record_of(runs, now)
        id = store.find(request.id).id
        done: list[str] = []
        if request.confirm is not None:
            done.append(confirm_outcome(runs, id, request.confirm, now))
        if request.state is not None:
            done.append(change_state(store, id, request.state, now))
        return HistoryResult(history=question_history(store, id, now), done=" ".join(done))


def record_of(runs: RunStore, now: datetime) -> RecordResult:
    """Return the record of all standing questions in a store."""
    store = StandingStore(runs.database)
    records = [store.record(question.id) for question in store.questions()]
    own = own_record(records)
    return RecordResult(
        own=own,
        post_mortems=post_mortems(own),
        learnt=learnt_weights(runs, records, now),
        next_looks={each.standing.id: store.next_look(each.standing.id) for each in own.open},
    )


def confirm_outcome(runs: RunStore, id: str, answer: str, now: datetime) -> str:
    """Confirm the outcome of a question and store it with the runs of its forecasts; return what was done."""
    store = StandingStore(runs.database)
    resolutions: Sequence[Any] = confirm(store, id, answer, now)
    confirmed = store.record(id)
    keep_outcomes(runs, confirmed)
    if not resolutions:
        return "It stays open."
    outcome = {row.target_id: row.outcome for row in resolutions if row.outcome is not None}
    return f"Confirmed: {outcome_text(confirmed, outcome)}." if outcome else "It ended without an outcome, unscored."


def change_state(store: StandingStore, id: str, state: str, now: datetime) -> str:
    """Pause a question or open it again; return what was done. Raises `InputError` if it has ended."""
    standing = store.record(id).standing
    if standing.state not in ("open", "paused"):
        hint = f"foretell record {id} --confirm not-yet opens it again"
        raise InputError(f"the question is {standing.state}", column="--state", hint=hint)
    if state == "paused":
        store.update(replace(standing, state="paused"))
        return "It is paused: it is not looked at until it is opened again."
    store.update(replace(standing, state="open"))
    planned = store.next_look(id)
    if planned is None or planned < now:
        store.plan(id, look_again(standing, now) if planned is None else now)
    return "It is open."
