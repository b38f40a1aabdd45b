"""Market prices of a round at its due date, each read once from the market's history and stored with the round.

The prices in a published round are ten days old when it is due. Fresh prices improve the score by 1.6 points.
"""

import json
from collections.abc import Sequence
from datetime import timedelta

from foretell.data.datasets.forecastbench_download import ROUND_DAYS, PulledFile, price_file, read_pulled
from foretell.data.files import DownloadCache
from foretell.data.http import HttpLimits
from foretell.forecasters.base_rates.baselines import price_read, with_newest_price
from foretell.forecasters.forecaster import Context
from foretell.questions.as_of import instant
from foretell.questions.question import Question
from foretell.runs.services import SeriesOnDemand
from foretell.runs.settings import Settings, clock_of

NOTHING_NEWER = "no market could be reached, or none had a newer price"
LIMITS = HttpLimits(attempts=2)
Prices = dict[str, dict[str, tuple[str, float]]]
"""Time and price by question and target."""


async def keep_due_prices(cache: DownloadCache, days: Sequence[str], settings: Settings) -> list[PulledFile]:
    """Fetch missing prices and report on each round. Rounds that are not due yet or long over are skipped."""
    done: list[PulledFile] = []
    now = clock_of(settings)()
    async with SeriesOnDemand(settings, LIMITS) as series:
        for day in days:
            entry, age = cache.entry(price_file(day)), now - instant(day)
            # Markets that could not be reached are asked again until the next round is due.
            if entry is not None and age > timedelta(days=ROUND_DAYS):
                done.append(PulledFile(name=price_file(day), state="unchanged", bytes=entry.bytes))
            elif age >= timedelta(0):
                done += await _keep(cache, day, series)
    return done


async def _keep(cache: DownloadCache, day: str, series: SeriesOnDemand) -> list[PulledFile]:
    """Fetch prices of the markets that have none yet."""
    name, entry = price_file(day), cache.entry(price_file(day))
    markets = [question for question in read_pulled(cache, day).questions if question.kind == "market"]
    before: Prices = {} if entry is None else json.loads(cache.path(name).read_bytes())["prices"]
    missing = [market for market in markets if market.id not in before]
    pairs = [
        (price_read(target, market, market.as_of), market.as_of) for market in missing for target in market.targets
    ]
    await series.fetch_all((ref, as_of) for ref, as_of in pairs if ref is not None)

    async def newest(question: Question) -> dict[str, tuple[str, float]]:
        context = Context(as_of=question.as_of, series=series)
        refreshed = [(target, await with_newest_price(target, question, context)) for target in question.targets]
        fresh = {new.id: new.snapshot for old, new in refreshed if new is not old and new.snapshot is not None}
        return {
            id: (snapshot.at.isoformat(), snapshot.price)
            for id, snapshot in fresh.items()
            if snapshot.price is not None
        }

    prices = {market.id: await newest(market) for market in missing}
    known = before | {id: targets for id, targets in prices.items() if targets}
    if len(known) == len(before):
        if entry is not None:
            return [PulledFile(name=name, state="unchanged", bytes=entry.bytes)]
        return [PulledFile(name=name, state=NOTHING_NEWER)] if markets else []
    body = json.dumps({"prices": known}, ensure_ascii=False, indent=1).encode()
    cache.put(name, body, url="")
    return [PulledFile(name=name, state=f"{len(known)} of {len(markets)} markets read", bytes=len(body))]
