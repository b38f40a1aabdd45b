"""An arena whose platform, clock and entries belong to the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.arena.live.site import Site, usual

from foretell.runs.store import RunStore


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """An arena with two entries on an SQLite file; the exchange lists nothing yet."""
    store = RunStore(tmp_path / "runs.db")
    yield Site(store=store, spec=usual())
    store.close()


@pytest.fixture
def anywhere(place: Path | str) -> Iterator[Site]:
    """The same on either kind of database."""
    store = RunStore(place)
    yield Site(store=store, spec=usual())
    store.close()
