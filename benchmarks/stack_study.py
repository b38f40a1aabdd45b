"""The forecaster `stack` against the model-free baseline of BLF 2026, every forecast made from the past alone.

Reads the tables under $FORETELL_DATA (default: ../shared/data beside the repository), prints Markdown tables and
writes them into benchmarks/reports/stack.md between the markers.

    python benchmarks/stack_study.py            # about two minutes on one core
    python benchmarks/stack_study.py --quick    # every eighth question, nothing is written
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
from foretell.data.datasets import OutcomeKey, QuestionSet, read_question_tables
from foretell.data.series import Series, SeriesInMemory, SeriesSource
from foretell.forecasters import Forecaster
from foretell.forecasters.base_rates import BaseRates, CrowdForecaster, Past, PastAnswer, PastOutcomes, Rates
from foretell.forecasters.stack import Stack
from foretell.metrics import Resampling, ResamplingDesign, brier_index, brier_index_from_sums, compare_paired
from foretell.questions import Forecast, Question

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("FORETELL_DATA") or ROOT.parent / "shared" / "data") / "tables"
PAGE = ROOT / "benchmarks" / "reports" / "stack.md"
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
    """One row per event: what was asked, what came out, what each method said."""

    columns: dict[str, np.ndarray]
    said: dict[str, np.ndarray]
    answered: dict[str, float]

    @property
    def outcome(self) -> np.ndarray:
        """0 or 1 per event."""
        return self.columns["outcome"]

    def loss(self, method: str, rows: np.ndarray) -> np.ndarray:
        """Brier scores of a method on some events."""
        return (self.said[method][rows] - self.outcome[rows]) ** 2

    def where(self, **wanted: Iterable[str]) -> np.ndarray:
        """The events whose columns hold one of the wanted values."""
        rows = np.ones(len(self.outcome), bool)
        for column, values in wanted.items():
            rows &= np.isin(self.columns[column], list(values))
        return rows


Sets = dict[str, tuple[Table, np.ndarray]]
"""Events by the name of their set: a table, and which of its rows."""


def past_of(found: QuestionSet) -> Past:
    """Everything asked and answered; every forecast reads it up to its own due date."""
    answers = [
        PastAnswer(
            question_id=r.question_id,
            due=r.due,
            target_id=r.target_id,
            outcome=r.outcome,
            known_on=r.resolved_at.date(),
        )
        for r in found.resolutions
        if r.outcome is not None and r.due is not None and r.resolved_at is not None
    ]
    return Past.of(found.questions, answers)


def papers_rates() -> BaseRates:
    """The frequency of yes by source and template among all outcomes known before the due date, as it is."""
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
    found: dict[str, Series] = {}
    for table, (key, value, name) in SERIES.items():
        sql = f"select {key} k, date::varchar d, {value} v from '{DATA / table}.parquet' where {value} is not null"
        rows = duckdb.connect().execute(f"{sql} order by 1, 2").fetchnumpy()
        keys, days = np.asarray(rows["k"]).astype(str), np.asarray(rows["d"]).astype("U10").astype("M8[D]")
        values = np.asarray(rows["v"], dtype=np.float64)
        for one in np.unique(keys):
            id = name.format(one)
            found[id] = Series(id=id, days=days[keys == one], values=values[keys == one])
    return SeriesInMemory(series=found)


def said_by(
    forecaster: Forecaster, questions: Sequence[Question], series: SeriesSource | None, past: Past | None = None
) -> Said:
    run = backtest(forecaster, questions, series=series, past=past)
    pairs = zip(run.questions, run.answers, strict=True)
    return {(q.id, q.due, target): p for q, a in pairs if isinstance(a, Forecast) for target, p in a.p.items()}


def rated_by(rates: Rates, questions: Sequence[Question]) -> Said:
    rated = {(q.id, q.due, t.id): rates.rate(q, t, q.as_of) for q in questions for t in q.targets}
    return {event: p for event, p in rated.items() if p is not None}


def table(questions: Sequence[Question], outcomes: Mapping[OutcomeKey, int], said: Mapping[str, Said]) -> Table:
    """Events with an outcome that every method answered; what share of all each answered is kept."""
    keys = [((q.id, q.due, t.id), q, t) for q in questions for t in q.targets if (q.id, q.due, t.id) in outcomes]
    answered = {name: float(np.mean([p.get(key) is not None for key, _, _ in keys])) for name, p in said.items()}
    kept = [row for row in keys if all(p.get(row[0]) is not None for p in said.values())]
    columns = {
        "question": np.array([q.id for _, q, _ in kept]),
        "due": np.array([str(q.due.date()) for _, q, _ in kept]),
        "resolution": np.array([str(t.resolves_at.date()) if t.resolves_at else "" for _, _, t in kept]),
        "source": np.array([q.source for _, q, _ in kept]),
        "horizon": np.array([q.horizon_days(t) or 0 for _, q, t in kept]),
        "template": np.array([f"{q.source} {q.subtype}".removesuffix(" all") for _, q, _ in kept]),
        "outcome": np.array([outcomes[key] for key, _, _ in kept], float),
    }
    return Table(
        columns=columns,
        said={name: np.array([p[key] for key, _, _ in kept]) for name, p in said.items()},
        answered=answered,
    )


def lead(
    found: Table, rows: np.ndarray, crossed: str | None, against: str | np.ndarray = "baseline", decimals: int = 2
) -> str:
    """How far the stack is ahead in Brier index, with a 95 % interval that resamples questions, and days if crossed."""
    days = None if crossed is None else found.columns[crossed][rows]
    other = found.loss(against, rows) if isinstance(against, str) else (against[rows] - found.outcome[rows]) ** 2
    compared = compare_paired(
        found.loss("stack", rows),
        other,
        ResamplingDesign(cluster=found.columns["question"][rows], crossed=days),
        statistic=brier_index_from_sums,
        resampling=RESAMPLING,
    )
    # One day tells nothing of other days.
    if days is not None and len(np.unique(days)) < 2:
        return f"{compared.diff:+.{decimals}f} (one day)"
    return f"{compared.diff:+.{decimals}f} [{compared.low:+.{decimals}f}, {compared.high:+.{decimals}f}]"


def index(found: Table, method: str, rows: np.ndarray) -> str:
    return f"{brier_index(float(found.loss(method, rows).mean())):.2f}"


def sets_table(sets: Sets) -> list[str]:
    lines = [
        "| data-set questions | events | questions | answered | baseline | stack | ahead, by question | "
        "by question × due date | by question × resolution date |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (found, rows) in sets.items():
        cells = [name, str(int(rows.sum())), str(len(np.unique(found.columns["question"][rows])))]
        cells += [f"{found.answered['stack']:.0%}", index(found, "baseline", rows), index(found, "stack", rows)]
        cells += [lead(found, rows, crossed) for crossed in (None, "due", "resolution")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def templates_table(found: Table, rows: np.ndarray, methods: Sequence[str]) -> list[str]:
    head = " | ".join(methods)
    lines = [f"| template | events | yes | {head} | stack ahead, by question × due date |"]
    lines.append("|---|---|---|" + "---|" * (len(methods) + 1))
    for template in (*np.unique(found.columns["template"][rows]).tolist(), "all"):
        here = rows & (found.columns["template"] == template) if template != "all" else rows
        cells = [template, str(int(here.sum())), f"{found.outcome[here].mean():.0%}"]
        cells += [*[index(found, method, here) for method in methods], lead(found, here, "due")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


RIVALS = """select method, source || '/' || question_id as id, forecast_due_date as due, resolution_date as ends,
            avg(probability) as p from '{data}/forecasts.parquet'
            where source in ('acled', 'dbnomics', 'fred', 'wikipedia', 'yfinance')
            and not coalesce(imputed, false) and method not like '%clairvoyant%' group by all"""
FEWEST = 600
"""Events that a rival must have answered on the rounds kept for confirming."""
LEAST = 40
"""Events below which a cell of a table says nothing."""


def rivals(found: Table, rows: np.ndarray) -> dict[str, np.ndarray]:
    """What other methods said of the same events, by name; NaN where one said nothing."""
    events = zip(*(found.columns[c].tolist() for c in ("question", "due", "resolution")), strict=True)
    place = {key: i for i, key in enumerate(events)}
    said: dict[str, np.ndarray] = {}
    for method, id, due, day, p in duckdb.connect().execute(RIVALS.format(data=DATA)).fetchall():
        at = place.get((id, due, day))
        if at is not None:
            said.setdefault(method, np.full(len(found.outcome), np.nan))[at] = p
    return {name: p for name, p in sorted(said.items()) if (~np.isnan(p[rows])).sum() >= FEWEST}


def apart(found: Table, p: np.ndarray, rows: np.ndarray) -> str:
    """How far the stack is ahead of other probabilities, by question × resolution date."""
    return lead(found, rows, "resolution", p, decimals=1)


def horizons_table(found: Table, rows: np.ndarray, rival: np.ndarray) -> list[str]:
    """By source and horizon: the stack, prior, always one half and the rival that answered most."""
    head = ("source", "days", "events", "0.5", "prior", "stack", "ahead of prior", "ahead of 0.5", "BLF")
    lines = [f"| {' | '.join(head)} | ahead of BLF (on its events) |"]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for source in (*np.unique(found.columns["source"]).tolist(), "all"):
        for days in (7, 30, 90, 180, 0):
            here = rows & (found.columns["source"] == source) if source != "all" else rows
            here = here & (found.columns["horizon"] == days) if days else here
            both = here & ~np.isnan(rival)
            if not here.any():
                continue
            half = np.full(len(found.outcome), 0.5)
            cells = [source, str(days or "all"), str(int(here.sum())), "50.0", index(found, "baseline", here)]
            cells += [index(found, "stack", here), apart(found, found.said["baseline"], here), apart(found, half, here)]
            score = brier_index(float(((rival[both] - found.outcome[both]) ** 2).mean())) if both.any() else np.nan
            cells += [f"{score:.2f}", apart(found, rival, both)] if both.sum() >= 30 else ["–", "–"]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def rivals_table(found: Table, rows: np.ndarray, others: dict[str, np.ndarray]) -> list[str]:
    """Every method on file against the stack on the events that it answered, by source and horizon."""
    lines = ["| method | source | events | method | stack | stack ahead | 7 days | 30 days | 90 days | 180 days |"]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for name, p in others.items():
        for source in ("all", *np.unique(found.columns["source"]).tolist()):
            both = rows & ~np.isnan(p) & (found.where(source=[source]) if source != "all" else True)
            if both.sum() < LEAST:
                continue
            score = brier_index(float(((p[both] - found.outcome[both]) ** 2).mean()))
            cells = [name if source == "all" else "", source, str(int(both.sum())), f"{score:.2f}"]
            cells += [index(found, "stack", both), apart(found, p, both)]
            for days in (7, 30, 90, 180):
                here = both & (found.columns["horizon"] == days)
                cells.append(apart(found, p, here) if here.sum() >= LEAST else "–")
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def rounds_table(found: Table, methods: Sequence[str]) -> list[str]:
    lines = [f"| round | events | {' | '.join(methods)} |", "|---|---|" + "---|" * len(methods)]
    for due in np.unique(found.columns["due"]):
        here = found.columns["due"] == due
        lines.append(f"| {due} | {int(here.sum())} | " + " | ".join(index(found, m, here) for m in methods) + " |")
    return lines


def market_table(sets: Sets) -> list[str]:
    lines = [
        "| market questions | events | answered | freeze price | due-date price | stack | ahead of due-date price |"
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for name, (found, rows) in sets.items():
        cells = [name, str(int(rows.sum())), f"{found.answered['stack']:.0%}"]
        cells += [index(found, method, rows) for method in ("freeze price", "due-date price", "stack")]
        lines.append("| " + " | ".join([*cells, lead(found, rows, None, "due-date price")]) + " |")
    return lines


def markets(all_rounds: QuestionSet, papers: QuestionSet, stack: Stack, past: Past, thin: int) -> Sets:
    found: Sets = {}
    frozen = {"": read_question_tables(DATA, price="freeze"), "ab_": read_question_tables(DATA, "ab_", price="freeze")}
    for name, asked, prefix in (("A ∪ B, paper's outcomes", papers, "ab_"), ("all rounds", all_rounds, "")):
        questions = [q for q in asked.questions if q.kind == "market"][::thin]
        priced = [
            q
            for q in questions
            if q.targets[0].snapshot is not None and q.targets[0].snapshot.at.date() == q.due.date()
        ]
        before = [q for q in frozen[prefix].questions if q.kind == "market"]
        said = {
            "freeze price": said_by(CrowdForecaster(), before, None),
            "due-date price": said_by(CrowdForecaster(), priced, None),
            "stack": said_by(stack, questions, None, past),
        }
        one = table(priced, asked.outcomes(), said)
        found[name] = (one, np.ones(len(one.outcome), bool))
    return found


def main() -> None:
    thin = 8 if "--quick" in sys.argv else 1
    rounds, papers = read_question_tables(DATA), read_question_tables(DATA, "ab_", outcomes="paper_outcome")
    past, series, baseline = past_of(rounds), all_series(), papers_rates()
    questions = [q for q in rounds.questions if q.kind == "dataset" and q.due.date() >= FIRST][::thin]
    stack, started = Stack(), perf_counter()
    said = {"stack": said_by(stack, questions, series, past)}
    seconds = perf_counter() - started
    said["base rate by horizon"] = rated_by(BaseRates(past=past.outcomes), questions)
    said["baseline"] = rated_by(baseline, questions)
    found = table(questions, rounds.outcomes(), said)
    early = np.array([date.fromisoformat(day) < SPLIT for day in found.columns["due"]])
    both = [q for q in papers.questions if q.kind == "dataset"][::thin]
    own = table(
        both, papers.outcomes(), {"stack": said_by(stack, both, series, past), "baseline": rated_by(baseline, both)}
    )
    a, b = own.where(due=["2025-10-26"]), own.where(due=["2025-11-09"])
    sets = {
        "A, paper's outcomes": (own, a),
        "B, paper's outcomes": (own, b),
        "A ∪ B, paper's outcomes": (own, a | b),
        "rounds before 2025-10-01 (used for choosing)": (found, early),
        "rounds after (kept for confirming)": (found, ~early),
        "all rounds": (found, early | ~early),
    }
    methods = ("baseline", "base rate by horizon", "stack")
    lines = ["### Ahead of the paper's baseline", "", *sets_table(sets), ""]
    others = rivals(found, ~early)
    longest = max(others.values(), key=lambda p: int((~np.isnan(p)).sum()))
    title = "### By source and horizon, rounds kept for confirming (intervals by question × resolution date)"
    lines += [title, "", *horizons_table(found, ~early, longest), ""]
    lines += ["### Methods on file, rounds kept for confirming", "", *rivals_table(found, ~early, others), ""]
    lines += ["### By template, rounds kept for confirming", "", *templates_table(found, ~early, methods), ""]
    lines += ["### By template, rounds used for choosing", "", *templates_table(found, early, methods), ""]
    lines += ["### By round", "", *rounds_table(found, methods), ""]
    lines += ["### Market questions", "", *market_table(markets(rounds, papers, stack, past, thin)), ""]
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
