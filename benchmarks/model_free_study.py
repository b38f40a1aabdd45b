"""The forecaster `model_free` against the model-free baseline of BLF 2026, every forecast made from the past alone.

Reads the tables under $FORETELL_DATA (default: ../shared/data beside the repository), prints Markdown tables and
writes them into benchmarks/reports/model_free.md between the markers.

    python benchmarks/model_free_study.py            # about two minutes on one core
    python benchmarks/model_free_study.py --quick    # every eighth question, nothing is written
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from time import perf_counter

import duckdb
import numpy as np

from foretell import backtest
from foretell.data.datasets.forecastbench_tables import read_question_tables
from foretell.data.datasets.question_set import OutcomeKey, QuestionSet
from foretell.data.series.series import Series, SeriesInMemory, SeriesSource
from foretell.forecasters.base_rates.baselines import MarketPriceForecaster
from foretell.forecasters.base_rates.past import Past, PastAnswer
from foretell.forecasters.base_rates.rates import BaseRates, PastOutcomes, Rates
from foretell.forecasters.forecaster import Forecaster
from foretell.forecasters.model_free.model_free import ModelFree
from foretell.metrics import Resampling, ResamplingDesign, brier_index, brier_index_from_sums, compare_paired
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("FORETELL_DATA") or ROOT.parent / "shared" / "data") / "tables"
PAGE = ROOT / "benchmarks" / "reports" / "model_free.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
RESAMPLING = Resampling(draws=2000, seed=1)
FIRST, SPLIT = date(2025, 3, 2), date(2025, 10, 1)
SERIES = {
    "ts_fred": ("series", "value", "{}"),
    "ts_yfinance_close": ("ticker", "close", "{}"),
    "meteofrance_daily_tmean": ("wmo", "tmean", "meteofrance/TEMPERATURE/celsius.{}.D"),
}


Said = dict[OutcomeKey, float]
"""Probabilities by event."""


@dataclass(frozen=True)
class Table:
    """One row per event: the question, the outcome, and the forecast of each method."""

    columns: dict[str, np.ndarray]
    forecasts: dict[str, np.ndarray]
    answered: dict[str, float]

    @property
    def outcome(self) -> np.ndarray:
        """0 or 1 per event."""
        return self.columns["outcome"]

    def loss(self, method: str, rows: np.ndarray) -> np.ndarray:
        """Brier scores of a method on some events."""
        return (self.forecasts[method][rows] - self.outcome[rows]) ** 2

    def where(self, **allowed: Iterable[str]) -> np.ndarray:
        """Return the events whose columns have one of the allowed values."""
        rows = np.ones(len(self.outcome), bool)
        for column, values in allowed.items():
            rows &= np.isin(self.columns[column], list(values))
        return rows


Sets = dict[str, tuple[Table, np.ndarray]]
"""Events by the name of their set: a table, and which of its rows."""


def past_of(question_set: QuestionSet) -> Past:
    """Return all questions and outcomes; every forecast reads them up to its own due date."""
    answers = [
        PastAnswer(
            question_id=r.question_id,
            due=r.due,
            target_id=r.target_id,
            outcome=r.outcome,
            known_on=r.resolved_at.date(),
        )
        for r in question_set.resolutions
        if r.outcome is not None and r.due is not None and r.resolved_at is not None
    ]
    return Past.of(question_set.questions, answers)


def papers_rates() -> BaseRates:
    """Return the raw frequency of yes by source and template among all outcomes known before the due date."""
    sql = f"""select r.resolution_date, r.source, coalesce(q.subtype, ''), r.horizon_days, r.outcome
              from '{DATA}/resolutions.parquet' r
              left join '{DATA}/questions.parquet' q using (source, question_id, forecast_due_date)
              where r.resolved and r.source in ('acled', 'dbnomics', 'fred', 'wikipedia', 'yfinance')"""
    day, source, subtype, horizon, outcome = zip(*duckdb.connect().execute(sql).fetchall(), strict=True)
    past = PastOutcomes(
        known_on=np.array(day, "M8[D]"),
        source=np.array(source),
        subtype=np.array(subtype),
        horizon_days=np.array(horizon, np.int64),
        outcome=np.array(outcome, np.float64),
    )
    return BaseRates(past=past, strength=1e-9, correlation=0.0, by_horizon=False)


def all_series() -> SeriesInMemory:
    series: dict[str, Series] = {}
    for table, (key, value, name) in SERIES.items():
        sql = f"select {key} k, date::varchar d, {value} v from '{DATA / table}.parquet' where {value} is not null"
        rows = duckdb.connect().execute(f"{sql} order by 1, 2").fetchnumpy()
        keys, days = np.asarray(rows["k"]).astype(str), np.asarray(rows["d"]).astype("U10").astype("M8[D]")
        values = np.asarray(rows["v"], dtype=np.float64)
        for series_key in np.unique(keys):
            id = name.format(series_key)
            series[id] = Series(id=id, days=days[keys == series_key], values=values[keys == series_key])
    return SeriesInMemory(series=series)


def forecasts_of(
    forecaster: Forecaster, questions: Sequence[Question], series: SeriesSource | None, past: Past | None = None
) -> Said:
    run = backtest(forecaster, questions, series=series, past=past)
    pairs = zip(run.questions, run.answers, strict=True)
    return {(q.id, q.due, target): p for q, a in pairs if isinstance(a, Forecast) for target, p in a.p.items()}


def rated_by(rates: Rates, questions: Sequence[Question]) -> Said:
    rated = {(q.id, q.due, t.id): rates.rate(q, t, q.as_of) for q in questions for t in q.targets}
    return {event: p for event, p in rated.items() if p is not None}


def table(questions: Sequence[Question], outcomes: Mapping[OutcomeKey, int], forecasts: Mapping[str, Said]) -> Table:
    """Return events with an outcome that every method answered, with the share that each answered."""
    keys = [((q.id, q.due, t.id), q, t) for q in questions for t in q.targets if (q.id, q.due, t.id) in outcomes]
    answered = {name: float(np.mean([p.get(key) is not None for key, _, _ in keys])) for name, p in forecasts.items()}
    rows = [row for row in keys if all(p.get(row[0]) is not None for p in forecasts.values())]
    columns = {
        "question": np.array([q.id for _, q, _ in rows]),
        "due": np.array([str(q.due.date()) for _, q, _ in rows]),
        "resolution": np.array([str(t.resolves_at.date()) if t.resolves_at else "" for _, _, t in rows]),
        "source": np.array([q.source for _, q, _ in rows]),
        "horizon": np.array([q.horizon_days(t) or 0 for _, q, t in rows]),
        "template": np.array([f"{q.source} {q.subtype}".removesuffix(" all") for _, q, _ in rows]),
        "outcome": np.array([outcomes[key] for key, _, _ in rows], float),
    }
    return Table(
        columns=columns,
        forecasts={name: np.array([p[key] for key, _, _ in rows]) for name, p in forecasts.items()},
        answered=answered,
    )


def lead(
    table: Table, rows: np.ndarray, crossed: str | None, against: str | np.ndarray = "baseline", decimals: int = 2
) -> str:
    """Return the lead of model_free in Brier index, with a 95 % interval; resamples questions, and days if crossed."""
    days = None if crossed is None else table.columns[crossed][rows]
    other = table.loss(against, rows) if isinstance(against, str) else (against[rows] - table.outcome[rows]) ** 2
    compared = compare_paired(
        table.loss("model_free", rows),
        other,
        ResamplingDesign(cluster=table.columns["question"][rows], crossed=days),
        statistic=brier_index_from_sums,
        resampling=RESAMPLING,
    )
    # A single day cannot be resampled.
    if days is not None and len(np.unique(days)) < 2:
        return f"{compared.diff:+.{decimals}f} (one day)"
    return f"{compared.diff:+.{decimals}f} [{compared.low:+.{decimals}f}, {compared.high:+.{decimals}f}]"


def index(table: Table, method: str, rows: np.ndarray) -> str:
    return f"{brier_index(float(table.loss(method, rows).mean())):.2f}"


def sets_table(sets: Sets) -> list[str]:
    lines = [
        "| data-set questions | events | questions | answered | baseline | model_free | ahead, by question | "
        "by question × due date | by question × resolution date |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (data, rows) in sets.items():
        row = [name, str(int(rows.sum())), str(len(np.unique(data.columns["question"][rows])))]
        row += [f"{data.answered['model_free']:.0%}", index(data, "baseline", rows), index(data, "model_free", rows)]
        row += [lead(data, rows, crossed) for crossed in (None, "due", "resolution")]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def templates_table(table: Table, rows: np.ndarray, methods: Sequence[str]) -> list[str]:
    head = " | ".join(methods)
    lines = [f"| template | events | yes | {head} | model_free ahead, by question × due date |"]
    lines.append("|---|---|---|" + "---|" * (len(methods) + 1))
    for template in (*np.unique(table.columns["template"][rows]).tolist(), "all"):
        here = rows & (table.columns["template"] == template) if template != "all" else rows
        row = [template, str(int(here.sum())), f"{table.outcome[here].mean():.0%}"]
        row += [*[index(table, method, here) for method in methods], lead(table, here, "due")]
        lines.append("| " + " | ".join(row) + " |")
    return lines


RIVALS = """select method, source || '/' || question_id as id, forecast_due_date as due, resolution_date as ends,
            avg(probability) as p from '{data}/forecasts.parquet'
            where source in ('acled', 'dbnomics', 'fred', 'wikipedia', 'yfinance')
            and not coalesce(imputed, false) and method not like '%clairvoyant%' group by all"""
FEWEST = 600
"""Minimum number of events that a rival must have answered on the rounds reserved for confirming."""
LEAST = 40
"""Minimum number of events for a cell of a table."""


def rivals(table: Table, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return the forecasts of other methods on the same events, by name; NaN if there is none."""
    events = zip(*(table.columns[c].tolist() for c in ("question", "due", "resolution")), strict=True)
    place = {key: i for i, key in enumerate(events)}
    forecasts: dict[str, np.ndarray] = {}
    for method, id, due, day, p in duckdb.connect().execute(RIVALS.format(data=DATA)).fetchall():
        at = place.get((id, due, day))
        if at is not None:
            forecasts.setdefault(method, np.full(len(table.outcome), np.nan))[at] = p
    return {name: p for name, p in sorted(forecasts.items()) if (~np.isnan(p[rows])).sum() >= FEWEST}


def apart(table: Table, p: np.ndarray, rows: np.ndarray) -> str:
    """Return the lead of model_free over other probabilities, by question × resolution date."""
    return lead(table, rows, "resolution", p, decimals=1)


def horizons_table(table: Table, rows: np.ndarray, rival: np.ndarray) -> list[str]:
    """Return a table by source and horizon: model_free, prior, always one half and the rival that answered most."""
    head = ("source", "days", "events", "0.5", "prior", "model_free", "ahead of prior", "ahead of 0.5", "BLF")
    lines = [f"| {' | '.join(head)} | ahead of BLF (on its events) |"]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for source in (*np.unique(table.columns["source"]).tolist(), "all"):
        for days in (7, 30, 90, 180, 0):
            here = rows & (table.columns["source"] == source) if source != "all" else rows
            here = here & (table.columns["horizon"] == days) if days else here
            both = here & ~np.isnan(rival)
            if not here.any():
                continue
            half = np.full(len(table.outcome), 0.5)
            row = [source, str(days or "all"), str(int(here.sum())), "50.0", index(table, "baseline", here)]
            row += [index(table, "model_free", here), apart(table, table.forecasts["baseline"], here)]
            row += [apart(table, half, here)]
            score = brier_index(float(((rival[both] - table.outcome[both]) ** 2).mean())) if both.any() else np.nan
            row += [f"{score:.2f}", apart(table, rival, both)] if both.sum() >= 30 else ["–", "–"]
            lines.append("| " + " | ".join(row) + " |")
    return lines


def rivals_table(table: Table, rows: np.ndarray, others: dict[str, np.ndarray]) -> list[str]:
    """Return a table of every method against model_free on the events it answered, by source and horizon."""
    lines = [
        "| method | source | events | method | model_free | model_free ahead | 7 days | 30 days | 90 days | 180 days |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for name, p in others.items():
        for source in ("all", *np.unique(table.columns["source"]).tolist()):
            both = rows & ~np.isnan(p) & (table.where(source=[source]) if source != "all" else True)
            if both.sum() < LEAST:
                continue
            score = brier_index(float(((p[both] - table.outcome[both]) ** 2).mean()))
            row = [name if source == "all" else "", source, str(int(both.sum())), f"{score:.2f}"]
            row += [index(table, "model_free", both), apart(table, p, both)]
            for days in (7, 30, 90, 180):
                here = both & (table.columns["horizon"] == days)
                row.append(apart(table, p, here) if here.sum() >= LEAST else "–")
            lines.append("| " + " | ".join(row) + " |")
    return lines


def rounds_table(table: Table, methods: Sequence[str]) -> list[str]:
    lines = [f"| round | events | {' | '.join(methods)} |", "|---|---|" + "---|" * len(methods)]
    for due in np.unique(table.columns["due"]):
        here = table.columns["due"] == due
        lines.append(f"| {due} | {int(here.sum())} | " + " | ".join(index(table, m, here) for m in methods) + " |")
    return lines


def market_table(sets: Sets) -> list[str]:
    lines = [
        "| market questions | events | answered | freeze price | due-date price | model_free "
        "| ahead of due-date price |"
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for name, (data, rows) in sets.items():
        row = [name, str(int(rows.sum())), f"{data.answered['model_free']:.0%}"]
        row += [index(data, method, rows) for method in ("freeze price", "due-date price", "model_free")]
        lines.append("| " + " | ".join([*row, lead(data, rows, None, "due-date price")]) + " |")
    return lines


def markets(all_rounds: QuestionSet, papers: QuestionSet, model_free: ModelFree, past: Past, thin: int) -> Sets:
    sets: Sets = {}
    frozen = {"": read_question_tables(DATA, price="freeze"), "ab_": read_question_tables(DATA, "ab_", price="freeze")}
    for name, question_set, prefix in (("A ∪ B, paper's outcomes", papers, "ab_"), ("all rounds", all_rounds, "")):
        questions = [q for q in question_set.questions if q.kind == "market"][::thin]
        priced = [
            q
            for q in questions
            if q.targets[0].snapshot is not None and q.targets[0].snapshot.at.date() == q.due.date()
        ]
        before = [q for q in frozen[prefix].questions if q.kind == "market"]
        forecasts = {
            "freeze price": forecasts_of(MarketPriceForecaster(), before, None),
            "due-date price": forecasts_of(MarketPriceForecaster(), priced, None),
            "model_free": forecasts_of(model_free, questions, None, past),
        }
        market_table = table(priced, question_set.outcomes(), forecasts)
        sets[name] = (market_table, np.ones(len(market_table.outcome), bool))
    return sets


def main() -> None:
    thin = 8 if "--quick" in sys.argv else 1
    rounds, papers = read_question_tables(DATA), read_question_tables(DATA, "ab_", outcomes="paper_outcome")
    past, series, baseline = past_of(rounds), all_series(), papers_rates()
    questions = [q for q in rounds.questions if q.kind == "dataset" and q.due.date() >= FIRST][::thin]
    model_free, started = ModelFree(), perf_counter()
    forecasts = {"model_free": forecasts_of(model_free, questions, series, past)}
    seconds = perf_counter() - started
    forecasts["base rate by horizon"] = rated_by(BaseRates(past=past.outcomes), questions)
    forecasts["baseline"] = rated_by(baseline, questions)
    data = table(questions, rounds.outcomes(), forecasts)
    early = np.array([date.fromisoformat(day) < SPLIT for day in data.columns["due"]])
    both = [q for q in papers.questions if q.kind == "dataset"][::thin]
    own = table(
        both,
        papers.outcomes(),
        {"model_free": forecasts_of(model_free, both, series, past), "baseline": rated_by(baseline, both)},
    )
    a, b = own.where(due=["2025-10-26"]), own.where(due=["2025-11-09"])
    sets = {
        "A, paper's outcomes": (own, a),
        "B, paper's outcomes": (own, b),
        "A ∪ B, paper's outcomes": (own, a | b),
        "rounds before 2025-10-01 (used for choosing)": (data, early),
        "rounds after (kept for confirming)": (data, ~early),
        "all rounds": (data, early | ~early),
    }
    methods = ("baseline", "base rate by horizon", "model_free")
    lines = ["### Ahead of the paper's baseline", "", *sets_table(sets), ""]
    others = rivals(data, ~early)
    longest = max(others.values(), key=lambda p: int((~np.isnan(p)).sum()))
    title = "### By source and horizon, rounds kept for confirming (intervals by question × resolution date)"
    lines += [title, "", *horizons_table(data, ~early, longest), ""]
    lines += ["### Methods on file, rounds kept for confirming", "", *rivals_table(data, ~early, others), ""]
    lines += ["### By template, rounds kept for confirming", "", *templates_table(data, ~early, methods), ""]
    lines += ["### By template, rounds used for choosing", "", *templates_table(data, early, methods), ""]
    lines += ["### By round", "", *rounds_table(data, methods), ""]
    lines += ["### Market questions", "", *market_table(markets(rounds, papers, model_free, past, thin)), ""]
    print(
        "\n".join(lines),
        f"\n{len(questions)} questions in {seconds:.0f} s, {1e3 * seconds / len(questions):.1f} ms each",
    )
    if thin == 1:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
