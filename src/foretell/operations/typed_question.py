"""A typed question: the question and the run that a request to ask or to grow a tree describes."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from foretell.data.datasets.question_set import LeakyQuestions
from foretell.operations.requests.asking import AskRequest, NumberRange
from foretell.operations.requests.trees import TreeRequest, TreeUpdateRequest
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.question import NumericRange, Question, Snapshot, Target
from foretell.questions.thresholds import NUMERIC
from foretell.runs.question_sets import LEAKY_QUESTIONS_HINT, leaky_question_problem
from foretell.runs.spec import TYPED_PREFIX, RunSpec, read_changes, spec_from_mapping
from foretell.standing.settings import watch_changes
from foretell.tools.post_cutoff_text import post_cutoff_passages, without_post_cutoff_passages

THRESHOLD_SHARES = (0.25, 0.5, 0.75)
"""Where in its range a question about a number gets thresholds as targets."""


def typed_question(request: AskRequest | TreeRequest, now: datetime | None = None) -> Question:
    """Return the question of a request, as of its date or else of `now`, by default the time of this machine."""
    asking = isinstance(request, AskRequest)
    text = request.question if asking else request.claim
    due = instant(request.as_of) if request.as_of else (now or datetime.now(UTC)).replace(microsecond=0)
    closes = instant(request.closes) if request.closes else None
    if closes is not None and closes <= due:
        raise InputError(f"{request.closes} is not after the day of asking", column="--closes", hint="name a later day")
    scale = _scale(request.range) if asking and request.range is not None else None
    if asking and request.options:
        targets = tuple(Target(id=option, label=option, resolves_at=closes) for option in request.options)
    elif scale is not None:
        targets = _thresholds(scale, closes)
    else:
        price = request.price if asking else None
        snapshot = None if price is None else Snapshot(at=due, last_price=price)
        targets = (Target(id="yes", resolves_at=closes, snapshot=snapshot),)
    question = Question(
        id=f"asked/{hashlib.sha256(text.encode()).hexdigest()[:10]}",
        source="asked",
        text=text,
        criteria=request.criteria,
        due=due,
        opens_at=due,
        closes_at=closes,
        targets=targets,
        subtype="" if scale is None else NUMERIC,
        background="" if scale is None else str(scale),
        range=scale,
        exclusivity=request.exclusivity if asking and scale is None else "independent",
    )
    leaky_questions = leaky_questions_of(request)
    if not request.as_of or leaky_questions == "keep" or not post_cutoff_passages(question):
        return question
    if leaky_questions == "redact":
        return without_post_cutoff_passages(question)
    raise InputError(leaky_question_problem(question), column="--as-of", hint=LEAKY_QUESTIONS_HINT)


def _scale(number: NumberRange) -> NumericRange:
    """Return the range that a number almost certainly lies in; both ends are open."""
    return NumericRange(minimum=number.low, maximum=number.high, open_lower=True, open_upper=True, unit=number.unit)


def _thresholds(scale: NumericRange, closes: datetime | None) -> tuple[Target, ...]:
    """Return targets that ask whether the number is above some values of its range."""
    width = scale.maximum - scale.minimum
    values = dict.fromkeys(float(f"{scale.minimum + share * width:.10g}") for share in THRESHOLD_SHARES)
    return tuple(
        Target(id=f">{value:.10g}", label=f"above {scale.write(value)}", resolves_at=closes) for value in values
    )


TypedRequest = AskRequest | TreeRequest | TreeUpdateRequest
LEAKY_QUESTIONS = "questions.leaky_questions"
"""The only setting of questions that a typed question has."""


def leaky_questions_of(request: TypedRequest) -> LeakyQuestions:
    """Return what to do with a typed text that is newer than the day of asking."""
    changes = read_changes(watch_changes(request.set)[1])
    if LEAKY_QUESTIONS in changes and not request.as_of:
        raise InputError("has no effect without --as-of", column=f"--set {LEAKY_QUESTIONS}", hint="leave it out")
    chosen = changes.get(LEAKY_QUESTIONS, "exclude")
    if chosen not in get_args(LeakyQuestions):
        raise InputError(f"is one of {', '.join(get_args(LeakyQuestions))}", column=f"--set {LEAKY_QUESTIONS}")
    return chosen


def typed_run_spec(
    request: TypedRequest, base: Mapping[str, Any] | None = None, now: datetime | None = None
) -> RunSpec:
    """Return the run that answers a typed question. The same request on the same day is the same run."""
    for name in read_changes(watch_changes(request.set)[1]):
        if name == "mode" or (name.partition(".")[0] == "questions" and name != LEAKY_QUESTIONS):
            hint = "--as-of asks as of a past day" if name == "mode" else f"{LEAKY_QUESTIONS} can be set"
            raise InputError("does not apply to a typed question", column=f"--set {name}", hint=hint)
    # Newer fields are left out at their default, so that earlier questions still map to the same run.
    fields = {"question", "claim", "closes", "as_of", "options", "criteria", "price"}
    words = request.model_dump(mode="json", include=fields)
    if isinstance(request, AskRequest) and request.range is not None:
        low, high, unit = request.range
        words |= {"number": True, "unit": unit, "low": low, "high": high}
    if isinstance(request, AskRequest) and request.exclusivity != "exactly one":
        words["exclusivity"] = request.exclusivity
    if (leaky_questions := leaky_questions_of(request)) != "exclude":
        # The names of earlier versions, so that the same question maps to the same run.
        words["late_text"] = "cut" if leaky_questions == "redact" else leaky_questions
    words["day"] = "" if request.as_of else (now or datetime.now(UTC)).date().isoformat()
    digest = hashlib.sha256(json.dumps(words, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    settings = request.settings(base)
    settings |= {"questions": f"{TYPED_PREFIX}{digest[:10]}", "mode": "backtest" if request.as_of else "live"}
    if not settings.get("models", {}).get("agent"):
        raise InputError("no model is named", column="--model", hint="e.g. openai:NAME; or set FORETELL_MODEL")
    return spec_from_mapping(settings)
