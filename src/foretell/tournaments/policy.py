"""Which open questions of a tournament are forecast now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta

from foretell.frozen import frozen
from foretell.questions.as_of import instant
from foretell.questions.question import Question
from foretell.tournaments.settings import UpdateSettings
from foretell.tournaments.state import PendingQuestion, TournamentState

ATTEMPTS = 3
"""How many tournament runs may fail to answer a question before it is given up."""
STALE = timedelta(days=1)
"""An unanswered question that was first seen longer ago than this is asked as of now."""


@frozen
class ListedPart:
    """The unit that one forecast answers: a whole question, or one question of a group."""

    name: str
    """Our id for it."""
    closes_at: datetime | None
    answered: bool
    """Whether this account already has a forecast on the platform."""
    since: datetime | None = None
    """When that forecast was made, if the platform states it."""
    target: str = ""
    """For a question of a group: the target that it asks about."""
    certain: bool = False
    """Trust `answered` even if the ledger has an earlier forecast, which was for an earlier round."""


@frozen
class ListedQuestion:
    """An open question of the tournament, with what this account has already forecast."""

    question: Question
    parts: tuple[ListedPart, ...]
    """One part; for a group of yes-or-no questions, each one that is open."""


@frozen
class TournamentListing:
    """The open questions of a tournament, and what was left out."""

    questions: tuple[ListedQuestion, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Reason → how many were left out."""

    @classmethod
    def of(cls, questions: Iterable[ListedQuestion], skipped: Mapping[str, int]) -> "TournamentListing":
        """Sort the questions by closing time."""
        far = datetime.max.replace(tzinfo=UTC)
        return cls(
            questions=tuple(sorted(questions, key=lambda listed: listed.question.closes_at or far)),
            skipped=dict(skipped),
        )


def due_again(policy: UpdateSettings, last: datetime, closes: datetime | None, now: datetime) -> bool:
    """Whether a question that was already forecast is due for another forecast.

    >>> policy = UpdateSettings(before_close=24)
    >>> monday, friday = instant("2026-11-16"), instant("2026-11-20")
    >>> [due_again(policy, monday, friday, monday + timedelta(days=days)) for days in (1, 3.5)]
    [False, True]
    """
    if policy.update_after is not None and now - last >= timedelta(days=policy.update_after):
        return True
    if policy.before_close is None or closes is None:
        return False
    begins = closes - timedelta(hours=policy.before_close)
    return last < begins <= now


def questions_to_ask(
    listing: TournamentListing,
    state: TournamentState,
    policy: UpdateSettings,
    sent: Mapping[str, Sequence[datetime]],
    now: datetime,
) -> tuple[list[Question], list[str]]:
    """Choose the questions to forecast now, each as it was first seen; also return what was given up.

    `sent` is when this account sent forecasts of each question, according to the ledger.
    """
    listed_ids = {listed.question.id for listed in listing.questions}
    state.pending = {id: pending_question for id, pending_question in state.pending.items() if id in listed_ids}
    chosen: list[Question] = []
    given_up: list[str] = []
    waiting = {forecast.question_id for forecast in state.outbox}
    for listed in listing.questions:
        question = listed.question
        own = [instant(state.made[question.id])] if question.id in state.made else []
        due_parts = [part for part in listed.parts if _is_due(part, policy, [*own, *sent.get(part.name, ())], now)]
        if not due_parts or question.id in waiting:
            continue
        if due_parts[0].target and len(question.targets) > 1:
            wanted = {part.target for part in due_parts}
            targets = tuple(target for target in question.targets if target.id in wanted)
            question = replace(question, targets=targets) if targets else question
        pending = state.pending.get(question.id)
        if pending is not None and pending.attempts >= ATTEMPTS and now - pending.question.due < STALE:
            given_up.append(f"{question.id}: {pending.problem}")
            continue
        if pending is None or not _unchanged(pending.question, question) or now - pending.question.due >= STALE:
            state.pending[question.id] = pending = PendingQuestion(question=question)
        chosen.append(pending.question)
    return chosen, given_up


def reads_the_same(earlier: Question, listed: Question) -> bool:
    """Whether a listed question is unchanged. Platforms edit texts, rename options and reuse ids."""
    labels = {target.id: target.label for target in listed.targets}
    texts = [(question.text, question.criteria, question.range) for question in (earlier, listed)]
    return texts[0] == texts[1] and all(labels.get(target.id) == target.label for target in earlier.targets)


def _unchanged(earlier: Question, listed: Question) -> bool:
    """Whether an earlier question is exactly the listed one."""
    same_targets = [target.id for target in earlier.targets] == [target.id for target in listed.targets]
    return same_targets and earlier.closes_at == listed.closes_at and reads_the_same(earlier, listed)


def _is_due(part: ListedPart, policy: UpdateSettings, sent: Sequence[datetime], now: datetime) -> bool:
    if not part.answered and (part.certain or not sent):
        return True
    times = [*sent] if part.since is None else [*sent, part.since]
    # A forecast of unknown age is treated as made now.
    return due_again(policy, max(times, default=now), part.closes_at, now)
