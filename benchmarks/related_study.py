"""Do forecasts of related questions get better when they are made coherent?

Finds related questions among the market questions of each round of ForecastBench, by the rules of
`foretell.standing.related`, and makes the published forecasts of every method coherent. Nothing is fitted, so all
forecasts are out of time. Compares Brier and log score before and after, paired, with the groups resampled.

    python benchmarks/related_study.py    # about a minute; reads $FORETELL_DATA (default: ../shared/data)
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from foretell.forecasters.combine.claims import Order
from foretell.forecasters.combine.coherence import Distance, question_orders
from foretell.forecasters.combine.relations import connected, reconciled, relation_gap
from foretell.metrics import Resampling, compare_paired
from foretell.metrics.transforms import logit
from foretell.questions.question import Question, Target
from foretell.scoring.verdict import Verdict
from foretell.standing.record import StandingQuestion
from foretell.standing.related import RelatedGroup, related_groups

DATA = Path(os.environ.get("FORETELL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "tables"
LEAST_P = 0.001
"""Probability from which the log score is counted, as in `foretell score`."""
RESAMPLING = Resampling(draws=5000, seed=1)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One forecast of one question in a group, before and after."""

    method: str
    cluster: str
    outcome: float
    p: float
    even: float
    """Coherent, all forecasts being as sure."""
    squared: float
    """The same by the squared distance."""
    weighted: float
    """Coherent, weighted by how far the trials of the method agree; the same as `even` without trials."""
    broken: bool
    """Whether the forecasts of the group contradicted each other."""


def main() -> None:
    """Print the tables."""
    questions = _questions()
    outcomes: dict[tuple[str, str], float] = {
        (day, id): y
        for day, id, y in duckdb.sql(
            f"select forecast_due_date, source || '/' || question_id, outcome from '{DATA}/resolutions.parquet' "
            "where resolved and outcome in (0, 1)"
        ).fetchall()
    }
    groups = {day: related_groups(list(asked.values())) for day, asked in questions.items()}
    _print_groups(groups, outcomes)
    _print_scores("Related market questions", list(_rows(groups, outcomes)))
    _print_scores("Horizons of one event in data-set questions", list(_horizons()))


def _print_scores(title: str, rows: Sequence[Row]) -> None:
    print(f"\n## {title}")
    print(
        f"\n{len(rows)} forecasts of {len({row.method for row in rows})} methods in "
        f"{len({row.cluster for row in rows})} groups; {np.mean([row.broken for row in rows]):.0%} in groups that "
        "contradict themselves\n"
    )
    _print_verdicts(rows)
    print("\nOnly groups that contradict themselves:\n")
    _print_verdicts([row for row in rows if row.broken])


def _print_verdicts(rows: Sequence[Row]) -> None:
    if not rows:
        print("- none")
        return
    outcome = np.array([row.outcome for row in rows])
    cluster = np.array([row.cluster for row in rows])
    before = np.array([row.p for row in rows])
    for way in ("even", "squared", "weighted"):
        after = np.array([getattr(row, way) for row in rows])
        if way == "weighted" and all(row.weighted == row.even for row in rows):
            continue
        for metric, score in (("brier", _brier), ("log_score", _log)):
            compared = compare_paired(score(after, outcome), score(before, outcome), cluster, resampling=RESAMPLING)
            names = f"coherent ({way})", "as stated"
            verdict = Verdict.of(compared, names, metric, level=RESAMPLING.level, unit="group")
            print(f"- {verdict.sentence}")
            print(f"  {verdict.diff:+.5f} [{verdict.low:+.5f}, {verdict.high:+.5f}], {verdict.n_clusters} groups")


def _brier(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (p - y) ** 2


def _log(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(LEAST_P, np.where(y == 1, p, 1 - p)))


def _questions() -> Mapping[str, Mapping[str, StandingQuestion]]:
    rows = duckdb.sql(
        "select forecast_due_date, source || '/' || question_id, source, question, "
        f"coalesce(resolution_criteria, ''), market_close from '{DATA}/questions.parquet' "
        "where source_type = 'market' order by all"
    ).fetchall()
    asked: dict[str, dict[str, StandingQuestion]] = defaultdict(dict)
    for day, id, source, text, criteria, closes in rows:
        close = str(closes)[:10] if closes and str(closes)[:4].isdigit() else None
        question = Question(id=id, source=source, text=text, criteria=criteria, due=day, closes_at=close)
        # Ids of standing questions have no colon.
        asked[day][id] = StandingQuestion(id=id, question=question, opened_at=question.due)
    return asked


def _print_groups(groups: Mapping[str, Sequence[RelatedGroup]], outcomes: Mapping[tuple[str, str], float]) -> None:
    known, obeyed, kinds = 0, 0, defaultdict(int)
    for day, found in groups.items():
        for group in found:
            kinds[group.kind] += 1
            truth = {id: outcomes[day, id] for id in group.claims if (day, id) in outcomes}
            if len(truth) == len(group.claims):
                known += 1
                obeyed += relation_gap(group.relation, truth) == 0
    counts = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    print(
        f"{sum(kinds.values())} groups in {len(groups)} rounds: {counts}. "
        f"Of {known} with all outcomes, {obeyed} obey them."
    )


def _rows(groups: Mapping[str, Sequence[RelatedGroup]], outcomes: Mapping[tuple[str, str], float]) -> Iterator[Row]:
    forecasts: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    wanted = sorted({(day, id) for day, found in groups.items() for group in found for id in group.claims})
    duckdb.sql("create or replace temp table wanted (day varchar, id varchar)")
    duckdb.executemany("insert into wanted values (?, ?)", wanted)
    query = (
        "select forecast_due_date, method, source || '/' || question_id, probability from '{}' f join wanted w "
        "on w.day = f.forecast_due_date and w.id = f.source || '/' || f.question_id "
        "where not imputed and probability between 0 and 1"
    )
    for day, method, id, p in duckdb.sql(query.format(DATA / "forecasts.parquet")).fetchall():
        forecasts[day, method][id] = p
    spread: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    trials = query.replace("method", "config").replace("not imputed and ", "").format(DATA / "trials.parquet")
    for day, config, id, p in duckdb.sql(trials).fetchall():
        spread[day, f"blf:{config}", id].append(p)
    for (day, method), p in sorted(forecasts.items()):
        relations = [group.relation for group in groups[day] if set(group.claims) <= p.keys()]
        for part in connected(relations):
            names = sorted({name for relation in part for name in relation.names})
            if not all((day, name) in outcomes for name in names):
                continue
            own = {name: p[name] for name in names}
            weight = _weights({name: spread.get((day, method, name), []) for name in names})
            found = {name: reconciled(own, part, w, distance=distance).p for name, w, distance in _ways(weight)}
            broken = max(relation_gap(relation, own) for relation in part) > 1e-9
            for name in names:
                made = {way: q[name] for way, q in found.items()}
                yield Row(
                    method=method,
                    cluster=" ".join(names),
                    outcome=outcomes[day, name],
                    p=own[name],
                    broken=broken,
                    **made,
                )


def _horizons() -> Iterator[Row]:
    """Yield the forecasts of data-set questions on whether something happens by each of several days."""
    rows = duckdb.sql(
        "select q.forecast_due_date, q.source || '/' || q.question_id, q.source, q.question, r.resolution_date, "
        "r.outcome, f.method, f.probability "
        f"from '{DATA}/questions.parquet' q join '{DATA}/resolutions.parquet' r using "
        f"(forecast_due_date, source, question_id) join '{DATA}/forecasts.parquet' f using "
        "(forecast_due_date, source, question_id, resolution_date) where q.source_type = 'dataset' and r.resolved "
        "and r.outcome in (0, 1) and not f.imputed and f.probability between 0 and 1 "
        "and q.question like '%by {resolution_date}%' order by all"
    ).fetchall()
    stated: dict[tuple[str, str, str, str, str], dict[str, tuple[float, float]]] = defaultdict(dict)
    for day, id, source, text, horizon, y, method, p in rows:
        stated[day, id, source, text, method][str(horizon)[:10]] = (p, y)
    orders: dict[tuple[str, str, str], Sequence[Order]] = {}
    for (day, id, source, text, method), answers in stated.items():
        key = (day, id, " ".join(answers))
        if key not in orders:
            # The example after the question repeats it with a day.
            wording = text.partition("\n")[0]
            targets = [
                Target(id=end, label=wording.replace("{resolution_date}", end), resolves_at=end) for end in answers
            ]
            question = Question(id=id, source=source, text="When?", due=day, targets=targets, kind="dataset")
            orders[key] = question_orders(question)
        for order in orders[key]:
            own = {name: answers[name][0] for name in order.names}
            found = {name: reconciled(own, [order], None, distance=distance).p for name, _, distance in _ways(None)}
            broken = relation_gap(order, own) > 1e-9
            for name in order.names:
                made = {way: q[name] for way, q in found.items()}
                yield Row(method=method, cluster=id, outcome=answers[name][1], p=own[name], broken=broken, **made)


def _ways(weight: Mapping[str, float] | None) -> list[tuple[str, Mapping[str, float] | None, Distance]]:
    return [("even", None, "log"), ("squared", None, "squared"), ("weighted", weight, "log")]


def _weights(trials: Mapping[str, Sequence[float]]) -> dict[str, float] | None:
    """Return one over the variance of the mean of the trials in log-odds; None without several trials."""
    if any(len(values) < 2 for values in trials.values()):
        return None
    # The mean variance is added, because that of five trials is itself uncertain.
    variance = {name: float(np.var(logit(values), ddof=1)) for name, values in trials.items()}
    typical = max(0.05, float(np.mean(list(variance.values()))))
    return {name: 2 * len(trials[name]) / (value + typical) for name, value in variance.items()}


if __name__ == "__main__":
    main()
