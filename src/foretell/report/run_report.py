"""Reports on a run and on one of its questions, as one file to send, print or cite.

No model writes them: sentences are generated from the numbers, and models are quoted.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from foretell.questions import trace as kinds
from foretell.questions.forecast import Forecast, Numeric
from foretell.questions.question import Question
from foretell.questions.trace import TraceEvent
from foretell.report.charts.calibration import reliability_diagram
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.charts.rulers import ShownAnswer, probability_ruler
from foretell.report.charts.svg import Chart, ChartScale, figure
from foretell.report.charts.timelines import Trajectory, stages_plot, trajectory_plot
from foretell.report.document import ReportDocument
from foretell.report.html import HtmlBlock, LinkItem, Section
from foretell.report.leaderboard import run_headline
from foretell.report.markup import Markup, element, web_address
from foretell.report.numbers import bracket, dollars, number, plural, probability_text, signed
from foretell.report.study import column, table
from foretell.scoring.long_tables import THIS_RUN, QuestionAnswer, RunScores
from foretell.scoring.verdict import Verdict

MAX_CHARTS = 6
"""Maximum number of targets with their own charts."""
LONGEST_TIP = 300
"""Maximum length of a claim in a tooltip, in characters."""
MOST_QUESTIONS = 500
"""Maximum number of questions in the table of a run's report; the CSV file has all of them."""


# The charts of a question, and the sentence about its answer.


@dataclass(frozen=True, kw_only=True)
class QuestionCharts:
    """Charts of a question: the answer on a ruler, and the path of belief for the likeliest outcomes."""

    ruler: Chart | None
    """The answer, if the question has one outcome and an answer."""
    targets: Sequence[Mapping[str, Any]]
    """The outcomes that `paths` and `stages` are about, in the same order."""
    paths: Sequence[Chart]
    stages: Sequence[Chart]


def question_charts(view: Mapping[str, Any]) -> QuestionCharts:
    """Draw the charts of a question from its `question_view`."""
    combination, targets = view["combination"], view["question"]["targets"]
    p: Mapping[str, float] = combination["p"] if combination else {}
    leading = sorted(targets, key=lambda target: -p.get(target["id"], 0.0))[:MAX_CHARTS]
    paths = [
        trajectory_plot(
            [_trajectory(trial, target["id"]) for trial in view["trials"]],
            "Belief after each step" if len(targets) == 1 else target["label"],
            combined=p.get(target["id"]),
            price=target["price"],
        )
        for target in leading
    ]
    stages = [_stages(combination, target["id"]) for target in leading]
    return QuestionCharts(ruler=_ruler(view), targets=leading, paths=paths, stages=stages)


def _ruler(view: Mapping[str, Any]) -> Chart | None:
    """Draw the answer to a question with one outcome from 0 to 100 %, with trials, market and outcome."""
    target, combination = view["question"]["targets"][0], view["combination"]
    if combination is None or len(view["question"]["targets"]) > 1:
        return None
    id, trials = (
        target["id"],
        [trial["p"][target["id"]] for trial in combination["trials"] if target["id"] in trial["p"]],
    )
    shown = ShownAnswer(
        p=combination["p"].get(id),
        trials=trials,
        price=target["price"],
        rate=target["rate"],
        outcome=target["outcome"],
    )
    return probability_ruler(shown, large=True)


def _trajectory(trial: dict[str, Any], target: str) -> Trajectory:
    return Trajectory(
        name="panel" if trial["panel"] else f"trial {trial['number'] + 1}",
        points=[(point["step"], point["p"][target]) for point in trial["trace"]["path"] if target in point["p"]],
        final=(trial["p"] or {}).get(target),
        found={
            point["step"]: (point["cited"][0]["claim"] if point["cited"] else point["reason"])[:LONGEST_TIP]
            for point in trial["trace"]["path"]
        },
        tools={one["step"]: one["title"] for one in trial["trace"]["happenings"] if one["kind"] == "tool"},
    )


def _stages(combination: dict[str, Any] | None, target: str) -> Chart:
    if combination is None:
        return stages_plot([], 0)
    every = [*combination["trials"], *combination["stages"]]
    return stages_plot([(stage["name"], stage["p"].get(target, 0.0)) for stage in every], len(combination["trials"]))


def finding_of(view: Mapping[str, Any]) -> str:
    """Summarize the answer to a question with one outcome in a sentence, with market, outcome and what moved it."""
    target, combination = view["question"]["targets"][0], view["combination"]
    if combination is None or len(view["question"]["targets"]) > 1:
        return ""
    p, price, outcome = combination["p"].get(target["id"]), target["price"], target["outcome"]
    parts: list[str] = []
    if price is not None and p is not None:
        gap = 100 * (p - price)
        beside = (
            f"{abs(gap):.0f} points {'above' if gap > 0 else 'below'} the market"
            if abs(gap) >= 0.5
            else "As the market"
        )
        if outcome is not None and abs(gap) >= 0.5:
            beside = (
                "Closer than the market" if abs(p - outcome) < abs(price - outcome) else "Further off than the market"
            )
        parts.append(f"{beside}.")
    for word, sign in (("up", 1), ("down", -1)):
        moved = [one for one in view["moved"] if sign * one["move"] > 0]
        if moved:
            points = f"{100 * abs(moved[0]['move']):.0f}"
            parts.append(
                f"What pulled it {word} most, by {points} points: {moved[0]['claim'][:LONGEST_TIP].rstrip('.')}."
            )
    return " ".join(parts)


# The report on one question.


def question_report(view: Mapping[str, Any], made: Sequence[tuple[str, str]] = ()) -> ReportDocument:
    """Build the report on a question from its `question_view`; `made` describes the run as (label, value) pairs."""
    charts, reasons = question_charts(view), (view["combination"] or {}).get("rationale", "")
    sections: list[Section] = [
        ("answer", "The answer", list(_answer_blocks(view, charts))),
        ("moved", "What moved it", list(_moved(view))),
        ("criteria", "How it resolves", list(_criteria(view["question"]))),
        (
            "change",
            "What would change it",
            [HtmlBlock(bullets=[text for text, _ in view["open"]])] if view["open"] else [],
        ),
        ("stages", "From trials to the answer", list(_stage_blocks(view, charts))),
        ("why", "The reasons in full", [HtmlBlock(prose=reasons)] if reasons else []),
        ("withheld", "Held back from the agent", list(_withheld(view["withheld"]))),
        (
            "trials",
            "Trials",
            [block for trial in view["trials"] for block in _trial(trial, view["question"]["targets"])],
        ),
        ("made", "How it was made", [HtmlBlock(definitions=[pair for pair in made if pair[1]])]),
    ]
    return ReportDocument(title=view["question"]["text"], lead=answer_sentence(view), sections=sections)


def answer_sentence(view: Mapping[str, Any]) -> str:
    """Describe the answer in a few sentences, with the market, the base rate, the outcome and what moved it."""
    combination, targets = view["combination"], view["question"]["targets"]
    if combination is None:
        return "No trial has given an answer."
    if len(targets) > 1:
        ranked = sorted(targets, key=lambda target: -combination["p"].get(target["id"], 0.0))
        named = ", ".join(
            f"{one['label']} {probability_text(combination['p'].get(one['id'], 0.0))}" for one in ranked[:3]
        )
        quantiles = combination["quantiles"]
        return (
            f"Most likely {quantiles['q50']}, with 90 % between {quantiles['q05']} and {quantiles['q95']}."
            if quantiles
            else f"{named}."
        )
    target = targets[0]
    p = combination["p"][target["id"]]
    trials = [one["p"][target["id"]] for one in combination["trials"] if target["id"] in one["p"]]
    ends = f"{probability_text(min(trials))} and {probability_text(max(trials))}"
    spread = f" from {plural(len(trials), 'trial')} between {ends}"
    beside = [
        f"{name} {probability_text(target[key])}"
        for name, key in (("the market said", "price"), ("the base rate is", "rate"))
        if target[key] is not None
    ]
    parts = [f"{probability_text(p)}{spread if len(trials) > 1 else ''}{''.join(f'; {one}' for one in beside)}."]
    if target["outcome"] is not None:
        price = target["price"]
        market = "" if price is None else f" (market {(price - target['outcome']) ** 2:.3f})"
        happened = "It happened" if target["outcome"] else "It did not happen"
        parts.append(f"{happened}: Brier score {(p - target['outcome']) ** 2:.3f}{market}.")
    if combination["degraded"]:
        parts.append("The answer rests on a failure.")
    return " ".join([*parts, finding_of(view)]).strip()


def _answer_blocks(view: Mapping[str, Any], charts: QuestionCharts) -> Iterator[HtmlBlock]:
    combination, targets = view["combination"], view["question"]["targets"]
    if charts.ruler is not None:
        yield HtmlBlock(charts=[charts.ruler])
    if combination is not None and len(targets) > 1:
        labels = ("probability", "market", "base rate", "outcome")
        rows = [
            (
                one["label"],
                (
                    *(
                        "–" if p is None else probability_text(p)
                        for p in (combination["p"].get(one["id"]), one["price"], one["rate"])
                    ),
                    "open" if one["outcome"] is None else "yes" if one["outcome"] else "no",
                ),
            )
            for one in targets
        ]
        yield HtmlBlock(table=table("Answer by outcome", "outcome", map(column, labels), rows))
    if any(trial["trace"]["path"] for trial in view["trials"]):
        yield HtmlBlock(charts=charts.paths)


def _source(claim: str, source: Mapping[str, Any] | None, *more: str) -> LinkItem:
    """Return a claim as a link to its source, with title and date."""
    address = web_address(source["url"]) if source else ""
    told = [source["title"], source["date"]] if source else ["no source named"]
    return LinkItem(text=claim, address=address, detail="; ".join(one for one in (*told, *more) if one))


def _moved(view: Mapping[str, Any]) -> Iterator[HtmlBlock]:
    if not view["moved"]:
        return
    trials = len(view["trials"])
    yield HtmlBlock(
        links=[
            _source(
                f"{signed(100 * one['move'], 0)} points: {one['claim']}",
                one["source"],
                f"{one['trials']} of {plural(trials, 'trial')}",
            )
            for one in view["moved"]
        ]
    )
    words = "How far belief moved when the evidence was first cited, on average over the trials that cite it."
    yield HtmlBlock(text=words, style="quiet")


def _criteria(question: Mapping[str, Any]) -> Iterator[HtmlBlock]:
    pairs = [
        ("asked as of", question["due"][:10]),
        ("known by", (question["closes_at"] or "")[:10]),
        ("category", question["category"]),
        ("source", question["source"]),
        ("address", web_address(question["url"])),
    ]
    yield HtmlBlock(definitions=[pair for pair in pairs if pair[1]])
    for text in (question["criteria"], question["background"]):
        if text:
            yield HtmlBlock(prose=text)


def _stage_blocks(view: Mapping[str, Any], charts: QuestionCharts) -> Iterator[HtmlBlock]:
    if view["combination"] is not None:
        yield HtmlBlock(charts=charts.stages)
        yield HtmlBlock(definitions=[(one["name"], one["told"]) for one in view["combination"]["stages"]])


def _withheld(found: Sequence[Mapping[str, Any]]) -> Iterator[HtmlBlock]:
    if found:
        told = [
            f"{one['title']} ({one['reason']}{', ' + one['published'] if one['published'] else ''})" for one in found
        ]
        yield HtmlBlock(bullets=told)


def _trial(trial: Mapping[str, Any], targets: Sequence[Mapping[str, Any]]) -> Iterator[HtmlBlock]:
    name, trace = "Panel" if trial["panel"] else f"Trial {trial['number'] + 1}", trial["trace"]
    said = ", ".join(
        (f"{one['label']} " if len(targets) > 1 else "") + probability_text(trial["p"][one["id"]])
        for one in targets[:MAX_CHARTS]
        if trial["p"] is not None and one["id"] in trial["p"]
    )
    yield HtmlBlock(heading=f"{name}: {said or trial['state']}")
    for label, text in (("Failed", trial["error"]), ("Rests on a failure", trial["degraded"])):
        if text:
            yield HtmlBlock(text=f"{label}: {text}", style="bad")
    spent = trace["spending"]
    pairs = [
        ("searched for", "; ".join(trace["searches"])),
        ("ended", trace["how"]),
        ("model calls", f"{spent.calls:,}, {dollars(spent.dollars)}" if spent.calls else ""),
    ]
    if shown := [pair for pair in pairs if pair[1]]:
        yield HtmlBlock(definitions=shown)
    for label, key in (("For", "evidence_for"), ("Against", "evidence_against")):
        if trace[key]:
            yield HtmlBlock(text=label, style="quiet")
            yield HtmlBlock(links=[_source(one["claim"], one["source"]) for one in trace[key]])


# The report on a whole run.


def score_figures(scores: RunScores) -> dict[str, Chart | None]:
    """Draw charts of calibration and of scores by group."""
    if scores.table is None:
        return {"reliability": None, "parts": None}
    scored, parts = scores.table, None
    if scores.parts:
        rows = [
            ForestRow(name=f"{part.name} ({part.verdict.n})", interval=part.verdict.interval) for part in scores.parts
        ]
        label = f"Brier index less that of the {scores.parts[0].reference}"
        parts = forest_plot(rows, label=label, reference=0.0)
    outcome, weight = scored.targets.outcome, scored.targets.weight
    return {"reliability": reliability_diagram(scored.p_of(THIS_RUN), outcome, weight, name=THIS_RUN), "parts": parts}


def run_report(title: str, scores: RunScores, made: Sequence[tuple[str, str]] = ()) -> ReportDocument:
    """Build the report on a run: its scores, where it did well and badly, and every question with its answer."""
    figures, summary = score_figures(scores), scores.summary()
    lead = run_headline(scores.against_rate, scores.against_price)
    good: list[HtmlBlock] = []
    if scores.board is not None:
        labels = {"brier_index": "Brier index of this run", "combined": "of its combined answers"}
        found = {**summary, "combined": scores.combined}
        pairs = [(name, _span(one)) for key, name in labels.items() if (one := found[key])]
        sides = {"of the market": scores.against_price, "of the base rate": scores.against_rate}
        pairs += [(name, both_scores(verdict)) for name, verdict in sides.items() if verdict is not None]
        pairs.append(("questions decided", f"{scores.decided} of {len(scores.answers)}"))
        good = [
            HtmlBlock(definitions=pairs),
            *([HtmlBlock(text=scores.rule)] if scores.rule else ()),
            HtmlBlock(
                text="100 is perfect, 50 is what 0.5 everywhere gets. In brackets: 95 % intervals.", style="quiet"
            ),
        ]
    shown = scores.answers[:MOST_QUESTIONS]
    sections: list[Section] = [
        ("score", "How good it was", good),
        (
            "calibration",
            "Does it mean what it says?",
            [HtmlBlock(charts=[one])] if (one := figures["reliability"]) else [],
        ),
        ("parts", "Where it was won and lost", [HtmlBlock(charts=[one])] if (one := figures["parts"]) else []),
        ("questions", "Questions", list(_questions(shown, len(scores.answers)))),
        ("made", "How it was made", [HtmlBlock(definitions=[pair for pair in made if pair[1]])]),
    ]
    return ReportDocument(title=title, lead=lead, sections=sections)


def both_scores(verdict: Verdict) -> str:
    """The second one's score and the first one's on the same targets, so that they subtract to the difference.

    The scores of a run and its market stand on different targets where some have no price.
    """
    first, second = (number(side.estimate, 1) for side in (verdict.first_score, verdict.second_score))
    return f"{second}; {verdict.first} {first} on the same {plural(verdict.n, 'target')}"


def _span(found: Mapping[str, float]) -> str:
    if not math.isfinite(found["estimate"]):
        return "–"
    return f"{found['estimate']:.1f} {bracket(found['low'], found['high'], 1)}".strip()


def _questions(answers: Sequence[QuestionAnswer], total: int) -> Iterator[HtmlBlock]:
    def chance(p: float | None) -> str:
        return "–" if p is None else probability_text(p)

    labels = ("answer", "market", "outcome", "Brier score", "asked as of")
    rows = [
        (
            one.question.text + ("" if len(one.targets) == 1 else f" ({one.leading.label})"),
            (
                chance(one.leading.p) if one.leading.p is not None or not one.failed else "failed",
                chance(one.leading.price),
                "open" if one.leading.outcome is None else "yes" if one.leading.outcome else "no",
                "–" if one.brier is None else f"{one.brier:.3f}",
                one.question.due.date().isoformat(),
            ),
        )
        for one in answers
    ]
    if rows:
        caption = f"The first {len(rows):,} of {total:,} questions" if len(rows) < total else ""
        yield HtmlBlock(table=table("Answers", "question", map(column, labels), rows, caption=caption))


# Answers, and one trace event, as a line of text: for the terminal, the pages, comments and assistants.


def describe_event(event: TraceEvent, width: int = 400) -> str:
    """Describe one event in a line or two."""
    match event:
        case kinds.ModelCalled():
            cost = "" if event.dollars is None else f" ${event.dollars:.4f}"
            return f"  {event.role}: {event.input_tokens} → {event.output_tokens} tokens{cost}"
        case kinds.ToolUsed():
            return f"{event.step}. {event.tool}({_arguments(event.arguments)})\n   {_short(event.result, width)}"
        case kinds.LeakBlocked():
            return f"  withheld ({event.layer}): {event.reason} {event.url}".rstrip()
        case kinds.BeliefRevised():
            p = ", ".join(f"{target} {value:.0%}" for target, value in event.p.items())
            return f"  belief: {p}; {_short(event.reason, width)}"
        case kinds.NodeAnalyzed() | kinds.NodeGrounded() | kinds.NodeSynthesized() | kinds.TreeGrown():
            return _describe_tree_event(event, width)
        case kinds.ForecastMade():
            p = ", ".join(f"{target} {value:.0%}" for target, value in event.p.items())
            return f"answer: {p} ({event.how})"
        case kinds.Failed():
            return f"failed: {event.error}"


def _describe_tree_event(event: TraceEvent, width: int) -> str:
    """Describe what happened to a tree of claims."""
    match event:
        case kinds.NodeAnalyzed():
            lines = [f"  {id}: {_short(event.claims.get(id, ''), width)}" for id in event.added]
            return "\n".join([f"{event.node} was broken down into {len(event.added)} claims", *lines])
        case kinds.NodeGrounded():
            value = "no probability" if event.p is None else f"{event.p:.0%}"
            return f"{event.node} grounded by {event.grounder}: {value} {_short(event.error, width)}".rstrip()
        case kinds.NodeSynthesized():
            value = "no probability" if event.p is None else f"{event.p:.0%}"
            return f"{event.node} put together: {value} by {json.dumps(event.link, ensure_ascii=False)[:width]}"
        case kinds.TreeGrown():
            return f"the tree for {event.tree} is finished: {len(event.document.get('nodes', ()))} claims"
        case _:
            return ""


def _arguments(arguments: Any) -> str:
    return ", ".join(f"{name}={str(value)[:80]!r}" for name, value in arguments.items() if name != "updated_belief")


def _short(text: str, width: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


# Answers as the terminal and comments write them.


def answer_text(forecast: Forecast, question: Question | None) -> str:
    """Format a forecast in a few words.

    >>> from foretell.questions.as_of import AsOf
    >>> answer_text(Forecast(question_id="q", forecaster="f", as_of=AsOf.day("2026-11-15"), p={"yes": 0.344}), None)
    '34.4%'
    """
    scale = None if question is None else question.range
    if isinstance(forecast.distribution, Numeric):
        values = [forecast.distribution.quantile(level) for level in (0.1, 0.5, 0.9)]
        if scale is None or not scale.dates:
            values = [float(f"{value:.4g}") for value in values]
        low, middle, high = (str(value) if scale is None else scale.write(value) for value in values)
        return f"{middle} (8 in 10: {low} to {high})"
    if len(forecast.p) == 1:
        return f"{next(iter(forecast.p.values())):.1%}"
    labels = {} if question is None else {target.id: target.label or target.id for target in question.targets}
    ranked = sorted(forecast.p.items(), key=lambda one: -one[1])
    return ", ".join(f"{labels.get(id, id)} {p:.1%}" for id, p in ranked)


# The picture that stands for an answer where its link is shared: question, number, market and outcome.


WIDTH, HEIGHT, MARGIN = 1200, 630, 80
OURS, MARKET, QUIET = "#1d60ad", "#7a6200", "#5b6672"
YES, NO = "#13734a", "#b0401c"


def question_card(
    question: str, p: float | None, trials: Sequence[float], price: float | None, outcome: int | None
) -> Chart:
    """Draw an image card for link previews, with its own colours."""
    lines = wrap(" ".join(question.split()), 44)
    lines = [*lines[:3], f"{lines[3][:40]}…"] if len(lines) > 4 else lines
    parts: list[Markup] = [element("rect", width=f"{WIDTH}", height=f"{HEIGHT}", fill="#ffffff")]
    parts += [_text(MARGIN, 120 + 56 * n, line, 46, "#1b2129", BOLD) for n, line in enumerate(lines)]
    said = "no answer yet" if p is None else f"{100 * p:.0f} %"
    parts.append(_text(MARGIN, 470, said, 130 if p is not None else 60, OURS, BOLD))
    beside = [] if price is None else [(f"market {100 * price:.0f} %", MARKET)]
    beside += [] if outcome is None else [("it happened", YES) if outcome else ("it did not happen", NO)]
    parts += [_text(560, 410 + 54 * n, told, 40, colour) for n, (told, colour) in enumerate(beside)]
    x = ChartScale(low=0, high=1, start=MARGIN, stop=WIDTH - MARGIN)
    parts.append(_bar(x(0), x(1) - x(0), 532, 8, "#dfe3e8"))
    parts += [_dot(x(one), 536, 7, OURS, "0.35") for one in trials[:50]]
    parts += [] if price is None else [_bar(x(price) - 4, 8, 512, 48, MARKET)]
    parts += [] if p is None else [_bar(x(p) - 5, 10, 506, 60, OURS)]
    parts += [] if outcome is None else [_dot(x(outcome), 536, 14, YES if outcome else NO, "1")]
    parts += [_text(WIDTH - MARGIN, 600, "foretell", 28, QUIET, AT_END)]
    return figure(WIDTH, HEIGHT, f"{question}: {said}", *parts)


def _text(x: float, y: float, said: str, size: int, colour: str, more: str = "") -> Markup:
    return element("text", said, x=f"{x}", y=f"{y}", style=f"font-size:{size}px;fill:{colour}{more}")


BOLD, AT_END = ";font-weight:700", ";text-anchor:end"


def _bar(x: float, width: float, y: float, height: float, colour: str) -> Markup:
    return element("rect", x=f"{x:.1f}", y=f"{y}", width=f"{width:.1f}", height=f"{height}", fill=colour)


def _dot(x: float, y: float, radius: float, colour: str, opacity: str) -> Markup:
    return element("circle", cx=f"{x:.1f}", cy=f"{y}", r=f"{radius}", fill=colour, fill_opacity=opacity)
