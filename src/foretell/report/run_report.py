"""Reports on a run and on one of its questions, as one file to send, print or cite.

No model writes them: sentences are generated from the numbers, and models are quoted.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from foretell.forecasters.tree.parts import ClaimParts
from foretell.forecasters.tree.tree_file import JsonObject, read_link
from foretell.frozen import frozen
from foretell.number_text import bracket, brief_percent, dollars, number, percent, percent_range, plural, signed
from foretell.questions import trace as kinds
from foretell.questions.forecast import Forecast, Numeric
from foretell.questions.question import Question
from foretell.questions.trace import TraceEvent
from foretell.report.charts.calibration import reliability_diagram
from foretell.report.charts.chains import ChainCondition, chain_plot
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.charts.rulers import ShownAnswer, probability_ruler
from foretell.report.charts.steps import TimedStep, TimedTrial, steps_plot
from foretell.report.charts.svg import Chart, ChartScale, figure
from foretell.report.charts.timelines import Trajectory, stages_plot, trajectory_plot
from foretell.report.document import ReportDocument
from foretell.report.html import HtmlBlock, LinkItem, Section
from foretell.report.markup import Markup, element, sentence, web_address
from foretell.report.numbers import half_text
from foretell.report.study import column, table
from foretell.scoring.run_scores import THIS_RUN, QuestionAnswer, RunScores
from foretell.scoring.verdict import Verdict

MAX_CHARTS = 6
"""Maximum number of targets with their own charts."""
LONGEST_TIP = 300
"""Maximum length of a claim in a tooltip, in characters."""
MOST_QUESTIONS = 500
"""Maximum number of questions in the table of a run's report; the CSV file has all of them."""


# The charts of a question, and the sentence about its answer.


@frozen
class QuestionCharts:
    """Charts of a question: the answer on a ruler, and the path of belief for the likeliest outcomes."""

    ruler: Chart | None
    """The answer, if the question has one outcome and an answer."""
    targets: Sequence[Mapping[str, Any]]
    """The outcomes that `paths` and `stages` are about, in the same order."""
    paths: Sequence[Chart]
    stages: Sequence[Chart]
    chains: Mapping[str, Chart]
    """The band of conditions in sequence, by the name of the tree that has them."""


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
    chains = {tree["name"]: chain for tree in view["trees"] if (chain := _band(tree["parts"], tree["p"])) is not None}
    return QuestionCharts(ruler=_ruler(view), targets=leading, paths=paths, stages=stages, chains=chains)


def question_steps(view: Mapping[str, Any], now: float = 0.0) -> Chart | None:
    """Draw what each trial of a question did when, until `now` if it goes on; None if its events have no time."""
    targets = view["question"]["targets"]
    trials = [
        _timed_trial(trial, now, targets[0]["id"] if len(targets) == 1 else "")
        for trial in view["trials"]
        if trial["time"] is not None
    ]
    return steps_plot(trials) if any(trial.steps for trial in trials) else None


def _timed_trial(trial: Mapping[str, Any], now: float, target: str) -> TimedTrial:
    began, happenings = trial["time"]["began"], trial["trace"]["happenings"]
    steps = [
        TimedStep(
            kind=event["kind"],
            start=event["at"] - event["seconds"] - began,
            end=event["at"] - began,
            text=f"{event['title']}, {event['text']}" if event["kind"] == "model" else event["words"],
        )
        for event in happenings
        if event["kind"] in ("model", "tool") and event["seconds"] is not None
    ]
    open_steps = [
        TimedStep(kind=work["kind"], start=work["since"] - began, end=now - began, text=work["text"], open=True)
        for work in trial["pending"]
        if work["since"] < now
    ]
    return TimedTrial(
        name=_trial_name(trial),
        steps=sorted([*steps, *open_steps], key=lambda step: step.start),
        beliefs=[
            (event["at"] - began, event["p"][target])
            for event in happenings
            if event["kind"] == "belief" and target in event["p"]
        ],
    )


def _trial_name(trial: Mapping[str, Any]) -> str:
    return "panel" if trial["panel"] else f"trial {trial['number'] + 1}"


def _band(parts: ClaimParts | None, total: float | None) -> Chart | None:
    """Draw conditions that must hold in sequence; None if the claim has another kind."""
    if parts is None or total is None or parts.kind != "all" or not parts.chained:
        return None
    links: list[ChainCondition] = []
    before = 1.0
    for child in parts.children:
        after = before if child.so_far is None else child.so_far
        chance = after / before if before > 0 else 0.0
        links.append(ChainCondition(id=child.id, claim=child.claim, chance=chance, so_far=after))
        before = after
    return chain_plot(links, total)


def _ruler(view: Mapping[str, Any]) -> Chart | None:
    """Draw the answer to a question with one outcome from 0 to 100 %, with trials, market and outcome."""
    target, combination = view["question"]["targets"][0], view["combination"]
    now = combination or view["live"]  # While there is no answer: the current estimates, if there are any.
    if now is None or len(view["question"]["targets"]) > 1:
        return None
    id, trials = target["id"], [trial["p"][target["id"]] for trial in now["trials"] if target["id"] in trial["p"]]
    answer: Mapping[str, Any] = combination or {"tree": None, "ranges": {}}
    both = answer["tree"]
    shown = ShownAnswer(
        p=(now["p"] or {}).get(id),
        ends=tuple(answer["ranges"][id]) if id in answer["ranges"] else None,
        tree=None if both is None else both[id],
        direct=None if both is None else answer["blind"][id],
        trials=trials,
        price=target["price"],
        rate=target["rate"],
        rate_name=view["question"]["rate_name"],
        outcome=target["outcome"],
    )
    return probability_ruler(shown, large=True)


def _trajectory(trial: dict[str, Any], target: str) -> Trajectory:
    return Trajectory(
        name=_trial_name(trial),
        points=[(point["step"], point["p"][target]) for point in trial["trace"]["path"] if target in point["p"]],
        final=(trial["p"] or {}).get(target),
        findings={
            point["step"]: (point["cited"][0]["claim"] if point["cited"] else point["reason"])[:LONGEST_TIP]
            for point in trial["trace"]["path"]
        },
        tools={event["step"]: event["title"] for event in trial["trace"]["happenings"] if event["kind"] == "tool"},
    )


def _stages(combination: dict[str, Any] | None, target: str) -> Chart:
    if combination is None:
        return stages_plot([], 0)
    rows = [*combination["trials"], *combination["stages"]]
    return stages_plot([(stage["name"], stage["p"].get(target, 0.0)) for stage in rows], len(combination["trials"]))


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
        moved = [evidence for evidence in view["moved"] if sign * evidence["move"] > 0]
        if moved:
            points = f"{100 * abs(moved[0]['move']):.0f}"
            parts.append(
                f"What pulled it {word} most, by {points} points: {moved[0]['claim'][:LONGEST_TIP].rstrip('.')}."
            )
    return " ".join(parts)


def reasoning_sentence(view: Mapping[str, Any]) -> str:
    """Say how tree and direct estimate of a question stand to each other, and what the tree turns on.

    The words are those of a terminal.
    """
    combination, lines = view["combination"], list[str](view["reasoning"])
    if combination is None or not combination["both"]:
        return ""
    parts = view["trees"][0]["parts"] if len(view["trees"]) == 1 else None
    first = lines[0] if lines else "; ".join(combination["both"].values())
    turning = "" if parts is None or not parts.turning_point else f" {parts.turning_point.replace('   ', ', ')}."
    return f"{first[:1].upper()}{first[1:]}.{turning}"


# The report on one question.


def question_report(view: Mapping[str, Any], made: Sequence[tuple[str, str]] = ()) -> ReportDocument:
    """Build the report on a question from its `question_view`; `made` describes the run as (label, value) pairs."""
    charts, reasons = question_charts(view), (view["combination"] or {}).get("rationale", "")
    sections: list[Section] = [
        ("answer", "The answer", list(_answer_blocks(view, charts))),
        ("failed", FAILED_TITLE, list(_caveat_blocks(view["caveats"]))),
        ("parts", "What it rests on", [block for tree in view["trees"] for block in _tree_blocks(view, tree, charts)]),
        ("direct", "What the direct estimate rests on", list(_direct_blocks(view))),
        ("moved", "What moved it", [] if view["rests"] else list(_moved(view))),
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
        return " ".join(map(sentence, view["caveats"])) or "No trial has given an answer."
    if len(targets) > 1:
        ranked = sorted(targets, key=lambda target: -combination["p"].get(target["id"], 0.0))
        named = ", ".join(
            f"{target['label']} {percent(combination['p'].get(target['id'], 0.0))}" for target in ranked[:3]
        )
        quantiles = combination["quantiles"]
        return (
            f"Most likely {quantiles['q50']}, with 90 % between {quantiles['q05']} and {quantiles['q95']}."
            if quantiles
            else f"{named}."
        )
    target = targets[0]
    p = combination["p"][target["id"]]
    trials = [trial["p"][target["id"]] for trial in combination["trials"] if target["id"] in trial["p"]]
    extremes = f"{percent(min(trials))} and {percent(max(trials))}"
    spread = f" from {plural(len(trials), 'trial')} between {extremes}"
    beside = [
        f"{name} {percent(target[key])}"
        for name, key in (("the market said", "price"), (view["question"]["rate_name"], "rate"))
        if target[key] is not None
    ]
    if (ends := combination["ranges"].get(target["id"])) is not None:
        beside.insert(0, f"range {percent_range(*ends)}")
    if (kept := combination["kept"].get(target["id"])) is not None:
        beside.insert(0, kept)
    parts = [f"{percent(p)}{spread if len(trials) > 1 else ''}{''.join(f'; {text}' for text in beside)}."]
    if reasoning := reasoning_sentence(view):
        # Two numbers that stay apart come before the one that combines them.
        parts.insert(0 if combination["apart"] else 1, reasoning)
    if target["outcome"] is not None:
        price = target["price"]
        market = "" if price is None else f" (market {(price - target['outcome']) ** 2:.3f})"
        happened = "It happened" if target["outcome"] else "It did not happen"
        parts.append(f"{happened}: Brier score {(p - target['outcome']) ** 2:.3f}{market}.")
    if combination["fallback"]:
        parts += map(sentence, view["caveats"][:1])
    return " ".join([*parts, finding_of(view)]).strip()


def _answer_blocks(view: Mapping[str, Any], charts: QuestionCharts) -> Iterator[HtmlBlock]:
    combination, targets = view["combination"], view["question"]["targets"]
    if charts.ruler is not None:
        yield HtmlBlock(charts=[charts.ruler])
    if combination is not None and len(targets) > 1:
        labels = ("probability", "market", view["question"]["rate_name"], "outcome")
        rows = [
            (
                target["label"],
                (
                    *(
                        "–" if p is None else percent(p)
                        for p in (combination["p"].get(target["id"]), target["price"], target["rate"])
                    ),
                    "open" if target["outcome"] is None else "yes" if target["outcome"] else "no",
                ),
            )
            for target in targets
        ]
        yield HtmlBlock(table=table("Answer by outcome", "outcome", map(column, labels), rows))
    if any(trial["trace"]["path"] for trial in view["trials"]):
        yield HtmlBlock(charts=charts.paths)
    if (steps := question_steps(view)) is not None:
        yield HtmlBlock(heading="How long each step took")
        yield HtmlBlock(charts=[steps])


def _tree_blocks(view: Mapping[str, Any], tree: Mapping[str, Any], charts: QuestionCharts) -> Iterator[HtmlBlock]:
    """Show the children of a tree's root, what the answer would be without or with each, and the reconciliation."""
    parts, combination = tree["parts"], view["combination"]
    if parts is None:
        return
    if tree["name"] in charts.chains:
        yield HtmlBlock(charts=[charts.chains[tree["name"]]])
    yield HtmlBlock(text=parts.how)
    labels = ("probability", "after the earlier ones", "tree if it fails", "tree if certain")
    rows = [
        (
            f"{child.id} {child.claim}",
            tuple("–" if p is None else brief_percent(p) for p in (child.p, child.then, child.if_false, child.if_true)),
        )
        for child in parts.children
    ]
    yield HtmlBlock(table=table("The parts of the tree", "claim", map(column, labels), rows))
    if combination is not None and combination["reconciled"]:
        bullets = [*combination["changes"]] or ["Nothing was changed."]
        yield HtmlBlock(heading="What was tried to reconcile tree and direct estimate")
        yield HtmlBlock(bullets=bullets)
        if combination["difference"]:
            yield HtmlBlock(prose=combination["difference"])


def _direct_blocks(view: Mapping[str, Any]) -> Iterator[HtmlBlock]:
    """Show the evidence of the direct estimate beside a tree, why there is a tree, and which was nearer before."""
    if view["rests"]:
        yield HtmlBlock(links=[_rests_on(evidence) for evidence in view["rests"]])
    combination = view["combination"]
    if combination is not None and combination["why"]:
        yield HtmlBlock(heading="Why the question was taken apart")
        yield HtmlBlock(bullets=[f"{text[:1].upper()}{text[1:]}" for text in combination["why"]])
    if combination is not None and combination["record"]:
        yield HtmlBlock(heading="When they stay apart")
        yield HtmlBlock(text=combination["record"])


def _rests_on(evidence: Mapping[str, Any]) -> LinkItem:
    side = "for" if evidence["helps"] else "against"
    weight = side if evidence["move"] is None else f"{signed(100 * evidence['move'], 0)} points"
    return _source(f"{weight}: {evidence['claim']}", evidence["source"])


def _source(claim: str, source: Mapping[str, Any] | None, *more: str) -> LinkItem:
    """Return a claim as a link to its source, with title and date."""
    address = web_address(source["url"]) if source else ""
    details = [source["title"], source["date"]] if source else ["no source named"]
    return LinkItem(text=claim, address=address, detail="; ".join(detail for detail in (*details, *more) if detail))


def _moved(view: Mapping[str, Any]) -> Iterator[HtmlBlock]:
    if not view["moved"]:
        return
    trials = len(view["trials"])
    yield HtmlBlock(
        links=[
            _source(
                f"{signed(100 * evidence['move'], 0)} points: {evidence['claim']}",
                evidence["source"],
                f"{evidence['trials']} of {plural(trials, 'trial')}",
            )
            for evidence in view["moved"]
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
        yield HtmlBlock(definitions=[(stage["name"], stage["text"]) for stage in view["combination"]["stages"]])


def _withheld(results: Sequence[Mapping[str, Any]]) -> Iterator[HtmlBlock]:
    if results:
        bullets = [
            f"{result['title']} ({result['reason']}{', ' + result['published'] if result['published'] else ''})"
            for result in results
        ]
        yield HtmlBlock(bullets=bullets)


def _trial(trial: Mapping[str, Any], targets: Sequence[Mapping[str, Any]]) -> Iterator[HtmlBlock]:
    name, trace = "Panel" if trial["panel"] else f"Trial {trial['number'] + 1}", trial["trace"]
    answer = ", ".join(
        (f"{target['label']} " if len(targets) > 1 else "") + percent(trial["p"][target["id"]])
        for target in targets[:MAX_CHARTS]
        if trial["p"] is not None and target["id"] in trial["p"]
    )
    yield HtmlBlock(heading=f"{name}: {answer or trial['state']}")
    for label, text in (("Failed", trial["error"]), ("Based on a failure", trial["fallback"])):
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
            yield HtmlBlock(links=[_source(evidence["claim"], evidence["source"]) for evidence in trace[key]])


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


def run_headline(scores: RunScores) -> str:
    """Compare a run with the base rate and the market, and say if it does worse than always 0.5."""
    sentences = [verdict.sentence for verdict in (scores.against_rate, scores.against_price) if verdict is not None]
    if scores.board is not None and THIS_RUN in scores.board.behind_half:
        sentences.append(half_text({THIS_RUN: scores.board.behind_half[THIS_RUN]}))
    return " ".join(sentences) or "Too few outcomes are known for a score."


def run_report(title: str, scores: RunScores, made: Sequence[tuple[str, str]] = ()) -> ReportDocument:
    """Build the report on a run: its scores, where it did well and badly, and every question with its answer."""
    figures, summary = score_figures(scores), scores.summary()
    lead = run_headline(scores)
    good: list[HtmlBlock] = []
    if scores.board is not None:
        labels = {"brier_index": "Brier index of this run", "combined": "of its combined answers"}
        values = {**summary, "combined": scores.combined}
        pairs = [(name, _span(value)) for key, name in labels.items() if (value := values[key])]
        sides = {"of the market": scores.against_price, "of the base rate": scores.against_rate}
        pairs += [(name, both_scores(verdict)) for name, verdict in sides.items() if verdict is not None]
        pairs.append(("questions decided", f"{scores.decided} of {len(scores.answers)}"))
        good = [
            HtmlBlock(definitions=pairs),
            *([HtmlBlock(text=scores.rule)] if scores.rule else ()),
            HtmlBlock(text="100 is perfect, 50 is always-0.5. In brackets: 95 % intervals.", style="quiet"),
        ]
    shown = scores.answers[:MOST_QUESTIONS]
    sections: list[Section] = [
        ("failed", FAILED_TITLE, list(_caveat_blocks(scores.caveats))),
        ("score", "Scores", good),
        (
            "calibration",
            "Calibration",
            [HtmlBlock(charts=[chart])] if (chart := figures["reliability"]) else [],
        ),
        ("parts", "Scores by group", [HtmlBlock(charts=[chart])] if (chart := figures["parts"]) else []),
        ("questions", "Questions", list(_questions(shown, len(scores.answers)))),
        ("made", "How it was made", [HtmlBlock(definitions=[pair for pair in made if pair[1]])]),
    ]
    return ReportDocument(title=title, lead=lead, sections=sections)


FAILED_TITLE = "What failed, and what it means"


def _caveat_blocks(caveats: Sequence[str]) -> Iterator[HtmlBlock]:
    for caveat in caveats:
        yield HtmlBlock(text=sentence(caveat), style="bad")


def both_scores(verdict: Verdict) -> str:
    """Format the scores of both on the same targets, so that their difference is the one shown.

    The overall scores of a run and its market are on different targets if some have no price.
    """
    first, second = (number(side.estimate, 1) for side in (verdict.first_score, verdict.second_score))
    return f"{second}; {verdict.first} {first} on the same {plural(verdict.n, 'target')}"


def _span(interval: Mapping[str, float]) -> str:
    return f"{number(interval['estimate'], 1)} {bracket(interval['low'], interval['high'], 1)}".strip()


def _questions(answers: Sequence[QuestionAnswer], total: int) -> Iterator[HtmlBlock]:

    labels = ("answer", "market", "outcome", "Brier score", "asked as of")
    rows = [
        (
            answer.question.text + ("" if len(answer.targets) == 1 else f" ({answer.leading.label})"),
            (
                percent(answer.leading.p) if answer.leading.p is not None or not answer.failed else "failed",
                percent(answer.leading.price),
                "open" if answer.leading.outcome is None else "yes" if answer.leading.outcome else "no",
                "–" if answer.brier is None else f"{answer.brier:.3f}",
                answer.question.due.date().isoformat(),
            ),
        )
        for answer in answers
    ]
    if rows:
        caption = f"The first {len(rows):,} of {total:,} questions" if len(rows) < total else ""
        yield HtmlBlock(table=table("Answers", "question", map(column, labels), rows, caption=caption))


# Answers and trace events as a line of text, for the terminal, pages, comments and assistants.


def describe_event(event: TraceEvent, width: int = 400) -> str:
    """Describe one event in a line or two."""
    match event:
        case kinds.ModelCalled():
            cost = "" if event.dollars is None else f" {dollars(event.dollars)}"
            return f"  {event.role}: {event.input_tokens} → {event.output_tokens} tokens{cost}"
        case kinds.QuestionShown():
            return f"  asked: {_short(event.text, width)}"
        case kinds.ToolUsed():
            return f"{event.step}. {event.tool}({_arguments(event.arguments)})\n   {_short(event.result, width)}"
        case kinds.LeakBlocked():
            return f"  withheld ({event.layer}): {event.reason} {event.url}".rstrip()
        case kinds.BeliefRevised():
            p = ", ".join(f"{target} {percent(value)}" for target, value in event.p.items())
            return f"  belief: {p}; {_short(event.reason, width)}"
        case kinds.EvidenceFound():
            return f"  research ended with {plural(len(event.items), 'piece')} of evidence"
        case kinds.NodeAnalyzed() | kinds.NodeGrounded() | kinds.NodeSynthesized() | kinds.TreeGrown():
            return _describe_tree_event(event, width)
        case kinds.ForecastMade():
            p = ", ".join(f"{target} {percent(value)}" for target, value in event.p.items())
            return f"answer: {p} ({event.in_words})"
        case kinds.Failed():
            return f"failed: {event.error}"


def _describe_tree_event(event: TraceEvent, width: int) -> str:
    """Describe what happened to a tree of claims."""
    match event:
        case kinds.NodeAnalyzed():
            lines = [f"  {id}: {_short(event.claims.get(id, ''), width)}" for id in event.added]
            return "\n".join([f"{event.node} was broken down into {len(event.added)} claims", *lines])
        case kinds.NodeGrounded():
            value = "no probability" if event.p is None else percent(event.p)
            return f"{event.node} grounded by {event.grounder}: {value} {_short(event.error, width)}".rstrip()
        case kinds.NodeSynthesized():
            value = "no probability" if event.p is None else percent(event.p)
            return f"{event.node} put together: {value} by {_link_text(event.link)[:width]}"
        case kinds.TreeGrown():
            return f"the tree for {event.tree} is finished: {len(event.document.get('nodes', ()))} claims"
        case _:
            return ""


def _link_text(stored: Mapping[str, Any]) -> str:
    """Return how a claim follows from its children in words, or the numbers if its kind has no words."""
    link = read_link(JsonObject(dict(stored), []))
    if link is None or not link.heading:
        return json.dumps(stored, ensure_ascii=False)
    return f"{link.heading}. {link.describe(())}"


def _arguments(arguments: Any) -> str:
    return ", ".join(f"{name}={str(value)[:80]!r}" for name, value in arguments.items() if name != "updated_belief")


def _short(text: str, width: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


# Answers as text for the terminal and comments.


def answer_text(forecast: Forecast, question: Question | None) -> str:
    """Format a forecast in a few words.

    >>> from foretell.questions.as_of import AsOf
    >>> answer_text(Forecast(question_id="q", forecaster="f", as_of=AsOf.day("2026-11-15"), p={"yes": 0.344}), None)
    '34.4 %'
    """
    scale = None if question is None else question.range
    if isinstance(forecast.distribution, Numeric):
        values = [forecast.distribution.quantile(level) for level in (0.1, 0.5, 0.9)]
        if scale is None or not scale.dates:
            values = [float(f"{value:.4g}") for value in values]
        low, middle, high = (str(value) if scale is None else scale.write(value) for value in values)
        return f"{middle} (8 in 10: {low} to {high})"
    if len(forecast.p) == 1:
        return percent(next(iter(forecast.p.values())), 1)
    labels = {} if question is None else {target.id: target.short_label for target in question.targets}
    ranked = sorted(forecast.p.items(), key=lambda item: -item[1])
    return ", ".join(f"{labels.get(id, id)} {percent(p, 1)}" for id, p in ranked)


# The preview image of a link to an answer: question, number, market and outcome.


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
    answer = "no answer yet" if p is None else percent(p)
    parts.append(_text(MARGIN, 470, answer, 130 if p is not None else 60, OURS, BOLD))
    beside = [] if price is None else [(f"market {percent(price)}", MARKET)]
    beside += [] if outcome is None else [("it happened", YES) if outcome else ("it did not happen", NO)]
    parts += [_text(560, 410 + 54 * n, label, 40, colour) for n, (label, colour) in enumerate(beside)]
    x = ChartScale(low=0, high=1, start=MARGIN, stop=WIDTH - MARGIN)
    parts.append(_bar(x(0), x(1) - x(0), 532, 8, "#dfe3e8"))
    parts += [_dot(x(trial), 536, 7, OURS, "0.35") for trial in trials[:50]]
    parts += [] if price is None else [_bar(x(price) - 4, 8, 512, 48, MARKET)]
    parts += [] if p is None else [_bar(x(p) - 5, 10, 506, 60, OURS)]
    parts += [] if outcome is None else [_dot(x(outcome), 536, 14, YES if outcome else NO, "1")]
    parts += [_text(WIDTH - MARGIN, 600, "foretell", 28, QUIET, AT_END)]
    return figure(WIDTH, HEIGHT, f"{question}: {answer}", *parts)


def _text(x: float, y: float, content: str, size: int, colour: str, more: str = "") -> Markup:
    return element("text", content, x=f"{x}", y=f"{y}", style=f"font-size:{size}px;fill:{colour}{more}")


BOLD, AT_END = ";font-weight:700", ";text-anchor:end"


def _bar(x: float, width: float, y: float, height: float, colour: str) -> Markup:
    return element("rect", x=f"{x:.1f}", y=f"{y}", width=f"{width:.1f}", height=f"{height}", fill=colour)


def _dot(x: float, y: float, radius: float, colour: str, opacity: str) -> Markup:
    return element("circle", cx=f"{x:.1f}", cy=f"{y}", r=f"{radius}", fill=colour, fill_opacity=opacity)
