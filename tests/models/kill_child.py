"""Sends 200 requests to a fake provider through journal, limits and client, and logs every reply used."""

import asyncio
import os
import sys

from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.limits import ModelLimits
from foretell.models.model import Request, UserMessage
from foretell.models.router import ModelRouter

CALLS = 200


def request(url: str, place: int) -> Request:
    return Request(model=f"compat:m@{url}/v1", messages=(UserMessage(text=f"question {place}"),), slot=f"cell {place}")


async def main(url: str, path: str, progress: str) -> None:
    journal = Journal(path)
    file = os.open(progress, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    places = iter(range(CALLS))
    async with ModelRouter({}, journal=journal, limits={"compat": ModelLimits(at_once=20)}) as exchange:
        model = exchange.within(Budget("run", run="run"))

        async def work() -> None:
            for place in places:
                reply = await model.complete(request(url, place))
                assert reply.text == f"You said: question {place}"
                os.write(file, f"{place}\n".encode())

        await asyncio.gather(*[work() for _ in range(20)])
    journal.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
