"""One question of a run, as pages and reports show it: every trial step by step, and how they became one answer."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from foretell.forecasters.agent.answer_format import LEVELS
from foretell.forecasters.agent.settings import AgentSettings
from foretell.forecasters.base_rates.outside_view import OutsideView
from foretell.forecasters.combine.aggregate import PANEL, Aggregate, Rule
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.models.waiting import USUAL_SECONDS
from foretell.questions import trace as kinds
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost, Failure, Forecast, Numeric
from foretell.questions.question import Question, probability_of_none
from foretell.questions.resolution import Resolution
from foretell.questions.trace import ModelCalled, TraceEvent
from foretell.report.numbers import dollars, plural
from foretell.report.run_report import describe_event
from foretell.runs.combine import RULE_WORDS, CombinationSettings, combine_trials, combining_of_row, reason_for
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.spec import TYPED_PREFIX
from foretell.runs.store import CellKey, RunRow, RunStore, cells_each
from foretell.scoring.long_tables import RunScores
from foretell.tools.fence import unmarked
from foretell.tools.tool import FETCH_PRICES, FETCH_SERIES, FETCH_WIKIPEDIA, LOOKUP_URL, SUMMARIZE_RESULTS, WEB_SEARCH

MOST_OPEN, MOST_WITHHELD = 6, 20
_MOMENTS_SQL = "select due from question where run = ? and id = ? order by due desc"
SOURCE_HEAD = re.compile(r"^\[([\w.-]{1,80})\] (.{0,1000})$", re.MULTILINE)
"""The first line of a result as a model sees it, and of a source at the end of a rationale."""
URL_PATTERN = re.compile(r"^(.*?)\s*(https?://\S+)$")
ADDRESS_AND_DATE = re.compile(r"^(.{0,600}?) \((https?://[^\s,()]{1,300})(?:, ([^()]{1,40}))?\)$")
"""How a result's first line ends: with its address and date."""


def cost_of_events(events: Iterable[TraceEvent]) -> Cost:
    """The cost of the model calls among events."""
    calls = [event for event in events if isinstance(event, ModelCalled)]
    return Cost(
        calls=len(calls),
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        dollars=sum(call.dollars or 0.0 for call in calls if not call.reused),
        reused=sum(call.dollars or 0.0 for call in calls if call.reused),
        uncounted=sum(call.uncounted for call in calls),
        unpriced=sum(call.dollars is None for call in calls),
    )


def trace_view(events: Sequence[tuple[int, TraceEvent]], rationale: str = "") -> dict[str, Any]:
    """The trace of one cell; the rationale adds the addresses of cited sources."""
    happened = [event for _, event in events]
    beliefs = [event for event in happened if isinstance(event, kinds.BeliefRevised)]
    used = [event for event in happened if isinstance(event, kinds.ToolUsed)]
    sources = _sources([(number, event) for number, event in events if isinstance(event, kinds.ToolUsed)], rationale)
    last: Mapping[str, Any] = beliefs[-1].belief if beliefs else {}
    return {
        "happenings": [_event_view(number, event) for number, event in events],
        # The belief after every step that changed it; the evidence is that of the last.
        "path": [
            {
                "step": b.step,
                "p": b.p,
                "reason": b.reason,
                "confidence": str(b.belief.get("confidence", "")),
                # What was cited here for the first time.
                "cited": new,
            }
            for b, new in zip(beliefs, _first_cited(beliefs, sources), strict=True)
        ],
        "evidence_for": _evidence(last.get("evidence_for"), sources),
        "evidence_against": _evidence(last.get("evidence_against"), sources),
        "open_questions": [str(one) for one in last.get("open_questions") or ()],
        "searches": [str(event.arguments.get("query", "")) for event in used if event.tool == WEB_SEARCH],
        "tools": Counter(event.tool for event in used),
        "withheld": Counter(event.layer for event in happened if isinstance(event, kinds.LeakBlocked)),
        "spending": cost_of_events(happened),
        "how": next((event.how for event in reversed(happened) if isinstance(event, kinds.ForecastMade)), ""),
    }


def _first_cited(
    beliefs: Sequence[kinds.BeliefRevised], sources: Mapping[str, dict[str, Any]]
) -> list[list[dict[str, Any]]]:
    """For each belief, the evidence that is new in it."""
    seen: set[tuple[str, str]] = set()
    found: list[list[dict[str, Any]]] = []
    for one in beliefs:
        both = [
            *_evidence(one.belief.get("evidence_for"), sources),
            *_evidence(one.belief.get("evidence_against"), sources),
        ]
        new = [item for item in both if item["source"] and (item["source"]["id"], item["claim"]) not in seen]
        seen |= {(item["source"]["id"], item["claim"]) for item in new}
        found.append(new)
    return found


MOST_MOVES = 8


def what_moved(traces: Sequence[Mapping[str, Any]], target: str) -> list[dict[str, Any]]:
    """Evidence by how far belief in a target moved when it was first cited, on average over the trials that cite it.

    Pieces that were cited at once share the move of that step. What moved it less than half a point is left out.
    """
    moves: dict[str, list[float]] = {}
    shown: dict[str, dict[str, Any]] = {}
    for trace in traces:
        before: float | None = None
        own: dict[str, float] = {}
        for point in trace["path"]:
            p = point["p"].get(target)
            if p is not None and before is not None:
                for item in point["cited"]:
                    key = item["source"]["url"] or item["source"]["title"]
                    own[key] = own.get(key, 0.0) + (p - before) / len(point["cited"])
                    shown.setdefault(key, item)
            before = before if p is None else p
        for key, move in own.items():
            moves.setdefault(key, []).append(move)
    means = {key: sum(found) / len(found) for key, found in moves.items()}
    ranked = sorted((key for key in means if abs(means[key]) >= 0.005), key=lambda key: -abs(means[key]))
    return [{**shown[key], "move": means[key], "trials": len(moves[key])} for key in ranked[:MOST_MOVES]]


def _event_view(number: int, event: TraceEvent) -> dict[str, Any]:
    """One event. Which fields are filled depends on its kind. Live streams use the same number."""
    view = dict.fromkeys(("title", "text", "url", "published"), "")
    view |= {"id": number, "step": None, "arguments": {}, "sources": (), "p": {}, "failed": False}
    view |= {"dollars": None, "reused": False}
    match event:
        case kinds.ModelCalled():
            text = f"{event.model}: {event.input_tokens:,} tokens read, {event.output_tokens:,} written"
            view |= {"kind": "model", "title": event.role, "text": text}
            view |= {"dollars": event.dollars, "reused": event.reused}
        case kinds.ToolUsed():
            given = {name: str(value) for name, value in event.arguments.items() if name != "updated_belief"}
            view |= {"kind": "tool", "step": event.step, "title": event.tool, "text": event.result}
            view |= {"arguments": given, "sources": event.sources, "failed": event.failed}
        case kinds.LeakBlocked():
            view |= {"kind": "withheld", "title": event.title or event.layer, "text": f"{event.layer}: {event.reason}"}
            view |= {"url": event.url, "published": event.published}
        case kinds.BeliefRevised():
            view |= {"kind": "belief", "step": event.step, "text": event.reason, "p": event.p}
        case kinds.ForecastMade():
            view |= {"kind": "answer", "text": event.how, "p": event.p}
        case kinds.Failed():
            view |= {"kind": "failed", "text": event.error, "failed": True}
        case _:
            view |= {"kind": "tree", "text": describe_event(event)}
    return view


def _evidence(written: Any, sources: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Claims with their sources; None if the model named no existing source."""
    items = cast("Sequence[Any]", written) if isinstance(written, list | tuple) else ()
    claims = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    found: list[dict[str, Any]] = []
    for claim in claims:
        id = str(claim.get("source_id", ""))
        source = sources.get(id) or (source_view(id, id) if id else None)
        found.append({"claim": str(claim.get("claim", "")), "source": source})
    return found


def _sources(used: Sequence[tuple[int, kinds.ToolUsed]], rationale: str) -> dict[str, dict[str, Any]]:
    """Source id → title as the model saw it, date and address if known, and the event that shows it."""
    found: dict[str, dict[str, Any]] = {"question": source_view("question", "the question itself")}
    for number, event in used:
        heads = {id: title for id, title in SOURCE_HEAD.findall(unmarked(event.result))[:200]}
        url = str(event.arguments.get("url", "")) if len(event.sources) == 1 else ""
        for id in event.sources:
            head = heads.get(id, id)
            parts = ADDRESS_AND_DATE.match(head)
            title, address, date = (parts[1], parts[2], parts[3] or "") if parts else (head, url, "")
            found[id] = source_view(id, title, address or url, date, number)
    for id, line in SOURCE_HEAD.findall(rationale[-100_000:]):
        if id in found and (cited := URL_PATTERN.match(line)):
            title = found[id]["title"] if found[id]["date"] else cited[1] or found[id]["title"]
            found[id] |= {"title": title, "url": cited[2]}
    return found


def source_view(id: str, title: str, url: str = "", date: str = "", seen: int | None = None) -> dict[str, Any]:
    """A source as pages show it; `seen` is the event in which the model saw it."""
    return {"id": id, "title": title, "url": url, "date": date, "seen": seen}


# A trial, the way from trials to one answer, and the question with all of it.


def _trial(
    number: int, answer: Forecast | Failure | None, events: Sequence[tuple[int, TraceEvent]], *, panel: bool
) -> dict[str, Any]:
    """One independent trial, or the panel that read them all."""
    forecast = answer if isinstance(answer, Forecast) else None
    trace = trace_view(events, forecast.rationale if forecast else "")
    # The largest difference between answer and last belief: an agent should submit what it believes.
    drift = None
    if forecast and trace["path"]:
        last = trace["path"][-1]["p"]
        drift = max((abs(p - last[target]) for target, p in forecast.p.items() if target in last), default=None)
    waiting = "under way" if events else "waiting"
    return {
        "number": number,
        "panel": panel,
        "state": waiting if answer is None else "answered" if forecast else "failed",
        "p": forecast.p if forecast else None,
        "rationale": forecast.rationale if forecast else "",
        "error": answer.error if isinstance(answer, Failure) else "",
        "degraded": forecast.problem if forecast and forecast.degraded else "",
        "stopped": forecast is not None and forecast.ending == "stopped",
        "seconds": forecast.usage.seconds if forecast else None,
        "drift": drift,
        "trace": trace,
    }


def combination_of(
    answers: Sequence[Forecast | Failure], question: Question, how: CombinationSettings
) -> dict[str, Any] | None:
    """The stages from trials to the answer, as the run's spec says. None if no trial answered."""
    forecasts = [answer for answer in answers if isinstance(answer, Forecast)]
    trials = [forecast for forecast in forecasts if forecast.forecaster != PANEL]
    if not trials:
        return None
    sound = [trial for trial in trials if not trial.degraded]
    if not sound:  # Better than nothing, and marked as such.
        how = replace(how, degraded=True)
    trials = sound or trials
    plain = Aggregate(rule=how.rule).apply([trial.p for trial in trials])
    coherent = combine_trials(forecasts, [question], CombinationSettings(rule=how.rule, degraded=how.degraded))[0].p
    final = combine_trials(answers, [question], how)[0]
    stages: list[tuple[str, str, Mapping[str, float]]] = [(*RULE_WORDS[how.rule], plain)]
    if any(abs(plain[target] - coherent[target]) > 1e-9 for target in plain if target in coherent):
        fitted = "outcomes that exclude or imply each other now add up"
        stages.append(("Made consistent", fitted, coherent))
    if how.judged:
        stages.append(("Panel", "a model read the trials' reasons and gave the answer", final.p))
    elif why := reason_for(trials, question, how):
        stages.append(("Combined with what else was known", why.rstrip("."), final.p))
    return {
        "trials": [{"name": f"Trial {trial.trial + 1}", "told": "", "p": trial.p} for trial in trials],
        "stages": [{"name": name, "told": text, "p": p} for name, text, p in stages],
        "p": final.p,
        "none": probability_of_none(final.p, question.exclusivity),
        "quantiles": quantiles_of(final, question),
        "degraded": final.degraded,
        "rationale": final.rationale,
        "spread": {t: max(trial.p[t] for trial in trials) - min(trial.p[t] for trial in trials) for t in plain},
    }


def quantiles_of(forecast: Forecast, question: Question) -> dict[str, str] | None:
    """Quantiles of a number or date for people; None for other questions."""
    found = forecast.distribution
    if not isinstance(found, Numeric):
        return None
    values = {name: found.quantile(level) for name, level in LEVELS.items()}
    scale = question.range
    return {name: f"{value:,.6g}" if scale is None else scale.write(value) for name, value in values.items()}


def _withheld(trials: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was withheld from the trials, by title and reason, with counts."""
    seen: Counter[tuple[str, str, str, str]] = Counter(
        (one["title"], one["text"], one["url"], one["published"])
        for trial in trials
        for one in trial["trace"]["happenings"]
        if one["kind"] == "withheld"
    )
    return [
        {"title": title, "reason": reason, "url": url, "published": published, "times": times}
        for (title, reason, url, published), times in seen.most_common(MOST_WITHHELD)
    ]


def _question_text(question: Question, resolutions: Sequence[Resolution], rates: Mapping[str, float]) -> dict[str, Any]:
    outcomes = {one.target_id: one for one in resolutions if one.due == question.due}
    return {
        "id": question.id,
        "due": question.due.isoformat(),
        "text": question.text,
        "criteria": question.criteria,
        "background": question.background,
        "url": question.url,
        "source": question.source,
        "category": question.category,
        "closes_at": question.closes_at.isoformat() if question.closes_at else None,
        "exclusivity": question.exclusivity,
        "targets": [
            {
                "id": target.id,
                "label": target.label or target.id,
                "resolves_at": target.resolves_at.isoformat() if target.resolves_at else None,
                # The market price when the question was asked.
                "price": target.snapshot.price if target.snapshot else None,
                # How often similar questions had come true by then.
                "rate": rates.get(target.id),
                "outcome": outcomes[target.id].outcome if target.id in outcomes else None,
                "decided_at": outcomes[target.id].resolved_at if target.id in outcomes else None,
            }
            for target in question.targets
        ],
    }


MOST_SCORED, LONGEST_TEXT = 3_000, 20_000
"""Questions of a run, and characters of one, for which base rates are made while somebody waits for a page."""


def base_rates_of(
    store: RunStore, row: RunRow, question: Question, scores: Callable[[], RunScores]
) -> dict[str, float]:
    """Base rate by target, from what was known when the question was asked; empty if there is none.

    Taken from the run's store, or from questions of the same run that had resolved by then; for an open question,
    from questions with similar wording.
    """
    due = question.due.isoformat()
    stored = {target: rate for (id, at, target), rate in store.rates(row.id).items() if (id, at) == (question.id, due)}
    if stored:
        return stored
    if len(question.text) + len(question.criteria) + len(question.background) > LONGEST_TEXT:
        return {}
    if store.asked().get(row.id, 0) <= MOST_SCORED and (scored := scores().base_rates(question)):
        return scored
    with suppress(CannotForecast, InputError):
        context = Context(as_of=question.as_of_in("live" if row.spec.get("mode") == "live" else "backtest"))
        return dict(OutsideView().estimate(question, context).p)
    return {}


def question_view(
    store: RunStore, row: RunRow, question: str, due: str | None, scores: Callable[[], RunScores]
) -> dict[str, Any] | None:
    """Every trial of a question step by step, with evidence, refusals and cost, and the way to the answer.

    As of `due`, or of the latest date; None if the run does not have the question. `scores` is called only if the base
    rate needs it.
    """
    moments = tuple(found[0] for found in store.database.read(_MOMENTS_SQL, (row.id, question)))
    moment = next((one for one in moments if one.startswith(due)), due) if due else moments[0] if moments else ""
    key = CellKey(run=row.id, question=question, due=moment, trial=0)
    asked = store.question(key)
    if asked is None:
        return None
    answers = {answer.trial: answer for answer in store.answers_to(key)}
    events: dict[int, list[tuple[int, TraceEvent]]] = {}
    for number, cell, event in store.events(row.id, question):
        if cell.due == moment:
            events.setdefault(cell.trial, []).append((number, event))
    trials = [
        _trial(number, answers.get(number), events.get(number, []), panel=number >= int(row.spec.get("trials", 1)))
        for number in range(cells_each(row.spec))
    ]
    rates, how = base_rates_of(store, row, asked, scores), combining_of_row(store, row)
    finished = all(trial["state"] in ("answered", "failed") for trial in trials)
    return {
        "mode": str(row.spec.get("mode", "")),
        "clairvoyant": bool(row.spec.get("clairvoyant")),
        "question": _question_text(asked, RunOutcomes(store).of(row.id, question), rates),
        "asked": moments,
        "trials": trials,
        # Which evidence moved belief how far, on average over trials; of a question with one outcome.
        "moved": what_moved([trial["trace"] for trial in trials], asked.targets[0].id)
        if len(asked.targets) == 1
        else [],
        "combination": combination_of(list(answers.values()), asked, how),
        # Until every trial has ended: what they believe so far, and what is being read.
        "live": None if finished else live_view(trials, events, how.rule),
        "limits": limits_of(row.spec),
        # What agents still want to know, and how often they said so: it would change the answer.
        "open": Counter(text for trial in trials for text in trial["trace"]["open_questions"]).most_common(MOST_OPEN),
        # What the fence withheld, each item once.
        "withheld": _withheld(trials),
        "spending": cost_of_events(event for several in events.values() for _, event in several),
        "finished": finished,
    }


# A question in progress: current beliefs of its trials, and what each is reading.


LONGEST_EXCERPT = 700
"""Maximum length of an excerpt of what a trial is reading."""
TOOL_WORDS: Mapping[str, str] = {
    WEB_SEARCH: "reading search results",
    SUMMARIZE_RESULTS: "reading a summary",
    LOOKUP_URL: "reading a page",
    FETCH_SERIES: "reading a data series",
    FETCH_PRICES: "reading market prices",
    FETCH_WIKIPEDIA: "reading Wikipedia",
}
_LIMITS = AgentSettings()


def live_view(
    trials: Sequence[Mapping[str, Any]], events: Mapping[int, Sequence[tuple[int, TraceEvent]]], rule: Rule
) -> dict[str, Any]:
    """Current beliefs and reading of the trials of an unfinished question."""
    standing = [one for trial in trials if not trial["panel"] and (one := _standing(trial)) is not None]
    said = [one["p"] for one in standing]
    alike = bool(said) and all(one.keys() == said[0].keys() for one in said)
    return {
        "p": Aggregate(rule=rule).apply(said) if alike else None,
        "trials": standing,
        "reading": [
            {"trial": trial["number"], **found}
            for trial in trials
            if trial["state"] == "under way" and (found := _being_read(events.get(trial["number"], ()))) is not None
        ],
    }


def _standing(trial: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer of a trial, or its last belief; None if it has neither."""
    path = trial["trace"]["path"]
    p = trial["p"] or (path[-1]["p"] if path else None)
    return None if not p else {"number": trial["number"], "p": dict(p), "answered": trial["p"] is not None}


def _being_read(events: Sequence[tuple[int, TraceEvent]]) -> dict[str, Any] | None:
    """The latest tool result, if nothing happened since: the model is reading it."""
    for number, event in reversed(events):
        if isinstance(event, kinds.ToolUsed):
            text = unmarked(event.result).strip()
            # What our own words around it say is for the model: a reader sees the first source.
            source = SOURCE_HEAD.search(text)
            return {
                "event": number,
                "step": event.step,
                "tool": event.tool,
                "doing": TOOL_WORDS.get(event.tool, f"reading what {event.tool} returned"),
                "asked": next((str(value) for name, value in event.arguments.items() if name in ("query", "url")), ""),
                "title": source[2] if source else "",
                "text": (text[source.end() :] if source else text).strip()[:LONGEST_EXCERPT],
                "length": len(text),
                "failed": event.failed,
            }
        if isinstance(event, kinds.BeliefRevised | kinds.ForecastMade):
            return None
    return None


def limits_of(spec: Mapping[str, Any]) -> dict[str, float]:
    """Maximum steps and seconds of a trial."""
    options: Mapping[str, Any] = spec.get("options") or {}
    return {
        "steps": int(options.get("steps", _LIMITS.steps)),
        "seconds": float(options.get("seconds") or USUAL_SECONDS),
    }


# How a run was made.


def how_made(store: RunStore, row: RunRow, spent: float) -> tuple[tuple[str, str], ...]:
    """How a run was made, for a report: questions, models, tools, date, cost, and how to repeat it."""
    spec = row.spec
    ((questions,),) = store.database.read("select count(*) from question where run = ?", (row.id,))
    dataset = str(spec.get("questions", {}).get("dataset", ""))
    if dataset.startswith(TYPED_PREFIX) and (asked := store.questions(row.id)):
        dataset = asked[0].text
    pairs = (
        ("run", f"{row.name} ({row.id})" if row.name else row.id),
        ("questions", Path(dataset).name if Path(dataset).is_absolute() else dataset),
        ("asked", f"{plural(questions, 'question')} × {plural(int(spec.get('trials', 1)), 'trial')}"),
        ("forecaster", str(spec.get("forecaster", ""))),
        *((f"model, {role}", str(name)) for role, name in (spec.get("models") or {}).items()),
        ("search", ", ".join(map(str, spec.get("search") or ()))),
        ("mode", str(spec.get("mode", ""))),
        ("began", row.created[:16].replace("T", " ")),
        ("spent on the run", dollars(spent)),
        ("note", row.note),
        ("compute it again, free and offline", f"foretell replay {row.id}"),
    )
    return tuple(pair for pair in pairs if pair[1])
