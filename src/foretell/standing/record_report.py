"""Reports on the record of one's own questions and on one of them: sentences, charts and documents."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import numpy as np

from foretell.number_text import bracket, brief_percent, dollars, number, percent, plural, signed
from foretell.report.charts.calibration import reliability_diagram
from foretell.report.charts.rulers import MARKET, OURS, RATE, ShownAnswer, probability_ruler
from foretell.report.charts.svg import Chart, SeriesStyle
from foretell.report.charts.timelines import DatedLines, dated_plot
from foretell.report.charts.updates import ForecastHistory, ShownLook, ShownUpdate, updates_plot
from foretell.report.document import ReportDocument
from foretell.report.html import HtmlBlock, LinkItem, Section
from foretell.report.markup import web_address
from foretell.report.numbers import estimate
from foretell.report.study import StudyTable, column, table, words
from foretell.scoring.verdict import Verdict
from foretell.standing.history import QuestionHistory, answer_line, outcome_text, what_moved, woken_by
from foretell.standing.learning import LearntWeight
from foretell.standing.own_record import OWN, OwnRecord, ScoredQuestion
from foretell.standing.post_mortem import FAULTS, PostMortem, PostMortems

FEW, MANY = 5, 10
"""Number of bins of the calibration chart with few and with many forecasts."""
ENOUGH = 100
"""Number of forecasts from which there are many bins."""
MOST_TEXT = 300
"""Longest text of a row of the history, in characters."""
LEAD_OTHERS = {"market price": "the price", "base rate": "the base rate", "first answer": "asking once"}
"""What the forecasts are compared with → how sentences name it."""


# Sentences.


def record_sentence(own: OwnRecord, results: PostMortems) -> str:
    """Say how good the forecasts are against base rate and price, and how often research missed the deciding fact."""
    if own.board is None:
        missing = "No outcome is confirmed yet" if not own.scored else "One outcome is confirmed"
        return f"{missing}; a score needs at least two."
    parts = [verdict_clause(verdict) for verdict in (own.against_rate, own.against_price) if verdict is not None]
    text = ", ".join(parts)
    text = f"{text[:1].upper()}{text[1:]}."
    if results.worst:
        missed = results.faults["not found"]
        count = f"{missed} of the {len(results.worst)} worst" if len(results.worst) > 1 else f"{missed} of the worst"
        text += f" In {count}, research had not found the deciding fact."
    return text


def verdict_clause(verdict: Verdict) -> str:
    """Return a verdict on one's own forecasts as part of a sentence."""
    other = LEAD_OTHERS.get(verdict.second, verdict.second)
    gain = verdict.gain_interval
    if verdict.says == "too few to tell":
        return f"too few questions to compare with {other}"
    if verdict.says == "no difference that matters":
        return f"level with {other}: {signed(verdict.gain, 1)} {bracket(gain.low, gain.high, 1)}"
    shown = gain if verdict.gain >= 0 else gain.times(-1)
    by = f"{other} by {number(abs(verdict.gain), 1)} {bracket(shown.low, shown.high, 1)}"
    if verdict.decided:
        return f"{verdict.says} than {by}"
    return f"{'ahead of' if verdict.gain >= 0 else 'behind'} {by} (could be chance)"


def score_text(question: ScoredQuestion) -> str:
    """Return what was said for a question, the price, and what happened."""
    target = question.leading
    price = question.prices.get(target)
    market = "" if price is None else f", price {brief_percent(price)}"
    came = outcome_text(question.record, question.outcome)
    return f"said {brief_percent(question.last.answer[target])}{market}, it was {came}"


def learnt_text(weight: LearntWeight) -> str:
    """Return what outcomes changed about a weight.

    >>> learnt_text(LearntWeight(name="w", start=0.2, now=0.26, n=80, needed=60, enough=True))
    '0.20 → 0.26'
    >>> learnt_text(LearntWeight(name="w", start=0.2, now=0.2, n=4, needed=60, enough=False))
    '0.20, not enough outcomes yet: 4 of about 60'
    """
    if not weight.enough:
        return f"{number(weight.start, 2)}, not enough outcomes yet: {weight.n} of about {weight.needed}"
    return (
        f"{number(weight.start, 2)} → {number(weight.now, 2)}"
        if weight.changed
        else f"{number(weight.now, 2)}, unchanged"
    )


# Charts.


def calibration_chart(own: OwnRecord) -> Chart | None:
    """Draw how often what was said happened; None without a score."""
    if own.table is None:
        return None
    targets, p = own.table.targets, own.table.p_of(OWN)
    bins = MANY if int(np.isfinite(p).sum()) >= ENOUGH else FEW
    return reliability_diagram(p, targets.outcome, targets.weight, name="Said and happened", bins=bins)


def score_over_time_chart(own: OwnRecord) -> Chart | None:
    """Draw the Brier index of all questions so far, with a band, beside price, first answer and base rate."""
    if len(own.points) < 2:
        return None
    lines = {
        "with updates": [(point.at, point.own) for point in own.points],
        "price": [(point.at, point.price) for point in own.points if point.price is not None],
        "asked once": [(point.at, point.first) for point in own.points],
        "base rate": [(point.at, point.rate) for point in own.points if point.rate is not None],
    }
    styles = {
        "with updates": SeriesStyle(OURS, 0),
        "price": SeriesStyle(MARKET, 12),
        "asked once": SeriesStyle(OURS, 6, " dash"),
        "base rate": SeriesStyle(RATE, 2),
    }
    shown = DatedLines(
        title="Brier index of all questions so far",
        lines={name: points for name, points in lines.items() if points},
        label="Brier index",
        stepwise=frozenset(lines),
        styles=styles,
        band=[(point.at, point.low, point.high) for point in own.points],
    )
    return dated_plot(shown)


def scored_ruler(question: ScoredQuestion) -> Chart:
    """Draw forecast, price, base rate and outcome of a question on a small ruler."""
    target = question.leading
    return probability_ruler(
        ShownAnswer(
            p=question.last.answer[target],
            price=question.prices.get(target),
            rate=question.base_rates.get(target),
            outcome=question.outcome[target],
        )
    )


def history_chart(history: QuestionHistory) -> Chart:
    """Draw forecast, range, price and looks of a question over time."""
    target, record = history.target, history.record
    texts = {update.belief.number: what_moved(update) for update in history.updates}
    updates = [
        ShownUpdate(
            at=belief.at,
            p=belief.answer[target],
            ends=belief.ranges.get(target),
            text=texts.get(belief.number, "asked"),
        )
        for belief in record.beliefs
        if target in belief.answer
    ]
    looks = [ShownLook(at=look.at, text=look.why, news=bool(look.news)) for look in reversed(history.quiet_looks)]
    outcome = history.outcome.get(target)
    return updates_plot(
        ForecastHistory(
            title=f"Forecast and price{f' of {history.label}' if history.label else ''}",
            updates=updates,
            prices=[(look.at, look.prices[target]) for look in record.looks if target in look.prices],
            looks=looks,
            rate=history.base_rate,
            now=history.now,
            closes=history.closes,
            next_look=history.next_look,
            outcome=None if outcome is None else bool(outcome),
        )
    )


# The record as a document.


def record_report(own: OwnRecord, results: PostMortems, learnt: Sequence[LearntWeight]) -> ReportDocument:
    """Build the report on all of one's own questions."""
    charts = [chart for chart in (score_over_time_chart(own), calibration_chart(own)) if chart is not None]
    sections: list[Section] = [
        ("score", "Scores", list(_scores(own, results))),
        ("charts", "Calibration, and the score over time", [HtmlBlock(charts=charts)] if charts else []),
        ("worst", "Worst, and why", _examined("Worst forecasts", results.worst)),
        ("best", "Best, and why", _examined("Best forecasts", results.best[:10])),
        ("faults", "Why the worst went wrong", list(_faults(results))),
        ("learnt", "What the record changes", list(_learnt(learnt))),
        ("open", "Open questions", list(_open(own))),
        ("all", "All scored questions", _examined("Scored questions", results.all)),
    ]
    settings = own.board.settings if own.board is not None else {}
    return ReportDocument(title="Your record", lead=record_sentence(own, results), sections=sections, settings=settings)


def _scores(own: OwnRecord, results: PostMortems) -> Iterator[HtmlBlock]:
    index, worth, research = own.metric("brier_index"), own.updates, results.research
    pairs = [("questions scored", f"{len(own.scored)} of {len(own.scored) + len(own.left_out)} confirmed")]
    if index is not None:
        pairs.append(("Brier index", estimate(index, 1)))
    named = (("price", own.against_price), ("base rate", own.against_rate), ("asking once", own.against_first))
    pairs += [(f"against {name}", verdict.sentence) for name, verdict in named if verdict is not None]
    if worth.count:
        gain = "" if worth.gain is None else f", Brier score better by {estimate(worth.gain, 3)} each"
        pairs.append(("updates", f"{worth.count}, {worth.better} the right way{gain}, {dollars(worth.each)} each"))
    if own.over_time is not None:
        pairs.append(("Brier score over the time they were open", estimate(own.over_time, 3)))
    if research.findable:
        pairs.append(("deciding fact found", f"{research.found} of {research.findable} where it could be"))
    how = own.how_resolved
    resolved = f"{how.as_proposed} confirmed as proposed, {how.by_itself} taken as proposed, "
    resolved += f"{how.otherwise} decided otherwise, {how.asked} asked, {how.cancelled} cancelled or ambiguous"
    yield HtmlBlock(definitions=[*pairs, ("resolved how", resolved)])
    if own.left_out:
        yield HtmlBlock(heading="Not scored")
        yield HtmlBlock(bullets=[f"{id}: {why}" for id, why in own.left_out.items()])


def examined_table(title: str, examined: Sequence[PostMortem]) -> StudyTable:
    """Return a row for each question: its score, that of the price, and what went wrong."""
    rows = [
        (
            each.question.record.standing.question.text,
            (
                each.question.brier,
                "–" if each.question.price_brier is None else number(each.question.price_brier, 3),
                score_text(each.question),
                f"{each.fault}: {each.why}",
            ),
        )
        for each in examined
    ]
    columns = [column("Brier score", decimals=3), column("of the price"), words("what was said"), words("why")]
    return table(title, "question", columns, rows)


def _examined(title: str, examined: Sequence[PostMortem]) -> list[HtmlBlock]:
    return [HtmlBlock(table=examined_table(title, examined))] if examined else []


def _faults(results: PostMortems) -> Iterator[HtmlBlock]:
    if results.worst:
        yield HtmlBlock(definitions=[(f"{fault} ({FAULTS[fault]})", str(n)) for fault, n in results.faults.items()])


def _learnt(learnt: Sequence[LearntWeight]) -> Iterator[HtmlBlock]:
    if learnt:
        yield HtmlBlock(definitions=[(weight.name, f"{learnt_text(weight)}. {weight.why}") for weight in learnt])


def _open(own: OwnRecord) -> Iterator[HtmlBlock]:
    waiting = {record.standing.id for record in own.waiting}
    rows = [
        (
            record.standing.question.text,
            (
                record.standing.id,
                percent(max(record.beliefs[-1].answer.values())) if record.beliefs else "–",
                "waits for your answer" if record.standing.id in waiting else record.standing.state,
            ),
        )
        for record in own.open
    ]
    if rows:
        columns = [words("id"), column("forecast"), words("state")]
        yield HtmlBlock(table=table("Open questions", "question", columns, rows))


# One question as a document.


def history_report(history: QuestionHistory) -> ReportDocument:
    """Build the report on one question."""
    sharpening = history.record.standing.sharpening
    sections: list[Section] = [
        ("proposal", "Proposed outcome", list(_proposal(history))),
        ("history", "How it went", [HtmlBlock(charts=[history_chart(history)])] if history.last is not None else []),
        ("moved", "What moved it", list(_moved(history))),
        ("quiet", "Looked, not changed", list(_quiet(history))),
        ("wording", "The question as sharpened", list(_wording(history)) if sharpening is not None else []),
        ("budget", "Budget", list(_budget(history))),
        ("outcome", "Outcome", list(_outcome(history))),
    ]
    lead = f"{answer_line(history)}. {history.sentence}"
    return ReportDocument(title=history.record.standing.question.text, lead=lead, sections=sections)


def _proposal(history: QuestionHistory) -> Iterator[HtmlBlock]:
    proposal = history.proposal
    if proposal is None:
        return
    yield HtmlBlock(text=f"{history.proposed_text}. {proposal.why} Not scored until you confirm it.")
    links = [
        LinkItem(
            text=f"“{reading.quote}”" if reading.quote else str(reading.outcome),
            address=web_address(reading.url),
            detail=f"{reading.reader}; {reading.why}",
        )
        for reading in proposal.readings
    ]
    if links:
        yield HtmlBlock(links=links)


def _moved(history: QuestionHistory) -> Iterator[HtmlBlock]:
    looks = {look.number: look for look in history.record.looks}
    rows = [
        (
            f"{update.number}",
            (
                _day(update.belief.at),
                f"{what_moved(update)[:MOST_TEXT]} (woken by: {woken_by(looks.get(update.belief.look))})",
                percent(update.before.answer.get(update.target)),
                percent(update.belief.answer[update.target]),
                signed(100 * update.move, 0),
                dollars(update.belief.billed),
            ),
        )
        for update in reversed(history.updates)
    ]
    columns = [words("day"), words("what happened"), *map(column, ("from", "to", "points", "cost"))]
    if rows:
        yield HtmlBlock(table=table("Updates, newest first", "number", columns, rows))


def _quiet(history: QuestionHistory) -> Iterator[HtmlBlock]:
    if history.quiet_looks:
        yield HtmlBlock(bullets=[f"{_day(look.at)}: {look.why or 'nothing new'}" for look in history.quiet_looks])


def _wording(history: QuestionHistory) -> Iterator[HtmlBlock]:
    sharpening = history.record.standing.sharpening
    if sharpening is None:
        return
    pairs = [("as typed", sharpening.original), ("as accepted", sharpening.text), ("decides", sharpening.decides)]
    pairs += [("edge cases", "; ".join(sharpening.edge_cases)), ("no means", sharpening.no_means)]
    pairs += [("base rate of", sharpening.base_rate_class), ("still missing", "; ".join(sharpening.problems))]
    yield HtmlBlock(definitions=[pair for pair in pairs if pair[1]])


def _budget(history: QuestionHistory) -> Iterator[HtmlBlock]:
    spent = history.spent
    pairs = [
        ("first answer", dollars(spent.first)),
        (plural(len(history.updates), "update"), dollars(spent.updates)),
        ("judging news", dollars(spent.judging)),
        ("proposing the outcome", dollars(spent.resolving)),
        ("all", dollars(spent.total) + (f" of {dollars(spent.limit)}" if spent.limit is not None else "")),
    ]
    yield HtmlBlock(definitions=pairs)


def _outcome(history: QuestionHistory) -> Iterator[HtmlBlock]:
    if not history.outcome:
        return
    yield HtmlBlock(text=f"{outcome_text(history.record, history.outcome)}. {history.unscored}".strip())
    if history.scored is not None and history.post_mortem is not None:
        score = f"Brier score {number(history.scored.brier, 3)}. {history.post_mortem.fault}: {history.post_mortem.why}"
        yield HtmlBlock(text=score)


def _day(at: datetime) -> str:
    return f"{at.day} {at:%b %Y}"
