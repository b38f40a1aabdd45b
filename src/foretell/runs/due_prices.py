"""Prices of a round's markets at its due moment, read from their histories once and kept beside the round.

A published round carries prices that are ten days old when it is due; that much freshness is worth 1.6 points.
"""

import asyncio
import json
from collections.abc import Sequence

from foretell.data.datasets.cache import DownloadCache
from foretell.data.datasets.forecastbench_download import PulledFile, price_file, read_pulled
from foretell.data.http import HttpLimits
from foretell.forecasters.base_rates.baselines import with_newest_price
from foretell.forecasters.forecaster import Context
from foretell.questions.as_of import instant
from foretell.questions.question import Question
from foretell.runs.services import SeriesOnDemand
from foretell.runs.settings import Settings, clock_of

AT_ONCE = 4
LIMITS = HttpLimits(attempts=2)


async def keep_due_prices(cache: DownloadCache, days: Sequence[str], settings: Settings) -> list[PulledFile]:
    """What became of the prices of each round; a round that is not due yet, or has them already, is left as it is."""
    done: list[PulledFile] = []
    async with SeriesOnDemand(settings, LIMITS) as series:
        for day in days:
            name, entry = price_file(day), cache.entry(price_file(day))
            if entry is not None:
                done.append(PulledFile(name=name, state="unchanged", bytes=entry.bytes))
            elif instant(day) <= clock_of(settings)():
                done += await _keep(cache, day, series)
    return done


async def _keep(cache: DownloadCache, day: str, series: SeriesOnDemand) -> list[PulledFile]:
    markets = [one for one in read_pulled(cache, day).questions if one.kind == "market"]
    gate = asyncio.Semaphore(AT_ONCE)

    async def newest(question: Question) -> dict[str, list[str | float]]:
        context = Context(as_of=question.as_of, series=series)
        async with gate:
            found = [(one, await with_newest_price(one, question, context)) for one in question.targets]
        fresh = {new.id: new.snapshot for old, new in found if new is not old and new.snapshot is not None}
        return {id: [one.at.isoformat(), one.price] for id, one in fresh.items() if one.price is not None}

    prices = dict(zip((one.id for one in markets), await asyncio.gather(*map(newest, markets)), strict=True))
    known = {id: targets for id, targets in prices.items() if targets}
    if not known:
        return [PulledFile(name=price_file(day), state="no market could be reached")] if markets else []
    body = json.dumps({"prices": known}, ensure_ascii=False, indent=1).encode()
    cache.put(price_file(day), body, url="")
    return [PulledFile(name=price_file(day), state=f"{len(known)} of {len(markets)} markets read", bytes=len(body))]
