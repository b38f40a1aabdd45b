"""What is a fresh value worth? The same questions, forecast from values that were 0, 1, 3 and 10 days old.

Reads the tables under $FORETELL_DATA (default: ../shared/data beside the repository), prints Markdown tables and
writes them into benchmarks/reports/freshness.md between the markers.

    python benchmarks/freshness_study.py            # about ten minutes on one core
    python benchmarks/freshness_study.py --quick    # a tenth of the questions, nothing is written
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from foretell.data.datasets.forecastbench_tables import read_question_tables
from foretell.data.datasets.question_set import OutcomeKey, QuestionSet
from foretell.data.series.series import Series, SeriesInMemory, SeriesUnavailable
from foretell.forecasters.model_free.model_free import ModelFree
from foretell.forecasters.model_free.temperature import GRID_BIAS, LEADS, PLACES, forecast_id, from_record
from foretell.forecasters.series.forecasters import Auto
from foretell.metrics import Resampling, ResamplingDesign, brier_index, brier_index_from_sums, compare_paired
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, SeriesRef, Target
from model_free_study import BEGIN, DATA, END, FIRST, ROOT, SERIES, all_series, forecasts_of, past_of

PAGE = ROOT / "benchmarks" / "reports" / "freshness.md"
RESAMPLING = Resampling(draws=2000, seed=1)
AGES = (10, 3, 1, 0)
"""Days from the newest value to the due date. The first is the age of the values in ForecastBench's questions."""
WITH_FORECAST = "0 and a forecast"
"""The value of the due date and a weather forecast for a week later."""
HORIZONS = (7, 30, 90, 180, 365)
STATIONS_FROM, STATIONS_EVERY = "1978-01-01", 84
"""First due date of the simulated questions about temperatures, and days between those of one station."""
GRID_FROM, GRID_EVERY = "2020-01-01", 42
"""The same for made questions about economic series."""
LEAD = max(LEADS)
FEWEST = 100
"""Fewest events of a row of the table."""


@dataclass(frozen=True, kw_only=True)
class AgedSeries:
    """Series without the newest days: what would be known if nothing had been read for that long."""

    series: SeriesInMemory
    age: int

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Return the series up to `age` days before the cutoff."""
        known = await self.series.fetch(ref, as_of)
        # A weather forecast is read when it is made, so it has no age.
        last = np.datetime64(as_of.at.date(), "D") - (0 if ref.provider == "open_meteo" else self.age)
        n = int(np.searchsorted(known.days, last, side="right"))
        if not n:
            raise SeriesUnavailable(f"{ref.id} has no value that old")
        return Series(id=known.id, days=known.days[:n], values=known.values[:n])


@dataclass(frozen=True, kw_only=True)
class AgedForecasts:
    """One row per event: where it belongs, its outcome, and the forecast from values of each age."""

    group: np.ndarray
    question: np.ndarray
    day: np.ndarray
    """The due date."""
    horizon: np.ndarray
    outcome: np.ndarray
    p: Mapping[str, np.ndarray]

    def line(self, name: str, rows: np.ndarray, days: str) -> str:
        """Return a row of the table: the index with the oldest values, and what each fresher value gains."""
        loss = {age: (p[rows] - self.outcome[rows]) ** 2 for age, p in self.p.items()}
        oldest = loss[str(AGES[0])]
        cells = [name, days, str(int(rows.sum())), f"{brier_index(float(oldest.mean())):.2f}"]
        design = ResamplingDesign(cluster=self.question[rows], crossed=self.day[rows])
        for age in (*map(str, AGES[1:]), WITH_FORECAST):
            if age not in loss:
                cells.append("–")
                continue
            gain = compare_paired(loss[age], oldest, design, statistic=brier_index_from_sums, resampling=RESAMPLING)
            cells.append(f"{gain.diff:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}]")
        return "| " + " | ".join(cells) + " |"

    def lines(self) -> Iterator[str]:
        """Yield the rows of the table, by group and horizon."""
        for group in np.unique(self.group).tolist():
            rows = self.group == group
            for horizon in np.unique(self.horizon[rows]).tolist():
                now = rows & (self.horizon == horizon)
                if horizon in HORIZONS and now.sum() >= FEWEST:
                    yield self.line(group, now, str(horizon))
            yield self.line(group, rows, "all")


def aged(
    groups: Mapping[str, Sequence[Question]],
    outcomes: Mapping[OutcomeKey, int],
    forecasts: Mapping[str, Mapping[OutcomeKey, float]],
) -> AgedForecasts:
    """Return the events that have an outcome and a forecast from values of every age."""
    events = [
        (group, question, target, (question.id, question.due, target.id))
        for group, questions in groups.items()
        for question in questions
        for target in question.targets
    ]
    events = [row for row in events if row[3] in outcomes and all(row[3] in p for p in forecasts.values())]
    return AgedForecasts(
        group=np.array([group for group, _, _, _ in events]),
        question=np.array([question.id for _, question, _, _ in events]),
        day=np.array([str(question.due.date()) for _, question, _, _ in events]),
        horizon=np.array([question.horizon_days(target) or 0 for _, question, target, _ in events]),
        outcome=np.array([outcomes[key] for _, _, _, key in events], float),
        p={name: np.array([p[key] for _, _, _, key in events]) for name, p in forecasts.items()},
    )


# Series: FRED and shares of the published rounds, made questions about FRED, and simulated ones about temperatures.


def pace(series: Series) -> str:
    """Return how often a series has a new value."""
    gap = float(np.median(np.diff(series.days).astype(np.int64)))
    return "daily" if gap < 5 else "weekly" if gap < 10 else "monthly or slower"


def of_rounds(rounds: QuestionSet, series: SeriesInMemory, thin: int) -> AgedForecasts:
    """Return the questions of published rounds whose series are on file."""
    groups: dict[str, list[Question]] = {}
    asked = [q for q in rounds.questions if q.kind == "dataset" and q.due.date() >= FIRST and q.series is not None]
    for question in asked[::thin]:
        on_file = series.series.get(question.series.id) if question.series else None
        if on_file is None or question.source not in ("fred", "yfinance"):
            continue
        name = f"FRED, {pace(on_file)}" if question.source == "fred" else "shares"
        groups.setdefault(f"{name}, published rounds", []).append(question)
    asked, past = [question for several in groups.values() for question in several], past_of(rounds)
    forecasts = {str(age): forecasts_of(ModelFree(), asked, AgedSeries(series=series, age=age), past) for age in AGES}
    return aged(groups, rounds.outcomes(), forecasts)


def made_questions(
    source: str, series: Mapping[str, Series], first: str, every: int
) -> tuple[list[Question], dict[OutcomeKey, int]]:
    """Return questions whether a series will be higher, for days with a value, and their outcomes."""
    questions, outcomes = list[Question](), dict[OutcomeKey, int]()
    for number, (id, record) in enumerate(sorted(series.items())):
        begin = np.datetime64(first) + (number * 11) % every
        begin += 6 - (begin.astype(int) + 3) % 7
        days = set(record.days.tolist())
        for due in np.arange(begin, record.days[-1] - 6, every):
            ends = [day for day in due + np.array(HORIZONS) if day <= record.days[-1]]
            if source == "dbnomics":  # ForecastBench asks about temperatures of days that have one.
                ends = [day for day in ends if day.item() in days and due.item() in days]
            if not ends or record.at(due) is None:
                continue
            question = Question(
                id=f"{source}/{id}",
                source=source,
                text=f"Will {id} be higher?",
                due=str(due),
                kind="dataset",
                subtype="all",
                series=SeriesRef(provider=source, id=id),
                targets=tuple(Target(id=str(day), resolves_at=str(day)) for day in ends),
            )
            questions.append(question)
            for target, day in zip(question.targets, ends, strict=True):
                outcomes[question.id, question.due, target.id] = int((record.at(day) or 0) > (record.at(due) or 0))
    return questions, outcomes


def of_economy(series: SeriesInMemory, ids: Sequence[str], thin: int) -> AgedForecasts:
    """Return made questions about every FRED series on file."""
    records = {id: series.series[id] for id in ids}
    questions, outcomes = made_questions("fred", records, GRID_FROM, GRID_EVERY * thin)
    groups: dict[str, list[Question]] = {}
    for question in questions:
        groups.setdefault(f"FRED, {pace(records[question.id.removeprefix('fred/')])}, made", []).append(question)
    # Made questions have no wording, from which `model_free` would read the kind of series.
    forecasts = {str(age): forecasts_of(Auto(), questions, AgedSeries(series=series, age=age)) for age in AGES}
    return aged(groups, outcomes, forecasts)


def weather_forecasts(questions: Sequence[Question], series: SeriesInMemory) -> dict[str, Series]:
    """Simulate forecasts made on each due date for a week later, as good as the model assumes that they are."""
    rng, made = np.random.default_rng(0), dict[str, dict[np.datetime64, float]]()
    for question in questions:
        ref = question.series
        place = None if ref is None else PLACES.get(ref.id.split(".")[1])
        record = None if ref is None else series.series[ref.id]
        due = np.datetime64(question.due.date(), "D")
        actual = None if record is None else record.at(due + LEAD)
        climate = None if record is None else from_record(record.until(question.as_of), question.due.date())
        if place is None or actual is None or climate is None:
            continue
        spread = float(climate.spread_on(np.array([float((due + LEAD).astype(np.int64))]))[0])
        bias = float(np.random.default_rng(int(question.id.split(".")[1])).normal(0, GRID_BIAS))
        made.setdefault(place, {})[due] = actual + bias + float(rng.normal(0, LEADS[LEAD] * spread))
    return {
        forecast_id(place, LEAD): Series(
            id=forecast_id(place, LEAD),
            days=np.array(sorted(days)),
            values=np.array([days[day] for day in sorted(days)]),
        )
        for place, days in made.items()
    }


def of_stations(series: SeriesInMemory, ids: Sequence[str], thin: int) -> AgedForecasts:
    """Return simulated questions about the temperatures of old station records."""
    records = {id: series.series[id] for id in ids}
    questions, outcomes = made_questions("dbnomics", records, STATIONS_FROM, STATIONS_EVERY * thin)
    measured = {str(age): forecasts_of(ModelFree(), questions, AgedSeries(series=series, age=age)) for age in AGES}
    both = replace(series, series={**series.series, **weather_forecasts(questions, series)})
    measured[WITH_FORECAST] = forecasts_of(ModelFree(), questions, AgedSeries(series=both, age=0))
    return aged({"temperatures, simulated": questions}, outcomes, measured)


# Market prices.

HISTORY = "select source || '/' || question_id, date, price from '{}/market_price_history.parquet' order by 1, 2"
PUBLISHED = """select source || '/' || question_id, forecast_due_date, freeze_value, price_on_due_date
               from '{}/questions.parquet' where source_type = 'market' and freeze_value is not null
               and price_on_due_date is not null"""
LATE = 2
"""A price of the history may be at most this many days older than the age that is asked for."""


def of_published_prices(rounds: QuestionSet, thin: int) -> AgedForecasts:
    """Return the resolved market questions of published rounds with the prices that are published with them."""
    rows = duckdb.connect().execute(PUBLISHED.format(DATA)).fetchall()
    prices = {(id, str(due)[:10]): dict(zip(("10", "0"), p, strict=True)) for id, due, *p in rows}
    questions = [q for q in rounds.questions if q.kind == "market" and q.due.date() >= FIRST][::thin]
    forecasts: dict[str, dict[OutcomeKey, float]] = {"10": {}, "0": {}}
    for question in questions:
        for age, p in prices.get((question.id, str(question.due.date())), {}).items():
            forecasts[age][question.id, question.due, question.targets[0].id] = p
    return aged({"markets, published prices": questions}, rounds.outcomes(), forecasts)


def of_price_histories(rounds: QuestionSet, thin: int) -> AgedForecasts:
    """Return the resolved market questions whose history has a price of every age."""
    history: dict[str, tuple[list[str], list[float]]] = {}
    for id, day, price in duckdb.connect().execute(HISTORY.format(DATA)).fetchall():
        days, prices = history.setdefault(id, ([], []))
        days.append(str(day)[:10])
        prices.append(price)
    questions = [q for q in rounds.questions if q.kind == "market" and q.due.date() >= FIRST and q.id in history]
    forecasts: dict[str, dict[OutcomeKey, float]] = {str(age): {} for age in AGES}
    for question in questions[::thin]:
        days, prices = np.array(history[question.id][0], "M8[D]"), history[question.id][1]
        due = np.datetime64(question.due.date(), "D")
        for age in AGES:
            place = int(np.searchsorted(days, due - age, side="right")) - 1
            if place >= 0 and days[place] >= due - age - LATE:
                forecasts[str(age)][question.id, question.due, question.targets[0].id] = prices[place]
    return aged({"markets, daily histories": questions[::thin]}, rounds.outcomes(), forecasts)


def main() -> None:
    thin = 10 if "--quick" in sys.argv else 1
    rounds, series = read_question_tables(DATA), all_series()
    station = SERIES["meteofrance_daily_tmean"][2].partition("{")[0]
    fred = duckdb.connect().execute(f"select distinct series from '{DATA}/ts_fred.parquet'").fetchall()
    parts = (
        lambda: of_stations(series, [id for id in series.series if id.startswith(station)], thin),
        lambda: of_economy(series, [id for (id,) in fred], thin),
        lambda: of_rounds(rounds, series, thin),
        lambda: of_published_prices(rounds, thin),
        lambda: of_price_histories(rounds, thin),
    )
    head = "| questions | days ahead | events | 10 days old | 3 days old | 1 day old | due date | and a forecast |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    for part in parts:
        new = list(part().lines())
        print("\n".join(new), flush=True)
        lines += new
    if thin == 1:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
