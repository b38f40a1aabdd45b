"""Asks a fake provider 200 questions through journal, limits and wire; a line of progress for every reply used."""

import asyncio
import os
import sys

from foretell.models import Journal, ModelLimits, ModelRouter, Request, UserMessage

CALLS = 200


def request(url: str, place: int) -> Request:
    return Request(model=f"compat:m@{url}/v1", messages=(UserMessage(text=f"question {place}"),), slot=f"cell {place}")


async def main(url: str, path: str, progress: str) -> None:
    journal = Journal(path)
    file = os.open(progress, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    places = iter(range(CALLS))
    async with ModelRouter({}, journal=journal, limits={"compat": ModelLimits(at_once=20)}) as exchange:

        async def work() -> None:
            for place in places:
                reply = await exchange.complete(request(url, place))
                assert reply.text == f"You said: question {place}"
                os.write(file, f"{place}\n".encode())

        await asyncio.gather(*[work() for _ in range(20)])
    journal.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
