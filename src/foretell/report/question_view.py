"""One question of a run, as pages and reports show it: every trial step by step, and how they were combined."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from foretell.forecasters.agent.settings import AgentSettings
from foretell.forecasters.base_rates.outside_estimate import cutoff_of, hindsight, outside_estimate
from foretell.forecasters.base_rates.outside_model import shipped_model
from foretell.forecasters.combine.aggregate import PANEL, Aggregate, Rule
from foretell.forecasters.tree.exports import tree_caveats, tree_failures
from foretell.forecasters.tree.parts import claim_parts, reasoning_lines
from foretell.forecasters.tree.proposition import Grounding
from foretell.models.waiting import USUAL_SECONDS
from foretell.number_text import dollars, plural
from foretell.patterns import pattern
from foretell.questions import trace as kinds
from foretell.questions.codec import plain_data
from foretell.questions.forecast import Failure, Forecast, Numeric
from foretell.questions.question import Question, probability_of_none
from foretell.questions.resolution import Resolution
from foretell.questions.thresholds import LEVELS
from foretell.questions.trace import TraceEvent, cost_of_calls
from foretell.report.charts.steps import busy
from foretell.report.markup import shorten
from foretell.report.pending_work import pending_in_words
from foretell.report.run_report import describe_event
from foretell.runs.combine import (
    CombinationSettings,
    CombinedAnswer,
    combined_answers,
    combining_of_row,
    kept_in_words,
)
from foretell.runs.grown_trees import GrownTree, grown_trees
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.spec import TYPED_PREFIX
from foretell.runs.store import RunRow, RunStore, TrialKey, trials_per_question
from foretell.scoring.caveats import answer_caveats
from foretell.scoring.run_scores import RunScores
from foretell.tools.marks import unmarked
from foretell.tools.tool import FETCH_WIKIPEDIA, LOOKUP_URL, WEB_SEARCH

MOST_OPEN, MOST_WITHHELD = 6, 20
SOURCE_HEAD = pattern(r"^\[([\w.-]{1,80})\] (.{0,1000})$", re.MULTILINE)
"""The first line of a result as a model sees it, and of a source at the end of a rationale."""
URL_PATTERN = pattern(r"^(.*?)\s*(https?://\S+)$")
ADDRESS_AND_DATE = pattern(r"^(.{0,600}?) \((https?://[^\s,()]{1,300})(?:, ([^()]{1,40}))?\)$")
"""How a result's first line ends: with its address and date."""


def trace_view(events: Sequence[tuple[int, TraceEvent]], rationale: str = "") -> dict[str, Any]:
    """Return the trace of one trial; the rationale adds the addresses of cited sources."""
    happened = [event for _, event in events]
    beliefs = [event for event in happened if isinstance(event, kinds.BeliefRevised)]
    used = [event for event in happened if isinstance(event, kinds.ToolUsed)]
    sources = _sources([(number, event) for number, event in events if isinstance(event, kinds.ToolUsed)], rationale)
    last: Mapping[str, Any] = beliefs[-1].belief if beliefs else {}
    return {
        "happenings": [_event_view(number, event) for number, event in events],
        # The estimate after every step that changed it.
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
        "open_questions": [str(text) for text in last.get("open_questions") or ()],
        "searches": [str(event.arguments.get("query", "")) for event in used if event.tool == WEB_SEARCH],
        "tools": Counter(event.tool for event in used),
        "withheld": Counter(event.layer for event in happened if isinstance(event, kinds.LeakBlocked)),
        "spending": cost_of_calls(happened),
        "how": next((event.in_words for event in reversed(happened) if isinstance(event, kinds.ForecastMade)), ""),
    }


def _first_cited(
    beliefs: Sequence[kinds.BeliefRevised], sources: Mapping[str, dict[str, Any]]
) -> list[list[dict[str, Any]]]:
    """Return for each estimate the evidence that it cites for the first time."""
    seen: set[tuple[str, str]] = set()
    first_cited: list[list[dict[str, Any]]] = []
    for belief in beliefs:
        both = [
            *_evidence(belief.belief.get("evidence_for"), sources),
            *_evidence(belief.belief.get("evidence_against"), sources),
        ]
        new = [item for item in both if item["source"] and (item["source"]["id"], item["claim"]) not in seen]
        seen |= {(item["source"]["id"], item["claim"]) for item in new}
        first_cited.append(new)
    return first_cited


MOST_MOVES = 8


def what_moved(traces: Sequence[Mapping[str, Any]], target: str) -> list[dict[str, Any]]:
    """Return evidence by how far the estimate moved when it was first cited, averaged over the trials that cite it.

    Evidence cited in the same step shares the move of that step. Moves of less than half a point are left out.
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
                    key = _source_key(item["source"])
                    own[key] = own.get(key, 0.0) + (p - before) / len(point["cited"])
                    shown.setdefault(key, item)
            before = before if p is None else p
        for key, move in own.items():
            moves.setdefault(key, []).append(move)
    means = {key: sum(values) / len(values) for key, values in moves.items()}
    ranked = sorted((key for key in means if abs(means[key]) >= 0.005), key=lambda key: -abs(means[key]))
    return [{**shown[key], "move": means[key], "trials": len(moves[key])} for key in ranked[:MOST_MOVES]]


def what_it_rests_on(traces: Sequence[Mapping[str, Any]], moved: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the evidence that trials ended with, each fact once; what moved their estimate most comes first."""
    moves = {_source_key(item["source"]): item["move"] for item in moved if item["source"]}
    found: dict[str, dict[str, Any]] = {}
    for trace in traces:
        for helps, side in ((True, "evidence_for"), (False, "evidence_against")):
            for item in trace[side]:
                move = moves.get(_source_key(item["source"])) if item["source"] else None
                entry = found.setdefault(item["claim"], {**item, "helps": helps, "move": move, "trials": 0})
                entry["trials"] += 1
    return sorted(found.values(), key=lambda entry: -abs(entry["move"] or 0.0))[:MOST_MOVES]


def _event_view(number: int, event: TraceEvent) -> dict[str, Any]:
    """Return one event. Which fields are filled depends on its kind. Live streams use the same number."""
    view = dict.fromkeys(("title", "text", "words", "url", "published"), "")
    view |= {"id": number, "step": None, "arguments": {}, "sources": (), "p": {}, "failed": False}
    view |= {"dollars": None, "reused": False, "at": event.at, "seconds": event.seconds}
    match event:
        case kinds.ModelCalled():
            text = f"{event.model}: {event.input_tokens:,} tokens read, {event.output_tokens:,} written"
            view |= {"kind": "model", "title": event.role, "text": text}
            view |= {"dollars": event.dollars, "reused": event.reused}
        case kinds.QuestionShown():
            view |= {"kind": "prompt", "text": event.text}
        case kinds.ToolUsed():
            arguments = {name: _as_text(value) for name, value in event.arguments.items() if name != "updated_belief"}
            view |= {"kind": "tool", "step": event.step, "title": event.tool, "text": event.result}
            view |= {"words": tool_use_in_words(event)}
            view |= {"arguments": arguments, "sources": event.sources, "failed": event.failed}
        case kinds.LeakBlocked():
            view |= {"kind": "withheld", "title": event.title or event.layer, "text": f"{event.layer}: {event.reason}"}
            view |= {"url": event.url, "published": event.published}
        case kinds.BeliefRevised():
            view |= {"kind": "belief", "step": event.step, "text": event.reason, "p": event.p}
        case kinds.ForecastMade():
            view |= {"kind": "answer", "text": event.in_words, "p": event.p}
        case kinds.Failed():
            view |= {"kind": "failed", "text": event.error, "failed": True}
        case _:
            view |= {
                "kind": "tree",
                "text": describe_event(event),
                "words": describe_event(event, LONGEST_WORDS).strip(),
            }
    return view


def _as_text(value: object) -> str:
    """Return an argument of a tool as it was sent: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(plain_data(value), ensure_ascii=False)


LONGEST_WORDS = 80
"""Maximum length of what a step was about, in characters."""


def tool_use_in_words(event: kinds.ToolUsed) -> str:
    """Return the call of a tool in a few words: its name, and the text that it was given.

    >>> tool_use_in_words(kinds.ToolUsed(step=1, tool="web_search", arguments={"query": "pier"}, result=""))
    'web search “pier”'
    """
    given = next((value for value in event.arguments.values() if isinstance(value, str) and value), "")
    return " ".join([event.tool.replace("_", " "), *([f"“{shorten(given, LONGEST_WORDS)}”"] if given else [])])


def _evidence(stated: Any, sources: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return claims with their sources; None if the model named no existing source."""
    items = cast("Sequence[Any]", stated) if isinstance(stated, list | tuple) else ()
    claims = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    evidence: list[dict[str, Any]] = []
    for claim in claims:
        id = str(claim.get("source_id", ""))
        source = sources.get(id) or (source_view(id, id) if id else None)
        evidence.append({"claim": str(claim.get("claim", "")), "source": source})
    return evidence


def _sources(used: Sequence[tuple[int, kinds.ToolUsed]], rationale: str) -> dict[str, dict[str, Any]]:
    """Map source id → title as the model saw it, date and address if known, and the event that shows it."""
    sources: dict[str, dict[str, Any]] = {"question": source_view("question", "the question itself")}
    for number, event in used:
        heads = {id: title for id, title in SOURCE_HEAD.findall(unmarked(event.result))[:200]}
        url = str(event.arguments.get("url", "")) if len(event.sources) == 1 else ""
        for id in event.sources:
            head = heads.get(id, id)
            parts = ADDRESS_AND_DATE.match(head)
            title, address, date = (parts[1], parts[2], parts[3] or "") if parts else (head, url, "")
            sources[id] = source_view(id, title, address or url, date, number)
    for id, line in SOURCE_HEAD.findall(rationale[-100_000:]):
        if id in sources and (cited := URL_PATTERN.match(line)):
            title = sources[id]["title"] if sources[id]["date"] else cited[1] or sources[id]["title"]
            sources[id] |= {"title": title, "url": cited[2]}
    return sources


def source_view(id: str, title: str, url: str = "", date: str = "", seen: int | None = None) -> dict[str, Any]:
    """Return a source as pages show it; `seen` is the event in which the model saw it."""
    return {"id": id, "title": title, "url": url, "date": date, "seen": seen}


# A trial, how trials are combined into one answer, and the whole question.


def _trial(
    number: int,
    answer: Forecast | Failure | None,
    events: Sequence[tuple[int, TraceEvent]],
    pending: str,
    *,
    panel: bool,
) -> dict[str, Any]:
    """Return one independent trial, or the panel that read them all; `pending` is what it waits for, as stored."""
    forecast = answer if isinstance(answer, Forecast) else None
    trace = trace_view(events, forecast.rationale if forecast else "")
    # The largest difference between the answer and the last estimate, which should agree unless a tree is combined.
    drift = None
    if forecast and forecast.reconciliation is None and trace["path"]:
        last = trace["path"][-1]["p"]
        drift = max((abs(p - last[target]) for target, p in forecast.p.items() if target in last), default=None)
    waiting = "under way" if events or pending else "waiting"
    steps = [event.step for _, event in events if isinstance(event, kinds.ToolUsed | kinds.BeliefRevised)]
    return {
        "number": number,
        "panel": panel,
        "state": waiting if answer is None else "answered" if forecast else "failed",
        "p": forecast.p if forecast else None,
        "rationale": forecast.rationale if forecast else "",
        "error": answer.error if isinstance(answer, Failure) else "",
        "fallback": forecast.problem if forecast and forecast.fallback else "",
        "stopped": forecast is not None and forecast.ending == "stopped",
        "seconds": forecast.usage.seconds if forecast else None,
        "drift": drift,
        # The step that it is at, or at which it ended.
        "step": max(steps, default=0) + (answer is None),
        "pending": (waits := pending_in_words(pending, stated=bool(trace["path"]))),
        "trace": trace,
        "time": trial_time(trace["happenings"], waits),
    }


def trial_time(happenings: Sequence[Mapping[str, Any]], pending: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return when a trial began and how long it waited for models and tools; None if its events have no time.

    What went on at the same time counts once. Models that read the results of tools count as part of the tools.
    `pending` is what the trial still waits for.
    """
    known = [event for event in happenings if event["at"] is not None]
    starts = [event["at"] - (event["seconds"] or 0.0) for event in known] + [work["since"] for work in pending]
    if len(known) < len(happenings) or not starts:
        return None
    began = min(starts)
    waits = [(event["kind"], (event["at"] - event["seconds"], event["at"])) for event in known if event["seconds"]]
    tools = busy([span for kind, span in waits if kind == "tool"])
    return {
        "began": began,
        "seconds": max([began, *(event["at"] for event in known)]) - began,
        "model": busy([span for _, span in waits]) - tools,
        "tool": tools,
    }


def combination_of(
    answers: Sequence[Forecast | Failure], question: Question, how: CombinationSettings
) -> dict[str, Any] | None:
    """Return the stages from trials to the answer, according to the run's spec; None if no trial answered."""
    answer = _combined_answer(answers, question, how)
    return None if answer is None else _combination(answer, question)


def _combined_answer(
    answers: Sequence[Forecast | Failure], question: Question, how: CombinationSettings
) -> CombinedAnswer | None:
    forecasts = [answer for answer in answers if isinstance(answer, Forecast)]
    trials = [forecast for forecast in forecasts if forecast.forecaster != PANEL]
    if not trials:
        return None
    if all(trial.fallback for trial in trials):  # Use fallback forecasts, marked as such.
        how = replace(how, fallback=True)
    return combined_answers(answers, [question], how)[0]


def _combination(answer: CombinedAnswer, question: Question) -> dict[str, Any]:
    final, counted, both = answer.forecast, answer.trials, answer.reconciliation
    day = final.as_of.at.date()
    return {
        "trials": [{"name": f"Trial {trial.trial + 1}", "text": "", "p": trial.p} for trial in counted],
        "stages": [{"name": step.heading, "text": step.text, "p": step.p} for step in answer.steps],
        "p": final.p,
        "none": probability_of_none(final.p, question.exclusivity),
        "quantiles": quantiles_of(final, question),
        "fallback": final.fallback,
        "rationale": final.rationale,
        # The value of a series that the answer stands on, with its age.
        "value": "" if final.value is None else final.value.in_words,
        "spread": {t: max(each.p[t] for each in counted) - min(each.p[t] for each in counted) for t in final.p},
        "ranges": {target: list(ends) for target, ends in answer.ranges.items()},
        # Tree and direct estimate of every target in words, if there is a tree.
        "both": {} if both is None else {target: both.in_words(target) for target in both.tree},
        # Whether a model was asked to reconcile them, and what it wrote about the difference.
        "reconciled": both is not None and both.asked,
        "difference": "" if both is None else both.report,
        "why": () if both is None else both.why,
        # Which of the two was nearer in earlier cases; only where they are apart.
        "record": "" if not answer.apart or answer.how.trees is None else answer.how.trees.when_apart(day),
        "kept": {target: kept_in_words(final.p[target], was) for target, was in answer.clamped_from.items()},
        **answer.to_dict(),
    }


def tree_view(grown: GrownTree, row: RunRow, question: str) -> dict[str, Any]:
    """Return a tree as the page of its question shows it: its root and the children, with what decided each."""
    tree = grown.tree
    typed = str(row.spec.get("questions", {}).get("dataset", "")).startswith(TYPED_PREFIX)
    children = [tree.nodes[id] for id in tree.nodes[tree.root].children]
    return {
        "name": grown.name(row.id, question, typed=typed),
        "target": grown.target,
        "trial": grown.trial,
        "p": tree.nodes[tree.root].p,
        "parts": claim_parts(tree, tree.root),
        "evidence": {
            node.id: {
                "grounder": (node.grounding or Grounding()).grounder,
                "key_factor": node.key_factor or (node.grounding or Grounding()).key_factor,
                "sources": len((node.grounding or Grounding()).sources),
                "notes": node.notes,
            }
            for node in children
        },
        "notes": tree.nodes[tree.root].notes,
    }


def quantiles_of(forecast: Forecast, question: Question) -> dict[str, str] | None:
    """Return quantiles of a number or date as text; None for other questions."""
    distribution = forecast.distribution
    if not isinstance(distribution, Numeric):
        return None
    values = {name: distribution.quantile(level) for name, level in LEVELS.items()}
    scale = question.range
    return {name: f"{value:,.6g}" if scale is None else scale.write(value) for name, value in values.items()}


def _withheld(trials: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was withheld from the trials, by title and reason, with counts."""
    seen: Counter[tuple[str, str, str, str]] = Counter(
        (event["title"], event["text"], event["url"], event["published"])
        for trial in trials
        for event in trial["trace"]["happenings"]
        if event["kind"] == "withheld"
    )
    return [
        {"title": title, "reason": reason, "url": url, "published": published, "times": times}
        for (title, reason, url, published), times in seen.most_common(MOST_WITHHELD)
    ]


def _question_text(
    question: Question, resolutions: Sequence[Resolution], rates: Mapping[str, float], rate_name: str
) -> dict[str, Any]:
    outcomes = {resolution.target_id: resolution for resolution in resolutions if resolution.due == question.due}
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
        "rate_name": rate_name,
        "targets": [
            {
                "id": target.id,
                "label": target.short_label,
                "resolves_at": target.resolves_at.isoformat() if target.resolves_at else None,
                # The market price when the question was asked.
                "price": target.snapshot.price if target.snapshot else None,
                # The estimate without a model, or how often similar questions had come true by then.
                "rate": rates.get(target.id),
                "outcome": outcomes[target.id].outcome if target.id in outcomes else None,
                "decided_at": outcomes[target.id].resolved_at if target.id in outcomes else None,
            }
            for target in question.targets
        ],
    }


MOST_SCORED, LONGEST_TEXT = 3_000, 20_000
"""Questions of a run, and characters of one, up to which a page computes base rates on request."""


WITHOUT_MODEL, RATE_NAME = "without a model", "base rate"


def base_rates_of(
    store: RunStore, row: RunRow, question: Question, scores: Callable[[], RunScores]
) -> tuple[str, dict[str, float]]:
    """Return the estimate without a model that the run stored, or else the base rate, by name and by target.

    Both are from what was known when the question was asked; there may be none.
    """
    due = question.due.isoformat()
    stored = {target: rate for (id, at, target), rate in store.rates(row.id).items() if (id, at) == (question.id, due)}
    if stored:
        return RATE_NAME if question.kind == "market" else WITHOUT_MODEL, stored
    return RATE_NAME, _base_rates(store, row, question, scores)


def _base_rates(store: RunStore, row: RunRow, question: Question, scores: Callable[[], RunScores]) -> dict[str, float]:
    """Return base rates from questions of the same run that had resolved; for an open one, from similar wording."""
    if len(question.text) + len(question.criteria) + len(question.background) > LONGEST_TEXT:
        return {}
    if store.question_count(row.id) <= MOST_SCORED and (scored := scores().base_rates(question)):
        return scored
    model = shipped_model()
    cutoff = cutoff_of(question, question.as_of_in("live" if row.spec.get("mode") == "live" else "backtest"))
    return {} if hindsight(question, model, cutoff) else outside_estimate(question, model)[0]


def question_view(
    store: RunStore, row: RunRow, question: str, due: str | None, scores: Callable[[], RunScores]
) -> dict[str, Any] | None:
    """Return every trial of a question step by step, with evidence, refusals and cost, and how they were combined.

    The question is asked as of `due`, or of the latest date. Returns None if the run does not have the question.
    `scores` is called only if the base rate needs it.
    """
    dates = store.question_dates(row.id, question)
    as_of = next((date for date in dates if date.startswith(due)), due) if due else dates[0] if dates else ""
    key = TrialKey(run=row.id, question=question, due=as_of, trial=0)
    stored = store.question(key)
    if stored is None:
        return None
    answers = {answer.trial: answer for answer in store.answers_to(key)}
    events: dict[int, list[tuple[int, TraceEvent]]] = {}
    for number, trial_key, event in store.events(row.id, question):
        if trial_key.due == as_of:
            events.setdefault(trial_key.trial, []).append((number, event))
    pending = store.pending_work(row.id)
    trials = [
        _trial(
            number,
            answers.get(number),
            events.get(number, []),
            pending.get(key._replace(trial=number), ""),
            panel=number >= int(row.spec.get("trials", 1)),
        )
        for number in range(trials_per_question(row.spec))
    ]
    single = len(stored.targets) == 1
    moved = what_moved([trial["trace"] for trial in trials], stored.targets[0].id) if single else []
    rate_name, rates = base_rates_of(store, row, stored, scores)
    how = combining_of_row(store, row)
    finished = all(trial["state"] in ("answered", "failed") for trial in trials)
    grown = grown_trees((trial, event) for trial, several in events.items() for _, event in several)
    answer = _combined_answer(list(answers.values()), stored, how)
    both = None if answer is None else answer.reconciliation
    return {
        "mode": str(row.spec.get("mode", "")),
        "unfiltered": not row.spec.get("leakage_filter", True),
        "question": _question_text(stored, RunOutcomes(store).of(row.id, question), rates, rate_name),
        "asked": dates,
        "trials": trials,
        # How far evidence moved the estimate, on average over trials; only for a question with one target.
        "moved": moved,
        # What the direct estimate rests on, if a tree stands beside it.
        "rests": what_it_rests_on([trial["trace"] for trial in trials], moved) if both is not None else [],
        "combination": None if answer is None else _combination(answer, stored),
        # What the answer rests on in a few lines, as in a terminal, and the trees behind it.
        "reasoning": reasoning_lines(grown[0].tree, both) if both is not None and len(grown) == 1 else [],
        "trees": [tree_view(tree, row, question) for tree in grown],
        # What failed, what stood in for it, and what that means for the answer.
        "caveats": answer_caveats(
            list(answers.values()),
            None if answer is None else answer.forecast,
            [text for tree in grown for text in (*tree_failures(tree.tree), *tree_caveats(tree.tree))],
        ),
        # Until every trial has ended: current estimates and the evidence.
        "live": None if finished else live_view(trials, events, moved, how.rule),
        "limits": limits_of(row.spec),
        # Open questions of the agents, with counts.
        "open": Counter(text for trial in trials for text in trial["trace"]["open_questions"]).most_common(MOST_OPEN),
        # What the leakage filter withheld, each item once.
        "withheld": _withheld(trials),
        "spending": cost_of_calls(event for several in events.values() for _, event in several),
        "finished": finished,
        # When the first of its trials began; None if that is not known.
        "began": min((trial["time"]["began"] for trial in trials if trial["time"]), default=None),
    }


# A question in progress: current estimates of its trials, and their evidence.


MOST_FOUND = 8
"""Maximum number of sources listed while a question is in progress."""
_LIMITS = AgentSettings()


def live_view(
    trials: Sequence[Mapping[str, Any]],
    events: Mapping[int, Sequence[tuple[int, TraceEvent]]],
    moved: Sequence[Mapping[str, Any]],
    rule: Rule,
) -> dict[str, Any]:
    """Return current estimates of the trials of an unfinished question, and the evidence so far."""
    current = [entry for trial in trials if not trial["panel"] and (entry := _current_estimate(trial)) is not None]
    estimates = [entry["p"] for entry in current]
    comparable = bool(estimates) and all(p.keys() == estimates[0].keys() for p in estimates)
    return {
        "p": Aggregate(rule=rule).apply(estimates) if comparable else None,
        "trials": current,
        "evidence": _evidence_so_far(trials, events, moved),
        "steps": _steps_so_far(trials),
    }


MOST_STEPS = 16
"""Maximum number of steps listed while a question is in progress."""


def _steps_so_far(trials: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what the trials did, newest first, in the order in which it was stored."""
    steps = [
        {**event, "trial": trial["number"]}
        for trial in trials
        for event in trial["trace"]["happenings"]
        if event["kind"] not in ("model", "prompt")
    ]
    return sorted(steps, key=lambda step: -step["id"])[:MOST_STEPS]


def _evidence_so_far(
    trials: Sequence[Mapping[str, Any]],
    events: Mapping[int, Sequence[tuple[int, TraceEvent]]],
    moved: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the sources that trials found, latest first, and how many were found, opened, cited and held back."""
    moves = {_source_key(item["source"]): item["move"] for item in moved}
    traces = {trial["number"]: trial["trace"] for trial in trials}
    found: dict[str, dict[str, Any]] = {}
    for number, several in events.items():
        used = [(id, event) for id, event in several if isinstance(event, kinds.ToolUsed)]
        cited = {_source_key(item["source"]) for point in traces[number]["path"] for item in point["cited"]}
        for source in _sources(used, "").values():
            if source["seen"] is None:  # The question itself.
                continue
            key = _source_key(source)
            entry = found.setdefault(key, {"source": source, "trials": [], "cited": False, "move": moves.get(key)})
            entry["trials"] = sorted({*entry["trials"], number})
            entry["cited"] |= key in cited
            if source["seen"] > entry["source"]["seen"]:
                entry["source"] = source
    tools = [event for several in events.values() for _, event in several if isinstance(event, kinds.ToolUsed)]
    return {
        "newest": sorted(found.values(), key=lambda entry: -entry["source"]["seen"])[:MOST_FOUND],
        "found": len(found),
        "opened": sum(event.tool in (LOOKUP_URL, FETCH_WIKIPEDIA) and not event.failed for event in tools),
        "cited": sum(entry["cited"] for entry in found.values()),
        "failed": sum(event.failed for event in tools),
    }


def _source_key(source: Mapping[str, Any]) -> str:
    return source["url"] or source["title"]


def _current_estimate(trial: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the answer of a trial, or its last estimate; None if it has neither."""
    path = trial["trace"]["path"]
    p = trial["p"] or (path[-1]["p"] if path else None)
    return None if not p else {"number": trial["number"], "p": dict(p), "answered": trial["p"] is not None}


def limits_of(spec: Mapping[str, Any]) -> dict[str, float]:
    """Return maximum steps and seconds of a trial."""
    options: Mapping[str, Any] = spec.get("options") or {}
    return {
        "steps": int(options.get("steps", _LIMITS.steps)),
        "seconds": float(options.get("seconds") or USUAL_SECONDS),
    }


# How a run was made.


def how_made(store: RunStore, row: RunRow, spent: float) -> tuple[tuple[str, str], ...]:
    """Return how a run was made, for a report: questions, models, tools, date, cost, and how to repeat it."""
    spec, questions = row.spec, store.question_count(row.id)
    dataset = str(spec.get("questions", {}).get("dataset", ""))
    if dataset.startswith(TYPED_PREFIX) and (typed := store.first_question(row.id)):
        dataset = typed.text
    pairs = (
        ("run", f"{row.name} ({row.id})" if row.name else row.id),
        ("questions", Path(dataset).name if Path(dataset).is_absolute() else dataset),
        (
            "asked",
            f"{plural(questions, 'question')} × {plural(int(spec.get('trials', 1)), 'trial')}",
        ),
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
