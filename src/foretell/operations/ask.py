"""Answer one question with a probability: researched by a model, or from public markets and series without one."""

import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from foretell.data.datasets.forecastbench_download import pulled_rounds, read_pulled
from foretell.data.datasets.question_set import LateText, QuestionSet, union
from foretell.data.files import DownloadCache
from foretell.forecasters.agent.answer_format import LEVELS, NUMERIC
from foretell.forecasters.base_rates.baselines import CrowdForecaster
from foretell.forecasters.base_rates.outside_model import shipped_model
from foretell.forecasters.base_rates.outside_view import OutsideView, ReferenceClass, ReferenceQuestion
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.base_rates.same_question import SAME, sense
from foretell.forecasters.forecaster import CannotForecast, Context, forecast_of
from foretell.forecasters.series.typed_question import asked_span, price_question, share_interval, weather_question
from foretell.models.ledger import Money
from foretell.operations.requests.asking import AskRequest, NumberRange
from foretell.operations.requests.trees import TreeRequest, TreeUpdateRequest
from foretell.operations.result import Result
from foretell.operations.run_plan import RunPlan, plan_run
from foretell.operations.table import operation
from foretell.questions.as_of import instant
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError, NoAnswer
from foretell.questions.forecast import Cost, Failure, Forecast, Numeric
from foretell.questions.question import (
    NONE_OF_THEM,
    NumericRange,
    Question,
    Snapshot,
    Target,
    probability_of_none,
    scaled,
)
from foretell.runs.combine import combine_trials, combining_by_name, combining_of_run
from foretell.runs.executor import WatchEvents
from foretell.runs.outcomes import past_of
from foretell.runs.public_sources import (
    LEAST,
    MOST,
    MarketMatch,
    PublicFindings,
    SeriesReading,
    look_around,
    pooled,
)
from foretell.runs.question_sets import LATE_TEXT_HINT, Benchmark, late_text_problem
from foretell.runs.runner import PreparedRun, check_options, check_run, execute_run, prepare_run
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import TYPED_PREFIX, RunSpec, read_changes, spec_from_mapping
from foretell.runs.store import RunStore
from foretell.scoring.scoreboard import rows_as_text
from foretell.tools.late_text import late_passages, without_late_passages

if TYPE_CHECKING:
    from rich.console import Console

THRESHOLD_SHARES = (0.25, 0.5, 0.75)
"""Where in its range a question about a number gets thresholds as targets."""
SIMILAR_SHOWN = 10
"""How many similar past questions are shown."""
MODEL_NOTE = "A model adds research (`foretell models` lists them)."
PRICE_NOTE = f"This is the price you gave: nothing was researched. {MODEL_NOTE}"
OUTSIDE_NOTE = (
    "Nothing was researched. The number only says how often questions worded like this came true on prediction "
    f"markets, where the answer is usually in doubt. {MODEL_NOTE}"
)
PUBLIC_NOTE = "No model was used: the answer comes from {}, and news was not considered. " + MODEL_NOTE
OFFLINE_NOTE = "Public markets and series were not asked, because {}."
NOTHING_FOUND = "None of the markets asked ({}) has the same question."
EARLIER_NOTE = (
    "A market on an earlier day ({}) already says {}. It is not used, because it may not ask the same; if what it asks "
    "about counts here too, the answer cannot be lower."
)
LAST_RESORT_WORTH, NOTHING_WORTH = 4.0, 1.0
"""How many past questions the wording of a question is worth, which gives its wide range; and where it says nothing."""
FAMILIAR = 0.5
"""Share of known words below which the wording says nothing."""
UNFAMILIAR_NOTE = "Most of its words occur in none of the past questions (all in English): even the range is a guess."
NO_SERIES_NOTE = "The public series that would decide it could not be read: even the range is a guess."
UNDATED_NOTE = (
    "Name a day, or say when it closes, and a public series can answer this; without one, the range is a guess."
)
OPEN_QUESTION = re.compile(
    r"(?:who|whom|whose|which|when|where|why|what(?! (?:are|is|'s) the (?:odds|chance|probability|likelihood))"
    r"|how(?: (?:many|much|long|often|far))?(?! (?:likely|probable)))\b",
    re.IGNORECASE,
)
"""Beginnings of questions that cannot be answered with yes or no."""
Basis = Literal["model", "price", "markets", "series", "wording"]
CHOOSE_MODEL = (
    "For a researched answer add --model openai:NAME, anthropic:NAME or google:NAME and set its key "
    "(OPENAI_API_KEY, …), or use a model on this machine: --model compat:NAME@http://localhost:11434/v1 "
    "or --model local:PATH.gguf."
)
UNPAID_NOTE = "No model call was made, since the budget does not pay for one: this is only the belief to start from."


@dataclass(frozen=True, kw_only=True)
class AskResult(Result):
    """A probability with its reasons, and how it was found."""

    forecast: Forecast
    """The combined trials."""
    question: Question
    run: str | None = None
    """The run that stores every step; None if no model was asked."""
    trials: tuple[Forecast | Failure, ...] = ()
    similar: tuple[ReferenceQuestion, ...] = ()
    """The most similar past questions, if rounds were downloaded and no model was asked."""
    cautions: tuple[str, ...] = ()
    """What a model may have known beforehand."""
    notes: tuple[str, ...] = ()
    """What a reader should know before relying on the number: failed trials, nothing researched, …"""
    paid: Money | None = None
    """What asking cost; None for an answer that was stored before."""
    basis: Basis = "model"
    """What the answer is based on."""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """Target → 80% interval of the probability, if no model was asked."""
    matches: tuple[MarketMatch, ...] = ()
    """Markets that ask the same question (used) or similar ones (only shown)."""
    reading: SeriesReading | None = None
    """What a public series says."""

    @property
    def exit_code(self) -> int:
        """3 if the answer rests on a failure."""
        return 3 if self.forecast.degraded else 0

    @property
    def p(self) -> Mapping[str, float]:
        """Target → probability; "yes" for a yes/no question."""
        return self.forecast.p

    @property
    def none(self) -> float | None:
        """The probability that no outcome comes true, if at most one can; otherwise None."""
        return probability_of_none(self.forecast.p, self.question.exclusivity)

    @property
    def rationale(self) -> str:
        """The reasons."""
        return self.forecast.rationale

    @property
    def usage(self) -> Cost:
        """Dollars, calls and tokens of all trials."""
        return self.forecast.usage

    @property
    def money(self) -> Money:
        """What was billed for it now, and what its other replies cost when they came."""
        return answer_money(self.usage, self.paid)

    @property
    def quantiles(self) -> Mapping[str, float] | None:
        """Quantiles of a number, from q05 to q95; None for other questions."""
        found = self.forecast.distribution
        return {name: found.quantile(level) for name, level in LEVELS.items()} if isinstance(found, Numeric) else None

    def rows(self) -> list[dict[str, Any]]:
        """One row per target, and one for none of them if that can happen; for a number, one per quantile."""
        if self.quantiles is not None:
            return [{"quantile": name, "value": value} for name, value in self.quantiles.items()]
        rows: list[dict[str, Any]] = [
            {"outcome": target.label or target.id, "p": self.forecast.p[target.id]} for target in self.question.targets
        ]
        return rows if self.none is None else [*rows, {"outcome": NONE_OF_THEM, "p": self.none}]

    def to_dict(self) -> dict[str, Any]:
        """The forecast as it is stored, and what belongs to it."""
        trials = [
            {"trial": one.trial, "failed": one.error}
            if isinstance(one, Failure)
            else {"trial": one.trial, "p": dict(one.p)} | ({"degraded": one.problem} if one.degraded else {})
            for one in self.trials
        ]
        return {
            **json.loads(to_json(self.forecast)),
            "question": self.question.text,
            "labels": {target.id: target.label or target.id for target in self.question.targets},
            "quantiles": self.quantiles,
            "exclusivity": self.question.exclusivity,
            "none": self.none,
            "due": self.question.due.isoformat(),
            "run": self.run,
            "trials": trials,
            "similar": [
                {
                    "text": one.text,
                    "url": one.url,
                    "known_on": one.known_on.isoformat(),
                    "outcome": int(one.outcome),
                    "similarity": one.similarity,
                }
                for one in self.similar
            ],
            "basis": self.basis,
            "ranges": {target: list(ends) for target, ends in self.ranges.items()},
            "matches": [one.as_row() for one in self.matches],
            "reading": None if self.reading is None else self.reading.as_row(),
            **self.money.to_dict(),
            "warnings": list(self.cautions),
            "notes": list(self.notes),
        }

    def print(self, console: "Console") -> None:
        """The probabilities, the reasons, similar past questions, and the cost."""
        from rich.text import Text

        if self.quantiles is not None:
            write = str if self.question.range is None else self.question.range.write
            q = {name: write(float(f"{value:.6g}")) for name, value in self.quantiles.items()}
            console.print(Text.assemble((q["q50"], "bold"), f"  between {q['q05']} and {q['q95']} with 90 %"))
            console.print(Text(f"half of it between {q['q25']} and {q['q75']}"))
        else:
            for row, target in zip_longest(self.rows(), self.question.targets):
                console.print(
                    Text.assemble((percent(float(row["p"])), "bold"), f"  {row['outcome']}{self._range(target)}")
                )
        console.print(Text(self.rationale))
        for match in self.matches:
            console.print(Text(match_line(match)))
        for one in self.similar:
            line = one.text.splitlines()[0][:90]
            console.print(Text(f"  {'yes' if one.outcome else 'no':3}  {one.known_on}  {line}"))
        steps = f"{cost_text(self.usage, self.money)}. Every step: foretell show {self.run} {self.question.id}"
        console.print(Text(CHOOSE_MODEL if self.run is None else steps, style="dim"))

    def _range(self, target: Target | None) -> str:
        """The interval of a target, if it has one."""
        ends = None if target is None else self.ranges.get(target.id)
        return "" if ends is None else f"  (80% interval: {percent(ends[0])} to {percent(ends[1])})"

    def __str__(self) -> str:
        notes = [f"note: {note}" for note in self.warnings]
        matches = [match_line(match) for match in self.matches]
        return "\n".join([rows_as_text(self.rows()), "", self.rationale, *matches, *notes])


def percent(p: float) -> str:
    """A probability in per cent; one that is not certain is never written as if it were.

    >>> percent(0.114), percent(0.998), percent(0.0)
    ('11%', '>99%', '0%')
    """
    shown = f"{p:.0%}"
    if 0 < p < 1 and shown in ("0%", "100%"):
        return "<1%" if p < 0.5 else ">99%"
    return shown


def match_line(match: MarketMatch) -> str:
    """A market for people: its price, and whether it asks the same question."""
    price = "   –" if match.price is None else f"{percent(match.price):>4}"
    what = "the same" if match.same else f"only related: {'; '.join(match.differs) or 'not alike enough'}"
    closes = f", until {match.closes}" if match.closes else ""
    text = " ".join(match.text.split())[:110]
    first = f"  {price}  {match.platform}{closes}, likeness {match.likeness:.2f}, {what}"
    return "\n        ".join((first, text, match.url))


def answer_money(usage: Cost, paid: Money | None) -> Money:
    """The money of an answer: what was billed for it now, and what its other replies cost when they came."""
    if paid is None:
        return Money(billed=usage.dollars, reused=usage.reused)
    return replace(paid, reused=max(0.0, round(usage.worth - paid.billed, 9)))


def cost_text(usage: Cost, money: Money) -> str:
    """The cost of an answer in one line."""
    unpriced = f" and {usage.unpriced} calls of unknown price" if usage.unpriced else ""
    counted = f"; {usage.uncounted} without a credible token count are charged at the most" if usage.uncounted else ""
    return f"{usage.calls} model calls, {usage.tokens:,} tokens, {money}{unpriced}{counted}"


def typed_question(request: AskRequest | TreeRequest) -> Question:
    """The question of a request, as of its date or now."""
    asking = isinstance(request, AskRequest)
    text = request.question if asking else request.claim
    due = instant(request.as_of) if request.as_of else datetime.now(UTC).replace(microsecond=0)
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
    late_text = late_text_of(request)
    if not request.as_of or late_text == "keep" or not late_passages(question):
        return question
    if late_text == "cut":
        return without_late_passages(question)
    raise InputError(late_text_problem(question), column="--as-of", hint=LATE_TEXT_HINT)


def _scale(given: NumberRange) -> NumericRange:
    """The range that a number almost surely lies in; it may end up outside."""
    return NumericRange(minimum=given.low, maximum=given.high, open_lower=True, open_upper=True, unit=given.unit)


def _thresholds(scale: NumericRange, closes: datetime | None) -> tuple[Target, ...]:
    """Targets that ask whether the number lies above some values of its range; they follow from its distribution."""
    width = scale.maximum - scale.minimum
    values = dict.fromkeys(float(f"{scale.minimum + share * width:.10g}") for share in THRESHOLD_SHARES)
    return tuple(
        Target(id=f">{value:.10g}", label=f"above {scale.write(value)}", resolves_at=closes) for value in values
    )


TypedRequest = AskRequest | TreeRequest | TreeUpdateRequest
LATE_TEXT = "questions.late_text"
"""The only setting of questions that a typed question has."""


def late_text_of(request: TypedRequest) -> LateText:
    """What to do with a typed text that is newer than the day of asking."""
    if LATE_TEXT in request.set and not request.as_of:
        raise InputError("has no effect without --as-of", column=f"--set {LATE_TEXT}", hint="leave it out")
    chosen = read_changes(request.set).get(LATE_TEXT, "quarantine")
    if chosen not in get_args(LateText):
        raise InputError(f"is one of {', '.join(get_args(LateText))}", column=f"--set {LATE_TEXT}")
    return chosen


def typed_run_spec(request: TypedRequest, base: Mapping[str, Any] | None = None) -> RunSpec:
    """The run that answers a typed question. The same request on the same day is the same run.

    Args:
        request: The question with the settings of its run.
        base: Settings where nobody says otherwise.
    """
    for name in request.set:
        if name == "mode" or (name.partition(".")[0] == "questions" and name != LATE_TEXT):
            hint = "--as-of asks as of a past day" if name == "mode" else f"{LATE_TEXT} can be set"
            raise InputError("the question is the one you typed", column=f"--set {name}", hint=hint)
    # Newer fields are left out at their default, so that earlier questions still map to the same run.
    asked = {"question", "claim", "closes", "as_of", "options", "criteria", "price"}
    words = request.model_dump(mode="json", include=asked)
    if isinstance(request, AskRequest) and request.range is not None:
        low, high, unit = request.range
        words |= {"number": True, "unit": unit, "low": low, "high": high}
    if isinstance(request, AskRequest) and request.exclusivity != "exactly one":
        words["exclusivity"] = request.exclusivity
    if (late_text := late_text_of(request)) != "quarantine":
        words["late_text"] = late_text
    words["day"] = "" if request.as_of else datetime.now(UTC).date().isoformat()
    digest = hashlib.sha256(json.dumps(words, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    settings = request.settings(base)
    settings |= {"questions": f"{TYPED_PREFIX}{digest[:10]}", "mode": "backtest" if request.as_of else "live"}
    if not settings.get("models", {}).get("agent"):
        raise InputError(
            "no model is named", column="--model", hint="e.g. openai:NAME; FORETELL_MODEL stands in for it"
        )
    return spec_from_mapping(settings)


def typed_questions(questions: Iterable[Question]) -> Benchmark:
    """Typed questions as a question set; they exist only in the request and in the store."""
    found = QuestionSet(name="asked", questions=tuple(questions))
    return Benchmark(questions=found, history=found, own=True)


def stored_questions(store: RunStore, spec: RunSpec) -> Benchmark | None:
    """All questions of a typed run; None for a run with a question set."""
    asked = store.questions(spec.id) if spec.questions.typed else []
    return typed_questions(asked) if asked else None


def prepare_ask(request: AskRequest, settings: Settings) -> PreparedRun:
    """The run that answers a question, checked before anything is stored. A plan checks no keys."""
    spec = typed_run_spec(request, {"combine": "default"})
    combining_by_name(spec.combine)
    if request.plan:
        check_options(spec)
    else:
        check_run(spec, settings)
    return prepare_run(spec, typed_questions([typed_question(request)]))


async def answer_question(
    request: AskRequest,
    settings: Settings | None = None,
    *,
    watch: WatchEvents | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> AskResult | RunPlan:
    """A probability with reasons, researched by `model`, or from public markets and series if none is named.

    Without a model it costs nothing. Keys come from the environment. The
    same question as of the same date takes every reply from the journal and costs nothing.

    >>> ask("Will the bank cut its rate?", closes="2027-03-31", price=0.4, model="none").p
    {'yes': 0.4}
    """
    settings = settings or load_settings()
    if not names_model(request):
        return plan_without_model() if request.plan else await outside_view(request, settings)
    prepared = prepare_ask(request, settings)
    if request.plan:
        return plan_run(prepared, settings)
    for notice in prepared.notices:
        tell(notice)
    done = await execute_run(prepared, settings, on_event=watch)
    with closing(RunStore(settings.store)) as store, told_what_it_cost(done.money):
        answer = stored_answer(store, prepared.spec, prepared.questions[0])
    return replace(answer, paid=done.money, notes=(*answer.notes, *done.unread))


def plan_without_model() -> RunPlan:
    """What answering a question from public markets and series costs."""
    return RunPlan(run="", questions=1, trials=1, open=1, models={}, dollars=0.0, basis="no model is named")


def names_model(request: AskRequest) -> bool:
    """Whether a model is to research the question."""
    return request.model is not None or bool(request.config or set(request.set) - {LATE_TEXT})


@contextmanager
def told_what_it_cost(money: Money) -> Generator[None]:
    """Say in the error of a question without an answer what asking it cost."""
    try:
        yield
    except NoAnswer as error:
        raise NoAnswer(f"{error.problem} ({money})", path=error.path, column=error.column, hint=error.hint) from None


def stored_answer(store: RunStore, spec: RunSpec, question: Question) -> AskResult:
    """The answer of a run to a question, with its trials combined."""
    # The same question asked earlier today belongs to the same run but has its own answer.
    at = question.as_of_in(spec.mode).at
    answers = [one for one in store.answers(spec.id) if one.question_id == question.id and one.as_of.at == at]
    how = combining_of_run(store, spec)
    # An answer that rests on a failure is better than none, if it says so.
    found = combine_trials(answers, [question], how) or combine_trials(answers, [question], replace(how, degraded=True))
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    degraded = [answer for answer in answers if isinstance(answer, Forecast) and answer.degraded]
    if not found:
        raise NoAnswer(f"no trial gave an answer: {failures[0].error if failures else 'nothing was run'}")
    notes = [f"{len(failures)} of {len(answers)} trials failed: {failures[0].error}"] if failures else []
    early = sum(isinstance(answer, Forecast) and answer.ending == "stopped" for answer in answers)
    if early or len(answers) < spec.trials:
        notes.append(
            f"stopped early: of {spec.trials} trials, {early} answered before they were done "
            f"and {max(spec.trials - len(answers), 0)} gave no answer"
        )
    if found[0].degraded:
        notes.append(f"this is a degraded answer, it rests on a failure: {found[0].problem}")
    elif degraded:
        notes.append(f"{len(degraded)} of {len(answers)} trials were left out, degraded by: {degraded[0].problem}")
    if not found[0].usage.calls:
        notes.append(UNPAID_NOTE)
    return AskResult(
        forecast=found[0],
        question=question,
        run=spec.id,
        trials=tuple(answers),
        cautions=prepare_run(spec, typed_questions([question])).warnings,
        notes=tuple(notes),
    )


async def outside_view(request: AskRequest, settings: Settings) -> AskResult:
    """Answer without a model: from a given price, public markets, a public series, or the wording alone."""
    question = typed_question(request)
    if all(target.snapshot is not None for target in question.targets):
        context = Context(as_of=question.as_of_in("backtest" if request.as_of else "live"))
        forecast = await CrowdForecaster().forecast(question, context)
        return AskResult(forecast=forecast, question=question, basis="price", notes=(PRICE_NOTE,))
    if not re.search(r"[^\W\d_]", request.question):
        raise InputError("there are no words in the question", column="QUESTION")
    asks_for = OPEN_QUESTION.match(request.question.strip())
    if asks_for and not request.options and request.range is None:
        hint = "name what may happen with --option, or give the range of a number: --range LOW:HIGH"
        raise InputError(f"a question that asks {asks_for[0].lower()} has no probability of yes", hint=hint)
    offline = "the question is asked as of a past day" if request.as_of else "the network is switched off"
    if settings.network and not request.as_of:
        found, problem = await look_around(question, settings, number=request.range is not None), ""
    else:
        found, problem = PublicFindings(), OFFLINE_NOTE.format(offline)
    problems = [problem] if problem else _unreached(found)
    answer = _from_public(question, found, request)
    if answer is not None:
        return replace(answer, notes=(*answer.notes, *problems))
    if request.range is not None:
        why = " ".join(["no public series answers this question, so the number needs a model.", *problems])
        raise InputError(why, column="--model", hint=CHOOSE_MODEL)
    last = await _last_resort(request, question, settings)
    nothing = [NOTHING_FOUND.format(", ".join(found.asked))] if found.asked else []
    notes = (*last.notes, *nothing, *_floors(question, last.forecast, found.matches), *problems)
    return replace(last, matches=found.matches, notes=notes)


def _unreached(found: PublicFindings) -> list[str]:
    """One note per reason why markets or a series gave no answer."""
    by_reason: dict[str, list[str]] = {}
    for problem in found.problems:
        who, _, why = problem.partition(": ")
        plain = "no answer in time" if why.endswith("Timeout") else re.sub(r"^\[Errno -?\d+\] ", "", why)
        by_reason.setdefault(plain, []).append(who)
    return [f"No answer from {', '.join(who)}: {why}." for why, who in by_reason.items()]


def _floors(question: Question, forecast: Forecast, matches: Sequence[MarketMatch]) -> list[str]:
    """A note on the highest price, above the answer, of a market that differs from it only by an earlier day."""
    asked = sense(question.text, question.due.date())
    if asked.standing or asked.stays or asked.negated:
        return []
    last = question.closes_at.date() if question.closes_at else asked.until
    higher = [
        (one.price, one.closes)
        for one in matches
        if one.price is not None
        and one.closes is not None
        and one.likeness >= SAME
        and all(why.startswith("another day") for why in one.differs)
        and not one.same
        and (last is None or one.closes < last)
        and one.price > forecast.p.get(one.target, 1.0)
    ]
    return [EARLIER_NOTE.format(day, percent(price)) for price, day in sorted(higher)[-1:]]


def _from_public(question: Question, found: PublicFindings, request: AskRequest) -> AskResult | None:
    """The answer of markets or a series; None if neither covers every target."""
    context = Context(as_of=question.as_of_in("live"))
    prices = {target.id: found.prices(target.id) for target in question.targets}
    if request.range is None and all(prices.values()):
        said = {target: pooled(matches) for target, matches in prices.items()}
        p = scaled({target: value for target, (value, _) in said.items()}, question.exclusivity)
        used = [one for matches in prices.values() for one in matches]
        text = f"Taken from open markets that ask the same ({', '.join(dict.fromkeys(one.platform for one in used))})."
        if len(used) > len(prices):
            text += " Prices of one question are averaged as log-odds, real money counting double."
        if found.reading is not None:
            text += f" A public series says {found.reading.answer.p:.0%}: {found.reading.answer.reason}"
        forecast = forecast_of(p, question, context, "markets", text)
        ranges = {target: ends for target, (_, ends) in said.items()}
        return AskResult(
            forecast=forecast,
            question=question,
            basis="markets",
            ranges=ranges,
            matches=found.matches,
            reading=found.reading,
            notes=(PUBLIC_NOTE.format("market prices"),),
        )
    if found.reading is None:
        return None
    source = "Open-Meteo's record of" if found.reading.source == "open_meteo" else "Yahoo's prices of"
    note = PUBLIC_NOTE.format(f"{source} {found.reading.name}")
    return replace(_from_series(question, found.reading, context), matches=found.matches, notes=(note,))


def _from_series(question: Question, reading: SeriesReading, context: Context) -> AskResult:
    if reading.distribution is not None:
        p = {target.id: reading.distribution.above(float(target.id[1:])) for target in question.targets}
        forecast = forecast_of(p, question, context, "series", reading.answer.reason)
        forecast = replace(forecast, distribution=reading.distribution)
        return AskResult(forecast=forecast, question=question, basis="series", reading=reading)
    (target,) = question.targets
    p = min(max(reading.answer.p, LEAST), MOST)
    forecast = forecast_of({target.id: p}, question, context, "series", reading.answer.reason)
    low, high = (min(max(end, LEAST), MOST) for end in reading.answer.interval)
    ranges = {target.id: (min(low, p), max(high, p))}
    return AskResult(forecast=forecast, question=question, basis="series", ranges=ranges, reading=reading)


async def _last_resort(request: AskRequest, question: Question, settings: Settings) -> AskResult:
    """How similarly worded questions ended, with a wide range."""
    as_of, past = question.as_of_in("backtest" if request.as_of else "live"), _pulled_rounds(settings.home)
    span = asked_span(question.text, question.due.date(), None)
    if question.closes_at is None and span is not None:
        # A holiday named in the text is a deadline too.
        ends = datetime.combine(span.last, datetime.min.time(), UTC)
        question = replace(question, closes_at=ends if ends > question.due else None)
    try:
        forecast = await OutsideView().forecast(question, Context(as_of=as_of, past=past))
    except CannotForecast as reason:
        hint = "foretell data pull forecastbench brings rounds to learn from, or give --model"
        raise InputError(str(reason), hint=hint) from None
    similar = ReferenceClass.of(question, past.table, as_of).members[:SIMILAR_SHOWN] if past else ()
    doubts = _doubts(question)
    worth = NOTHING_WORTH if doubts else LAST_RESORT_WORTH
    ranges = {target: wide_range(p, worth) for target, p in forecast.p.items()}
    notes = (OUTSIDE_NOTE, *doubts)
    return AskResult(forecast=forecast, question=question, basis="wording", ranges=ranges, similar=similar, notes=notes)


def _doubts(question: Question) -> list[str]:
    """Why past questions say nothing about this one."""
    due, closes = question.due.date(), question.closes_at.date() if question.closes_at else None
    if shipped_model().text.familiar(question.text) < FAMILIAR:
        return [UNFAMILIAR_NOTE]
    if len(question.targets) > 1:
        return []
    if weather_question(question.text, due, closes) or price_question(question.text, due, closes):
        return [NO_SERIES_NOTE]
    soon = due + timedelta(days=30)
    dated = weather_question(question.text, due, soon) or price_question(question.text, due, soon)
    return [UNDATED_NOTE] if closes is None and dated else []


def wide_range(p: float, worth: float = LAST_RESORT_WORTH) -> tuple[float, float]:
    """The range of a probability that is worth only a few past questions.

    >>> [round(end, 2) for end in wide_range(0.12)]
    [0.02, 0.43]
    """
    low, _, high = share_interval(worth * p, worth)
    return min(low, p), max(high, p)


@cache
def _pulled_rounds(home: Path) -> Past:
    cache, found = DownloadCache(home / "forecastbench"), list[QuestionSet]()
    for day in pulled_rounds(cache):
        with suppress(InputError):  # A round whose files are spoilt teaches nothing.
            found.append(read_pulled(cache, day))
    everything = union("pulled", found)
    return past_of(everything.questions, everything.resolutions)


ask = operation(AskRequest)(answer_question)
