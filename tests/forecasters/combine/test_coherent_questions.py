"""Relations between targets that follow from a question's wording, and wordings from which none follows."""

import json
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from foretell.data.datasets.prophet_arena import read_events_csv
from foretell.forecasters.combine.claims import orders, read_claim
from foretell.forecasters.combine.coherence import coherent
from foretell.metrics import compare_paired
from foretell.questions.question import Question, Target

ASKED_ON = date(2025, 10, 26)


def question(*labels, text="How much?", **more):
    targets = tuple(Target(id=f"t{i}", label=label) for i, label in enumerate(labels))
    return Question(id="q", source="own", text=text, due=ASKED_ON.isoformat(), targets=targets, **more)


def line(*labels):
    """Return the labels from least to most likely, equal ones together; None if they are not one chain."""
    claims = {label: claim for label in labels if (claim := read_claim(label, ASKED_ON))}
    found_orders = orders(claims)
    if len(found_orders) != 1 or len(found_orders[0].names) != len(labels) or found_orders[0].rule == "nested":
        return None
    chain = found_orders[0]
    order = np.argsort(chain.level, kind="stable")
    return [chain.names[i] for i in (order[::-1] if all(chain.flipped) else order)]


@pytest.mark.parametrize(
    "labels",
    [
        ["Above 3.20", "Above 3.15", "Above 2.90"],
        ["$100,000 or above", "$99,750 or above"],
        ["More than 12 million", "More than 8 million", "More than 900 thousand"],
        ["at least 1.5m users", "at least 100k users", "at least 5 users"],
        [">= 4", "≥ 3.5"],
        ["CPI>4", "CPI>3.5"],
        ["85 or more", "50 or more"],
        ["8+ cuts", "4+ cuts"],
        ["fewer than 3", "fewer than 10"],
        ["10% or below", "12% or below"],
        ["above -1%", "above -5%"],
        ["Will it reach $170,000?", "Will it reach $140,000?"],
        ["Will it dip to $50,000?", "Will it dip to $90,000?"],
        ["by 2026-01-31", "by 2026-03-01"],
        ["Before February 2025", "Before March 2025", "Before January 2026"],
        ["Out by November 30?", "Out by December 31?", "Out by March 31, 2026?"],
        ["before 5 May 2027", "before 6 May 2027"],
        ["by the end of 2030", "by the end of 2050"],
        ["Clash before April?", "Clash before July?"],
        ["7.0 or above by November 30", "7.0 or above by December 31"],
        ["above 5 by 2027", "above 4 by 2027"],
    ],
)
def test_labels_that_differ_in_one_strike_or_deadline_are_ordered(labels):
    assert line(*reversed(labels)) == labels


@pytest.mark.parametrize(
    "labels",
    [
        ["25% to 30%", "20% to 24.9%"],
        ["Between 16 and 20", "Between 21 and 25"],
        ["on June 30", "on December 31"],
        ["in 2025", "in 2026"],
        ["not above 3", "not above 4"],
        ["exactly above 3", "exactly above 4"],
        ["won't reach $5", "won't reach $6"],
        ["above $3", "above 4%"],
        ["by March 2026", "by March 15, 2026"],
        ["by 2027", "before 2028"],
        ["still champion by 2027", "still champion by 2028"],
        ["have increased by 2025-11-02", "have increased by 2025-12-02"],
        ["in the 30 days before 2025-11-02", "in the 30 days before 2025-12-02"],
        ["4 cuts", "5 cuts"],
        ["a 4% chance", "a 5% chance"],
        ["above 3 in Paris", "above 4 in Rome"],
        ["by February 30, 2026", "by March 30, 2026"],
        ["hit $5,000", "hit $6,000"],
        ["version above 3.5.1", "version above 3.5.2"],
        ["Detroit", "A's"],
    ],
)
def test_other_labels_are_not_changed(labels):
    assert line(*labels) is None
    p = {"t0": 0.2, "t1": 0.9}
    result = coherent(question(*labels), p)
    assert (result.p, result.rule, result.gap, result.moved) == (p, "unchanged", 0, 0)


def test_both_sides_of_a_strike_are_in_one_order():
    q = question("Above 3.1", "3.1 or below", "Below 2.9", "At least 2.9")
    result = coherent(q, {"t0": 0.5, "t1": 0.7, "t2": 0.6, "t3": 0.2})
    # Chance to be above 3.1: 0.5 and 0.3; to be at least 2.9: 0.4 and 0.2. Both pairs are 0.4 and 0.3, in wrong order.
    assert result.p == pytest.approx({"t0": 0.35, "t1": 0.65, "t2": 0.65, "t3": 0.35})
    assert result.rule == "ladder"
    assert result.gap == pytest.approx(0.3)
    assert result.moved == pytest.approx(0.15)


def test_two_sides_that_may_both_come_true_are_two_orders():
    q = question("trades above $5 in May", "trades below $5 in May", "trades above $4 in May", "trades below $4 in May")
    p = {"t0": 0.8, "t1": 0.7, "t2": 0.6, "t3": 0.9}
    result = coherent(q, p)
    assert result.rules == ("ladder", "ladder")
    assert result.p == pytest.approx({"t0": 0.7, "t1": 0.8, "t2": 0.7, "t3": 0.8})
    single = coherent(question("trades above $5 in May", "trades below $5 in May"), {"t0": 0.8, "t1": 0.7})
    assert single.rule == "unchanged"


def test_strikes_and_deadlines_together_are_nested():
    q = question("reach $5 by 2027", "reach $6 by 2026", "reach $4 by 2028", "reach $9 by 2028")
    p = {"t0": 0.4, "t1": 0.6, "t2": 0.3, "t3": 0.5}
    for distance in ("squared", "log"):
        result = coherent(q, p, distance=distance)
        assert result.rule == "nested"
        assert result.p["t1"] <= result.p["t0"] + 1e-12
        assert result.p["t0"] <= result.p["t2"] + 1e-12
        assert result.p["t3"] <= result.p["t2"] + 1e-12
    assert result.gap == pytest.approx(0.2)
    assert coherent(q, {"t0": 0.4, "t1": 0.1, "t2": 0.6, "t3": 0.2}).moved == 0


def test_exclusive_targets_sum_to_one_or_at_most_one_if_some_are_missing():
    q = question("a", "b", "c", exclusivity="exactly one")
    whole = coherent(q, {"t0": 0.5, "t1": 0.5, "t2": 0.3})
    assert (whole.rule, round(sum(whole.p.values()), 12)) == ("exactly one", 1)
    assert whole.gap == pytest.approx(0.3)
    part = coherent(q, {"t0": 0.5, "t1": 0.3})
    assert (part.rule, part.p) == ("at most one", {"t0": 0.5, "t1": 0.3})
    assert coherent(q, {"t0": 0.8, "t1": 0.4}).p == pytest.approx({"t0": 0.7, "t1": 0.3})
    assert coherent(q, {}).rule == "unchanged"


def test_wording_of_the_question_decides_whether_deadlines_are_ordered():
    labels = ("Before March 2026", "Before June 2026")
    p = {"t0": 0.6, "t1": 0.2}
    assert coherent(question(*labels, text="Will the law pass?"), p).rule == "by date"
    assert coherent(question(*labels, text="Will she still be in office?"), p).rule == "unchanged"
    assert coherent(question(*labels, text="Will they not agree?"), p).rule == "unchanged"


def test_deadlines_of_an_event_are_ordered_but_horizons_of_a_series_are_not():
    def horizons(text):
        days = ("2025-11-02", "2025-12-02")
        targets = tuple(Target(id=day, label=text, resolves_at=day) for day in days)
        return Question(id="q", source="s", text=text, due="2025-10-26", targets=targets, kind="dataset")

    p = {"2025-11-02": 0.6, "2025-12-02": 0.2}
    rise = horizons("Will the yield have increased by each resolution date listed below?")
    assert coherent(rise, p).rule == "unchanged"
    event = horizons("Will a vaccine have been developed by each resolution date listed below?")
    assert coherent(event, p).p == pytest.approx(dict.fromkeys(p, 0.4))
    assert coherent(horizons("Above 5"), p).rule == "unchanged"


def test_strikes_of_different_days_are_not_compared():
    targets = (
        Target(id="a", label="above 3", resolves_at="2025-11-02"),
        Target(id="b", label="above 4", resolves_at="2025-12-02"),
        Target(id="c", label="above 4", resolves_at="2025-11-02"),
    )
    q = Question(id="q", source="s", text="Level?", due="2025-10-26", targets=targets)
    result = coherent(q, {"a": 0.2, "b": 0.9, "c": 0.4})
    assert result.p == pytest.approx({"a": 0.3, "b": 0.9, "c": 0.3})


def test_day_without_a_year_is_the_next_one():
    def day(text, asked):
        (slot,) = read_claim(text, asked).slots
        return slot.day

    assert day("by June 30", date(2025, 12, 7)) == date(2026, 6, 30)
    assert day("by November 30", date(2025, 12, 7)) == date(2025, 11, 30)
    assert day("before April", date(2025, 3, 2)) == date(2025, 4, 1)


def test_unknown_targets_and_invalid_numbers_raise_errors():
    q = question("above 3", "above 4")
    with pytest.raises(ValueError, match="no target 'other'"):
        coherent(q, {"other": 0.5})
    with pytest.raises(ValueError, match="outside"):
        coherent(q, {"t0": 1.5})
    with pytest.raises(ValueError, match="neither squared nor log"):
        coherent(q, {"t0": 0.5}, distance="kl")  # pyright: ignore[reportArgumentType]


@pytest.mark.shared_data
def test_coherent_ladders_of_prophet_arena_have_lower_error(shared_data):
    """42 events; six of them are ladders, four with prices out of order."""
    events_csv = read_events_csv(shared_data / "prophet_arena" / "subset_100_half.csv")
    outcome = {(r.question_id, r.target_id): r.outcome for r in events_csv.resolutions}
    before, after, event = [], [], []
    for q in events_csv.questions:
        p = {t.id: t.snapshot.price for t in q.targets if t.snapshot and t.snapshot.price is not None}
        result = coherent(q, p)
        assert result.rule in ("ladder", "unchanged")
        if result.rule == "ladder":
            event += [q.id] * len(p)
            before += [(p[t] - outcome[q.id, t]) ** 2 for t in p]
            after += [(result.p[t] - outcome[q.id, t]) ** 2 for t in p]
    assert (len(set(event)), len(event)) == (6, 188)
    assert np.mean(before) == pytest.approx(0.01949, abs=1e-5)
    assert np.mean(after) == pytest.approx(0.01844, abs=1e-5)
    assert compare_paired(after, before, event).diff < 0


@pytest.mark.shared_data
def test_coherence_does_not_raise_the_error_of_any_kalshi_event(shared_data):
    """65 Kalshi events with last prices: nine ladders, one set of deadlines, 27 of at most one."""
    rules: dict[str, int] = {}
    for event in json.loads((shared_data / "kalshi" / "events_old_schema.json").read_text()):
        markets = [m for m in event["markets"] if m["result"] in ("yes", "no") and m.get("last_price") is not None]
        targets = tuple(Target(id=m["ticker"], label=m.get("yes_sub_title") or m["title"]) for m in markets)
        day = min(m["open_time"] for m in markets)[:10]
        q = Question(
            id=event["event_ticker"],
            source="kalshi",
            text=event["title"],
            due=day,
            targets=targets,
            exclusivity="at most one" if event["mutually_exclusive"] else "independent",
        )
        p = {m["ticker"]: m["last_price"] / 100 for m in markets}
        y = {m["ticker"]: float(m["result"] == "yes") for m in markets}
        result = coherent(q, p)
        rules[result.rule] = rules.get(result.rule, 0) + 1
        error = {name: sum((values[t] - y[t]) ** 2 for t in p) for name, values in (("before", p), ("after", result.p))}
        assert error["after"] <= error["before"] + 1e-12
    assert rules == {"unchanged": 28, "at most one": 27, "ladder": 9, "by date": 1}


def claim_of(source, text, due):
    claim = read_claim(text, date.fromisoformat(due))
    return claim and replace(claim, template=f"{source}\0{claim.template}", bare=False)


def obeys(order, outcome):
    if order.rule == "nested":
        return all(outcome[first] <= outcome[second] for first, second in order.implications)
    line = sorted(zip(order.level, order.flipped, order.names, strict=True))
    truth = [1 - outcome[name] if flipped else outcome[name] for _, flipped, name in line]
    return truth == sorted(truth)


@pytest.mark.shared_data
def test_orders_of_real_market_questions_are_obeyed_by_their_outcomes(shared_data):
    """Of 2,947 market askings, 28 sets differ in a strike or a deadline alone; resolved ones obey the order."""
    import duckdb

    rows = duckdb.sql(
        f"""select q.forecast_due_date, q.source || '/' || q.question_id, q.source, q.question, r.outcome
        from '{shared_data}/tables/questions.parquet' q left join '{shared_data}/tables/resolutions.parquet' r
            on r.forecast_due_date = q.forecast_due_date and r.source = q.source and r.question_id = q.question_id
            and r.resolved
        where q.source_type = 'market' order by all"""
    ).fetchall()
    n_orders, n_resolved = 0, 0
    for day in sorted({row[0] for row in rows}):
        here = [row for row in rows if row[0] == day]
        claims = {i: claim for d, i, s, t, _ in here if (claim := claim_of(s, t, d))}
        n_orders += len(orders(claims))
        outcome = {i: y for _, i, _, _, y in here if y is not None}
        resolved = orders({i: claim for i, claim in claims.items() if i in outcome})
        n_resolved += len(resolved)
        assert all(obeys(order, outcome) for order in resolved), day
    assert (n_orders, n_resolved) == (28, 15)
