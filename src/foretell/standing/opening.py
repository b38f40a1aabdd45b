"""Open a standing question under a short, readable id."""

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from foretell.patterns import pattern
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.standing.confirm import last_day
from foretell.standing.record import (
    Sharpening,
    StandingQuestion,
)
from foretell.standing.settings import watch_keys
from foretell.standing.store import StandingStore

_WORD = pattern(r"[a-z0-9]{3,}")
_COMMON = pattern(
    r"will|the|and|for|before|after|until|does|what|when|who|how|many|much|there|this|that|than|more|least|with|from"
    r"|into|have|has|are|its|end"
)
"""Words that say little about a question."""


def short_ids(question: Question) -> list[str]:
    """Return short ids for a question, the most readable first.

    >>> from foretell.questions.question import Target
    >>> question = Question(id="q", source="asked", text="Will the Halvik terminal open?", due="2026-01-01", targets=(Target(id="yes"),))
    >>> short_ids(question)[0]
    'halvik-terminal'
    """  # noqa: E501
    words = [word for word in _WORD.findall(question.text.lower()) if not _COMMON.fullmatch(word)]
    base = "-".join(words[:2])[:40] or "question"
    digest = sha256(question.text.encode("utf-8", "replace")).hexdigest()
    return [base, "-".join(words[:3])[:50] or base, f"{base}-{digest[:4]}", f"{base}-{digest[:12]}"]


def open_standing(
    store: StandingStore,
    question: Question,
    settings: Mapping[str, Any],
    now: datetime,
    sharpening: Sharpening | None = None,
) -> StandingQuestion:
    """Open a question that is watched from now on, or return the one that asks the same and is watched already."""
    watch_keys(settings)
    known = store.questions(("open", "paused"))
    for standing in known:
        if _asks_the_same(standing.question, question):
            return standing
    digest = sha256(f"{question.text}{now.isoformat()}".encode("utf-8", "replace")).hexdigest()
    for id in (*short_ids(question), digest[:16]):
        standing = StandingQuestion(
            id=id, question=question, opened_at=now, settings=plain_data(settings), sharpening=sharpening
        )
        if store.open(standing, now):
            return standing
    raise InputError(f"no id is free for {question.text[:60]!r}", hint="word it differently")


def _asks_the_same(one: Question, other: Question) -> bool:
    def asked(question: Question) -> tuple[Any, ...]:
        return question.text, question.criteria, [target.id for target in question.targets], last_day(question)

    return asked(one) == asked(other)
