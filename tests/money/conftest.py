"""Separate sites: folders, homes or databases, and providers that keep their own bills."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest

from money.ways import Site, Way

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def open_site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a function that opens a site for a way of spending, with settings of its provider."""
    with ExitStack() as stack:

        def opened(way: Way, **how: Any) -> Site:
            number = next(_NUMBERS)
            server = request.getfixturevalue("postgres_server") if way.shared else None
            database = server.create(f"money{number}") if server else ""
            return stack.enter_context(Site(tmp_path_factory.mktemp("site"), database=database, **how))

        yield opened
