"""The report on a run, and on one of its questions: what the page shows, as one file to send, print or cite.

No model writes it: its own words are made from the numbers, those of models are quoted.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foretell.report.charts.calibration import reliability_diagram
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.charts.rulers import ShownAnswer, probability_ruler
from foretell.report.charts.svg import Chart
from foretell.report.charts.timelines import Trajectory, stages_plot, trajectory_plot
from foretell.report.document import ReportDocument
from foretell.report.headline import run_headline
from foretell.report.html import HtmlBlock, LinkItem, Section
from foretell.report.numbers import bracket, dollars, plural, probability_text, signed
from foretell.report.prose import web_address
from foretell.report.study import StudyColumn, StudyRow, StudyTable
from foretell.scoring.run_scores import THIS_RUN, QuestionAnswer, RunScores

MAX_CHARTS = 6
"""Targets that get charts of their own."""
LONGEST_TIP = 300
"""Characters of a claim where it is said in passing."""
MOST_QUESTIONS = 500
"""Questions in the table of a run's report; the CSV file has all of them."""


# The charts of a question, and the sentence about its answer.


@dataclass(frozen=True, kw_only=True)
class QuestionCharts:
    """The pictures of one question: the answer on a ruler, and for the likeliest outcomes how belief moved."""

    ruler: Chart | None
    """Of a question with one outcome that has an answer."""
    targets: Sequence[Mapping[str, Any]]
    """The outcomes that `paths` and `stages` are about, in their order."""
    paths: Sequence[Chart]
    stages: Sequence[Chart]


def question_charts(view: Mapping[str, Any]) -> QuestionCharts:
    """The pictures of a question as `question_view` describes it."""
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
    """The answer to a question of one outcome between 0 and 100 %, with trials, market and what happened."""
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
    )


def _stages(combination: dict[str, Any] | None, target: str) -> Chart:
    if combination is None:
        return stages_plot([], 0)
    every = [*combination["trials"], *combination["stages"]]
    return stages_plot([(stage["name"], stage["p"].get(target, 0.0)) for stage in every], len(combination["trials"]))


def finding_of(view: Mapping[str, Any]) -> str:
    """The answer to a question of one outcome in a sentence: beside the market and the outcome, and what moved it."""
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
    """The report on a question as `question_view` describes it; `made` says how the run was made, pair by pair."""
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
    """The answer beside the market, the base rate and the outcome, and what moved it, in a few sentences."""
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
            StudyRow(
                name=one["label"],
                values=(
                    *(
                        "–" if p is None else probability_text(p)
                        for p in (combination["p"].get(one["id"]), one["price"], one["rate"])
                    ),
                    "open" if one["outcome"] is None else "yes" if one["outcome"] else "no",
                ),
            )
            for one in targets
        ]
        columns = tuple(StudyColumn(label=label) for label in labels)
        yield HtmlBlock(
            table=StudyTable(title="Answer by outcome", row_header="outcome", columns=columns, rows=tuple(rows))
        )
    if any(trial["trace"]["path"] for trial in view["trials"]):
        yield HtmlBlock(charts=charts.paths)


def _source(claim: str, source: Mapping[str, Any] | None, *more: str) -> LinkItem:
    """A claim as a link to where it is from, with title and date of the source."""
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
    """Does it mean what it says, and where was it won and lost?"""
    if scores.table is None:
        return {"reliability": None, "parts": None}
    table, parts = scores.table, None
    if scores.parts:
        rows = [
            ForestRow(name=f"{one.name} ({one.difference.n})", interval=one.difference.interval) for one in scores.parts
        ]
        label = f"Brier index less that of the {scores.parts[0].reference}"
        parts = forest_plot(rows, label=label, reference=0.0)
    outcome, weight = table.targets.outcome, table.targets.weight
    return {"reliability": reliability_diagram(table.p_of(THIS_RUN), outcome, weight, name=THIS_RUN), "parts": parts}


def run_report(title: str, scores: RunScores, made: Sequence[tuple[str, str]] = ()) -> ReportDocument:
    """The report on a run: how good it was, where it was won and lost, and every question with its answer."""
    figures, summary = score_figures(scores), scores.summary()
    lead = run_headline(scores.against_rate, scores.against_price)
    good: list[HtmlBlock] = []
    if scores.board is not None:
        labels = {"bi": "Brier index of this run", "price": "of the market", "base_rate": "of the base rate"}
        pairs = [(name, _span(summary[key])) for key, name in labels.items() if summary[key]]
        pairs.append(("questions decided", f"{scores.decided} of {len(scores.answers)}"))
        good = [
            HtmlBlock(definitions=pairs),
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


def _span(found: Mapping[str, float]) -> str:
    if not math.isfinite(found["estimate"]):
        return "–"
    return f"{found['estimate']:.1f} {bracket(found['low'], found['high'], 1)}".strip()


def _questions(answers: Sequence[QuestionAnswer], total: int) -> Iterator[HtmlBlock]:
    def chance(p: float | None) -> str:
        return "–" if p is None else probability_text(p)

    labels = ("answer", "market", "outcome", "Brier score", "asked as of")
    rows = [
        StudyRow(
            name=one.question.text + ("" if len(one.targets) == 1 else f" ({one.leading.label})"),
            values=(
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
        columns = tuple(StudyColumn(label=label) for label in labels)
        yield HtmlBlock(
            table=StudyTable(title="Answers", row_header="question", columns=columns, rows=tuple(rows), caption=caption)
        )
