"""The outside view against base rates, every forecast made from what was known before its due date.

Reads the tables under $FORETELL_DATA (default: ../shared/data beside the repository), prints Markdown tables, writes
them into benchmarks/reports/outside.md between the markers, and writes the numbers that come with the package.

    python benchmarks/outside_study.py             # a few minutes on one core
    python benchmarks/outside_study.py --choosing  # only the rounds the design was chosen on; nothing is written
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from foretell.forecasters.base_rates.outside_estimate import kind_of
from foretell.forecasters.base_rates.outside_fit import fit_outside, fit_text, table_of
from foretell.forecasters.base_rates.outside_model import NUMBERS, REPORT, rate_table, to_files
from foretell.forecasters.base_rates.outside_view import OutsideView
from foretell.forecasters.base_rates.past import Past, PastQuestions
from foretell.forecasters.base_rates.rates import BaseRates
from foretell.forecasters.forecaster import Context
from foretell.metrics import Resampling, ResamplingDesign, compare_paired
from foretell.metrics.transforms import sigmoid
from foretell.questions.as_of import AsOf
from foretell.questions.question import LastValue, Question, Snapshot, Target
from foretell.questions.resolution import Resolution
from foretell.runs.past import past_of

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("FORETELL_DATA") or ROOT.parent / "shared" / "data") / "tables"
PAGE = ROOT / "benchmarks" / "reports" / "outside.md"
SHIPPED = ROOT / "src" / "foretell" / "forecasters" / "base_rates"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
FIRST, SPLIT = "2025-03-02", "2025-11-23"
"""The first round with known outcomes before it, and the first one not used to choose the design."""
RESAMPLING = Resampling(draws=5000, seed=1)
BINS = np.array([0.0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.001])
EVENLY = np.array([0.02, *[0.096] * 10, 0.02])
"""Shares of a round by bins of prices, as its public code draws market questions since 2026-02-19."""


def read_rounds() -> tuple[list[Question], list[Resolution]]:
    """Return all questions of the tables with their known outcomes."""
    sql = f"""
      select q.source, q.question_id, q.forecast_due_date, any_value(q.question), any_value(q.subtype),
             any_value(q.source_type), any_value(q.market_open), any_value(q.market_close), any_value(q.url),
             any_value(q.freeze_value), any_value(q.freeze_date),
             list(r.resolution_date order by r.resolution_date), list(r.outcome order by r.resolution_date),
             list(r.resolved order by r.resolution_date)
      from '{DATA}/questions.parquet' q left join '{DATA}/resolutions.parquet' r
        on r.forecast_due_date = q.forecast_due_date and r.source = q.source and r.question_id = q.question_id
      group by 1, 2, 3 order by 3, 1, 2"""
    questions, answers = [], []
    rows = duckdb.connect().execute(sql).fetchall()
    # In some rounds every last value of ACLED was published as zero; these values are missing.
    broken = {due for due in {r[2] for r in rows} if not any(r[9] for r in rows if r[2] == due and r[4] == "increase")}
    for row in rows:
        question, resolutions = _asking(
            row if row[2] not in broken or row[0] != "acled" else (*row[:9], None, *row[10:])
        )
        questions.append(question)
        answers += resolutions
    return questions, answers


def _asking(row: tuple[Any, ...]) -> tuple[Question, list[Resolution]]:
    source, number, due, text, subtype, kind, opens, closes, url, value, at, days, outcomes, resolved = row
    id, market = f"{source}/{number}", kind == "market"
    days = [] if days == [None] else days
    if market:
        snapshot = None if value is None else Snapshot(at=at, last_price=value)
        targets = (Target(id="yes", snapshot=snapshot),)
    else:
        targets = tuple(Target(id=day, resolves_at=day) for day in days) or (Target(id="none"),)
    question = Question(
        id=id,
        source=source,
        kind=kind,
        subtype=subtype,
        text=text,
        due=due,
        targets=targets,
        opens_at=opens[:10] if opens else None,
        closes_at=closes[:10] if closes else None,
        url=url or "",
        last_value=None if market or value is None else LastValue(value=value, at=at),
    )
    resolutions = [
        Resolution(question_id=id, target_id="yes" if market else day, due=due, outcome=int(outcome), resolved_at=day)
        for day, outcome, resolved_on in zip(days, outcomes, resolved, strict=False)
        if resolved_on and outcome in (0.0, 1.0)
    ]
    return question, resolutions


def read_aibq2() -> tuple[list[Question], list[Resolution]]:
    """Return 113 questions of a Metaculus tournament; used for the shipped numbers only, as they have no prices."""
    columns = "id, question, forecast_due_date, resolution_date, resolved_to, url"
    sql = f"select {columns} from '{DATA}/aibq2_questions.parquet' order by id"
    questions, answers = [], []
    for id, text, due, end, outcome, url in duckdb.connect().execute(sql).fetchall():
        target = Target(id="yes")
        questions.append(
            Question(id=f"aibq2/{id}", source="metaculus", subtype="market", text=text, due=due, targets=(target,),
                     closes_at=end, url=url or "")
        )  # fmt: skip
        answers.append(
            Resolution(question_id=f"aibq2/{id}", target_id="yes", due=due, outcome=int(outcome), resolved_at=end)
        )
    return questions, answers


@dataclass
class Rows:
    """One row per resolved market target, with the forecast of each method."""

    question: np.ndarray
    due: np.ndarray
    source: np.ndarray
    new: np.ndarray
    """Whether it is asked for the first time."""
    outcome: np.ndarray
    price: np.ndarray
    forecasts: dict[str, np.ndarray]

    def loss(self, name: str) -> np.ndarray:
        """Return the Brier score of every row."""
        return (self.forecasts[name] - self.outcome) ** 2

    def take(self, rows: np.ndarray) -> "Rows":
        """Return some of the rows."""
        columns = {k: v[rows] for k, v in vars(self).items() if k != "forecasts"}
        return Rows(**columns, forecasts={k: v[rows] for k, v in self.forecasts.items()})


OURS, LEVEL, BASE, BASE_H, MARKET_PRICE = (
    "outside",
    "level alone",
    "base rate",
    "base rate by horizon",
    "crowd (not shown)",
)
REMEMBERS, FREQUENCY = "outside, earlier prices kept", "past frequency of the source"


def forecast(bank: PastQuestions, questions: Sequence[Question]) -> np.ndarray:
    view, past = OutsideView(), Past.of_table(bank)

    async def all_of_them() -> list[float]:
        return [(await view.forecast(q, Context(as_of=q.as_of, past=past))).p["yes"] for q in questions]

    return np.array(asyncio.run(all_of_them()))


def level_alone(bank: PastQuestions, questions: Sequence[Question]) -> np.ndarray:
    """Forecast by the same fit without columns of wording, words or horizon."""
    day = questions[0].due.date()
    past = bank.before(day)
    table = table_of(past.take(past.kind == "market"), day)
    model, _ = fit_text(replace(table, named=np.zeros_like(table.named)), 1e6)
    return sigmoid([model.level.at(q.source, day) for q in questions])


def frequency(bank: PastQuestions, questions: Sequence[Question]) -> np.ndarray:
    """Forecast (yes + 1) / (all + 2) among the outcomes of the source known before."""
    past = bank.before(questions[0].due.date())
    resolved = past.take((past.kind == "market") & ~np.isnan(past.outcome))
    return np.array(
        [(np.sum(y) + 1) / (len(y) + 2) for y in (resolved.outcome[resolved.source == q.source] for q in questions)]
    )


def counted_rates(past: Past) -> BaseRates:
    """Return the base rates of the answers."""
    assert isinstance(past.rates, BaseRates)
    return past.rates


def score(questions: list[Question], answers: list[Resolution], *, remembering: bool = True) -> Rows:
    """Forecast every round of market questions from past questions that do not include its own."""
    past = past_of(questions, answers)
    bank = past.table
    outcomes = {(r.question_id, r.due): r.outcome for r in answers if r.target_id == "yes"}
    by_source, by_horizon = (replace(counted_rates(past), by_horizon=h) for h in (False, True))
    parts: list[Rows] = []
    for due in sorted({q.due for q in questions if q.kind == "market" and q.due.date().isoformat() >= FIRST}):
        markets = [q for q in questions if q.kind == "market" and q.due == due and (q.id, q.due) in outcomes]
        if not markets:
            continue
        own = np.isin(bank.id, [q.id for q in questions if q.due == due and q.kind == "market"])
        others = bank.take(~own | (bank.kind == "dataset"))
        before = set(bank.id[bank.due < np.datetime64(due.date())].tolist())
        rates = [[r.rate(q, q.targets[0], q.as_of) or 0.5 for q in markets] for r in (by_source, by_horizon)]
        price = np.array([np.nan if q.targets[0].snapshot is None else q.targets[0].snapshot.price for q in markets])
        forecasts = {
            OURS: forecast(others, markets),
            LEVEL: level_alone(others, markets),
            FREQUENCY: frequency(bank, markets),
            BASE: np.array(rates[0]),
            BASE_H: np.array(rates[1]),
            MARKET_PRICE: price,
        }
        if remembering:
            forecasts[REMEMBERS] = forecast(bank, markets)
        parts.append(
            Rows(
                question=np.array([q.id for q in markets]),
                due=np.array([q.due.date().isoformat() for q in markets]),
                source=np.array([q.source for q in markets]),
                new=np.array([q.id not in before for q in markets]),
                outcome=np.array([outcomes[q.id, q.due] for q in markets], np.float64),
                price=price,
                forecasts=forecasts,
            )
        )
        print(due.date(), len(markets), {k: round(float(parts[-1].loss(k).mean()), 4) for k in forecasts}, flush=True)
    joined = {k: np.concatenate([getattr(p, k) for p in parts]) for k in vars(parts[0]) if k != "forecasts"}
    return Rows(**joined, forecasts={k: np.concatenate([p.forecasts[k] for p in parts]) for k in parts[0].forecasts})


def lead(rows: Rows, name: str, reference: str, *, crossed: bool) -> str:
    """Return the Brier score of `name` minus that of `reference`, with a 95 % interval."""
    design = ResamplingDesign(cluster=rows.question, crossed=rows.due if crossed else None)
    comparison = compare_paired(rows.loss(name), rows.loss(reference), design, resampling=RESAMPLING)
    return f"{comparison.diff:+.4f} [{comparison.low:+.4f}, {comparison.high:+.4f}]"


def main_table(title: str, rows: Rows) -> list[str]:
    lines = [f"### {title}", "", f"{_told(rows)}", ""]
    lines += [
        "| method | Brier | mean p | minus base rate, by question | by question × due date |",
        "|---|---|---|---|---|",
    ]
    for name in sorted(rows.forecasts, key=lambda n: rows.loss(n).mean()):
        row = ["", ""] if name == BASE else [lead(rows, name, BASE, crossed=c) for c in (False, True)]
        p = rows.forecasts[name].mean()
        lines.append(f"| {name} | {rows.loss(name).mean():.4f} | {p:.3f} | {row[0]} | {row[1]} |")
    return [*lines, ""]


def parts_table(title: str, rows: Rows) -> list[str]:
    """Return a table of ours against the base rate, by source and for questions never asked before."""
    lines = [f"### {title}", "", "| part | n | questions | yes | outside | base rate | difference |"]
    lines.append("|---|---|---|---|---|---|---|")
    masks = {str(s): rows.source == s for s in np.unique(rows.source)}
    masks |= {"first asked": rows.new, "asked before": ~rows.new}
    for name, mask in masks.items():
        part = rows.take(mask)
        if len(np.unique(part.question)) < 2:
            continue
        row = f"{len(part.outcome)} | {len(np.unique(part.question))} | {part.outcome.mean():.2f}"
        scores = f"{part.loss(OURS).mean():.4f} | {part.loss(BASE).mean():.4f}"
        lines.append(f"| {name} | {row} | {scores} | {lead(part, OURS, BASE, crossed=True)} |")
    lines.append(f"| all, against level alone | | | | {rows.loss(OURS).mean():.4f} | {rows.loss(LEVEL).mean():.4f} | "
                 f"{lead(rows, OURS, LEVEL, crossed=True)} |")  # fmt: skip
    return [*lines, ""]


def _told(rows: Rows) -> str:
    n, questions, rounds = len(rows.outcome), len(np.unique(rows.question)), len(np.unique(rows.due))
    return f"{n} resolved targets of {questions} questions in {rounds} rounds, {rows.outcome.mean():.1%} yes."


def evenly_drawn(questions: list[Question], since: str, seed: int) -> list[Question]:
    """Return the same rounds, thinned from a date on as if drawn evenly over prices."""
    rng = np.random.default_rng(seed)
    drawn: list[Question] = []
    for due in sorted({q.due for q in questions}):
        of_round = [q for q in questions if q.due == due]
        markets = [q for q in of_round if q.kind == "market" and q.targets[0].snapshot is not None]
        if due.date().isoformat() < since:
            drawn += of_round
            continue
        price = np.array([q.targets[0].snapshot.price for q in markets])
        bin = np.clip(np.searchsorted(BINS, price, side="right") - 1, 0, len(EVENLY) - 1)
        chance = np.minimum(1, EVENLY[bin] * len(markets) / 2 / np.bincount(bin, minlength=len(EVENLY))[bin])
        drawn += [q for q, keep in zip(markets, rng.random(len(markets)) < chance, strict=True) if keep]
    return drawn


def stress_table(questions: list[Question], answers: list[Resolution], since: str = "2025-08-03") -> list[str]:
    lines = [f"### Choosing rounds, drawn evenly over prices from {since} on", ""]
    lines += [
        "| draw | n | yes | outside | level alone | base rate | outside minus base rate |",
        "|---|---|---|---|---|---|---|",
    ]
    for seed in range(3):
        rows = score(evenly_drawn(questions, since, seed), answers, remembering=False)
        rows = rows.take(rows.due >= since)
        scores = " | ".join(f"{rows.loss(name).mean():.4f}" for name in (OURS, LEVEL, BASE))
        text = f"{len(rows.outcome)} | {rows.outcome.mean():.2f}"
        lines.append(f"| {seed} | {text} | {scores} | {lead(rows, OURS, BASE, crossed=True)} |")
    return [*lines, ""]


def dataset_table(questions: list[Question], answers: list[Resolution]) -> list[str]:
    """Return a table of rates of data-set questions with and without the size of the last value, past-only."""
    bank = past_of([q for q in questions if q.kind == "dataset"], answers).table
    outcomes = {(r.question_id, r.due, r.target_id): r.outcome for r in answers}
    rates = counted_rates(past_of(questions, answers))
    losses: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for due in sorted({q.due for q in questions if q.due.date().isoformat() >= FIRST}):
        table = rate_table(bank.before(due.date()))
        part = "choosing" if due.date().isoformat() < SPLIT else "later"
        for q in (q for q in questions if q.due == due and q.kind == "dataset"):
            for target in q.targets:
                outcome = outcomes.get((q.id, q.due, target.id))
                ours, theirs = table.rate(kind_of(q, target)), rates.rate(q, target, q.as_of)
                if outcome is not None and ours is not None and theirs is not None:
                    pair = ((ours - outcome) ** 2, (theirs - outcome) ** 2)
                    losses.setdefault((part, f"{q.source} {q.subtype}"), []).append(pair)
    lines = ["### Data-set questions: rates by size of the last value", ""]
    lines += ["| rounds | template | n | outside | base rate by horizon |", "|---|---|---|---|---|"]
    for (part, name), pairs in sorted(losses.items()):
        ours, theirs = np.mean(pairs, axis=0)
        lines.append(f"| {part} | {name} | {len(pairs)} | {ours:.4f} | {theirs:.4f} |")
    return [*lines, ""]


def ship(questions: list[Question], answers: list[Resolution], rows: Rows) -> str:
    """Fit on everything, and write the numbers and the report."""
    more, outcomes = read_aibq2()
    bank = past_of([*questions, *more], [*answers, *outcomes]).table
    last = max(bank.known_on[~np.isnat(bank.known_on)].max(), bank.due.max()).astype("M8[D]").item()
    began = time.perf_counter()
    model = fit_outside(bank, AsOf.day(last + timedelta(days=1)))
    took = time.perf_counter() - began
    later = rows.take(rows.due >= SPLIT)
    scores = {
        "protocol": "each round forecast from outcomes and prices known before its due date; rounds from "
        f"{SPLIT} on were scored after the design was fixed",
        "n": len(later.outcome),
        "questions": len(np.unique(later.question)),
        "brier": {name: round(float(later.loss(name).mean()), 5) for name in later.forecasts},
        "minus base rate, by question": lead(later, OURS, BASE, crossed=False),
        "minus base rate, by question and due date": lead(later, OURS, BASE, crossed=True),
    }
    numbers, report = to_files(model, scores)
    (SHIPPED / NUMBERS).write_bytes(numbers)
    (SHIPPED / REPORT).write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    record = model.record
    return (
        f"The shipped numbers ({len(numbers) / 1000:.0f} kB) were fitted in {took:.1f} s on {record.askings} askings "
        f"of {record.questions} market questions ({record.prices} prices, {record.outcomes} outcomes) and "
        f"{record.dataset_outcomes} data-set outcomes known before {record.as_of}."
    )


def speed(questions: list[Question]) -> str:
    view, markets = OutsideView(), [q for q in questions if q.kind == "market"][-200:]
    live = [(q, Context(as_of=q.as_of_in("live"))) for q in markets]
    asyncio.run(view.forecast(*live[0]))
    began = time.perf_counter()
    for q, context in live:
        asyncio.run(view.forecast(q, context))
    return f"A forecast takes {(time.perf_counter() - began) / len(live) * 1000:.1f} ms."


def main() -> None:
    questions, answers = read_rounds()
    early = [q for q in questions if q.due.date() < date.fromisoformat(SPLIT)]
    if "--choosing" in sys.argv:
        rows = score(early, answers)
        print("\n".join(main_table("Choosing rounds", rows) + parts_table("By part", rows)))
        return
    rows = score(questions, answers)
    first, later = rows.take(rows.due < SPLIT), rows.take(rows.due >= SPLIT)
    lines = main_table(f"Confirming: rounds from {SPLIT} on", later)
    lines += parts_table("Confirming rounds, by part", later)
    lines += main_table(f"Choosing: rounds before {SPLIT}", first)
    lines += parts_table("Choosing rounds, by part", first)
    lines += stress_table(early, answers)
    lines += dataset_table(questions, answers)
    lines += [ship(questions, answers, rows), "", speed(questions), ""]
    print("\n".join(lines))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
