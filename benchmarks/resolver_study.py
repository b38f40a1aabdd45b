"""How often the resolver of standing questions is right, wrong and undecided: reports/resolver.md.

Series: real ForecastBench questions, real series. Texts: Prophet Arena events with their stored sources, and a scripted
reader that errs at a stated rate, because no model is asked; so this measures the checks, not a model. Metaculus:
recorded posts as they are, and with a resolution written into them. Needs the data in the folder FORETELL_DATA.
"""

import json
import os
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np

from foretell.data.datasets.forecastbench_tables import read_question_tables
from foretell.data.datasets.prophet_arena import read_events_csv
from foretell.data.datasets.question_set import ContextSource
from foretell.data.markets.listing import UnsupportedEvent
from foretell.data.markets.market import MarketRef
from foretell.data.payload import MalformedPayload, Payload
from foretell.data.series.series import Series
from foretell.data.settlements.kalshi import KalshiSettlements
from foretell.data.settlements.metaculus import MetaculusSettlements
from foretell.data.settlements.polymarket import PolymarketSettlements
from foretell.data.settlements.settlement import SettlementTarget
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.standing.question_checks import find_problems
from foretell.standing.readings import OutcomeDocument, QuestionTimes, SourceReading, fault_of
from foretell.standing.resolve import agreed, market_proposal, series_proposal

DATA = Path(os.environ.get("FORETELL_DATA") or Path(__file__).parents[2] / "shared" / "data")
SERIES = {"fred": ("ts_fred", "series", "value"), "yfinance": ("ts_yfinance_close", "ticker", "close")}
LAST_DAY = date(2026, 1, 30)
"""The last day that the stored series cover."""
NOW = datetime(2026, 2, 1, tzinfo=UTC)
ERROR_RATES = (0.05, 0.1, 0.2)
ROUNDS = 200


def read_series(table: str, key: str, value: str) -> dict[str, Series]:
    rows = (
        duckdb.connect()
        .execute(
            f"select {key} k, date::varchar d, {value} v from '{DATA}/tables/{table}.parquet' "
            f"where {value} is not null order by 1, 2"
        )
        .fetchnumpy()
    )
    keys, days = np.asarray(rows["k"]).astype(str), np.asarray(rows["d"]).astype(str).astype("M8[D]")
    values = np.asarray(rows["v"], dtype=np.float64)
    return {k: Series(id=k, days=days[keys == k], values=values[keys == k]) for k in np.unique(keys).tolist()}


def on_series() -> Counter[tuple[str, str]]:
    """Return counts by source for ForecastBench's questions about series, one for each resolution date."""
    series = {provider: read_series(*table) for provider, table in SERIES.items()}
    questions = read_question_tables(DATA / "tables")
    outcomes = {(known.question_id, known.due, known.target_id): known.outcome for known in questions.resolutions}
    counts = Counter[tuple[str, str]]()
    for question in questions.questions:
        ref = question.series
        values = None if ref is None else series.get(ref.provider, {}).get(ref.id)
        for target in question.targets:
            outcome = outcomes.get((question.id, question.due, target.id))
            late = target.resolves_at is None or target.resolves_at.date() > LAST_DAY
            if ref is None or values is None or outcome is None or late:
                continue
            proposal = series_proposal(
                replace(question, targets=(target,)), ref, values, datetime(2026, 2, 1, tzinfo=UTC)
            )
            right = proposal.outcome is not None and proposal.outcome[target.id] == outcome
            counts[question.source, "undecided" if proposal.outcome is None else "right" if right else "wrong"] += 1
    return counts


# Texts.


def result_text(question: Question, winner: str, day: date) -> str:
    return f"{question.text} ended on {day.day} {day:%B %Y}: the official result is {winner}."


class ErringReader:
    """Reads the result as it is, or errs in one of four ways."""

    def __init__(self, chance: random.Random, rate: float) -> None:
        self.chance, self.rate = chance, rate

    def read(
        self,
        name: str,
        question: Question,
        winner: str,
        results: list[OutcomeDocument],
        previews: list[OutcomeDocument],
        day: date,
    ) -> SourceReading:
        """Return a reading of the results."""
        losers = [target.id for target in question.targets if target.id != winner]
        true, quotes = winner, [(document, document.text) for document in results]
        if self.chance.random() < self.rate:
            true = self.chance.choice(losers)
            kind = self.chance.randrange(4)
            if kind == 0:  # It invents the sentence that it would need.
                quotes = [(document, result_text(question, true, day)) for document in results]
            elif kind == 1 and previews:  # It takes a prediction for a result.
                quotes = [(document, document.text[:200]) for document in previews[:2]]
            elif kind == 2:  # It reports an earlier event of the same kind.
                day = day - timedelta(days=30)
            # Otherwise it quotes the result and understands the opposite.
        return SourceReading(
            reader=name, status="decided", true=frozenset([true]), happened_on=day, quotes=tuple(quotes)
        )


RULES = ("one reading, no checks", "two that agree", "one reading, checked", "two that agree, checked")


def on_texts(rate: float) -> dict[str, Counter[str]]:
    """Return counts by rule, on events of which exactly one outcome came true."""
    events = read_events_csv(DATA / "prophet_arena" / "subset_100_half.csv")
    outcomes: dict[str, dict[str, int | None]] = {}
    for known in events.resolutions:
        outcomes.setdefault(known.question_id, {})[known.target_id] = known.outcome
    chance = random.Random(7)
    counts = {rule: Counter[str]() for rule in RULES}
    for asked in events.questions:
        true = [target for target, outcome in outcomes[asked.id].items() if outcome == 1]
        if len(true) != 1 or len(asked.targets) < 2:
            continue
        question = replace(asked, exclusivity="exactly one")
        closes = question.due + timedelta(days=2)
        times = QuestionTimes(opened=question.due, deadline=closes, closes=closes, now=closes + timedelta(days=1))
        day = question.due.date() + timedelta(days=1)

        def document(url: str, text: str, published: datetime | None, at: datetime = times.now) -> OutcomeDocument:
            return OutcomeDocument(url=url, title="", text=text, read_at=at, published=published)

        key = next(key for key in events.contexts if key[0] == asked.id)
        sources = [source for source in events.contexts[key] if isinstance(source, ContextSource) and source.summary]
        previews = [document(source.url, source.summary, None) for source in sources]
        said = result_text(question, true[0], day)
        hosts = ("first.example", "second.example")
        results = [document(f"https://{host}/result", said, closes) for host in hosts]
        for _ in range(ROUNDS):
            reader = ErringReader(chance, rate)
            pair = [reader.read(name, question, true[0], results, previews, day) for name in ("first", "second")]
            checked = agreed(question, pair, times).outcome
            proposed = (
                pair[0].true,
                pair[0].true if pair[0].true == pair[1].true else None,
                pair[0].true if not fault_of(pair[0], question, times) else None,
                None if checked is None else frozenset(id for id, value in checked.items() if value),
            )
            for rule, answer in zip(RULES, proposed, strict=True):
                word = "undecided" if answer is None else "right" if answer == frozenset(true) else "wrong"
                counts[rule][word] += 1
    return counts


# Metaculus.


def on_metaculus() -> Counter[tuple[str, str]]:
    """Return what is proposed for recorded yes-or-no posts, by the resolution that they hold or that is put in."""
    counts = Counter[tuple[str, str]]()
    source = MetaculusSettlements.__new__(MetaculusSettlements)
    now = datetime(2026, 11, 1, tzinfo=UTC)
    for path in sorted((DATA / "wire" / "services" / "metaculus").glob("post_*_binary_*.json")):
        body = json.loads(path.read_text(encoding="utf-8"))["body"]
        question = Question(
            id=f"metaculus/{body['id']}", source="metaculus", text=body["title"], due="2025-01-01",
            targets=(Target(id="yes"),),
        )  # fmt: skip
        wanted = SettlementTarget(
            question=question,
            target=question.targets[0],
            ref=MarketRef(platform="metaculus", id=str(body["id"])),
        )
        for word in ("as recorded", "yes", "no", "ambiguous", "annulled"):
            put = {} if word == "as recorded" else {"resolution": word, "status": "resolved"}
            changed = {**body, **({"status": "resolved", "resolved": True} if put else {})}
            changed["question"] = {**body["question"], **put}
            settled = source.outcome(Payload(url="", value=changed), wanted)
            rows = [] if settled is None else [
                Resolution(question_id=question.id, target_id="yes", outcome=settled.outcome, payoff=settled.payoff)
            ]  # fmt: skip
            proposal = market_proposal(question, rows, "metaculus", now)
            said = proposal.status if proposal.outcome is None else "yes" if proposal.outcome["yes"] else "no"
            counts[word, said] += 1
    return counts


# Kalshi and Polymarket, as recorded.


def on_recorded_markets() -> Counter[tuple[str, str, str]]:
    """Return what is proposed for recorded markets, by platform and by what the record says."""
    counts = Counter[tuple[str, str, str]]()
    kalshi, polymarket = (
        KalshiSettlements.__new__(KalshiSettlements),
        PolymarketSettlements.__new__(PolymarketSettlements),
    )
    events = json.loads((DATA / "kalshi" / "events_old_schema.json").read_text(encoding="utf-8"))
    rows = [("kalshi", kalshi, row, f"{row['status']} {row['result']}") for event in events for row in event["markets"]]
    for path in sorted((DATA / "wire" / "services" / "polymarket").glob("*gamma_market*.json")):
        body = json.loads(path.read_text(encoding="utf-8"))["body"]
        markets = body if isinstance(body, list) else [body]
        rows += [
            ("polymarket", polymarket, row, f"{'closed' if row.get('closed') else 'open'} {row.get('outcomePrices')}")
            for row in markets
        ]
    for platform, source, row, recorded in rows:
        question = Question(
            id=f"{platform}/x", source=platform, text="?", due="2020-01-01", targets=(Target(id="yes"),)
        )  # fmt: skip
        ref = MarketRef(platform=platform, id="x")
        wanted = SettlementTarget(question=question, target=question.targets[0], ref=ref)
        try:
            settled = source.outcome(Payload(url="", value=row), wanted)
        except (MalformedPayload, UnsupportedEvent) as error:
            counts[platform, recorded, f"unreadable: {str(error)[-60:]}"] += 1
            continue
        known = [] if settled is None else [
            Resolution(question_id=question.id, target_id="yes", outcome=settled.outcome, payoff=settled.payoff)
        ]  # fmt: skip
        proposal = market_proposal(question, known, platform, datetime(2026, 11, 1, tzinfo=UTC))
        said = proposal.status if proposal.outcome is None else "yes" if proposal.outcome["yes"] else "no"
        counts[platform, recorded, said] += 1
    return counts


# Notes on questions that cannot be resolved as they stand.


def on_wording() -> dict[str, Counter[str]]:
    """Return how many published questions get a note, by rule: with their criteria, and by their text alone."""
    published = {question.id: question for question in read_question_tables(DATA / "tables").questions}
    counts = {"whole": Counter[str](), "text alone": Counter[str]()}
    for question in published.values():
        # As if somebody had typed it: no market or series decides it, and no day of resolution is given beside it.
        targets = (Target(id="yes"),) if question.kind == "market" else question.targets
        typed = replace(question, source="asked", series=None, url="", targets=targets)
        bare = replace(typed, text=typed.text.split("\n\n")[0], criteria="", background="")
        for name, asked in (("whole", typed), ("text alone", bare)):
            kinds = {problem.kind for problem in find_problems(asked)}
            counts[name].update(["questions", *(["noted"] if kinds else []), *sorted(kinds)])
    return counts


def main() -> None:
    """Print all tables."""
    for name, counts in on_wording().items():
        print("notes", name, f"{counts['noted'] / counts['questions']:.2%}", dict(counts))
    series = on_series()
    for source in SERIES:
        row = {word: series[source, word] for word in ("right", "wrong", "undecided")}
        print(source, row, f"wrong {row['wrong'] / sum(row.values()):.2%}")
    for rate in ERROR_RATES:
        for rule, counts in on_texts(rate).items():
            total = sum(counts.values())
            shares = {word: f"{counts[word] / total:.2%}" for word in ("right", "wrong", "undecided")}
            print(f"errors {rate:.0%}", rule, total, shares)
    for (word, said), n in on_metaculus().items():
        print("metaculus", word, "→", said, n)
    for (platform, recorded, said), n in on_recorded_markets().items():
        print(platform, recorded, "→", said, n)


if __name__ == "__main__":
    main()
