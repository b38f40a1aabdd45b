"""Data for the pages of an arena: events by title, one event with what every entry saw and said, one entry."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from foretell.arena.status import ArenaEventHistory, MomentHistory
from foretell.arena.store import ArenaStore
from foretell.forecasters.prompt.prediction_context import PredictionContext, RankedSource
from foretell.metrics.metric import METRICS
from foretell.questions.as_of import instant
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.report.arena_report import ArenaReport, arena_charts
from foretell.report.charts.rulers import RulerRow, everybody_ruler
from foretell.report.charts.svg import Chart, SeriesStyle, series_styles
from foretell.report.charts.timelines import MarketHistory, history_plot
from foretell.report.numbers import bracket, number, percent, probability_text
from foretell.scoring.arena_leaderboard import ArenaLeaderboardRow
from foretell.scoring.arena_view import EventGap, event_gaps
from foretell.scoring.table import CROWD
from foretell.scoring.verdict import Verdict
from foretell.web.arena_board import metric_label
from foretell.web.formatting import some, when

CHARTED_MARKETS = 12
SHOWN_OUTCOMES = 12
MOST_GAPS = 8
"""Maximum number of events listed as an entry's best, and as its worst."""
EVENTS_PER_PAGE = 50
_EVENTS_SQL = """
select event, category, status, closes_at, settled from listed where {where}
order by coalesce(closes_at, '') desc, event limit ? offset ?"""
_TOLD_SQL = """
select event, target, outcome from outcome where arena = ? and event in ({these}) and outcome is not null
order by event, target"""
_ENTRY_SQL = """
select e.run, e.spec, e.since, t.forecasts, t.dollars, t.seconds from entry e left join tally t on t.entry = e.id
where e.arena = ? and e.name = ? order by e.id desc"""


# Events.


@dataclass(frozen=True, kw_only=True)
class ListedEventView:
    """A row of the list of events."""

    id: str
    title: str
    category: str
    status: str
    closes_at: str | None
    result: str = ""
    """What came true, by the labels of the outcomes; empty if nothing has resolved."""


def listed_events(
    book: ArenaStore,
    words: Sequence[str],
    titles: Callable[[], Mapping[str, str]],
    *,
    category: str = "",
    state: str = "",
    offset: int = 0,
) -> tuple[list[ListedEventView], int]:
    """One page of the selected events, latest closing first, and the number of events that match.

    A search by words asks `titles` for the titles of all events, by id.
    """
    where, values = "arena = ? and decision = 'selected'", [book.arena]
    if category:
        where, values = f"{where} and category = ?", [*values, category]
    if state:
        where += f" and {'' if state == 'settled' else 'not '}(settled <> 0 or status = 'settled')"
    ((total,),) = book.db.read(f"select count(*) from listed where {where}", values)
    part = (total, 0) if words else (EVENTS_PER_PAGE, offset)
    rows = book.db.read(_EVENTS_SQL.format(where=where), [*values, *part])
    if words:
        called = titles()
        rows = [row for row in rows if all(word in f"{called.get(row[0], '')} {row[0]}".casefold() for word in words)]
        total, rows = len(rows), rows[offset : offset + EVENTS_PER_PAGE]
    shown = event_titles(book, [row[0] for row in rows])
    results = _results(book, [row[0] for row in rows])
    found = [
        ListedEventView(
            id=id,
            title=shown.get(id, id),
            category=category,
            status="settled" if settled else status,
            closes_at=closes,
            result=results.get(id, ""),
        )
        for id, category, status, closes, settled in rows
    ]
    return found, total


def _results(book: ArenaStore, ids: Sequence[str]) -> dict[str, str]:
    """Return what came true in each of the events with outcomes: labels, or Yes or No if there is only one."""
    told: dict[str, dict[str, float]] = {}
    these = ", ".join("?" * len(ids))
    for event, target, outcome in book.db.read(_TOLD_SQL.format(these=these), (book.arena, *ids)) if ids else ():
        told.setdefault(event, {})[target] = outcome
    labels = event_labels(book, told)
    return {event: _came_true(outcomes, labels) for event, outcomes in told.items()}


def _came_true(outcomes: Mapping[str, float], labels: Mapping[str, str]) -> str:
    if len(outcomes) == 1:
        (outcome,) = outcomes.values()
        return {0.0: "No", 1.0: "Yes"}.get(outcome, "")
    return ", ".join(labels.get(target, target) for target, outcome in outcomes.items() if outcome == 1.0) or "none"


def event_labels(book: ArenaStore, ids: Iterable[str]) -> dict[str, str]:
    """Return the titles of events and the labels of their outcomes, by id."""
    found: dict[str, str] = {}
    for id in dict.fromkeys(ids):
        for (body,) in book.db.read("select body from listed where arena = ? and event = ?", (book.arena, id)):
            event = json.loads(body)
            found |= {id: event["text"]} | {one["id"]: one["label"] for one in event["targets"] if one.get("label")}
    return found


def event_titles(book: ArenaStore, ids: Sequence[str] | None = None) -> dict[str, str]:
    """Return the titles of the given selected events by id, or of all selected events."""
    if ids is not None and not ids:
        return {}
    # Titles are inside the stored events; the database extracts them.
    title = "body::json ->> 'text'" if book.db.shared else "json_extract(body, '$.text')"
    these = f" and event in ({', '.join('?' * len(ids))})" if ids else ""
    query = f"select event, {title} from listed where arena = ? and decision = 'selected'{these}"
    return dict(book.db.read(query, [book.arena, *(ids or ())]))


@dataclass(frozen=True, kw_only=True)
class EntryAnswer:
    """The latest answer of one entry, with its reasoning."""

    name: str
    entry: str
    """The entry's own name, without the trial number."""
    at: datetime
    p: Mapping[str, float]
    reason: str
    brier: float | None
    failed: str = ""
    """Why it did not answer the last time it was asked; empty if it did."""


def last_answers(event: ArenaEventHistory, entries: Sequence[str]) -> list[EntryAnswer]:
    """Return the latest answer of every entry, sorted from best to worst once outcomes are known."""
    found: dict[str, EntryAnswer] = {}
    known = {target: 1.0 if told == "yes" else 0.0 for target, told in event.outcomes.items() if told in ("yes", "no")}
    for moment in event.moments:
        for name, p in moment.said.items():
            scored = [(p[target] - value) ** 2 for target, value in known.items() if target in p]
            entry = name if name in entries else name.rpartition(" ")[0]
            found[name] = EntryAnswer(
                name=name,
                entry=entry if entry in entries else "",
                at=moment.at,
                p=p,
                reason=OWN_NUMBERS.sub("", moment.reasons.get(name, "")),
                brier=sum(scored) / len(scored) if scored else None,
                failed=_last_failure(event.moments, name),
            )
    return sorted(found.values(), key=lambda one: (one.brier is None, one.brier or 0.0))


def _last_failure(moments: Sequence[MomentHistory], name: str) -> str:
    asked = [moment for moment in moments if name in moment.said or name in moment.failed]
    return asked[-1].failed.get(name, "") if asked else ""


def last_context(book: ArenaStore, event: ArenaEventHistory) -> tuple[MomentHistory, PredictionContext] | None:
    """Return the last context that was shown to the entries, with its moment; None if there never was one."""
    for moment in reversed(event.moments):
        if moment.context is not None and (found := book.context(moment.context)) is not None:
            return moment, found
    return None


def entry_styles(names: Sequence[str]) -> dict[str, SeriesStyle]:
    """Return the mark of every entry, assigned in order of entry so that it is the same on all pages of an arena."""
    return series_styles(dict.fromkeys(names))


@dataclass(frozen=True, kw_only=True)
class EventStep:
    """A step in the life of an event."""

    title: str
    at: str = ""
    """The time or period, as text."""
    note: str = ""
    link: str = ""
    state: Literal["done", "resolved", "coming", "trouble"] = "done"


def event_steps(event: ArenaEventHistory) -> list[EventStep]:
    """Return the steps of an event from its selection to its result: what happened when, and what comes next."""
    asked = [moment for moment in event.moments if moment.said or moment.failed]
    missed = [moment for moment in event.moments if moment.state == "missed"]
    planned = [moment for moment in event.moments if moment.state == "planned"]
    closes, known = event.question.closes_at, len(event.outcomes) >= len(event.prices)
    ended = known or event.status not in ("open", "unopened")
    steps = [EventStep(title="Taken up", at=when(event.taken_up))]
    if asked:
        answers, failed = sum(len(one.said) for one in asked), sum(len(one.failed) for one in asked)
        span = when(asked[0].at) if len(asked) == 1 else f"{when(asked[0].at)} – {when(asked[-1].at)}"
        note = f"{answers} of {answers + failed} answers" if failed else some(answers, "answer")
        steps.append(EventStep(title=f"Forecast {_times(len(asked))}", at=span, note=note))
    if missed:
        note = missed[-1].reason or "nobody was asked"
        steps.append(EventStep(title=f"{some(len(missed), 'round')} missed", note=note, state="trouble"))
    if closes:
        steps.append(
            EventStep(title="Closed" if ended else "Closes", at=when(closes), state="done" if ended else "coming")
        )
    if event.outcomes:
        steps.append(_result_step(event))
    elif ended:
        steps.append(EventStep(title="Awaiting the result", note=f"the market is {event.status}", state="coming"))
    if planned and not event.outcomes:
        steps.insert(-1, EventStep(title="Next forecast", at=when(planned[0].at), state="coming"))
    return steps


def _result_step(event: ArenaEventHistory) -> EventStep:
    true = [event.labels.get(target, target) for target, told in event.outcomes.items() if told == "yes"]
    what = "Resolved" if len(event.outcomes) >= len(event.prices) else "Resolved in part"
    if all(told == "void" for told in event.outcomes.values()):
        return EventStep(
            title="Called off", at=when(event.resolved_at), note="not scored", link=event.provenance, state="trouble"
        )
    title = f"{what}: {true[0]}" if len(true) == 1 else what
    return EventStep(title=title, at=when(event.resolved_at), link=event.provenance, state="resolved")


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def renamed(event: ArenaEventHistory) -> list[tuple[datetime, str]]:
    """Return other titles under which the event was asked, and when each was first used."""
    found: dict[str, datetime] = {}
    for moment in event.moments:
        if moment.title and moment.title != event.question.text:
            found.setdefault(moment.title, moment.at)
    return [(at, title) for title, at in found.items()]


def event_figures(
    event: ArenaEventHistory, styles: Mapping[str, SeriesStyle], sources: Sequence[RankedSource] = ()
) -> tuple[Chart, list[Chart]]:
    """Return a chart of the latest forecasts of every outcome, and a chart over time for each of the first outcomes."""
    news = [(one.published, one.title) for one in sources if one.published]
    last: dict[str, Mapping[str, float]] = {}
    for moment in event.moments:
        last.update(moment.said)
    rows = [
        RulerRow(
            name=event.labels[target],
            said={name: p[target] for name, p in last.items() if target in p},
            price=event.prices[target][-1][1] if event.prices[target] else None,
            outcome=event.outcomes.get(target, ""),
        )
        for target in event.prices
    ]
    rows = sorted(rows, key=lambda row: (row.outcome != "yes", -(row.price or 0.0)))[:SHOWN_OUTCOMES]
    # What came true first, then what the market thought likeliest.
    newest = {target: prices[-1][1] if prices else 0.0 for target, prices in event.prices.items()}
    order = sorted(event.prices, key=lambda target: (event.outcomes.get(target) != "yes", -newest[target]))
    moved = [_price_chart(event, target, styles, news) for target in order[:CHARTED_MARKETS]]
    return everybody_ruler(rows, styles), moved


def event_finding(event: ArenaEventHistory, answers: Sequence[EntryAnswer]) -> str:
    """Summarize a resolved event in a sentence: who gave the true outcome a higher probability than the market."""
    winners = [target for target, told in event.outcomes.items() if told == "yes"]
    if len(winners) != 1 or not answers:
        return ""
    winner, prices = winners[0], event.prices.get(winners[0])
    said = {one.name: one.p[winner] for one in answers if winner in one.p and one.name != CROWD}
    label = event.labels.get(winner, winner)
    if not said:
        return ""
    best = max(said, key=lambda name: said[name])
    text = f"{label} came true. {best} gave it most, {probability_text(said[best])}"
    if not prices:
        return f"{text}."
    ahead = sum(p > prices[-1][1] for p in said.values())
    return (
        f"{text}; {ahead} of {len(said)} entries gave it more than the market's last {probability_text(prices[-1][1])}."
    )


OWN_NUMBERS = re.compile(r"\AForecast: [^\n]{0,4000}\n+")
"""The first line of a prompt forecaster's text, which is removed because the numbers it repeats are shown beside it."""


def _price_chart(
    event: ArenaEventHistory,
    target: str,
    styles: Mapping[str, SeriesStyle],
    news: Sequence[tuple[datetime, str]],
) -> Chart:
    """Plot the price and the forecasts of one market over time."""
    forecasts: dict[str, list[tuple[datetime, float]]] = {}
    for moment in event.moments:
        for name, p in moment.said.items():
            if target in p:
                forecasts.setdefault(name, []).append((moment.at, p[target]))
    result = event.outcomes.get(target, "")
    paid = float(result.removeprefix("paid ")) if result.startswith("paid ") else None
    return history_plot(
        MarketHistory(
            title=event.labels[target],
            prices=[(instant(at), p) for at, p in event.prices[target]],
            forecasts=forecasts,
            outcome={"yes": 1.0, "no": 0.0}.get(result, paid),
            closes=event.question.closes_at,
            resolved=event.resolved_at,
            news=news,
            styles=styles,
        )
    )


# Entries.

FACTS = ("adjusted_brier", "brier_index", "ece", "return")


@dataclass(frozen=True, kw_only=True)
class EntryView:
    """An entry: its scores, its best and worst events, its setup and its cost."""

    name: str
    run: str
    since: str
    settings: Mapping[str, Any]
    forecasts: int
    dollars: float
    seconds: float
    line: ArenaLeaderboardRow | None = None
    versus: Verdict | None = None
    """The entry against the market, on the markets both answered."""
    best: tuple[tuple[EventGap, str], ...] = ()
    worst: tuple[tuple[EventGap, str], ...] = ()
    """The worst events with their titles, as in `best`."""

    def facts(self) -> list[tuple[str, str, str]]:
        """Return label, number and interval of each of its scores."""
        scores = self.line.scores if self.line else {}
        found: list[tuple[str, str, str]] = []
        for name in FACTS:
            metric, one = METRICS[name], scores.get(name)
            if one is not None:
                interval = bracket(one.low, one.high, metric.decimals)
                found.append((metric_label(name), number(one.estimate, metric.decimals), interval))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        plain = ("name", "run", "since", "settings", "forecasts", "dollars", "seconds")
        told = {name: getattr(self, name) for name in plain}
        gaps = {
            which: [{"event": gap.event, "title": title, "gap": gap.gap} for gap, title in getattr(self, which)]
            for which in ("best", "worst")
        }
        return {**told, "line": plain_data(self.line), "versus_crowd": plain_data(self.versus), **gaps}


def entry_view(
    book: ArenaStore, name: str, report_on: Callable[[Sequence[str]], ArenaReport | None]
) -> tuple[EntryView, ArenaReport | None]:
    """Return the entry of that name and the report on its scores; the report is None if nothing has resolved yet."""
    rows = book.db.read(_ENTRY_SQL, (book.arena, name))
    if not rows:
        raise InputError(f"nobody called {name[:80]!r} takes part in {book.arena}")
    run, spec, since, forecasts, dollars, seconds = rows[0]
    plain = EntryView(
        name=name,
        run=run,
        since=since,
        settings=_settings(json.loads(spec)),
        forecasts=forecasts or 0,
        dollars=dollars or 0.0,
        seconds=seconds or 0.0,
    )
    # Where an entry's set-up was changed under its name, each run has a line of its own.
    called = (name, f"{name} ({run[:6]})")
    report = report_on(called)
    line = next((line for line in report.view.lines if line.entry.name in called), None) if report else None
    if report is None or line is None:
        return plain, report
    gaps = event_gaps(report.scored, line.entry.name)
    best = [gap for gap in gaps if gap.gap > 0][:MOST_GAPS]
    worst = [gap for gap in reversed(gaps) if gap.gap < 0][:MOST_GAPS]
    titles = event_titles(book, [gap.event for gap in (*best, *worst)])
    found = replace(
        plain,
        line=line,
        versus=report.view.versus_crowd.get(line.entry.name),
        best=tuple((gap, titles.get(gap.event, gap.event)) for gap in best),
        worst=tuple((gap, titles.get(gap.event, gap.event)) for gap in worst),
    )
    return found, report


def _settings(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that interest a reader, without empty ones and those that are the same in every run."""
    kept = ("forecaster", "models", "options", "search", "trials", "budget", "seed")
    return {name: spec[name] for name in kept if spec.get(name) not in (None, {}, [], "", 0)}


ENTRY_CHARTS = {
    "over-time": "Score over time",
    "reliability-1": "Calibration",
    "category": "By category",
    "lead-time": "By time to close",
    "conservatism-1": "Distance from the market",
}
"""Charts on the page of an entry: their names on the board, and their titles."""


def entry_figures(report: ArenaReport, name: str, styles: Mapping[str, SeriesStyle]) -> list[tuple[str, Chart]]:
    """Return the entry's charts with their titles, in the order of the page."""
    if name not in report.scored.arena.names:
        return []
    drawn = {one.name: one.chart for one in arena_charts(report.view, report.scored, styles, ENTRY_CHARTS)}
    return [(title, drawn[chart]) for chart, title in ENTRY_CHARTS.items() if chart in drawn]


def entry_finding(view: EntryView) -> str:
    """Summarize how good the entry is in a sentence."""
    if view.line is None or (score := view.line.fair) is None:
        return f"Nothing that {view.name} answered has resolved yet; it has made {view.forecasts:,} forecasts."
    unranked = f"Not ranked, because it answered {percent(view.line.completion)} of its rounds:"
    place = f"Rank {view.line.rank}," if view.line.rank else "" if view.line.entry.anchor else unranked
    text = f"{place} Brier score {score.estimate:.4f} on {view.line.events:,} events".lstrip()
    return f"{text}." if view.versus is None else f"{text}. {view.versus.sentence}"
