"""Confirm the outcome of a standing question, or say why it has none. Only confirmed outcomes are scored."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from math import isfinite, nan
from typing import Any, cast

from foretell.arena.select import Schedule, next_forecast_time
from foretell.questions.errors import InputError, known_names
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.questions.thresholds import NumericThreshold, seconds_of, thresholds_of
from foretell.standing.record import OutcomeProposal, QuestionRecord, StandingQuestion, StandingState
from foretell.standing.store import StandingStore

PROPOSED, NOT_YET, CANCELLED, AMBIGUOUS = "proposed", "not-yet", "cancelled", "ambiguous"
ENDINGS: tuple[str, ...] = (CANCELLED, AMBIGUOUS)
"""Answers that end a question without an outcome, so that it is never scored."""
BY_USER, AS_PROPOSED = "confirmed by the user", "taken as proposed (watch.confirm: proposed)"
ONCE_MORE = timedelta(days=1)
"""When a question is looked at again that is past its deadline and has no outcome yet."""


def confirm(store: StandingStore, id: str, answer: str, now: datetime) -> tuple[Resolution, ...]:
    """Store the outcome that the user states and end the question. A later answer replaces an earlier one.

    Args:
        store: The standing questions.
        id: The id of the question, or how it begins.
        answer: `yes` or `no`; a target, or several with commas between them, that came true; the number, for a question
            about one; `proposed` for what the resolver proposed last; `cancelled` or `ambiguous`, which end the
            question unscored; or `not-yet`, which plans another look. A target with one of these names comes first.
        now: The current time.

    Returns:
        One resolution for each target; empty for `not-yet`.

    Raises:
        InputError: If there is no such question, or the answer does not fit it.
    """
    standing = store.find(id)
    record = store.record(standing.id)
    word = answer.strip()
    # An option may be called "Cancelled": its exact id is the option, anything else the answer.
    keyword = "" if word in {target.id for target in standing.question.targets} else word.lower().replace(" ", "-")
    how = BY_USER
    if keyword == PROPOSED:
        proposal = _accepted(record)
        how = f"{BY_USER} as proposed"
        if proposal.outcome is not None:
            return _end(store, standing, proposal.outcome, now, how)
        keyword = proposal.status.replace(" ", "-")
    if keyword == NOT_YET:
        _reopen(store, record, now)
        return ()
    if keyword in ENDINGS:
        return _end(store, standing, None, now, f"{keyword}: {how}")
    return _end(store, standing, stated_outcome(standing.question, word, now), now, how)


def confirm_by_itself(store: StandingStore, id: str, now: datetime) -> tuple[Resolution, ...]:
    """Take the last proposal as the outcome, if the question's setting `watch.confirm` is `proposed`.

    Returns:
        One resolution for each target; empty if the user has to answer, or the question has ended. Only an outcome is
            taken; that a question is cancelled, ambiguous or undecided is left to the user.
    """
    record = store.record(id)
    standing, last = record.standing, record.proposals[-1] if record.proposals else None
    watch: Any = standing.settings.get("watch")
    allowed = isinstance(watch, Mapping) and cast("Mapping[str, Any]", watch).get("confirm") == PROPOSED
    if not allowed or standing.state in ("resolved", "cancelled") or last is None or last.outcome is None:
        return ()
    return _end(store, standing, last.outcome, now, AS_PROPOSED)


def _accepted(record: QuestionRecord) -> OutcomeProposal:
    """Return the last proposal, if there is something in it to accept."""
    last = record.proposals[-1] if record.proposals else None
    if last is None or last.status == "cannot tell":
        problem = "no outcome was proposed" if last is None else f"the outcome could not be told: {last.why}"
        raise InputError(problem, column="--confirm", hint=_choices(record.standing.question))
    return last


def _end(
    store: StandingStore, standing: StandingQuestion, outcome: Mapping[str, int] | None, now: datetime, how: str
) -> tuple[Resolution, ...]:
    question = standing.question
    resolutions = tuple(
        Resolution(
            question_id=question.id,
            target_id=target.id,
            due=question.due,
            outcome=None if outcome is None else outcome[target.id],
            resolved_at=now,
            provenance=how,
        )
        for target in question.targets
    )
    state: StandingState = "cancelled" if outcome is None else "resolved"
    store.resolve(standing.id, resolutions, now, state)
    return resolutions


def _reopen(store: StandingStore, record: QuestionRecord, now: datetime) -> None:
    """Plan another look, and withdraw the outcome if there was one."""
    standing = record.standing
    planned = store.next_look(standing.id)
    if standing.state in ("resolved", "cancelled"):
        withdrawn = [
            replace(outcome, outcome=None, resolved_at=now, provenance="withdrawn by the user: not yet known")
            for outcome in record.outcomes
        ]
        store.resolve(standing.id, withdrawn, now, "open")
    if planned is None or planned <= now:
        store.plan(standing.id, look_again(standing, now))


def look_again(standing: StandingQuestion, now: datetime) -> datetime:
    """Return when to look again at a question without an outcome: halfway to its close, and later once a day."""
    watch: Any = standing.settings.get("watch")
    hours = cast("Mapping[str, Any]", watch).get("minimum_gap_hours") if isinstance(watch, Mapping) else None
    gap = Schedule(minimum_gap_hours=float(hours)).gap if hours else Schedule().gap
    closes = last_day(standing.question)
    if closes is None or closes <= now:
        return now + max(gap, ONCE_MORE)
    return next_forecast_time(now, closes, gap) or closes


def last_day(question: Question) -> datetime | None:
    """Return when the last target of a question is decided, if that is stated."""
    days = [target.resolves_at for target in question.targets if target.resolves_at is not None]
    return max(days, default=question.closes_at)


def stated_outcome(question: Question, answer: str, now: datetime) -> dict[str, int]:
    """Return target → 0 or 1 for an answer as `confirm` takes it. Raises `InputError` if it does not fit."""
    text = answer.strip()
    if not text:
        raise InputError("is empty", column="--confirm", hint=_choices(question))
    if thresholds_of(question) is not None and _target(question, text) is None:
        return _above(question, text)
    names = [text] if _target(question, text) is not None else [name for name in text.split(",") if name.strip()]
    if text.lower() == "no" and _target(question, "no") is None:
        if question.exclusivity == "exactly one":
            raise InputError("one of the outcomes must come true", column="--confirm", hint=_choices(question))
        names = []
    true: set[str] = set()
    for name in names:
        target = _target(question, name)
        if target is None:
            problem = f"{name.strip()!r} is no answer to this question"
            raise InputError(problem, column="--confirm", hint=_choices(question, name))
        true.add(target.id)
    if len(true) > 1 and question.exclusivity != "independent":
        raise InputError("only one of the outcomes can come true", column="--confirm", hint=_choices(question))
    open_targets = [
        target
        for target in question.targets
        if target.id not in true and target.resolves_at is not None and target.resolves_at > now
    ]
    if question.exclusivity == "independent" and len(question.targets) > 1 and open_targets:
        problem = f"{open_targets[0].short_label!r} is not decided yet"
        raise InputError(problem, column="--confirm", hint=f"answer {NOT_YET} until all outcomes are known")
    return {target.id: int(target.id in true) for target in question.targets}


def _above(question: Question, text: str) -> dict[str, int]:
    """Return which thresholds a stated number or date passes."""
    dates = question.range is not None and question.range.dates
    try:
        value = seconds_of(text) if dates else float(text.replace(",", ""))
    except ValueError:
        value = nan
    if not isfinite(value):
        kind = "a date such as 2027-01-31" if dates else "a number such as 3.5"
        problem, hint = f"{text!r} is not {kind}", f"or {NOT_YET}, {CANCELLED}, {AMBIGUOUS}, {PROPOSED}"
        raise InputError(problem, column="--confirm", hint=hint)
    return passed_thresholds(thresholds_of(question) or {}, value)


def passed_thresholds(thresholds: Mapping[str, NumericThreshold], value: float) -> dict[str, int]:
    """Return target → 1 for every threshold that a number passes, or meets if the id has an equals sign."""
    outcome: dict[str, int] = {}
    for id, threshold in thresholds.items():
        passed = value > threshold.value if threshold.side == "above" else value < threshold.value
        outcome[id] = int(passed or (value == threshold.value and "=" in id))
    return outcome


def _target(question: Question, name: str) -> Target | None:
    """Return the target with that id, or with that id or label if case is ignored."""
    name = name.strip()
    by_id = {target.id: target for target in question.targets}
    if name in by_id:
        return by_id[name]
    if len(question.targets) == 1 and name.lower() == "yes":
        return question.targets[0]
    folded = name.casefold()
    matches = [target for target in question.targets if folded in (target.id.casefold(), target.label.casefold())]
    return matches[0] if len(matches) == 1 and name else None


def _choices(question: Question, name: str = "") -> str:
    """Return the answers that a question takes."""
    if thresholds_of(question) is not None:
        ids = ["the date" if question.range is not None and question.range.dates else "the number"]
    elif len(question.targets) == 1:
        ids = ["yes", "no"]
    else:
        ids = [target.id for target in question.targets]
        ids += [] if question.exclusivity == "exactly one" else ["no"]
    known = [*ids, NOT_YET, CANCELLED, AMBIGUOUS, PROPOSED]
    return known_names(name.strip(), known) if name else f"known: {', '.join(known)}"
