import asyncio
from pathlib import Path

import numpy as np
import pytest

from foretell.data.http import SourceError
from foretell.data.series.series import Series, SeriesUnavailable
from foretell.models.journal import Journal
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef
from foretell.runs.runtime import JournaledSeries

REF = SeriesRef(provider="dbnomics", id="meteo/x")
JULY = AsOf.day("2026-07-01")


class Source:
    """A series that grows by a value with every read, or raises a failure."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.looks = 0
        self._failure = failure

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        self.looks += 1
        if self._failure is not None:
            raise self._failure
        days = np.array(["2026-06-01", "2026-06-02"], "M8[D]")
        return Series(id=ref.id, days=days, values=np.array([0.1, float(self.looks)]))


def test_a_series_is_read_once_and_replayed(tmp_path: Path):
    source, journal = Source(), Journal(tmp_path / "j.db")
    journaled_series = JournaledSeries(source=source, journal=journal)
    first, second = (asyncio.run(journaled_series.fetch(REF, JULY)) for _ in range(2))
    assert source.looks == 1
    assert first.values.tolist() == second.values.tolist() == [0.1, 1.0]
    assert (first.days == second.days).all()
    asyncio.run(journaled_series.fetch(REF, AsOf.day("2026-07-02")))
    assert source.looks == 2
    journal.close()


@pytest.mark.parametrize("failure", [SeriesUnavailable("none"), SourceError("down", url="http://x")])
def test_a_failure_is_replayed(tmp_path: Path, failure: Exception):
    journal = Journal(tmp_path / "j.db")
    source = Source(failure)
    for _ in range(2):
        with pytest.raises(SeriesUnavailable, match=str(failure)):
            asyncio.run(JournaledSeries(source=source, journal=journal).fetch(REF, JULY))
    assert source.looks == 1
    journal.close()
