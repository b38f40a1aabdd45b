import asyncio
import os
import threading
from pathlib import Path

import pytest

from foretell.models.database.sqlite import DiskFlush


def test_many_share_one_flush_and_nobody_rides_on_one_that_started_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "wal").write_bytes(b"x")
    go = threading.Event()
    started: list[int] = []

    def fsync(file: int) -> None:
        started.append(file)
        go.wait(10)

    monkeypatch.setattr(os, "fsync", fsync)

    async def main() -> None:
        flush = DiskFlush(tmp_path / "wal")
        early = [asyncio.create_task(flush.settled()) for _ in range(20)]
        while not started:
            await asyncio.sleep(0.001)
        late = [asyncio.create_task(flush.settled()) for _ in range(20)]
        late[0].cancel()
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in [*early, *late[1:]])
        go.set()
        await asyncio.gather(*early, *late[1:])
        assert len(started) == 2
        flush.close()

    asyncio.run(main())
