"""Markets and series that ask the same as a leaf."""

import asyncio
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.forecaster import Context, MatchingSource
from foretell.models.journal import Journal
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import Question, Snapshot, Target
from foretell.runs.matching_sources import MatchingSources
from foretell.runs.settings import load_settings

DAY = instant("2026-03-10")


def asked(text: str, price_on: str, price: float = 0.63) -> Question:
    snapshot = Snapshot(at=instant(price_on), last_price=price)
    return Question(
        id=f"polymarket/{text} {price_on}",
        source="polymarket",
        text=text,
        due=instant(price_on),
        closes_at=instant("2026-06-30"),
        targets=(Target(id="yes", snapshot=snapshot),),
    )


def matching(tmp_path: Path, *past: Question) -> list[MatchingSource]:
    claim = Question(
        id="own/1#yes#P1",
        source="own",
        text="The Bank of England cuts its rate by 30 June 2026.",
        due=DAY,
        closes_at=instant("2026-06-30"),
        targets=(Target(id="yes"),),
    )
    context = Context(as_of=AsOf(at=DAY, mode="backtest"), past=Past.of(past))
    settings = replace(load_settings(), home=tmp_path)
    with closing(Journal(tmp_path / "journal.db")) as journal:
        return list(asyncio.run(MatchingSources(settings=settings, journal=journal).of(claim, context)))


def test_fresh_price_of_the_same_question_is_given(tmp_path: Path):
    same = "Will the Bank of England cut its rate by 30 June 2026?"
    (source,) = matching(tmp_path, asked(same, "2026-03-09"))
    assert "polymarket asks the same and stood at 63" in source.text
    assert "2026-03-09" in source.text
    assert source.price == 0.63


def test_old_later_and_other_prices_are_left_out(tmp_path: Path):
    same = "Will the Bank of England cut its rate by 30 June 2026?"
    old, later = asked(same, "2026-03-01"), asked(same, "2026-03-11")
    other = asked("Will the Bank of Japan cut its rate by 30 June 2026?", "2026-03-09")
    assert matching(tmp_path, old, later, other) == []
