"""Data for the pages of an arena: its events, one event with the answers of its entries, and one entry."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from foretell.arena.listing import EventRow, event_results, event_rows, event_titles
from foretell.arena.status import ArenaEventHistory, ForecastTimeHistory
from foretell.arena.store import ArenaEntryRow, ArenaStore
from foretell.forecasters.prompt.prediction_context import PredictionContext, RankedSource
from foretell.frozen import frozen
from foretell.metrics.metric import METRICS
from foretell.number_text import percent, plural
from foretell.patterns import pattern
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.trace import ForecastMade, ModelCalled, QuestionShown
from foretell.report.arena_report import ArenaReport, arena_charts
from foretell.report.charts.rulers import RulerRow, everybody_ruler
from foretell.report.charts.svg import Chart, SeriesStyle
from foretell.report.charts.timelines import MarketHistory, history_plot
from foretell.report.numbers import interval_ends, value_text
from foretell.report.run_report import describe_event
from foretell.runs.store import RunStore
from foretell.scoring.arena_leaderboard import ArenaLeaderboardRow
from foretell.scoring.arena_view import EventGap, event_gaps
from foretell.scoring.baselines import BASELINES
from foretell.scoring.verdict import Verdict
from foretell.web.formatting import when

CHARTED_MARKETS = 12
SHOWN_OUTCOMES = 12
MOST_GAPS = 8
"""Maximum number of events listed as an entry's best, and as its worst."""
EVENTS_PER_PAGE = 50


# Events.


def listed_events(
    store: ArenaStore,
    words: Sequence[str],
    titles: Callable[[], Mapping[str, str]],
    *,
    category: str = "",
    state: str = "",
    part: tuple[int, int] = (0, EVENTS_PER_PAGE),
) -> tuple[list[EventRow], int]:
    """One page of the selected events, latest closing first, and the number of events that match.

    The part is given by its offset and length. A search by words asks `titles` for the titles of all events, by id.
    """
    offset, limit = part
    if words:
        rows, _ = event_rows(store, category=category, state=state)
        title_of = titles()
        rows = [row for row in rows if all(word in f"{title_of.get(row.id, '')} {row.id}".casefold() for word in words)]
        total, rows = len(rows), rows[offset : offset + limit]
    else:
        rows, total = event_rows(store, category=category, state=state, limit=limit, offset=offset)
    ids = [row.id for row in rows]
    shown_titles, results = event_titles(store, ids), event_results(store, ids)
    rows = [row._replace(title=shown_titles.get(row.id, row.id), result=results.get(row.id, "")) for row in rows]
    return rows, total


@frozen
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
    entry_answers: dict[str, EntryAnswer] = {}
    outcomes = {
        target: 1.0 if outcome == "yes" else 0.0
        for target, outcome in event.outcomes.items()
        if outcome in ("yes", "no")
    }
    for forecast_time in event.forecast_times:
        for name, p in forecast_time.said.items():
            scored = [(p[target] - value) ** 2 for target, value in outcomes.items() if target in p]
            entry = name if name in entries else name.rpartition(" ")[0]
            entry_answers[name] = EntryAnswer(
                name=name,
                entry=entry if entry in entries else "",
                at=forecast_time.at,
                p=p,
                reason=OWN_NUMBERS.sub("", forecast_time.reasons.get(name, "")),
                brier=sum(scored) / len(scored) if scored else None,
                failed=_last_failure(event.forecast_times, name),
            )
    return sorted(
        entry_answers.values(), key=lambda entry_answer: (entry_answer.brier is None, entry_answer.brier or 0.0)
    )


def _last_failure(forecast_times: Sequence[ForecastTimeHistory], name: str) -> str:
    answered = [
        forecast_time for forecast_time in forecast_times if name in forecast_time.said or name in forecast_time.failed
    ]
    return answered[-1].failed.get(name, "") if answered else ""


@frozen
class RoundAnswer:
    """What an entry said in one round, and how it got there."""

    name: str
    run: str
    p: Sequence[tuple[str, float]]
    """The likeliest outcomes with their probabilities."""
    reason: str
    steps: Sequence[str]


def all_rounds(
    store: RunStore, event: ArenaEventHistory, runs: Mapping[str, str]
) -> list[tuple[datetime, list[RoundAnswer]]]:
    """Return the answers of every round with their steps, newest round first."""
    steps: dict[tuple[str, str], list[str]] = {}
    for run in runs.values():
        for _, key, happened in store.events(run, event.event):
            if not isinstance(happened, QuestionShown | ModelCalled | ForecastMade):
                steps.setdefault((run, key.due), []).append(describe_event(happened))
    rounds: list[tuple[datetime, list[RoundAnswer]]] = []
    for forecast_time in reversed(event.forecast_times):
        answers: list[RoundAnswer] = []
        for name, said in forecast_time.said.items():
            run = runs.get(name) or runs.get(name.rpartition(" ")[0], "")
            likeliest = sorted(said.items(), key=lambda item: -item[1])[:SHOWN_OUTCOMES]
            answers.append(
                RoundAnswer(
                    name=name,
                    run=run,
                    p=[(event.labels.get(target, target), p) for target, p in likeliest],
                    reason=OWN_NUMBERS.sub("", forecast_time.reasons.get(name, "")),
                    steps=steps.get((run, forecast_time.at.isoformat()), ()),
                )
            )
        if answers:
            rounds.append((forecast_time.at, answers))
    return rounds


def last_context(store: ArenaStore, event: ArenaEventHistory) -> tuple[ForecastTimeHistory, PredictionContext] | None:
    """Return the last context that was shown to the entries, with its forecast time; None if there was none."""
    for forecast_time in reversed(event.forecast_times):
        if forecast_time.context is not None and (context := store.context(forecast_time.context)) is not None:
            return forecast_time, context
    return None


@frozen
class EventStep:
    """A step in the history of an event."""

    title: str
    at: str = ""
    """The time or period, as text."""
    note: str = ""
    link: str = ""
    state: Literal["done", "resolved", "coming", "trouble"] = "done"


def event_steps(event: ArenaEventHistory) -> list[EventStep]:
    """Return the steps of an event from its selection to its result: what happened when, and what comes next."""
    done = [forecast_time for forecast_time in event.forecast_times if forecast_time.said or forecast_time.failed]
    missed = [forecast_time for forecast_time in event.forecast_times if forecast_time.state == "missed"]
    planned = [forecast_time for forecast_time in event.forecast_times if forecast_time.state == "planned"]
    closes, resolved = event.question.closes_at, len(event.outcomes) >= len(event.prices)
    ended = resolved or event.status not in ("open", "unopened")
    steps = [EventStep(title="Selected", at=when(event.taken_up))]
    if done:
        answers, failed = (
            sum(len(forecast_time.said) for forecast_time in done),
            sum(len(forecast_time.failed) for forecast_time in done),
        )
        span = when(done[0].at) if len(done) == 1 else f"{when(done[0].at)} – {when(done[-1].at)}"
        note = f"{answers} of {answers + failed} answers" if failed else plural(answers, "answer")
        steps.append(EventStep(title=f"Forecast {_times(len(done))}", at=span, note=note))
    if missed:
        note = missed[-1].reason or "nobody was asked"
        steps.append(EventStep(title=f"{plural(len(missed), 'round')} missed", note=note, state="trouble"))
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
    true = [event.labels.get(target, target) for target, outcome in event.outcomes.items() if outcome == "yes"]
    what = "Resolved" if len(event.outcomes) >= len(event.prices) else "Resolved in part"
    if all(outcome == "void" for outcome in event.outcomes.values()):
        return EventStep(
            title="Called off", at=when(event.resolved_at), note="not scored", link=event.provenance, state="trouble"
        )
    title = f"{what}: {true[0]}" if len(true) == 1 else what
    return EventStep(title=title, at=when(event.resolved_at), link=event.provenance, state="resolved")


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def renamed(event: ArenaEventHistory) -> list[tuple[datetime, str]]:
    """Return other titles under which the event was asked, and when each was first used."""
    first_used: dict[str, datetime] = {}
    for forecast_time in event.forecast_times:
        if forecast_time.title and forecast_time.title != event.question.text:
            first_used.setdefault(forecast_time.title, forecast_time.at)
    return [(at, title) for title, at in first_used.items()]


def event_figures(
    event: ArenaEventHistory, styles: Mapping[str, SeriesStyle], sources: Sequence[RankedSource] = ()
) -> tuple[Chart, list[Chart]]:
    """Return a chart of the latest forecasts of every outcome, and a chart over time for each of the first outcomes."""
    news = [(source.published, source.title) for source in sources if source.published]
    last: dict[str, Mapping[str, float]] = {}
    for forecast_time in event.forecast_times:
        last.update(forecast_time.said)
    rows = [
        RulerRow(
            name=event.labels[target],
            forecasts={name: p[target] for name, p in last.items() if target in p},
            price=event.prices[target][-1][1] if event.prices[target] else None,
            outcome=event.outcomes.get(target, ""),
        )
        for target in event.prices
    ]
    rows = sorted(rows, key=lambda row: (row.outcome != "yes", -(row.price or 0.0)))[:SHOWN_OUTCOMES]
    # Outcomes that came true come first, then those that the market found likeliest.
    newest = {target: prices[-1][1] if prices else 0.0 for target, prices in event.prices.items()}
    order = sorted(event.prices, key=lambda target: (event.outcomes.get(target) != "yes", -newest[target]))
    moved = [_price_chart(event, target, styles, news) for target in order[:CHARTED_MARKETS]]
    return everybody_ruler(rows, styles), moved


def event_finding(event: ArenaEventHistory, answers: Sequence[EntryAnswer]) -> str:
    """Summarize a resolved event in a sentence: who gave the true outcome a higher probability than the market."""
    winners = [target for target, outcome in event.outcomes.items() if outcome == "yes"]
    if len(winners) != 1 or not answers:
        return ""
    winner, prices = winners[0], event.prices.get(winners[0])
    forecasts = {answer.name: answer.p[winner] for answer in answers if winner in answer.p}
    forecasts = {name: p for name, p in forecasts.items() if name not in BASELINES}
    label = event.labels.get(winner, winner)
    if not forecasts:
        return ""
    best = max(forecasts, key=lambda name: forecasts[name])
    text = f"{label} came true. Of the entries, {best} gave it most, {percent(forecasts[best])}"
    if not prices:
        return f"{text}."
    ahead = sum(p > prices[-1][1] for p in forecasts.values())
    price = percent(prices[-1][1])
    return f"{text}; {ahead} of {len(forecasts)} gave it more than the market's last {price}."


OWN_NUMBERS = pattern(r"\AForecast: [^\n]{0,4000}\n+")
"""The first line of a prompt forecaster's text, which is removed because the numbers it repeats are shown beside it."""


def _price_chart(
    event: ArenaEventHistory,
    target: str,
    styles: Mapping[str, SeriesStyle],
    news: Sequence[tuple[datetime, str]],
) -> Chart:
    """Plot the price and the forecasts of one market over time."""
    forecasts: dict[str, list[tuple[datetime, float]]] = {}
    for forecast_time in event.forecast_times:
        for name, p in forecast_time.said.items():
            if target in p:
                forecasts.setdefault(name, []).append((forecast_time.at, p[target]))
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

FACTS = {
    "adjusted_brier": "Brier score",
    "adjusted_brier_index": "Brier index",
    "ece": "Calibration error",
    "return": "Return per $1",
}
"""Scores of an entry, named as on the board."""


@frozen
class EntryView:
    """An entry: its scores, its best and worst events, its setup and its cost."""

    entry: ArenaEntryRow
    line: ArenaLeaderboardRow | None = None
    versus: Verdict | None = None
    """The entry against the market, on the markets both answered."""
    best: tuple[tuple[EventGap, str], ...] = ()
    worst: tuple[tuple[EventGap, str], ...] = ()
    """The worst events with their titles, as in `best`."""

    def settings(self) -> dict[str, Any]:
        """Return the settings that interest a reader, without empty ones and those that are the same in every run."""
        names = ("forecaster", "models", "options", "search", "trials", "budget", "seed")
        spec = self.entry.settings
        return {name: spec[name] for name in names if spec.get(name) not in (None, {}, [], "", 0)}

    def facts(self) -> list[tuple[str, str, str]]:
        """Return label, number and interval of each of its scores."""
        scores = self.line.scores if self.line else {}
        facts: list[tuple[str, str, str]] = []
        for name, label in FACTS.items():
            metric, score = METRICS[name], scores.get(name)
            if score is not None:
                value = value_text(score, metric.decimals, brief=True, unit=metric.unit)
                interval = interval_ends(score, metric.decimals, unit=metric.unit)
                facts.append((label, value, interval))
        return facts


def entry_view(
    store: ArenaStore, name: str, report_on: Callable[[Sequence[str]], ArenaReport | None]
) -> tuple[EntryView, ArenaReport | None]:
    """Return the entry of that name and the report on its scores; the report is None if nothing has resolved yet."""
    entry = next((entry for entry in reversed(store.entries()) if entry.name == name), None)
    if entry is None:
        raise InputError(f"{store.arena} has no entry {name[:80]!r}")
    plain = EntryView(entry=entry)
    # If the settings of an entry changed under the same name, each run has its own line.
    called = (name, f"{name} ({entry.run[:6]})")
    report = report_on(called)
    line = next((line for line in report.view.lines if line.entry.name in called), None) if report else None
    if report is None or line is None:
        return plain, report
    gaps = event_gaps(report.scored, line.entry.name)
    best = [gap for gap in gaps if gap.gap > 0][:MOST_GAPS]
    worst = [gap for gap in reversed(gaps) if gap.gap < 0][:MOST_GAPS]
    titles = event_titles(store, [gap.event for gap in (*best, *worst)])
    view = replace(
        plain,
        line=line,
        versus=report.view.versus_market.get(line.entry.name),
        best=tuple((gap, titles.get(gap.event, gap.event)) for gap in best),
        worst=tuple((gap, titles.get(gap.event, gap.event)) for gap in worst),
    )
    return view, report


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
    drawn = {
        arena_chart.name: arena_chart.chart
        for arena_chart in arena_charts(report.view, report.scored, styles, ENTRY_CHARTS)
    }
    return [(title, drawn[chart]) for chart, title in ENTRY_CHARTS.items() if chart in drawn]


def entry_finding(view: EntryView) -> str:
    """Summarize how good the entry is in a sentence."""
    if view.line is None or (score := view.line.fair) is None:
        made = f"it has made {view.entry.forecasts:,} forecasts"
        return f"Nothing that {view.entry.name} answered has resolved yet; {made}."
    unranked = f"Not ranked, because it answered {percent(view.line.completion)} of its rounds:"
    place = f"Rank {view.line.rank}," if view.line.rank else "" if view.line.entry.baseline else unranked
    text = f"{place} Brier score {score.estimate:.4f} on {view.line.events:,} events".lstrip()
    return f"{text}." if view.versus is None else f"{text}. {view.versus.sentence}"
