"""Every adapter against recorded answers, official specifications and official clients."""

import asyncio
import inspect
import os
from importlib.util import find_spec

import pytest

from conformance.recordings import FOLDER, Check
from conformance.table import all_checks, table, unread

CHECKS = all_checks()
needs_recordings = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"needs the recordings in {FOLDER}")


@pytest.mark.parametrize("check", CHECKS, ids=[check.name for check in CHECKS])
def test_claim_about_the_service_is_true(check: Check):
    if check.recordings and not FOLDER.is_dir():
        pytest.skip(f"needs the recordings in {FOLDER}")
    if check.module and find_spec(check.module) is None:
        if os.environ.get("FORETELL_REQUIRE_ALL"):
            pytest.fail(f"{check.module} is not installed")
        pytest.skip(f"needs the package {check.module}")
    if check.recordings:
        assert check.files, "names no recording that is here"
    result = check.function()
    if inspect.isawaitable(result):
        asyncio.run(_wait(result))


async def _wait(result: "object") -> None:
    await result  # pyright: ignore[reportGeneralTypeIssues]


@needs_recordings
def test_every_recording_is_read():
    assert unread(CHECKS) == {}


def test_the_table_lists_every_check():
    rows = [line for line in table(CHECKS).splitlines() if line.startswith("|")]
    assert len(rows) == len(CHECKS) + 2
