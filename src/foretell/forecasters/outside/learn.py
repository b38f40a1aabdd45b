"""Learning the outside view from the questions known on a day, and from nothing later."""

import hashlib
from datetime import date
from typing import Any

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.outside.fit import Table, fit_text, prior_text, table_of, validation_loss
from foretell.forecasters.outside.model import OutsideModel, Record, TextModel
from foretell.forecasters.outside.past import PastQuestions
from foretell.forecasters.outside.rates import rate_table
from foretell.questions.clock import AsOf

STRENGTHS = (1.0, 3.0, 10.0)
"""Candidates for the precision of the words' coefficients."""
USUAL = 3.0
"""Taken where the past is too short to choose."""
ENOUGH = 200
"""Lessons needed before an origin to choose by it."""


def fit_outside(bank: PastQuestions, as_of: AsOf, *, strength: float | None = None) -> OutsideModel:
    """The outside view of somebody who knew, of `bank`, what was known before the day of the cutoff.

    Market questions teach the text model, data-set questions the table of rates. Unless told, how far the words are
    trusted is chosen inside that past: fitted before two earlier rounds, judged on the new questions asked after.
    """
    day = as_of.at.date()
    past = bank.before(day)
    markets = past.take(past.kind == "market")
    if not len(markets):
        return _assemble(past, markets, prior_text(), day, 0.0, {})
    tried: dict[float, float] = {} if strength is not None else _tried(markets, day)
    chosen = strength if strength is not None else min(tried, key=lambda s: (tried[s], s), default=USUAL)
    table = table_of(markets, day)
    text = fit_text(table, chosen)[0] if len(table) else prior_text()
    return _assemble(past, markets, text, day, chosen, {f"{s:g}": loss for s, loss in tried.items()})


def asking_hash(asking: str) -> int:
    """The first eight bytes of an asking's SHA-256: enough to recognise it, not to read it."""
    return int.from_bytes(hashlib.sha256(asking.encode()).digest()[:8], "big")


def _tried(markets: PastQuestions, day: date) -> dict[float, float]:
    """Validation loss by strength over two origins; empty where no origin has enough before and after it."""
    rounds = np.unique(markets.due)
    if len(rounds) < 5:
        return {}
    whole = table_of(markets, day)
    losses: dict[float, list[float]] = {}
    for origin, end in ((rounds[-4], rounds[-2]), (rounds[-2], np.datetime64(day, "D"))):
        early = markets.before(origin.item())
        table = table_of(early, origin.item())
        if len(table) < ENOUGH:
            continue
        later = markets.take(whole.lessons.row)
        new = (later.due >= origin) & (later.due < end) & ~np.isin(later.id, early.id)
        _judge(table, whole, later, new, losses)
    return {s: float(np.mean(found)) for s, found in losses.items()}


def _judge(table: Table, whole: Table, later: PastQuestions, new: Any, losses: dict[float, list[float]]) -> None:
    """Fit at every strength and note the mean squared distance on the new questions."""
    rows = np.flatnonzero(new)
    if not len(rows):
        return
    seen = [whole.lessons.seen[i] for i in rows]
    start: Floats | None = None
    for strength in sorted(STRENGTHS, reverse=True):
        model, start = fit_text(table, strength, start)
        loss = validation_loss(model, seen, later.take(rows), whole.lessons.target[rows])
        losses.setdefault(strength, []).append(loss)


def _assemble(
    past: PastQuestions, markets: PastQuestions, text: TextModel, day: date, strength: float, tried: dict[str, float]
) -> OutsideModel:
    seen = np.concatenate([past.known_on, past.price_on])
    seen = seen[~np.isnat(seen)]
    table_rows = markets.take(~np.isnan(markets.price) | ~np.isnan(markets.outcome))
    record = Record(
        as_of=day,
        last_known=seen.max().astype("M8[D]").item() if len(seen) else None,
        first_due=past.due.min().astype("M8[D]").item() if len(past) else None,
        last_due=past.due.max().astype("M8[D]").item() if len(past) else None,
        askings=len(np.unique(table_rows.askings)),
        questions=len(np.unique(table_rows.id)),
        outcomes=int((~np.isnan(markets.outcome)).sum()),
        prices=int((~np.isnan(markets.price)).sum()),
        dataset_outcomes=int(((past.kind == "dataset") & ~np.isnan(past.outcome)).sum()),
        strength=strength,
        tried=tried,
    )
    learnt = past.take(~np.isnan(past.outcome) | ~np.isnan(past.price))
    hashes = frozenset(asking_hash(str(asking)) for asking in np.unique(learnt.askings))
    return OutsideModel(text=text, rates=rate_table(past), record=record, askings=hashes)
