"""What a person has to learn stays within the limits of tools/surface.py."""

from pathlib import Path
from runpy import run_path

import pytest

SURFACE = run_path(str(Path(__file__).parents[1] / "tools" / "surface.py"))
LIMITS: dict[str, int] = SURFACE["LIMITS"]


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    return SURFACE["counts"]()


@pytest.mark.parametrize("name", LIMITS)
def test_the_surface_stays_within_its_limits(name: str, counts: dict[str, int]) -> None:
    assert counts[name] <= LIMITS[name]


def test_every_count_has_a_limit(counts: dict[str, int]) -> None:
    assert counts.keys() == LIMITS.keys()
