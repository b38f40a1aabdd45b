"""How well equal questions are told from related ones, and how a random walk predicts prices: reports/asking.md.

Needs the public benchmark data in the folder FORETELL_DATA.
"""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np

from foretell.forecasters.base_rates.same_question import QuestionSense, compare, sense
from foretell.forecasters.base_rates.wording import mentions
from foretell.forecasters.series.typed_question import AskedSpan, PriceQuestion, price_answer

DATA = Path(os.environ.get("FORETELL_DATA") or Path(__file__).parents[2] / "shared" / "data")


class Asked(NamedTuple):
    """A question of a platform."""

    source: str
    id: str
    text: str
    due: date
    closes: date | None

    @property
    def sense(self) -> QuestionSense:
        """Its parsed parts."""
        return sense(self.text, self.due, self.closes)


def day(text: str | None) -> date | None:
    try:
        return date.fromisoformat((text or "")[:10])
    except ValueError:
        return None


def markets() -> list[Asked]:
    rows = duckdb.sql(
        f"""select source, question_id, any_value(question), min(forecast_due_date), max(market_close)
        from '{DATA}/tables/questions.parquet' where source_type = 'market' group by 1, 2 order by 1, 2"""
    ).fetchall()
    return [Asked(s, i, q, date.fromisoformat(d), day(c)) for s, i, q, d, c in rows]


def held_out() -> list[Asked]:
    """Return questions that no rule was tuned on: Kalshi, Prophet Arena, Metaculus' quarterly bot contest."""
    askeds: list[Asked] = []
    for line in (DATA / "kalshi/resolved_markets.jsonl").read_text().splitlines():
        event = json.loads(line)["event"]
        closes = day(event["close_time"])
        askeds.append(Asked("kalshi", event["market_ticker"], _whole_title(event), closes or date(2026, 5, 1), closes))
    for title, closes in duckdb.sql(
        f"select title, close_time from read_csv('{DATA}/prophet_arena/subset_100_half.csv')"
    ).fetchall():
        askeds.append(Asked("prophet", title, title, day(str(closes)) or date(2025, 9, 1), day(str(closes))))
    for title in duckdb.sql(f"select question from '{DATA}/tables/aibq2_questions.parquet'").fetchall():
        askeds.append(Asked("aibq2", title[0], title[0], date(2025, 4, 1), None))
    return list({(question.source, question.id): question for question in askeds}.values())


def _whole_title(event: dict[str, str]) -> str:
    """Return the question as `ask` reads it: with what distinguishes a market from others of its event."""
    return f"{event['title']} {event['subtitle'] or event['market_ticker'].rpartition('-')[2]}"


def pairs(rows: Iterable[tuple[Asked, Asked]]) -> tuple[int, int, list[tuple[Asked, Asked]]]:
    """Return the number of pairs, the number of related ones, and the pairs that are the same."""
    n = related = 0
    same: list[tuple[Asked, Asked]] = []
    for one, other in rows:
        comparison = compare(one.sense, other.sense, max(one.due, other.due))
        n, related = n + 1, related + comparison.related
        if comparison.same:
            same.append((one, other))
    return n, related, same


def altered(rows: list[Asked]) -> dict[str, tuple[int, int]]:
    """Return, for each kind of altered question, how many there are and how many still count as the same."""
    counts = {name: [0, 0] for name in ("its day written otherwise", "a year later", "another number", "another name")}

    def count(name: str, question: Asked, text: str) -> None:
        if text != question.text:
            counts[name][0] += 1
            counts[name][1] += compare(question.sense, sense(text, question.due, question.closes), question.due).same

    names = [who for row in rows for who in row.sense.names]
    for n, question in enumerate(rows):
        text = question.text
        altered_text = re.sub(
            r"\b(January|February|March|April|June|July|August|September|October|November|December) (\d\d?),? (20\d\d)",
            lambda m: f"{m[2]} {m[1]} {m[3]}", text,
        )  # fmt: skip
        count("its day written otherwise", question, altered_text)
        years = [m for m in mentions(text, question.due) if re.search(r"20\d\d", text[m.begin : m.end])]
        if years:
            later = re.sub(r"\b20(\d\d)\b", lambda m: f"20{int(m[1]) + 1:02d}", text)
            count("a year later", question, later)
        number = re.search(r"(?<![\w.])\$?(\d+(?:,\d{3})*(?:\.\d+)?)(?=[k%\s?])", text)
        if number and not re.fullmatch(r"20\d\d|\d{1,2}", number[1]):
            count("another number", question, text.replace(number[1], "7" + number[1][1:] + "3"))
        if question.sense.names:
            who, stranger = " ".join(question.sense.names[0]), " ".join(names[(n * 7919) % len(names)])
            if who in text and who.lower() not in stranger.lower() and stranger.lower() not in text.lower():
                count("another name", question, text.replace(who, stranger))
    return {name: (n, same) for name, (n, same) in counts.items()}


def walk() -> list[tuple[str, int, float, float, float]]:
    """Return, by distance in spreads, the chance that a share passes a level: n, forecast, frequency, Brier index."""
    rows = duckdb.sql(f"select * from '{DATA}/tables/ts_yfinance_close.parquet'").df()
    columns = {name.lower(): name for name in rows.columns}
    ticker = columns.get("ticker") or columns.get("id") or columns.get("series_id") or rows.columns[0]
    when, value = columns.get("date", rows.columns[1]), rows.columns[-1]
    by_distance: dict[str, list[tuple[float, float]]] = {}
    for _, series in rows.groupby(ticker):
        values, days = series[value].to_numpy(float), series[when].to_numpy("M8[D]")
        for at in range(600, len(values) - 25, 25):
            last, ends = days[at].item(), days[at + 21].item()
            for away in (-0.1, -0.05, 0.0, 0.05, 0.1):
                for touch in (False, True):
                    if touch and away == 0:
                        continue
                    level = values[at] * (1 + away)
                    price_question = PriceQuestion(
                        name="x", symbol="x", threshold=level, above=away >= 0, touch=touch,
                        span=AskedSpan(first=last, last=ends),
                    )  # fmt: skip
                    ahead = values[at + 1 : at + 22] if touch else values[at + 21 : at + 22]
                    beyond = (ahead > level).any() if away >= 0 else (ahead < level).any()
                    name = f"{'touches' if touch else 'ends'} {'above' if away >= 0 else 'below'} {away:+.0%}"
                    p = price_answer(replace(price_question), values[: at + 1], last).p
                    by_distance.setdefault(name, []).append((p, float(beyond)))
    table: list[tuple[str, int, float, float, float]] = []
    for name, pairs in by_distance.items():
        p, y = np.array(pairs).T
        table.append((name, len(p), p.mean(), y.mean(), 100 * (1 - np.sqrt(np.mean((p - y) ** 2)))))
    return table


def main() -> None:
    """Print the tables."""
    rows = markets()
    n, related, same = pairs((a, b) for a, b in combinations(rows, 2) if a.source != b.source)
    print(f"across platforms: {n:,} pairs, {related:,} related, {len(same)} the same")
    for one, other in same:
        print(f"  {one.source}: {one.text[:90]} = {other.source}: {other.text[:90]}")
    n, related, same = pairs((a, b) for a, b in combinations(rows, 2) if a.source == b.source)
    print(f"on one platform: {n:,} pairs, {related:,} related, {len(same)} the same")
    for one, other in same:
        print(f"  {one.source}: {one.text[:90]} = {other.text[:90]}")
    others = held_out()
    n, related, same = pairs((a, b) for a in others for b in rows)
    print(f"held out against all: {n:,} pairs, {related:,} related, {len(same)} the same")
    for one, other in same:
        print(f"  {one.source}: {one.text[:90]} = {other.source}: {other.text[:90]}")
    n, related, same = pairs(combinations(others, 2))
    print(f"held out among themselves: {n:,} pairs, {related:,} related, {len(same)} the same")
    for one, other in same[:40]:
        print(f"  {one.source}: {one.text[:90]} = {other.source}: {other.text[:90]}")
    for name, (changed, still) in altered(rows).items():
        print(f"{name}: {changed} changed, {still} still the same")
    for line in walk():
        print("{}: n {:,}, said {:.3f}, came true {:.3f}, Brier index {:.2f}".format(*line))


if __name__ == "__main__":
    main()
